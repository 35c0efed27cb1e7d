//! Which events are seen: compaction and rewind lie over the log without changing it.

use super::{EventSource, Interest};
use crate::core::tape::Tape;

/// The part of a log that derivation looks at, in order: messages, and the events that say what became of calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Projection {
    /// Seqs of events that are seen, a compaction's own first.
    pub items: Vec<Item>,
    /// Changes whenever `items` is something else than its former self with more at the end.
    pub epoch: u64,
    seen: u64,
    all: Vec<Item>,
    rewinds: Vec<Overlay>,
    compactions: Vec<Overlay>,
}

/// One event that is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its seq.
    pub seq: u64,
    /// What it is to derivation.
    pub interest: Interest,
}

#[derive(Clone, Copy, Debug)]
struct Overlay {
    seq: u64,
    /// What comes after this seq is covered; -1 covers all.
    upto: i64,
}

impl Projection {
    /// Returns one that has read nothing, of another epoch.
    pub fn anew(&self) -> Projection {
        Projection { epoch: self.epoch + 1, ..Projection::default() }
    }

    /// Reads what was appended since the last time.
    pub fn update(&mut self, log: &dyn EventSource) {
        if log.len() < self.seen {
            *self = self.anew();
        }
        let mut covered = false;
        while self.seen < log.len() {
            let seq = self.seen;
            self.seen += 1;
            let Some(event) = log.event(seq) else { continue };
            match event.kind {
                "session/rewound" => covered |= note(&mut self.rewinds, seq, event.data, false),
                "session/compacted" => covered |= note(&mut self.compactions, seq, event.data, true),
                kind => {
                    let Some(interest) = Interest::of(kind) else { continue };
                    let item = Item { seq, interest };
                    self.all.push(item);
                    if !covered {
                        self.items.push(item);
                    }
                }
            }
        }
        if covered {
            self.lay();
        }
    }

    /// Says whether an overlay came after `seq`: what was measured before it no longer tells the size.
    pub fn changed_since(&self, seq: u64) -> bool {
        let last = |overlays: &[Overlay]| overlays.last().is_some_and(|o| o.seq > seq);
        last(&self.rewinds) || last(&self.compactions)
    }

    /// Works out anew what is seen. A rewind that a later one hides has no effect: what it hid is seen again.
    fn lay(&mut self) {
        let mut hidden: Vec<(i64, i64)> = Vec::new();
        let mut reached = i64::MAX;
        for rewind in self.rewinds.iter().rev() {
            let seq = rewind.seq as i64;
            if seq < reached {
                hidden.push((rewind.upto, seq));
                reached = rewind.upto.saturating_add(1);
            }
        }
        // Spans stand newest first and do not overlap.
        let is_seen = |seq: u64| {
            let at = hidden.partition_point(|(from, _)| *from >= seq as i64);
            hidden.get(at).is_none_or(|(_, to)| seq as i64 > *to)
        };
        let compaction = self.compactions.iter().rev().find(|c| is_seen(c.seq)).copied();
        let from = compaction.map_or(-1, |c| c.upto);
        self.items.clear();
        self.items.extend(compaction.map(|c| Item { seq: c.seq, interest: Interest::User }));
        let kept = self.all.iter().filter(|i| i.seq as i64 > from && is_seen(i.seq));
        self.items.extend(kept);
        self.epoch += 1;
    }
}

/// Takes an overlay in, if its payload says what it covers.
fn note(overlays: &mut Vec<Overlay>, seq: u64, data: &str, with_summary: bool) -> bool {
    let tape = Tape::new(data);
    let root = tape.root();
    let Some(upto) = root.get("uptoSeq").and_then(|u| u.as_i64()) else { return false };
    // A summary that says nothing must not stand for a history that does.
    if with_summary && root.string_at("summary").is_none_or(|s| s.is_blank()) {
        return false;
    }
    let upto = upto.clamp(-1, seq as i64 - 1);
    overlays.push(Overlay { seq, upto });
    true
}
