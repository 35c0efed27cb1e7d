//! `tool/call`: a tool was started.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "tool/call",
    #[cfg(not(target_family = "wasm"))]
    doc: "A tool was started.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""tool/call": { turn?: number; step?: number; id: string; name: string; args: JsonValue };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"step":1,"id":"c1","name":"read","args":{"path":"/a"}}"#,
};
