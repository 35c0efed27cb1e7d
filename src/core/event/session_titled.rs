//! `session/titled`: the session has a new title.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/titled",
    doc: "The session has a new title.",
    is_message: false,
    is_urgent: true,
    typescript: r#""session/titled": { title: string };"#,
    sample: r#"{"title":"A plan"}"#,
};
