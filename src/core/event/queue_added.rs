//! `queue/added`: a message was queued.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "queue/added",
    #[cfg(not(target_family = "wasm"))]
    doc: "A message was queued.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""queue/added": { id: string; text: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"id":"q1","text":"And then?"}"#,
};
