//! `session/created`: the session began; may name its parent.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/created",
    doc: "The session began; may name its parent.",
    is_message: false,
    is_urgent: true,
    typescript: r#""session/created": { parentId?: string };"#,
    sample: r#"{"parentId":"s0"}"#,
};
