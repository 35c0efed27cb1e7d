//! Gemini's generateContent: thoughts beside candidates, tool prompts beside the prompt, lists by modality.

use super::{Shape, no_amount};
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

const KEYS: &[&str] = &[
    "promptTokenCount",
    "candidatesTokenCount",
    "responseTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "totalTokenCount",
];

/// Adds up the entries of one modality in a list of `{modality, tokenCount}`.
fn modality(raw: Json, list: &str, name: &str) -> u64 {
    let entries = raw.get(list).into_iter().flat_map(Json::children);
    let matching = entries.filter(|e| e.get("modality").and_then(Json::string).is_some_and(|m| m == name));
    matching.map(|e| e.count("tokenCount")).fold(0, u64::saturating_add)
}

fn read(raw: Json) -> Reading {
    if !KEYS.iter().any(|key| raw.has_number(key)) {
        return Reading::MISSING;
    }
    let tool_input_tokens = raw.count("toolUsePromptTokenCount");
    let reasoning_tokens = raw.count("thoughtsTokenCount");
    // Live sessions call the candidates a response.
    let answer = ["candidatesTokenCount", "responseTokenCount"].iter().map(|key| raw.count(key)).find(|&n| n > 0);
    let both = |name| modality(raw, "promptTokensDetails", name) + modality(raw, "toolUsePromptTokensDetails", name);
    let out = |name| modality(raw, "candidatesTokensDetails", name) + modality(raw, "responseTokensDetails", name);
    let usage = Usage {
        input_tokens: raw.count("promptTokenCount") + tool_input_tokens,
        output_tokens: answer.unwrap_or(0) + reasoning_tokens,
        cache_read_tokens: raw.count("cachedContentTokenCount"),
        reasoning_tokens,
        tool_input_tokens,
        input_audio_tokens: both("AUDIO"),
        input_image_tokens: both("IMAGE"),
        cache_read_audio_tokens: modality(raw, "cacheTokensDetails", "AUDIO"),
        cache_read_image_tokens: modality(raw, "cacheTokensDetails", "IMAGE"),
        output_audio_tokens: out("AUDIO"),
        output_image_tokens: out("IMAGE"),
        ..Usage::default()
    };
    usage.into()
}

/// The one shape.
pub(super) const SHAPE: Shape =
    Shape { name: "gemini.generate", read: |raw, _| read(raw), amount: no_amount, merge: streams::last_gemini };
