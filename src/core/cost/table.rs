//! Reading a price table: everything is checked, and every fault is named by its path.
//!
//! The schema is data and one small interpreter walks it, so that building the table afterwards needs no checks of its own.

use std::rc::Rc;

use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Surrogates, Value};
use crate::core::time::Millis;

use super::arithmetic::{exact, write_count};
use super::prices::{Fee, Hours, Model, Pairs, Price, PriceTable, Provider, Rate, RateKey, find, is_literal};
use super::when;

/// Decimal places of a rate: dollars per million tokens down to attodollars per token.
pub(super) const RATE_PLACES: u32 = 12;
/// Decimal places of a fee: dollars per thousand down to attodollars each.
const FEE_PLACES: u32 = 15;
/// Decimal places of a factor.
pub(super) const FACTOR_PLACES: u32 = 6;

/// What a value must be.
enum Rule {
    Text,
    /// A text that is not empty.
    Name,
    /// This text.
    Is(&'static str),
    /// A day, or with room for it a second, UTC: at most so many characters.
    Time(usize),
    /// `HH:MM`, or `24:00`.
    Minute,
    Per,
    Flag,
    /// A whole number from 1 up to this.
    Whole(i64),
    /// A decimal in a string with at most so many places.
    Exact(u32),
    /// An object of rates.
    Rates,
    /// One alone, or a list.
    OneOrMore(&'static Rule),
    List(&'static Rule),
    /// An object whose keys are free.
    Map(&'static Rule),
    /// An object with these keys; the first ones, as many as the number says, are required.
    Object(usize, &'static [(&'static str, Rule)]),
}

const DAY: Rule = Rule::Time("YYYY-MM-DD".len());
const RATE: Rule = Rule::OneOrMore(&Rule::Exact(RATE_PLACES));
const NAMES: Rule = Rule::List(&Rule::Name);

const TABLE: Rule = Rule::Object(
    2,
    &[
        ("schema", Rule::Is("sessionlog.prices/1")),
        ("providers", Rule::List(&PROVIDER)),
        ("currency", Rule::Is("USD")),
        ("rate_unit", Rule::Is("USD per 1,000,000 tokens")),
        ("fee_unit", Rule::Is("USD per 1,000 (calls or requests)")),
        ("as_of", DAY),
        ("retrieved", DAY),
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
        ("from", Rule::Time(usize::MAX)),
        ("until", Rule::Time(usize::MAX)),
        ("tier", Rule::Name),
        (
            "hours",
            Rule::Object(1, &[("utc", Rule::List(&Rule::List(&Rule::Minute))), ("days", Rule::List(&Rule::Whole(7)))]),
        ),
        ("steps", Rule::List(&Rule::Whole(i64::MAX))),
        ("fees", Rule::Map(&Rule::Object(2, &[("usd_per_1000", Rule::Exact(FEE_PLACES)), ("per", Rule::Per)]))),
    ],
));

/// Reads one table. The path is where the reader stands: after a fault it is left as it is, and names the place.
#[derive(Default)]
pub(super) struct Reader {
    path: String,
    tiers: Pairs,
}

/// A fault: what is wrong with the value at the reader's path.
pub(super) type Checked<T = ()> = std::result::Result<T, &'static str>;

/// Reads a whole table.
pub(super) fn read(text: &str) -> Result<PriceTable> {
    let mut reader = Reader::default();
    let value = json::parse(text, Surrogates::Replace).map_err(|_| reader.error("is not JSON"))?;
    reader.table(&value).map_err(|what| reader.error(what))
}

/// Reads a list of prices that stands alone, as a record may carry it; nothing when it has a fault.
pub(super) fn override_model(prices: &str) -> Option<Model> {
    let prices = parsed(prices);
    let mut reader = Reader { path: String::new(), tiers: tiers(&Value::Null) };
    reader.check(&prices, &PRICES).ok()?;
    Some(Model { prices: reader.prices(&prices).ok()?, ..Model::default() })
}

/// A text as a value; what is none is `null`.
#[inline(never)]
pub(super) fn parsed(text: &str) -> Value {
    json::parse(text, Surrogates::Replace).unwrap_or_default()
}

/// What an optional member holds; what is missing is an empty list, object or text.
#[inline(never)]
fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_default()
}

