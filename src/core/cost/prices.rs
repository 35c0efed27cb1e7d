//! The price table: who charges what, since when, and how a name is found in it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::core::error::Result;
use crate::core::json::Value;
use crate::core::time::Millis;

use super::flags::Flags;
use super::table;

macro_rules! rate_keys {
    ($($variant:ident $text:literal $stand_in:expr;)+) => {
        /// A kind of token that has its own rate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are the keys of the schema")]
        pub enum RateKey { $($variant,)+ }

        impl RateKey {
            /// Every key with its name in the schema.
            pub const ALL: &'static [(RateKey, &'static str)] = &[$((RateKey::$variant, $text),)+];

            /// Returns what stands in for this rate when it is missing.
            pub fn stand_in(self) -> Option<RateKey> {
                match self { $(RateKey::$variant => $stand_in,)+ }
            }
        }
    };
}

rate_keys! {
    Input "input" None;
    Output "output" None;
    CacheRead "cache_read" Some(RateKey::Input);
    CacheWrite "cache_write" Some(RateKey::Input);
    CacheWrite1h "cache_write_1h" Some(RateKey::CacheWrite);
    InputAudio "input_audio" Some(RateKey::Input);
    InputImage "input_image" Some(RateKey::Input);
    CacheReadAudio "cache_read_audio" None;
    CacheReadImage "cache_read_image" None;
    OutputAudio "output_audio" Some(RateKey::Output);
    OutputImage "output_image" Some(RateKey::Output);
    Reasoning "reasoning" Some(RateKey::Output);
    Citation "citation" Some(RateKey::Output);
}

/// Number of rate keys.
pub const RATES: usize = RateKey::ALL.len();

/// Attodollars per token: one amount, or one per step.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    pub(super) key: RateKey,
    pub(super) atto: Vec<u128>,
}

/// A charge per call or per request.
#[derive(Clone, Debug, PartialEq)]
pub struct Fee {
    pub(super) tool: String,
    /// Attodollars each.
    pub(super) atto: u128,
    /// Charged once per request that used the tool at all.
    pub(super) once: bool,
}

/// Hours of the UTC day in which an entry applies.
#[derive(Clone, Debug, PartialEq)]
pub struct Hours {
    /// Minutes of the day, start inclusive, end exclusive, may wrap.
    pub(super) spans: Vec<(i64, i64)>,
    /// ISO weekdays; empty is every day.
    pub(super) days: Vec<i64>,
}

/// One entry of a model's list of prices.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    pub(super) from: Millis,
    pub(super) until: Millis,
    /// Canonical name; standard is none.
    pub(super) tier: Option<String>,
    pub(super) hours: Option<Hours>,
    /// Total input from which the next amount of each rate applies.
    pub(super) steps: Vec<u64>,
    pub(super) rates: Vec<Rate>,
    pub(super) fees: Vec<Fee>,
}

/// A name with wildcards: `*` is any run, `#` one digit.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub(super) text: Box<str>,
    /// How well it fits where it fits: a literal best, else its characters that are not `*`.
    weight: usize,
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Pattern {
        let is_literal = !text.contains(['*', '#']);
        Pattern {
            text: text.into(),
            weight: if is_literal { usize::MAX } else { text.len() - text.matches('*').count() },
        }
    }

    /// Says whether there is no wildcard.
    pub fn is_literal(&self) -> bool {
        self.weight == usize::MAX
    }

    fn fits(&self, id: &str) -> bool {
        if self.is_literal() { *self.text == *id } else { matches(self.text.as_bytes(), id.as_bytes()) }
    }
}

/// One model of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub(super) id: String,
    pub(super) matches: Vec<Pattern>,
    pub(super) exclude: Vec<Pattern>,
    /// A known zero.
    pub(super) free: bool,
    /// Factor on the token part by place of inference, in millionths.
    pub(super) geo: Vec<(String, u128)>,
    pub(super) prices: Vec<Price>,
    /// Tables laid over others win: the highest layer that knows a model id decides.
    pub(super) layer: u32,
}

