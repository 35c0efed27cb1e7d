//! The usage of one streamed answer: which of its payloads counts, which repeats another, which add up.

use crate::core::json::{Object, Value};

use super::arithmetic::{pico_of_usd_number, usd_text};

/// Follows member names; `null` is nothing.
fn at<'v>(payload: &'v Value, path: &[&str]) -> Option<&'v Value> {
    payload.at(path).filter(|v| !v.is_null())
}

/// Says whether an object holds at least one number at its top, or one level below.
fn says_something(usage: &Value) -> bool {
    let number = |v: &Value| v.as_number().is_some();
    let nested = |v: &Value| v.as_object().is_some_and(|o| o.iter().any(|(_, v)| number(v)));
    usage.as_object().is_some_and(|o| o.iter().any(|(_, v)| number(v) || nested(v)))
}

/// The last payload that says something at one of the places, the first place winning inside one payload.
fn last(payloads: &[Value], places: &[&[&str]]) -> Option<Value> {
    let inside = |payload: &Value| places.iter().filter_map(|p| at(payload, p)).find(|u| says_something(u)).cloned();
    payloads.iter().rev().find_map(inside)
}

/// OpenAI's chat and its kin: running totals or one final figure, at the top, under `x_groq`, or in the first choice.
pub(super) fn last_chat(payloads: &[Value]) -> Option<Value> {
    let choice = |payload: &Value| {
        let choices = at(payload, &["choices"])?.as_array()?;
        choices.iter().filter_map(|c| at(c, &["usage"])).find(|u| says_something(u)).cloned()
    };
    let inside = |payload: &Value| {
        let one = std::slice::from_ref(payload);
        last(one, &[&["usage"], &["x_groq", "usage"]]).or_else(|| choice(payload))
    };
    payloads.iter().rev().find_map(inside)
}

/// Responses and realtime: the terminal event's.
pub(super) fn last_response(payloads: &[Value]) -> Option<Value> {
    last(payloads, &[&["response", "usage"], &["usage"]])
}

/// Gemini: cumulative in every chunk.
pub(super) fn last_gemini(payloads: &[Value]) -> Option<Value> {
    last(payloads, &[&["usageMetadata"], &["response", "usageMetadata"]])
}

/// Bedrock: in the metadata event.
pub(super) fn last_bedrock(payloads: &[Value]) -> Option<Value> {
    last(payloads, &[&["metadata", "usage"], &["usage"]])
}

/// Cohere: in the event that ends the message.
pub(super) fn last_cohere(payloads: &[Value]) -> Option<Value> {
    last(payloads, &[&["delta", "usage"], &["usage"], &["response", "meta"]])
}

/// Ollama: the last line is itself the usage.
pub(super) fn last_ollama(payloads: &[Value]) -> Option<Value> {
    let counts = |p: &&Value| at(p, &["eval_count"]).or_else(|| at(p, &["prompt_eval_count"])).is_some();
    payloads.iter().rev().find(counts).cloned()
}

/// LangChain: chunks are deltas.
pub(super) fn sum_langchain(payloads: &[Value]) -> Option<Value> {
    sum(payloads.iter().filter_map(|p| at(p, &["usage_metadata"])))
}

/// The AI SDK: the steps add up; the total at the end says the same again and counts only where no step does.
pub(super) fn sum_steps(payloads: &[Value]) -> Option<Value> {
    let is = |p: &Value, kind: &str| at(p, &["type"]).and_then(Value::as_str) == Some(kind);
    let steps: Vec<&Value> = payloads.iter().filter(|p| is(p, "finish-step") && at(p, &["usage"]).is_some()).collect();
    if steps.is_empty() {
        return last(payloads, &[&["totalUsage"], &["usage"]]);
    }
    let mut usage = sum(steps.iter().filter_map(|p| at(p, &["usage"])))?;
    // Version 5 keeps what was written to the cache in the metadata of each step.
    if let (Some(metadata), Some(usage)) =
        (sum(steps.iter().filter_map(|p| at(p, &["providerMetadata"]))), usage.as_object_mut())
    {
        usage.set("providerMetadata", metadata);
    }
    Some(usage)
}

/// Adds up objects: numbers exactly, objects member by member; of all else the last stays.
fn sum<'v>(objects: impl Iterator<Item = &'v Value>) -> Option<Value> {
    objects.filter(|v| v.as_object().is_some()).fold(None, |sum, next| match sum {
        None => Some(next.clone()),
        Some(mut sum) => {
            add(&mut sum, next, 0);
            Some(sum)
        }
    })
}

/// Nesting that is followed; usage objects have three levels.
const MAX_LEVEL: usize = 8;

fn add(sum: &mut Value, next: &Value, level: usize) {
    match (&mut *sum, next) {
        (Value::Object(members), Value::Object(others)) if level < MAX_LEVEL => {
            for (key, value) in others.iter() {
                match members.get_mut(key) {
                    Some(member) => add(member, value, level + 1),
                    None => members.set(key, value.clone()),
                }
            }
        }
        (Value::Number(a), Value::Number(b)) => *a = add_numbers(a, b).into(),
        (_, Value::Null) => {}
        _ => *sum = next.clone(),
    }
}

fn add_numbers(a: &str, b: &str) -> String {
    if let (Ok(a), Ok(b)) = (a.parse::<i64>(), b.parse::<i64>()) {
        return (i128::from(a) + i128::from(b)).to_string();
    }
    match (pico_of_usd_number(a), pico_of_usd_number(b)) {
        (Some(a), Some(b)) => usd_text(a + b),
        _ => b.to_owned(),
    }
}

const INPUT_SIDE: &[&str] =
    &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"];

/// Anthropic: the output side of the last event; the input side replaced as a group, never summed or mixed.
pub(super) fn anthropic(payloads: &[Value]) -> Option<Value> {
    let mut merged: Option<Object> = None;
    for payload in payloads {
        let usage = at(payload, &["message", "usage"]).or_else(|| at(payload, &["usage"])).and_then(Value::as_object);
        let Some(usage) = usage else { continue };
        match &mut merged {
            Some(merged) => merge_anthropic(merged, usage),
            None => merged = Some(usage.clone()),
        }
    }
    merged.map(Value::Object)
}

fn whole(usage: &Object, path: &[&str]) -> i64 {
    let (first, rest) = path.split_first().unwrap_or((&"", &[]));
    usage.get(first).and_then(|v| v.at(rest)).and_then(Value::as_i64).unwrap_or(0)
}

fn split_sum(usage: &Object) -> i64 {
    let part = |key| whole(usage, &["cache_creation", key]);
    part("ephemeral_5m_input_tokens").saturating_add(part("ephemeral_1h_input_tokens"))
}

fn merge_anthropic(merged: &mut Object, next: &Object) {
    for (key, value) in next.iter().filter(|(key, v)| !INPUT_SIDE.contains(key) && !v.is_null()) {
        merged.set(key, value.clone());
    }
    let counts = INPUT_SIDE.iter().take(3).map(|key| whole(next, &[key]));
    if !counts.chain([split_sum(next)]).any(|n| n > 0) {
        return;
    }
    let written = whole(next, &["cache_creation_input_tokens"]);
    let keeps_split = split_sum(next) == 0 && split_sum(merged) == written;
    for key in INPUT_SIDE {
        if *key == "cache_creation" && keeps_split {
            continue;
        }
        merged.remove(key);
        if let Some(value) = next.get(key) {
            merged.set(key, value.clone());
        }
    }
}
