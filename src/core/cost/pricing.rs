//! One record becomes one figure: override, then what the provider says, then the table; else unknown, never 0.

use std::borrow::Cow;

use crate::core::json::{self, write_string};
use crate::core::time::Millis;

use super::super::double;
use super::arithmetic::{cents_nearest, exact, pico_of_atto, pico_of_usd, usd_text, write_scaled};
use super::doc::Json;
use super::flags::Flags;
use super::prices::{Model, PriceTable, RateKey, find};
use super::select::{Effective, effective};
use super::shapes::{Context, Shape, shape};
use super::table::{FACTOR_PLACES, override_model};
use super::usage::{Reading, Usage};
use super::when;

macro_rules! sources {
    ($($variant:ident $text:literal $doc:literal)+) => {
        /// Where a figure comes from.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Source { $(#[doc = $doc] $variant,)+ }

        impl Source {
            /// Every source with its name and documentation.
            pub const ALL: &'static [(Source, &'static str, &'static str)] = &[$((Source::$variant, $text, $doc),)+];

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
        let name = json.get("source").and_then(Json::string).unwrap_or_default();
        let source =
            Source::ALL.iter().find(|(_, text, _)| *text == name).map_or(Source::Unknown, |(source, ..)| *source);
        let names = json.get("flags").into_iter().flat_map(Json::children).filter_map(Json::string);
        Cost {
            pico: json.get("picodollars").and_then(Json::string).and_then(|p| p.parse().ok()),
            source,
            complete: json.get("complete").is_some_and(Json::is_true),
            flags: Flags::from_names(names),
        }
    }
}

/// What a provider said about one response, as a record carries it.
pub struct Record<'d> {
    /// The shape; `None` when the record names none that is known.
    pub shape: Option<&'static Shape>,
    /// The raw usage, when it is an object.
    pub raw: Option<Json<'d>>,
    /// Who served the request.
    pub provider: Option<Cow<'d, str>>,
    /// Which model.
    pub model: Option<Cow<'d, str>>,
    /// The id of the response.
    pub response_id: Option<Cow<'d, str>>,
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
            shape: shape(if is_plain { "step.usage" } else { name.as_deref().unwrap_or_default() }),
            raw: if is_plain { Some(json) } else { raw },
            provider: text(&["provider"]),
            model: text(&["model"]),
            response_id: text(&["responseId", "response_id"]),
            json,
        }
    }

    fn context(&self) -> Context<'_> {
        Context {
            provider: self.provider.as_deref(),
            model: self.model.as_deref(),
            metadata: self.json.any(&["providerMetadata", "provider_metadata"]),
        }
    }

    /// Normalises the raw usage and adds the calls that it does not carry.
    pub fn reading(&self) -> Reading {
        let Some(shape) = self.shape else {
            return Reading { usage: None, flags: Flags::MISSING_USAGE | Flags::UNKNOWN_SHAPE };
        };
        let mut reading = self.raw.map_or(Reading::MISSING, |raw| shape.read(raw, &self.context()));
        if let (Some(usage), Some(tools)) = (&mut reading.usage, self.tool_counts()) {
            add_tools(usage, tools);
        }
        reading
    }

    fn tool_counts(&self) -> Option<Json<'d>> {
        self.json.any(&["toolCounts", "tool_counts"])
    }

    /// When the response was made: the record's time, else `default`; an unreadable one is none.
    fn at(&self, default: Option<Millis>) -> Option<Millis> {
        let Some(at) = self.json.get("at") else { return default };
        match at.number() {
            Some(number) => double::parse(number).filter(|n| n.abs() < 9e15).map(|n| n as Millis),
            None => at.string().and_then(|text| when::parse(&text)),
        }
    }

    fn tier(&self) -> Option<Cow<'d, str>> {
        let said = self.json.get("tier").and_then(Json::string).filter(|t| !t.is_empty());
        said.or_else(|| {
            let raw = self.raw?;
            let is_fast = raw.get("speed").and_then(Json::string).is_some_and(|s| s == "fast");
            if is_fast { Some("fast".into()) } else { raw.get("service_tier").and_then(Json::string) }
        })
    }

    /// Prices the record; `default_at` stands in for a time it does not carry.
    pub fn price(&self, table: &PriceTable, default_at: Option<Millis>) -> (Reading, Cost) {
        let reading = self.reading();
        let own = self.json.get("override").map(|o| self.overridden(o, &reading, table, default_at));
        let cost = own.or_else(|| self.reported(&reading)).unwrap_or_else(|| self.tabled(&reading, table, default_at));
        (reading, cost)
    }

    fn overridden(&self, own: Json, reading: &Reading, table: &PriceTable, default_at: Option<Millis>) -> Cost {
        let invalid = Cost::unknown(reading.flags | Flags::INVALID_OVERRIDE);
        if let Some(usd) = own.get("usd") {
            let pico = match usd.number() {
                Some(number) => super::arithmetic::pico_of_usd_number(number),
                None => usd.string().and_then(|text| pico_of_usd(&text)),
            };
            return pico.map_or(invalid, |pico| Cost::known(pico, Source::Override, reading.flags));
        }
        let Some(model) = own.get("prices").and_then(|p| override_model(p.text())) else { return invalid };
        self.priced(
            reading,
            &model,
            self.provider.as_deref().unwrap_or_default(),
            table,
            default_at,
            Flags::NONE,
            Source::Override,
        )
    }

    fn reported(&self, reading: &Reading) -> Option<Cost> {
        let (pico, flags) = self.shape?.amount(self.raw?)?;
        Some(Cost::known(pico, Source::Provider, reading.flags | flags))
    }

    fn tabled(&self, reading: &Reading, table: &PriceTable, default_at: Option<Millis>) -> Cost {
        if reading.usage.is_none() {
            return Cost::unknown(reading.flags);
        }
        let found = self.model.as_deref().and_then(|model| table.lookup(self.provider.as_deref(), model));
        let Some(found) = found else { return Cost::unknown(reading.flags | Flags::UNKNOWN_MODEL) };
        if found.model.free {
            return Cost::known(0, Source::Free, reading.flags | found.flags);
        }
        self.priced(reading, &found.model, found.provider_id(), table, default_at, found.flags, Source::Table)
    }

    #[allow(clippy::too_many_arguments, reason = "one call, two callers, all of it needed")]
    fn priced(
        &self,
        reading: &Reading,
        model: &Model,
        provider: &str,
        table: &PriceTable,
        default_at: Option<Millis>,
        flags: Flags,
        source: Source,
    ) -> Cost {
        let mut flags = reading.flags | flags;
        let Some(usage) = reading.usage else { return Cost::unknown(flags) };
        let Some(at) = self.at(default_at) else { return Cost::unknown(flags | Flags::INVALID_TIME) };
        let served = self.tier();
        let tier = served.as_deref().and_then(|t| table.tier(provider, t));
        let Some(rates) = effective(model, at, tier.as_deref(), usage.input_tokens) else {
            return Cost::unknown(flags | Flags::NO_PRICE);
        };
        if !rates.has_tier {
            flags |= Flags::TIER_FALLBACK;
        }
        let tokens = match token_part(&usage, &rates) {
            Ok(tokens) => tokens,
            Err(flag) => return Cost::unknown(flags | flag),
        };
        let fees = self.fee_part(&usage, &rates, &mut flags);
        match fees.and_then(|fees| total(tokens, fees, self.geo_factor(model))) {
            Some(pico) => Cost::known(pico, source, flags),
            None => Cost::unknown(flags | Flags::OVERFLOW),
        }
    }

    fn geo_factor(&self, model: &Model) -> Option<u128> {
        if model.geo.is_empty() {
            return None;
        }
        let place = self.raw?.get("inference_geo")?.string()?.to_ascii_lowercase();
        find(&model.geo, &place).and_then(|factor| exact(factor, FACTOR_PLACES).ok())
    }

    /// Adds up the fees in attodollars; `None` when they are too large to count.
    fn fee_part(&self, usage: &Usage, rates: &Effective, flags: &mut Flags) -> Option<u128> {
        let mut sum = rates.fee("request").map_or(0, |fee| fee.atto);
        let mut charge = |tool: &str, calls: u64| -> Option<()> {
            if calls == 0 {
                return Some(());
            }
            match rates.fee(tool) {
                Some(fee) => {
                    sum = sum.checked_add(fee.atto.checked_mul(if fee.once { 1 } else { u128::from(calls) })?)?
                }
                None => *flags |= Flags::UNPRICED_TOOL,
            }
            Some(())
        };
        charge("web_search", usage.web_search_requests)?;
        charge("file_search", usage.file_search_requests)?;
        for tool in self.tool_counts().into_iter().flat_map(Json::children) {
            let name = tool.key();
            if !["web_search", "file_search", "request"].contains(&&*name) {
                charge(&name, tool.number().map_or(0, super::arithmetic::count_of))?;
            }
        }
        Some(sum)
    }
}

