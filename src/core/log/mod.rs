//! The log: append, contiguous sequence, shared prefixes for forks, digest chain.
//!
//! Payloads stay JSON text in large shared segments with a small entry per event. A fork shares the segments of its
//! source, so that forking costs the same whatever the length, and the source's bytes never change.

mod digest;
pub mod line;
mod segment;

use std::rc::Rc;

use super::error::{Error, Kind, Result};
use super::event::EventView;
use super::id::EventId;
use super::time::Millis;

use digest::Hash;
pub use digest::{Digest, Salt, hex, push_hex, unhex};
use segment::{Entry, Segment};

/// A tail of this many bytes is closed into a shared segment.
const SEGMENT_BYTES: usize = 256 * 1024;

/// An event on its way into a log.
#[derive(Clone, Debug)]
pub struct NewEvent<'a> {
    /// Its id.
    pub id: EventId,
    /// When it happened.
    pub at: Millis,
    /// Its type.
    pub kind: &'a str,
    /// Its payload in stored form: JSON text.
    pub data: &'a str,
    /// What the store worked out about it: JSON text.
    pub note: Option<&'a str>,
    /// Its salt.
    pub salt: Salt,
    /// The digest of the payload that stood here before it was rewritten, if it was.
    pub was: Option<Digest>,
    /// Members of the envelope that this version does not know: JSON text of an object.
    pub extra: Option<&'a str>,
}

/// The first `count` events of a shared segment, standing at `start` in the log.
#[derive(Clone, Debug)]
struct Slice {
    start: u64,
    count: usize,
    segment: Rc<Segment>,
}

/// An append-only list of events with contiguous sequence numbers.
#[derive(Debug, Default)]
pub struct Log {
    shared: Vec<Slice>,
    tail: Segment,
    tail_start: u64,
    kinds: Vec<Rc<str>>,
}

/// What `verify` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every event fits.
    Holds,
    /// The first event that does not fit.
    BrokenAt(u64),
}

impl Log {
    /// Makes an empty log.
    pub fn new() -> Self {
        Log::default()
    }

    /// Returns the number of events, which is the sequence number of the next one.
    pub fn len(&self) -> u64 {
        self.tail_start + self.tail.entries.len() as u64
    }

    /// Says whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes a log whose events before `first` come later, by [`Log::prepend`]; until then they are absent.
    pub fn starting_at(first: u64) -> Self {
        Log { tail_start: first, ..Log::default() }
    }

    /// Returns the first seq that is there.
    pub fn first(&self) -> u64 {
        self.shared.first().map_or(self.tail_start, |slice| slice.start)
    }

    /// Puts the events that were absent before the others; `earlier` ends where this log begins.
    pub fn prepend(&mut self, mut earlier: Log) {
        earlier.close_tail();
        debug_assert_eq!(earlier.len(), self.first());
        earlier.shared.append(&mut self.shared);
        self.shared = earlier.shared;
    }

    /// Appends one event and returns its sequence number.
    pub fn append(&mut self, event: &NewEvent<'_>) -> u64 {
        let seq = self.len();
        let kind = self.intern(event.kind);
        self.tail.push(event, kind);
        if self.tail.text.len() >= SEGMENT_BYTES {
            self.close_tail();
        }
        seq
    }

    /// Takes stored lines over as they are when all of them are in our own form and go on where this log ends; else gives
    /// the text back.
    pub fn adopt(&mut self, text: String) -> std::result::Result<(), String> {
        let first = self.len();
        let segment = Segment::of_lines(text, first, &mut |kind| self.intern(kind))?;
        self.close_tail();
        self.tail = segment;
        self.close_tail();
        Ok(())
    }

