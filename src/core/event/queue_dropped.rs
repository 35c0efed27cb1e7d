//! `queue/dropped`: a queued message was dropped.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "queue/dropped",
    doc: "A queued message was dropped.",
    is_message: false,
    is_urgent: true,
    typescript: r#""queue/dropped": { id: string };"#,
    sample: r#"{"id":"q1"}"#,
};
