//! One record becomes one figure: override, then what the provider says, then the table; else unknown, never 0.

use crate::core::json::{self, write_string};
use crate::core::time::Millis;

use super::super::double;
use super::arithmetic::{
    ATTO_PER_PICO, cents_nearest, count_of, exact, pico_of, pico_of_text, pico_of_usd, pico_of_usd_number, product,
    usd_text, write_scaled,
};
use super::doc::Json;
use super::flags::{Flags, said};
use super::prices::{Model, PriceTable, RateKey, find};
use super::select::{Effective, effective};
use super::shapes::{Context, Shape, shape};
use super::table::{FACTOR_PLACES, override_model};
use super::usage::{Reading, Usage, slot::*};
use super::when;

macro_rules! sources {
    ($($variant:ident $text:literal $doc:literal)+) => {
        /// Where a figure comes from.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Source { $(#[doc = $doc] $variant,)+ }

        impl Source {
            /// Every source with its name and documentation.
            pub const ALL: &'static [(Source, &'static str, &'static str)] = &[$((Source::$variant, $text, said!($doc)),)+];

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self { $(Source::$variant => $text,)+ }
            }
        }
    };
}

sources! {
    Override "override" "The record carries its own price."
    Provider "provider" "The provider reported what it charged."
    Table "table" "The price table."
    Free "free" "The price table knows the model to be free."
    Unknown "unknown" "Nobody knows."
    Sum "sum" "Added up from others."
}

/// What something cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Picodollars; `None` when unknown.
    pub pico: Option<i128>,
    /// Where the figure comes from.
    pub source: Source,
    /// False when part of it could not be priced: the figure is then a lower bound.
    pub complete: bool,
    /// What to know about it.
    pub flags: Flags,
}

impl Cost {
    fn unknown(flags: Flags) -> Cost {
        Cost { pico: None, source: Source::Unknown, complete: false, flags }
    }

    fn known(pico: i128, source: Source, flags: Flags) -> Cost {
        let complete = !flags.has(Flags::UPSTREAM_UNKNOWN) && !flags.has(Flags::UNPRICED_TOOL);
        Cost { pico: Some(pico), source, complete, flags }
    }

    /// Returns the sum of several figures.
    pub fn sum(pico: i128, complete: bool) -> Cost {
        Cost { pico: Some(pico), source: Source::Sum, complete, flags: Flags::NONE }
    }

    /// Appends the JSON object of the public interface.
    pub fn write(&self, out: &mut String) {
        match self.pico {
            Some(pico) => {
                out.push_str("{\"picodollars\":\"");
                write_scaled(out, pico, 0);
                out.push_str("\",\"usd\":\"");
                out.push_str(&usd_text(pico));
                out.push_str("\",\"cents\":");
                let cents = cents_nearest(pico);
                // Rust writes the shortest digits that read as the same double; so does JavaScript read them.
                out.push_str(&json::Value::from(cents).to_text());
            }
            None => out.push_str("{\"picodollars\":null,\"usd\":null,\"cents\":null"),
        }
        out.push_str(",\"source\":");
        write_string(out, self.source.name());
        out.push_str(if self.complete { ",\"complete\":true,\"flags\":" } else { ",\"complete\":false,\"flags\":" });
        self.flags.write(out);
        out.push('}');
    }

    /// Reads what [`Cost::write`] wrote.
    pub fn read(json: Json) -> Cost {
        let name = json.text_of("source").unwrap_or_default();
        let mut cost = Cost::unknown(Flags::NONE);
        for (source, text, _) in Source::ALL {
            cost.source = if name == *text { *source } else { cost.source };
        }
        cost.pico = json.text_of("picodollars").and_then(pico_of_text);
        cost.complete = json.get("complete").is_some_and(Json::is_true);
        for name in json.get("flags").into_iter().flat_map(Json::children) {
            cost.flags |= name.string().map_or(Flags::NONE, Flags::of);
        }
        cost
    }
}

/// What a provider said about one response, as a record carries it.
pub struct Record<'d> {
    /// The shape; `None` when the record names none that is known.
    pub shape: Option<&'static Shape>,
    /// The raw usage, when it is an object.
    pub raw: Option<Json<'d>>,
    /// Who served the request.
    pub provider: Option<&'d str>,
    /// Which model.
    pub model: Option<&'d str>,
    /// Calls that the usage object does not carry.
    tools: Option<Json<'d>>,
    json: Json<'d>,
}

impl<'d> Record<'d> {
    /// Reads a record. The plain form `{prompt_tokens, completion_tokens, cost}` is one, too.
    pub fn read(json: Json<'d>) -> Record<'d> {
        let text = |keys: &[&str]| json.any(keys).and_then(Json::string).filter(|s| !s.is_empty());
        let name = text(&["apiShape", "api_shape"]);
        let raw = json.any(&["raw", "raw_usage"]).filter(|r| r.is_object());
        let is_plain =
            name.is_none() && raw.is_none() && json.any(&["prompt_tokens", "completion_tokens", "cost"]).is_some();
        Record {
            shape: shape(if is_plain { "step.usage" } else { name.unwrap_or_default() }),
            raw: if is_plain { Some(json) } else { raw },
            provider: text(&["provider"]),
            model: text(&["model"]),
            tools: json.any(&["toolCounts", "tool_counts"]),
            json,
        }
    }

    fn context(&self) -> Context<'_> {
        Context { provider: self.provider, model: self.model, record: self.json }
    }

