//! `tool/result`: a tool gave its result.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "tool/result",
    #[cfg(not(target_family = "wasm"))]
    doc: "A tool gave its result.",
    is_message: true,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""tool/result": {
    turn?: number; step?: number; id: string; content: string | ContentPart[]; isError?: boolean;
    error?: { code: string; message: string }; synthetic?: boolean;
  };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"step":1,"id":"c1","content":"text","isError":false}"#,
};
