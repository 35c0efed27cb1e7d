//! `error`: something went wrong.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "error",
    #[cfg(not(target_family = "wasm"))]
    doc: "Something went wrong.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#"error: { turn?: number; step?: number; message: string; code?: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"turn":1,"step":1,"message":"The model did not answer.","code":"timeout"}"#,
};
