//! `session/rescrubbed`: stored payloads were scrubbed once more.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/rescrubbed",
    doc: "Stored payloads were scrubbed once more.",
    is_message: false,
    is_urgent: true,
    typescript: r#""session/rescrubbed": { scrubber: string; events: number };"#,
    sample: r#"{"scrubber":"secrets","events":2}"#,
};
