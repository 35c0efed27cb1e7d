//! The sum over a session: replacing, forks, response ids, notes, and never going down.

use proptest::prelude::*;
use serde_json::{Value, json};
use sessionlog::core::cost::{self, PriceTable, Pricing, UsageState, session_usage};
use sessionlog::core::event::EventView;

use super::{NOW, view};

fn end(turn: u64, step: u64, cost: f64) -> (&'static str, Value) {
    ("step/end", json!({"turn": turn, "step": step, "usage": plain(cost)}))
}

fn plain(cost: f64) -> Value {
    json!({"apiShape": "step.usage", "raw": {"prompt_tokens": 10, "completion_tokens": 1, "cost": cost}})
}

fn with_id(mut event: (&'static str, Value), id: &str) -> (&'static str, Value) {
    event.1["usage"]["responseId"] = json!(id);
    event
}

fn run(events: &[(&str, Value)]) -> UsageState {
    let texts: Vec<String> = events.iter().map(|(_, data)| data.to_string()).collect();
    let views = events.iter().zip(&texts).enumerate().map(|(i, ((kind, _), data))| view(i, kind, data));
    session_usage(views, &PriceTable::builtin().unwrap(), Pricing::Stored)
}

/// Steps, steps without a price, microdollars.
fn sums(state: &UsageState) -> (u64, u64, i128) {
    let all = state.totals();
    (all.steps, all.unpriced_steps, all.pico / 1_000_000)
}

#[test]
fn a_later_report_of_a_step_replaces_the_earlier() {
    let usage = ("usage", json!({"turn": 1, "step": 1, "usage": plain(0.3)}));
    assert_eq!(sums(&run(&[end(1, 1, 0.1), usage.clone()])), (1, 0, 300_000));
    assert_eq!(sums(&run(&[usage.clone(), end(1, 1, 0.1)])), (1, 0, 100_000));
    assert_eq!(sums(&run(&[usage, ("step/end", json!({"turn": 1, "step": 1}))])), (1, 0, 300_000));
    assert_eq!(sums(&run(&[("step/end", json!({"turn": 1, "step": 1})), end(1, 1, 0.2)])), (1, 0, 200_000));
    assert_eq!(sums(&run(&[end(1, 1, 0.1), end(1, 2, 0.1), end(2, 1, 0.1)])), (3, 0, 300_000));
}

#[test]
fn a_response_counts_once() {
    let both = [with_id(end(1, 1, 0.1), "r"), with_id(end(1, 2, 0.4), "r"), with_id(end(1, 3, 1.0), "s")];
    let state = run(&both);
    assert_eq!(sums(&state), (3, 0, 1_400_000));
    assert_eq!(state.totals().usage.input_tokens, 20);
    // A step that is reported anew under another id lets go of the first.
    let anew = [with_id(end(1, 1, 0.1), "r"), with_id(end(1, 1, 0.2), "s"), with_id(end(1, 2, 0.4), "r")];
    assert_eq!(sums(&run(&anew)), (2, 0, 600_000));
}

#[test]
fn own_is_what_came_after_the_last_fork() {
    let fork = ("session/forked", json!({"from": "p", "boundary": 1}));
    let state = run(&[end(1, 1, 0.1), fork.clone(), end(2, 1, 0.2), ("step/end", json!({"turn": 3, "step": 1}))]);
    assert_eq!(sums(&state), (3, 1, 300_000));
    let own = state.own();
    assert_eq!((own.steps, own.unpriced_steps, own.pico, own.usage.input_tokens), (2, 1, 200_000_000_000, 10));
    // A late report of a step that the parent counted is the child's own.
    let late = run(&[end(1, 1, 0.1), fork.clone(), ("usage", json!({"turn": 1, "step": 1, "usage": plain(0.5)}))]);
    assert_eq!((sums(&late), late.own().pico), ((1, 0, 500_000), 500_000_000_000));
    assert_eq!(run(&[end(1, 1, 0.1), fork.clone(), end(2, 1, 0.2), fork]).own().pico, 0);
}

#[test]
fn nothing_takes_cost_away() {
    let events = [
        end(1, 1, 0.5),
        ("session/compacted", json!({"summary": "s", "uptoSeq": 0})),
        ("session/rewound", json!({"uptoSeq": 0})),
        ("undo/applied", json!({"runId": "r", "restored": [], "deleted": []})),
        ("session/rescrubbed", json!({"scrubber": "s", "events": 1})),
        end(2, 1, 0.25),
    ];
    let mut before = 0;
    for n in 0..=events.len() {
        let now = run(&events[..n]).totals().pico;
        assert!(now >= before);
        before = now;
    }
    assert_eq!(before, 750_000_000_000);
}

#[test]
fn a_note_decides_until_repricing_is_asked_for() {
    let table = PriceTable::builtin().unwrap();
    let data = json!({"turn": 1, "step": 1, "usage": {"apiShape": "openai.chat", "provider": "openai", "model": "gpt-4o",
        "raw": {"prompt_tokens": 1_000, "completion_tokens": 0}}});
    let data = data.to_string();
    let note = cost::priced_note("step/end", &data, NOW, &table).unwrap();
    let read: Value = serde_json::from_str(&note).unwrap();
    assert_eq!(
        (&read["cost"]["usd"], &read["cost"]["source"], &read["asOf"]),
        (&json!("0.0025"), &json!("table"), &json!("2026-11-09"))
    );
    assert_eq!(read["usage"]["inputTokens"], 1_000);

    let unknown = r#"{"cost":{"picodollars":null,"usd":null,"cents":null,"source":"unknown","complete":false,"flags":["unknown_model"]},"asOf":"2026-01-01"}"#;
    let noted = |note| EventView { note: Some(note), ..view(0, "step/end", &data) };
    let stored = session_usage([noted(unknown)], &table, Pricing::Stored);
    assert_eq!((sums(&stored), stored.unpriced_models().collect::<Vec<_>>()), ((1, 1, 0), vec!["gpt-4o"]));
    assert_eq!(sums(&session_usage([noted(unknown)], &table, Pricing::Reprice)), (1, 0, 2_500));
    // A note that cannot be read is as good as none.
    assert_eq!(sums(&session_usage([noted("{")], &table, Pricing::Stored)), (1, 0, 2_500));
    for (kind, data) in [("step/end", "{}"), ("turn/end", &*data), ("step/end", "{"), ("usage", "{\"usage\":null}")] {
        assert_eq!(cost::priced_note(kind, data, NOW, &table), None, "{kind} {data}");
    }
}

#[test]
fn a_record_without_a_model_takes_that_of_its_step() {
    let table = PriceTable::builtin().unwrap();
    let start = json!({"turn": 1, "step": 1, "provider": "openai", "model": "gpt-4o"}).to_string();
    let usage = json!({"apiShape": "openai.chat", "raw": {"prompt_tokens": 1_000, "completion_tokens": 0}});
    let own = json!({"turn": 1, "step": 1, "usage": usage}).to_string();
    let other = json!({"turn": 1, "step": 2, "usage": usage}).to_string();
    let mut state = UsageState::new(Pricing::Stored);
    state.push(view(0, "step/start", &start), &table);
    assert!(state.note("step/end", &own, NOW, &table).unwrap().contains("\"0.0025\""));
    assert!(state.note("step/end", &other, NOW, &table).unwrap().contains("unknown_model"));
    state.push(view(1, "step/end", &own), &table);
    assert_eq!(sums(&state), (1, 0, 2_500));
}

#[test]
fn the_json_is_that_of_the_contract() {
    let state = run(&[end(1, 1, 0.1), ("step/end", json!({"turn": 1, "step": 2}))]);
    let read: Value = serde_json::from_str(&state.to_json()).unwrap();
    let usage = json!({"inputTokens": 10, "outputTokens": 1, "cacheReadTokens": 0, "cacheWriteTokens": 0,
        "cacheWrite5mTokens": 0, "cacheWrite1hTokens": 0, "reasoningTokens": 0});
    let cost = json!({"picodollars": "100000000000", "usd": "0.1", "cents": 10, "source": "sum", "complete": false, "flags": []});
    let expected = json!({"steps": 2, "unpricedSteps": 1, "unpricedModels": [], "promptTokens": 10, "completionTokens": 1,
        "usage": usage, "cost": cost, "own": {"steps": 2, "usage": usage, "cost": cost}});
    assert_eq!(read, expected);
}

/// The steps that share a place, the response in it, its cost.
type Slot = (Vec<(u64, u64)>, Option<u8>, u32);

/// Adds up from scratch: the last report of every response or step, in the plainest way.
fn plainly(events: &[(u64, u64, Option<u8>, u32)]) -> (usize, i128) {
    let mut slots: Vec<Slot> = Vec::new();
    let mut steps: Vec<(u64, u64)> = Vec::new();
    for &(turn, step, response, cost) in events {
        let key = (turn, step);
        if !steps.contains(&key) {
            steps.push(key);
        }
        let same = slots.iter().position(|s| response.is_some() && s.1 == response);
        match same {
            Some(at) => {
                let moved = slots.iter().position(|s| s.0.contains(&key)).filter(|&i| i != at);
                slots[at].2 = cost;
                if let Some(i) = moved {
                    slots[i].1 = None;
                    slots[i].2 = 0;
                } else if !slots[at].0.contains(&key) {
                    slots.push((vec![key], None, 0));
                }
            }
            None => match slots.iter_mut().find(|s| s.0.contains(&key)) {
                Some(slot) => (slot.1, slot.2) = (response, cost),
                None => slots.push((vec![key], response, cost)),
            },
        }
    }
    (steps.len(), slots.iter().map(|s| i128::from(s.2)).sum())
}

proptest! {
    #[test]
    fn the_state_agrees_with_a_plain_sum(events in prop::collection::vec((0u64..3, 0u64..3, prop::option::of(0u8..4), 0u32..1000), 0..25)) {
        let made: Vec<(&str, Value)> = events.iter().map(|&(turn, step, response, cost)| {
            let mut event = end(turn, step, f64::from(cost) / 1e6);
            if let Some(response) = response {
                event.1["usage"]["responseId"] = json!(format!("r{response}"));
            }
            event
        }).collect();
        let (steps, micro) = plainly(&events);
        prop_assert_eq!(sums(&run(&made)), (steps as u64, 0, micro));
    }
}
