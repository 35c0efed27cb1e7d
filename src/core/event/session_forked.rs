//! `session/forked`: what stands before was taken from another session.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/forked",
    #[cfg(not(target_family = "wasm"))]
    doc: "What stands before was taken from another session.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""session/forked": { from: string; boundary: number };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"from":"s0","boundary":4}"#,
};
