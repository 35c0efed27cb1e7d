//! The conversation of a log as it stands now (overlays applied), for writing it in other shapes.

use super::{Outgoing, text_at};
use crate::core::derive;
use crate::core::error::Result;
use crate::core::event::EventView;
use crate::core::id::EventId;
use crate::core::json::{self, Surrogates, Value};
use crate::core::time::Millis;

/// A message with where it came from.
pub(super) struct Spoken<'a> {
    /// The message as derivation yields it.
    pub(super) message: Value,
    /// The event it came from.
    pub(super) event: Option<EventView<'a>>,
}

impl Spoken<'_> {
    pub(super) fn role(&self) -> &str {
        text_at(&self.message, &["role"])
    }

    pub(super) fn parts(&self) -> &[Value] {
        self.message.get("parts").and_then(Value::as_array).unwrap_or_default()
    }

    pub(super) fn id(&self) -> EventId {
        self.event.as_ref().map_or(EventId(0), |event| event.id)
    }

    pub(super) fn seq(&self) -> u64 {
        self.event.as_ref().map_or(0, |event| event.seq)
    }

    pub(super) fn at(&self) -> Millis {
        self.event.as_ref().map_or(0, |event| event.at)
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        self.event.as_ref().is_some_and(|event| event.kind == kind)
    }

    /// The payload of the event.
    pub(super) fn data(&self) -> Value {
        let data = self.event.as_ref().map(|event| json::parse(event.data, Surrogates::Replace));
        data.and_then(Result::ok).unwrap_or_default()
    }
}

/// Reads the conversation. Messages without parts (an answer that failed before it said anything) are left out.
pub(super) fn conversation<'a>(session: &Outgoing<'a>) -> Result<Vec<Spoken<'a>>> {
    let Value::Array(messages) = json::parse(&derive::messages(session.log, None), Surrogates::Replace)? else {
        return Ok(Vec::new());
    };
    let spoken = messages.into_iter().map(|message| {
        let source = message.get("sources").and_then(Value::as_array).and_then(|sources| sources.first()?.as_i64());
        let event = source.and_then(|seq| session.log.event(u64::try_from(seq).ok()?));
        Spoken { message, event }
    });
    Ok(spoken.filter(|spoken| !spoken.parts().is_empty()).collect())
}

/// A universally unique identifier that is the same for the same event at every export.
pub(super) fn uuid(id: EventId, salt: u64) -> String {
    let (high, low) = (id.0, id.0.rotate_left(29) ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | ((low >> 48) & 0x3fff),
        low & 0xffff_ffff_ffff
    )
}
