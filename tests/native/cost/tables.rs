//! Price tables: every fault by its path, dates, hours, tiers, steps, layers.

use serde_json::{Value, json};
use sessionlog::core::cost::arithmetic::usd_text;
use sessionlog::core::cost::{self, PriceTable};

use super::NOW;

fn whole(model: Value) -> Value {
    json!({"schema": "sessionlog.prices/1", "providers": [{"id": "acme", "models": [model]}]})
}

fn model(prices: Value) -> Value {
    whole(json!({"id": "m", "prices": prices}))
}

fn fault(table: &Value) -> String {
    let error = PriceTable::from_json(&table.to_string()).expect_err(&table.to_string());
    assert_eq!(error.code(), "invalid_price_table");
    error.details().get("path").unwrap().as_str().unwrap().to_owned()
}

#[test]
fn every_fault_is_named_by_its_path() {
    let price = "providers[0].models[0].prices[0]";
    let rates = |r: Value| model(json!([{"rates": r}]));
    for (table, path) in [
        (json!([]), String::new()),
        (json!({"providers": []}), "schema".into()),
        (json!({"schema": "sessionlog.prices/2", "providers": []}), "schema".into()),
        (json!({"schema": "sessionlog.prices/1"}), "providers".into()),
        (json!({"schema": "sessionlog.prices/1", "providers": [], "currency": "EUR"}), "currency".into()),
        (json!({"schema": "sessionlog.prices/1", "providers": [], "rate_unit": "USD per token"}), "rate_unit".into()),
        (json!({"schema": "sessionlog.prices/1", "providers": [], "fee_unit": "cents"}), "fee_unit".into()),
        (json!({"schema": "sessionlog.prices/1", "providers": [], "as_of": "yesterday"}), "as_of".into()),
        (json!({"schema": "sessionlog.prices/1", "providers": [], "x": 1}), "x".into()),
        (json!({"schema": "sessionlog.prices/1", "providers": [{"id": "a"}]}), "providers[0].models".into()),
        (json!({"schema": "sessionlog.prices/1", "providers": [{"id": "", "models": []}]}), "providers[0].id".into()),
        (
            json!({"schema": "sessionlog.prices/1", "providers": [{"id": "a", "models": []}, {"id": "b", "aliases": ["A"], "models": []}]}),
            "providers[1]".into(),
        ),
        (whole(json!({"prices": []})), "providers[0].models[0].id".into()),
        (whole(json!({"id": "m", "prices": [], "match": []})), "providers[0].models[0].match".into()),
        (whole(json!({"id": "m", "prices": [], "free": "yes"})), "providers[0].models[0].free".into()),
        (whole(json!({"id": "m", "prices": [], "context": -1})), "providers[0].models[0].context".into()),
        (whole(json!({"id": "m", "prices": [], "geo": {"us": "-1"}})), "providers[0].models[0].geo.us".into()),
        (whole(json!({"id": "m", "prices": [], "colour": 1})), "providers[0].models[0].colour".into()),
        (rates(json!({"input": "-1"})), format!("{price}.rates.input")),
        (rates(json!({"input": 1})), format!("{price}.rates.input")),
        (rates(json!({"input": "1.0000000000001"})), format!("{price}.rates.input")),
        (rates(json!({"input": "NaN"})), format!("{price}.rates.input")),
        (rates(json!({"imput": "1"})), format!("{price}.rates.imput")),
        (rates(json!({"input": ["1", "2"]})), format!("{price}.rates.input")),
        (model(json!([{}])), format!("{price}.rates")),
        (model(json!([{"rates": {}, "from": "soon"}])), format!("{price}.from")),
        (model(json!([{"rates": {}, "from": "2026-02-01", "until": "2026-01-01"}])), format!("{price}.until")),
        (model(json!([{"rates": {}, "steps": [5, 5]}])), format!("{price}.steps")),
        (model(json!([{"rates": {}, "steps": [0]}])), format!("{price}.steps[0]")),
        (
            model(json!([{"rates": {}, "steps": [5], "rates": {"input": ["1", "2", "3"]}}])),
            format!("{price}.rates.input"),
        ),
        (
            model(json!([{"rates": {}, "steps": [5], "rates": {"input": ["1", "-2"]}}])),
            format!("{price}.rates.input[1]"),
        ),
        (
            model(json!([{"rates": {}, "fees": {"web_search": {"usd_per_1000": "1", "per": "day"}}}])),
            format!("{price}.fees.web_search.per"),
        ),
        (model(json!([{"rates": {}, "fees": {"web_search": {"usd": "1"}}}])), format!("{price}.fees.web_search.usd")),
        (model(json!([{"rates": {}, "hours": {"utc": [["1:00", "02:00"]]}}])), format!("{price}.hours.utc[0][0]")),
        (model(json!([{"rates": {}, "hours": {"utc": [["01:00"]]}}])), format!("{price}.hours.utc[0]")),
        (model(json!([{"rates": {}, "hours": {"utc": [], "days": [8]}}])), format!("{price}.hours.days[0]")),
        (model(json!([{"rates": {}, "tier": ""}])), format!("{price}.tier")),
        (model(json!([{"rates": {}}, {"rates": {}}])), "providers[0].models[0].prices[1]".into()),
        (
            model(
                json!([{"rates": {}, "from": "2026-03-01"}, {"rates": {}, "from": "2026-01-01", "until": "2026-04-01"}]),
            ),
            "providers[0].models[0].prices[1]".into(),
        ),
    ] {
        assert_eq!(fault(&table), path, "{table}");
    }
    assert_eq!(PriceTable::from_json("{").unwrap_err().code(), "invalid_price_table");
}