    /// Normalises the raw usage and adds the calls that it does not carry.
    pub fn reading(&self) -> Reading {
        let Some(shape) = self.shape else {
            return Reading { usage: None, flags: Flags::MISSING_USAGE | Flags::UNKNOWN_SHAPE };
        };
        let mut reading = self.raw.map_or(Reading::MISSING, |raw| shape.read(raw, &self.context()));
        if let (Some(usage), Some(tools)) = (&mut reading.usage, self.tools) {
            add_tools(usage, tools);
        }
        reading
    }

    /// Returns the id of the response.
    pub fn response_id(&self) -> Option<&'d str> {
        self.json.any(&["responseId", "response_id"])?.string().filter(|id| !id.is_empty())
    }

    /// When the response was made: the record's time, else `default`; an unreadable one is none.
    #[inline(never)]
    fn at(&self, default: Option<Millis>) -> Option<Millis> {
        let Some(at) = self.json.get("at") else { return default };
        match at.number() {
            Some(number) => double::parse(number).filter(|n| n.abs() < 9e15).map(|n| n as Millis),
            None => at.string().and_then(when::parse),
        }
    }

    /// The tier that served the request; none is said by nothing.
    #[inline(never)]
    fn tier(&self) -> &'d str {
        let served =
            |raw: Json<'d>| if raw.is_text("speed", "fast") { Some("fast") } else { raw.text_of("service_tier") };
        let said = self.json.text_of("tier").filter(|tier| !tier.is_empty());
        said.or_else(|| self.raw.and_then(served)).unwrap_or_default()
    }

    /// Prices the record; `default_at` stands in for a time it does not carry.
    pub fn price(&self, table: &PriceTable, default_at: Option<Millis>) -> (Reading, Cost) {
        let reading = self.reading();
        (reading, self.cost(&reading, table, default_at))
    }

    fn cost(&self, reading: &Reading, table: &PriceTable, default_at: Option<Millis>) -> Cost {
        let flags = reading.flags;
        if let Some(own) = self.json.get("override") {
            let invalid = Cost::unknown(flags | Flags::INVALID_OVERRIDE);
            if let Some(usd) = own.get("usd") {
                let pico = match usd.number() {
                    Some(number) => pico_of_usd_number(number),
                    None => usd.string().and_then(pico_of_usd),
                };
                return pico.map_or(invalid, |pico| Cost::known(pico, Source::Override, flags));
            }
            let Some(model) = own.get("prices").and_then(|p| override_model(p.text())) else { return invalid };
            let provider = self.provider.unwrap_or_default();
            return self.priced(
                reading,
                &Priced { model: &model, provider, table, source: Source::Override },
                default_at,
                flags,
            );
        }
        if let Some((pico, more)) = self.shape.zip(self.raw).and_then(|(shape, raw)| shape.amount(raw)) {
            return Cost::known(pico, Source::Provider, flags | more);
        }
        if reading.usage.is_none() {
            return Cost::unknown(flags);
        }
        let found = self.model.and_then(|model| table.lookup(self.provider, model));
        let Some(found) = found else { return Cost::unknown(flags | Flags::UNKNOWN_MODEL) };
        let flags = flags | found.flags;
        if found.model.free {
            return Cost::known(0, Source::Free, flags);
        }
        let by = Priced { model: found.model, provider: found.provider_id(), table, source: Source::Table };
        self.priced(reading, &by, default_at, flags)
    }

    #[inline(never)]
    fn priced(&self, reading: &Reading, by: &Priced, default_at: Option<Millis>, mut flags: Flags) -> Cost {
        let Some(usage) = &reading.usage else { return Cost::unknown(flags) };
        let Some(at) = self.at(default_at) else { return Cost::unknown(flags | Flags::INVALID_TIME) };
        let tier = by.table.tier(by.provider, self.tier());
        let Some(rates) = effective(by.model, at, &tier, usage.input_tokens) else {
            return Cost::unknown(flags | Flags::NO_PRICE);
        };
        if !rates.has_tier {
            flags |= Flags::TIER_FALLBACK;
        }
        let mut tokens = Sum(Some(0));
        let mut copy = *usage;
        let mut counts = copy.slots();
        disjoint(&mut counts);
        for &(slot, key) in RATED {
            let count = counts.get(usize::from(slot)).map_or(0, |count| **count);
            match rates.rate(key) {
                _ if count == 0 => {}
                Some(rate) => tokens.add(rate, u128::from(count)),
                None => return Cost::unknown(flags | Flags::MISSING_RATE),
            }
        }
        // Tokens times factor plus fees, rounded once.
        let factor = self.geo_factor(by.model);
        let (mut sum, unit) = match factor {
            None => (tokens, 1),
            Some(millionths) => {
                let mut sum = Sum(Some(0));
                sum.add_part(tokens.0, millionths);
                (sum, 1_000_000)
            }
        };
        sum.add_part(self.fee_part(usage, &rates, &mut flags).0, unit);
        match sum.0.and_then(|sum| pico_of(sum, ATTO_PER_PICO * unit)) {
            Some(pico) => Cost::known(pico, by.source, flags),
            None => Cost::unknown(flags | Flags::OVERFLOW),
        }
    }

    fn geo_factor(&self, model: &Model) -> Option<u128> {
        if model.geo.is_empty() {
            return None;
        }
        let place = self.raw?.text_of("inference_geo")?.to_ascii_lowercase();
        find(&model.geo, &place).and_then(|factor| exact(factor, FACTOR_PLACES).ok())
    }

    /// Adds up the fees in attodollars.
    fn fee_part(&self, usage: &Usage, rates: &Effective, flags: &mut Flags) -> Sum {
        let mut sum = Sum(Some(rates.fee("request").map_or(0, |fee| fee.atto)));
        let mut charge = |tool: &str, calls: u64| match rates.fee(tool) {
            _ if calls == 0 => {}
            Some(fee) => sum.add(fee.atto, if fee.once { 1 } else { u128::from(calls) }),
            None => *flags |= Flags::UNPRICED_TOOL,
        };
        charge("web_search", usage.web_search_requests);
        charge("file_search", usage.file_search_requests);
        for tool in self.tools.into_iter().flat_map(Json::children) {
            let name = tool.key();
            if !["web_search", "file_search", "request"].contains(&&*name) {
                charge(&name, tool.number().map_or(0, count_of));
            }
        }
        sum
    }
}

