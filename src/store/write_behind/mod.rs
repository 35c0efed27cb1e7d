//! When a session's events are written: a pure state machine, driven by the shell and by a native simulation alike.
//!
//! Events are in memory first. The machine says which of them to write next, and is told how that went. One write is under
//! way at a time, so the store always holds a prefix of the log. A failure is never latched: the whole backlog is tried
//! again, in order, at the next event that cannot wait, the next flush, or when the backoff has passed.

use crate::core::time::Millis;

mod protocol;

pub use self::protocol::{Input, Outcome, Output, Settings, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Loading,
    Leading,
    Reloading,
    Following,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Busy {
    /// Writing up to this event.
    Write(u64),
    Reload,
}

/// An event that is stored before it is seen.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    token: Token,
    /// The number of events the log has with it.
    length: u64,
    /// Another writer was first: it is tried again behind that one's events.
    again: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    token: Token,
    upto: u64,
}

/// The machine of one session.
#[derive(Clone, Debug)]
pub struct WriteBehind {
    settings: Settings,
    phase: Phase,
    stored: u64,
    length: u64,
    busy: Option<Busy>,
    candidate: Option<Candidate>,
    queue: Vec<Token>,
    waiters: Vec<Waiter>,
    due: Option<Millis>,
    failures: u32,
}

impl WriteBehind {
    /// Makes a machine that waits for `Loaded`.
    pub fn new(settings: Settings) -> Self {
        WriteBehind {
            settings,
            phase: Phase::Loading,
            stored: 0,
            length: 0,
            busy: None,
            candidate: None,
            queue: Vec::new(),
            waiters: Vec::new(),
            due: None,
            failures: 0,
        }
    }

    /// Returns how many events the store holds for certain.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Returns how many events are behind the watermark.
    pub fn unsaved(&self) -> u64 {
        self.length.saturating_sub(self.stored)
    }

    /// Says whether the last try failed.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Takes one input and returns what to do, in order.
    pub fn step(&mut self, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        if self.phase == Phase::Closed {
            self.refuse(input, &mut out);
            return out;
        }
        match input {
            Input::Loaded { stored } => self.loaded(stored),
            Input::Appended { now, length, urgent } => self.appended(now, length, urgent, &mut out),
            Input::Flush { now, token } => self.flush(now, token, &mut out),
            Input::StoreFirst { now, token } => {
                self.queue.push(token);
                self.due = Some(now);
                self.advance(now, &mut out);
            }
            Input::MakeRoom { now } => self.make_room(now, &mut out),
            Input::Tick { now } => self.advance(now, &mut out),
            Input::Done { now, outcome } => self.done(now, outcome, &mut out),
            Input::Reloaded { now, stored, length, candidate_stored } => {
                let told = self.resolve_candidate(candidate_stored, &mut out);
                self.reloaded(now, stored, length, told, &mut out);
            }
            Input::ReloadFailed { now } => {
                self.busy = None;
                self.failed(now, true, &mut out);
            }
            // A write that is under way finds out for itself.
            Input::Overtaken if self.busy.is_some() => {}
            Input::Overtaken => self.reload(&mut out),
            Input::Follow => {
                self.phase = Phase::Following;
                self.busy = None;
                self.reject_all(&mut out);
            }
            Input::Close => {
                self.phase = Phase::Closed;
                self.reject_all(&mut out);
            }
        }
        out
    }

