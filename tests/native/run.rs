//! The agent loop: order of events, batches, limits, stopping, and being killed after every single effect.

use sessionlog::core::json::{Object, Value};
use sessionlog::core::run::{Approval, Cancel, Chunk, Config, Input, Machine, Status, Tool};

use crate::run_world::{Faults, World, call, config, finish, text, tool};

fn tools() -> Vec<Tool> {
    vec![
        tool("read", |t| (t.parallel, t.idempotent) = (true, true)),
        tool("write", |t| t.mutating = true),
        tool("ask", |t| (t.mutating, t.approval) = (true, Approval::Always)),
    ]
}

/// Two reads together, a barrier, one that needs a verdict; then the answer.
fn story() -> Vec<Vec<Chunk>> {
    let calls =
        vec![call("r1", "read", "{}"), call("r2", "read", ""), call("w", "write", "{}"), call("a", "ask", "{}")];
    let thought = Chunk::Reasoning { text: "hm".into(), opaque: Object::from([("signature", Value::from("c2ln"))]) };
    let first = [thought, text("let me see")].into_iter().chain(calls).chain([used("one"), finish("tool-calls")]);
    vec![first.collect(), vec![text("done"), used("two"), finish("stop")]]
}

fn used(what: &str) -> Chunk {
    Chunk::Usage(what.into())
}

fn run_with(script: Vec<Vec<Chunk>>, config: Config, change: impl FnOnce(&mut World)) -> World {
    let mut world = World { script, ..World::default() };
    change(&mut world);
    let mut machine = Machine::new(config);
    let first = machine.handle(Input::Start);
    world.drive(&mut machine, first, usize::MAX);
    assert!(machine.is_over());
    world.check("to its end");
    world
}

fn ended(world: &World) -> (Status, String) {
    let reason = world.all("turn/end").last().and_then(|end| end.at(&["reason", "kind"])).and_then(Value::as_str);
    (world.finish.as_ref().unwrap().status, reason.unwrap_or_default().to_owned())
}

fn result<'a>(world: &'a World, id: &str) -> &'a Value {
    world.all("tool/result").into_iter().find(|r| r.get("id").and_then(Value::as_str) == Some(id)).unwrap()
}

fn error_code<'a>(world: &'a World, id: &str) -> &'a str {
    result(world, id).at(&["error", "code"]).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn a_turn_keeps_the_order() {
    let world = run_with(story(), config(tools()), |_| {});
    let right = "turn/start user/message step/start DERIVE CHECKPOINT SEND assistant/message VALIDATE tool/call tool/call \
                 CHECKPOINT RUN_r1+r2 tool/result tool/result tool/call CHECKPOINT RUN_w tool/result ASK tool/call CHECKPOINT \
                 RUN_a tool/result step/end SETTLE CHECKPOINT step/start DERIVE CHECKPOINT SEND assistant/message step/end \
                 SETTLE turn/end FINISH";
    let trace: Vec<_> = world.trace.iter().map(|effect| effect.replace(' ', "_")).collect();
    assert_eq!(trace, right.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ended(&world), (Status::Completed, "completed".into()));
    assert_eq!(world.finish.unwrap().answer.as_deref(), Some("done"));
}

/// A way for a turn to go, whose every effect may be the last one.
struct Tale {
    name: &'static str,
    script: Vec<Vec<Chunk>>,
    faults: Faults,
    /// What comes from outside, before the effect of that number.
    event: Option<(usize, Input)>,
    /// How it ends when it is killed and resumed, unless the kill came too late to matter.
    ends: Status,
}

fn tale(name: &'static str) -> Tale {
    Tale { name, script: story(), faults: Faults::default(), event: None, ends: Status::Completed }
}

