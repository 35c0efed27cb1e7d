//! `policy/updated`: what is approved without asking changed.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "policy/updated",
    #[cfg(not(target_family = "wasm"))]
    doc: "What is approved without asking changed.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""policy/updated": { patterns: string[] };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"patterns":["read *"]}"#,
};