/// One provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    pub(super) id: String,
    pub(super) aliases: Vec<String>,
    pub(super) fallback: Vec<String>,
    pub(super) vendor_prefix: Vec<(String, String)>,
    pub(super) models: Vec<Rc<Model>>,
}

/// A checked price table.
#[derive(Clone, Debug)]
pub struct PriceTable {
    pub(super) as_of: String,
    /// Spelling and canonical name.
    pub(super) tier_aliases: Vec<(String, String)>,
    /// Provider, tier, and the tier whose rates it takes.
    pub(super) tier_equal: Vec<(String, String, String)>,
    pub(super) providers: Vec<Provider>,
    found: RefCell<Vec<Option<Remembered>>>,
}

/// A model that was found, and how.
#[derive(Clone, Debug)]
pub struct Found {
    /// The provider whose table it is.
    pub provider: Rc<str>,
    /// The model.
    pub model: Rc<Model>,
    /// `provider_inferred` or `fallback_provider`, or none.
    pub flags: Flags,
}

impl Found {
    /// Returns the id of the model in the table.
    pub fn model_id(&self) -> &str {
        &self.model.id
    }
}

/// The tables that are tried when no provider is given, in this order.
const INFERRED: &[&str] = &[
    "anthropic",
    "openai",
    "gcp.gemini",
    "x_ai",
    "deepseek",
    "mistral_ai",
    "cohere",
    "moonshot_ai",
    "z_ai",
    "minimax",
];

/// Lookups that are remembered; a conversation uses one model, a dashboard some hundreds.
const REMEMBERED: usize = 1024;

#[derive(Clone, Debug)]
struct Remembered {
    provider: Option<Box<str>>,
    model: Box<str>,
    found: Option<Found>,
}

impl PriceTable {
    pub(super) fn new(
        as_of: String,
        tier_aliases: Vec<(String, String)>,
        tier_equal: Vec<(String, String, String)>,
        providers: Vec<Provider>,
    ) -> Self {
        PriceTable { as_of, tier_aliases, tier_equal, providers, found: RefCell::default() }
    }

    /// Returns the table shipped inside the module.
    pub fn builtin() -> Result<Rc<PriceTable>> {
        thread_local! {
            static BUILTIN: RefCell<Option<Rc<PriceTable>>> = const { RefCell::new(None) };
        }
        BUILTIN.with(|slot| {
            if let Some(table) = slot.borrow().as_ref() {
                return Ok(table.clone());
            }
            let table = Rc::new(PriceTable::from_json(BUILTIN_TEXT)?);
            *slot.borrow_mut() = Some(table.clone());
            Ok(table)
        })
    }

    /// Reads and checks a table of the schema `sessionlog.prices/1`.
    ///
    /// # Errors
    /// `invalid_price_table`, with the path of the fault in `details.path`.
    pub fn from_json(text: &str) -> Result<PriceTable> {
        table::read(text)
    }

    /// Reads a list of prices as a record overrides them with, as the only model of no provider.
    pub(super) fn model_of_prices(prices: &Value) -> Result<Model> {
        table::override_model(prices)
    }

    /// Returns this table with the entries of `over` laid over it.
    #[must_use]
    pub fn with(&self, over: &PriceTable) -> PriceTable {
        let above = 1 + self.providers.iter().flat_map(|p| &p.models).map(|m| m.layer).max().unwrap_or(0);
        let mut providers = self.providers.clone();
        for upper in &over.providers {
            let mut upper = upper.clone();
            for model in &mut upper.models {
                Rc::make_mut(model).layer += above;
            }
            match providers.iter_mut().find(|p| p.id == upper.id) {
                Some(lower) => lower.lay(upper),
                None => providers.push(upper),
            }
        }
        let mut tier_aliases = over.tier_aliases.clone();
        tier_aliases.extend(self.tier_aliases.iter().cloned());
        let mut tier_equal = over.tier_equal.clone();
        tier_equal.extend(self.tier_equal.iter().cloned());
        PriceTable::new(self.as_of.clone().max(over.as_of.clone()), tier_aliases, tier_equal, providers)
    }

