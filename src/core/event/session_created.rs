//! `session/created`: the session began; may name its parent.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/created",
    #[cfg(not(target_family = "wasm"))]
    doc: "The session began; may name its parent.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""session/created": { parentId?: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"parentId":"s0"}"#,
};
