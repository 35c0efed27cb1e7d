//! Reading a price table: everything is checked, and every fault is named by its path.

use std::rc::Rc;

use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Object, Surrogates, Value};
use crate::core::time::Millis;

use super::arithmetic::exact;
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

/// A value and where it stands.
#[derive(Clone, Copy)]
struct At<'a> {
    value: &'a Value,
    path: &'a Path<'a>,
}

/// A path as a list of its steps, written out only when there is a fault.
enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Member(Path::Root, key) => (*key).to_owned(),
            Path::Member(parent, key) => format!("{}.{key}", parent.text()),
            Path::Item(parent, index) => format!("{}[{index}]", parent.text()),
        }
    }
}

fn fault<T>(path: &Path, what: &str) -> Result<T> {
    let path = path.text();
    Err(Error::new(Kind::InvalidPriceTable, format!("{}: {what}", if path.is_empty() { "the table" } else { &path }))
        .with("path", path))
}

impl<'a> At<'a> {
    fn fault<T>(self, what: &str) -> Result<T> {
        fault(self.path, what)
    }

    fn object(self, known: &[&str]) -> Result<&'a Object> {
        let Some(members) = self.value.as_object() else { return self.fault("is not an object") };
        if known.is_empty() {
            return Ok(members);
        }
        for (key, _) in members.iter() {
            if !known.contains(&key) {
                return fault(&Path::Member(self.path, key), "is not a key of the schema");
            }
        }
        Ok(members)
    }

    fn text(self) -> Result<&'a str> {
        self.value.as_str().map_or_else(|| self.fault("is not a string"), Ok)
    }

    /// A non-empty string in lower case.
    fn name(self) -> Result<String> {
        match self.text()?.to_lowercase() {
            name if name.is_empty() => self.fault("is empty"),
            name => Ok(name),
        }
    }

    fn flag(self) -> Result<bool> {
        self.value.as_bool().map_or_else(|| self.fault("is not true or false"), Ok)
    }

    fn whole(self) -> Result<u64> {
        let n = self.value.as_i64().and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0);
        n.map_or_else(|| self.fault("is not a whole number above 0"), Ok)
    }

    fn exact(self, places: u32) -> Result<u128> {
        let Some(text) = self.value.as_str() else { return self.fault("is not a decimal in a string") };
        exact(text, places).or_else(|what| self.fault(what))
    }

    /// Reads every item of an array.
    fn items<T>(self, mut read: impl FnMut(At) -> Result<T>) -> Result<Vec<T>> {
        let Some(items) = self.value.as_array() else { return self.fault("is not an array") };
        let item = |(i, value)| read(At { value, path: &Path::Item(self.path, i) });
        items.iter().enumerate().map(item).collect()
    }

    /// Reads every member of an object whose keys are free.
    fn members<T>(self, mut read: impl FnMut(&str, At) -> Result<T>) -> Result<Vec<T>> {
        let member = |(key, value)| read(key, At { value, path: &Path::Member(self.path, key) });
        self.object(&[])?.iter().map(member).collect()
    }

    /// Reads a member when it is there.
    fn optional<T>(self, key: &str, read: impl FnOnce(At) -> Result<T>) -> Result<Option<T>> {
        let Some(value) = self.value.get(key) else { return Ok(None) };
        read(At { value, path: &Path::Member(self.path, key) }).map(Some)
    }

    fn required<T>(self, key: &str, read: impl FnOnce(At) -> Result<T>) -> Result<T> {
        match self.optional(key, read)? {
            Some(value) => Ok(value),
            None => fault(&Path::Member(self.path, key), "is missing"),
        }
    }

    fn list(self, key: &str) -> Result<Vec<String>> {
        Ok(self.optional(key, |v| v.items(|v| v.name()))?.unwrap_or_default())
    }
}

type Tiers = Vec<(String, String)>;

/// Reads a whole table.
pub(super) fn read(text: &str) -> Result<PriceTable> {
    let value = json::parse(text, Surrogates::Replace).map_err(|e| {
        Error::new(Kind::InvalidPriceTable, format!("the table is no JSON: {}", e.message())).with("path", "")
    })?;
    let table = At { value: &value, path: &Path::Root };
    table.object(&[
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
    ])?;
    for (key, expected) in UNITS {
        let same = |v: At| if v.text()? == *expected { Ok(()) } else { v.fault(&format!("is not \"{expected}\"")) };
        if *key == "schema" { table.required(key, same)? } else { table.optional(key, same)?.unwrap_or_default() }
    }
    let as_of = table.optional("as_of", day)?.unwrap_or_default();
    table.optional("retrieved", day)?;
    table.optional("sources", |v| v.items(|v| v.text_only()))?;
    let tiers = table.optional("tier_aliases", tier_aliases)?.unwrap_or_else(default_tiers);
    let equal = table.optional("tier_equal", tier_equal)?.unwrap_or_default();
    let providers = table.required("providers", |v| v.items(|p| provider(p, &tiers)))?;
    check_providers(&providers)?;
    Ok(PriceTable::new(as_of, tiers, equal, providers))
}

