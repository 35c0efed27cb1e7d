//! Going on with a turn that was cut off: what its log says was done, what is owed, and what must not be done again.

use super::answer::{Asked, Chunk};
use super::calls::Call;
use super::config::Config;
use super::effect::{Effect, Outcome, Status};
use super::ending::{Ending, denied, unknown};
use super::machine::{Machine, Phase};
use crate::core::json::{Object, Value};

/// What an event of an open turn says.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// Type of the event.
    pub kind: &'a str,
    /// Payload.
    pub data: &'a Value,
}

/// What the log tells of the last step of a turn.
#[derive(Default)]
struct LastStep {
    number: u64,
    open: bool,
    /// Whether an answer stands in the log.
    answered: bool,
    /// Whether the answer is a piece of one.
    partial: bool,
    text: String,
    calls: Vec<Call>,
    /// What the answer has used.
    usage: Option<Value>,
}

impl Machine {
    /// Makes a machine that goes on where the events of an open turn end, and says what is to be done first.
    ///
    /// A call that never started is run as if nothing had happened (a verdict that was given stands). One that did is run
    /// again only when that is harmless; else its outcome is said to be unknown. A call whose text was redacted is never
    /// run from the log: it is not the call that the model made. What was queued and not claimed stays a draft.
    pub fn recover<'a>(config: Config, events: impl IntoIterator<Item = Past<'a>>) -> (Machine, Vec<Effect>) {
        let last = read(&config, events);
        let mut machine = Machine::new(config);
        machine.step = last.number;
        machine.step_open = last.open;
        machine.config.context.clear();
        machine.config.user = None;
        if let Some(usage) = last.usage.clone() {
            machine.answer.take(Chunk::Usage(usage));
        }
        machine.go_on(last);
        let effects = machine.effects();
        (machine, effects)
    }

    fn go_on(&mut self, last: LastStep) {
        let is_final = last.answered && !last.partial && last.calls.is_empty();
        let completed = || {
            let answer = (!last.text.trim().is_empty()).then(|| last.text.clone());
            Ending { answer, ..Ending::plain(Status::Completed, Status::Completed.name()) }
        };
        match (last.open, is_final) {
            (false, true) => self.end(completed()),
            (false, false) => self.begin_step(),
            (true, true) => {
                self.ending = Some(completed());
                self.end_step();
            }
            (true, false) => {
                let goes_on = last.answered && !last.partial;
                self.calls = last.calls;
                if goes_on { self.owed() } else { self.give_up_step() }
            }
        }
    }

    /// The answer broke off: its calls are not run, and the next step asks anew.
    fn give_up_step(&mut self) {
        self.close_calls("not_started", "The call was not executed: the answer broke off.");
        self.end_step();
    }

    fn owed(&mut self) {
        for call in self.calls.iter_mut().filter(|call| !call.answered && call.outcome.is_none()) {
            let idempotent = self.config.tool(&call.name).is_some_and(|tool| tool.idempotent);
            if is_redacted(call) {
                call.outcome = Some(if call.started { unknown() } else { redacted() });
            } else if call.started && !idempotent {
                call.outcome = Some(unknown());
            }
        }
        let to_check: Vec<_> = self.calls.iter().filter(|c| c.outcome.is_none()).map(Call::ready).collect();
        if to_check.is_empty() {
            return self.next_batch();
        }
        self.wait(Effect::Validate(to_check), Phase::Validating);
    }
}

/// A verdict binds to name and arguments: one about something else is none about this call.
const NOT_ASKED: &str = "it is not the call that was asked about";

fn redacted() -> Outcome {
    let message = "The call was not executed: it holds text that was redacted, so it is not known what was to be done.";
    Outcome::closed("redacted", message)
}

fn is_redacted(call: &Call) -> bool {
    const MARKER: &str = "[REDACTED:";
    call.name.contains(MARKER) || call.args.to_text().contains(MARKER)
}

fn read<'a>(config: &Config, events: impl IntoIterator<Item = Past<'a>>) -> LastStep {
    let mut last = LastStep::default();
    for Past { kind, data } in events {
        match kind {
            "step/start" => {
                let number = data.get("step").and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
                last = LastStep { number: number.unwrap_or(last.number + 1), open: true, ..LastStep::default() };
            }
            "step/end" => last.open = false,
            "assistant/message" => {
                last.answered = true;
                last.partial = data.get("partial").and_then(Value::as_bool) == Some(true);
                last.usage = data.get("usage").cloned();
                last.read_parts(data, config);
            }
            "tool/call" => last.each(data, "id", |call| call.started = true),
            "tool/result" => last.each(data, "id", |call| {
                call.answered = true;
                call.outcome = Some(Outcome::done(""));
            }),
            "approval/requested" => {
                let args = data.get("args").and_then(Value::as_object);
                let name = data.get("name").and_then(Value::as_str);
                last.each(data, "callId", |call| {
                    call.asked = true;
                    call.misled = name != Some(&call.name) || args != Some(&call.args);
                });
            }
            "approval/resolved" => {
                let approved = data.get("verdict").and_then(Value::as_str) == Some("approved");
                let reason = data.get("reason").and_then(Value::as_str);
                last.each(data, "callId", |call| {
                    call.approved = approved && !call.misled;
                    let reason = if approved { Some(NOT_ASKED) } else { reason };
                    call.outcome = if call.approved { call.outcome.take() } else { Some(denied(reason)) };
                });
            }
            _ => {}
        }
    }
    last
}

impl LastStep {
    fn read_parts(&mut self, data: &Value, config: &Config) {
        for part in data.get("parts").and_then(Value::as_array).unwrap_or_default() {
            let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
            match text("type") {
                "text" => self.text.push_str(text("text")),
                "tool-call" if part.get("providerExecuted").and_then(Value::as_bool) != Some(true) => {
                    let args: Option<Object> = part.get("args").and_then(Value::as_object).cloned();
                    let args = args.filter(|_| part.get("rawArgs").is_none());
                    let asked = Asked { id: text("id").to_owned(), name: text("name").to_owned(), args };
                    self.calls.push(Call::new(asked, config));
                }
                _ => {}
            }
        }
    }

    fn each(&mut self, data: &Value, key: &str, change: impl FnMut(&mut Call)) {
        let id = data.get(key).and_then(Value::as_str).unwrap_or_default();
        self.calls.iter_mut().filter(|call| call.id == id).for_each(change);
    }
}
