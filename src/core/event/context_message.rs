//! `context/message`: context from a named source.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "context/message",
    #[cfg(not(target_family = "wasm"))]
    doc: "Context from a named source.",
    is_message: true,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""context/message": { text: string; source: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"text":"Today is Monday.","source":"clock"}"#,
};
