//! Reading a price table: everything is checked, and every fault is named by its path.

use std::rc::Rc;

use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Object, Surrogates, Value};
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

/// What the three units must say where a table names them.
const UNITS: &[(&str, &str)] = &[
    ("schema", "sessionlog.prices/1"),
    ("currency", "USD"),
    ("rate_unit", "USD per 1,000,000 tokens"),
    ("fee_unit", "USD per 1,000 (calls or requests)"),
];

/// Spellings of tiers in a table that names none.
const TIER_ALIASES: &[(&str, &[&str])] = &[
    ("standard", &["", "default", "standard", "auto", "on_demand", "on-demand", "none"]),
    ("batch", &["batch", "batches"]),
    ("flex", &["flex"]),
    ("priority", &["priority"]),
    ("fast", &["fast"]),
];

/// The top level of the schema.
const TABLE_KEYS: &[&str] = &[
    "schema",
    "currency",
    "rate_unit",
    "fee_unit",
    "as_of",
    "retrieved",
    "sources",
    "tier_aliases",
    "tier_equal",
    "providers",
];

/// One step of a path.
enum Step {
    Member(String),
    Item(usize),
}

/// Reads one table. The path is where the reader stands, so a fault needs no more than a word: nothing is left behind it.
///
/// Plain loops throughout: closures over generic iterators made this file a fifth of the whole module's code for cost.
struct Reader {
    path: Vec<Step>,
    tiers: Vec<(String, String)>,
}

/// Reads a whole table.
pub(super) fn read(text: &str) -> Result<PriceTable> {
    let value = json::parse(text, Surrogates::Replace).map_err(|e| {
        Error::new(Kind::InvalidPriceTable, format!("the table is no JSON: {}", e.message())).with("path", "")
    })?;
    Reader { path: Vec::new(), tiers: default_tiers() }.table(&value)
}

/// Reads a list of prices that stands alone, as a record may carry it.
pub(super) fn override_model(prices: &Value) -> Result<Model> {
    let prices = Reader { path: Vec::new(), tiers: default_tiers() }.prices(prices)?;
    Ok(Model { prices, ..Model::default() })
}

fn default_tiers() -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (name, spellings) in TIER_ALIASES {
        for spelling in *spellings {
            out.push((spelling.to_string(), name.to_string()));
        }
    }
    out
}

impl Reader {
    fn fault<T>(&self, what: &str) -> Result<T> {
        Err(self.error(what))
    }

    /// Not generic, so that it is compiled once.
    #[cold]
    #[inline(never)]
    fn error(&self, what: &str) -> Error {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Member(key) if path.is_empty() => path.push_str(key),
                Step::Member(key) => {
                    path.push('.');
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

    fn fault_at<T>(&mut self, key: &str, what: &str) -> Result<T> {
        self.enter(key);
        self.fault(what)
    }

    #[inline(never)]
    fn enter(&mut self, key: &str) {
        self.path.push(Step::Member(key.to_owned()));
    }

    #[inline(never)]
    fn enter_item(&mut self, index: usize) {
        self.path.push(Step::Item(index));
    }

    #[inline(never)]
    fn leave(&mut self) {
        self.path.pop();
    }

    fn object<'v>(&self, value: &'v Value) -> Result<&'v Object> {
        value.as_object().map_or_else(|| self.fault("is not an object"), Ok)
    }

    /// An object without keys that the schema does not know.
    #[inline(never)]
    fn known(&mut self, value: &Value, keys: &[&str]) -> Result<()> {
        for (key, _) in self.object(value)?.iter() {
            if !keys.contains(&key) {
                return self.fault_at(key, "is not a key of the schema");
            }
        }
        Ok(())
    }