#[inline(never)]
fn members(value: &Value) -> Vec<(&str, &Value)> {
    value.as_object().map(|o| o.iter().collect()).unwrap_or_default()
}

/// The members of an optional member.
fn members_of<'v>(value: &'v Value, key: &str) -> Vec<(&'v str, &'v Value)> {
    value.get(key).map(members).unwrap_or_default()
}

#[inline(never)]
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

/// Adds the members of an object, under names that begin alike.
#[inline(never)]
fn pairs(out: &mut Pairs, prefix: &str, members: Vec<(&str, &Value)>) {
    for (name, other) in members {
        out.push(([prefix, name].concat().to_ascii_lowercase(), lower(other)));
    }
}

/// A decimal that was checked.
#[inline(never)]
fn amount(value: &Value, places: u32) -> u128 {
    exact(value.as_str().unwrap_or_default(), places).unwrap_or_default()
}

/// The spellings of tiers; those of a table that names none are the shipped table's.
#[inline(never)]
fn tiers(table: &Value) -> Pairs {
    let mut out = Vec::new();
    match table.get("tier_aliases") {
        Some(named) => {
            for (tier, spellings) in members(named) {
                for spelling in spellings.as_array().unwrap_or_default() {
                    out.push((lower(spelling), tier.to_ascii_lowercase()));
                }
            }
        }
        None => return PriceTable::builtin().map(|table| table.tier_aliases.clone()).unwrap_or_default(),
    }
    out
}

impl Reader {
    #[cold]
    #[inline(never)]
    fn error(&mut self, what: &str) -> Error {
        let path = std::mem::take(&mut self.path);
        let place = if path.is_empty() { "the table" } else { &path };
        Error::new(Kind::InvalidPriceTable, [place, ": ", what].concat()).with("path", path)
    }

    /// Goes to a member; the answer leads back.
    #[inline(never)]
    fn enter(&mut self, key: &str) -> usize {
        let outside = self.path.len();
        self.path.push_str(if outside == 0 { "" } else { "." });
        self.path.push_str(key);
        outside
    }

    #[inline(never)]
    fn enter_item(&mut self, index: usize) -> usize {
        let outside = self.path.len();
        self.path.push('[');
        write_count(&mut self.path, index as u64);
        self.path.push(']');
        outside
    }

    fn leave(&mut self, outside: usize) {
        self.path.truncate(outside);
    }

    /// A fault of a member.
    fn fault<T>(&mut self, member: &str, what: &'static str) -> Checked<T> {
        self.enter(member);
        Err(what)
    }

    /// Checks a value and all it holds.
    fn check(&mut self, value: &Value, rule: &Rule) -> Checked {
        let text = value.as_str();
        let (is_right, what) = match rule {
            Rule::Text => (text.is_some(), "is not a string"),
            Rule::Name => (text.is_some_and(|t| !t.is_empty()), "is not a string, or empty"),
            Rule::Is(expected) => (text == Some(expected), "is not the one that this schema has"),
            Rule::Time(least) => {
                (text.is_some_and(|t| t.len() <= *least && when::parse(t).is_some()), "is not a UTC day or second")
            }
            Rule::Minute => (text.and_then(minute).is_some(), "is not HH:MM"),
            Rule::Per => (matches!(text, Some("call" | "request")), "is neither \"call\" nor \"request\""),
            Rule::Flag => (value.as_bool().is_some(), "is not true or false"),
            Rule::Whole(most) => {
                (value.as_i64().is_some_and(|n| n > 0 && n <= *most), "is not a whole number in its range")
            }
            Rule::Exact(places) => return exact(text.ok_or("is not a decimal in a string")?, *places).map(|_| ()),
            Rule::OneOrMore(rule) if value.as_array().is_none() => return self.check(value, rule),
            Rule::List(rule) | Rule::OneOrMore(rule) => {
                for (i, item) in value.as_array().ok_or("is not an array")?.iter().enumerate() {
                    let outside = self.enter_item(i);
                    self.check(item, rule)?;
                    self.leave(outside);
                }
                return Ok(());
            }
            Rule::Map(..) | Rule::Rates | Rule::Object(..) => return self.check_members(value, rule),
        };
        if is_right { Ok(()) } else { Err(what) }
    }

