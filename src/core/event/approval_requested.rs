//! `approval/requested`: a call waits for a verdict.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "approval/requested",
    doc: "A call waits for a verdict.",
    is_message: false,
    is_urgent: true,
    typescript: r#""approval/requested": { callId: string; name: string; args: JsonValue };"#,
    sample: r#"{"callId":"c1","name":"read","args":{"path":"/a"}}"#,
};
