//! Derivation: what a model is sent, worked out from the log and never stored.
//!
//! Overlays say which events are seen, each of them that speaks is one neutral message, and a request for a target is
//! built from these round by round. State is kept per session so that one more event costs one more event.

mod ai_sdk;
mod anthropic;
mod blobs;
mod build;
mod compaction;
mod convert;
mod gemini;
mod ids;
mod invariant;
mod media;
mod openai_chat;
mod openai_responses;
mod options;
mod origin;
mod overlays;
mod pairing;
mod request;
mod round;
mod text;

use super::event::EventView;
use super::json::{Value, write_string};
use super::log::Log;
use super::message;
use media::Medium;
use origin::ReasoningRule;
use overlays::Projection;
use pairing::Pairing;
use round::Round;

pub use blobs::{Shelf, blobs_of};
pub use compaction::{Anchor, Cut, estimate_tokens, last_count, summary_request};
pub use ids::Pattern;
pub use invariant::{check_messages, check_request};
pub use media::{Blobs, MediaLimits, NoBlobs};
pub use options::RequestOptions;
pub use request::RequestUpdate;

/// Every API a request can be derived for; a new one is a file and a line.
pub const TARGETS: [&Target; 5] =
    [&openai_chat::TARGET, &openai_responses::TARGET, &anthropic::TARGET, &gemini::TARGET, &ai_sdk::TARGET];

/// What an API takes, and how it is written.
pub struct Target {
    /// Its name in the contract.
    pub name: &'static str,
    /// The family of models whose opaque fields are at home here.
    family: Option<&'static str>,
    /// Which ids of calls it takes.
    id_pattern: &'static str,
    /// The first turn must be the user's.
    first_is_user: bool,
    /// The last turn may be the model's.
    prefill: bool,
    /// Calls stand after all else in their turn.
    calls_last: bool,
    /// Calls that the provider runs itself have a place.
    provider_calls: bool,
    /// Results may hold media.
    media_in_results: bool,
    /// What goes back of reasoning.
    reasoning: ReasoningRule,
    /// The system text is a message like others.
    system_in_list: bool,
    /// Writes the system text.
    system: fn(&str) -> String,
    /// How many media, how many bytes each and in all, how long a side.
    media: [u64; 4],
    /// With more media than the first number no side may be longer than the second.
    crowd: Option<(u64, u64)>,
    /// Says whether it takes a medium there.
    takes: fn(&Medium, Place) -> bool,
    /// Writes a round as messages.
    render: fn(&Round, &RequestOptions, &mut Vec<String>),
    /// Makes a judge of whole requests.
    validator: fn() -> Box<dyn Validator>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Target {
    /// Finds a target.
    pub fn named(name: &str) -> Option<&'static Target> {
        TARGETS.into_iter().find(|t| t.name == name)
    }

    /// Makes a judge of whole requests, written from the published rules and not from what is rendered here.
    pub fn validator(&self) -> Box<dyn Validator> {
        (self.validator)()
    }

    fn media_limits(&self) -> MediaLimits {
        let [max_count, max_bytes_each, max_bytes_total, max_side] = self.media;
        MediaLimits { max_count, max_bytes_each, max_bytes_total, max_side, crowd: self.crowd, media_types: None }
    }
}

/// Where a medium stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a turn of the user's.
    User,
    /// In a result.
    Result,
    /// In a turn of the model's.
    Assistant,
}

/// Judges a request message by message.
pub trait Validator {
    /// Looks at the next message; says what is wrong with it.
    fn message(&mut self, message: &Value) -> Result<(), String>;

    /// Says what is wrong with the end; `prefill` allows a turn of the model's there.
    fn end(&self, prefill: bool) -> Result<(), String>;

    /// Returns a copy that goes its own way from here.
    fn boxed(&self) -> Box<dyn Validator>;
}

/// Something that was changed so that the target takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// What kind of change.
    pub code: &'static str,
    /// The event it concerns.
    pub seq: Option<u64>,
    /// The call it concerns, by its id in the log.
    pub call_id: Option<String>,
    /// The change in words; no payload text but ids and names.
    pub message: String,
}

impl Repair {
    fn at(code: &'static str, seq: u64, message: &str) -> Repair {
        Repair { code, seq: Some(seq), call_id: None, message: message.to_owned() }
    }

    fn write(&self, out: &mut String) {
        out.push_str("{\"code\":\"");
        out.push_str(self.code);
        out.push('"');
        if let Some(seq) = self.seq {
            out.push_str(",\"seq\":");
            out.push_str(&seq.to_string());
        }
        if let Some(call) = &self.call_id {
            out.push_str(",\"callId\":");
            write_string(out, call);
        }
        out.push_str(",\"message\":");
        write_string(out, &self.message);
        out.push('}');
    }
}

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
#[derive(Default)]
pub struct Deriver {
    projection: Projection,
    pairing: Pairing,
    told: Told,
    requests: Vec<request::Remembered>,
    next_request: u64,
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

    /// Reads the log once more from its start, for events were put before those that were read. What was told stays told.
    pub fn reread(&mut self) {
        self.projection = self.projection.anew();
    }

    /// Reads what was appended and says how the messages changed since the last call.
    pub fn update(&mut self, log: &dyn EventSource) -> Update {
        let (keep, fresh, changed) = self.advance(log);
        let mut messages = String::new();
        write_messages(log, &fresh, &mut messages);
        Update { keep, messages, added: fresh.len(), changed }
    }

    /// Returns how many messages stay, which events make those that follow, and whether that is any change.
    pub fn advance(&mut self, log: &dyn EventSource) -> (usize, Vec<u64>, bool) {
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
        self.told.items = self.projection.items.len();
        self.told.seqs.extend(&fresh);
        let changed = !fresh.is_empty() || keep != before;
        (keep, fresh, changed)
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

/// Appends the messages of these events, which [`Deriver::advance`] or [`message_seqs`] named, as JSON text of an array.
pub fn write_messages(log: &dyn EventSource, seqs: &[u64], out: &mut String) {
    out.push('[');
    for (i, seq) in seqs.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        let wrote = log.event(*seq).is_some_and(|event| message::write_message(&event, out));
        debug_assert!(wrote, "only events that make messages are asked for");
    }
    out.push(']');
}

/// Returns which of the first `upto` events make the messages of these.
pub fn message_seqs(log: &dyn EventSource, upto: u64) -> Vec<u64> {
    Deriver::new().advance(&Prefix { log, len: upto }).1
}

/// Derives the messages of the first `upto` events, as JSON text of an array.
pub fn messages(log: &dyn EventSource, upto: Option<u64>) -> String {
    let prefix = Prefix { log, len: upto.unwrap_or(u64::MAX) };
    Deriver::new().update(&prefix).messages
}

#[cfg(test)]
mod tests;
