//! The loop itself: one turn as a state machine. It does nothing; it says what is to be done.

use super::answer::{Answer, Chunk};
use super::calls::Call;
use super::config::Config;
use super::effect::{Cancel, Effect, Fault, Finish, Input, Status};
use super::ending::Ending;
use super::object;
use crate::core::json::Object;

/// Said of a call that was stopped before it ran.
pub(super) const NOT_RUN: &str = "cancelled before execution";

/// Where a turn stands: what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// To be started.
    Fresh,
    /// The events of the last step to be durable.
    BetweenSteps,
    /// The request to be derived.
    Deriving,
    /// What the request says to be durable.
    BeforeRequest,
    /// The stream.
    Streaming,
    /// A compaction because the request was too long.
    MakingRoom,
    /// Arguments to be checked.
    Validating,
    /// Verdicts.
    Approving,
    /// The calls to be durable.
    BeforeTools,
    /// Tools.
    Running,
    /// The step to be priced.
    Settling,
    /// A compaction because the session has become long.
    Tidying,
    /// Nothing any more.
    Over,
}

/// One turn.
#[derive(Debug)]
pub struct Machine {
    pub(super) config: Config,
    pub(super) phase: Phase,
    /// The open step, or the last one; they count from 1.
    pub(super) step: u64,
    /// Steps this run has taken; after a recovery less than `step`.
    pub(super) taken: u64,
    pub(super) step_open: bool,
    pub(super) answer: Answer,
    pub(super) calls: Vec<Call>,
    /// Calls of batches that are done.
    pub(super) cursor: usize,
    /// Calls of the batch at hand.
    pub(super) batch: usize,
    queue: Vec<(String, String)>,
    pub(super) ending: Option<Ending>,
    made_room: bool,
    /// How often an event could not be appended.
    refused: u32,
    spent: i128,
    /// What the dearest step of this run has cost: what is set aside for the next one.
    dearest: i128,
    prompt_tokens: u64,
    pub(super) out: Vec<Effect>,
}

impl Machine {
    /// Makes a turn that waits to be started.
    pub fn new(config: Config) -> Self {
        Machine {
            config,
            phase: Phase::Fresh,
            step: 0,
            taken: 0,
            step_open: false,
            answer: Answer::default(),
            calls: Vec::new(),
            cursor: 0,
            batch: 0,
            queue: Vec::new(),
            ending: None,
            made_room: false,
            refused: 0,
            spent: 0,
            dearest: 0,
            prompt_tokens: 0,
            out: Vec::new(),
        }
    }

    /// Returns what the turn is run with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the turn and the step that are at hand.
    pub fn at(&self) -> (u64, u64) {
        (self.config.turn, self.step)
    }

    /// Says whether the turn is over.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Returns the answer being streamed; none when pieces of it are not waited for.
    pub fn streaming(&mut self) -> Option<&mut Answer> {
        (self.phase == Phase::Streaming).then_some(&mut self.answer)
    }

    /// Takes what has happened and returns what is to be done. What is not waited for changes nothing.
    pub fn handle(&mut self, input: Input) -> Vec<Effect> {
        match (self.phase, input) {
            // Even the last event may be refused; whoever drives waits for the end until it is told.
            (_, Input::AppendFailed { fault, lost }) => self.append_failed(fault, &lost),
            (Phase::Over, _) => {}
            (Phase::Fresh, Input::Start) => self.start(),
            (_, Input::Steer { id, text }) => self.steer(id, text),
            (_, Input::Cancel(cancel)) => self.cancel(&cancel),
            (Phase::BetweenSteps, Input::CheckpointDone) => self.begin_step(),
            (Phase::BetweenSteps, Input::CheckpointFailed(fault)) => self.fail(fault),
            (Phase::Deriving, Input::Derived) => self.wait(Effect::Checkpoint, Phase::BeforeRequest),
            (Phase::Deriving, Input::DeriveFailed(fault)) => self.fail(fault),
            (Phase::BeforeRequest, Input::CheckpointDone) => self.send(),
            (Phase::BeforeRequest, Input::CheckpointFailed(fault)) => self.fail(fault),
            (Phase::Streaming, Input::Chunk(chunk)) => self.answer.take(chunk),
            (Phase::Streaming, Input::StreamEnded) => self.answered(),
            (Phase::Streaming, Input::StreamFailed { fault, overflow }) => self.stream_failed(fault, overflow),
            (Phase::MakingRoom, Input::Compacted(true)) => self.wait(Effect::Derive(self.step), Phase::Deriving),
            (Phase::MakingRoom, Input::Compacted(false)) => {
                self.fail(Fault::new("context_overflow", "The request is too long for the model."));
            }
            (Phase::Validating, Input::Validated(faults)) => self.validated(faults),
            (Phase::Approving, Input::Verdict { call, approved, reason }) => self.verdict(&call, approved, reason),
            (Phase::BeforeTools, Input::CheckpointDone) => self.run_batch(),
            (Phase::BeforeTools, Input::CheckpointFailed(fault)) => self.fail(fault),
            (Phase::Running, Input::ToolDone { call, outcome }) => self.tool_done(&call, outcome),
            (Phase::Settling, Input::Settled { spent, prompt_tokens }) => self.settled(spent, prompt_tokens),
            (Phase::Tidying, Input::Compacted(_)) => self.finish(),
            _ => {}
        }
        std::mem::take(&mut self.out)
    }

