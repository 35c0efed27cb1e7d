//! Payloads of neighbouring events in one text, with a small entry per event.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use super::digest::{Hash, chain, payload_digest};
use super::line;
use super::{Digest, NewEvent, Salt};
use crate::core::event::{self, EventView};
use crate::core::id::EventId;
use crate::core::time::Millis;

/// A part of a segment's text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    start: usize,
    len: usize,
}

impl Span {
    /// Where `part` stands in `whole`, of which it is a part.
    fn within(whole: &str, part: &str) -> Span {
        Span { start: part.as_ptr().addr().saturating_sub(whole.as_ptr().addr()), len: part.len() }
    }

    fn end(self) -> usize {
        self.start + self.len
    }

    fn of(self, text: &str) -> &str {
        text.get(self.start..self.end()).unwrap_or_default()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: EventId,
    pub(super) at: Millis,
    pub(super) kind: Rc<str>,
    data: Span,
    note: Span,
    extra: Span,
    pub(super) salt: Salt,
    /// Rare, so it takes no room in the others.
    pub(super) was: Option<Box<Digest>>,
}

#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) text: String,
    /// Whether the text is the lines of the events as they were stored, and nothing else.
    is_lines: bool,
    pub(super) entries: Vec<Entry>,
    /// Chain digests of the first entries, worked out when they are first asked for.
    pub(super) digests: RefCell<Vec<Digest>>,
    /// Whether a closed segment names blobs; looked at once.
    names_blobs: OnceCell<bool>,
}

impl Segment {
    /// Makes a segment of stored lines as they are, when all of them are in our own form and their events are those from
    /// `first` on; else gives the text back.
    pub(super) fn of_lines(
        text: String,
        first: u64,
        intern: &mut dyn FnMut(&str) -> Rc<str>,
    ) -> Result<Segment, String> {
        let mut segment = Segment { is_lines: true, ..Segment::default() };
        for line in text.split_inclusive('\n') {
            let seq = first + segment.entries.len() as u64;
            let own = line.strip_suffix('\n').and_then(line::read_own);
            let Some(own) = own.filter(|own| own.seq == seq && own.kind != event::LOST) else { return Err(text) };
            let span = |part: Option<&str>| part.map(|part| Span::within(&text, part)).unwrap_or_default();
            segment.entries.push(Entry {
                id: own.id,
                at: own.at,
                kind: intern(&own.kind),
                data: span(Some(own.data)),
                note: span(own.note),
                extra: span(own.extra.as_deref()),
                salt: own.salt.unwrap_or_default(),
                was: own.was.map(Box::new),
            });
            segment.digests.get_mut().extend(own.digest);
        }
        segment.text = text;
        Ok(segment)
    }

    /// Gives back what room there is for more.
    pub(super) fn close(&mut self) {
        self.text.shrink_to_fit();
        self.entries.shrink_to_fit();
        self.digests.get_mut().shrink_to_fit();
    }

    /// Keeps the first events alone, in a segment that was built by [`Segment::push`].
    pub(super) fn truncate(&mut self, keep: usize) {
        if let Some(entry) = self.entries.get(keep) {
            self.text.truncate(entry.data.start);
            self.entries.truncate(keep);
            self.digests.get_mut().truncate(keep);
        }
    }

    /// Says whether a closed segment may name blobs; looks once.
    pub(super) fn names_blobs(&self) -> bool {
        *self.names_blobs.get_or_init(|| self.has_blobs())
    }

    pub(super) fn has_blobs(&self) -> bool {
        // A search for one character takes eight bytes at a time.
        let is_name = |at: usize| self.text.get(at.wrapping_sub(1)..).is_some_and(|text| text.starts_with("\"blob\""));
        self.text.match_indices('b').any(|(at, _)| is_name(at))
    }

    pub(super) fn push(&mut self, event: &NewEvent<'_>, kind: Rc<str>) {
        let mut put = |part: &str| {
            let start = self.text.len();
            self.text.push_str(part);
            Span { start, len: part.len() }
        };
        self.entries.push(Entry {
            id: event.id,
            at: event.at,
            kind,
            data: put(event.data),
            note: put(event.note.unwrap_or_default()),
            extra: put(event.extra.unwrap_or_default()),
            salt: event.salt,
            was: event.was.map(Box::new),
        });
    }

    pub(super) fn view(&self, at: usize, seq: u64) -> Option<EventView<'_>> {
        let entry = self.entries.get(at)?;
        let note = entry.note.of(&self.text);
        Some(EventView {
            seq,
            id: entry.id,
            at: entry.at,
            kind: &entry.kind,
            data: entry.data.of(&self.text),
            note: (!note.is_empty()).then_some(note),
        })
    }

    pub(super) fn extra(&self, entry: &Entry) -> Option<&str> {
        let extra = entry.extra.of(&self.text);
        (!extra.is_empty()).then_some(extra)
    }

    /// The stored lines of the events `from..to`.
    pub(super) fn lines(&self, from: usize, to: usize) -> Option<&str> {
        // The payload is the last member of a line.
        let end_of = |at: usize| self.entries.get(at).map(|entry| entry.data.end() + "}\n".len());
        let start = from.checked_sub(1).map_or(Some(0), end_of)?;
        self.text.get(start..end_of(to.checked_sub(1)?)?).filter(|_| self.is_lines)
    }

    /// The digest of a payload, or that of the one which stood there before it was rewritten.
    pub(super) fn payload_digest(&self, hash: Hash, entry: &Entry) -> Digest {
        entry.was.as_deref().copied().unwrap_or_else(|| payload_digest(hash, &entry.salt, entry.data.of(&self.text)))
    }

    /// The link of the chain that belongs to an event.
    pub(super) fn link(&self, hash: Hash, previous: &Digest, seq: u64, entry: &Entry) -> Digest {
        chain(hash, previous, seq, &entry.kind, &self.payload_digest(hash, entry))
    }

    /// Works the chain out up to so many events, after the digest `before` this segment; returns the last one.
    pub(super) fn extend_digests(&self, start: u64, before: Digest, upto: usize) -> Option<Digest> {
        let mut known = self.digests.borrow_mut();
        let mut previous = known.last().copied().unwrap_or(before);
        while known.len() < upto {
            let at = known.len();
            let entry = self.entries.get(at)?;
            previous = self.link(Hash::Blake3, &previous, start + at as u64, entry);
            known.push(previous);
        }
        known.get(upto.checked_sub(1)?).copied()
    }
}