    /// Returns the stored lines of the events from `from` on, and how many these are, when they were taken over as they are.
    pub fn stored_lines(&self, from: u64, to: u64) -> Option<(&str, u64)> {
        let after = self.shared.partition_point(|s| s.start <= from);
        let slice = self.shared.get(after.checked_sub(1)?)?;
        let first = usize::try_from(from - slice.start).ok()?;
        let last = usize::try_from(to - slice.start).ok()?.min(slice.count);
        let lines = slice.segment.lines(first, last).filter(|_| first < last)?;
        Some((lines, (last - first) as u64))
    }

    fn intern(&mut self, kind: &str) -> Rc<str> {
        if let Some(known) = self.kinds.iter().find(|k| &***k == kind) {
            return known.clone();
        }
        let new: Rc<str> = kind.into();
        self.kinds.push(new.clone());
        new
    }

    fn close_tail(&mut self) {
        let count = self.tail.entries.len();
        if count == 0 {
            return;
        }
        let mut segment = std::mem::take(&mut self.tail);
        segment.close();
        self.shared.push(Slice { start: self.tail_start, count, segment: Rc::new(segment) });
        self.tail_start += count as u64;
    }

    /// Takes back the events from `len` on; only ones that nobody has seen.
    pub fn truncate(&mut self, len: u64) {
        while len < self.tail_start {
            let Some(last) = self.shared.pop() else { return };
            self.tail = Segment::default();
            self.tail_start = last.start;
            let keep = usize::try_from(len.saturating_sub(last.start)).unwrap_or(usize::MAX).min(last.count);
            if keep > 0 {
                self.shared.push(Slice { count: keep, ..last });
                self.tail_start += keep as u64;
                return;
            }
        }
        let keep = usize::try_from(len - self.tail_start).unwrap_or(usize::MAX);
        self.tail.truncate(keep);
    }

    /// Makes a log of the first `count` events that shares their storage.
    pub fn fork(&mut self, count: u64) -> Log {
        self.close_tail();
        let mut shared: Vec<Slice> = self.shared.iter().take_while(|s| s.start < count).cloned().collect();
        if let Some(last) = shared.last_mut() {
            let room = usize::try_from(count - last.start).unwrap_or(usize::MAX);
            last.count = last.count.min(room);
        }
        let tail_start = shared.last().map_or(0, |s| s.start + s.count as u64);
        Log { shared, tail: Segment::default(), tail_start, kinds: self.kinds.clone() }
    }

    fn place(&self, seq: u64) -> Option<(&Segment, usize)> {
        if seq >= self.tail_start {
            return Some((&self.tail, usize::try_from(seq - self.tail_start).ok()?));
        }
        let after = self.shared.partition_point(|s| s.start <= seq);
        let slice = self.shared.get(after.checked_sub(1)?)?;
        Some((&slice.segment, usize::try_from(seq - slice.start).ok()?))
    }

