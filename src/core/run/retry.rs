//! When a request that failed is sent again, and how long to wait.

/// Most times one request is sent.
pub const MAX_ATTEMPTS: u32 = 4;

/// First pause; it doubles with each attempt.
const FIRST_PAUSE_MS: u64 = 500;

/// Longest pause of our own.
const LONGEST_PAUSE_MS: u64 = 8_000;

/// Longest pause a server may ask for; for more, the failure is told at once.
const LONGEST_ASKED_MS: u64 = 60_000;

/// How an attempt failed. Only what failed before the first piece of the answer is ever sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Attempts made so far, the failed one included.
    pub attempts: u32,
    /// HTTP status; none when there was no answer at all.
    pub status: Option<u16>,
    /// What `retry-after` asked for.
    pub retry_after_ms: Option<u64>,
    /// A random number, so that many clients do not come back at the same moment.
    pub jitter: u32,
}

/// Returns how long to wait before the next attempt; none when there is to be no other.
pub fn pause_ms(failure: Failure) -> Option<u64> {
    // No status: the connection was refused or cut before an answer.
    let again = failure.status.is_none_or(|status| matches!(status, 408 | 425 | 429 | 500..=599));
    if !again || failure.attempts >= MAX_ATTEMPTS {
        return None;
    }
    if let Some(asked) = failure.retry_after_ms {
        return (asked <= LONGEST_ASKED_MS).then_some(asked);
    }
    let doublings = failure.attempts.saturating_sub(1).min(16);
    let pause = (FIRST_PAUSE_MS << doublings).min(LONGEST_PAUSE_MS);
    // Between half and all of the pause.
    let half = pause / 2;
    Some(half + u64::from(failure.jitter) * half / u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attempts: u32, status: Option<u16>, retry_after_ms: Option<u64>, jitter: u32, right: Option<u64>) {
        let failure = Failure { attempts, status, retry_after_ms, jitter };
        assert_eq!(pause_ms(failure), right, "{failure:?}");
    }

    #[test]
    fn only_what_may_pass_by_itself_is_tried_again() {
        for status in [429, 500, 502, 503, 529, 408] {
            check(1, Some(status), None, u32::MAX, Some(500));
        }
        for status in [400, 401, 403, 404, 413, 422] {
            check(1, Some(status), None, 0, None);
        }
        check(1, None, None, 0, Some(250));
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_end() {
        check(1, Some(500), None, 0, Some(250));
        check(2, Some(500), None, u32::MAX, Some(1_000));
        check(3, Some(500), None, u32::MAX, Some(2_000));
        check(4, Some(500), None, 0, None);
    }

    #[test]
    fn the_server_may_say_how_long() {
        check(1, Some(429), Some(0), 7, Some(0));
        check(1, Some(429), Some(30_000), 7, Some(30_000));
        check(1, Some(429), Some(3_600_000), 7, None);
        check(1, Some(400), Some(1), 7, None);
    }
}
