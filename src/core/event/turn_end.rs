//! `turn/end`: a turn ended, with its reason.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "turn/end",
    doc: "A turn ended, with its reason.",
    is_message: false,
    is_urgent: true,
    typescript: r#""turn/end": { turn: number; reason: Tagged<TurnEndReasonMap> };"#,
    sample: r#"{"turn":1,"reason":{"kind":"completed"}}"#,
};
