//! Reading a price table: everything is checked, and every fault is named by its path.
//!
//! The schema is data and one small interpreter walks it, so that building the table afterwards needs no checks of its own.

use std::rc::Rc;

use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Surrogates, Value};
use crate::core::time::Millis;

use super::arithmetic::{exact, write_count};
use super::prices::{Fee, Hours, Model, Pattern, Price, PriceTable, Provider, Rate, RateKey};
use super::when;

/// Decimal places of a rate: dollars per million tokens down to attodollars per token.
const RATE_PLACES: u32 = 12;
/// Decimal places of a fee: dollars per thousand down to attodollars each.
const FEE_PLACES: u32 = 15;
/// Decimal places of a factor.
const FACTOR_PLACES: u32 = 6;

/// What a value must be.
enum Rule {
    Text,
    /// A text that is not empty.
    Name,
    /// This text.
    Is(&'static str),
    /// `YYYY-MM-DD`
    Day,
    /// A day or a second, UTC.
    Time,
    /// `HH:MM`, or `24:00`.
    Minute,
    Per,
    Flag,
    /// A whole number from 1 up to this.
    Whole(i64),
    /// A decimal in a string with at most so many places.
    Exact(u32),
    Rates,
    List(&'static Rule),
    /// An object whose keys are free.
    Map(&'static Rule),
    /// An object with these keys; the first ones, as many as the number says, are required.
    Object(usize, &'static [(&'static str, Rule)]),
}

const NAMES: Rule = Rule::List(&Rule::Name);

const TABLE: Rule = Rule::Object(
    2,
    &[
        ("schema", Rule::Is("sessionlog.prices/1")),
        ("providers", Rule::List(&PROVIDER)),
        ("currency", Rule::Is("USD")),
        ("rate_unit", Rule::Is("USD per 1,000,000 tokens")),
        ("fee_unit", Rule::Is("USD per 1,000 (calls or requests)")),
        ("as_of", Rule::Day),
        ("retrieved", Rule::Day),
        ("sources", Rule::List(&Rule::Text)),
        ("tier_aliases", Rule::Map(&Rule::List(&Rule::Text))),
        ("tier_equal", Rule::Map(&Rule::Map(&Rule::Name))),
    ],
);

const PROVIDER: Rule = Rule::Object(
    2,
    &[
        ("id", Rule::Name),
        ("models", Rule::List(&MODEL)),
        ("aliases", NAMES),
        ("fallback", NAMES),
        ("vendor_prefix", Rule::Map(&Rule::Name)),
    ],
);

const MODEL: Rule = Rule::Object(
    2,
    &[
        ("id", Rule::Name),
        ("prices", PRICES),
        ("match", NAMES),
        ("exclude", NAMES),
        ("context", Rule::Whole(i64::MAX)),
        ("deprecated", Rule::Flag),
        ("free", Rule::Flag),
        ("geo", Rule::Map(&Rule::Exact(FACTOR_PLACES))),
    ],
);

const PRICES: Rule = Rule::List(&Rule::Object(
    1,
    &[
        ("rates", Rule::Rates),
        ("from", Rule::Time),
        ("until", Rule::Time),
        ("tier", Rule::Name),
        (
            "hours",
            Rule::Object(1, &[("utc", Rule::List(&Rule::List(&Rule::Minute))), ("days", Rule::List(&Rule::Whole(7)))]),
        ),
        ("steps", Rule::List(&Rule::Whole(i64::MAX))),
        ("fees", Rule::Map(&Rule::Object(2, &[("usd_per_1000", Rule::Exact(FEE_PLACES)), ("per", Rule::Per)]))),
    ],
));

/// Spellings of tiers in a table that names none.
const TIERS: &str =
    r#"{"standard":["","default","standard","auto","on_demand","on-demand","none"],"batch":["batch","batches"]}"#;

/// One step of a path.
enum Step {
    Member(String),
    Item(usize),
}

/// Reads one table. The path is where the reader stands: after a fault it is left as it is, and names the place.
#[derive(Default)]
struct Reader {
    path: Vec<Step>,
    tiers: Vec<(String, String)>,
}

/// A fault: what is wrong with the value at the reader's path.
type Checked<T = ()> = std::result::Result<T, &'static str>;

/// Reads a whole table.
pub(super) fn read(text: &str) -> Result<PriceTable> {
    let mut reader = Reader::default();
    let value = json::parse(text, Surrogates::Replace).map_err(|_| reader.error("is not JSON"))?;
    reader.table(&value).map_err(|what| reader.error(what))
}

/// Reads a list of prices that stands alone, as a record may carry it.
pub(super) fn override_model(prices: &Value) -> Result<Model> {
    let mut reader = Reader { path: Vec::new(), tiers: tiers(&Value::Null) };
    let read = reader.check(prices, &PRICES).and_then(|()| reader.prices(prices));
    read.map(|prices| Model { prices, ..Model::default() }).map_err(|what| reader.error(what))
}

/// What an optional member holds; what is missing is an empty list, object or text.
fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_default()
}

