//! Limits that hold everywhere, each with the reason for its size.

/// Deepest nesting of arrays and objects in one value; JavaScript's own parser copes with far more, people do not.
pub const MAX_DEPTH: usize = 1_000;

/// Longest id from outside, in characters.
pub const MAX_ID_LENGTH: usize = 128;

/// How much of something given from outside a message may quote, in characters.
pub const MAX_QUOTE: usize = 80;