#[test]
fn a_message_quotes_no_value() {
    let table = model(json!([{"rates": {"input": "sk-secret"}}]));
    assert!(!PriceTable::from_json(&table.to_string()).unwrap_err().message().contains("sk-secret"));
}

fn priced(table: &Value, more: Value) -> String {
    let table = PriceTable::from_json(&table.to_string()).unwrap();
    priced_by(&table, more)
}

fn priced_by(table: &PriceTable, more: Value) -> String {
    let mut record = json!({"apiShape": "openai.chat", "provider": "acme", "model": "m",
        "raw": {"prompt_tokens": 1_000_000, "completion_tokens": 0}});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    cost::price_record(&record.to_string(), table, NOW, |_, c| c.pico.map_or("unknown".into(), usd_text)).unwrap()
}

fn at(time: &str) -> Value {
    json!({ "at": time })
}

#[test]
fn from_is_inclusive_and_until_exclusive() {
    let table = model(json!([
        {"from": "2026-01-01", "until": "2026-02-01", "rates": {"input": "1"}},
        {"from": "2026-02-01T12:00:00Z", "rates": {"input": "2"}},
    ]));
    for (time, usd) in [
        ("2025-12-31T23:59:59Z", "unknown"),
        ("2026-01-01T00:00:00Z", "1"),
        ("2026-01-31T23:59:59.999Z", "1"),
        ("2026-02-01", "unknown"),
        ("2026-02-01T12:00:00Z", "2"),
        ("2026-02-01T13:00:00+02:00", "unknown"),
        ("nonsense", "unknown"),
    ] {
        assert_eq!(priced(&table, at(time)), usd, "{time}");
    }
    assert_eq!(priced(&table, json!({"at": 1_767_225_600_000i64})), "1");
}

#[test]
fn hours_may_wrap_and_replace_key_by_key() {
    let table = model(json!([
        {"rates": {"input": "1", "output": "5"}},
        {"hours": {"utc": [["22:00", "02:00"]]}, "rates": {"input": "2"}},
    ]));
    for (time, usd) in [
        ("2026-01-01T21:59:59Z", "1"),
        ("2026-01-01T22:00:00Z", "2"),
        ("2026-01-02T01:59:59Z", "2"),
        ("2026-01-02T02:00:00Z", "1"),
    ] {
        assert_eq!(priced(&table, at(time)), usd, "{time}");
    }
}

#[test]
fn a_step_prices_the_whole_request_and_goes_with_the_key() {
    let table = model(json!([
        {"steps": [1_000_000], "rates": {"input": ["1", "2"], "output": "1"}},
        {"tier": "batch", "rates": {"input": "0.5"}},
    ]));
    let of = |tokens: u64, tier: &str| {
        priced(&table, json!({"raw": {"prompt_tokens": tokens, "completion_tokens": 0}, "tier": tier}))
    };
    assert_eq!((of(999_999, ""), of(1_000_000, "")), ("0.999999".into(), "2".into()));
    assert_eq!(of(1_000_000, "batches"), "0.5");
}

#[test]
fn fees_count_calls_or_requests_and_the_factor_leaves_them_alone() {
    let fee = |usd: &str, per: &str| json!({"usd_per_1000": usd, "per": per});
    let table = whole(json!({"id": "m", "geo": {"us": "1.1"}, "prices": [{"rates": {"input": "1", "output": "0"},
        "fees": {"web_search": fee("10", "call"), "file_search": fee("5", "request"), "request": fee("1", "call"), "crawl": fee("2", "call")}}]}));
    let of = |tools: Value| priced(&table, json!({ "toolCounts": tools }));
    assert_eq!(of(json!({})), "1.001");
    assert_eq!(of(json!({"web_search": 3, "file_search": 3})), "1.036");
    assert_eq!(of(json!({"crawl": 2, "web_search": 0})), "1.005");
    let raw = json!({"input_tokens": 1_000_000, "output_tokens": 0, "inference_geo": "us"});
    assert_eq!(priced(&table, json!({"apiShape": "anthropic.messages", "raw": raw})), "1.101");
}

