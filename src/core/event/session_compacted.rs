//! `session/compacted`: a summary stands for all that came before.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/compacted",
    #[cfg(not(target_family = "wasm"))]
    doc: "A summary stands for all that came before.",
    is_message: true,
    is_urgent: true,
    #[cfg(not(target_family = "wasm"))]
    typescript: r#""session/compacted": { summary: string; uptoSeq: number };"#,
    #[cfg(not(target_family = "wasm"))]
    sample: r#"{"summary":"They agreed on a plan.","uptoSeq":12}"#,
};
