//! `assistant/message`: the model answered.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "assistant/message",
    #[cfg(not(target_family = "wasm"))]
    doc: "The model answered.",
    is_message: true,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""assistant/message": {
    turn?: number; step?: number; parts: AssistantPart[]; provider?: string; api?: string; model?: string;
    responseId?: string; stopReason?: string; partial?: boolean;
    /** What the answer has used, as `step/end` says it once the tools are done; counted there. */
    usage?: UsageRecord;
  };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"step":1,"parts":[{"type":"text","text":"Hello"},{"type":"tool-call","id":"c1","name":"read","args":{"path":"/a"}}],"provider":"openai","model":"m","stopReason":"tool-calls"}"#,
};
