//! `approval/resolved`: a verdict was given.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "approval/resolved",
    #[cfg(not(target_family = "wasm"))]
    doc: "A verdict was given.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""approval/resolved": { callId: string; verdict: "approved" | "denied"; reason?: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"callId":"c1","verdict":"denied","reason":"not now"}"#,
};
