//! Calls without a result, and the events that close a turn that was cut off.

use super::State;
use crate::core::json::{self, Object, Surrogates, Value};
use crate::core::log::Log;

/// A call that has no result yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// Call id.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Whether its tool was started, so that its outcome is unknown.
    pub started: bool,
}

/// An event that closes something: its type and payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Closer {
    /// Event type.
    pub kind: &'static str,
    /// Payload.
    pub data: Object,
}

/// Returns the calls without a result, in call order, since the open turn began or else over the last turn.
pub fn pending_calls(log: &Log, state: &State) -> Vec<PendingCall> {
    let from = state.open_turn().map_or_else(|| last_turn(log), |turn| turn.start);
    let mut calls: Vec<PendingCall> = Vec::new();
    for event in log.range(from, log.len()) {
        if !matches!(event.kind, "assistant/message" | "tool/call" | "tool/result") {
            continue;
        }
        let Ok(data) = json::parse(event.data, Surrogates::Replace) else { continue };
        match event.kind {
            "assistant/message" => data.get("parts").and_then(Value::as_array).into_iter().flatten().for_each(|part| {
                let is_call = part.get("type").and_then(Value::as_str) == Some("tool-call");
                let executed = part.get("providerExecuted").and_then(Value::as_bool) == Some(true);
                if is_call && !executed {
                    calls.push(pending(part, false));
                }
            }),
            "tool/call" => {
                let call = pending(&data, true);
                match calls.iter_mut().find(|c| c.id == call.id && !c.started) {
                    Some(known) => known.started = true,
                    None => calls.push(call),
                }
            }
            _ => {
                let id = text(&data, "id");
                if let Some(at) = calls.iter().position(|c| c.id == id) {
                    calls.remove(at);
                }
            }
        }
    }
    calls
}

fn last_turn(log: &Log) -> u64 {
    (0..log.len()).rev().find(|seq| log.event(*seq).is_some_and(|e| e.kind == "turn/start")).unwrap_or(0)
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn pending(value: &Value, started: bool) -> PendingCall {
    PendingCall { id: text(value, "id"), name: text(value, "name"), started }
}

/// Returns the events that close the open turn: a result per pending call, the open step, the turn.
pub fn closers(log: &Log, state: &State) -> Vec<Closer> {
    let Some(turn) = state.open_turn() else { return Vec::new() };
    let mut out: Vec<Closer> = turn.step.and_then(|_| partial_answer(log, turn.start)).into_iter().collect();
    out.extend(pending_calls(log, state).iter().map(|call| result_closer(call, turn.turn)));
    if let Some(step) = turn.step {
        let mut data = Object::from([("turn", Value::from(turn.turn)), ("step", step.into())]);
        if let Some(usage) = counted(log, turn.start) {
            data.set("usage", usage);
        }
        out.push(Closer { kind: "step/end", data });
    }
    let reason = Object::from([("kind", Value::from("interrupted"))]);
    let data = Object::from([("turn", Value::from(turn.turn)), ("reason", reason.into())]);
    out.push(Closer { kind: "turn/end", data });
    out
}

/// What the answer of the open step says it has used: that is paid for, whatever became of its calls.
fn counted(log: &Log, from: u64) -> Option<Value> {
    let last = (from..log.len()).rev().filter_map(|seq| log.event(seq));
    let answer = last.take_while(|e| e.kind != "step/start").find(|e| e.kind == "assistant/message")?;
    json::parse(answer.data, Surrogates::Replace).ok()?.get("usage").cloned()
}

/// What had arrived of the answer of the open step, when it stands in the log in pieces only.
fn partial_answer(log: &Log, from: u64) -> Option<Closer> {
    let mut message = Object::default();
    let mut parts: Vec<(String, String)> = Vec::new();
    for event in log.range(from, log.len()) {
        if !matches!(event.kind, "step/start" | "assistant/chunk" | "assistant/message") {
            continue;
        }
        let data = json::parse(event.data, Surrogates::Replace).unwrap_or_default();
        match event.kind {
            "step/start" => {
                parts.clear();
                let keys = ["turn", "step", "provider", "model"];
                message = keys.iter().filter_map(|key| Some(((*key).to_owned(), data.get(key)?.clone()))).collect();
            }
            "assistant/chunk" => add_piece(&mut parts, &text(&data, "kind"), &text(&data, "text")),
            _ => parts.clear(),
        }
    }
    if parts.is_empty() {
        return None;
    }
    let part =
        |(kind, text): (String, String)| Object::from([("type", Value::from(kind)), ("text", text.into())]).into();
    message.set("parts", parts.into_iter().map(part).collect::<Vec<Value>>());
    message.set("partial", true);
    Some(Closer { kind: "assistant/message", data: message })
}

/// Adds a piece to the part that it goes on with; pieces of arguments make no call.
fn add_piece(parts: &mut Vec<(String, String)>, kind: &str, more: &str) {
    match parts.last_mut() {
        _ if kind == "tool-args" || more.is_empty() => {}
        Some((last, text)) if last == kind => text.push_str(more),
        _ => parts.push((kind.to_owned(), more.to_owned())),
    }
}

/// A started call may have had its effect: its closer never claims that it did not run.
fn result_closer(call: &PendingCall, turn: i64) -> Closer {
    let (code, message) = if call.started {
        ("outcome_unknown", "The session was interrupted while this tool was running; its outcome is unknown.")
    } else {
        ("not_started", "The session was interrupted before this tool was started; it is safe to call it again.")
    };
    let error = Object::from([("code", Value::from(code)), ("message", message.into())]);
    let data = Object::from([
        ("turn", Value::from(turn)),
        ("id", call.id.as_str().into()),
        ("content", message.into()),
        ("isError", true.into()),
        ("error", error.into()),
        ("synthetic", true.into()),
    ]);
    Closer { kind: "tool/result", data }
}
