//! How sessions lie in the key-value store: the keys. `docs/format.md` describes them byte by byte.
//!
//! Keys sort numerically by sequence and are injective: no id is a prefix of another's range, because `/` cannot stand in an
//! id and closes it. `0` is the code unit after `/`, so `s/<id>0` ends the range of a session exactly.

use super::crc::crc32;
use crate::core::error::{Error, Kind, Result};

/// The version of the layout that this code writes.
pub const FORMAT_VERSION: u32 = 1;

/// Key of the format record.
pub const FORMAT_KEY: &str = "m/format";

/// Digits of a sequence number in a key: enough for 2^53.
const SEQ_DIGITS: usize = 16;

/// Returns the half-open range of all keys below a prefix that ends in `/`.
pub fn range_of(prefix: &str) -> (String, String) {
    let stem = prefix.strip_suffix('/').unwrap_or(prefix);
    (format!("{stem}/"), format!("{stem}0"))
}

/// Returns the range of everything that belongs to one session.
pub fn session_range(id: &str) -> (String, String) {
    range_of(&format!("s/{id}/"))
}

/// Returns the key of the record that names the writer's epoch.
pub fn fence_key(id: &str) -> String {
    format!("s/{id}/f")
}

/// Returns the key of the immutable header.
pub fn header_key(id: &str) -> String {
    format!("s/{id}/h")
}

/// Returns the key of the segment whose first event has this sequence number.
pub fn segment_key(id: &str, first_seq: u64) -> String {
    format!("s/{id}/e/{first_seq:0SEQ_DIGITS$}")
}

/// Returns the range of the segments that start at `from` or later.
pub fn segment_range(id: &str, from: u64) -> (String, String) {
    (segment_key(id, from), format!("s/{id}/e0"))
}

/// Returns the key of one piece of a segment that is cut.
pub fn piece_key(segment: &str, tag: &str, index: u32) -> String {
    format!("{segment}/{tag}/{index:08}")
}

/// Returns the key of the note that says from where a long session can be opened.
pub fn checkpoint_key(id: &str) -> String {
    format!("s/{id}/c")
}

/// Returns the key of the small record that a listing reads; it lies outside the session's range so that one range read
/// lists all sessions without touching an event.
pub fn record_key(id: &str) -> String {
    format!("r/{id}")
}

/// Reads the first sequence number from a segment's key.
pub fn seq_of_segment_key(key: &str) -> Result<u64> {
    let digits = key.rsplit_once("/e/").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
    let is_plain = digits.len() == SEQ_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|_| is_plain)
        .ok_or_else(|| Error::new(Kind::Corrupt, "a key among the segments is not a segment's").with("key", key))
}

/// Writes the format record.
pub fn format_record() -> Vec<u8> {
    format!("{{\"format\":\"sessionlog.store\",\"version\":{FORMAT_VERSION}}}").into_bytes()
}

/// Writes the fence record: who holds this epoch may write.
pub fn fence_value(epoch: u64) -> Vec<u8> {
    format!("{{\"epoch\":{epoch}}}").into_bytes()
}

/// Reads the epoch of a fence record; 0 when there is none.
pub fn epoch_of(fence: Option<&[u8]>) -> Result<u64> {
    let Some(bytes) = fence else { return Ok(0) };
    let bad = || Error::new(Kind::Corrupt, "the record that names the writer's epoch cannot be read");
    let digits = bytes.strip_prefix(b"{\"epoch\":").and_then(|rest| rest.strip_suffix(b"}")).ok_or_else(bad)?;
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(bad)
}

/// The longest text that announces pieces: `#`, ten digits, a space, a tag of 24, a line feed.
pub const MARK_BYTES: usize = 37;

/// One value of a segment: its key, what stands before its bytes, and which bytes of the segment it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Key.
    pub key: String,
    /// Put before the bytes; empty save for the first of several pieces.
    pub mark: String,
    /// Bytes of the segment.
    pub bytes: std::ops::Range<usize>,
}

/// Cuts a segment so that no value is longer than `max`. The first piece names the number and the tag of those after it
/// (`#<count> <tag>\n`; a line of a log starts with `{`). The tag follows from the bytes, so that pieces of an interrupted or
/// late write of something else are never taken for this segment's own, nor overwrite them.
pub fn pieces(id: &str, first_seq: u64, bytes: &[u8], max: usize) -> Vec<Piece> {
    let key = segment_key(id, first_seq);
    let len = bytes.len();
    let max = max.max(MARK_BYTES + 1);
    if len <= max {
        return vec![Piece { key, mark: String::new(), bytes: 0..len }];
    }
    let tag = format!("{:08x}{len:x}", crc32(bytes));
    let head = max - MARK_BYTES;
    let count = (len - head).div_ceil(max);
    let mut out = vec![Piece { key: key.clone(), mark: format!("#{count} {tag}\n"), bytes: 0..head }];
    for (index, start) in (1u32..).zip((head..len).step_by(max)) {
        out.push(Piece { key: piece_key(&key, &tag, index), mark: String::new(), bytes: start..len.min(start + max) });
    }
    out
}