fn tales() -> Vec<Tale> {
    let faulty = vec![
        vec![
            call("u", "nobody", "{}"),
            call("x", "write", "[1]"),
            call("r1", "read", "{\"bad\":1}"),
            call("", "read", "{}"),
            call("w", "write", "{}"),
            call("w", "write", "{\"n\":2}"),
            used("one"),
            finish("tool-calls"),
        ],
        vec![text("sorry"), used("two"), finish("stop")],
    ];
    let steer = Input::Steer { id: "q".into(), text: "psst".into() };
    let stop = || Input::Cancel(Cancel::Asked(Some("enough".into())));
    vec![
        tale("all goes well"),
        Tale { faults: Faults { denied: true, ..Faults::default() }, ..tale("denied") },
        Tale { script: faulty, ..tale("faulty calls, ids that are blank or stand twice") },
        Tale { faults: Faults { overflow: Some(1), ..Faults::default() }, ..tale("too long") },
        Tale {
            faults: Faults { stream: Some(1), ..Faults::default() },
            ends: Status::Failed,
            ..tale("first stream cut")
        },
        Tale {
            faults: Faults { stream: Some(2), ..Faults::default() },
            ends: Status::Failed,
            ..tale("last stream cut")
        },
        Tale { event: Some((12, steer)), ..tale("steered") },
        Tale { event: Some((13, stop())), ends: Status::Cancelled, ..tale("stopped before a tool") },
        Tale { event: Some((17, stop())), ends: Status::Cancelled, ..tale("stopped between tools") },
        Tale {
            faults: Faults { checkpoint: Some(3), ..Faults::default() },
            ends: Status::Failed,
            ..tale("store full")
        },
    ]
}

/// What is done about a turn that was cut off.
#[derive(Clone, Copy, Debug)]
enum Policy {
    Close,
    Resume,
    /// The host answers all that is owed, then goes on.
    AskAll,
    /// It answers the first call and leaves the others to the loop.
    AskFirst,
}

const POLICIES: [Policy; 4] = [Policy::Close, Policy::Resume, Policy::AskAll, Policy::AskFirst];

fn begin(tale: &Tale, effects: usize) -> World {
    let mut world = World { script: tale.script.clone(), faults: tale.faults.clone(), ..World::default() };
    world.events.extend(tale.event.clone());
    let mut machine = Machine::new(config(tools()));
    let first = machine.handle(Input::Start);
    world.drive(&mut machine, first, effects);
    world
}

/// Reloads and recovers; says whether there was anything to recover.
fn recover(world: &mut World, policy: Policy, lose: bool, effects: usize) -> bool {
    if !world.reload(lose) {
        return false;
    }
    world.faults = Faults { denied: world.faults.denied, ..Faults::default() };
    match policy {
        Policy::Close => world.close(),
        Policy::Resume => world.resume_for(config(tools()), effects),
        Policy::AskAll => {
            world.host_answers(|_| true);
            world.resume_for(config(tools()), effects);
        }
        Policy::AskFirst => {
            world.host_answers(|at| at == 0);
            world.resume_for(config(tools()), effects);
        }
    }
    true
}

fn check_runs(world: &World, why: &str) {
    for (id, times) in &world.ran {
        assert!(*times == 1 || id.starts_with('r') || id.starts_with("call_"), "{why}: {id} ran {times} times");
    }
}

#[test]
fn killed_after_every_effect_every_turn_is_recovered_by_every_policy() {
    for tale in tales() {
        let whole = begin(&tale, usize::MAX);
        assert_eq!(ended(&whole).0, tale.ends, "{}", tale.name);
        whole.check(tale.name);
        for killed_after in 0..whole.effects {
            for (lose, policy) in [false, true].into_iter().flat_map(|lose| POLICIES.map(|policy| (lose, policy))) {
                let mut world = begin(&tale, killed_after);
                let last = world.trace.last().cloned();
                let why = format!("{}, killed after {killed_after} ({last:?}), lose {lose}, {policy:?}", tale.name);
                world.check_requests(&why, &world.log);
                if !recover(&mut world, policy, lose, usize::MAX) {
                    continue;
                }
                world.check(&why);
                check_runs(&world, &why);
                let (kind, end) = world.log.last().unwrap();
                assert_eq!(kind, "turn/end", "{why}");
                let reason = end.at(&["reason", "kind"]).and_then(Value::as_str);
                match policy {
                    Policy::Close => assert_eq!(reason, Some("interrupted"), "{why}"),
                    // What was about to fail or to be stopped has been forgotten with the process.
                    _ => assert_eq!(ended(&world), (Status::Completed, "completed".into()), "{why}"),
                }
            }
        }
    }
}

