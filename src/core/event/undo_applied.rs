//! `undo/applied`: a run's file changes were undone.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "undo/applied",
    doc: "A run's file changes were undone.",
    is_message: false,
    is_urgent: true,
    typescript: r#""undo/applied": { runId: string; restored: string[]; deleted: string[]; forced?: boolean };"#,
    sample: r#"{"runId":"r1","restored":["/a"],"deleted":[],"forced":true}"#,
};
