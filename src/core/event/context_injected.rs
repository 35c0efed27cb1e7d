//! `context/injected`: context that stands as user text.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "context/injected",
    doc: "Context that stands as user text.",
    is_message: true,
    is_urgent: true,
    typescript: r#""context/injected": { text: string };"#,
    sample: r#"{"text":"Be brief."}"#,
};