    /// Returns the event at a sequence number.
    pub fn event(&self, seq: u64) -> Option<EventView<'_>> {
        let (segment, at) = self.place(seq)?;
        segment.view(at, seq)
    }

    /// Iterates over the events from `from` up to but not including `to`.
    pub fn range(&self, from: u64, to: u64) -> impl Iterator<Item = EventView<'_>> {
        let to = to.min(self.len());
        (from..to).filter_map(|seq| self.event(seq))
    }

    /// Iterates over all events.
    pub fn iter(&self) -> impl Iterator<Item = EventView<'_>> {
        self.range(0, self.len())
    }

    fn entry(&self, seq: u64) -> Option<&Entry> {
        let (segment, at) = self.place(seq)?;
        segment.entries.get(at)
    }

    /// Says whether any payload may name a blob, without reading one.
    pub fn may_name_blobs(&self) -> bool {
        self.tail.has_blobs() || self.shared.iter().any(|slice| slice.segment.names_blobs())
    }

    /// Returns the salt of an event.
    pub fn salt(&self, seq: u64) -> Salt {
        self.entry(seq).map_or([0; 16], |e| e.salt)
    }

    /// Returns what the payload digest was before the payload was rewritten.
    pub fn was(&self, seq: u64) -> Option<Digest> {
        self.entry(seq)?.was.as_deref().copied()
    }

    /// Returns the members of an event's envelope that this version does not know.
    pub fn extra(&self, seq: u64) -> Option<&str> {
        let (segment, at) = self.place(seq)?;
        segment.extra(segment.entries.get(at)?)
    }

    /// Returns the chain digest after the event at `seq`; of nothing when the log is shorter.
    pub fn digest(&self, seq: u64) -> Option<Digest> {
        let (_, _) = self.place(seq)?;
        let mut previous = [0; 32];
        let after = self.shared.partition_point(|s| s.start + (s.count as u64) <= seq);
        // The nearest earlier slice that knows its last digest saves walking from the start.
        let known = self.shared.get(..after)?.iter().rposition(|s| s.segment.digests.borrow().len() >= s.count);
        if let Some(at) = known {
            let slice = self.shared.get(at)?;
            previous = *slice.segment.digests.borrow().get(slice.count.checked_sub(1)?)?;
        }
        for slice in self.shared.get(known.map_or(0, |k| k + 1)..(after + 1).min(self.shared.len()))? {
            let upto = usize::try_from((seq + 1).saturating_sub(slice.start)).ok()?.min(slice.count);
            previous = slice.segment.extend_digests(slice.start, previous, upto)?;
        }
        if seq >= self.tail_start {
            let upto = usize::try_from(seq + 1 - self.tail_start).ok()?;
            previous = self.tail.extend_digests(self.tail_start, previous, upto)?;
        }
        Some(previous)
    }

    /// Returns the chain digest of the whole log.
    pub fn head(&self) -> Digest {
        self.len().checked_sub(1).and_then(|last| self.digest(last)).unwrap_or([0; 32])
    }

    /// Takes over a chain digest that came with a stored event, so that `verify` can hold the payloads against it.
    pub fn expect_digest(&mut self, seq: u64, digest: Digest) {
        let Some(at) = seq.checked_sub(self.tail_start).and_then(|at| usize::try_from(at).ok()) else {
            if let Some((segment, at)) = self.place(seq) {
                let mut known = segment.digests.borrow_mut();
                if known.len() == at {
                    known.push(digest);
                }
            }
            return;
        };
        let mut known = self.tail.digests.borrow_mut();
        if known.len() == at {
            known.push(digest);
        }
    }

    /// Works the whole chain out anew and holds it against the digests that are known.
    pub fn verify(&self) -> Verdict {
        let mut previous = [0; 32];
        let tail =
            Slice { start: self.tail_start, count: self.tail.entries.len(), segment: Rc::new(Segment::default()) };
        let parts = self.shared.iter().map(|s| (s, &*s.segment)).chain(std::iter::once((&tail, &self.tail)));
        for (slice, segment) in parts {
            let known = segment.digests.borrow();
            for (at, entry) in segment.entries.iter().take(slice.count).enumerate() {
                let seq = slice.start + at as u64;
                let made = |hash| segment.link(hash, &previous, seq, entry);
                let known = known.get(at).copied();
                if known.is_some_and(|known| known != made(Hash::Blake3) && known != made(Hash::Sha256)) {
                    return Verdict::BrokenAt(seq);
                }
                previous = known.unwrap_or_else(|| made(Hash::Blake3));
            }
        }
        Verdict::Holds
    }

    /// Tells which hash the link of an event was made with.
    fn hash_of(&self, seq: u64) -> Hash {
        let previous = seq.checked_sub(1).and_then(|before| self.digest(before)).unwrap_or([0; 32]);
        let is_old = |(segment, at): (&Segment, usize)| {
            let made = |entry| segment.link(Hash::Sha256, &previous, seq, entry);
            segment.entries.get(at).map(made) == self.digest(seq)
        };
        if self.place(seq).is_some_and(is_old) { Hash::Sha256 } else { Hash::Blake3 }
    }

    /// Makes a log in which some payloads are replaced; their old payload digests stay, so that the chain still holds.
    ///
    /// `rewrite` returns the new payload and a new salt for an event, or nothing where it stays.
    pub fn rewritten(&self, mut rewrite: impl FnMut(EventView<'_>) -> Result<Option<(String, Salt)>>) -> Result<Log> {
        let mut out = Log::new();
        for seq in 0..self.len() {
            let Some((segment, at)) = self.place(seq) else { continue };
            let (Some(view), Some(entry)) = (segment.view(at, seq), segment.entries.get(at)) else { continue };
            let new = rewrite(view)?;
            let was = new.as_ref().map(|_| segment.payload_digest(self.hash_of(seq), entry));
            out.append(&NewEvent {
                id: view.id,
                at: view.at,
                kind: view.kind,
                data: new.as_ref().map_or(view.data, |(data, _)| data),
                note: view.note,
                salt: new.as_ref().map_or(entry.salt, |(_, salt)| *salt),
                was: was.or_else(|| entry.was.as_deref().copied()),
                extra: segment.extra(entry),
            });
        }
        Ok(out)
    }
}