impl At<'_> {
    fn text_only(self) -> Result<()> {
        self.text().map(|_| ())
    }
}

/// Reads a list of prices that stands alone, as a record may carry it.
pub(super) fn override_model(prices: &Value) -> Result<Model> {
    let at = At { value: prices, path: &Path::Root };
    Ok(Model {
        id: String::new(),
        matches: Vec::new(),
        exclude: Vec::new(),
        free: false,
        geo: Vec::new(),
        prices: price_list(at, &default_tiers())?,
        layer: 0,
    })
}

fn default_tiers() -> Tiers {
    let pairs = TIER_ALIASES.iter().flat_map(|(name, spellings)| spellings.iter().map(move |s| (*s, *name)));
    pairs.map(|(spelling, name)| (spelling.to_owned(), name.to_owned())).collect()
}

fn day(at: At) -> Result<String> {
    let text = at.text()?;
    if text.len() != 10 || when::parse(text).is_none() {
        return at.fault("is not a day (YYYY-MM-DD)");
    }
    Ok(text.to_owned())
}

fn tier_aliases(at: At) -> Result<Tiers> {
    let lists = at.members(|tier, spellings| {
        let tier = tier.to_lowercase();
        spellings.items(|s| Ok((s.text()?.to_lowercase(), tier.clone())))
    })?;
    Ok(lists.into_iter().flatten().collect())
}

fn tier_equal(at: At) -> Result<Vec<(String, String, String)>> {
    let lists = at.members(|provider, map| {
        let provider = provider.to_lowercase();
        map.members(|from, to| Ok((provider.clone(), from.to_lowercase(), to.name()?)))
    })?;
    Ok(lists.into_iter().flatten().collect())
}

fn provider(at: At, tiers: &Tiers) -> Result<Provider> {
    at.object(&["id", "aliases", "fallback", "vendor_prefix", "models"])?;
    let prefix = |v: At| v.members(|prefix, vendor| Ok((prefix.to_lowercase(), vendor.name()?)));
    let out = Provider {
        id: at.required("id", |v| v.name())?,
        aliases: at.list("aliases")?,
        fallback: at.list("fallback")?,
        vendor_prefix: at.optional("vendor_prefix", prefix)?.unwrap_or_default(),
        models: at.required("models", |v| v.items(|m| model(m, tiers).map(Rc::new)))?,
    };
    check_models(at.path, &out)?;
    Ok(out)
}

/// No two providers answer to one name.
fn check_providers(providers: &[Provider]) -> Result<()> {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for (i, provider) in providers.iter().enumerate() {
        for name in std::iter::once(&provider.id).chain(&provider.aliases) {
            if names.iter().any(|(known, owner)| known == name && *owner != i) {
                let list = Path::Member(&Path::Root, "providers");
                return fault(&Path::Item(&list, i), "answers to a name of another provider");
            }
            names.push((name, i));
        }
    }
    Ok(())
}

/// No two models of a provider have one id or one literal name.
fn check_models(path: &Path, provider: &Provider) -> Result<()> {
    let mut ids: Vec<&str> = Vec::new();
    let mut literals: Vec<&str> = Vec::new();
    for (i, model) in provider.models.iter().enumerate() {
        let list = Path::Member(path, "models");
        if ids.contains(&model.id.as_str()) {
            return fault(&Path::Item(&list, i), "has the id of another model");
        }
        ids.push(&model.id);
        let own = model.matches.iter().filter(|m| m.is_literal());
        let own: Vec<&str> = own.map(|m| &*m.text).collect();
        if own.iter().any(|m| literals.contains(m)) {
            return fault(&Path::Item(&list, i), "matches a name of another model");
        }
        literals.extend(own);
    }
    Ok(())
}

fn model(at: At, tiers: &Tiers) -> Result<Model> {
    at.object(&["id", "match", "exclude", "context", "deprecated", "free", "geo", "prices"])?;
    let id = at.required("id", |v| v.name())?;
    let pattern = |v: At| v.name().map(|text| Pattern::new(&text));
    let matches = at.optional("match", |v| v.items(pattern))?.unwrap_or_else(|| vec![Pattern::new(&id)]);
    if matches.is_empty() {
        return fault(&Path::Member(at.path, "match"), "is empty");
    }
    at.optional("context", |v| v.whole())?;
    at.optional("deprecated", |v| v.flag())?;
    Ok(Model {
        id,
        matches,
        exclude: at.optional("exclude", |v| v.items(pattern))?.unwrap_or_default(),
        free: at.optional("free", |v| v.flag())?.unwrap_or_default(),
        geo: at
            .optional("geo", |v| v.members(|place, f| Ok((place.to_lowercase(), f.exact(FACTOR_PLACES)?))))?
            .unwrap_or_default(),
        prices: at.required("prices", |v| price_list(v, tiers))?,
        layer: 0,
    })
}

