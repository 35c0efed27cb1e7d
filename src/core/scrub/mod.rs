//! Scrubbers: what must not be in a log never gets there.
//!
//! [`Chain`] folds scrubbers over every string of a payload ([`walk`]); the built-in rules ([`detect`]) answer for whole texts
//! and for streams with the same code.

mod bytes;
mod chain;
mod detect;
mod keys;
mod media;
mod pattern;
mod rules;
mod stream;
mod values;
mod view;
mod walk;

pub use chain::{Chain, Pieces, Scrubber, check_replacement};
pub use detect::{Builtin, Detector, Match};
pub use media::is_media;
pub use pattern::Pattern;
pub use rules::{FAMILIES, Family};
pub use stream::ScrubStream;
pub use values::Values;
pub use walk::{scrub_payload, stored_form, would_change};

/// Writes the mark that stands for a secret.
pub fn mark(kind: &str) -> String {
    format!("[REDACTED:{kind}]")
}

/// How every mark begins.
pub const MARK: &str = "[REDACTED:";

/// Returns the length of the mark that a text begins with.
pub(super) fn mark_length(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(MARK.as_bytes())?;
    let end = rest.iter().take(65).position(|&b| b == b']')?;
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b' ' | b':');
    let inside = rest.get(..end)?;
    (end > 0 && inside.iter().all(plain)).then_some(MARK.len() + end + 1)
}

/// Says whether a text holds a redaction mark. A tool call that does is never run again, a write that does is reported.
pub fn has_marker(text: &str) -> bool {
    text.match_indices(MARK).any(|(at, _)| mark_length(text.as_bytes().get(at..).unwrap_or_default()).is_some())
}

// The texts these hold are left out of a wasm build.
#[cfg(all(test, not(target_family = "wasm")))]
mod tests;
