//! `steering/message`: the user steered a running turn.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "steering/message",
    #[cfg(not(target_family = "wasm"))]
    doc: "The user steered a running turn.",
    is_message: true,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""steering/message": { text: string; source?: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"text":"Stop there.","source":"user"}"#,
};
