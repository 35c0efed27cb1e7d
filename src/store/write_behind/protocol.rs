//! What the machine is told, and what it says.

use crate::core::time::Millis;

/// Names a caller that waits; the driver makes them up.
pub type Token = u64;

/// How fast and how often.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long an event that is not urgent may wait.
    pub flush_interval_ms: Millis,
    /// Wait after a first failure; doubles with each further one.
    pub retry_min_ms: Millis,
    /// Longest wait between two tries.
    pub retry_max_ms: Millis,
    /// Most events of one write.
    pub max_events: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { flush_interval_ms: 100, retry_min_ms: 250, retry_max_ms: 30_000, max_events: 4096 }
    }
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it is in the store.
    Stored,
    /// None of it is: the store is not where we believed it to be.
    Conflict,
    /// It may or may not be in the store; trying again is harmless, because the keys are the same.
    Failed,
    /// It is not in the store and another try by itself would not help (disposed, read only).
    Refused,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The session is loaded (or new): the store holds its first `stored` events. Until then nothing is written.
    Loaded {
        /// Events in the store.
        stored: u64,
    },
    /// The log now has `length` events.
    Appended {
        /// The time.
        now: Millis,
        /// Events in the log.
        length: u64,
        /// Whether the newest must be written at once.
        urgent: bool,
    },
    /// Write everything now; the token is settled when what is in the log at this moment is stored, or a try failed.
    Flush {
        /// The time.
        now: Millis,
        /// Who waits; none for a page that is about to go.
        token: Option<Token>,
    },
    /// One event is to be stored before anybody sees it.
    StoreFirst {
        /// The time.
        now: Millis,
        /// Who waits.
        token: Token,
    },
    /// An event is about to be appended that cannot wait: those that were to be stored before they are seen become
    /// ordinary events in front of it, in the order in which they were asked for.
    MakeRoom {
        /// The time.
        now: Millis,
    },
    /// Time has passed.
    Tick {
        /// The time.
        now: Millis,
    },
    /// The write under way ended.
    Done {
        /// The time.
        now: Millis,
        /// How.
        outcome: Outcome,
    },
    /// The session was taken over and read again: the store holds `stored` events, and those of ours that it lacked now
    /// stand after them, so that the log has `length` (an admitted event counts only when the store holds it).
    Reloaded {
        /// The time.
        now: Millis,
        /// Events in the store.
        stored: u64,
        /// Events in the log.
        length: u64,
        /// Whether the store holds the admitted event.
        candidate_stored: bool,
    },
    /// Reading the store again failed; it is tried again after the backoff.
    ReloadFailed {
        /// The time.
        now: Millis,
    },
    /// The store is not where we believed it to be, as something else than a write found out.
    Overtaken,
    /// Somebody else writes now: nothing is written until `Reloaded`.
    Follow,
    /// The session is going; nothing more is written.
    Close,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Put the event of a `StoreFirst` at the end of the log, unseen. A `Write` that includes it follows.
    Admit(Token),
    /// Write the events from `from` up to but not including `to`, then say `Done`.
    Write {
        /// First event.
        from: u64,
        /// One past the last.
        to: u64,
    },
    /// Say `Tick` at this time; replaces every earlier wish.
    WakeAt(Millis),
    /// Take the session over (raise its epoch, so that no earlier write of anybody can arrive late), read it again, then say
    /// `Reloaded` or `ReloadFailed`.
    Reload,
    /// The first so many events are in the store.
    Durable(u64),
    /// The admitted event may be seen: it is stored, or a later event needs its place.
    Reveal(Token),
    /// Take the admitted event off the end of the log again: it is not stored and nobody has seen it.
    Withdraw(Token),
    /// Whoever waits under this token may go on (`true`), or learns of the failure.
    Settled(Token, bool),
}
