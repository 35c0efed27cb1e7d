//! The raw usage shapes: data that says where each keeps its counts, and the few things that are more than a place.

mod read;
mod table;

use super::arithmetic::{pico_of_ticks, pico_of_usd_number};
use super::doc::Json;
use super::flags::Flags;
use super::usage::{Reading, Usage};
use crate::core::json::Value;

pub use table::SHAPES;

/// Counts in one object: where it is (no name is the raw object itself, [`INSIDE`] goes on from the group before), and which member is which count.
type Group = (&'static [&'static str], &'static [(Slot, &'static str)]);

/// A place in [`Usage`], in the order of [`Usage::KEYS`], and what it means that something is there.
type Slot = u8;
/// Marks the counts of which at least one must be there.
const SAYS: Slot = 0x80;
/// Marks reasoning: whoever reports it does not hide it in the total.
const TELLS: Slot = 0x40;

/// How one API reports usage.
pub struct Shape {
    /// Its name, as records give it.
    pub name: &'static str,
    /// Where its counts are. The first place with something positive decides.
    groups: &'static [Group],
    /// What is done with them afterwards.
    traits: u8,
    /// Where the amount is that the provider says it charged.
    amount: &'static [&'static str],
    /// Where the payloads of a stream carry the raw object.
    places: &'static [&'static str],
    /// Makes one raw object out of the payloads of a stream.
    merge: fn(&[Value], &[&str]) -> Option<Value>,
}

/// Goes on from the object of the group before.
const INSIDE: &str = ".";

/// What was written to the cache is at least the sum of its lifetimes.
const LIFETIMES: u8 = 1;
/// The cache is beside the input, not inside.
const BESIDE: u8 = 2;
/// Reasoning, citations and what tools brought in are on top.
const ON_TOP: u8 = 4;
/// The total decides whether reasoning is on top, as everywhere around OpenAI.
const BY_TOTAL: u8 = 8;
/// Without a total that decides, it is.
const ELSE_ON_TOP: u8 = 16;
/// Version 5 of the AI SDK.
const METADATA: u8 = 32;
/// The amount is in ticks of 1e-10 dollars.
const TICKS: u8 = 64;
/// The amount may have another part upstream.
const UPSTREAM: u8 = 128;

/// Finds a shape by name; `.stream` behind it is passed over.
#[inline(never)]
pub fn shape(name: &str) -> Option<&'static Shape> {
    let name = name.strip_suffix(".stream").unwrap_or(name);
    // Version 7 kept what version 6 reports.
    let name = if name == "ai-sdk.v7" { "ai-sdk.v6" } else { name };
    SHAPES.iter().find(|s| s.name == name)
}

impl Shape {
    /// Reads the counts out of one raw object.
    #[inline(never)]
    pub fn read(&self, raw: Json, context: &Context) -> Reading {
        read::read(self, raw, context)
    }

    /// Reads the amount that the provider says it charged, in picodollars, and what to know about it.
    #[inline(never)]
    pub fn amount(&self, raw: Json) -> Option<(i128, Flags)> {
        if self.amount.is_empty() {
            return None;
        }
        let said = raw.at(self.amount)?.number()?;
        if self.traits & TICKS != 0 {
            return Some((pico_of_ticks(said)?, Flags::NONE));
        }
        let mut out = (pico_of_usd_number(said)?, Flags::NONE);
        // With the caller's own key the upstream bill comes on top; otherwise the upstream figure is information only.
        if self.traits & UPSTREAM != 0 && raw.get("is_byok").is_some_and(Json::is_true) {
            let upstream = raw.at(&["cost_details", "upstream_inference_cost"]).and_then(Json::number);
            match upstream.and_then(pico_of_usd_number) {
                Some(amount) => out.0 += amount,
                None => out.1 = Flags::UPSTREAM_UNKNOWN,
            }
        }
        Some(out)
    }

    /// Makes one raw object out of the payloads of a stream.
    pub fn merge(&self, payloads: &[Value]) -> Option<Value> {
        (self.merge)(payloads, self.places)
    }
}

/// What a shape may need to know beside the raw object.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Who served the request, as the record says it.
    pub provider: Option<&'a str>,
    /// Which model.
    pub model: Option<&'a str>,
    /// The record, which may have the AI SDK's metadata of the provider.
    pub record: Json<'a>,
}

impl Context<'_> {
    fn is_gemini(&self) -> bool {
        match (self.model, self.provider) {
            (Some(model), _) => starts_with(model.rsplit('/').next().unwrap_or_default(), "gemini"),
            (None, Some(provider)) => ["google", "gemini", "gcp.", "vertex"].iter().any(|g| starts_with(provider, g)),
            (None, None) => false,
        }
    }

    fn keeps_cache_beside(&self) -> bool {
        self.provider.is_some_and(|p| {
            let p = p.to_ascii_lowercase();
            p.contains("anthropic") || p.contains("bedrock") || p == "claude" || p == "aws"
        })
    }
}

#[inline(never)]
fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
