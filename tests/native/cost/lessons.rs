//! Faults that people reported of other software, each with its right result (E01 to E11).

use serde_json::{Value, json};
use sessionlog::core::cost::arithmetic::usd_text;
use sessionlog::core::cost::{self, Cost, PriceTable, Pricing, Source, Usage, session_usage};

use super::{NOW, view};

fn table(rates: &Value, more: &Value) -> PriceTable {
    let mut prices = vec![json!({"rates": rates})];
    prices.extend(more.as_array().into_iter().flatten().cloned());
    let table = json!({
        "schema": "sessionlog.prices/1",
        "providers": [{"id": "acme", "models": [
            {"id": "acme-1", "prices": prices},
            {"id": "acme-free", "prices": [{"rates": {"input": "0", "output": "0"}}]},
        ]}],
    });
    PriceTable::from_json(&table.to_string()).unwrap()
}

fn price(table: &PriceTable, shape: &str, raw: Value) -> (Usage, Cost) {
    price_more(table, shape, raw, json!({}))
}

fn price_more(table: &PriceTable, shape: &str, raw: Value, more: Value) -> (Usage, Cost) {
    let mut record = json!({"apiShape": shape, "provider": "acme", "model": "acme-1", "raw": raw});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    cost::price_record(&record.to_string(), table, NOW, |r, cost| (r.usage.unwrap_or_default(), cost)).unwrap()
}

fn usd(cost: &Cost) -> String {
    cost.pico.map_or("unknown".into(), usd_text)
}

fn chat(input: u64, output: u64) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

#[test]
fn e01_the_style_is_given_and_parts_are_disjoint() {
    let openai = table(&json!({"input": "0.50", "cache_read": "0.05", "output": "3.00"}), &json!([]));
    let mut raw = chat(20_000, 1_000);
    raw["prompt_tokens_details"] = json!({"cached_tokens": 16_000});
    let (usage, cost) = price(&openai, "openai.chat", raw);
    assert_eq!((usd(&cost), usage.input_tokens - usage.cache_read_tokens), ("0.0058".into(), 4_000));

    let rates = json!({"input": "3", "cache_read": "0.30", "cache_write": "3.75", "output": "15"});
    let raw = json!({"input_tokens": 10, "cache_read_input_tokens": 16_000, "cache_creation_input_tokens": 4_000, "output_tokens": 1_000});
    let (usage, cost) = price(&table(&rates, &json!([])), "anthropic.messages", raw);
    assert_eq!((usd(&cost), usage.input_tokens), ("0.03483".into(), 20_010));
}