    fn items<'v>(&self, value: &'v Value) -> Result<&'v [Value]> {
        value.as_array().map_or_else(|| self.fault("is not an array"), Ok)
    }

    /// Enters a member; the caller leaves it. When it is missing nothing was entered.
    fn member<'v>(&mut self, value: &'v Value, key: &str) -> Option<&'v Value> {
        let member = value.get(key)?;
        self.enter(key);
        Some(member)
    }

    #[inline(never)]
    fn required<'v>(&mut self, value: &'v Value, key: &str) -> Result<&'v Value> {
        self.enter(key);
        value.get(key).map_or_else(|| self.fault("is missing"), Ok)
    }

    fn text<'v>(&self, value: &'v Value) -> Result<&'v str> {
        value.as_str().map_or_else(|| self.fault("is not a string"), Ok)
    }

    /// A string in lower case that is not empty.
    #[inline(never)]
    fn name(&self, value: &Value) -> Result<String> {
        let name = self.text(value)?.to_ascii_lowercase();
        if name.is_empty() { self.fault("is empty") } else { Ok(name) }
    }

    fn whole(&self, value: &Value) -> Result<u64> {
        match value.as_i64() {
            Some(n) if n > 0 => Ok(n as u64),
            _ => self.fault("is not a whole number above 0"),
        }
    }

    fn exact(&self, value: &Value, places: u32) -> Result<u128> {
        let Some(text) = value.as_str() else { return self.fault("is not a decimal in a string") };
        exact(text, places).or_else(|what| self.fault(what))
    }

    fn flag(&mut self, value: &Value, key: &str) -> Result<bool> {
        let Some(value) = self.member(value, key) else { return Ok(false) };
        let Some(flag) = value.as_bool() else { return self.fault("is not true or false") };
        self.leave();
        Ok(flag)
    }

    /// A list of names; empty when it is missing.
    #[inline(never)]
    fn names(&mut self, value: &Value, key: &str) -> Result<Vec<String>> {
        let mut out = Vec::new();
        let Some(list) = self.member(value, key) else { return Ok(out) };
        for (i, item) in self.items(list)?.iter().enumerate() {
            self.enter_item(i);
            out.push(self.name(item)?);
            self.leave();
        }
        self.leave();
        Ok(out)
    }

    fn patterns(&mut self, value: &Value, key: &str) -> Result<Vec<Pattern>> {
        Ok(self.names(value, key)?.iter().map(|name| Pattern::new(name)).collect())
    }

    fn table(mut self, value: &Value) -> Result<PriceTable> {
        self.known(value, TABLE_KEYS)?;
        for (key, expected) in UNITS {
            if *key == "schema" || value.get(key).is_some() {
                let unit = self.required(value, key)?;
                if self.text(unit)? != *expected {
                    return self.fault(&format!("is not \"{expected}\""));
                }
                self.leave();
            }
        }
        let as_of = self.day(value, "as_of")?;
        self.day(value, "retrieved")?;
        self.sources(value)?;
        self.tier_aliases(value)?;
        let equal = self.tier_equal(value)?;
        let mut providers = Vec::new();
        let list = self.required(value, "providers")?;
        for (i, item) in self.items(list)?.iter().enumerate() {
            self.enter_item(i);
            let provider = self.provider(item)?;
            let names = || std::iter::once(&provider.id).chain(&provider.aliases);
            if providers.iter().any(|other: &Provider| names().any(|name| other.is_named(name))) {
                return self.fault("answers to a name of another provider");
            }
            providers.push(provider);
            self.leave();
        }
        Ok(PriceTable::new(as_of, self.tiers, equal, providers.into_iter().map(Rc::new).collect()))
    }

    fn day(&mut self, value: &Value, key: &str) -> Result<String> {
        let Some(day) = self.member(value, key) else { return Ok(String::new()) };
        let text = self.text(day)?;
        if text.len() != 10 || when::parse(text).is_none() {
            return self.fault("is not a day (YYYY-MM-DD)");
        }
        self.leave();
        Ok(text.to_owned())
    }

    fn sources(&mut self, value: &Value) -> Result<()> {
        let Some(list) = self.member(value, "sources") else { return Ok(()) };
        for (i, item) in self.items(list)?.iter().enumerate() {
            self.enter_item(i);
            self.text(item)?;
            self.leave();
        }
        self.leave();
        Ok(())
    }

    fn tier_aliases(&mut self, value: &Value) -> Result<()> {
        let Some(tiers) = self.member(value, "tier_aliases") else { return Ok(()) };
        self.tiers.clear();
        for (tier, spellings) in self.object(tiers)?.iter() {
            self.enter(tier);
            for (i, spelling) in self.items(spellings)?.iter().enumerate() {
                self.enter_item(i);
                // The empty spelling is one, too.
                let spelling = self.text(spelling)?.to_ascii_lowercase();
                self.tiers.push((spelling, tier.to_ascii_lowercase()));
                self.leave();
            }
            self.leave();
        }
        self.leave();
        Ok(())
    }

    fn tier_equal(&mut self, value: &Value) -> Result<Vec<(String, String, String)>> {
        let mut out = Vec::new();
        let Some(providers) = self.member(value, "tier_equal") else { return Ok(out) };
        for (provider, _) in self.object(providers)?.iter() {
            for (from, to) in self.pairs(providers, provider)? {
                out.push((provider.to_ascii_lowercase(), from, to));
            }
        }
        self.leave();
        Ok(out)
    }

    /// An object of names by name; empty when it is missing.
    fn pairs(&mut self, value: &Value, key: &str) -> Result<Vec<(String, String)>> {
        let mut out = Vec::new();
        let Some(pairs) = self.member(value, key) else { return Ok(out) };
        for (name, other) in self.object(pairs)?.iter() {
            self.enter(name);
            out.push((name.to_ascii_lowercase(), self.name(other)?));
            self.leave();
        }
        self.leave();
        Ok(out)
    }

    fn provider(&mut self, value: &Value) -> Result<Provider> {
        self.known(value, &["id", "aliases", "fallback", "vendor_prefix", "models"])?;
        let id = self.id(value)?;
        let mut out = Provider {
            id,
            aliases: self.names(value, "aliases")?,
            fallback: self.names(value, "fallback")?,
            vendor_prefix: self.pairs(value, "vendor_prefix")?,
            models: Vec::new(),
        };
        let list = self.required(value, "models")?;
        for (i, item) in self.items(list)?.iter().enumerate() {
            self.enter_item(i);
            let model = self.model(item)?;
            for other in &out.models {
                if other.id == model.id {
                    return self.fault("has the id of another model");
                }
                if model.matches.iter().any(|p| p.is_literal() && other.matches.contains(p)) {
                    return self.fault("matches a name of another model");
                }
            }
            out.models.push(Rc::new(model));
            self.leave();
        }
        self.leave();
        Ok(out)
    }

    fn id(&mut self, value: &Value) -> Result<String> {
        let id = self.required(value, "id")?;
        let id = self.name(id)?;
        self.leave();
        Ok(id)
    }

    fn model(&mut self, value: &Value) -> Result<Model> {
        self.known(value, &["id", "match", "exclude", "context", "deprecated", "free", "geo", "prices"])?;
        let id = self.id(value)?;
        let mut matches = self.patterns(value, "match")?;
        if matches.is_empty() {
            if value.get("match").is_some() {
                return self.fault_at("match", "is empty");
            }
            matches.push(Pattern::new(&id));
        }
        if let Some(context) = self.member(value, "context") {
            self.whole(context)?;
            self.leave();
        }
        self.flag(value, "deprecated")?;
        let exclude = self.patterns(value, "exclude")?;
        let free = self.flag(value, "free")?;
        let geo = self.geo(value)?;
        let list = self.required(value, "prices")?;
        let prices = self.prices(list)?;
        self.leave();
        Ok(Model { id, matches, exclude, free, geo, prices })
    }

    fn geo(&mut self, value: &Value) -> Result<Vec<(String, u128)>> {
        let mut out = Vec::new();
        let Some(places) = self.member(value, "geo") else { return Ok(out) };
        for (place, factor) in self.object(places)?.iter() {
            self.enter(place);
            out.push((place.to_ascii_lowercase(), self.exact(factor, FACTOR_PLACES)?));
            self.leave();
        }
        self.leave();
        Ok(out)
    }

    fn prices(&mut self, value: &Value) -> Result<Vec<Price>> {
        let mut out: Vec<Price> = Vec::new();
        for (i, item) in self.items(value)?.iter().enumerate() {
            self.enter_item(i);
            let price = self.price(item)?;
            if out.iter().any(|other| price.overlaps(other) || other.overlaps(&price)) {
                return self.fault("overlaps the dates of another entry");
            }
            out.push(price);
            self.leave();
        }
        Ok(out)
    }

    fn price(&mut self, value: &Value) -> Result<Price> {
        self.known(value, &["from", "until", "tier", "hours", "steps", "rates", "fees"])?;
        let from = self.time(value, "from")?.unwrap_or(Millis::MIN);
        let until = self.time(value, "until")?.unwrap_or(Millis::MAX);
        if until <= from {
            return self.fault_at("until", "is not after `from`");
        }
        let tier = self.tier(value)?;
        let hours = self.hours(value)?;
        let steps = self.steps(value)?;
        let rates = self.rates(value, steps.len())?;
        Ok(Price { from, until, tier, hours, steps, rates, fees: self.fees(value)? })
    }

    fn time(&mut self, value: &Value, key: &str) -> Result<Option<Millis>> {
        let Some(time) = self.member(value, key) else { return Ok(None) };
        let Some(time) = when::parse(self.text(time)?) else { return self.fault("is not a UTC day or second") };
        self.leave();
        Ok(Some(time))
    }

    fn tier(&mut self, value: &Value) -> Result<Option<String>> {
        let Some(tier) = self.member(value, "tier") else { return Ok(None) };
        let name = self.name(tier)?;
        self.leave();
        let known = self.tiers.iter().find(|(spelling, _)| *spelling == name);
        let name = known.map_or(name.clone(), |(_, tier)| tier.clone());
        Ok(if name == "standard" { None } else { Some(name) })
    }

    fn steps(&mut self, value: &Value) -> Result<Vec<u64>> {
        let mut out = Vec::new();
        let Some(list) = self.member(value, "steps") else { return Ok(out) };
        for (i, item) in self.items(list)?.iter().enumerate() {
            self.enter_item(i);
            out.push(self.whole(item)?);
            self.leave();
        }
        if out.is_empty() || !out.is_sorted_by(|a, b| a < b) {
            return self.fault("is not a rising list");
        }
        self.leave();
        Ok(out)
    }

    fn rates(&mut self, value: &Value, steps: usize) -> Result<Vec<Rate>> {
        let mut out = Vec::new();
        let rates = self.required(value, "rates")?;
        for (name, value) in self.object(rates)?.iter() {
            self.enter(name);
            let Some((key, _)) = RateKey::ALL.iter().find(|(_, text)| *text == name) else {
                return self.fault("is not a key of the schema");
            };
            let mut atto = Vec::new();
            match value.as_array() {
                Some(items) if items.len() == steps + 1 && steps > 0 => {
                    for (i, item) in items.iter().enumerate() {
                        self.enter_item(i);
                        atto.push(self.exact(item, RATE_PLACES)?);
                        self.leave();
                    }
                }
                Some(_) => return self.fault("does not have one rate more than there are steps"),
                None => atto.push(self.exact(value, RATE_PLACES)?),
            }
            out.push(Rate { key: *key, atto });
            self.leave();
        }
        self.leave();
        Ok(out)
    }

    fn fees(&mut self, value: &Value) -> Result<Vec<Fee>> {
        let mut out = Vec::new();
        let Some(fees) = self.member(value, "fees") else { return Ok(out) };
        for (tool, fee) in self.object(fees)?.iter() {
            self.enter(tool);
            self.known(fee, &["usd_per_1000", "per"])?;
            let usd = self.required(fee, "usd_per_1000")?;
            let atto = self.exact(usd, FEE_PLACES)?;
            self.leave();
            let per = self.required(fee, "per")?;
            let once = match self.text(per)? {
                "call" => false,
                "request" => true,
                _ => return self.fault("is neither \"call\" nor \"request\""),
            };
            self.leave();
            out.push(Fee { tool: tool.to_owned(), atto, once });
            self.leave();
        }
        self.leave();
        Ok(out)
    }

    fn hours(&mut self, value: &Value) -> Result<Option<Hours>> {
        let Some(hours) = self.member(value, "hours") else { return Ok(None) };
        self.known(hours, &["utc", "days"])?;
        let mut out = Hours { spans: Vec::new(), days: Vec::new() };
        let spans = self.required(hours, "utc")?;
        for (i, span) in self.items(spans)?.iter().enumerate() {
            self.enter_item(i);
            let [start, end] = self.items(span)? else { return self.fault("is not a pair of two times") };
            let (start, end) = (self.minute(start, 0)?, self.minute(end, 1)?);
            if start == end {
                return self.fault("is not a pair of two times");
            }
            out.spans.push((start, end));
            self.leave();
        }
        self.leave();
        if let Some(days) = self.member(hours, "days") {
            for (i, day) in self.items(days)?.iter().enumerate() {
                self.enter_item(i);
                let day = self.whole(day)?;
                if day > 7 {
                    return self.fault("is not an ISO weekday (1 to 7)");
                }
                out.days.push(day as i64);
                self.leave();
            }
            self.leave();
        }
        self.leave();
        Ok(Some(out))
    }

    fn minute(&mut self, value: &Value, index: usize) -> Result<i64> {
        self.enter_item(index);
        let text = self.text(value)?;
        let minute = match when::minutes(text) {
            Some((minute, "")) => minute,
            // The end of the day is a time no clock shows.
            _ if text == "24:00" => 24 * 60,
            _ => return self.fault("is not HH:MM"),
        };
        self.leave();
        Ok(minute)
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
