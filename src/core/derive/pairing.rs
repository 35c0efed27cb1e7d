//! Which result belongs to which call, and why a call has none.

use std::collections::HashMap;

use crate::core::sorted::SortedMap;
use std::hash::{Hash, Hasher};

use super::overlays::{Item, Projection};
use super::{EventSource, Interest};
use crate::core::message::{Call, Message, Part};
use crate::core::tape::Tape;

/// What is known about the calls of a projection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairing {
    /// Changes when something that was settled changed after all: a real result came late.
    pub epoch: u64,
    read: usize,
    projection_epoch: u64,
    /// Calls of each assistant message, by its seq.
    rounds: SortedMap<u64, Vec<Slot>>,
    /// What became of each result, by its seq.
    fates: SortedMap<u64, Fate>,
    /// Calls by id that have no real result yet, oldest first: their assistant's seq and place.
    by_id: HashMap<String, Vec<(u64, usize)>>,
    /// The assistant message whose calls are being answered.
    open: Option<u64>,
    /// The newest assistant message: what concerns an older one changes what was settled.
    newest: Option<u64>,
    /// The user spoke since.
    interrupted: bool,
}

/// One call and what became of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    id: String,
    content: u64,
    /// The same call said again: it is not sent twice.
    pub duplicate: bool,
    /// The provider runs it.
    pub provider: bool,
    /// Seq of its result.
    pub result: Option<u64>,
    synthetic: bool,
    /// A tool was started for it.
    pub started: bool,
    /// Seq of the verdict that denied it.
    pub denied: Option<u64>,
}

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It answers a call of this assistant message.
    Paired(u64),
    /// The call has an answer already.
    Duplicate,
    /// No call that is seen has its id.
    Orphan,
}

impl Pairing {
    /// Reads what is new in a projection.
    pub fn update(&mut self, projection: &Projection, log: &dyn EventSource) {
        if self.projection_epoch != projection.epoch {
            *self = Pairing { epoch: self.epoch + 1, projection_epoch: projection.epoch, ..Pairing::default() };
        }
        for item in projection.items.get(self.read..).unwrap_or_default() {
            self.take(*item, log);
        }
        self.read = projection.items.len();
    }

    /// Returns the calls of an assistant message.
    pub fn slots(&self, assistant: u64) -> &[Slot] {
        self.rounds.get(&assistant).map_or(&[], Vec::as_slice)
    }

    /// Returns what became of a result.
    pub fn fate(&self, result: u64) -> Fate {
        self.fates.get(&result).copied().unwrap_or(Fate::Orphan)
    }

    fn take(&mut self, item: Item, log: &dyn EventSource) {
        let Some(event) = log.event(item.seq) else { return };
        let tape = Tape::new(event.data);
        match item.interest {
            Interest::User => self.interrupted = true,
            Interest::Assistant => {
                if let Some(message) = Message::read(&event, &tape) {
                    self.assistant(item.seq, &message);
                }
            }
            Interest::Tool => {
                let Some(message) = Message::read(&event, &tape) else { return };
                if let Some(Part::Result(outcome)) = message.parts.first() {
                    self.result(item.seq, &outcome.id.plain(), outcome.synthetic);
                }
            }
            Interest::CallStarted => {
                let id = tape.root().string_at("id");
                self.mark(id.map(|i| i.plain().into_owned()), |s| !s.started, |s| s.started = true);
            }
            Interest::Verdict => {
                let root = tape.root();
                if root.string_at("verdict").is_some_and(|v| v.plain() == "denied") {
                    let id = root.string_at("callId").map(|i| i.plain().into_owned());
                    self.mark(id, |s| s.denied.is_none(), |s| s.denied = Some(item.seq));
                }
            }
        }
    }

    /// Marks the first open call of an id that has no result and that `fits`.
    fn mark(&mut self, id: Option<String>, fits: impl Fn(&Slot) -> bool, set: impl Fn(&mut Slot)) {
        let (Some(id), Some(open)) = (id, self.open) else { return };
        let settled = self.open != self.newest;
        let slots = self.rounds.get_mut(&open).into_iter().flatten();
        if let Some(slot) = slots.filter(|s| s.id == id && !s.duplicate && s.result.is_none()).find(|s| fits(s)) {
            set(slot);
            self.epoch += u64::from(settled);
        }
    }

