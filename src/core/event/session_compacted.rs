//! `session/compacted`: a summary stands for all that came before.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/compacted",
    doc: "A summary stands for all that came before.",
    is_message: true,
    is_urgent: true,
    typescript: r#""session/compacted": { summary: string; uptoSeq: number };"#,
    sample: r#"{"summary":"They agreed on a plan.","uptoSeq":12}"#,
};