#[test]
fn a_tool_without_a_fee_makes_a_lower_bound() {
    let table = PriceTable::from_json(&model(json!([{"rates": {"input": "1"}}])).to_string()).unwrap();
    let record = json!({"apiShape": "openai.chat", "provider": "acme", "model": "m", "toolCounts": {"web_search": 1},
        "raw": {"prompt_tokens": 1_000_000}});
    let found = cost::price_record(&record.to_string(), &table, NOW, |_, c| c).unwrap();
    assert_eq!((found.pico.map(usd_text).as_deref(), found.complete), (Some("1"), false));
}

#[test]
fn an_override_may_be_an_amount_or_prices_and_a_bad_one_is_unknown() {
    let table = model(json!([{"rates": {"input": "1"}}]));
    let of = |own: Value| priced(&table, json!({ "override": own }));
    assert_eq!(of(json!({"usd": "0.25"})), "0.25");
    assert_eq!(of(json!({"prices": [{"rates": {"input": "7"}}]})), "7");
    for bad in [
        json!({"usd": "-1"}),
        json!({"usd": true}),
        json!({}),
        json!({"prices": [{"rates": {"input": "-7"}}]}),
        json!({"prices": 1}),
    ] {
        assert_eq!(of(bad.clone()), "unknown", "{bad}");
    }
}

#[test]
fn entries_laid_over_a_table_win() {
    let base = json!({"schema": "sessionlog.prices/1", "as_of": "2026-01-01", "providers": [{"id": "acme", "aliases": ["a"], "models": [
        {"id": "m", "prices": [{"rates": {"input": "1"}}]},
        {"id": "other", "prices": [{"rates": {"input": "3"}}]}]}]});
    let over = json!({"schema": "sessionlog.prices/1", "providers": [
        {"id": "acme", "models": [{"id": "own", "match": ["m*"], "prices": [{"rates": {"input": "2"}}]}]},
        {"id": "new", "fallback": ["acme"], "models": []}]});
    let [base, over] = [base, over].map(|t| PriceTable::from_json(&t.to_string()).unwrap());
    let both = base.with(&over);
    assert_eq!(priced_by(&both, json!({})), "2");
    assert_eq!(priced_by(&both, json!({"model": "other", "provider": "A"})), "3");
    assert_eq!(priced_by(&both, json!({"provider": "new"})), "2");
    assert_eq!(priced_by(&base, json!({})), "1");
    assert_eq!((both.as_of(), both.len()), ("2026-01-01", 3));
    // Laid over once more, the newest wins.
    assert_eq!(priced_by(&both.with(&base), json!({})), "1");
}

#[test]
fn names_are_looked_up_by_the_rules() {
    let table = json!({"schema": "sessionlog.prices/1", "providers": [
        {"id": "anthropic", "models": [
            {"id": "short", "match": ["c*"], "exclude": ["*-tts"], "prices": []},
            {"id": "long", "match": ["c-long*"], "prices": []},
            {"id": "dated", "match": ["d-####-##-##"], "prices": []},
            {"id": "literal", "match": ["c-long-1"], "prices": []}]},
        {"id": "shop", "vendor_prefix": {"vendor/": "anthropic"}, "models": []},
        {"id": "cloud", "fallback": ["anthropic"], "models": []}]});
    let table = PriceTable::from_json(&table.to_string()).unwrap();
    let of = |provider: Option<&str>, model: &str| {
        table.lookup(provider, model).map(|f| format!("{} {}", f.model_id(), f.flags.names().collect::<String>()))
    };
    for (provider, model, expected) in [
        (Some("anthropic"), "C-x", "short "),
        (Some("Anthropic"), "c-long-2", "long "),
        (Some("anthropic"), "c-long-1", "literal "),
        (Some("anthropic"), "models/c-long-1", "literal "),
        (Some("anthropic"), "anthropic/c-long-1", "literal "),
        (Some("anthropic"), "d-20260102", "dated "),
        (Some("shop"), "vendor/c-x", "short fallback_provider"),
        (Some("cloud"), "c-x", "short fallback_provider"),
        (None, "c-x", "short provider_inferred"),
        (Some(""), "c-x", "short provider_inferred"),
    ] {
        assert_eq!(of(provider, model).as_deref(), Some(expected), "{provider:?} {model}");
        // The second time it is remembered.
        assert_eq!(of(provider, model).as_deref(), Some(expected), "{provider:?} {model}");
    }
    for (provider, model) in [
        (Some("anthropic"), "c-tts"),
        (Some("nobody"), "c-x"),
        (Some("shop"), "c-x"),
        (None, "e"),
        (Some("anthropic"), "d-2026010"),
    ] {
        assert_eq!(of(provider, model), None, "{provider:?} {model}");
    }
}
