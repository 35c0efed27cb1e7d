//! Usage and cost against the vectors: every record, stream and session, to the last picodollar.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sessionlog::core::cost::arithmetic::{cents_text, nano_of_pico, usd_text};
use sessionlog::core::cost::{self, CostTotal, PriceTable, Pricing, Usage, UsageState, session_usage};
use sessionlog::core::event::EventView;
use sessionlog::core::id::EventId;

mod lessons;
mod numbers;
mod page;
mod projection;
mod tables;

/// A time long after every price in the table began, for records that carry their own.
const NOW: i64 = 1_796_000_000_000;

fn vector_dirs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = root.join("../shared/vectors/cost");
    let mut dirs = vec![root.join("tests/fixtures/vectors/cost")];
    dirs.extend(Some(shared).filter(|d| d.exists()));
    dirs
}

fn lines(file: &str) -> Vec<Value> {
    let read = |dir: &PathBuf| std::fs::read_to_string(dir.join(file)).unwrap();
    let mut texts: Vec<String> = vector_dirs().iter().map(read).collect();
    // The same file twice would only take twice as long.
    texts.dedup();
    texts.iter().flat_map(|t| t.lines()).filter(|l| !l.is_empty()).map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn snake(key: &str) -> String {
    key.chars().fold(String::new(), |mut out, c| {
        let starts_number = c.is_ascii_digit() && !out.ends_with(|p: char| p.is_ascii_digit());
        if c.is_ascii_uppercase() || starts_number {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

/// Compares the counts with those of a vector: keys that are absent there must be 0.
fn check_usage(id: &str, usage: Option<Usage>, expected: &Value) {
    let usage = usage.unwrap_or_default();
    for ((key, ..), count) in Usage::KEYS.iter().zip(usage.counts()) {
        let expected = expected[snake(key)].as_u64().unwrap_or(0);
        assert_eq!(count, expected, "{id} {key}");
    }
}

fn check_cost(id: &str, found: &cost::Cost, expected: &Value) {
    let pico = found.pico.map_or("unknown".to_owned(), |p| p.to_string());
    assert_eq!(
        Some(&*pico),
        expected["cost_picodollars"].as_str(),
        "{id} {:?}",
        found.flags.names().collect::<Vec<_>>()
    );
    assert_eq!(Some(found.source.name()), expected["cost_source"].as_str(), "{id}");
    match found.pico {
        Some(pico) => assert_eq!(nano_of_pico(pico).to_string(), expected["cost_nanodollars"].to_string(), "{id}"),
        None => assert!(!found.complete, "{id}"),
    }
    for flag in expected["flags"].as_array().into_iter().flatten() {
        assert!(found.flags.names().any(|f| f == flag), "{id} lacks {flag}");
    }
}

fn price(record: &Value) -> (Option<Usage>, cost::Cost) {
    let table = PriceTable::builtin().unwrap();
    cost::price_record(&record.to_string(), &table, NOW, |reading, cost| (reading.usage, cost)).unwrap()
}

#[test]
fn the_embedded_table_is_the_one_of_the_vectors() {
    let ours =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core/cost/prices.json")).unwrap();
    for dir in vector_dirs() {
        assert_eq!(std::fs::read_to_string(dir.join("prices.json")).unwrap(), ours);
    }
}

#[test]
fn every_record_is_right() {
    let records = lines("records.jsonl");
    assert!(records.len() >= 339);
    for record in records {
        let id = record["id"].as_str().unwrap();
        let (usage, found) = price(&record);
        check_usage(id, usage, &record["expected"]);
        check_cost(id, &found, &record["expected"]);
        assert_eq!(found.complete, found.pico.is_some(), "{id}");
    }
}

#[test]
fn every_stream_is_right() {
    let streams = lines("streams.jsonl");
    assert!(streams.len() >= 19);
    for stream in streams {
        let id = stream["id"].as_str().unwrap();
        let shape = stream["api_shape"].as_str().unwrap();
        let raw = cost::merge_stream(shape, &stream["events"].to_string()).unwrap();
        let mut record = stream.clone();
        record["raw"] = serde_json::from_str(&raw).unwrap();
        let (usage, found) = price(&record);
        check_usage(id, usage, &stream["expected"]);
        check_cost(id, &found, &stream["expected"]);
    }
}

fn view<'a>(seq: usize, kind: &'a str, data: &'a str) -> EventView<'a> {
    EventView { seq: seq as u64, id: event_id(), at: NOW, kind, data, note: None }
}

fn event_id() -> EventId {
    EventId(7)
}

fn run(events: &[(String, String)]) -> UsageState {
    let table = PriceTable::builtin().unwrap();
    let views = events.iter().enumerate().map(|(i, (kind, data))| view(i, kind, data));
    session_usage(views, &table, Pricing::Stored)
}

fn step(prompt: u64, completion: u64, cost: &str) -> (String, String) {
    let data =
        format!("{{\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"cost\":{cost}}}}}");
    ("step/end".to_owned(), data)
}

/// The events of a vector, generated ones included. Numbers keep the text that the vector has.
fn events_of(vector: &Value) -> Vec<(String, String)> {
    if let Some(events) = vector["events"].as_array() {
        let pair = |e: &Value| (e["type"].as_str().unwrap().to_owned(), e["payload"].to_string());
        return events.iter().map(pair).collect();
    }
    let rule = &vector["generate"];
    let count = rule["count"].as_u64().unwrap() as usize;
    if rule["kind"] == "repeat" {
        let event = &rule["event"];
        return vec![(event["type"].as_str().unwrap().to_owned(), event["payload"].to_string()); count];
    }
    let number = |key: &str| rule[key].as_u64().unwrap();
    let unit = rule["cost_usd"].as_str().unwrap().rsplit("1e").next().unwrap();
    let mut x = number("seed");
    let mut next = || {
        x = (number("a") * x + number("c")) % number("m");
        step(x % 4096, 1, &format!("{}e{unit}", x % 1_000_003))
    };
    (0..count).map(|_| next()).collect()
}

fn check_projection(vector: &Value) {
    let id = vector["id"].as_str().unwrap();
    let expected = &vector["expected"];
    let events = events_of(vector);
    let state = run(&events);
    let all = state.totals();
    let input = expected.get("prompt_tokens").unwrap_or(&expected["input_tokens"]);
    let output = expected.get("completion_tokens").unwrap_or(&expected["output_tokens"]);
    assert_eq!(json!(all.steps), expected["steps"], "{id}");
    assert_eq!(json!(all.usage.input_tokens), *input, "{id}");
    assert_eq!(json!(all.usage.output_tokens), *output, "{id}");
    assert_eq!(json!(all.unpriced_steps), expected["unpriced_steps"], "{id}");
    assert_eq!(json!(all.pico.to_string()), expected["cost_picodollars"], "{id}");
    assert_eq!(nano_of_pico(all.pico).to_string(), expected["cost_nanodollars"].to_string(), "{id}");
    if let Some(usd) = expected["cost_usd"].as_str() {
        assert_eq!(usd_text(all.pico), usd, "{id}");
    }
    let is_lower_bound = expected["cost_is_lower_bound"].as_bool().unwrap_or(all.unpriced_steps > 0);
    assert_eq!(all.cost().complete, !is_lower_bound, "{id}");
}

fn check_cents(vector: &Value) {
    let id = vector["id"].as_str().unwrap();
    let expected = &vector["expected"];
    let runs: Vec<Value> = match vector["runs"].as_array() {
        Some(runs) => runs.clone(),
        None => {
            let rule = &vector["generate"];
            let mut runs = rule["prefix"].as_array().cloned().unwrap_or_default();
            runs.extend(vec![rule["run"].clone(); rule["count"].as_u64().unwrap() as usize]);
            runs
        }
    };
    let mut total = CostTotal::default();
    let mut refused = 0;
    for (i, run) in runs.iter().enumerate() {
        let before = total.pico();
        if let Some(cost) = run.get("cost_cents") {
            refused += i32::from(total.add_cents(&cost.to_string()).is_err());
        }
        assert!(total.pico() >= before, "{id}");
        if let Some(after) = expected["after_each"].get(i) {
            assert_eq!(cents_text(total.pico()), after.as_str().unwrap(), "{id}");
            assert_eq!(total.cents(), after.as_str().unwrap().parse::<f64>().unwrap(), "{id}");
        }
    }
    assert_eq!(cents_text(total.pico()), expected["session_cost_cents"].as_str().unwrap(), "{id}");
    assert_eq!(refused, expected["refused"].as_i64().unwrap_or(0) as i32, "{id}");
}

#[test]
fn every_session_is_right() {
    let sessions = lines("sessions.jsonl");
    assert!(sessions.len() >= 25);
    for vector in sessions {
        match vector["kind"].as_str().unwrap() {
            "session_cost_cents" => check_cents(&vector),
            _ => check_projection(&vector),
        }
    }
}