#[inline(never)]
fn members<'v>(value: &'v Value, key: &str) -> Vec<(&'v str, &'v Value)> {
    value.get(key).and_then(Value::as_object).map(|o| o.iter().collect()).unwrap_or_default()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[inline(never)]
fn lower(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_ascii_lowercase()
}

#[inline(never)]
fn names(value: &Value, key: &str) -> Vec<String> {
    let mut out = Vec::new();
    for item in list(value, key) {
        out.push(lower(item));
    }
    out
}

#[inline(never)]
fn pairs(value: &Value, key: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (name, other) in members(value, key) {
        out.push((name.to_ascii_lowercase(), lower(other)));
    }
    out
}

fn patterns(value: &Value, key: &str) -> Vec<Pattern> {
    let mut out = Vec::new();
    for name in names(value, key) {
        out.push(Pattern::new(&name));
    }
    out
}

/// A decimal that was checked.
fn amount(value: &Value, places: u32) -> u128 {
    exact(value.as_str().unwrap_or_default(), places).unwrap_or_default()
}

fn tiers(table: &Value) -> Vec<(String, String)> {
    let standard = json::parse(TIERS, Surrogates::Replace).unwrap_or_default();
    let named = table.get("tier_aliases").and_then(Value::as_object).or(standard.as_object());
    let mut out = Vec::new();
    for (tier, spellings) in named.into_iter().flat_map(|o| o.iter()) {
        for spelling in spellings.as_array().unwrap_or_default() {
            out.push((lower(spelling), tier.to_ascii_lowercase()));
        }
    }
    out
}

impl Reader {
    #[cold]
    #[inline(never)]
    fn error(&self, what: &str) -> Error {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Member(key) => {
                    path.push_str(if path.is_empty() { "" } else { "." });
                    path.push_str(key);
                }
                Step::Item(index) => {
                    path.push('[');
                    write_count(&mut path, *index as u64);
                    path.push(']');
                }
            }
        }
        let place = if path.is_empty() { "the table" } else { &path };
        Error::new(Kind::InvalidPriceTable, [place, ": ", what].concat()).with("path", path)
    }

    #[inline(never)]
    fn enter(&mut self, key: &str) {
        self.path.push(Step::Member(key.to_owned()));
    }

    fn enter_item(&mut self, index: usize) {
        self.path.push(Step::Item(index));
    }

    fn leave(&mut self) {
        self.path.pop();
    }

    /// Checks a value and all it holds.
    fn check(&mut self, value: &Value, rule: &Rule) -> Checked {
        let text = value.as_str();
        let (is_right, what) = match rule {
            Rule::Text => (text.is_some(), "is not a string"),
            Rule::Name => (text.is_some_and(|t| !t.is_empty()), "is not a string, or empty"),
            Rule::Is(expected) => (text == Some(expected), "is not the one that this schema has"),
            Rule::Day => (text.is_some_and(|t| t.len() == 10 && when::parse(t).is_some()), "is not a day (YYYY-MM-DD)"),
            Rule::Time => (text.and_then(when::parse).is_some(), "is not a UTC day or second"),
            Rule::Minute => (text.and_then(minute).is_some(), "is not HH:MM"),
            Rule::Per => (matches!(text, Some("call" | "request")), "is neither \"call\" nor \"request\""),
            Rule::Flag => (value.as_bool().is_some(), "is not true or false"),
            Rule::Whole(most) => {
                (value.as_i64().is_some_and(|n| n > 0 && n <= *most), "is not a whole number in its range")
            }
            Rule::Exact(places) => return exact(text.ok_or("is not a decimal in a string")?, *places).map(|_| ()),
            Rule::Rates => return self.check_rates(value),
            Rule::List(rule) => return self.check_list(value, rule),
            Rule::Map(rule) => return self.check_members(value, |_| Some(rule)),
            Rule::Object(required, fields) => {
                self.check_members(value, |key| fields.iter().find(|(name, _)| *name == key).map(|(_, rule)| rule))?;
                let missing = fields.iter().take(*required).find(|(name, _)| value.get(name).is_none());
                if let Some((name, _)) = missing {
                    self.enter(name);
                }
                (missing.is_none(), "is missing")
            }
        };
        if is_right { Ok(()) } else { Err(what) }
    }

    fn check_list(&mut self, value: &Value, rule: &Rule) -> Checked {
        for (i, item) in value.as_array().ok_or("is not an array")?.iter().enumerate() {
            self.enter_item(i);
            self.check(item, rule)?;
            self.leave();
        }
        Ok(())
    }

    fn check_members<'r>(&mut self, value: &Value, rule: impl Fn(&str) -> Option<&'r Rule>) -> Checked {
        for (key, member) in value.as_object().ok_or("is not an object")?.iter() {
            self.enter(key);
            self.check(member, rule(key).ok_or("is not a key of the schema")?)?;
            self.leave();
        }
        Ok(())
    }

    fn check_rates(&mut self, value: &Value) -> Checked {
        for (key, rate) in value.as_object().ok_or("is not an object")?.iter() {
            self.enter(key);
            key_of(key).ok_or("is not a key of the schema")?;
            match rate {
                Value::Array(_) => self.check_list(rate, &Rule::Exact(RATE_PLACES))?,
                _ => self.check(rate, &Rule::Exact(RATE_PLACES))?,
            }
            self.leave();
        }
        Ok(())
    }

    fn table(&mut self, value: &Value) -> Checked<PriceTable> {
        self.check(value, &TABLE)?;
        self.tiers = tiers(value);
        let mut equal = Vec::new();
        for (provider, tiers) in members(value, "tier_equal") {
            for (from, to) in tiers.as_object().into_iter().flat_map(|o| o.iter()) {
                equal.push((provider.to_ascii_lowercase(), from.to_ascii_lowercase(), lower(to)));
            }
        }
        let mut providers: Vec<Rc<Provider>> = Vec::new();
        self.enter("providers");
        for (i, item) in list(value, "providers").iter().enumerate() {
            self.enter_item(i);
            let provider = self.provider(item)?;
            let mut names = std::iter::once(&provider.id).chain(&provider.aliases);
            if names.any(|name| providers.iter().any(|other| other.is_named(name))) {
                return Err("answers to a name of another provider");
            }
            providers.push(Rc::new(provider));
            self.leave();
        }
        Ok(PriceTable::new(text(value, "as_of").to_owned(), std::mem::take(&mut self.tiers), equal, providers))
    }

    fn provider(&mut self, value: &Value) -> Checked<Provider> {
        let mut models: Vec<Rc<Model>> = Vec::new();
        self.enter("models");
        for (i, item) in list(value, "models").iter().enumerate() {
            self.enter_item(i);
            let model = self.model(item)?;
            for other in &models {
                let is_double = |p: &Pattern| p.is_literal() && other.matches.contains(p);
                if other.id == model.id || model.matches.iter().any(is_double) {
                    return Err("has a name of another model");
                }
            }
            models.push(Rc::new(model));
            self.leave();
        }
        self.leave();
        Ok(Provider {
            id: text(value, "id").to_ascii_lowercase(),
            aliases: names(value, "aliases"),
            fallback: names(value, "fallback"),
            vendor_prefix: pairs(value, "vendor_prefix"),
            models,
        })
    }

    fn model(&mut self, value: &Value) -> Checked<Model> {
        let id = text(value, "id").to_ascii_lowercase();
        let mut matches = patterns(value, "match");
        if matches.is_empty() {
            if value.get("match").is_some() {
                self.enter("match");
                return Err("is empty");
            }
            matches.push(Pattern::new(&id));
        }
        let mut geo = Vec::new();
        for (place, factor) in members(value, "geo") {
            geo.push((place.to_ascii_lowercase(), amount(factor, FACTOR_PLACES)));
        }
        self.enter("prices");
        let prices = self.prices(value.get("prices").unwrap_or(&Value::Null))?;
        self.leave();
        let free = value.get("free").and_then(Value::as_bool).unwrap_or_default();
        Ok(Model { id, matches, exclude: patterns(value, "exclude"), free, geo, prices })
    }

    fn prices(&mut self, value: &Value) -> Checked<Vec<Price>> {
        let mut out: Vec<Price> = Vec::new();
        for (i, item) in value.as_array().unwrap_or_default().iter().enumerate() {
            self.enter_item(i);
            let price = self.price(item)?;
            if out.iter().any(|other| price.overlaps(other) || other.overlaps(&price)) {
                return Err("overlaps the dates of another entry");
            }
            out.push(price);
            self.leave();
        }
        Ok(out)
    }

    fn price(&mut self, value: &Value) -> Checked<Price> {
        let time = |key| when::parse(text(value, key));
        let mut steps = Vec::new();
        for step in list(value, "steps") {
            steps.push(step.as_i64().unwrap_or_default() as u64);
        }
        if !steps.is_sorted_by(|a, b| a < b) {
            self.enter("steps");
            return Err("is not a rising list");
        }
        let out = Price {
            from: time("from").unwrap_or(Millis::MIN),
            until: time("until").unwrap_or(Millis::MAX),
            tier: self.tier(value),
            hours: self.hours(value)?,
            rates: self.rates(value, steps.len())?,
            steps,
            fees: fees(value),
        };
        if out.until <= out.from {
            self.enter("until");
            return Err("is not after `from`");
        }
        Ok(out)
    }

    /// The canonical name of a tier; the standard one is none.
    fn tier(&self, value: &Value) -> Option<String> {
        let name = lower(value.get("tier")?);
        let known = self.tiers.iter().find(|(spelling, _)| *spelling == name);
        let name = known.map_or(&name, |(_, tier)| tier);
        (name != "standard").then(|| name.clone())
    }

    fn rates(&mut self, value: &Value, steps: usize) -> Checked<Vec<Rate>> {
        let mut out = Vec::new();
        for (name, rate) in members(value, "rates") {
            let Some(key) = key_of(name) else { continue };
            let amounts = rate.as_array().unwrap_or(std::slice::from_ref(rate));
            if rate.as_array().is_some() && (steps == 0 || amounts.len() != steps + 1) {
                self.enter("rates");
                self.enter(name);
                return Err("does not have one rate more than there are steps");
            }
            let mut atto = Vec::new();
            for rate in amounts {
                atto.push(amount(rate, RATE_PLACES));
            }
            out.push(Rate { key, atto });
        }
        Ok(out)
    }

    fn hours(&mut self, value: &Value) -> Checked<Option<Hours>> {
        let Some(hours) = value.get("hours") else { return Ok(None) };
        let mut out = Hours { spans: Vec::new(), days: Vec::new() };
        for (i, span) in list(hours, "utc").iter().enumerate() {
            let at = |i: usize| span.as_array()?.get(i)?.as_str().and_then(minute);
            match (at(0), at(1), at(2)) {
                (Some(start), Some(end), None) if start != end => out.spans.push((start, end)),
                _ => {
                    self.enter("hours");
                    self.enter("utc");
                    self.enter_item(i);
                    return Err("is not a pair of two times");
                }
            }
        }
        for day in list(hours, "days") {
            out.days.push(day.as_i64().unwrap_or_default());
        }
        Ok(Some(out))
    }
}

fn key_of(name: &str) -> Option<RateKey> {
    RateKey::ALL.iter().find(|(_, text)| *text == name).map(|(key, _)| *key)
}

fn fees(value: &Value) -> Vec<Fee> {
    let mut out = Vec::new();
    for (tool, fee) in members(value, "fees") {
        let atto = amount(fee.get("usd_per_1000").unwrap_or(&Value::Null), FEE_PLACES);
        out.push(Fee { tool: tool.to_owned(), atto, once: text(fee, "per") == "request" });
    }
    out
}

/// `HH:MM` as minutes of the day; the end of the day is a time no clock shows.
fn minute(text: &str) -> Option<i64> {
    match when::minutes(text) {
        Some((minute, "")) => Some(minute),
        _ => (text == "24:00").then_some(24 * 60),
    }
}

impl Price {
    /// Entries of one kind follow each other: no two start together, and none ends after a later one has begun.
    fn overlaps(&self, later: &Price) -> bool {
        let is_same_kind = self.tier == later.tier && self.hours == later.hours;
        let runs_into = self.from < later.from && self.until != Millis::MAX && self.until > later.from;
        is_same_kind && (self.from == later.from || runs_into)
    }
}