    fn refuse(&self, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Flush { token: Some(token), .. } | Input::StoreFirst { token, .. } => {
                out.push(Output::Settled(token, false));
            }
            _ => {}
        }
    }

    fn loaded(&mut self, stored: u64) {
        self.phase = Phase::Leading;
        self.stored = stored;
        self.length = stored;
    }

    fn appended(&mut self, now: Millis, length: u64, urgent: bool, out: &mut Vec<Output>) {
        if let Some(candidate) = self.candidate.take() {
            // Its place can no longer be given back, because another event stands behind it.
            out.push(Output::Reveal(candidate.token));
            self.waiters.push(Waiter { token: candidate.token, upto: candidate.length });
        }
        self.length = length;
        // An event that was to be made room for could not be made: nobody waits for its place.
        let last = self.pending_length();
        for waiter in &mut self.waiters {
            waiter.upto = waiter.upto.min(last);
        }
        let wish = if urgent { now } else { now.saturating_add(self.settings.flush_interval_ms) };
        // A store that fails is left alone until its backoff has passed, save for an event that cannot wait.
        if urgent || self.failures == 0 {
            self.due = Some(self.due.map_or(wish, |due| due.min(wish)));
        }
        self.advance(now, out);
    }

    fn make_room(&mut self, now: Millis, out: &mut Vec<Output>) {
        if let Some(candidate) = self.candidate.take() {
            self.length = candidate.length;
            out.push(Output::Reveal(candidate.token));
            self.waiters.push(Waiter { token: candidate.token, upto: candidate.length });
        }
        for token in std::mem::take(&mut self.queue) {
            self.length += 1;
            out.extend([Output::Admit(token), Output::Reveal(token)]);
            self.waiters.push(Waiter { token, upto: self.length });
            self.due = Some(now);
        }
    }

    fn flush(&mut self, now: Millis, token: Option<Token>, out: &mut Vec<Output>) {
        // What is to be stored before it is seen counts, and so does a reload that is owed: what the store holds is in doubt.
        let upto = self.pending_length();
        let nothing_to_do = upto <= self.stored && self.phase != Phase::Reloading;
        if let Some(token) = token {
            match (nothing_to_do, self.phase) {
                (true, _) => out.push(Output::Settled(token, true)),
                (false, Phase::Following) => out.push(Output::Settled(token, false)),
                (false, _) => self.waiters.push(Waiter { token, upto }),
            }
        }
        if !nothing_to_do {
            self.due = Some(now);
            self.advance(now, out);
        }
    }

    /// Returns how long the log will be with the events that are stored before they are seen.
    fn pending_length(&self) -> u64 {
        self.candidate.map_or(self.length, |candidate| candidate.length) + self.queue.len() as u64
    }

    /// Starts a write when one is due, or asks to be woken when it will be.
    fn advance(&mut self, now: Millis, out: &mut Vec<Output>) {
        // A reload that failed is owed even when nothing waits: what the store holds is in doubt until then.
        let has_work = self.length > self.stored || !self.queue.is_empty() || self.phase == Phase::Reloading;
        let Some(due) = self.due.filter(|_| has_work) else { return };
        if self.busy.is_some() || matches!(self.phase, Phase::Loading | Phase::Following | Phase::Closed) {
            return;
        }
        if due > now {
            out.push(Output::WakeAt(due));
            return;
        }
        self.due = None;
        if self.phase == Phase::Reloading { self.reload(out) } else { self.write(out) }
    }

    fn write(&mut self, out: &mut Vec<Output>) {
        let room = self.stored.saturating_add(self.settings.max_events.max(1));
        // The event that is stored first goes last and only with the whole backlog before it.
        if self.candidate.is_none() && !self.queue.is_empty() && self.length < room {
            let token = self.queue.remove(0);
            self.candidate = Some(Candidate { token, length: self.length + 1, again: false });
            out.push(Output::Admit(token));
        }
        let end = self.candidate.map_or(self.length, |candidate| candidate.length);
        let to = end.min(room);
        self.busy = Some(Busy::Write(to));
        out.push(Output::Write { from: self.stored, to });
    }

    fn reload(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Reloading;
        self.due = None;
        self.busy = Some(Busy::Reload);
        out.push(Output::Reload);
    }

    fn done(&mut self, now: Millis, outcome: Outcome, out: &mut Vec<Output>) {
        let Some(Busy::Write(to)) = self.busy.take() else { return };
        match outcome {
            Outcome::Stored => self.stored_to(now, to, out),
            Outcome::Conflict => {
                if let Some(candidate) = &mut self.candidate {
                    candidate.again = true;
                }
                self.reload(out);
            }
            // Whether the event that was to be stored first is in the store must be known before anybody is told.
            Outcome::Failed if self.candidate.is_some() => {
                self.failures = self.failures.saturating_add(1);
                self.reload(out);
            }
            Outcome::Failed => self.failed(now, true, out),
            Outcome::Refused => self.failed(now, false, out),
        }
    }

    /// Says what becomes of an admitted event; returns what its caller is to be told, once the watermark has moved.
    fn resolve_candidate(&mut self, is_stored: bool, out: &mut Vec<Output>) -> Option<Output> {
        let candidate = self.candidate.take()?;
        out.push(if is_stored { Output::Reveal(candidate.token) } else { Output::Withdraw(candidate.token) });
        if !is_stored && candidate.again {
            self.queue.insert(0, candidate.token);
            return None;
        }
        Some(Output::Settled(candidate.token, is_stored))
    }

    fn stored_to(&mut self, now: Millis, to: u64, out: &mut Vec<Output>) {
        self.failures = 0;
        self.stored = to;
        if let Some(candidate) = self.candidate.take_if(|candidate| candidate.length <= to) {
            self.length = candidate.length;
            out.push(Output::Durable(to));
            out.push(Output::Reveal(candidate.token));
            out.push(Output::Settled(candidate.token, true));
        } else {
            out.push(Output::Durable(to));
        }
        self.settle(out);
        let must_go_on = !self.queue.is_empty() || !self.waiters.is_empty();
        if must_go_on {
            self.due = Some(now);
        } else if self.length > self.stored && self.due.is_none() {
            self.due = Some(now.saturating_add(self.settings.flush_interval_ms));
        }
        self.advance(now, out);
    }

    fn settle(&mut self, out: &mut Vec<Output>) {
        let stored = self.stored;
        self.waiters.retain(|waiter| {
            let done = waiter.upto <= stored;
            if done {
                out.push(Output::Settled(waiter.token, true));
            }
            !done
        });
    }

    fn failed(&mut self, now: Millis, retry: bool, out: &mut Vec<Output>) {
        self.failures = self.failures.saturating_add(1);
        self.reject_all(out);
        self.due = None;
        if retry {
            let doublings = self.failures.saturating_sub(1).min(20);
            let wait = self.settings.retry_min_ms.saturating_mul(1 << doublings).min(self.settings.retry_max_ms);
            self.due = Some(now.saturating_add(wait));
        }
        self.advance(now, out);
    }

    /// Tells everybody who waits that it did not work; the events themselves stay and are tried again.
    fn reject_all(&mut self, out: &mut Vec<Output>) {
        if let Some(candidate) = self.candidate.take() {
            out.push(Output::Withdraw(candidate.token));
            out.push(Output::Settled(candidate.token, false));
        }
        let waiting = self.waiters.drain(..).map(|waiter| waiter.token).chain(self.queue.drain(..));
        out.extend(waiting.map(|token| Output::Settled(token, false)));
    }

    fn reloaded(&mut self, now: Millis, stored: u64, length: u64, told: Option<Output>, out: &mut Vec<Output>) {
        self.phase = Phase::Leading;
        self.busy = None;
        self.failures = 0;
        self.stored = stored;
        self.length = length.max(stored);
        // The places of events changed: whoever waited for one of ours waits for all of them.
        let last = self.pending_length();
        for waiter in &mut self.waiters {
            waiter.upto = last;
        }
        out.push(Output::Durable(stored));
        out.extend(told);
        self.settle(out);
        self.due = Some(now);
        self.advance(now, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(stored: u64) -> WriteBehind {
        let mut machine = WriteBehind::new(Settings::default());
        assert_eq!(machine.step(Input::Loaded { stored }), []);
        machine
    }

    fn urgent(now: Millis, length: u64) -> Input {
        Input::Appended { now, length, urgent: true }
    }

    fn delta(now: Millis, length: u64) -> Input {
        Input::Appended { now, length, urgent: false }
    }

    fn done(now: Millis, outcome: Outcome) -> Input {
        Input::Done { now, outcome }
    }

    #[test]
    fn urgent_events_are_written_at_once_and_deltas_within_the_interval() {
        let mut machine = loaded(5);
        assert_eq!(machine.step(delta(0, 6)), [Output::WakeAt(100)]);
        assert_eq!(machine.step(delta(60, 7)), [Output::WakeAt(100)], "the first delta sets the time");
        assert_eq!(machine.step(Input::Tick { now: 100 }), [Output::Write { from: 5, to: 7 }]);
        assert_eq!(machine.step(urgent(101, 8)), [], "one write at a time");
        assert_eq!(machine.step(done(105, Outcome::Stored)), [Output::Durable(7), Output::Write { from: 7, to: 8 }]);
        assert_eq!(machine.step(done(106, Outcome::Stored)), [Output::Durable(8)]);
        assert_eq!(machine.unsaved(), 0);
    }

    #[test]
    fn an_event_that_cannot_wait_stands_behind_those_that_were_asked_for_before_it() {
        let mut machine = loaded(0);
        let first = machine.step(Input::StoreFirst { now: 0, token: 1 });
        assert_eq!(first, [Output::Admit(1), Output::Write { from: 0, to: 1 }]);
        assert_eq!(machine.step(Input::StoreFirst { now: 0, token: 2 }), []);
        let room = machine.step(Input::MakeRoom { now: 0 });
        assert_eq!(room, [Output::Reveal(1), Output::Admit(2), Output::Reveal(2)]);
        assert_eq!(machine.step(urgent(0, 3)), []);
        assert_eq!(
            machine.step(done(1, Outcome::Stored)),
            [Output::Durable(1), Output::Settled(1, true), Output::Write { from: 1, to: 3 }]
        );
        assert_eq!(machine.step(done(2, Outcome::Failed))[..1], [Output::Settled(2, false)]);
        assert_eq!(machine.unsaved(), 2);
    }

    /// C13
    #[test]
    fn a_flush_writes_what_is_batched_and_before_the_load_it_does_nothing() {
        let mut machine = WriteBehind::new(Settings::default());
        assert_eq!(machine.step(Input::Flush { now: 0, token: Some(1) }), [Output::Settled(1, true)]);
        machine.step(Input::Loaded { stored: 5 });
        assert_eq!(machine.step(Input::Flush { now: 0, token: None }), []);
        machine.step(delta(0, 8));
        assert_eq!(machine.step(Input::Flush { now: 10, token: Some(2) }), [Output::Write { from: 5, to: 8 }]);
        machine.step(delta(11, 9));
        assert_eq!(
            machine.step(done(20, Outcome::Stored)),
            [Output::Durable(8), Output::Settled(2, true), Output::WakeAt(111)]
        );
    }

    /// C01: the failure is told, nothing is latched, and the backlog goes in order with the next event.
    #[test]
    fn a_full_disk_is_told_and_the_backlog_is_written_when_there_is_room() {
        let mut machine = loaded(2);
        assert_eq!(machine.step(urgent(0, 3)), [Output::Write { from: 2, to: 3 }]);
        machine.step(Input::Flush { now: 0, token: Some(7) });
        assert_eq!(machine.step(done(1, Outcome::Failed)), [Output::Settled(7, false), Output::WakeAt(251)]);
        assert_eq!((machine.unsaved(), machine.is_failing()), (1, true));
        assert_eq!(machine.step(urgent(2, 4)), [Output::Write { from: 2, to: 4 }]);
        assert_eq!(machine.step(done(3, Outcome::Stored)), [Output::Durable(4)]);
        assert_eq!((machine.unsaved(), machine.is_failing()), (0, false));
    }

    #[test]
    fn the_backoff_doubles_up_to_its_limit_and_a_success_resets_it() {
        let mut machine = loaded(0);
        machine.step(urgent(0, 1));
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..9 {
            let out = machine.step(done(now, Outcome::Failed));
            let [Output::WakeAt(at)] = out[..] else { panic!("{out:?}") };
            waits.push(at - now);
            now = at;
            assert_eq!(machine.step(Input::Tick { now }), [Output::Write { from: 0, to: 1 }]);
        }
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        machine.step(done(now, Outcome::Stored));
        machine.step(urgent(now, 2));
        assert_eq!(machine.step(done(now, Outcome::Failed)), [Output::WakeAt(now + 250)]);
    }

    #[test]
    fn an_event_stored_first_is_seen_only_once_stored() {
        let mut machine = loaded(0);
        machine.step(delta(0, 1));
        assert_eq!(
            machine.step(Input::StoreFirst { now: 1, token: 9 }),
            [Output::Admit(9), Output::Write { from: 0, to: 2 }],
            "with the backlog before it"
        );
        assert_eq!(
            machine.step(done(2, Outcome::Stored)),
            [Output::Durable(2), Output::Reveal(9), Output::Settled(9, true)]
        );
        machine.step(Input::StoreFirst { now: 3, token: 10 });
        assert_eq!(machine.step(done(4, Outcome::Failed)), [Output::Reload], "it may be in the store all the same");
        assert_eq!(
            machine.step(Input::Reloaded { now: 5, stored: 2, length: 2, candidate_stored: false }),
            [Output::Withdraw(10), Output::Durable(2), Output::Settled(10, false)]
        );
        machine.step(Input::StoreFirst { now: 6, token: 11 });
        machine.step(done(7, Outcome::Failed));
        assert_eq!(
            machine.step(Input::Reloaded { now: 8, stored: 3, length: 3, candidate_stored: true }),
            [Output::Reveal(11), Output::Durable(3), Output::Settled(11, true)]
        );
    }

    #[test]
    fn an_event_stored_first_keeps_its_place_once_another_stands_behind_it() {
        let mut machine = loaded(0);
        assert_eq!(
            machine.step(Input::StoreFirst { now: 0, token: 1 }),
            [Output::Admit(1), Output::Write { from: 0, to: 1 }]
        );
        assert_eq!(machine.step(urgent(1, 2)), [Output::Reveal(1)]);
        assert_eq!(machine.step(done(2, Outcome::Failed)), [Output::Settled(1, false), Output::WakeAt(252)]);
        assert_eq!(machine.unsaved(), 2);
    }

    /// B03: the loser takes over, reads, and its event comes next.
    #[test]
    fn a_conflict_reloads_and_goes_on_behind_the_other_writer() {
        let mut machine = loaded(6);
        machine.step(urgent(0, 7));
        machine.step(Input::Flush { now: 0, token: Some(1) });
        assert_eq!(machine.step(done(1, Outcome::Conflict)), [Output::Reload]);
        assert_eq!(machine.step(urgent(2, 8)), []);
        assert_eq!(
            machine.step(Input::Reloaded { now: 3, stored: 9, length: 11, candidate_stored: false }),
            [Output::Durable(9), Output::Write { from: 9, to: 11 }]
        );
        assert_eq!(machine.step(done(4, Outcome::Stored)), [Output::Durable(11), Output::Settled(1, true)]);
    }

    #[test]
    fn a_reload_that_fails_is_tried_again_before_anything_is_written() {
        let mut machine = loaded(0);
        machine.step(urgent(0, 1));
        machine.step(done(1, Outcome::Conflict));
        assert_eq!(machine.step(Input::ReloadFailed { now: 2 }), [Output::WakeAt(252)]);
        assert_eq!(machine.step(Input::Tick { now: 252 }), [Output::Reload]);
    }

    #[test]
    fn a_flush_waits_for_a_reload_that_is_owed_and_for_events_that_are_stored_first() {
        let mut machine = loaded(0);
        machine.step(Input::StoreFirst { now: 0, token: 1 });
        machine.step(Input::StoreFirst { now: 0, token: 2 });
        assert_eq!(machine.step(Input::Flush { now: 0, token: Some(3) }), []);
        assert_eq!(machine.step(done(1, Outcome::Failed)), [Output::Reload]);
        let failed = machine.step(Input::ReloadFailed { now: 2 });
        assert_eq!(failed.len(), 5, "{failed:?}");
        assert_eq!(machine.step(Input::Flush { now: 3, token: Some(4) }), [Output::Reload]);
        assert_eq!(
            machine.step(Input::Reloaded { now: 4, stored: 0, length: 0, candidate_stored: false }),
            [Output::Durable(0), Output::Settled(4, true)]
        );
        machine.step(Input::StoreFirst { now: 5, token: 5 });
        machine.step(Input::Flush { now: 5, token: Some(6) });
        let stored = machine.step(done(6, Outcome::Stored));
        assert_eq!(stored[2..], [Output::Settled(5, true), Output::Settled(6, true)]);
    }

    #[test]
    fn a_follower_and_a_closed_session_write_nothing() {
        let mut machine = loaded(0);
        machine.step(Input::Follow);
        assert_eq!(machine.step(urgent(0, 1)), []);
        assert_eq!(machine.step(Input::Flush { now: 0, token: Some(1) }), [Output::Settled(1, false)]);
        machine.step(Input::Close);
        assert_eq!(machine.step(Input::StoreFirst { now: 0, token: 2 }), [Output::Settled(2, false)]);
        assert_eq!(machine.step(Input::Tick { now: 9 }), []);
    }
}
