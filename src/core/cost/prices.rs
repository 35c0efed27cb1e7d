//! The price table: who charges what, since when, and how a name is found in it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::core::error::{Error, Kind, Result};
use crate::core::time::Millis;

use super::flags::Flags;
use super::{packed, table};

macro_rules! rate_keys {
    ($($variant:ident $text:literal [$($stand_in:ident)*])+) => {
        /// A kind of token that has its own rate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are the keys of the schema")]
        pub enum RateKey { $($variant,)+ }

        impl RateKey {
            /// Every key with its name in the schema.
            pub const ALL: &'static [(RateKey, &'static str)] = &[$((RateKey::$variant, $text),)+];
        }

        /// What stands in for a rate that is missing, in this order.
        pub(super) const STAND_INS: [&[RateKey]; RATES] = [$(&[$(RateKey::$stand_in,)*],)+];
    };
}

rate_keys! {
    Input "input" []
    Output "output" []
    CacheRead "cache_read" [Input]
    CacheWrite "cache_write" [Input]
    CacheWrite1h "cache_write_1h" [CacheWrite Input]
    InputAudio "input_audio" [Input]
    InputImage "input_image" [Input]
    // What is cached and audio may have the price of audio, else of the cache.
    CacheReadAudio "cache_read_audio" [InputAudio CacheRead Input]
    CacheReadImage "cache_read_image" [InputImage CacheRead Input]
    OutputAudio "output_audio" [Output]
    OutputImage "output_image" [Output]
    Reasoning "reasoning" [Output]
    Citation "citation" [Output]
}

/// Number of rate keys.
pub const RATES: usize = RateKey::ALL.len();

/// Names and what they stand for.
pub(super) type Pairs = Vec<(String, String)>;

/// Returns what a name stands for.
#[inline(never)]
pub(super) fn find<'p>(pairs: &'p Pairs, name: &str) -> Option<&'p str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Attodollars per token, from a step of the request's size on; the first is step 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    pub(super) key: RateKey,
    pub(super) step: usize,
    pub(super) atto: u128,
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hours {
    /// Minutes of the day, start inclusive, end exclusive, may wrap.
    pub(super) spans: Vec<(i64, i64)>,
    /// One bit for each ISO weekday; none is every day.
    pub(super) days: u8,
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
    /// Those of one key follow each other by their steps.
    pub(super) rates: Vec<Rate>,
    pub(super) fees: Vec<Fee>,
}

impl Default for Price {
    fn default() -> Self {
        let (steps, rates, fees) = Default::default();
        Price { from: Millis::MIN, until: Millis::MAX, tier: None, hours: None, steps, rates, fees }
    }
}

/// One model of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub(super) id: String,
    /// Names, where `*` is any run and `#` one digit.
    pub(super) matches: Vec<String>,
    pub(super) exclude: Vec<String>,
    /// A known zero.
    pub(super) free: bool,
    /// Factor on the token part by place of inference.
    pub(super) geo: Pairs,
    pub(super) prices: Vec<Price>,
}

/// One provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    pub(super) id: String,
    pub(super) aliases: Vec<String>,
    pub(super) fallback: Vec<String>,
    pub(super) vendor_prefix: Pairs,
    pub(super) models: Vec<Model>,
}

/// A checked price table.
#[derive(Clone, Debug)]
pub struct PriceTable {
    pub(super) as_of: String,
    /// Spelling and canonical name.
    pub(super) tier_aliases: Pairs,
    /// `provider/tier`, and the tier whose rates it takes.
    pub(super) tier_equal: Pairs,
    /// Several entries of one provider are layers: the first that knows a model decides.
    pub(super) providers: Vec<Rc<Provider>>,
    found: RefCell<Vec<Option<Remembered>>>,
}

/// A model that was found, and how.
#[derive(Clone, Copy, Debug)]
pub struct Found<'t> {
    /// The provider whose table it is.
    pub provider: &'t Provider,
    /// The model.
    pub model: &'t Model,
    /// `provider_inferred` or `fallback_provider`, or none.
    pub flags: Flags,
}

impl Found<'_> {
    /// Returns the id of the provider.
    pub fn provider_id(&self) -> &str {
        &self.provider.id
    }

    /// Returns the id of the model in the table.
    pub fn model_id(&self) -> &str {
        &self.model.id
    }
}

/// The tables that are tried when no provider is given, in this order.
const INFERRED: &str = "anthropic openai gcp.gemini x_ai deepseek mistral_ai cohere moonshot_ai z_ai minimax";

/// Lookups that are remembered; a conversation uses one model, a dashboard some hundreds.
const REMEMBERED: usize = 1024;

#[derive(Clone, Debug)]
struct Remembered {
    provider: Box<str>,
    model: Box<str>,
    found: Option<Place>,
}

/// Where a model is: the entry of its provider, its place there, and how it was found.
type Place = (usize, usize, Flags);

impl PriceTable {
    pub(super) fn new(as_of: String, tier_aliases: Pairs, tier_equal: Pairs, providers: Vec<Rc<Provider>>) -> Self {
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
            let table = Rc::new(packed::table().map_err(|what| Error::new(Kind::InvalidPriceTable, what))?);
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
    pub fn lookup(&self, provider: Option<&str>, model: &str) -> Option<Found<'_>> {
        let (provider, model, flags) = self.place(provider.unwrap_or_default(), model)?;
        let provider = self.providers.get(provider)?;
        Some(Found { provider, model: provider.models.get(model)?, flags })
    }

