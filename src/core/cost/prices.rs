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
        let mut memory = self.found.borrow_mut();
        if memory.is_empty() {
            memory.resize_with(REMEMBERED, || None);
        }
        // Two places each, so that two names that are used by turns do not push each other out.
        let first = slot_of(provider, model);
        let mut free = first;
        for slot in [first, first ^ 1] {
            match memory.get(slot)? {
                Some(known) if *known.model == *model && *known.provider == *provider => return known.found,
                Some(_) => {}
                None => free = slot,
            }
        }
        let found = self.search(&provider.to_ascii_lowercase(), &model.to_ascii_lowercase());
        *memory.get_mut(free)? = Some(Remembered { provider: provider.into(), model: model.into(), found });
        found
    }

    #[inline(never)]
    fn search(&self, provider: &str, model: &str) -> Option<Place> {
        // Whose table, which id in it, and how it was come by: in the order in which they are tried.
        let mut tries: Vec<(&str, &str, Flags)> = Vec::new();
        if provider.is_empty() {
            for id in INFERRED.split(' ') {
                tries.push((id, model, Flags::PROVIDER_INFERRED));
            }
        } else {
            let own = self.provider(provider)?;
            tries.push((own, model, Flags::NONE));
            for entry in &self.providers {
                // `vendor/model` of a reseller: the vendor's own table.
                for (prefix, vendor) in entry.vendor_prefix.iter().filter(|_| entry.id == own) {
                    if let Some(bare) = model.strip_prefix(prefix.as_str()) {
                        tries.push((vendor, bare, Flags::FALLBACK_PROVIDER));
                    }
                }
            }
            for entry in &self.providers {
                for other in entry.fallback.iter().filter(|_| entry.id == own) {
                    tries.push((other, model, Flags::FALLBACK_PROVIDER));
                }
            }
        }
        for (provider, id, flags) in tries {
            if let Some((provider, model)) = self.provider(provider).and_then(|provider| self.find(provider, id)) {
                return Some((provider, model, flags));
            }
        }
        None
    }

    /// Returns the id of the provider that answers to a name.
    #[inline(never)]
    fn provider(&self, name: &str) -> Option<&str> {
        self.providers.iter().find(|p| p.is_named(name)).map(|p| p.id.as_str())
    }

    /// Finds a model of a provider by its lower-case id: as it is, without prefix, then with a written-out date. Where a
    /// provider has several entries, the uppermost that knows it.
    #[inline(never)]
    fn find(&self, provider: &str, id: &str) -> Option<(usize, usize)> {
        let (prefix, rest) = id.split_once('/').unwrap_or(("", id));
        let is_own = prefix == "models" || self.providers.iter().any(|p| p.id == provider && p.is_named(prefix));
        let bare = if is_own { rest } else { id };
        let dated = with_dashed_date(bare);
        for id in [id, bare, &dated] {
            for (i, entry) in self.providers.iter().enumerate() {
                if entry.id == provider
                    && let Some(model) = entry.matching(id)
                {
                    return Some((i, model));
                }
            }
        }
        None
    }

    /// Returns the canonical name of a served tier; the standard one is nothing.
    #[inline(never)]
    pub(super) fn tier(&self, provider: &str, tier: &str) -> String {
        if tier.is_empty() {
            return String::new();
        }
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

/// Writes a trailing `-YYYYMMDD` as `-YYYY-MM-DD`; all else stays.
#[inline(never)]
fn with_dashed_date(id: &str) -> String {
    let at = id.len().saturating_sub(8);
    let digits = id.as_bytes().get(at..).unwrap_or_default();
    let is_date = id.get(..at).is_some_and(|head| head.ends_with('-')) && digits.iter().all(u8::is_ascii_digit);
    let mut out = String::new();
    for (i, c) in id.char_indices() {
        if is_date && (i == at + 4 || i == at + 6) {
            out.push('-');
        }
        out.push(c);
    }
    out
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
        assert_eq!(with_dashed_date("gpt-5.2-20251211"), "gpt-5.2-2025-12-11");
        for other in ["gpt", "20251211", "gpt20251211", "gpt-2025-12-11", "gpt-é0251211"] {
            assert_eq!(with_dashed_date(other), other);
        }
    }
}
