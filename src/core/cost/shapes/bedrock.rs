//! Amazon Bedrock's converse: input excludes what was read from and written to the cache.

use super::{Shape, no_amount};
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

fn written_for(raw: Json, ttl: &str) -> u64 {
    let details = raw.get("cacheDetails").into_iter().flat_map(Json::children);
    let matching = details.filter(|d| d.get("ttl").and_then(Json::string).is_some_and(|t| t == ttl));
    matching.map(|d| d.count("inputTokens")).fold(0, u64::saturating_add)
}

fn read(raw: Json) -> Reading {
    let keys = ["inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"];
    if !keys.iter().any(|key| raw.has_number(key)) {
        return Reading::MISSING;
    }
    let (short, long) = (written_for(raw, "5m"), written_for(raw, "1h"));
    let cache_read_tokens = raw.count("cacheReadInputTokens");
    let cache_write_tokens = raw.count("cacheWriteInputTokens").max(short.saturating_add(long));
    let usage = Usage {
        input_tokens: raw.count("inputTokens").saturating_add(cache_read_tokens).saturating_add(cache_write_tokens),
        output_tokens: raw.count("outputTokens"),
        cache_read_tokens,
        cache_write_tokens,
        cache_write_5m_tokens: short,
        cache_write_1h_tokens: long,
        ..Usage::default()
    };
    usage.into()
}

/// The one shape.
pub(super) const SHAPE: Shape =
    Shape { name: "bedrock.converse", read: |raw, _| read(raw), amount: no_amount, merge: streams::last_bedrock };
