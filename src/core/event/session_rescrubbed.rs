//! `session/rescrubbed`: stored payloads were scrubbed once more.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/rescrubbed",
    #[cfg(not(target_family = "wasm"))]
    doc: "Stored payloads were scrubbed once more.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""session/rescrubbed": { scrubber: string; events: number };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"scrubber":"secrets","events":2}"#,
};
