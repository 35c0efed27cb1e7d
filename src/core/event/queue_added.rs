//! `queue/added`: a message was queued.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "queue/added",
    doc: "A message was queued.",
    is_message: false,
    is_urgent: true,
    typescript: r#""queue/added": { id: string; text: string };"#,
    sample: r#"{"id":"q1","text":"And then?"}"#,
};