    #[inline(never)]
    fn place(&self, provider: &str, model: &str) -> Option<Place> {
        let slot = slot_of(provider, model);
        let mut memory = self.found.borrow_mut();
        if memory.is_empty() {
            memory.resize_with(REMEMBERED, || None);
        }
        let known = memory.get_mut(slot)?;
        if let Some(known) = known
            && *known.model == *model
            && *known.provider == *provider
        {
            return known.found;
        }
        let found = self.search(&provider.to_ascii_lowercase(), &model.to_ascii_lowercase());
        *known = Some(Remembered { provider: provider.into(), model: model.into(), found });
        found
    }

    #[inline(never)]
    fn search(&self, provider: &str, model: &str) -> Option<Place> {
        // Whose table, which id in it, and how it was come by: in the order in which they are tried.
        let mut tries: Vec<(&str, &str, Flags)> = Vec::new();
        if provider.is_empty() {
            tries.extend(INFERRED.split(' ').map(|id| (id, model, Flags::PROVIDER_INFERRED)));
        } else {
            let id = self.provider(provider)?;
            tries.push((id, model, Flags::NONE));
            // `vendor/model` of a reseller: the vendor's own table.
            for (prefix, vendor) in self.layers(id).flat_map(|entry| &entry.vendor_prefix) {
                tries.extend(
                    model.strip_prefix(prefix.as_str()).map(|m| (vendor.as_str(), m, Flags::FALLBACK_PROVIDER)),
                );
            }
            let others = self.layers(id).flat_map(|entry| &entry.fallback);
            tries.extend(others.map(|other| (other.as_str(), model, Flags::FALLBACK_PROVIDER)));
        }
        tries.into_iter().find_map(|(provider, id, flags)| self.find(self.provider(provider)?, id, flags))
    }

    /// Returns the id of the provider that answers to a name.
    #[inline(never)]
    fn provider(&self, name: &str) -> Option<&str> {
        self.providers.iter().find(|p| p.is_named(name)).map(|p| p.id.as_str())
    }

    /// Iterates over the entries of one provider, the uppermost first.
    fn layers<'t>(&'t self, id: &'t str) -> impl Iterator<Item = &'t Rc<Provider>> {
        self.providers.iter().filter(move |p| p.id == id)
    }

    /// Finds a model of a provider by its lower-case id: as it is, without prefix, then with a written-out date.
    #[inline(never)]
    fn find(&self, provider: &str, id: &str, flags: Flags) -> Option<Place> {
        let own = |name: &str| name == "models" || self.layers(provider).any(|p| p.is_named(name));
        let bare = id.split_once('/').filter(|(name, _)| own(name)).map(|(_, bare)| bare);
        let dated = with_dashed_date(bare.unwrap_or(id));
        for id in [Some(id), bare, dated.as_deref()].into_iter().flatten() {
            for (i, entry) in self.providers.iter().enumerate().filter(|(_, entry)| entry.id == provider) {
                if let Some(model) = entry.matching(id) {
                    return Some((i, model, flags));
                }
            }
        }
        None
    }

    /// Returns the canonical name of a served tier; the standard one is nothing.
    #[inline(never)]
    pub(super) fn tier(&self, provider: &str, tier: &str) -> String {
        let mut name = tier.trim().to_ascii_lowercase();
        match find(&self.tier_aliases, &name) {
            Some("standard") => name.clear(),
            Some(known) => name = find(&self.tier_equal, &[provider, "/", known].concat()).unwrap_or(known).to_owned(),
            None => {}
        }
        name
    }
}

/// FNV-1a over both names, into a slot of the memory.
fn slot_of(provider: &str, model: &str) -> usize {
    let bytes = provider.bytes().chain(std::iter::once(0)).chain(model.bytes());
    let hash = bytes.fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 16)) as usize % REMEMBERED
}

impl Provider {
    #[inline(never)]
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.id == name || self.aliases.iter().any(|a| a == name)
    }

    /// A literal entry wins, then the pattern with most characters that are not `*`; of equals the first.
    fn matching(&self, id: &str) -> Option<usize> {
        let mut best = None;
        for (i, model) in self.models.iter().enumerate() {
            let weight = model.weight(id);
            if weight > best.map(|(weight, _)| weight) {
                best = weight.map(|weight| (weight, i));
            }
        }
        best.map(|(_, i)| i)
    }
}

/// Both lists, the upper one first.
fn joined<T: Clone>(upper: &[T], lower: &[T]) -> Vec<T> {
    [upper, lower].concat()
}

impl Model {
    /// Says how well an id fits: a literal best, else by the characters that are not `*`.
    #[inline(never)]
    fn weight(&self, id: &str) -> Option<usize> {
        let fits = |pattern: &&String| matches(pattern.as_bytes(), id.as_bytes());
        let weight = |p: &String| if is_literal(p) { usize::MAX } else { p.bytes().filter(|b| *b != b'*').count() };
        let best = self.matches.iter().filter(fits).map(weight).max()?;
        (!self.exclude.iter().any(|p| fits(&p))).then_some(best)
    }
}

/// Says whether a pattern has no wildcard.
pub(super) fn is_literal(pattern: &str) -> bool {
    !pattern.bytes().any(|b| matches!(b, b'*' | b'#'))
}

/// Matches a whole text: `*` is any run, `#` one digit. Linear in practice, never worse than pattern times text.
#[inline(never)]
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
    Some([head, digits.get(..4)?, "-", digits.get(4..6)?, "-", digits.get(6..)?].concat())
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
