//! `tool/call`: a tool was started.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "tool/call",
    doc: "A tool was started.",
    is_message: false,
    is_urgent: true,
    typescript: r#""tool/call": { turn?: number; step?: number; id: string; name: string; args: JsonValue };"#,
    sample: r#"{"turn":1,"step":1,"id":"c1","name":"read","args":{"path":"/a"}}"#,
};