/// Adds calls that the usage object does not carry.
pub(super) fn add_tools(usage: &mut Usage, tools: Json) {
    usage.web_search_requests = usage.web_search_requests.saturating_add(tools.count("web_search"));
    usage.file_search_requests = usage.file_search_requests.saturating_add(tools.count("file_search"));
}

/// Takes up to `wanted` out of what is left.
fn take(left: &mut u64, wanted: u64) -> u64 {
    let taken = wanted.min(*left);
    *left -= taken;
    taken
}

/// Adds up the tokens at their rates in attodollars. The parts are made disjoint first, and never exceed their total.
fn token_part(usage: &Usage, rates: &Effective) -> Result<u128, Flags> {
    use RateKey::*;
    let mut left = usage.input_tokens;
    let read = take(&mut left, usage.cache_read_tokens);
    let written = take(&mut left, usage.cache_write_tokens);
    let mut read_text = read;
    let read_audio = take(&mut read_text, usage.cache_read_audio_tokens);
    let read_image = take(&mut read_text, usage.cache_read_image_tokens);
    let mut written_short = written;
    let written_long = take(&mut written_short, usage.cache_write_1h_tokens);
    let audio = take(&mut left, usage.input_audio_tokens.saturating_sub(read_audio));
    let image = take(&mut left, usage.input_image_tokens.saturating_sub(read_image));
    let mut out = usage.output_tokens;
    let out_audio = take(&mut out, usage.output_audio_tokens);
    let out_image = take(&mut out, usage.output_image_tokens);
    let reasoning = take(&mut out, usage.reasoning_tokens);
    let citation = take(&mut out, usage.citation_tokens);
    let parts = [
        (left, Input),
        (read_text, CacheRead),
        (read_audio, CacheReadAudio),
        (read_image, CacheReadImage),
        (written_short, CacheWrite),
        (written_long, CacheWrite1h),
        (audio, InputAudio),
        (image, InputImage),
        (out, Output),
        (out_audio, OutputAudio),
        (out_image, OutputImage),
        (reasoning, Reasoning),
        (citation, Citation),
    ];
    let mut sum: u128 = 0;
    for (tokens, key) in parts {
        if tokens == 0 {
            continue;
        }
        let rate = rates.rate(key).ok_or(Flags::MISSING_RATE)?;
        let part = rate.checked_mul(u128::from(tokens)).ok_or(Flags::OVERFLOW)?;
        sum = sum.checked_add(part).ok_or(Flags::OVERFLOW)?;
    }
    Ok(sum)
}

/// Tokens times factor plus fees, rounded once.
fn total(tokens: u128, fees: u128, factor: Option<u128>) -> Option<i128> {
    match factor {
        None => pico_of_atto(tokens.checked_add(fees)?),
        Some(millionths) => {
            let fine = tokens.checked_mul(millionths)?.checked_add(fees.checked_mul(1_000_000)?)?;
            super::arithmetic::pico_of_fine(fine)
        }
    }
}