    pub(super) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.out)
    }

    pub(super) fn wait(&mut self, effect: Effect, phase: Phase) {
        self.out.push(effect);
        self.phase = phase;
    }

    fn append(&mut self, kind: &'static str, data: Object) {
        self.out.push(Effect::Append(kind, data));
    }

    fn at_step(&self) -> Object {
        object([("turn", self.config.turn), ("step", self.step)])
    }

    // ------------------------------------------------------------------ steps

    fn start(&mut self) {
        let mut start = object([("turn", self.config.turn)]);
        start.set("trigger", self.config.trigger.clone());
        self.append("turn/start", start);
        for context in std::mem::take(&mut self.config.context) {
            self.append("context/message", context);
        }
        if let Some(user) = self.config.user.take() {
            self.append("user/message", user);
        }
        self.begin_step();
    }

    pub(super) fn begin_step(&mut self) {
        if self.taken >= self.config.max_steps {
            return self.end(Ending::plain(Status::MaxSteps, Status::MaxSteps.name()));
        }
        if self.over_budget() {
            return self.end(Ending::plain(Status::BudgetReached, Status::BudgetReached.name()));
        }
        self.step += 1;
        self.taken += 1;
        self.step_open = true;
        self.made_room = false;
        self.answer = Answer::default();
        self.calls.clear();
        (self.cursor, self.batch) = (0, 0);
        self.claim();
        let mut start = self.at_step();
        start.set("provider", self.config.provider.as_str());
        start.set("model", self.config.model.as_str());
        self.append("step/start", start);
        self.wait(Effect::Derive(self.step), Phase::Deriving);
    }

    /// What the dearest step has cost is set aside for the next one; what is left must cover it.
    fn over_budget(&self) -> bool {
        self.config.budget.is_some_and(|budget| self.spent >= budget || self.spent + self.dearest > budget)
    }

    fn claim(&mut self) {
        for (id, text) in std::mem::take(&mut self.queue) {
            self.append("queue/claimed", object([("id", id)]));
            self.append("steering/message", object([("text", text)]));
        }
    }

    fn steer(&mut self, id: String, text: String) {
        self.append("queue/added", object([("id", id.as_str()), ("text", text.as_str())]));
        self.queue.push((id, text));
    }

    fn send(&mut self) {
        self.answer = Answer::default();
        self.wait(Effect::Send(self.step), Phase::Streaming);
    }

    pub(super) fn end_step(&mut self) {
        let mut end = self.at_step();
        if let Some(usage) = self.answer.usage() {
            end.set("usage", usage.clone());
        }
        self.step_open = false;
        self.append("step/end", end);
        self.wait(Effect::Settle, Phase::Settling);
    }

    fn settled(&mut self, spent: i128, prompt_tokens: u64) {
        self.dearest = self.dearest.max(spent - self.spent);
        self.spent = self.spent.max(spent);
        self.prompt_tokens = prompt_tokens;
        match self.ending.take() {
            // What was said while the last answer came is answered before the turn ends.
            Some(ending) if ending.status != Status::Completed || self.queue.is_empty() => self.end(ending),
            _ => self.wait(Effect::Checkpoint, Phase::BetweenSteps),
        }
    }

    // ----------------------------------------------------------------- answer

    /// Appends what has arrived and lists its calls; says whether there was anything.
    fn append_answer(&mut self, partial: bool) -> bool {
        let (parts, asked) = self.answer.parts(&format!("{}_{}", self.config.turn, self.step));
        if parts.is_empty() {
            return false;
        }
        let mut message = self.at_step();
        message.set("parts", parts);
        for (key, text) in
            [("provider", &self.config.provider), ("api", &self.config.api), ("model", &self.config.model)]
        {
            message.set(key, text.as_str());
        }
        if let Some(id) = self.answer.response_id() {
            message.set("responseId", id);
        }
        if let Some(reason) = self.answer.reason() {
            message.set("stopReason", reason);
        }
        if partial {
            message.set("partial", true);
        }
        // The step ends after its tools; what was paid for must not be lost when they are the end of everything.
        if let Some(usage) = self.answer.usage() {
            message.set("usage", usage.clone());
        }
        self.append("assistant/message", message);
        self.calls = asked.into_iter().map(|asked| Call::new(asked, &self.config)).collect();
        true
    }

    fn answered(&mut self) {
        match self.answer.reason() {
            Some("error") => {
                let fault = Fault::new("provider_error", "The model's answer ended with an error.");
                return self.stream_failed(fault, false);
            }
            Some("aborted") => return self.break_off(Ending::plain(Status::Cancelled, "aborted"), None),
            _ => {}
        }
        let any = self.append_answer(false);
        let cut = self.answer.reason() == Some("max-tokens");
        if self.calls.is_empty() {
            let ending = self.final_ending(any, cut);
            return self.end_step_with(ending);
        }
        if cut {
            self.forget_faults();
            self.close_calls("not_executed", "The call was not executed: the answer was cut off at its token limit.");
            return self.end_step_with(Ending::plain(Status::Completed, "max-tokens"));
        }
        let to_check: Vec<_> = self.calls.iter().filter(|c| c.outcome.is_none()).map(Call::ready).collect();
        if to_check.is_empty() {
            return self.next_batch();
        }
        self.wait(Effect::Validate(to_check), Phase::Validating);
    }

    fn final_ending(&self, any: bool, cut: bool) -> Ending {
        let text = self.answer.all_text();
        if !any || text.trim().is_empty() {
            if cut || self.step > 1 {
                return Ending::plain(Status::Completed, if cut { "max-tokens" } else { "empty" });
            }
            let fault = Fault::new("empty", "The model's answer was empty.");
            return Ending {
                status: Status::Failed,
                error: Some(fault),
                reason: object([("kind", "empty")]),
                answer: None,
            };
        }
        let kind = if cut { "max-tokens" } else { Status::Completed.name() };
        Ending { answer: Some(text), ..Ending::plain(Status::Completed, kind) }
    }

    fn stream_failed(&mut self, fault: Fault, overflow: bool) {
        if overflow && self.answer.is_empty() && !self.made_room {
            self.made_room = true;
            return self.wait(Effect::Compact, Phase::MakingRoom);
        }
        self.break_off(Ending::failed("error", fault.clone()), Some(fault));
    }

    /// Keeps what has arrived of a stream that ended early, with its usage.
    fn break_off(&mut self, ending: Ending, fault: Option<Fault>) {
        self.append_answer(true);
        self.forget_faults();
        self.close_calls(
            "not_started",
            if fault.is_none() { NOT_RUN } else { "The call was not executed: the answer broke off." },
        );
        if let Some(fault) = fault {
            self.append_error(&fault);
        }
        self.end_step_with(ending);
    }

    /// Calls of an answer that was cut off may look faulty because of the cut.
    fn forget_faults(&mut self) {
        self.calls.iter_mut().for_each(|call| call.outcome = None);
    }

    fn append_error(&mut self, fault: &Fault) {
        let mut error = self.at_step();
        error.set("message", fault.message.as_str());
        error.set("code", fault.code.as_str());
        self.append("error", error);
    }

    // -------------------------------------------------------------------- end

    fn cancel(&mut self, cancel: &Cancel) {
        let ending = Ending::cancelled(cancel);
        match self.phase {
            Phase::Fresh => self.phase = Phase::Over,
            Phase::Approving if *cancel == Cancel::Disposed => self.suspend(),
            Phase::Streaming => {
                self.out.push(Effect::Abort);
                self.break_off(ending, None);
            }
            Phase::Running if self.ending.is_none() => {
                self.out.push(Effect::Abort);
                self.ending = Some(ending);
            }
            Phase::Deriving
            | Phase::BeforeRequest
            | Phase::MakingRoom
            | Phase::Validating
            | Phase::Approving
            | Phase::BeforeTools => {
                self.out.push(Effect::Abort);
                self.close_calls("cancelled", NOT_RUN);
                self.end_step_with(ending);
            }
            Phase::Settling if self.ending.is_none() => self.ending = Some(ending),
            Phase::BetweenSteps => self.end(ending),
            // The turn has ended as it did; nobody has to wait for the summary.
            Phase::Tidying => self.finish(),
            _ => {}
        }
    }

    /// Leaves the turn open: the verdict may come after a reload.
    fn suspend(&mut self) {
        self.ending = Some(Ending::plain(Status::Suspended, "suspended"));
        self.finish();
    }

    fn fail(&mut self, fault: Fault) {
        self.close_calls("not_started", "The call was not executed: the run failed before.");
        self.append_error(&fault);
        let ending = Ending::failed("error", fault);
        if self.step_open { self.end_step_with(ending) } else { self.end(ending) }
    }

    /// Ends the turn on what the log holds: first with all that is to be said, then with the least, then not at all.
    fn append_failed(&mut self, fault: Fault, lost: &[(String, String)]) {
        self.refused += 1;
        let is_lost = |kind: &str| lost.iter().any(|(lost, _)| lost == kind);
        if self.refused > 2 || is_lost("turn/start") {
            self.ending = Some(Ending::failed("error", fault));
            return self.finish();
        }
        self.step_open = (self.step_open || is_lost("step/end")) && !is_lost("step/start");
        if is_lost("assistant/message") {
            // Calls that nobody can see need no results.
            self.calls.clear();
        }
        let unanswered = |id: &str| lost.iter().any(|(kind, call)| kind == "tool/result" && call == id);
        self.calls.iter_mut().filter(|call| unanswered(&call.id)).for_each(|call| call.answered = false);
        self.ending = None;
        if matches!(self.phase, Phase::Running | Phase::Streaming) {
            self.out.push(Effect::Abort);
        }
        if self.refused == 1 {
            return self.fail(fault);
        }
        self.close_calls("not_stored", "What came of the call could not be stored.");
        let ending = Ending::failed("error", Fault::new(&fault.code, "An event could not be stored."));
        if self.step_open { self.end_step_with(ending) } else { self.end(ending) }
    }

    fn end_step_with(&mut self, ending: Ending) {
        self.ending = Some(ending);
        self.end_step();
    }

    pub(super) fn end(&mut self, ending: Ending) {
        let mut end = object([("turn", self.config.turn)]);
        end.set("reason", ending.reason.clone());
        self.append("turn/end", end);
        let long = self.config.compact_at.is_some_and(|limit| self.prompt_tokens >= limit);
        let tidy = long && ending.status == Status::Completed;
        self.ending = Some(ending);
        if tidy {
            return self.wait(Effect::Compact, Phase::Tidying);
        }
        self.finish();
    }

    fn finish(&mut self) {
        self.phase = Phase::Over;
        let ending = self.ending.take().unwrap_or_else(|| Ending::plain(Status::Failed, "error"));
        self.out.push(Effect::Finish(Finish {
            status: ending.status,
            answer: ending.answer,
            error: ending.error,
            steps: self.taken,
            drafts: std::mem::take(&mut self.queue).into_iter().map(|(id, _)| id).collect(),
        }));
    }
}

/// Takes a whole stream at once; for tests and for drivers that have no pieces.
pub fn take_all(machine: &mut Machine, chunks: impl IntoIterator<Item = Chunk>) {
    if let Some(answer) = machine.streaming() {
        chunks.into_iter().for_each(|chunk| answer.take(chunk));
    }
}
