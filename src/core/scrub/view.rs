//! What a rule sees of a text, and what it may answer.

use std::cell::Cell;

use super::bytes::{Mask, Set, distinct, is};

/// How far back before its anchor a rule may look, in bytes. A stream keeps more than this of what it has released.
pub(super) const LOOK_BACK: usize = 96;

/// A piece of text, whole (`eof`) or with more to come.
pub(super) struct View<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether nothing follows.
    pub(super) eof: bool,
    /// Where the last match ended: nothing before it is looked at again.
    pub(super) floor: usize,
    /// The last long run that was measured: class, start, end. Rules that start inside it need not walk it again.
    run: Cell<(Mask, usize, usize)>,
    /// Where few different bytes were found last: start, end, which.
    few: Cell<(usize, usize, Set)>,
    /// How many bytes were looked at, for tests that hold the work against the length of a text.
    #[cfg(not(target_family = "wasm"))]
    work: Cell<u64>,
}

/// What a rule says about a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    No,
    /// The end came before the answer: ask again when a byte outside the class comes, or the text has grown to a length.
    Need(Mask, usize),
    Hit(Hit),
}

/// A secret: from `start` to `end`, and on while bytes of the class `open` come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: &'static str,
    pub(super) open: Mask,
}

impl Hit {
    pub(super) fn verdict(start: usize, end: usize, kind: &'static str) -> Verdict {
        Verdict::Hit(Hit { start, end, kind, open: 0 })
    }
}

/// Whether a literal stands at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Look {
    Yes,
    No,
    /// The text ends inside the literal.
    Cut,
}

impl<'a> View<'a> {
    pub(super) fn new(bytes: &'a [u8], eof: bool, floor: usize) -> Self {
        View {
            bytes,
            eof,
            floor,
            run: Cell::new((0, 0, 0)),
            few: Cell::new((0, 0, Set::default())),
            #[cfg(not(target_family = "wasm"))]
            work: Cell::new(0),
        }
    }

    #[inline(always)]
    fn count(&self, _bytes: usize) {
        #[cfg(not(target_family = "wasm"))]
        self.work.set(self.work.get() + _bytes as u64);
    }

    /// How many bytes were looked at so far.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn work(&self) -> u64 {
        self.work.get()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The byte at a place; 0 after the end.
    #[inline(never)]
    pub(super) fn at(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The byte before a place; 0 where nothing may be looked at.
    #[inline(always)]
    pub(super) fn before(&self, at: usize) -> u8 {
        if at > self.floor { self.bytes.get(at - 1).copied().unwrap_or(0) } else { 0 }
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        let slice = self.bytes.get(start..end.min(self.bytes.len())).unwrap_or_default();
        // What is longer is only measured, and read at its head.
        self.count(slice.len().min(1_024) + 1);
        slice
    }

    /// Whether what stands at this place is not known yet.
    pub(super) fn open(&self, at: usize) -> bool {
        at >= self.bytes.len() && !self.eof
    }

    /// The end of the run of a class from `start`, at most `cap` bytes on.
    pub(super) fn run(&self, start: usize, mask: Mask, cap: usize) -> usize {
        let limit = start.saturating_add(cap).min(self.bytes.len());
        let (class, from, to) = self.run.get();
        let known = if class == mask && from <= start && start < to { to } else { start };
        if known >= limit {
            return limit;
        }
        let more = self.bytes.get(known..limit).unwrap_or_default();
        let end = known + more.iter().position(|&b| !is(b, mask)).unwrap_or(more.len());
        self.count(end - known + 1);
        if end > start + 16 {
            self.run.set((mask, if known == start { start } else { from }, end));
        }
        end
    }

    /// Whether there are fewer than so many different bytes. What was found is remembered, so that many starts in one text of
    /// few letters do not count them anew.
    pub(super) fn has_few(&self, start: usize, end: usize, fewer: u32) -> bool {
        let (from, to, known) = self.few.get();
        if from <= start && start < to && to <= end {
            let more = known.with(self.slice(to, end));
            if more.len() < fewer {
                self.few.set((from, end, more));
                return true;
            }
            return distinct(self.slice(start, end)) < fewer;
        }
        let found = Set::default().with(self.slice(start, end));
        if found.len() < fewer {
            self.few.set((start, end, found));
        }
        found.len() < fewer
    }

    pub(super) fn look(&self, at: usize, literal: &[u8]) -> Look {
        let here = self.slice(at, at + literal.len());
        match here.len() == literal.len() || self.eof {
            true if here == literal => Look::Yes,
            true => Look::No,
            false if literal.starts_with(here) => Look::Cut,
            false => Look::No,
        }
    }

    /// The start of the run of a class that ends before `end`, within the look-back of `anchor`.
    pub(super) fn run_back(&self, end: usize, mask: Mask, anchor: usize) -> usize {
        let low = anchor.saturating_sub(LOOK_BACK).max(self.floor);
        let mut at = end;
        while at > low && self.bytes.get(at - 1).is_some_and(|&b| is(b, mask)) {
            at -= 1;
        }
        self.count(end - at + 1);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bytes_are_few_whatever_was_asked_before() {
        let text = "xoxb-1-xoxb-1-abcdefxoxoxo\u{e9}\u{e9}bbbbbbbb-1-xoxb-1-xoxb".repeat(3);
        let view = View::new(text.as_bytes(), true, 0);
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let start = (seed >> 33) as usize % text.len();
            let end = (start + (seed >> 20) as usize % 40).min(text.len());
            assert_eq!(view.has_few(start, end, 8), distinct(&text.as_bytes()[start..end]) < 8, "{start} {end}");
        }
    }
}
