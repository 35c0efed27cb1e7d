//! A world for the agent loop to run in: a log, a store that may lose what was not checkpointed, a model, tools.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sessionlog::core::derive::{Deriver, EventSource, NoBlobs, RequestOptions, TARGETS};
use sessionlog::core::event::EventView;
use sessionlog::core::id::EventId;
use sessionlog::core::json::{self, Object, Surrogates, Value};
use sessionlog::core::log::NewEvent;
use sessionlog::core::run::{Chunk, Config, Effect, Fault, Input, Machine, Outcome, Past, Ready, Tool, take_all};
use sessionlog::core::session::Session;

thread_local! {
    static JUDGED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// What goes wrong, when asked for.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Checkpoints from this one on fail.
    pub checkpoint: Option<usize>,
    /// The stream of this request breaks after its chunks.
    pub stream: Option<usize>,
    /// This request is too long, until the session was compacted.
    pub overflow: Option<usize>,
    /// The verdict on everything that is asked.
    pub denied: bool,
    /// Nobody gives a verdict: the turn waits.
    pub silent: bool,
    /// Events of this type are refused, so many times.
    pub refused: Option<(&'static str, usize)>,
}

/// The world around a machine.
#[derive(Default)]
pub struct World {
    pub log: Vec<(String, Value)>,
    /// So many events survive whatever happens.
    pub durable: usize,
    /// How often each call was run.
    pub ran: BTreeMap<String, u32>,
    /// What the model answers, request by request: the number of whole answers in the log says which is next.
    pub script: Vec<Vec<Chunk>>,
    pub faults: Faults,
    /// Requests sent and checkpoints asked for, in all.
    pub requests: usize,
    pub checkpoints: usize,
    pub compactions: usize,
    /// Cost of each step.
    pub step_cost: i128,
    /// Inputs to be given right before the effect of that number.
    pub events: BTreeMap<usize, Input>,
    pub effects: usize,
    /// Every effect, by name.
    pub trace: Vec<String>,
    pub finish: Option<sessionlog::core::run::Finish>,
    /// Calls that the host has answered, and how often each had run by then.
    pub answered: Vec<(String, u32)>,
}

pub fn text(words: &str) -> Chunk {
    Chunk::Text(words.into())
}

pub fn finish(reason: &str) -> Chunk {
    Chunk::Finish { reason: reason.into(), response_id: None }
}

pub fn call(id: &str, name: &str, args: &str) -> Chunk {
    Chunk::Call { id: id.into(), name: name.into(), args: args.into(), opaque: Object::default() }
}

pub fn tool(name: &str, change: impl FnOnce(&mut Tool)) -> Tool {
    let mut tool = Tool { name: name.into(), ..Tool::default() };
    change(&mut tool);
    tool
}

pub fn config(tools: Vec<Tool>) -> Config {
    Config {
        turn: 1,
        trigger: [("kind".to_owned(), Value::from("message"))].into_iter().collect(),
        user: Some([("text".to_owned(), Value::from("do it"))].into_iter().collect()),
        provider: "p".into(),
        model: "m".into(),
        api: "openai-chat".into(),
        max_steps: 25,
        tools,
        ..Config::default()
    }
}

fn field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl World {
    /// Runs a machine until it is over, or until so many effects have been carried out (counted over all runs).
    pub fn drive(&mut self, machine: &mut Machine, first: Vec<Effect>, stop_after: usize) {
        let mut effects: VecDeque<Effect> = first.into();
        let mut inputs: VecDeque<Input> = VecDeque::new();
        loop {
            while let Some(effect) = effects.pop_front() {
                if self.effects == stop_after {
                    return;
                }
                inputs.extend(self.events.remove(&self.effects));
                self.effects += 1;
                if self.refuses(&effect) {
                    let lost = std::iter::once(effect).chain(effects.drain(..)).filter_map(|effect| match effect {
                        Effect::Append(kind, data) => Some((kind.to_owned(), field(&data.into(), "id").to_owned())),
                        _ => None,
                    });
                    let lost = lost.collect();
                    inputs.push_front(Input::AppendFailed { fault: Fault::new("scrubber_contract", "no"), lost });
                    break;
                }
                self.perform(effect, machine, &mut inputs);
                if self.finish.is_some() {
                    return;
                }
            }
            let Some(input) = inputs.pop_front() else {
                assert!(self.faults.silent, "the machine waits for nothing: {:?}", self.trace);
                return;
            };
            effects.extend(machine.handle(input));
        }
    }

    fn perform(&mut self, effect: Effect, machine: &mut Machine, inputs: &mut VecDeque<Input>) {
        self.trace.push(name(&effect));
        match effect {
            // A verdict that came first stands.
            Effect::Append("approval/resolved", data) if self.is_resolved(data.get("callId")) => {}
            Effect::Append(kind, data) => self.log.push((kind.to_owned(), data.into())),
            Effect::Checkpoint => inputs.push_back(self.checkpoint()),
            Effect::Derive(_) => {
                self.check_requests("to be sent", &self.log);
                inputs.push_back(Input::Derived);
            }
            Effect::Send(_) => self.send(machine, inputs),
            Effect::Validate(calls) => {
                let bad = calls.iter().filter(|call| call.args.get("bad").is_some());
                inputs.push_back(Input::Validated(bad.map(|call| (call.id.clone(), "bad".to_owned())).collect()));
            }
            Effect::Ask { call, asked } => self.ask(call, asked, inputs),
            Effect::Run(calls) => calls.into_iter().rev().for_each(|call| self.run(call, inputs)),
            Effect::Compact => {
                self.compactions += 1;
                inputs.push_back(Input::Compacted(true));
            }
            Effect::Settle => {
                let steps = self.log.iter().filter(|(kind, _)| kind == "step/end").count();
                let spent = self.step_cost * steps as i128;
                inputs.push_back(Input::Settled { spent, prompt_tokens: 100 });
            }
            Effect::Abort => {}
            Effect::Finish(finish) => self.finish = Some(finish),
        }
    }

    fn refuses(&mut self, effect: &Effect) -> bool {
        let Effect::Append(kind, _) = effect else { return false };
        match &mut self.faults.refused {
            Some((refused, times)) if refused == kind && *times > 0 => {
                *times -= 1;
                true
            }
            _ => false,
        }
    }

    fn is_resolved(&self, call: Option<&Value>) -> bool {
        self.all("approval/resolved").iter().any(|data| data.get("callId") == call)
    }

    fn checkpoint(&mut self) -> Input {
        self.checkpoints += 1;
        if self.faults.checkpoint.is_some_and(|from| self.checkpoints >= from) {
            return Input::CheckpointFailed(Fault::new("quota", "full"));
        }
        self.durable = self.log.len();
        Input::CheckpointDone
    }

    fn send(&mut self, machine: &mut Machine, inputs: &mut VecDeque<Input>) {
        let late = self.log.iter().skip(self.durable).find(|(kind, _)| !kind.starts_with("queue/"));
        assert_eq!(late, None, "a request goes out before its past is durable");
        self.requests += 1;
        if self.faults.overflow == Some(self.requests) && self.compactions == 0 {
            let fault = Fault::new("context_overflow", "too long");
            return inputs.push_back(Input::StreamFailed { fault, overflow: true });
        }
        let whole = |value: &Value| value.get("partial").is_none();
        let answers = self.log.iter().filter(|(kind, data)| kind == "assistant/message" && whole(data)).count();
        take_all(machine, self.script.get(answers).expect("the model has something to say").clone());
        inputs.push_back(if self.faults.stream == Some(self.requests) {
            Input::StreamFailed { fault: Fault::new("cut_off", "cut"), overflow: false }
        } else {
            Input::StreamEnded
        });
    }

    fn ask(&mut self, call: Ready, asked: bool, inputs: &mut VecDeque<Input>) {
        fn event<const N: usize>(pairs: [(&str, Value); N]) -> Value {
            Object::from(pairs).into()
        }
        if !asked {
            self.log.push((
                "approval/requested".into(),
                event([("callId", call.id.as_str().into()), ("name", call.name.into()), ("args", call.args.into())]),
            ));
        }
        if self.faults.silent {
            return;
        }
        let verdict = if self.faults.denied { "denied" } else { "approved" };
        self.log.push((
            "approval/resolved".into(),
            event([("callId", call.id.as_str().into()), ("verdict", verdict.into())]),
        ));
        inputs.push_back(Input::Verdict { call: call.id, approved: !self.faults.denied, reason: None });
    }

    fn run(&mut self, call: Ready, inputs: &mut VecDeque<Input>) {
        let started = |(kind, data): &(String, Value)| kind == "tool/call" && field(data, "id") == call.id;
        let at = self.log.iter().position(started).expect("a tool runs only when its call stands in the log");
        assert!(at < self.durable, "a tool runs only when its call is durable");
        *self.ran.entry(call.id.clone()).or_default() += 1;
        inputs.push_back(Input::ToolDone { call: call.id, outcome: Outcome::done("ok") });
    }

    /// Everything is gone but the log (as far as it was stored); returns whether its turn is still open.
    pub fn reload(&mut self, lose: bool) -> bool {
        if lose {
            self.log.truncate(self.durable);
        }
        self.durable = self.log.len();
        self.events.clear();
        let last = self.log.iter().rev().find(|(kind, _)| kind == "turn/start" || kind == "turn/end");
        last.is_some_and(|(kind, _)| kind == "turn/start")
    }

    pub fn resume(&mut self, config: Config) {
        self.resume_for(config, usize::MAX);
    }

    /// Goes on with the turn, for so many more effects.
    pub fn resume_for(&mut self, config: Config, effects: usize) {
        self.finish = None;
        let past: Vec<_> = self.log.clone();
        let events = past.iter().map(|(kind, data)| Past { kind, data });
        let (mut machine, first) = Machine::recover(config, events);
        let effects = self.effects.saturating_add(effects);
        self.drive(&mut machine, first, effects);
    }

    fn session(&self) -> Session {
        let mut session = Session::new(Object::default());
        for (at, (kind, data)) in self.log.iter().enumerate() {
            let data = data.to_text();
            let id = EventId(at as u64);
            session.append(&NewEvent {
                id,
                at: 0,
                kind,
                data: &data,
                note: None,
                salt: [0; 16],
                was: None,
                extra: None,
            });
        }
        session
    }

    /// Closes the open turn as a store does when it loads a session.
    pub fn close(&mut self) {
        for closer in self.session().closers() {
            let data = json::parse(&closer.data.to_text(), Surrogates::Refuse).unwrap();
            self.log.push((closer.kind.to_owned(), data));
        }
    }

    /// The host answers what is owed, as it does after `ask`: it knows better than anybody what became of it.
    pub fn host_answers(&mut self, which: impl Fn(usize) -> bool) {
        let owed = self.session().pending_calls();
        for call in owed.into_iter().enumerate().filter(|(at, _)| which(*at)).map(|(_, call)| call) {
            let text = format!(r#"{{"turn":1,"id":"{}","content":"said by the host"}}"#, call.id);
            self.log.push(("tool/result".into(), json::parse(&text, Surrogates::Refuse).unwrap()));
            // From here on nobody may run it; one of an answer that broke off may come again under the same id.
            let answer = self.all("assistant/message").last().copied();
            if answer.is_some_and(|answer| answer.get("partial").is_some()) {
                continue;
            }
            self.answered.push((call.id.clone(), self.ran.get(&call.id).copied().unwrap_or_default()));
        }
    }

    /// Every target takes the request that this log yields, now and with a next message of the user's.
    pub fn check_requests(&self, why: &str, log: &[(String, Value)]) {
        // Many ways lead to the same log.
        let key: String = log.iter().flat_map(|(kind, data)| [kind.clone(), data.to_text()]).collect();
        if !JUDGED.with_borrow_mut(|judged| judged.insert(key)) {
            return;
        }
        let next = ("user/message".to_owned(), Value::from(Object::from([("text", Value::from("and now?"))])));
        let with_next: Vec<_> = log.iter().cloned().chain([next]).collect();
        for log in [log, &with_next[..]] {
            let lines = Lines(log.iter().map(|(kind, data)| (kind.clone(), data.to_text())).collect());
            for target in TARGETS {
                let options = RequestOptions::parse(&format!(r#"{{"target":"{}"}}"#, target.name)).unwrap();
                let request = Deriver::new().request(&lines, &options, &NoBlobs);
                let mut judge = target.validator();
                let mut judged = Ok(());
                for message in &request.messages {
                    judged = judged.and_then(|()| judge.message(&json::parse(message, Surrogates::Refuse).unwrap()));
                }
                let verdict = judged.and_then(|()| judge.end(false));
                assert_eq!(verdict, Ok(()), "{why}: {target:?} refuses {:?} of {:?}", request.messages, lines.0);
            }
        }
    }

    pub fn kinds(&self) -> Vec<&str> {
        self.log.iter().map(|(kind, _)| kind.as_str()).collect()
    }

    pub fn all<'a>(&'a self, kind: &str) -> Vec<&'a Value> {
        self.log.iter().filter(|(k, _)| k == kind).map(|(_, data)| data).collect()
    }

    /// What must be true of the log of a turn that is over, however it got there.
    pub fn check(&self, why: &str) {
        self.check_requests(why, &self.log);
        self.check_usage(why);
        for (id, times) in &self.answered {
            assert_eq!(self.ran.get(id).copied().unwrap_or_default(), *times, "{why}: {id} ran though it was answered");
        }
        let kinds = self.kinds();
        let count = |kind: &str| kinds.iter().filter(|k| **k == kind).count();
        assert_eq!(count("turn/start"), count("turn/end"), "{why}: {kinds:?}");
        assert_eq!(count("step/start"), count("step/end"), "{why}: {kinds:?}");
        let mut open: Vec<String> = Vec::new();
        let mut in_step = false;
        for (kind, data) in &self.log {
            match kind.as_str() {
                "step/start" => {
                    assert!(!in_step && open.is_empty(), "{why}: a step inside a step: {kinds:?}");
                    in_step = true;
                }
                "assistant/message" => {
                    let parts = data.get("parts").and_then(Value::as_array).unwrap_or_default();
                    let calls = parts.iter().filter(|part| field(part, "type") == "tool-call");
                    open.extend(calls.map(|part| field(part, "id").to_owned()));
                }
                "tool/result" => {
                    assert_eq!(open.first().map(String::as_str), Some(field(data, "id")), "{why}: {kinds:?}");
                    open.remove(0);
                }
                "step/end" | "turn/end" => {
                    assert!(open.is_empty(), "{why}: {open:?} have no result: {kinds:?}");
                    in_step = false;
                }
                _ => {}
            }
        }
        let unique = |kind: &str, key: &str| {
            let ids: Vec<_> = self.all(kind).iter().map(|data| field(data, key).to_owned()).collect();
            let set: std::collections::BTreeSet<_> = ids.iter().collect();
            assert_eq!(set.len(), ids.len(), "{why}: {kind} twice for one call");
        };
        unique("tool/call", "id");
        unique("approval/requested", "callId");
        unique("approval/resolved", "callId");
    }

    /// What an answer has used stands at the end of its step, whatever happened between.
    fn check_usage(&self, why: &str) {
        let mut used = None;
        for (kind, data) in &self.log {
            match kind.as_str() {
                "step/start" => used = None,
                "assistant/message" => used = data.get("usage").cloned(),
                "step/end" if used.is_some() => {
                    assert_eq!(data.get("usage"), used.as_ref(), "{why}: the usage of a step is lost");
                }
                _ => {}
            }
        }
    }
}

struct Lines(Vec<(String, String)>);

impl EventSource for Lines {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn event(&self, seq: u64) -> Option<EventView<'_>> {
        let (kind, data) = self.0.get(seq as usize)?;
        Some(EventView { seq, id: EventId(seq), at: 0, kind, data, note: None })
    }
}

fn name(effect: &Effect) -> String {
    match effect {
        Effect::Append(kind, _) => (*kind).to_owned(),
        Effect::Checkpoint => "CHECKPOINT".into(),
        Effect::Derive(_) => "DERIVE".into(),
        Effect::Send(_) => "SEND".into(),
        Effect::Validate(_) => "VALIDATE".into(),
        Effect::Ask { .. } => "ASK".into(),
        Effect::Run(calls) => format!("RUN {}", calls.iter().map(|c| c.id.as_str()).collect::<Vec<_>>().join("+")),
        Effect::Compact => "COMPACT".into(),
        Effect::Settle => "SETTLE".into(),
        Effect::Abort => "ABORT".into(),
        Effect::Finish(_) => "FINISH".into(),
    }
}
