//! Derivation: what a model is sent, worked out from the log and never stored.
//!
//! Overlays say which events are seen, each of them that speaks is one neutral message, and a request for a target is
//! built from these round by round. State is kept per session so that one more event costs one more event.

mod compaction;
mod overlays;
mod pairing;

use super::event::EventView;
use super::log::Log;
use super::message;
use overlays::Projection;
use pairing::Pairing;

pub use compaction::{Anchor, Cut, SUMMARY_PROMPT, estimate_tokens};

/// A log to derive from.
pub trait EventSource {
    /// Returns the number of events.
    fn len(&self) -> u64;

    /// Returns one event.
    fn event(&self, seq: u64) -> Option<EventView<'_>>;

    /// Says whether there are no events.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl EventSource for Log {
    fn len(&self) -> u64 {
        Log::len(self)
    }

    fn event(&self, seq: u64) -> Option<EventView<'_>> {
        Log::event(self, seq)
    }
}

/// The first events of a log.
struct Prefix<'a> {
    log: &'a dyn EventSource,
    len: u64,
}

impl EventSource for Prefix<'_> {
    fn len(&self) -> u64 {
        self.len.min(self.log.len())
    }

    fn event(&self, seq: u64) -> Option<EventView<'_>> {
        (seq < self.len).then(|| self.log.event(seq)).flatten()
    }
}

/// What an event is to derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// A message in the user's place.
    User,
    /// A message of the model.
    Assistant,
    /// A result.
    Tool,
    /// A tool was started.
    CallStarted,
    /// An approval was given or denied.
    Verdict,
}

impl Interest {
    fn of(kind: &str) -> Option<Interest> {
        match kind {
            "tool/call" => Some(Interest::CallStarted),
            "approval/resolved" => Some(Interest::Verdict),
            _ => message::Role::of(kind).map(|role| match role {
                message::Role::User => Interest::User,
                message::Role::Assistant => Interest::Assistant,
                message::Role::Tool => Interest::Tool,
            }),
        }
    }

    fn is_message(self) -> bool {
        matches!(self, Interest::User | Interest::Assistant | Interest::Tool)
    }
}

/// What changed among the messages since the last time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// How many of the former messages stay, from the first on.
    pub keep: usize,
    /// The messages that follow them, as JSON text of an array.
    pub messages: String,
    /// How many messages these are.
    pub added: usize,
    /// Whether anything changed at all.
    pub changed: bool,
}

/// The derivation of one session, kept up to date event by event.
#[derive(Debug, Default)]
pub struct Deriver {
    projection: Projection,
    pairing: Pairing,
    told: Told,
}

/// What the last update said.
#[derive(Clone, Debug, Default)]
struct Told {
    epoch: u64,
    items: usize,
    seqs: Vec<u64>,
}

impl Deriver {
    /// Starts with nothing read.
    pub fn new() -> Self {
        Deriver::default()
    }

    /// Reads what was appended and says how the messages changed since the last call.
    pub fn update(&mut self, log: &dyn EventSource) -> Update {
        self.projection.update(log);
        let same = self.told.epoch == self.projection.epoch;
        let before = self.told.seqs.len();
        if !same {
            self.told.items = 0;
            let seqs = self.projection.items.iter().filter(|i| i.interest.is_message()).map(|i| i.seq);
            let keep = seqs.zip(&self.told.seqs).take_while(|(now, then)| now == *then).count();
            self.told.seqs.truncate(keep);
            self.told.epoch = self.projection.epoch;
        }
        let keep = self.told.seqs.len();
        let fresh = self.projection.items.get(self.told.items..).unwrap_or_default();
        let fresh = fresh.iter().filter(|i| i.interest.is_message()).map(|i| i.seq);
        let fresh: Vec<u64> = fresh.skip(if same { 0 } else { keep }).collect();
        let messages = write_messages(log, &fresh);
        self.told.items = self.projection.items.len();
        self.told.seqs.extend(&fresh);
        let changed = !fresh.is_empty() || keep != before;
        Update { keep, messages, added: fresh.len(), changed }
    }

    /// Brings what requests are built from up to date.
    fn read(&mut self, log: &dyn EventSource) {
        self.projection.update(log);
        self.pairing.update(&self.projection, log);
    }

    fn message_seqs(&self) -> Vec<u64> {
        self.projection.items.iter().filter(|i| i.interest.is_message()).map(|i| i.seq).collect()
    }
}

fn write_messages(log: &dyn EventSource, seqs: &[u64]) -> String {
    let bytes: usize = seqs.iter().filter_map(|seq| log.event(*seq)).map(|e| e.data.len() + 64).sum();
    let mut out = String::with_capacity(bytes + 2);
    out.push('[');
    for (i, seq) in seqs.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        let wrote = log.event(*seq).is_some_and(|event| message::write_message(&event, &mut out));
        debug_assert!(wrote, "only events that make messages are asked for");
    }
    out.push(']');
    out
}

/// Derives the messages of the first `upto` events, as JSON text of an array.
pub fn messages(log: &dyn EventSource, upto: Option<u64>) -> String {
    let prefix = Prefix { log, len: upto.unwrap_or(u64::MAX) };
    Deriver::new().update(&prefix).messages
}

#[cfg(test)]
mod tests;
