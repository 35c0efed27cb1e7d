//! `approval/resolved`: a verdict was given.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "approval/resolved",
    doc: "A verdict was given.",
    is_message: false,
    is_urgent: true,
    typescript: r#""approval/resolved": { callId: string; verdict: "approved" | "denied"; reason?: string };"#,
    sample: r#"{"callId":"c1","verdict":"denied","reason":"not now"}"#,
};
