//! `assistant/chunk`: a piece of a streamed answer.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "assistant/chunk",
    #[cfg(not(target_family = "wasm"))]
    doc: "A piece of a streamed answer.",
    is_message: false,
    is_urgent: false,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""assistant/chunk": { turn: number; step: number; kind: "text" | "reasoning" | "tool-args"; text: string; id?: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"step":1,"kind":"text","text":"Hel"}"#,
};
