//! `usage`: usage of a step.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "usage",
    doc: "Usage of a step.",
    is_message: false,
    is_urgent: false,
    typescript: r#"usage: { turn: number; step: number; usage: UsageRecord };"#,
    sample: r#"{"turn":1,"step":1,"usage":{"apiShape":"openai.chat","raw":{"prompt_tokens":5,"completion_tokens":2}}}"#,
};