/// What the first piece says about those after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// How many follow.
    pub count: u32,
    /// What their keys carry.
    pub tag: String,
    /// How long the mark itself is.
    pub len: usize,
}

/// Reads the mark at the start of a value; an uncut segment has none.
pub fn read_mark(value: &[u8]) -> Mark {
    let head = value.get(..value.len().min(MARK_BYTES)).unwrap_or_default();
    let line = head.split(|b| *b == b'\n').next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    let parts = line.strip_prefix('#').and_then(|rest| rest.split_once(' '));
    match parts.and_then(|(count, tag)| Some((count.parse().ok()?, tag))) {
        Some((count, tag)) if line.len() < head.len() => Mark { count, tag: tag.to_owned(), len: line.len() + 1 },
        _ => Mark::default(),
    }
}

/// One segment as it is found in a listing: which entries, in order, and how many bytes of the first one to skip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Sequence number of its first event.
    pub first_seq: u64,
    /// Indices of its entries. Others may lie between them.
    pub entries: Vec<usize>,
    /// Length of the mark.
    pub skip: usize,
    /// Whether all its pieces are there. What is there of a torn one still loads, line by line.
    pub whole: bool,
}

/// Groups a listing into segments; `mark` reads the mark of the entry at an index. Pieces without a first one belong to a
/// write that was never committed and are passed over.
pub fn blocks<'a>(keys: impl IntoIterator<Item = &'a str>, mark: impl Fn(usize) -> Mark) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::new();
    let mut open: Option<(String, Mark)> = None;
    for (index, key) in keys.into_iter().enumerate() {
        let is_piece = key.rsplit_once("/e/").is_some_and(|(_, rest)| rest.contains('/'));
        let Ok(first_seq) = seq_of_segment_key(key) else { continue };
        if !is_piece {
            let mark = mark(index);
            out.push(Block { first_seq, entries: vec![index], skip: mark.len, whole: mark.count == 0 });
            open = Some((key.to_owned(), mark));
            continue;
        }
        let (Some((head, mark)), Some(block)) = (&open, out.last_mut()) else { continue };
        let next = block.entries.len() as u32;
        if next <= mark.count && key == piece_key(head, &mark.tag, next) {
            block.entries.push(index);
            block.whole = next == mark.count;
        }
    }
    out
}

/// Segments below this size are merged when many stand side by side.
pub const SMALL_SEGMENT: usize = 32 * 1024;
/// How many small ones are many.
pub const MANY_SEGMENTS: usize = 64;
/// A merged segment grows no larger than this.
pub const MERGED_SEGMENT: usize = 1024 * 1024;

/// Says which neighbouring segments (first seq and size, in order) to merge into one next, as a range of indices.
pub fn merge_plan(segments: &[(u64, usize)], max_value: usize) -> Option<std::ops::Range<usize>> {
    let limit = MERGED_SEGMENT.min(max_value);
    let is_small = |index: usize| segments.get(index).is_some_and(|(_, size)| *size < SMALL_SEGMENT);
    let mut start = 0;
    while start < segments.len() {
        let mut end = start;
        let mut total = 0;
        while is_small(end) && segments.get(end).is_some_and(|(_, size)| total + size <= limit) {
            total += segments.get(end).map_or(0, |(_, size)| *size);
            end += 1;
        }
        if end - start >= MANY_SEGMENTS {
            return Some(start..end);
        }
        start = end.max(start + 1);
    }
    None
}

/// What is written in one go, where the first part can be on its way while the next is made, is cut at about this size.
const CUT_BYTES: usize = 128 * 1024;
/// A batch is atomic: what is to be written in one go must fit into one.
const MOST_CUTS: usize = 1000;

