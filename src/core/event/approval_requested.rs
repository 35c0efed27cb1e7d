//! `approval/requested`: a call waits for a verdict.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "approval/requested",
    #[cfg(not(target_family = "wasm"))]
    doc: "A call waits for a verdict.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""approval/requested": { callId: string; name: string; args: JsonValue };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"callId":"c1","name":"read","args":{"path":"/a"}}"#,
};
