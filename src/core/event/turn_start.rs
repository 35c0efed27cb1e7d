//! `turn/start`: a turn began.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "turn/start",
    doc: "A turn began.",
    is_message: false,
    is_urgent: true,
    typescript: r#""turn/start": { turn: number; trigger: Tagged<TurnTriggerMap>; agent?: string };"#,
    sample: r#"{"turn":1,"trigger":{"kind":"message"},"agent":"main"}"#,
};
