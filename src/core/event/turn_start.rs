//! `turn/start`: a turn began.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "turn/start",
    #[cfg(not(target_family = "wasm"))]
    doc: "A turn began.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""turn/start": { turn: number; trigger: Tagged<TurnTriggerMap>; agent?: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"trigger":{"kind":"message"},"agent":"main"}"#,
};
