//! `tool/result`: a tool gave its result.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "tool/result",
    doc: "A tool gave its result.",
    is_message: true,
    is_urgent: true,
    typescript: r#""tool/result": {
    turn?: number; step?: number; id: string; content: string | ContentPart[]; isError?: boolean;
    error?: { code: string; message: string }; synthetic?: boolean;
  };"#,
    sample: r#"{"turn":1,"step":1,"id":"c1","content":"text","isError":false}"#,
};
