//! The Vercel AI SDK: three versions, three meanings of the same names.

use super::openai_like::is_on_top;
use super::{Context, Shape, no_amount};
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

fn v4(raw: Json) -> Reading {
    if !raw.has_number("promptTokens") && !raw.has_number("completionTokens") {
        return Reading::MISSING;
    }
    let usage = Usage {
        input_tokens: raw.count("promptTokens"),
        output_tokens: raw.count("completionTokens"),
        ..Usage::default()
    };
    usage.into()
}

/// Tokens written to the cache stand only in the provider's own metadata here.
fn written_v5(metadata: Option<Json>) -> u64 {
    let Some(metadata) = metadata else { return 0 };
    let anthropic = metadata.get("anthropic").map_or(0, |a| a.count("cacheCreationInputTokens"));
    let bedrock = metadata.get("bedrock").and_then(|b| b.get("usage")).map_or(0, |u| u.count("cacheWriteInputTokens"));
    anthropic.max(bedrock)
}

fn v5(raw: Json, context: &Context) -> Reading {
    if !raw.has_number("inputTokens") && !raw.has_number("outputTokens") {
        return Reading::MISSING;
    }
    let metadata = context.metadata.or_else(|| raw.any(&["providerMetadata", "provider_metadata"]));
    let read = raw.count("cachedInputTokens");
    let written = written_v5(metadata);
    let reasoning = raw.count("reasoningTokens");
    let mut input = raw.count("inputTokens");
    let mut output = raw.count("outputTokens");
    let total = raw.has_number("totalTokens").then(|| raw.count("totalTokens"));
    if is_on_top(reasoning, input, output, total, false) {
        output += reasoning;
    }
    // The providers of Anthropic and Bedrock report the cache beside the input, all others inside it.
    if context.keeps_cache_beside() || metadata.is_some_and(|m| m.any(&["anthropic", "bedrock"]).is_some()) {
        input += read + written;
    }
    let usage = Usage {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: read,
        cache_write_tokens: written,
        reasoning_tokens: reasoning,
        ..Usage::default()
    };
    usage.into()
}

/// A count that is a number, or an object with its total and parts (as language models report it since version 3 of
/// their interface).
fn total_of(raw: Json, key: &str) -> u64 {
    raw.get(key).map_or(0, |v| if v.is_object() { v.count("total") } else { raw.count(key) })
}

fn first(raw: Json, places: &[(&str, &str)]) -> u64 {
    let found = places.iter().filter_map(|(object, key)| raw.get(object).map(|o| o.count(key)));
    found.into_iter().find(|&n| n > 0).unwrap_or(0)
}

fn v6(raw: Json) -> Reading {
    let said = |key| raw.has_number(key) || raw.get(key).is_some_and(|v| v.has_number("total"));
    if !said("inputTokens") && !said("outputTokens") {
        return Reading::MISSING;
    }
    let split = raw.get("raw").and_then(|r| r.get("cache_creation"));
    let lifetime = |key| split.map_or(0, |s| s.count(key));
    let read = first(raw, &[("inputTokenDetails", "cacheReadTokens"), ("inputTokens", "cacheRead")]);
    let reasoning = first(raw, &[("outputTokenDetails", "reasoningTokens"), ("outputTokens", "reasoning")]);
    let usage = Usage {
        input_tokens: total_of(raw, "inputTokens"),
        output_tokens: total_of(raw, "outputTokens"),
        cache_read_tokens: if read > 0 { read } else { raw.count("cachedInputTokens") },
        cache_write_tokens: first(raw, &[("inputTokenDetails", "cacheWriteTokens"), ("inputTokens", "cacheWrite")]),
        cache_write_5m_tokens: lifetime("ephemeral_5m_input_tokens"),
        cache_write_1h_tokens: lifetime("ephemeral_1h_input_tokens"),
        reasoning_tokens: if reasoning > 0 { reasoning } else { raw.count("reasoningTokens") },
        ..Usage::default()
    };
    usage.into()
}

/// Version 4.
pub(super) const V4: Shape =
    Shape { name: "ai-sdk.v4", read: |raw, _| v4(raw), amount: no_amount, merge: streams::sum_steps };
/// Version 5.
pub(super) const V5: Shape = Shape { name: "ai-sdk.v5", read: v5, amount: no_amount, merge: streams::sum_steps };
/// Versions 6 and 7.
pub(super) const V6: Shape =
    Shape { name: "ai-sdk.v6", read: |raw, _| v6(raw), amount: no_amount, merge: streams::sum_steps };