    fn assistant(&mut self, seq: u64, message: &Message<'_>) {
        let calls = message.parts.iter().filter_map(|p| match p {
            Part::Call(call) => Some(call),
            _ => None,
        });
        let mut slots: Vec<Slot> = Vec::new();
        for call in calls {
            let mut slot = Slot {
                id: call.id.plain().into_owned(),
                content: content_of(call),
                provider: call.provider,
                ..Slot::default()
            };
            slot.duplicate = slots.iter().any(|s| s.same_call(&slot)) || self.said_before(&slot);
            if !slot.duplicate {
                // Known from here on, also once every call of this id has its result.
                self.by_id.entry(slot.id.clone()).or_default().push((seq, slots.len()));
            }
            slots.push(slot);
        }
        // A message that only says the open calls again leaves them open.
        if slots.is_empty() || slots.iter().any(|s| !s.duplicate) {
            self.open = Some(seq);
            self.interrupted = false;
        }
        self.newest = Some(seq);
        self.rounds.insert(seq, slots);
    }

    /// Says whether the open round holds the same call without an answer, and nobody spoke since.
    fn said_before(&self, slot: &Slot) -> bool {
        let open = self.open.filter(|_| !self.interrupted);
        open.is_some_and(|open| self.slots(open).iter().any(|s| s.result.is_none() && s.same_call(slot)))
    }

    fn result(&mut self, seq: u64, id: &str, synthetic: bool) {
        let places = self.by_id.get(id).map_or(&[][..], Vec::as_slice);
        let open = self.open;
        let is_open = |place: &&(u64, usize)| Some(place.0) == open;
        let free = |p: &&(u64, usize)| self.slot(p).is_some_and(|s| s.result.is_none());
        let replaceable = |p: &&(u64, usize)| !synthetic && self.slot(p).is_some_and(|s| s.synthetic);
        let place = (places.iter().filter(is_open).find(free))
            .or_else(|| places.iter().filter(is_open).find(replaceable))
            .or_else(|| places.iter().rev().find(|p| free(p) || replaceable(p)))
            .copied();
        let fate = match place {
            Some(place) => self.answer(place, id, seq, synthetic),
            None if self.by_id.contains_key(id) => Fate::Duplicate,
            None => Fate::Orphan,
        };
        self.fates.insert(seq, fate);
    }

    fn answer(&mut self, place: (u64, usize), id: &str, seq: u64, synthetic: bool) -> Fate {
        if !synthetic && let Some(places) = self.by_id.get_mut(id) {
            places.retain(|p| *p != place);
        }
        if Some(place.0) != self.newest {
            self.epoch += 1;
        }
        let slot = self.rounds.get_mut(&place.0).and_then(|slots| slots.get_mut(place.1));
        let Some(slot) = slot else { return Fate::Orphan };
        slot.synthetic = synthetic;
        if let Some(replaced) = slot.result.replace(seq) {
            self.fates.insert(replaced, Fate::Duplicate);
            self.epoch += 1;
        }
        Fate::Paired(place.0)
    }

    fn slot(&self, place: &(u64, usize)) -> Option<&Slot> {
        self.rounds.get(&place.0)?.get(place.1)
    }
}

impl Slot {
    fn same_call(&self, other: &Slot) -> bool {
        self.id == other.id && self.content == other.content
    }
}

/// Digests name and arguments of a call, to know the same call said again.
fn content_of(call: &Call<'_>) -> u64 {
    // Fixed keys: the same input gives the same value in every process.
    let mut hasher = std::collections::hash_map::DefaultHasher::new();
    call.name.plain().hash(&mut hasher);
    call.args.hash(&mut hasher);
    call.raw_args.as_ref().map(|r| r.quoted()).hash(&mut hasher);
    hasher.finish()
}
