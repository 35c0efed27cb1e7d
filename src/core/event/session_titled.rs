//! `session/titled`: the session has a new title.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/titled",
    #[cfg(not(target_family = "wasm"))]
    doc: "The session has a new title.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""session/titled": { title: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"title":"A plan"}"#,
};