fn price_list(at: At, tiers: &Tiers) -> Result<Vec<Price>> {
    let prices = at.items(|p| price(p, tiers))?;
    check_dates(at.path, &prices)?;
    Ok(prices)
}

fn price(at: At, tiers: &Tiers) -> Result<Price> {
    at.object(&["from", "until", "tier", "hours", "steps", "rates", "fees"])?;
    let time = |v: At| when::parse(v.text()?).map_or_else(|| v.fault("is not a UTC day or second"), Ok);
    let from = at.optional("from", time)?.unwrap_or(Millis::MIN);
    let until = at.optional("until", time)?.unwrap_or(Millis::MAX);
    if until <= from {
        return fault(&Path::Member(at.path, "until"), "is not after `from`");
    }
    let steps = at.optional("steps", steps)?.unwrap_or_default();
    let rates = at.required("rates", |v| rates(v, steps.len()))?;
    Ok(Price {
        from,
        until,
        tier: at.optional("tier", |v| tier(v, tiers))?.flatten(),
        hours: at.optional("hours", hours)?,
        steps,
        rates,
        fees: at.optional("fees", |v| v.members(fee))?.unwrap_or_default(),
    })
}

fn tier(at: At, tiers: &Tiers) -> Result<Option<String>> {
    let name = at.name()?;
    let known = tiers.iter().find(|(spelling, _)| *spelling == name).map(|(_, tier)| tier.clone());
    Ok(Some(known.unwrap_or(name)).filter(|t| t != "standard"))
}

fn steps(at: At) -> Result<Vec<u64>> {
    let steps = at.items(|v| v.whole())?;
    if steps.is_empty() || !steps.is_sorted_by(|a, b| a < b) {
        return at.fault("is not a rising list");
    }
    Ok(steps)
}

fn rates(at: At, steps: usize) -> Result<Vec<Rate>> {
    at.members(|key, value| {
        let Some((key, _)) = RateKey::ALL.iter().find(|(_, text)| *text == key) else {
            return value.fault("is not a key of the schema");
        };
        let atto = match value.value {
            Value::Array(items) if items.len() == steps + 1 && steps > 0 => value.items(|v| v.exact(RATE_PLACES))?,
            Value::Array(_) => return value.fault("does not have one rate more than there are steps"),
            _ => vec![value.exact(RATE_PLACES)?],
        };
        Ok(Rate { key: *key, atto })
    })
}

fn fee(tool: &str, at: At) -> Result<Fee> {
    at.object(&["usd_per_1000", "per"])?;
    let per = |v: At| match v.text()? {
        "call" => Ok(false),
        "request" => Ok(true),
        _ => v.fault("is neither \"call\" nor \"request\""),
    };
    Ok(Fee {
        tool: tool.to_owned(),
        atto: at.required("usd_per_1000", |v| v.exact(FEE_PLACES))?,
        once: at.required("per", per)?,
    })
}

fn hours(at: At) -> Result<Hours> {
    at.object(&["utc", "days"])?;
    let minute = |v: At| match when::minutes(v.text()?) {
        Some((minute, "")) => Ok(minute),
        // The end of the day is a time no clock shows.
        _ if v.text()? == "24:00" => Ok(24 * 60),
        _ => v.fault("is not HH:MM"),
    };
    let span = |v: At| match v.items(minute)?.as_slice() {
        [start, end] if start != end => Ok((*start, *end)),
        _ => v.fault("is not a pair of two times"),
    };
    let weekday = |v: At| match v.whole()? {
        day @ 1..=7 => Ok(day as i64),
        _ => v.fault("is not an ISO weekday (1 to 7)"),
    };
    Ok(Hours {
        spans: at.required("utc", |v| v.items(span))?,
        days: at.optional("days", |v| v.items(weekday))?.unwrap_or_default(),
    })
}

/// Entries of one kind follow each other: no two start together, and none ends after the next one has begun.
fn check_dates(path: &Path, prices: &[Price]) -> Result<()> {
    for (i, price) in prices.iter().enumerate() {
        let same_kind = |p: &&Price| p.tier == price.tier && p.hours == price.hours;
        let overlaps =
            |p: &Price| p.from == price.from || (p.from < price.from && p.until != Millis::MAX && p.until > price.from);
        let clash = prices.iter().enumerate().filter(|(j, p)| *j != i && same_kind(p)).find(|(_, p)| overlaps(p));
        if let Some((other, _)) = clash {
            return fault(&Path::Item(path, i.max(other)), "overlaps the dates of another entry");
        }
    }
    Ok(())
}
