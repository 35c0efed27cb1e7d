//! Other programs' session formats, in and out, each with a report of what was lost. One file per format.

pub mod chat_messages;
pub mod samagotchi;

use super::json::Object;

/// An event on its way in: its type and payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// Event type.
    pub kind: &'static str,
    /// Payload.
    pub data: Object,
}

/// What an import yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// The events, in order.
    pub events: Vec<Incoming>,
    /// What could not be taken over, one line each.
    pub lost: Vec<String>,
}
