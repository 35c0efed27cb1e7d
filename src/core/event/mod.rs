//! Events: the envelope, and the table of built-in types.

use super::id::EventId;
use super::time::Millis;

/// One stored event as a view into its log; `data` is JSON text in stored form.
#[derive(Clone, Copy, Debug)]
pub struct EventView<'a> {
    /// Its place in the log, from 0 without gaps.
    pub seq: u64,
    /// Its id.
    pub id: EventId,
    /// When it was appended; display data.
    pub at: Millis,
    /// Its type, such as `user/message`.
    pub kind: &'a str,
    /// Its payload: JSON text of an object.
    pub data: &'a str,
    /// What was worked out when it was stored (price of a step); JSON text, kept beside the payload.
    pub note: Option<&'a str>,
}
