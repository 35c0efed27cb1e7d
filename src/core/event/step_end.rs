//! `step/end`: a model request and its calls are done; carries the usage.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "step/end",
    #[cfg(not(target_family = "wasm"))]
    doc: "A model request and its calls are done; carries the usage.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""step/end": { turn: number; step: number; usage?: UsageRecord };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"step":1,"usage":{"apiShape":"openai.chat","raw":{"prompt_tokens":5,"completion_tokens":2}}}"#,
};
