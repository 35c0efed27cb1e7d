//! `turn/end`: a turn ended, with its reason.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "turn/end",
    #[cfg(not(target_family = "wasm"))]
    doc: "A turn ended, with its reason.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""turn/end": { turn: number; reason: Tagged<TurnEndReasonMap> };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"reason":{"kind":"completed"}}"#,
};