#[test]
fn e03_cache_writes_are_priced_by_lifetime() {
    let table = table(&json!({"input": "3", "cache_write": "3.75", "cache_write_1h": "6", "output": "15"}), &json!([]));
    let write = |split: Value| {
        let raw = json!({"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 3_000, "cache_creation": split});
        usd(&price(&table, "anthropic.messages", raw).1)
    };
    let split = |short: u64, long: u64| json!({"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long});
    assert_eq!(write(split(1_000, 2_000)), "0.01575");
    assert_eq!(write(Value::Null), "0.01125");
    assert_eq!(write(split(500, 2_000)), "0.01575");
}

/// The rule book lets the next kind of rate stand in; with none at all the cost is unknown, never a wrong number.
#[test]
fn e03_a_missing_rate_is_stood_in_for_or_unknown() {
    let raw = json!({"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 1_000}});
    let short = table(&json!({"input": "3", "cache_write": "3.75", "output": "15"}), &json!([]));
    assert_eq!(usd(&price(&short, "anthropic.messages", raw.clone()).1), "0.00375");
    let (_, cost) = price(&table(&json!({"output": "15"}), &json!([])), "anthropic.messages", raw);
    assert_eq!((cost.pico, cost.source, cost.complete), (None, Source::Unknown, false));
    assert!(cost.flags.has(cost::Flags::MISSING_RATE));
}

#[test]
fn e05_unknown_adds_nothing_and_marks_a_lower_bound() {
    let table = table(&json!({"input": "10", "output": "0"}), &json!([]));
    let step = |model: &str, tokens: u64| {
        json!({"usage": {"apiShape": "openai.chat", "provider": "acme", "model": model, "raw": chat(tokens, 0)}})
            .to_string()
    };
    let data = [step("acme-1", 1_000), step("acme-9", 100), step("acme-free", 50)];
    let events = data.iter().enumerate().map(|(i, d)| view(i, "step/end", d));
    let state = session_usage(events, &table, Pricing::Stored);
    let all = state.totals();
    assert_eq!((usd_text(all.pico), all.cost().complete, all.unpriced_steps), ("0.01".into(), false, 1));
    assert_eq!(state.unpriced_models().collect::<Vec<_>>(), ["acme-9"]);
    assert_eq!(all.usage.input_tokens, 1_150);
    let free = session_usage([view(0, "step/end", &data[2])], &table, Pricing::Stored);
    assert_eq!((free.totals().pico, free.totals().cost().complete), (0, true));
}

#[test]
fn e07_reasoning_is_billed_once() {
    let table = table(&json!({"input": "1", "output": "1"}), &json!([]));
    let mut raw = chat(0, 500);
    raw["completion_tokens_details"] = json!({"reasoning_tokens": 400});
    assert_eq!(price(&table, "openai.chat", raw).0.output_tokens, 500);
    let raw = json!({"promptTokenCount": 120, "candidatesTokenCount": 100, "thoughtsTokenCount": 400, "totalTokenCount": 620});
    let usage = price(&table, "gemini.generate", raw).0;
    assert_eq!((usage.output_tokens, usage.input_tokens + usage.output_tokens), (500, 620));
    let raw = json!({"candidatesTokenCount": 8, "thoughtsTokenCount": 30});
    assert_eq!(price(&table, "gemini.generate", raw).0.output_tokens, 38);
}

#[test]
fn e09_sums_are_exact_in_every_order_and_after_a_reload() {
    let table = table(&json!({"input": "0.15", "output": "0"}), &json!([]));
    let tenth = json!({"usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.10}}).to_string();
    let one = json!({"usage": {"apiShape": "openai.chat", "provider": "acme", "model": "acme-1", "raw": chat(1, 0)}})
        .to_string();
    let sum = |data: &[&str]| {
        let events = data.iter().enumerate().map(|(i, d)| view(i, "step/end", d));
        session_usage(events, &table, Pricing::Stored).totals().pico
    };
    assert_eq!(usd_text(sum(&[&*tenth; 10])), "1");
    assert_eq!(usd_text(sum(&vec![&*one; 10_000]) * 100), "0.15");
    let mut mixed = vec![&*one; 100];
    mixed.extend(vec![&*tenth; 10]);
    let forward = sum(&mixed);
    mixed.reverse();
    assert_eq!(forward, sum(&mixed));

    // Stored with its note and loaded again under other prices: the same to the last picodollar.
    let note = cost::priced_note("step/end", &one, NOW, &table).unwrap();
    let mut stored = view(0, "step/end", &one);
    stored.note = Some(&note);
    let dearer = PriceTable::from_json(
        r#"{"schema":"sessionlog.prices/1","providers":[{"id":"acme","models":[{"id":"acme-1","prices":[{"rates":{"input":"9"}}]}]}]}"#,
    );
    let dearer = dearer.unwrap();
    assert_eq!(session_usage([stored], &dearer, Pricing::Stored).totals().pico, 150_000);
    assert_eq!(session_usage([stored], &dearer, Pricing::Reprice).totals().pico, 9_000_000);
}

#[test]
fn e11_a_tier_overrides_single_prices_and_an_unknown_one_is_marked() {
    let base = json!({"schema": "sessionlog.prices/1", "providers": [{"id": "acme", "models": [{"id": "acme-1", "prices": [
        {"rates": {"input": "3", "output": "15"}, "fees": {"web_search": {"usd_per_1000": "10", "per": "call"}}},
        {"tier": "batch", "rates": {"input": "1.5", "output": "7.5"}},
    ]}]}]});
    let table = PriceTable::from_json(&base.to_string()).unwrap();
    let served = |tier: &str| {
        let more = json!({"tier": tier, "toolCounts": {"web_search": 2}});
        let (_, cost) = price_more(&table, "openai.chat", chat(1_000, 100), more);
        (usd(&cost), cost.flags.has(cost::Flags::TIER_FALLBACK))
    };
    assert_eq!(served("standard"), ("0.0245".into(), false));
    assert_eq!(served("batch"), ("0.02225".into(), false));
    assert_eq!(served("foo"), ("0.0245".into(), true));
}