    fn check_members(&mut self, value: &Value, rule: &Rule) -> Checked {
        value.as_object().ok_or("is not an object")?;
        for (key, member) in members(value) {
            let outside = self.enter(key);
            let rule = match rule {
                Rule::Map(rule) => Some(*rule),
                Rule::Object(_, fields) => fields.iter().find(|(name, _)| *name == key).map(|(_, rule)| rule),
                _ => key_of(key).map(|_| &RATE),
            };
            self.check(member, rule.ok_or("is not a key of the schema")?)?;
            self.leave(outside);
        }
        let Rule::Object(required, fields) = rule else { return Ok(()) };
        match fields.iter().take(*required).find(|(name, _)| value.get(name).is_none()) {
            Some((name, _)) => self.fault(name, "is missing"),
            None => Ok(()),
        }
    }

    /// Reads a table.
    pub(super) fn table(&mut self, value: &Value) -> Checked<PriceTable> {
        self.check(value, &TABLE)?;
        self.tiers = tiers(value);
        let mut equal = Vec::new();
        for (provider, tiers) in members_of(value, "tier_equal") {
            pairs(&mut equal, &[provider, "/"].concat(), members(tiers));
        }
        let mut providers: Vec<Rc<Provider>> = Vec::new();
        self.enter("providers");
        for (i, item) in list(value, "providers").iter().enumerate() {
            let outside = self.enter_item(i);
            let provider = self.provider(item)?;
            let mut names = std::iter::once(&provider.id).chain(&provider.aliases);
            if names.any(|name| providers.iter().any(|other| other.is_named(name))) {
                return Err("answers to a name of another provider");
            }
            providers.push(Rc::new(provider));
            self.leave(outside);
        }
        Ok(PriceTable::new(text(value, "as_of").to_owned(), std::mem::take(&mut self.tiers), equal, providers))
    }

    /// Reads a provider that was checked.
    pub(super) fn provider(&mut self, value: &Value) -> Checked<Provider> {
        let mut models: Vec<Model> = Vec::new();
        let outside = self.enter("models");
        for (i, item) in list(value, "models").iter().enumerate() {
            let outside = self.enter_item(i);
            let model = self.model(item)?;
            for other in &models {
                let is_double = |name: &String| is_literal(name) && other.matches.contains(name);
                if other.id == model.id || model.matches.iter().any(is_double) {
                    return Err("has a name of another model");
                }
            }
            models.push(model);
            self.leave(outside);
        }
        self.leave(outside);
        let mut vendor_prefix = Vec::new();
        pairs(&mut vendor_prefix, "", members_of(value, "vendor_prefix"));
        Ok(Provider {
            id: text(value, "id").to_ascii_lowercase(),
            aliases: names(value, "aliases"),
            fallback: names(value, "fallback"),
            vendor_prefix,
            models,
        })
    }

    fn model(&mut self, value: &Value) -> Checked<Model> {
        let id = text(value, "id").to_ascii_lowercase();
        let mut out = Model { matches: names(value, "match"), exclude: names(value, "exclude"), ..Model::default() };
        if out.matches.is_empty() {
            if value.get("match").is_some() {
                return self.fault("match", "is empty");
            }
            out.matches.push(id.clone());
        }
        out.id = id;
        more(&mut out, value);
        let outside = self.enter("prices");
        out.prices = self.prices(value.get("prices").unwrap_or(&Value::Null))?;
        self.leave(outside);
        Ok(out)
    }