/// Cuts events of these sizes into segments of about the same size; returns how many events are in the first one, in the first
/// two, and so on, up to all.
pub fn cuts(sizes: &[usize]) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    let each = total / (total / CUT_BYTES).clamp(1, MOST_CUTS);
    let mut out = Vec::new();
    let mut bytes = 0;
    for (at, size) in sizes.iter().enumerate() {
        bytes += size;
        if bytes >= each {
            out.push(at + 1);
            bytes = 0;
        }
    }
    if out.last() != Some(&sizes.len()) {
        // No segment for a small rest.
        if bytes < each / 2 {
            out.pop();
        }
        out.push(sizes.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::compare_keys;

    #[test]
    fn keys_sort_by_number() {
        let keys: Vec<String> = [0, 1, 9, 10, 99, 1_000_000, (1 << 53) - 1].map(|n| segment_key("s1", n)).into();
        assert!(keys.windows(2).all(|w| compare_keys(&w[0], &w[1]).is_lt()), "{keys:?}");
        assert_eq!(seq_of_segment_key(&keys[6]).unwrap(), (1 << 53) - 1);
        assert_eq!(seq_of_segment_key(&piece_key(&keys[3], "ab", 7)).unwrap(), 10);
        assert!(seq_of_segment_key("s/a/e/1").is_err());
    }

    /// PERSIST.6: the range of `s1` holds nothing of `s10`, `S1`, `s1__p2`, `s1-x` or `s1-`.
    #[test]
    fn the_range_of_one_session_holds_no_other() {
        let (start, end) = session_range("s1");
        let inside = |key: &str| compare_keys(&start, key).is_le() && compare_keys(key, &end).is_lt();
        for own in [fence_key("s1"), header_key("s1"), segment_key("s1", 3), piece_key(&segment_key("s1", 3), "ab", 1)]
        {
            assert!(inside(&own), "{own}");
        }
        for other in ["s10", "S1", "s1__p2", "s1-x", "s1-", "s", "s0", "s2", "s1a"] {
            for key in [fence_key(other), header_key(other), segment_key(other, 3)] {
                assert!(!inside(&key), "{key}");
            }
        }
    }

    #[test]
    fn a_fence_reads_back_and_damage_is_told() {
        assert_eq!(epoch_of(None).unwrap(), 0);
        assert_eq!(epoch_of(Some(&fence_value(17))).unwrap(), 17);
        assert_eq!(epoch_of(Some(b"{\"epoch\":}")).unwrap_err().code(), "corrupt");
    }

    fn cut(bytes: &[u8], max: usize) -> Vec<(String, Vec<u8>)> {
        let value = |p: &Piece| [p.mark.as_bytes(), &bytes[p.bytes.clone()]].concat();
        pieces("s", 7, bytes, max).iter().map(|p| (p.key.clone(), value(p))).collect()
    }

    fn joined(entries: &[(String, Vec<u8>)]) -> Vec<(Block, Vec<u8>)> {
        let found = blocks(entries.iter().map(|(k, _)| k.as_str()), |i| read_mark(&entries[i].1));
        found
            .into_iter()
            .map(|b| {
                let all: Vec<u8> = b.entries.iter().flat_map(|at| entries[*at].1.clone()).collect();
                let bytes = all[b.skip..].to_vec();
                (b, bytes)
            })
            .collect()
    }

    #[test]
    fn a_segment_is_cut_under_the_limit_and_joined_again() {
        for len in [0, 1, 49, 50, 51, 80, 81, 700] {
            let bytes: Vec<u8> = (0..len).map(|n| b'a' + (n % 26) as u8).collect();
            let entries = cut(&bytes, 50);
            assert!(entries.iter().all(|(_, value)| value.len() <= 50));
            assert!(entries.windows(2).all(|w| compare_keys(&w[0].0, &w[1].0).is_lt()));
            let found = joined(&entries);
            assert_eq!((found.len(), found[0].0.whole, &found[0].1), (1, true, &bytes), "{len}");
        }
    }

    #[test]
    fn leftovers_of_a_larger_write_are_not_taken_for_a_segments_own() {
        let mut entries = cut(&[b'x'; 300], 50);
        entries[0] = cut(b"small", 50)[0].clone();
        let found = joined(&entries);
        assert_eq!((found[0].0.whole, found[0].1.as_slice()), (true, b"small".as_slice()));
        entries.remove(0);
        assert_eq!(joined(&entries), [], "without its first piece nothing was committed");
        let mut torn = cut(&[b'x'; 300], 50);
        torn.remove(2);
        assert!(!joined(&torn)[0].0.whole);
        let mut mixed = cut(&[b'x'; 300], 50);
        mixed.extend(cut(&[b'y'; 300], 50).into_iter().skip(1));
        mixed.sort();
        assert_eq!(joined(&mixed)[0].1, [b'x'; 300], "pieces of another write stand between");
    }

    #[test]
    fn only_long_runs_of_small_segments_are_merged() {
        let small = |n: u64| (n, 1000);
        let few: Vec<_> = (0..63).map(small).collect();
        assert_eq!(merge_plan(&few, usize::MAX), None);
        let mut many: Vec<_> = (0..70).map(small).collect();
        assert_eq!(merge_plan(&many, usize::MAX), Some(0..70));
        many.insert(5, (5, 1 << 20));
        assert_eq!(merge_plan(&many, usize::MAX), Some(6..71));
        assert_eq!(merge_plan(&many, 10_000), None, "what does not fit in one value stays");
    }

    #[test]
    fn what_is_written_in_one_go_is_cut_evenly_and_loses_nothing() {
        assert_eq!(cuts(&[]), [0]);
        assert_eq!(cuts(&[1000; 3]), [3]);
        assert_eq!(cuts(&[1000; 262]), [262], "less than two full ones");
        assert_eq!(cuts(&[1000; 1000]), [143, 286, 429, 572, 715, 858, 1000]);
        assert_eq!(cuts(&[200_000; 3]), [1, 2, 3]);
        assert_eq!(cuts(&[10, 5_000_000, 10]), [3], "a large event takes its neighbours along");
        let many = cuts(&[1_000_000; 3000]);
        assert!(many.len() <= MOST_CUTS && many.last() == Some(&3000), "{}", many.len());
    }
}