#[test]
fn killed_twice_the_turn_is_still_recovered_and_no_tool_runs_twice() {
    let tale = tale("all goes well");
    let whole = begin(&tale, usize::MAX);
    for first in 0..whole.effects {
        for second in 0..whole.effects {
            let why = format!("killed after {first}, then after {second} more");
            let mut world = begin(&tale, first);
            if !recover(&mut world, Policy::Resume, first % 2 == 0, second) {
                break;
            }
            world.check_requests(&why, &world.log);
            if recover(&mut world, Policy::Resume, second % 2 == 0, usize::MAX) {
                assert_eq!(ended(&world).0, Status::Completed, "{why}");
            }
            world.check(&why);
            check_runs(&world, &why);
        }
    }
}

#[test]
fn a_question_outlives_every_reload_and_is_asked_once() {
    let silent = Faults { silent: true, ..Faults::default() };
    let mut world = begin(&Tale { faults: silent, ..tale("nobody answers") }, usize::MAX);
    assert_eq!(world.kinds().last(), Some(&"approval/requested"));
    for _ in 0..3 {
        assert!(world.reload(false));
        world.resume(config(tools()));
        assert_eq!(world.kinds().last(), Some(&"approval/requested"), "it waits again");
        assert_eq!(world.all("approval/requested").len(), 1);
        world.check_requests("waiting", &world.log);
    }
    world.faults.silent = false;
    assert!(world.reload(false));
    world.resume(config(tools()));
    world.check("answered at last");
    assert_eq!((ended(&world).0, world.ran.get("a")), (Status::Completed, Some(&1)));
}

#[test]
fn stopped_before_every_effect_the_turn_ends_cancelled_and_everything_is_answered() {
    let whole = run_with(story(), config(tools()), |_| {});
    // Once the last answer has come whole, there is nothing left to stop.
    let last_request = whole.trace.iter().rposition(|effect| effect == "SEND").unwrap();
    for at in 1..whole.effects {
        let world = run_with(story(), config(tools()), |world| {
            world.events.insert(at, Input::Cancel(Cancel::Asked(Some("enough".into()))));
        });
        let (status, reason) = ended(&world);
        if at <= last_request {
            assert_eq!((status, reason.as_str()), (Status::Cancelled, "cancelled"), "before {at}: {:?}", world.trace);
        } else {
            assert_eq!(status, Status::Completed, "before {at}: {:?}", world.trace);
        }
        assert!(world.trace.iter().filter(|effect| *effect == "ABORT").count() <= 1);
    }
}