    /// Returns the date of the table.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// Returns the number of models.
    pub fn len(&self) -> usize {
        self.providers.iter().map(|p| p.models.len()).sum()
    }

    /// Says whether the table has no model.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finds a model by the names a request used.
    pub fn lookup(&self, provider: Option<&str>, model: &str) -> Option<Found> {
        let provider = provider.filter(|p| !p.is_empty());
        let slot = slot_of(provider.unwrap_or_default(), model);
        if let Some(Some(known)) = self.found.borrow().get(slot)
            && *known.model == *model
            && known.provider.as_deref() == provider
        {
            return known.found.clone();
        }
        let found = self.search(provider, &model.to_ascii_lowercase());
        let mut memory = self.found.borrow_mut();
        if memory.is_empty() {
            memory.resize_with(REMEMBERED, || None);
        }
        if let Some(entry) = memory.get_mut(slot) {
            *entry = Some(Remembered { provider: provider.map(Into::into), model: model.into(), found: found.clone() });
        }
        found
    }

    fn search(&self, provider: Option<&str>, model: &str) -> Option<Found> {
        let Some(name) = provider else {
            let tables = INFERRED.iter().filter_map(|id| self.providers.iter().find(|p| p.id == *id));
            return tables.into_iter().find_map(|p| p.find(model, Flags::PROVIDER_INFERRED));
        };
        let name = name.to_ascii_lowercase();
        let provider = self.provider(&name)?;
        provider.find(model, Flags::NONE).or_else(|| self.vendor(provider, model)).or_else(|| {
            let tables = provider.fallback.iter().filter_map(|id| self.provider(id));
            tables.into_iter().find_map(|p| p.find(model, Flags::FALLBACK_PROVIDER))
        })
    }

    /// `vendor/model` of a reseller: the vendor's own table.
    fn vendor(&self, provider: &Provider, model: &str) -> Option<Found> {
        provider.vendor_prefix.iter().find_map(|(prefix, vendor)| {
            self.provider(vendor)?.find(model.strip_prefix(prefix.as_str())?, Flags::FALLBACK_PROVIDER)
        })
    }

    fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|p| p.is_named(name))
    }

    /// Returns the canonical name of a served tier; `None` is the standard one.
    pub(super) fn tier<'t>(&'t self, provider: &str, tier: &'t str) -> Option<std::borrow::Cow<'t, str>> {
        let lower = tier.trim().to_ascii_lowercase();
        let canonical =
            self.tier_aliases.iter().find(|(spelling, _)| *spelling == lower).map(|(_, name)| name.as_str());
        let name = match canonical {
            Some("standard") => return None,
            Some(name) => name,
            None => return Some(lower.into()),
        };
        let equal = self.tier_equal.iter().find(|(who, from, _)| who == provider && from == name);
        Some(equal.map_or(name, |(.., to)| to.as_str()).into())
    }
}

const BUILTIN_TEXT: &str = include_str!("prices.json");

/// FNV-1a over both names, into a slot of the memory.
fn slot_of(provider: &str, model: &str) -> usize {
    let bytes = provider.bytes().chain(std::iter::once(0)).chain(model.bytes());
    let hash = bytes.fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 16)) as usize % REMEMBERED
}

