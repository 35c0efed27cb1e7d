//! Ids of events and sessions.

use std::fmt;

use super::error::{Error, Kind, Result};
use super::limits::{MAX_ID_LENGTH, MAX_QUOTE};

/// An event id: eight bytes, shown as 16 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u64);

impl EventId {
    /// Reads 16 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<EventId> {
        let digits = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !digits {
            return None;
        }
        u64::from_str_radix(text, 16).ok().map(EventId)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Makes ids that never repeat within one source, whatever the clock does.
///
/// A seed from the random source starts a counter whose values are mixed by a bijection (SplitMix64): two ids of one
/// source are different for certain, two of different sources with overwhelming probability.
#[derive(Clone, Debug)]
pub struct IdSource {
    state: u64,
}

impl IdSource {
    /// Starts a source from eight random bytes.
    pub fn new(seed: u64) -> Self {
        IdSource { state: seed }
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the next event id.
    pub fn next_id(&mut self) -> EventId {
        EventId(self.next_u64())
    }
}

/// Checks a session id from outside, before any storage call.
pub fn check_session_id(id: &str) -> Result<()> {
    let shape = !id.is_empty()
        && id.len() <= MAX_ID_LENGTH
        && !id.starts_with('-')
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if shape {
        return Ok(());
    }
    Err(Error::new(
        Kind::InvalidId,
        format!("session id must be 1 to 128 of [A-Za-z0-9_-] and not start with '-': {}", quote(id)),
    )
    .with("given", quote(id)))
}

/// Returns at most 80 characters of something given from outside, for a message.
pub fn quote(text: &str) -> String {
    let mut out: String = text.chars().take(MAX_QUOTE).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_source_are_distinct_and_round_trip() {
        let mut source = IdSource::new(0);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..10_000 {
            let id = source.next_id();
            assert!(seen.insert(id));
            assert_eq!(EventId::parse(&id.to_string()), Some(id));
        }
        assert_eq!(EventId::parse("00000000000000G0"), None);
        assert_eq!(EventId::parse("00000000000000FF"), None);
        assert_eq!(EventId::parse("+000000000000000"), None);
    }

    /// B05
    #[test]
    fn session_ids_are_checked_by_an_allow_list() {
        let long = "a".repeat(300);
        for bad in ["../../x", "a/b", "a\\b", "C:x", "", ".", "..", "a\0b", "-x", &long, "é", "a b"] {
            let error = check_session_id(bad).unwrap_err();
            assert_eq!(error.code(), "invalid_id", "{bad:?}");
            assert!(error.message().chars().count() < 200);
        }
        for good in ["ok-1_A", "a", "_", &"z".repeat(128)] {
            check_session_id(good).unwrap();
        }
    }
}
