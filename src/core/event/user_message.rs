//! `user/message`: the user said something.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "user/message",
    #[cfg(not(target_family = "wasm"))]
    doc: "The user said something.",
    is_message: true,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""user/message": { text?: string; parts?: ContentPart[]; source?: JsonValue };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"text":"Hello"}"#,
};
