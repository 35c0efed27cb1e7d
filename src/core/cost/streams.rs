//! The usage of one streamed answer: which of its payloads counts, which repeats another, which add up.

use crate::core::json::{Object, Value};

use super::arithmetic::{pico_of_usd_number, usd_text};

/// Follows member names that are joined by dots; `null` is nothing. Of a list it is the first item that says something.
#[inline(never)]
fn at<'v>(payload: &'v Value, path: &str) -> Option<&'v Value> {
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    let found = payload.get(key).filter(|v| !v.is_null())?;
    match found.as_array() {
        _ if rest.is_empty() => Some(found),
        Some(items) => items.iter().filter_map(|item| at(item, rest)).find(|u| says_something(u, 1)),
        None => at(found, rest),
    }
}

/// Says whether an object holds at least one number at its top, or as many levels below.
fn says_something(usage: &Value, levels: usize) -> bool {
    let says = |v: &Value| v.as_number().is_some() || (levels > 0 && says_something(v, levels - 1));
    usage.as_object().is_some_and(|o| o.iter().any(|(_, v)| says(v)))
}

/// The last payload that says something at one of the places, the first place winning inside one payload.
pub(super) fn last(payloads: &[Value], places: &[&str]) -> Option<Value> {
    for payload in payloads.iter().rev() {
        for place in places {
            if let Some(usage) = at(payload, place).filter(|u| says_something(u, 1)) {
                return Some(usage.clone());
            }
        }
    }
    None
}

/// Ollama: the last line is itself the usage.
pub(super) fn last_ollama(payloads: &[Value], _: &[&str]) -> Option<Value> {
    let has_counts = |p: &&Value| at(p, "eval_count").or_else(|| at(p, "prompt_eval_count")).is_some();
    payloads.iter().rev().find(has_counts).cloned()
}

/// LangChain: chunks are deltas.
pub(super) fn sum_chunks(payloads: &[Value], places: &[&str]) -> Option<Value> {
    sum(payloads, places.first()?)
}

/// The AI SDK: the steps add up; the total at the end says the same again and counts only where no step does.
pub(super) fn sum_steps(payloads: &[Value], places: &[&str]) -> Option<Value> {
    let is_step = |p: &&Value| at(p, "type").and_then(Value::as_str) == Some("finish-step") && at(p, "usage").is_some();
    let steps: Vec<Value> = payloads.iter().filter(is_step).cloned().collect();
    if steps.is_empty() {
        return last(payloads, places);
    }
    let mut usage = sum(&steps, "usage")?;
    // Version 5 keeps what was written to the cache in the metadata of each step.
    if let (Some(metadata), Some(usage)) = (sum(&steps, "providerMetadata"), usage.as_object_mut()) {
        usage.set("providerMetadata", metadata);
    }
    Some(usage)
}

/// Adds up the objects at one place: numbers exactly, objects member by member; of all else the last stays.
#[inline(never)]
fn sum(payloads: &[Value], place: &str) -> Option<Value> {
    let mut out: Option<Value> = None;
    for next in payloads.iter().filter_map(|p| at(p, place)).filter(|v| v.as_object().is_some()) {
        match &mut out {
            None => out = Some(next.clone()),
            Some(out) => add(out, next, 0),
        }
    }
    out
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
    match (pico_of_usd_number(a), pico_of_usd_number(b)) {
        (Some(a), Some(b)) => usd_text(a + b),
        _ => b.to_owned(),
    }
}

const INPUT_SIDE: &[&str] =
    &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"];

/// Anthropic: the output side of the last event; the input side replaced as a group, never summed or mixed.
pub(super) fn anthropic(payloads: &[Value], places: &[&str]) -> Option<Value> {
    let mut merged: Option<Object> = None;
    for payload in payloads {
        let usage = places.iter().find_map(|place| at(payload, place)).and_then(Value::as_object);
        let Some(usage) = usage else { continue };
        match &mut merged {
            Some(merged) => merge_anthropic(merged, usage),
            None => merged = Some(usage.clone()),
        }
    }
    merged.map(Value::Object)
}

fn whole(usage: &Object, key: &str) -> i64 {
    usage.get(key).and_then(Value::as_i64).unwrap_or(0)
}

fn split_sum(usage: &Object) -> i64 {
    let split = usage.get("cache_creation").and_then(Value::as_object);
    let part = |key| split.map_or(0, |split| whole(split, key));
    part("ephemeral_5m_input_tokens").saturating_add(part("ephemeral_1h_input_tokens"))
}

fn merge_anthropic(merged: &mut Object, next: &Object) {
    for (key, value) in next.iter().filter(|(key, v)| !INPUT_SIDE.contains(key) && !v.is_null()) {
        merged.set(key, value.clone());
    }
    let counts = INPUT_SIDE.iter().take(3).map(|key| whole(next, key));
    if !counts.chain([split_sum(next)]).any(|n| n > 0) {
        return;
    }
    let written = whole(next, "cache_creation_input_tokens");
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