/// Makes the error for a sequence number outside the log.
pub fn no_such_seq(seq: u64, len: u64) -> Error {
    Error::new(Kind::InvalidArgument, format!("seq {seq} is not in a log of {len} events")).with("seq", seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn new(n: u64) -> (String, NewEvent<'static>) {
        let event = NewEvent {
            id: EventId(n),
            at: n as i64,
            kind: "user/message",
            data: "",
            note: None,
            salt: [n as u8; 16],
            was: None,
            extra: None,
        };
        (format!("{{\"text\":\"message {n}\"}}"), event)
    }

    fn filled(count: u64) -> Log {
        let mut log = Log::new();
        for n in 0..count {
            let (data, event) = new(n);
            assert_eq!(log.append(&NewEvent { data: &data, ..event }), n);
        }
        log
    }

    #[test]
    fn events_come_out_as_they_went_in() {
        let mut log = Log::new();
        log.append(&NewEvent { data: "{\"a\":1.50}", note: Some("{\"c\":1}"), extra: Some("{\"x\":1}"), ..new(0).1 });
        log.append(&NewEvent { data: "{}", kind: "step/end", ..new(1).1 });
        let event = log.event(0).unwrap();
        assert_eq!((event.data, event.note, event.kind), ("{\"a\":1.50}", Some("{\"c\":1}"), "user/message"));
        assert_eq!(log.extra(0), Some("{\"x\":1}"));
        assert_eq!((log.event(1).unwrap().note, log.event(1).unwrap().kind), (None, "step/end"));
        assert!(log.event(2).is_none());
    }

    #[test]
    fn a_long_log_is_cut_into_segments_and_reads_the_same() {
        let log = filled(30_000);
        assert!(log.shared.len() > 1);
        for seq in [0, 1, 9_999, 10_000, 29_999] {
            assert_eq!(log.event(seq).unwrap().data, new(seq).0);
        }
        assert_eq!(log.range(5, 8).map(|e| e.seq).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(log.verify(), Verdict::Holds);
    }

    #[test]
    fn a_changed_payload_is_found_by_the_chain() {
        let mut log = filled(10);
        let head = log.head();
        let mut other = Log::new();
        for seq in 0..10 {
            let (data, event) = new(seq);
            let data = if seq == 4 { "{\"text\":\"forged\"}" } else { &data };
            other.append(&NewEvent { data, ..event });
            other.expect_digest(seq, log.digest(seq).unwrap());
        }
        assert_eq!(other.verify(), Verdict::BrokenAt(4));
        log.append(&NewEvent { data: "{}", ..new(10).1 });
        assert_ne!(log.head(), head);
        assert_eq!(log.verify(), Verdict::Holds);
    }

    #[test]
    fn a_rewritten_payload_keeps_the_chain() {
        let log = filled(6);
        let head = log.head();
        let mut new =
            log.rewritten(|e| Ok((e.seq == 3).then(|| ("{\"text\":\"[gone]\"}".to_owned(), [9; 16])))).unwrap();
        assert_eq!(new.event(3).unwrap().data, "{\"text\":\"[gone]\"}");
        for seq in 0..6 {
            new.expect_digest(seq, log.digest(seq).unwrap());
        }
        assert_eq!((new.verify(), new.head()), (Verdict::Holds, head));
    }

    #[test]
    fn a_chain_of_before_holds_goes_on_and_can_be_rewritten() {
        let (old, payload) = (Hash::Sha256, |data: &str| digest::payload_digest(Hash::Sha256, &[0; 16], data));
        let mut log = Log::new();
        let mut previous = [0; 32];
        for seq in 0..5 {
            let (data, event) = new(seq);
            log.append(&NewEvent { data: &data, salt: [0; 16], ..event });
            previous = digest::chain(old, &previous, seq, event.kind, &payload(&data));
            log.expect_digest(seq, previous);
        }
        for seq in 5..8 {
            let (data, event) = new(seq);
            log.append(&NewEvent { data: &data, salt: [0; 16], ..event });
        }
        let head = log.head();
        assert_eq!(log.verify(), Verdict::Holds);
        for changed in [3, 6] {
            let mut new = log
                .rewritten(|e| Ok((e.seq == changed).then(|| ("{\"text\":\"[gone]\"}".to_owned(), [9; 16]))))
                .unwrap();
            (0..8).for_each(|seq| new.expect_digest(seq, log.digest(seq).unwrap()));
            assert_eq!((new.verify(), new.head()), (Verdict::Holds, head));
            let mut forged = Log::new();
            for seq in 0..8 {
                let (data, event) = self::new(seq);
                let data = if seq == changed { "{}" } else { &data };
                forged.append(&NewEvent { data, salt: [0; 16], ..event });
                forged.expect_digest(seq, log.digest(seq).unwrap());
            }
            assert_eq!(forged.verify(), Verdict::BrokenAt(changed));
        }
    }

    proptest! {
        #[test]
        fn forks_share_and_never_disturb_each_other(
            first in 0u64..400, cut in 0u64..400, more in 0u64..40, child_more in 0u64..40, drop in 0u64..20,
        ) {
            let mut source = filled(first);
            let cut = cut.min(first);
            let mut child = source.fork(cut);
            for n in first..first + more {
                let (data, event) = new(n);
                source.append(&NewEvent { data: &data, ..event });
            }
            for n in 0..child_more {
                child.append(&NewEvent { data: &format!("{{\"child\":{n}}}"), ..new(n).1 });
            }
            child.truncate(cut + child_more.saturating_sub(drop));
            prop_assert_eq!(source.len(), first + more);
            for seq in 0..source.len() {
                prop_assert_eq!(source.event(seq).unwrap().data, new(seq).0);
            }
            prop_assert_eq!(child.len(), cut + child_more.saturating_sub(drop));
            for seq in 0..cut.min(child.len()) {
                prop_assert_eq!(child.event(seq).unwrap().data, new(seq).0);
                prop_assert_eq!(child.digest(seq), source.digest(seq));
            }
            prop_assert_eq!(child.verify(), Verdict::Holds);
            prop_assert_eq!(source.verify(), Verdict::Holds);
            prop_assert_eq!(source.head(), filled(first + more).head());
        }

        #[test]
        fn truncating_leaves_exactly_the_front(len in 0u64..3000, keep in 0u64..3000) {
            let mut log = filled(len);
            let keep = keep.min(len);
            log.truncate(keep);
            prop_assert_eq!(log.len(), keep);
            prop_assert_eq!(log.head(), filled(keep).head());
        }
    }
}
