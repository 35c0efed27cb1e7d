//! `undo/applied`: a run's file changes were undone.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "undo/applied",
    #[cfg(not(target_family = "wasm"))]
    doc: "A run's file changes were undone.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""undo/applied": { runId: string; restored: string[]; deleted: string[]; forced?: boolean };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"runId":"r1","restored":["/a"],"deleted":[],"forced":true}"#,
};
