//! Inputs and effects as JSON, for drivers on the other side of the module's border.

use super::answer::Chunk;
use super::effect::{Cancel, Effect, Fault, Finish, Input, Outcome, Ready};
use super::object;
use crate::core::error::{Error, Kind, Result};
use crate::core::json::{Object, Value};

/// Reads an input: `{type, …}`.
pub fn read_input(value: &Value) -> Result<Input> {
    let fault = || read_fault(value);
    Ok(match kind(value) {
        "start" => Input::Start,
        "checkpoint-done" => Input::CheckpointDone,
        "checkpoint-failed" => Input::CheckpointFailed(fault()),
        "append-failed" => Input::AppendFailed { fault: fault(), lost: read_lost(value) },
        "derived" => Input::Derived,
        "derive-failed" => Input::DeriveFailed(fault()),
        "chunk" => Input::Chunk(read_chunk(value.get("chunk").unwrap_or(&Value::Null))?),
        "stream-ended" => Input::StreamEnded,
        "stream-failed" => Input::StreamFailed { fault: fault(), overflow: flag(value, "overflow") },
        "compacted" => Input::Compacted(flag(value, "done")),
        "validated" => Input::Validated(read_validated(value)),
        "verdict" => Input::Verdict {
            call: text(value, "callId"),
            approved: flag(value, "approved"),
            reason: optional(value, "reason"),
        },
        "tool-done" => Input::ToolDone { call: text(value, "callId"), outcome: read_outcome(value) },
        "settled" => Input::Settled {
            spent: value.get("spent").and_then(Value::as_str).and_then(|n| n.parse().ok()).unwrap_or_default(),
            prompt_tokens: value
                .get("promptTokens")
                .and_then(Value::as_i64)
                .and_then(|n| n.try_into().ok())
                .unwrap_or_default(),
        },
        "steer" => Input::Steer { id: text(value, "id"), text: text(value, "text") },
        "cancel" if flag(value, "disposed") => Input::Cancel(Cancel::Disposed),
        "cancel" => Input::Cancel(Cancel::Asked(optional(value, "reason"))),
        _ => return Err(unknown("input")),
    })
}

/// Reads a piece of a stream, as adapters yield it.
pub fn read_chunk(value: &Value) -> Result<Chunk> {
    Ok(match kind(value) {
        "text" => {
            let opaque = pick(value, &["thoughtSignature", "itemId"]);
            let text = text(value, "text");
            if opaque.is_empty() { Chunk::Text(text) } else { Chunk::SignedText { text, opaque } }
        }
        "reasoning" => Chunk::Reasoning {
            text: text(value, "text"),
            opaque: pick(value, &["signature", "redacted", "encrypted", "itemId"]),
        },
        "tool-call" => Chunk::Call {
            id: text(value, "id"),
            name: text(value, "name"),
            args: text(value, "args"),
            opaque: pick(value, &["thoughtSignature", "itemId", "providerExecuted"]),
        },
        "tool-args" => {
            Chunk::Args { id: text(value, "id"), name: optional(value, "name"), delta: text(value, "delta") }
        }
        "usage" => Chunk::Usage(value.get("usage").cloned().unwrap_or_default()),
        "finish" => Chunk::Finish { reason: text(value, "reason"), response_id: optional(value, "responseId") },
        _ => return Err(unknown("answer chunk")),
    })
}

/// Writes effects as one JSON text: a list of `{type, …}`.
pub fn write_effects(effects: Vec<Effect>) -> String {
    Value::from(effects.into_iter().map(|effect| Value::from(write_effect(effect))).collect::<Vec<_>>()).to_text()
}

fn write_effect(effect: Effect) -> Object {
    let plain = |name: &str| object([("type", name)]);
    let with = |name: &str, key: &str, value: Value| object([("type", Value::from(name)), (key, value)]);
    let calls = |calls: Vec<Ready>| Value::from(calls.into_iter().map(write_ready).collect::<Vec<_>>());
    match effect {
        Effect::Append(kind, data) => {
            object([("type", Value::from("append")), ("event", kind.into()), ("data", data.into())])
        }
        Effect::Checkpoint => plain("checkpoint"),
        Effect::Derive(step) => with("derive", "step", step.into()),
        Effect::Send(step) => with("send", "step", step.into()),
        Effect::Validate(list) => with("validate", "calls", calls(list)),
        Effect::Ask { call, asked } => {
            object([("type", Value::from("ask")), ("call", write_ready(call)), ("asked", asked.into())])
        }
        Effect::Run(list) => with("run", "calls", calls(list)),
        Effect::Compact => plain("compact"),
        Effect::Settle => plain("settle"),
        Effect::Abort => plain("abort"),
        Effect::Finish(finish) => write_finish(finish),
    }
}

fn write_ready(call: Ready) -> Value {
    object([("id", Value::from(call.id)), ("name", call.name.into()), ("args", call.args.into())]).into()
}

fn write_finish(finish: Finish) -> Object {
    let fault = finish.error.map(|fault| object([("code", fault.code), ("message", fault.message)]));
    object([
        ("type", Value::from("finish")),
        ("status", finish.status.name().into()),
        ("answer", finish.answer.into()),
        ("error", fault.into()),
        ("steps", finish.steps.into()),
    ])
}

fn kind(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn text(value: &Value, key: &str) -> String {
    optional(value, key).unwrap_or_default()
}

fn optional(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn pick(value: &Value, keys: &[&str]) -> Object {
    let present = |key: &&str| Some(((*key).to_owned(), value.get(key).filter(|v| !v.is_null())?.clone()));
    keys.iter().filter_map(present).collect()
}

fn read_fault(value: &Value) -> Fault {
    Fault { code: text(value, "code"), message: text(value, "message") }
}

fn read_outcome(value: &Value) -> Outcome {
    Outcome {
        content: value.get("content").cloned().unwrap_or_else(|| "".into()),
        error: value.get("error").filter(|fault| !fault.is_null()).map(read_fault),
        synthetic: flag(value, "synthetic"),
    }
}

fn read_lost(value: &Value) -> Vec<(String, String)> {
    let lost = value.get("lost").and_then(Value::as_array).unwrap_or_default();
    lost.iter().map(|event| (text(event, "event"), text(event, "id"))).collect()
}

fn read_validated(value: &Value) -> Vec<(String, String)> {
    let faults = value.get("faults").and_then(Value::as_array).unwrap_or_default();
    faults.iter().map(|fault| (text(fault, "callId"), text(fault, "message"))).collect()
}

fn unknown(what: &str) -> Error {
    Error::new(Kind::InvalidArgument, format!("not an {what} that the agent loop knows"))
}
