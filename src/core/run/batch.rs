//! The calls of one step, batch by batch: what must be asked first, what runs, and results in the order of the calls.

use super::calls::{Call, batch_len, invalid};
use super::effect::{Effect, Outcome};
use super::ending::{denied, is_denied, result, unknown};
use super::machine::{Machine, NOT_RUN, Phase};
use super::object;

impl Machine {
    pub(super) fn validated(&mut self, faults: Vec<(String, String)>) {
        for (id, why) in faults {
            if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
                call.outcome = Some(invalid(&format!("The call was not executed: {why}")));
            }
        }
        self.next_batch();
    }

    pub(super) fn next_batch(&mut self) {
        self.cursor += self.batch;
        // Recovered calls may be answered already.
        self.cursor += self.calls.iter().skip(self.cursor).take_while(|call| call.answered).count();
        self.batch = batch_len(&self.calls, self.cursor, &self.config);
        if self.batch == 0 {
            return self.end_step();
        }
        let mut asks = Vec::new();
        let (from, to) = (self.cursor, self.cursor + self.batch);
        for (_, call) in self.calls.iter_mut().enumerate().filter(|(at, _)| (from..to).contains(at)) {
            let tool = self.config.tool(&call.name);
            let needs = tool.is_some_and(|tool| self.config.needs_verdict(tool));
            if needs && call.outcome.is_none() && !call.approved && !call.started {
                call.waiting = true;
                asks.push(Effect::Ask { call: call.ready(), asked: call.asked });
                call.asked = true;
            }
        }
        if asks.is_empty() {
            return self.commence();
        }
        self.out.append(&mut asks);
        self.phase = Phase::Approving;
    }

    fn in_batch(&mut self) -> impl Iterator<Item = &mut Call> {
        self.calls.iter_mut().skip(self.cursor).take(self.batch)
    }

    pub(super) fn verdict(&mut self, id: &str, approved: bool, reason: Option<String>) {
        let Some(call) = self.in_batch().find(|call| call.waiting && call.id == id) else { return };
        call.waiting = false;
        call.approved = approved;
        if !approved {
            call.outcome = Some(denied(reason.as_deref()));
        }
        if self.in_batch().all(|call| !call.waiting) {
            self.commence();
        }
    }

    fn commence(&mut self) {
        let turn = self.config.turn;
        let step = self.step;
        let mut started = Vec::new();
        let mut any = false;
        for call in self.in_batch() {
            let denied = call.outcome.as_ref().is_some_and(is_denied);
            any |= call.outcome.is_none();
            if !denied && !call.started {
                call.started = true;
                let mut data = object([("turn", turn), ("step", step)]);
                data.set("id", call.id.as_str());
                data.set("name", call.name.as_str());
                data.set("args", call.args.clone());
                started.push(Effect::Append("tool/call", data));
            }
        }
        self.out.append(&mut started);
        if any {
            return self.wait(Effect::Checkpoint, Phase::BeforeTools);
        }
        self.append_results();
        self.next_batch();
    }

    pub(super) fn run_batch(&mut self) {
        let calls = self.in_batch().filter(|call| call.outcome.is_none()).map(|call| call.ready()).collect();
        self.wait(Effect::Run(calls), Phase::Running);
    }

    pub(super) fn tool_done(&mut self, id: &str, outcome: Outcome) {
        let Some(call) = self.in_batch().find(|call| call.id == id && call.outcome.is_none()) else { return };
        call.outcome = Some(outcome);
        self.append_results();
        if !self.in_batch().all(|call| call.answered) {
            return;
        }
        if self.ending.is_none() {
            return self.next_batch();
        }
        self.close_calls("cancelled", NOT_RUN);
        self.end_step();
    }

    /// Appends the results that are next in call order.
    fn append_results(&mut self) {
        let mut next = Vec::new();
        let (turn, step) = (self.config.turn, self.step);
        for call in self.in_batch() {
            let Some(outcome) = &call.outcome else { break };
            if !call.answered {
                call.answered = true;
                next.push(Effect::Append("tool/result", result(turn, step, &call.id, outcome)));
            }
        }
        self.out.append(&mut next);
    }

    /// Answers every call that has no answer yet; what was started may have had its effect, and that is said.
    pub(super) fn close_calls(&mut self, code: &str, message: &str) {
        let running = self.phase == Phase::Running;
        let (turn, step) = (self.config.turn, self.step);
        let mut withdrawn = Vec::new();
        let mut results = Vec::new();
        for call in self.calls.iter_mut().filter(|call| !call.answered) {
            if call.waiting {
                call.waiting = false;
                let verdict = object([("callId", call.id.as_str()), ("verdict", "denied"), ("reason", message)]);
                withdrawn.push(Effect::Append("approval/resolved", verdict));
            }
            let outcome = call
                .outcome
                .take()
                .unwrap_or_else(|| if running && call.started { unknown() } else { Outcome::closed(code, message) });
            call.answered = true;
            results.push(Effect::Append("tool/result", result(turn, step, &call.id, &outcome)));
        }
        self.out.append(&mut withdrawn);
        self.out.append(&mut results);
    }
}
