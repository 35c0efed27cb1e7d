//! Anthropic's messages: input excludes the cache, writes by lifetime, compaction billed beside the top level.

use super::{Shape, no_amount};
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

const KEYS: &[&str] = &["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/// Counts of the top level or of one iteration.
fn counts(raw: Json) -> Usage {
    let split = raw.get("cache_creation");
    let written = |key| split.map_or(0, |s| s.count(key));
    let (short, long) = (written("ephemeral_5m_input_tokens"), written("ephemeral_1h_input_tokens"));
    let cache_write_tokens = raw.count("cache_creation_input_tokens").max(short + long);
    let cache_read_tokens = raw.count("cache_read_input_tokens");
    Usage {
        input_tokens: raw.count("input_tokens") + cache_write_tokens + cache_read_tokens,
        output_tokens: raw.count("output_tokens"),
        cache_read_tokens,
        cache_write_tokens,
        cache_write_5m_tokens: short,
        cache_write_1h_tokens: long,
        reasoning_tokens: raw.get("output_tokens_details").map_or(0, |d| d.count("thinking_tokens")),
        ..Usage::default()
    }
}

fn read(raw: Json) -> Reading {
    if !KEYS.iter().any(|key| raw.has_number(key)) {
        return Reading::MISSING;
    }
    let mut usage = counts(raw);
    let iterations = raw.get("iterations").into_iter().flat_map(Json::children);
    for iteration in iterations.filter(|i| i.get("type").and_then(Json::string).is_some_and(|t| t == "compaction")) {
        usage.add(&counts(iteration));
    }
    if let Some(tools) = raw.get("server_tool_use") {
        usage.web_search_requests = tools.count("web_search_requests");
    }
    usage.into()
}

/// The one shape.
pub(super) const SHAPE: Shape =
    Shape { name: "anthropic.messages", read: |raw, _| read(raw), amount: no_amount, merge: streams::anthropic };
