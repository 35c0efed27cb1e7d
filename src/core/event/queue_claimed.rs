//! `queue/claimed`: a queued message was taken up.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "queue/claimed",
    #[cfg(not(target_family = "wasm"))]
    doc: "A queued message was taken up.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""queue/claimed": { id: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"id":"q1"}"#,
};
