//! `session/rewound`: what came after a point is hidden.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/rewound",
    doc: "What came after a point is hidden.",
    is_message: false,
    is_urgent: true,
    typescript: r#""session/rewound": { uptoSeq: number; reason?: string };"#,
    sample: r#"{"uptoSeq":3,"reason":"wrong turn"}"#,
};
