//! `undo/redone`: an undo was reversed.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "undo/redone",
    #[cfg(not(target_family = "wasm"))]
    doc: "An undo was reversed.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""undo/redone": { runId: string; restored: string[]; deleted: string[] };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"runId":"r1","restored":[],"deleted":["/a"]}"#,
};