#[test]
fn a_stopped_answer_is_kept_as_a_part_and_its_calls_are_not_run() {
    let mut machine = Machine::new(config(tools()));
    machine.handle(Input::Start);
    machine.handle(Input::Derived);
    machine.handle(Input::CheckpointDone);
    let answer = machine.streaming().expect("the stream is open");
    answer.text("He");
    answer.text("llo");
    answer.args("w", Some("write"), "{\"path\":");
    answer.take(Chunk::Usage(Value::from("counted")));
    let effects = machine.handle(Input::Cancel(Cancel::Asked(None)));
    let shown = format!("{effects:?}");
    for part in [
        "Abort",
        "\"partial\", Bool(true)",
        "\"Hello\"",
        "cancelled before execution",
        "\"usage\", String(\"counted\")",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    assert!(machine.streaming().is_none(), "what still comes is nobody's");
}

#[test]
fn a_denied_call_is_answered_and_never_started() {
    let world = run_with(story(), config(tools()), |world| world.faults = Faults { denied: true, ..Faults::default() });
    assert_eq!(error_code(&world, "a"), "denied");
    assert!(!world.ran.contains_key("a"));
    assert!(world.all("tool/call").iter().all(|call| call.get("id").and_then(Value::as_str) != Some("a")));
    assert_eq!(ended(&world).0, Status::Completed);
}

#[test]
fn a_policy_asks_for_what_changes_something_and_is_not_covered() {
    let mut tools = tools();
    tools.iter_mut().for_each(|tool| tool.approval = Approval::Policy);
    for (patterns, asked) in [(vec![], vec!["w", "a"]), (vec!["write"], vec!["a"]), (vec!["*"], vec![])] {
        let config = Config { patterns: patterns.into_iter().map(str::to_owned).collect(), ..config(tools.clone()) };
        let world = run_with(story(), config, |_| {});
        let ids: Vec<_> = world.all("approval/requested").iter().filter_map(|r| r.get("callId")?.as_str()).collect();
        assert_eq!(ids, asked);
    }
}

#[test]
fn calls_that_cannot_run_get_an_error_and_the_model_goes_on() {
    let script = vec![
        vec![
            call("u", "nobody", "{}"),
            call("x", "write", "[1]"),
            call("y", "write", "{\"bad\":1}"),
            finish("tool-calls"),
        ],
        vec![text("sorry"), finish("stop")],
    ];
    let world = run_with(script, config(tools()), |_| {});
    assert_eq!(error_code(&world, "u"), "unknown_tool");
    assert_eq!(error_code(&world, "x"), "invalid_arguments");
    assert_eq!(error_code(&world, "y"), "invalid_arguments");
    assert!(world.ran.is_empty());
    assert_eq!(ended(&world).0, Status::Completed);
}

#[test]
fn a_turn_takes_no_more_steps_than_allowed() {
    let step = |id: &str| vec![call(id, "read", "{}"), finish("tool-calls")];
    let script: Vec<_> = (0..9).map(|n| step(&format!("r{n}"))).collect();
    let world = run_with(script, Config { max_steps: 3, ..config(tools()) }, |_| {});
    assert_eq!(ended(&world), (Status::MaxSteps, "max-steps".into()));
    assert_eq!((world.requests, world.finish.unwrap().steps), (3, 3));
}

#[test]
fn a_budget_is_set_aside_before_and_settled_after_each_request() {
    let step = |id: &str| vec![call(id, "read", "{}"), finish("tool-calls")];
    for (budget, requests) in [(0, 0), (1, 1), (10, 1), (19, 1), (20, 2), (35, 3)] {
        let script: Vec<_> = (0..9).map(|n| step(&format!("r{n}"))).collect();
        let config = Config { budget: Some(budget), ..config(tools()) };
        let world = run_with(script, config, |world| world.step_cost = 10);
        assert_eq!((ended(&world).0, world.requests), (Status::BudgetReached, requests), "budget {budget}");
    }
    // Nothing more is to be asked: the answer counts, whatever it cost.
    let config = Config { budget: Some(5), ..config(tools()) };
    let world = run_with(vec![vec![text("dear"), finish("stop")]], config, |world| world.step_cost = 10);
    assert_eq!(ended(&world).0, Status::Completed);
}

#[test]
fn a_broken_stream_keeps_what_came_and_fails_honestly() {
    let world = run_with(story(), config(tools()), |world| world.faults.stream = Some(1));
    assert_eq!(ended(&world), (Status::Failed, "error".into()));
    assert!(world.ran.is_empty());
    assert_eq!(world.all("assistant/message").first().and_then(|m| m.get("partial")), Some(&Value::Bool(true)));
    assert_eq!(world.all("error").first().and_then(|e| e.get("code")).and_then(Value::as_str), Some("cut_off"));
    assert_eq!(world.finish.unwrap().error.unwrap().code, "cut_off");
}

#[test]
fn a_request_that_is_too_long_is_made_shorter_once() {
    let world = run_with(story(), config(tools()), |world| world.faults.overflow = Some(1));
    assert_eq!((ended(&world).0, world.compactions), (Status::Completed, 1));
}

#[test]
fn a_long_session_is_compacted_when_the_turn_is_over() {
    for (limit, compactions) in [(100, 1), (101, 0)] {
        let config = Config { compact_at: Some(limit), ..config(tools()) };
        let world = run_with(story(), config, |_| {});
        assert_eq!((world.compactions, ended(&world).0), (compactions, Status::Completed));
        assert_eq!(world.kinds().last(), Some(&"turn/end"));
    }
}

#[test]
fn nothing_runs_that_could_not_be_made_durable() {
    for from in 1..=6 {
        let world = run_with(story(), config(tools()), |world| world.faults.checkpoint = Some(from));
        assert_eq!(ended(&world), (Status::Failed, "error".into()), "checkpoint {from}");
        assert_eq!(world.finish.as_ref().unwrap().error.as_ref().unwrap().code, "quota");
        let sent = world.trace.iter().filter(|e| *e == "SEND" || e.starts_with("RUN")).count();
        let done = world.checkpoints - 1;
        assert!(sent <= done, "checkpoint {from}: {:?}", world.trace);
    }
}

#[test]
fn what_is_said_meanwhile_is_heard_before_the_next_step_and_before_the_end() {
    let whole = run_with(story(), config(tools()), |_| {});
    for at in 1..whole.effects {
        let mut script = story();
        script.push(vec![text("heard"), finish("stop")]);
        let world = run_with(script, config(tools()), |world| {
            world.events.insert(at, Input::Steer { id: "q".into(), text: "psst".into() });
        });
        if world.all("queue/added").is_empty() {
            continue;
        }
        let place = |kind: &str| world.kinds().iter().position(|k| *k == kind);
        match place("steering/message") {
            Some(heard) => {
                assert_eq!(world.kinds().get(heard - 1), Some(&"queue/claimed"));
                assert_eq!(world.kinds().get(heard + 1), Some(&"step/start"));
            }
            None => assert_eq!(world.finish.as_ref().unwrap().drafts, ["q"], "said at {at}: it is kept as a draft"),
        }
    }
}

#[test]
fn a_call_that_holds_redacted_text_is_not_run_from_the_log() {
    let script = vec![
        vec![call("w", "write", "{\"text\":\"[REDACTED:key]\"}"), finish("tool-calls")],
        vec![text("ok"), finish("stop")],
    ];
    let mut world = World { script, ..World::default() };
    let mut machine = Machine::new(config(tools()));
    let first = machine.handle(Input::Start);
    // Killed right after the answer was appended.
    world.drive(&mut machine, first, 7);
    assert_eq!(world.kinds().last(), Some(&"assistant/message"));
    assert!(world.reload(false));
    world.resume(config(tools()));
    world.check("recovered");
    assert_eq!(error_code(&world, "w"), "redacted");
    assert!(world.ran.is_empty());
}

#[test]
fn a_verdict_about_other_arguments_is_none_after_a_reload_either() {
    for (args, runs) in [("{}", true), ("{\"n\":1}", false)] {
        let silent = Faults { silent: true, ..Faults::default() };
        let mut world = begin(&Tale { faults: silent, ..tale("nobody answers") }, usize::MAX);
        let event =
            |text: String| sessionlog::core::json::parse(&text, sessionlog::core::json::Surrogates::Refuse).unwrap();
        // Somebody asks once more, under the same id.
        let asked = world.log.pop().unwrap().0;
        world.log.push((asked, event(format!(r#"{{"callId":"a","name":"ask","args":{args}}}"#))));
        world.log.push(("approval/resolved".into(), event(r#"{"callId":"a","verdict":"approved"}"#.into())));
        world.faults.silent = false;
        assert!(world.reload(false));
        world.resume(config(tools()));
        world.check(args);
        assert_eq!(world.ran.contains_key("a"), runs, "{args}");
    }
}

#[test]
fn whatever_cannot_be_appended_the_turn_is_closed_on_what_the_log_holds() {
    let kinds = [
        "user/message",
        "step/start",
        "assistant/message",
        "tool/call",
        "tool/result",
        "step/end",
        "turn/end",
        "error",
    ];
    for kind in kinds {
        for (times, stream) in (1..=4).flat_map(|times| [(times, None), (times, Some(1)), (times, Some(2))]) {
            if kind == "error" && stream.is_none() {
                continue;
            }
            let faults = Faults { refused: Some((kind, times)), stream, ..Faults::default() };
            let mut world = World { script: story(), faults, ..World::default() };
            let mut machine = Machine::new(config(tools()));
            let first = machine.handle(Input::Start);
            world.drive(&mut machine, first, usize::MAX);
            let why = format!("{kind} refused {times} times, stream {stream:?}");
            assert!(machine.is_over(), "{why}");
            assert_eq!(world.finish.as_ref().unwrap().status, Status::Failed, "{why}");
            world.check_requests(&why, &world.log);
            let seen = |id: &str| {
                let parts = world.all("assistant/message").into_iter().filter_map(|m| m.get("parts")?.as_array());
                parts.flatten().any(|part| part.get("id").and_then(Value::as_str) == Some(id))
            };
            for result in world.all("tool/result") {
                assert!(seen(result.get("id").and_then(Value::as_str).unwrap()), "{why}: a result of nothing");
            }
            // What is refused again and again cannot be closed with it; a reload closes it then.
            if times == 1 || (kind != "step/end" && kind != "turn/end" && kind != "tool/result") {
                world.check(&why);
            }
        }
    }
}

#[test]
fn a_session_that_goes_while_a_verdict_is_awaited_leaves_the_question_open() {
    let mut machine = Machine::new(config(tools()));
    machine.handle(Input::Start);
    machine.handle(Input::Derived);
    machine.handle(Input::CheckpointDone);
    machine.streaming().unwrap().take(call("a", "ask", "{}"));
    machine.handle(Input::StreamEnded);
    let effects = format!("{:?}", machine.handle(Input::Validated(vec![])));
    assert!(effects.contains("Ask"), "{effects}");
    let effects = format!("{:?}", machine.handle(Input::Cancel(Cancel::Disposed)));
    assert!(effects.contains("Suspended") && !effects.contains("turn/end"), "{effects}");
}

#[test]
fn pieces_of_an_answer_that_was_cut_off_are_closed_as_a_part() {
    let mut world = World::default();
    let event = |json: &str| sessionlog::core::json::parse(json, sessionlog::core::json::Surrogates::Refuse).unwrap();
    for (kind, data) in [
        ("turn/start", r#"{"turn":1,"trigger":{"kind":"message"}}"#),
        ("user/message", r#"{"text":"q"}"#),
        ("step/start", r#"{"turn":1,"step":1,"provider":"p","model":"m"}"#),
        ("assistant/chunk", r#"{"turn":1,"step":1,"kind":"reasoning","text":"hm"}"#),
        ("assistant/chunk", r#"{"turn":1,"step":1,"kind":"text","text":"He"}"#),
        ("assistant/chunk", r#"{"turn":1,"step":1,"kind":"text","text":"llo"}"#),
        ("assistant/chunk", r#"{"turn":1,"step":1,"kind":"tool-args","text":"{\"a\"","id":"c"}"#),
    ] {
        world.log.push((kind.into(), event(data)));
    }
    world.close();
    world.check("closed");
    assert_eq!(world.kinds().get(7..), Some(&["assistant/message", "step/end", "turn/end"][..]));
    let right = r#"{"turn":1,"step":1,"provider":"p","model":"m","parts":[{"type":"reasoning","text":"hm"},{"type":"text","text":"Hello"}],"partial":true}"#;
    assert_eq!(world.all("assistant/message").first().map(|m| m.to_text()).as_deref(), Some(right));
}
