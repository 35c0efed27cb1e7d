//! Times: whole milliseconds since the Unix epoch, and their ISO 8601 form.

/// Milliseconds since the Unix epoch; display data, never order.
pub type Millis = i64;
