//! Perplexity: reasoning and citations on top of the completion, searches counted, the amount sometimes reported.

use super::{Reported, Shape};
use crate::core::cost::arithmetic::pico_of_usd_number;
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

fn read(raw: Json) -> Reading {
    if !raw.has_number("prompt_tokens") && !raw.has_number("completion_tokens") {
        return Reading::MISSING;
    }
    let reasoning_tokens = raw.count("reasoning_tokens");
    let citation_tokens = raw.count("citation_tokens");
    let usage = Usage {
        input_tokens: raw.count("prompt_tokens"),
        output_tokens: raw.count("completion_tokens") + reasoning_tokens + citation_tokens,
        reasoning_tokens,
        citation_tokens,
        web_search_requests: raw.count("num_search_queries"),
        ..Usage::default()
    };
    usage.into()
}

fn charged(raw: Json) -> Option<Reported> {
    raw.get("cost")?.get("total_cost")?.number().and_then(pico_of_usd_number).map(Reported::from)
}

/// The one shape.
pub(super) const SHAPE: Shape =
    Shape { name: "perplexity.chat", read: |raw, _| read(raw), amount: charged, merge: streams::last_chat };
