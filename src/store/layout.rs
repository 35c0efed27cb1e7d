//! How sessions lie in the key-value store: the keys. `docs/format.md` describes them byte by byte.
//!
//! Keys sort numerically by sequence and are injective: no id is a prefix of another's range, because `/` cannot stand in an
//! id and closes it. `0` is the code unit after `/`, so `s/<id>0` ends the range of a session exactly.

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

/// Returns the key of one piece of a value that is cut into chunks.
pub fn chunk_key(key: &str, index: u32) -> String {
    format!("{key}/{index:08}")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::compare_keys;

    #[test]
    fn keys_sort_by_number() {
        let keys: Vec<String> = [0, 1, 9, 10, 99, 1_000_000, (1 << 53) - 1].map(|n| segment_key("s1", n)).into();
        assert!(keys.windows(2).all(|w| compare_keys(&w[0], &w[1]).is_lt()), "{keys:?}");
        assert_eq!(seq_of_segment_key(&keys[6]).unwrap(), (1 << 53) - 1);
        assert_eq!(seq_of_segment_key(&chunk_key(&keys[3], 7)).unwrap(), 10);
        assert!(seq_of_segment_key("s/a/e/1").is_err());
    }

    /// PERSIST.6: the range of `s1` holds nothing of `s10`, `S1`, `s1__p2`, `s1-x` or `s1-`.
    #[test]
    fn the_range_of_one_session_holds_no_other() {
        let (start, end) = session_range("s1");
        let inside = |key: &str| compare_keys(&start, key).is_le() && compare_keys(key, &end).is_lt();
        for own in [fence_key("s1"), header_key("s1"), segment_key("s1", 3), chunk_key(&segment_key("s1", 3), 1)] {
            assert!(inside(&own), "{own}");
        }
        for other in ["s10", "S1", "s1__p2", "s1-x", "s1-", "s", "s0", "s2", "s1a"] {
            for key in [fence_key(other), header_key(other), segment_key(other, 3)] {
                assert!(!inside(&key), "{key}");
            }
        }
    }
}
