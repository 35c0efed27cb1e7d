//! Events: the envelope, and the table of built-in types.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::error::{Error, Kind, Result};
use super::id::{EventId, quote};
use super::limits::MAX_ID_LENGTH;
use super::time::Millis;

/// One stored event as a view into its log; `data` is JSON text in stored form.
#[derive(Clone, Copy, Debug)]
pub struct EventView<'a> {
    /// Its place in the log, from 0 without gaps.
    pub seq: u64,
    /// Its id.
    pub id: EventId,
    /// When it was appended; display data.
    pub at: Millis,
    /// Its type, such as `user/message`.
    pub kind: &'a str,
    /// Its payload: JSON text of an object.
    pub data: &'a str,
    /// What was worked out when it was stored (price of a step); JSON text, kept beside the payload.
    pub note: Option<&'a str>,
}

/// The type that stands in memory for an event whose stored line was lost; it is never written.
pub const LOST: &str = "session/lost";

macro_rules! events {
    ($($name:literal $message:literal $doc:literal)+) => {
        /// Every built-in type: name, whether it becomes part of the messages, what it means.
        pub const EVENTS: &[(&str, bool, &str)] = &[$(($name, $message, $doc),)+];
    };
}

events! {
    "session/created" false "The session began; may name its parent."
    "session/forked" false "What stands before was taken from another session."
    "session/compacted" true "A summary stands for all that came before."
    "session/titled" false "The session has a new title."
    "session/rewound" false "What came after a point is hidden."
    "session/rescrubbed" false "Stored payloads were scrubbed once more."
    "turn/start" false "A turn began."
    "turn/end" false "A turn ended, with its reason."
    "step/start" false "A model request is about to be made."
    "step/end" false "A model request and its calls are done; carries the usage."
    "user/message" true "The user said something."
    "context/message" true "Context from a named source."
    "context/injected" true "Context that stands as user text."
    "steering/message" true "The user steered a running turn."
    "assistant/chunk" false "A piece of a streamed answer."
    "assistant/message" true "The model answered."
    "tool/call" false "A tool was started."
    "tool/result" true "A tool gave its result."
    "approval/requested" false "A call waits for a verdict."
    "approval/resolved" false "A verdict was given."
    "policy/updated" false "What is approved without asking changed."
    "queue/added" false "A message was queued."
    "queue/claimed" false "A queued message was taken up."
    "queue/dropped" false "A queued message was dropped."
    "undo/applied" false "A run's file changes were undone."
    "undo/redone" false "An undo was reversed."
    "usage" false "Usage of a step."
    "error" false "Something went wrong."
}

/// Says whether events of a type become messages.
pub fn is_message(kind: &str) -> bool {
    EVENTS.iter().any(|(name, message, _)| *name == kind && *message)
}

/// Says whether a type is built in.
pub fn is_builtin(kind: &str) -> bool {
    EVENTS.iter().any(|(name, ..)| *name == kind)
}

/// What was said about a type when it was declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// Whether its events are written at once instead of within one flush interval.
    pub durable: bool,
    /// Whether a log that holds it may be read by one who does not know it.
    pub ignorable: bool,
}

thread_local! {
    static DECLARED: RefCell<BTreeMap<String, Declaration>> = const { RefCell::new(BTreeMap::new()) };
}

/// Declares a type of the application's own; declaring it again replaces what was said.
pub fn declare(kind: &str, declaration: Declaration) -> Result<()> {
    let shape = !kind.is_empty()
        && kind.len() <= MAX_ID_LENGTH
        && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./:".contains(&b));
    if !shape || kind == LOST {
        return Err(Error::new(Kind::InvalidArgument, format!("not a name for an event type: {}", quote(kind))));
    }
    DECLARED.with_borrow_mut(|declared| declared.insert(kind.to_owned(), declaration));
    Ok(())
}

/// Returns what was said about a type; nothing when it is unknown.
pub fn declaration(kind: &str) -> Option<Declaration> {
    if is_builtin(kind) {
        let batched = matches!(kind, "assistant/chunk" | "usage");
        return Some(Declaration { durable: !batched, ignorable: false });
    }
    DECLARED.with_borrow(|declared| declared.get(kind).copied())
}

/// Refuses a type that is neither built in nor declared.
pub fn check_known(kind: &str) -> Result<()> {
    match declaration(kind) {
        Some(_) => Ok(()),
        None => Err(Error::new(Kind::UndeclaredType, format!("event type is not declared: {}", quote(kind)))
            .with("type", quote(kind))),
    }
}
