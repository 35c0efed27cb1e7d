//! LangChain's usage_metadata: everything inside the totals.

use super::{Shape, no_amount};
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

fn read(raw: Json) -> Reading {
    if !raw.has_number("input_tokens") && !raw.has_number("output_tokens") {
        return Reading::MISSING;
    }
    let input = |key| raw.get("input_token_details").map_or(0, |d| d.count(key));
    let output = |key| raw.get("output_token_details").map_or(0, |d| d.count(key));
    let (short, long) = (input("ephemeral_5m_input_tokens"), input("ephemeral_1h_input_tokens"));
    let usage = Usage {
        input_tokens: raw.count("input_tokens"),
        output_tokens: raw.count("output_tokens"),
        cache_read_tokens: input("cache_read"),
        cache_write_tokens: input("cache_creation").max(short + long),
        cache_write_5m_tokens: short,
        cache_write_1h_tokens: long,
        reasoning_tokens: output("reasoning"),
        input_audio_tokens: input("audio"),
        output_audio_tokens: output("audio"),
        ..Usage::default()
    };
    usage.into()
}

/// The one shape.
pub(super) const SHAPE: Shape = Shape {
    name: "langchain.usage_metadata",
    read: |raw, _| read(raw),
    amount: no_amount,
    merge: streams::sum_langchain,
};
