//! `queue/claimed`: a queued message was taken up.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "queue/claimed",
    doc: "A queued message was taken up.",
    is_message: false,
    is_urgent: true,
    typescript: r#""queue/claimed": { id: string };"#,
    sample: r#"{"id":"q1"}"#,
};
