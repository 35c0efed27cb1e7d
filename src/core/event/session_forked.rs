//! `session/forked`: what stands before was taken from another session.

use super::EventType;

pub(super) const TYPE: EventType = EventType {
    name: "session/forked",
    doc: "What stands before was taken from another session.",
    is_message: false,
    is_urgent: true,
    typescript: r#""session/forked": { from: string; boundary: number };"#,
    sample: r#"{"from":"s0","boundary":4}"#,
};
