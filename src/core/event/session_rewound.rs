//! `session/rewound`: what came after a point is hidden.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/rewound",
    #[cfg(not(target_family = "wasm"))]
    doc: "What came after a point is hidden.",
    is_message: false,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""session/rewound": { uptoSeq: number; reason?: string };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"uptoSeq":3,"reason":"wrong turn"}"#,
};
