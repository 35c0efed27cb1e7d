//! `context/message`: context from a named source.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "context/message",
    doc: "Context from a named source.",
    is_message: true,
    is_urgent: true,
    typescript: r#""context/message": { text: string; source: string };"#,
    sample: r#"{"text":"Today is Monday.","source":"clock"}"#,
};
