//! `undo/redone`: an undo was reversed.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "undo/redone",
    doc: "An undo was reversed.",
    is_message: false,
    is_urgent: true,
    typescript: r#""undo/redone": { runId: string; restored: string[]; deleted: string[] };"#,
    sample: r#"{"runId":"r1","restored":[],"deleted":["/a"]}"#,
};
