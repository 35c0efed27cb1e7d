//! `steering/message`: the user steered a running turn.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "steering/message",
    doc: "The user steered a running turn.",
    is_message: true,
    is_urgent: true,
    typescript: r#""steering/message": { text: string; source?: string };"#,
    sample: r#"{"text":"Stop there.","source":"user"}"#,
};
