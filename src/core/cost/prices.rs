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
    /// Several entries of one provider are layers: the first that knows a model decides.
    pub(super) providers: Vec<Rc<Provider>>,
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
        providers: Vec<Rc<Provider>>,
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
        PriceTable::new(
            self.as_of.clone().max(over.as_of.clone()),
            joined(&over.tier_aliases, &self.tier_aliases),
            joined(&over.tier_equal, &self.tier_equal),
            joined(&over.providers, &self.providers),
        )
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
            return INFERRED.iter().find_map(|id| self.find(id, model, Flags::PROVIDER_INFERRED));
        };
        let id = self.provider(&name.to_ascii_lowercase())?;
        if let Some(found) = self.find(id, model, Flags::NONE) {
            return Some(found);
        }
        for entry in self.layers(id) {
            for (prefix, vendor) in &entry.vendor_prefix {
                // `vendor/model` of a reseller: the vendor's own table.
                let Some(bare) = model.strip_prefix(prefix.as_str()) else { continue };
                let found = self.provider(vendor).and_then(|id| self.find(id, bare, Flags::FALLBACK_PROVIDER));
                if found.is_some() {
                    return found;
                }
            }
        }
        for other in self.layers(id).flat_map(|entry| &entry.fallback) {
            let found = self.provider(other).and_then(|id| self.find(id, model, Flags::FALLBACK_PROVIDER));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns the id of the provider that answers to a name.
    fn provider(&self, name: &str) -> Option<&str> {
        self.providers.iter().find(|p| p.is_named(name)).map(|p| p.id.as_str())
    }

    /// Iterates over the entries of one provider, the uppermost first.
    fn layers<'t>(&'t self, id: &'t str) -> impl Iterator<Item = &'t Rc<Provider>> {
        self.providers.iter().filter(move |p| p.id == id)
    }

    /// Finds a model of a provider by its lower-case id: as it is, without prefix, then with a written-out date.
    fn find(&self, provider: &str, id: &str, flags: Flags) -> Option<Found> {
        let bare = self.without_prefix(provider, id);
        let dated = with_dashed_date(bare.unwrap_or(id));
        for id in [Some(id), bare, dated.as_deref()].into_iter().flatten() {
            for entry in self.layers(provider) {
                if let Some(model) = entry.matching(id) {
                    return Some(Found { provider: provider.into(), model: model.clone(), flags });
                }
            }
        }
        None
    }

    fn without_prefix<'a>(&self, provider: &str, id: &'a str) -> Option<&'a str> {
        let (name, bare) = id.split_once('/')?;
        (name == "models" || self.layers(provider).any(|p| p.is_named(name))).then_some(bare)
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

    /// A literal entry wins, then the pattern with most characters that are not `*`.
    fn matching(&self, id: &str) -> Option<&Rc<Model>> {
        let mut best: Option<(&Rc<Model>, usize)> = None;
        for model in &self.models {
            let Some(weight) = model.weight(id) else { continue };
            if best.is_none_or(|(_, w)| weight > w) {
                best = Some((model, weight));
            }
        }
        best.map(|(model, _)| model)
    }
}

/// Both lists, the upper one first.
fn joined<T: Clone>(upper: &[T], lower: &[T]) -> Vec<T> {
    [upper, lower].concat()
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
