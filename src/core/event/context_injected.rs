//! `context/injected`: context that stands as user text.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "context/injected",
    #[cfg(not(target_family = "wasm"))]
    doc: "Context that stands as user text.",
    is_message: true,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""context/injected": { text: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"text":"Be brief."}"#,
};
