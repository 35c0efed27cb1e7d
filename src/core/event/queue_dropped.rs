//! `queue/dropped`: a queued message was dropped.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "queue/dropped",
    #[cfg(not(target_family = "wasm"))]
    doc: "A queued message was dropped.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""queue/dropped": { id: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"id":"q1"}"#,
};