    fn prices(&mut self, value: &Value) -> Checked<Vec<Price>> {
        let mut out: Vec<Price> = Vec::new();
        for (i, item) in value.as_array().unwrap_or_default().iter().enumerate() {
            let outside = self.enter_item(i);
            let price = self.price(item)?;
            if out.iter().any(|other| price.overlaps(other) || other.overlaps(&price)) {
                return Err("overlaps the dates of another entry");
            }
            out.push(price);
            self.leave(outside);
        }
        Ok(out)
    }

    fn price(&mut self, value: &Value) -> Checked<Price> {
        let time = |key, default| when::parse(text(value, key)).unwrap_or(default);
        let mut out = Price { from: time("from", Millis::MIN), until: time("until", Millis::MAX), ..Price::default() };
        if out.until <= out.from {
            return self.fault("until", "is not after `from`");
        }
        for step in list(value, "steps") {
            let step = step.as_i64().unwrap_or_default() as u64;
            if out.steps.last().is_some_and(|last| *last >= step) {
                return self.fault("steps", "is not a rising list");
            }
            out.steps.push(step);
        }
        if let Some(tier) = value.get("tier") {
            let name = lower(tier);
            let tier = find(&self.tiers, &name).unwrap_or(&name);
            // The canonical name; the standard tier is none.
            out.tier = (tier != "standard").then(|| tier.to_owned());
        }
        if let Some(hours) = value.get("hours") {
            out.hours = Some(self.hours(hours)?);
        }
        for (name, rate) in members_of(value, "rates") {
            let Some(key) = key_of(name) else { continue };
            let steps = rate.as_array().map(<[_]>::len);
            if steps.is_some_and(|n| n < 2 || n != out.steps.len() + 1) {
                self.enter("rates");
                return self.fault(name, "does not have one rate more than there are steps");
            }
            for (step, rate) in rate.as_array().unwrap_or(std::slice::from_ref(rate)).iter().enumerate() {
                out.rates.push(Rate { key, step, atto: amount(rate, RATE_PLACES) });
            }
        }
        out.fees = fees(value.get("fees").unwrap_or(&Value::Null));
        Ok(out)
    }

    /// Reads hours that were checked.
    pub(super) fn hours(&mut self, hours: &Value) -> Checked<Hours> {
        let mut out = Hours::default();
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
            out.days |= 1 << (day.as_i64().unwrap_or_default() & 7);
        }
        Ok(out)
    }
}

/// Reads what few models have.
pub(super) fn more(model: &mut Model, value: &Value) {
    pairs(&mut model.geo, "", members_of(value, "geo"));
    model.free = value.get("free").and_then(Value::as_bool).unwrap_or_default();
}

fn key_of(name: &str) -> Option<RateKey> {
    RateKey::ALL.iter().find(|(_, text)| *text == name).map(|(key, _)| *key)
}

/// Reads fees that were checked.
pub(super) fn fees(value: &Value) -> Vec<Fee> {
    let mut out = Vec::new();
    for (tool, fee) in members(value) {
        let atto = amount(fee.get("usd_per_1000").unwrap_or(&Value::Null), FEE_PLACES);
        out.push(Fee { tool: tool.to_owned(), atto, once: text(fee, "per") == "request" });
    }
    out
}

/// `HH:MM` as minutes of the day; the end of the day is a time no clock shows.
fn minute(text: &str) -> Option<i64> {
    when::minutes(text).or((text == "24:00").then_some(24 * 60))
}

impl Price {
    /// Entries of one kind follow each other: no two start together, and none ends after a later one has begun.
    #[inline(never)]
    fn overlaps(&self, later: &Price) -> bool {
        let is_same_kind = self.tier == later.tier && self.hours == later.hours;
        let runs_into = self.from < later.from && self.until != Millis::MAX && self.until > later.from;
        is_same_kind && (self.from == later.from || runs_into)
    }
}
