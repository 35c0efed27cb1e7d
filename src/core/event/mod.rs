//! Events: the envelope, and the table of built-in types.

use std::cell::RefCell;

use super::error::{Error, Kind, Result};
use super::id::{EventId, quote};
use super::limits::MAX_ID_LENGTH;
use super::sorted::SortedMap;
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

/// A built-in type: all that is known about it stands in its own file. What serves tests and documents stays out of the module.
#[derive(Clone, Copy, Debug)]
pub struct EventType {
    /// Its name, such as `user/message`.
    pub name: &'static str,
    /// What it means.
    #[cfg(not(target_family = "wasm"))]
    pub doc: &'static str,
    /// Whether it becomes part of the messages.
    pub is_message: bool,
    /// Whether it is written at once instead of within one flush interval.
    pub is_urgent: bool,
    /// Its member of `SessionEventMap` in the published declarations.
    #[cfg(not(target_family = "wasm"))]
    pub typescript: &'static str,
    /// A payload as it is stored: JSON text.
    #[cfg(not(target_family = "wasm"))]
    pub sample: &'static str,
}

macro_rules! events {
    ($($name:ident)+) => {
        $(mod $name;)+

        /// Every built-in type.
        pub const EVENTS: &[EventType] = &[$($name::TYPE,)+];
    };
}

events! {
    session_created
    session_forked
    session_compacted
    session_titled
    session_rewound
    session_rescrubbed
    turn_start
    turn_end
    step_start
    step_end
    user_message
    context_message
    context_injected
    steering_message
    assistant_chunk
    assistant_message
    tool_call
    tool_result
    approval_requested
    approval_resolved
    policy_updated
    queue_added
    queue_claimed
    queue_dropped
    undo_applied
    undo_redone
    usage_event
    error_event
}

fn builtin(kind: &str) -> Option<&'static EventType> {
    EVENTS.iter().find(|event| event.name == kind)
}

/// Returns the number of a built-in type, from 1.
pub fn number_of(kind: &str) -> Option<u32> {
    (1..).zip(EVENTS).find(|(_, event)| event.name == kind).map(|(number, _)| number)
}

/// Returns the name of the built-in type of a number; of none, the name that is never written.
pub fn name_of(number: u32) -> &'static str {
    let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    at.and_then(|at| EVENTS.get(at)).map_or(LOST, |event| event.name)
}

/// Says whether events of a type become messages.
pub fn is_message(kind: &str) -> bool {
    builtin(kind).is_some_and(|event| event.is_message)
}

/// Says whether a type is built in.
pub fn is_builtin(kind: &str) -> bool {
    builtin(kind).is_some()
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
    static DECLARED: RefCell<SortedMap<String, Declaration>> = const { RefCell::new(SortedMap::new()) };
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
    if let Some(event) = builtin(kind) {
        return Some(Declaration { durable: event.is_urgent, ignorable: false });
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

// The texts these hold are left out of a wasm build.
#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;
    use crate::core::json::{self, Surrogates};

    #[test]
    fn samples_are_lossless_objects_and_names_are_unique() {
        let mut names = std::collections::BTreeSet::new();
        for event in EVENTS {
            assert!(names.insert(event.name), "{} twice", event.name);
            let sample = json::parse(event.sample, Surrogates::Refuse).unwrap();
            assert_eq!(sample.to_text(), event.sample, "{}", event.name);
            assert!(sample.as_object().is_some(), "{}", event.name);
            assert_eq!(declaration(event.name).map(|d| d.durable), Some(event.is_urgent));
            assert_eq!(number_of(event.name).map(name_of), Some(event.name));
        }
    }

    #[test]
    fn the_published_declarations_hold_every_type() {
        let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let published = fold(include_str!("../../../npm/types/index.d.ts"));
        for event in EVENTS {
            assert!(published.contains(&fold(event.typescript)), "{} differs from npm/types/index.d.ts", event.name);
        }
    }

    #[test]
    fn types_are_known_once_they_are_declared() {
        assert_eq!(check_known("app/note").unwrap_err().code(), "undeclared_type");
        declare("app/note", Declaration { durable: false, ignorable: true }).unwrap();
        check_known("app/note").unwrap();
        for bad in ["", "a b", "é", LOST, &"x".repeat(200)] {
            assert_eq!(declare(bad, Declaration::default()).unwrap_err().code(), "invalid_argument", "{bad:?}");
        }
    }
}