impl Provider {
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.id == name || self.aliases.iter().any(|a| a == name)
    }

    /// Lays another table of the same provider over this one.
    fn lay(&mut self, upper: Provider) {
        self.aliases.extend(upper.aliases);
        // Which model wins is a matter of layers, which fallback a matter of order.
        self.models.extend(upper.models);
        self.fallback = upper.fallback.into_iter().chain(std::mem::take(&mut self.fallback)).collect();
        self.vendor_prefix = upper.vendor_prefix.into_iter().chain(std::mem::take(&mut self.vendor_prefix)).collect();
    }

    /// Finds a model by its lower-case id: as it is, without prefix, then with a written-out date.
    fn find(&self, id: &str, flags: Flags) -> Option<Found> {
        let found = |model: &Rc<Model>| Found { provider: self.id.as_str().into(), model: model.clone(), flags };
        if let Some(model) = self.matching(id) {
            return Some(found(model));
        }
        let bare = self.without_prefix(id);
        if let Some(model) = bare.and_then(|bare| self.matching(bare)) {
            return Some(found(model));
        }
        self.matching(&with_dashed_date(bare.unwrap_or(id))?).map(found)
    }

    fn without_prefix<'a>(&self, id: &'a str) -> Option<&'a str> {
        if let Some(bare) = id.strip_prefix("models/") {
            return Some(bare);
        }
        let (name, bare) = id.split_once('/')?;
        self.is_named(name).then_some(bare)
    }

    /// The highest layer wins, in it a literal entry, then the pattern with most characters that are not `*`.
    fn matching(&self, id: &str) -> Option<&Rc<Model>> {
        let mut best: Option<(&Rc<Model>, (u32, usize))> = None;
        for model in &self.models {
            let Some(weight) = model.weight(id) else { continue };
            let weight = (model.layer, weight);
            if best.is_none_or(|(_, w)| weight > w) {
                best = Some((model, weight));
            }
        }
        best.map(|(model, _)| model)
    }
}

impl Model {
    /// Says how well an id fits.
    fn weight(&self, id: &str) -> Option<usize> {
        let best = self.matches.iter().filter(|p| p.fits(id)).map(|p| p.weight).max()?;
        (!self.exclude.iter().any(|p| p.fits(id))).then_some(best)
    }
}

/// Matches a whole text: `*` is any run, `#` one digit. Linear in practice, never worse than pattern times text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&c) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&b) if b == c || (b == b'#' && c.is_ascii_digit()) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|&b| b == b'*')
}

/// Writes a trailing `-YYYYMMDD` as `-YYYY-MM-DD`.
fn with_dashed_date(id: &str) -> Option<String> {
    let at = id.len().checked_sub(8)?;
    let (head, digits) = (id.get(..at)?, id.get(at..)?);
    if !head.ends_with('-') || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(format!("{head}{}-{}-{}", digits.get(..4)?, digits.get(4..6)?, digits.get(6..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_table_is_sound() {
        let table = PriceTable::builtin().unwrap();
        assert_eq!((table.as_of(), table.len()), ("2026-11-09", 170));
        assert!(Rc::ptr_eq(&table, &PriceTable::builtin().unwrap()));
    }

    #[test]
    fn patterns_match_whole_ids() {
        let check = |pattern: &str, id: &str| matches(pattern.as_bytes(), id.as_bytes());
        assert!(check("gpt-4o", "gpt-4o") && !check("gpt-4o", "gpt-4oo") && !check("gpt-4o", "gpt-4"));
        assert!(check("a*c", "ac") && check("a*c", "abcc") && !check("a*c", "abcd"));
        assert!(check("x-########", "x-20260101") && !check("x-########", "x-2026010") && !check("x-#", "x-a"));
        assert!(check("*-tts-*", "g-tts-1") && check("**", "") && !check("", "a"));
        assert!(!check(&"*a".repeat(30), &"b".repeat(2_000)));
    }

    #[test]
    fn a_trailing_date_is_written_out() {
        assert_eq!(with_dashed_date("gpt-5.2-20251211").as_deref(), Some("gpt-5.2-2025-12-11"));
        for other in ["gpt", "20251211", "gpt20251211", "gpt-2025-12-11", "gpt-é0251211"] {
            assert_eq!(with_dashed_date(other), None, "{other}");
        }
    }
}
