//! `step/start`: a model request is about to be made.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "step/start",
    #[cfg(not(target_family = "wasm"))]
    doc: "A model request is about to be made.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""step/start": { turn: number; step: number; provider?: string; model?: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"step":1,"provider":"openai","model":"m"}"#,
};
