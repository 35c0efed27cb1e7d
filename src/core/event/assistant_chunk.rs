//! `assistant/chunk`: a piece of a streamed answer.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "assistant/chunk",
    doc: "A piece of a streamed answer.",
    is_message: false,
    is_urgent: false,
    typescript: r#""assistant/chunk": { turn: number; step: number; kind: "text" | "reasoning" | "tool-args"; text: string; id?: string };"#,
    sample: r#"{"turn":1,"step":1,"kind":"text","text":"Hel"}"#,
};