/// Whose prices are taken.
struct Priced<'a> {
    model: &'a Model,
    provider: &'a str,
    table: &'a PriceTable,
    source: Source,
}

/// A sum; nothing when it is too large to be counted.
struct Sum(Option<u128>);

impl Sum {
    #[inline(never)]
    fn add(&mut self, amount: u128, times: u128) {
        self.0 = self.0.zip(product(amount, times)).and_then(|(sum, part)| sum.checked_add(part));
    }

    fn add_part(&mut self, amount: Option<u128>, times: u128) {
        match amount {
            Some(amount) => self.add(amount, times),
            None => self.0 = None,
        }
    }
}

/// Adds calls that the usage object does not carry.
pub(super) fn add_tools(usage: &mut Usage, tools: Json) {
    usage.web_search_requests = usage.web_search_requests.saturating_add(tools.count("web_search"));
    usage.file_search_requests = usage.file_search_requests.saturating_add(tools.count("file_search"));
}

/// The second is counted in the first already, but stays as it is.
const TWICE: u8 = 0x80;

/// How counts are made disjoint: out of the first, as much as there is, is taken the second. In this order.
const WITHIN: &[(u8, u8)] = &[
    (INPUT, READ),
    (INPUT, WRITTEN),
    (READ, READ_AUDIO),
    (READ, READ_IMAGE),
    (WRITTEN, LONG),
    (IN_AUDIO, READ_AUDIO | TWICE),
    (IN_IMAGE, READ_IMAGE | TWICE),
    (INPUT, IN_AUDIO),
    (INPUT, IN_IMAGE),
    (OUTPUT, OUT_AUDIO),
    (OUTPUT, OUT_IMAGE),
    (OUTPUT, REASONING),
    (OUTPUT, CITATION),
];

/// Which count has which rate.
const RATED: &[(u8, RateKey)] = &[
    (INPUT, RateKey::Input),
    (READ, RateKey::CacheRead),
    (READ_AUDIO, RateKey::CacheReadAudio),
    (READ_IMAGE, RateKey::CacheReadImage),
    (WRITTEN, RateKey::CacheWrite),
    (LONG, RateKey::CacheWrite1h),
    (IN_AUDIO, RateKey::InputAudio),
    (IN_IMAGE, RateKey::InputImage),
    (OUTPUT, RateKey::Output),
    (OUT_AUDIO, RateKey::OutputAudio),
    (OUT_IMAGE, RateKey::OutputImage),
    (REASONING, RateKey::Reasoning),
    (CITATION, RateKey::Citation),
];

/// Takes out of the counts what others count, so that none is paid twice and none exceeds its total.
#[inline(never)]
fn disjoint(counts: &mut [&mut u64]) {
    for &(from, what) in WITHIN {
        let (from, part) = (usize::from(from), usize::from(what & !TWICE));
        let most = counts.get(from).map_or(0, |count| **count);
        let Some(count) = counts.get_mut(part) else { continue };
        let taken = most.min(**count);
        if what & TWICE == 0 {
            **count = taken;
        }
        if let Some(left) = counts.get_mut(from) {
            **left -= taken;
        }
    }
}
