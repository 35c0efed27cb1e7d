//! Checks a price table and prints its date: the committed one, or the file that is named. The committed one is packed, too
//! (the module carries it in that form, see `src/core/cost/packed.rs`).

use std::process::ExitCode;

use serde_json::{Value, json};
use sessionlog::core::cost::PriceTable;
use sessionlog::core::cost::arithmetic::exact;
use sessionlog::core::cost::prices::RateKey;

/// Where the committed table is.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/core/cost/prices.json");
const PACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/core/cost/prices.packed");

fn main() -> ExitCode {
    match run(std::env::args().nth(1)) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(named: Option<String>) -> Result<String, String> {
    let file = named.as_deref().unwrap_or(FILE);
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let table = PriceTable::from_json(&text).map_err(|error| error.to_string())?;
    let mut said = format!("prices as of {}, {} models, no fault", table.as_of(), table.len());
    let packed = pack(&serde_json::from_str(&text).map_err(|error| error.to_string())?);
    if named.is_none() && std::fs::read_to_string(PACKED).ok().as_ref() != Some(&packed) {
        std::fs::write(PACKED, packed).map_err(|error| error.to_string())?;
        said.push_str("; packed anew");
    }
    Ok(said)
}

fn pack(table: &Value) -> String {
    let mut lines = vec![picked(table, &["schema", "as_of", "tier_aliases", "tier_equal"], json!({"providers": []}))];
    for provider in list(&table["providers"]) {
        let names = picked(provider, &["id", "aliases", "fallback", "vendor_prefix"], json!({"models": []}));
        lines.push(format!("@{names}"));
        for model in list(&provider["models"]) {
            lines.push(packed_model(model));
            let prices = list(&model["prices"]);
            lines.extend(
                prices.iter().enumerate().map(|(i, price)| packed_price(price, prices.first().filter(|_| i > 0))),
            );
        }
    }
    lines.join("\n")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Some members of an object, as JSON.
fn picked(value: &Value, keys: &[&str], mut out: Value) -> String {
    for key in keys {
        if let (Some(member), Some(out)) = (value.get(key), out.as_object_mut()) {
            out.insert((*key).to_owned(), member.clone());
        }
    }
    out.to_string()
}

fn packed_model(model: &Value) -> String {
    let id = text(&model["id"]);
    let mut words = vec![format!("={id}")];
    let patterns = list(&model["match"]);
    // Its own id is what a model without patterns matches.
    if patterns.len() != 1 || text(&patterns[0]) != id {
        words.extend(patterns.iter().map(|pattern| text(pattern).replace(id, "=")));
    }
    words.extend(list(&model["exclude"]).iter().map(|pattern| format!("!{}", text(pattern))));
    let more = picked(model, &["free", "geo"], json!({}));
    if more != "{}" {
        words.push(format!("&{more}"));
    }
    words.join(" ")
}

/// The shorter of the two ways to write a price.
fn packed_price(price: &Value, first: Option<&Value>) -> String {
    let derived = first.into_iter().flat_map(|first| derived(price, first));
    let rates = derived.chain([plain(price)]).min_by_key(String::len).unwrap_or_default();
    let mut words = vec![rates];
    for (key, sign) in [("tier", "t"), ("from", ">"), ("until", "<")] {
        words.extend(price.get(key).map(|value| format!("{sign}{}", text(value))));
    }
    for (key, sign) in [("fees", "$"), ("hours", "%")] {
        words.extend(price.get(key).map(|value| format!("{sign}{value}")));
    }
    words.join(" ")
}

/// The amounts of a rate as they are written.
fn amounts(rate: &Value) -> Vec<&str> {
    rate.as_array().map_or_else(|| vec![text(rate)], |list| list.iter().map(text).collect())
}

fn letter(index: usize) -> char {
    char::from(b'a' + index as u8)
}

fn steps(price: &Value) -> String {
    let steps: Vec<_> = list(&price["steps"]).iter().map(Value::to_string).collect();
    format!("s{}", steps.join(","))
}

fn plain(price: &Value) -> String {
    let mut words = Vec::new();
    let input = price["rates"].get("input").map_or("", |input| amounts(input)[0]);
    for (i, (_, key)) in RateKey::ALL.iter().enumerate() {
        let Some(rate) = price["rates"].get(key) else { continue };
        let factors: Option<Vec<_>> = amounts(rate).into_iter().map(|amount| factor(amount, input)).collect();
        match factors.filter(|_| i > 0) {
            Some(factors) => words.push(format!("{}{}", letter(i).to_ascii_uppercase(), factors.join("/"))),
            None => words.push(format!("{}{}", letter(i), amounts(rate).join("/"))),
        }
    }
    if price.get("steps").is_some() {
        words.push(steps(price));
    }
    words.join(" ")
}

/// Every way to say a price by the first one: with each factor that one of its rates has.
fn derived(price: &Value, first: &Value) -> Vec<String> {
    let rate = |price: &Value, key: &str| price["rates"].get(key).map(|rate| amounts(rate).join("/"));
    let factors = RateKey::ALL
        .iter()
        .filter_map(|(_, key)| factor(amounts(price["rates"].get(key)?)[0], amounts(first["rates"].get(key)?)[0]));
    let say = |by: String| {
        let mut words = vec![format!("x{by}")];
        for (i, (_, key)) in RateKey::ALL.iter().enumerate() {
            let taken = first["rates"].get(key).map(|rate| {
                let amounts: Vec<_> = amounts(rate).into_iter().map(|amount| product(amount, &by)).collect();
                amounts.join("/")
            });
            if taken.is_none() && rate(price, key).is_none() {
                continue;
            }
            if taken
                != rate(price, key)
                    .map(|rate| rate.split('/').map(|amount| product(amount, "1")).collect::<Vec<_>>().join("/"))
            {
                words.push(format!("{}{}", letter(i), rate(price, key).unwrap_or_default()));
            }
        }
        if price.get("steps") != first.get("steps") {
            words.push(steps(price));
        }
        words.join(" ")
    };
    factors.map(say).collect()
}

const RATE_PLACES: u32 = 12;
const FACTOR_PLACES: u32 = 6;

/// `amount / of` when that is short and exact.
fn factor(amount: &str, of: &str) -> Option<String> {
    let (amount, of) = (exact(amount, RATE_PLACES).ok()?, exact(of, RATE_PLACES).ok().filter(|of| *of > 0)?);
    let millionths = amount * 1_000_000;
    let said = written(millionths / of, FACTOR_PLACES);
    (millionths % of == 0 && said.len() <= 6).then_some(said)
}

/// `amount * by`, in full; what is not exact is nothing that a rate could be.
fn product(amount: &str, by: &str) -> String {
    let (Ok(amount), Ok(by)) = (exact(amount, RATE_PLACES), exact(by, FACTOR_PLACES)) else { return String::new() };
    if (amount * by) % 1_000_000 == 0 { written(amount * by / 1_000_000, RATE_PLACES) } else { String::new() }
}

fn written(value: u128, places: u32) -> String {
    let unit = 10_u128.pow(places);
    let fraction = format!("{:0width$}", value % unit, width = places as usize);
    format!("{}.{fraction}", value / unit).trim_end_matches('0').trim_end_matches('.').to_owned()
}
