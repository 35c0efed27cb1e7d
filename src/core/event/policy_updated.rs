//! `policy/updated`: what is approved without asking changed.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "policy/updated",
    doc: "What is approved without asking changed.",
    is_message: false,
    is_urgent: true,
    typescript: r#""policy/updated": { patterns: string[] };"#,
    sample: r#"{"patterns":["read *"]}"#,
};
