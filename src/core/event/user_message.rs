//! `user/message`: the user said something.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "user/message",
    doc: "The user said something.",
    is_message: true,
    is_urgent: true,
    typescript: r#""user/message": { text?: string; parts?: ContentPart[]; source?: JsonValue };"#,
    sample: r#"{"text":"Hello"}"#,
};
