//! What the shapes around OpenAI's have in common: totals with details inside, and reasoning that is inside or on top.

use crate::core::cost::doc::Json;
use crate::core::cost::flags::Flags;
use crate::core::cost::usage::{Reading, Usage};

use super::Context;

/// Where one family of shapes keeps its counts.
pub(super) struct Names {
    pub input: &'static str,
    pub output: &'static str,
    /// Several spellings are around.
    pub input_details: &'static [&'static str],
    pub output_details: &'static [&'static str],
    /// xAI's chat puts reasoning on top when nothing says otherwise.
    pub reasoning_on_top: bool,
}

/// Chat completions.
pub(super) const CHAT: Names = Names {
    input: "prompt_tokens",
    output: "completion_tokens",
    input_details: &["prompt_tokens_details", "prompt_token_details"],
    output_details: &["completion_tokens_details", "completion_token_details"],
    reasoning_on_top: false,
};

/// Responses.
pub(super) const RESPONSES: Names = Names {
    input: "input_tokens",
    output: "output_tokens",
    input_details: &["input_tokens_details", "input_token_details"],
    output_details: &["output_tokens_details", "output_token_details"],
    reasoning_on_top: false,
};

fn detail(raw: Json, objects: &[&str], key: &str) -> u64 {
    objects.iter().filter_map(|o| raw.get(o)).map(|o| o.count(key)).find(|&n| n > 0).unwrap_or(0)
}

/// Cached tokens: the first place that says something positive.
fn cached(raw: Json, names: &Names) -> u64 {
    let inside = detail(raw, names.input_details, "cached_tokens");
    let top = || {
        ["num_cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"]
            .iter()
            .map(|key| raw.count(key))
            .find(|&n| n > 0)
    };
    if inside > 0 { inside } else { top().unwrap_or(0) }
}

fn cached_detail(raw: Json, names: &Names, key: &str) -> u64 {
    let details = names.input_details.iter().find_map(|o| raw.get(o)?.get("cached_tokens_details"));
    details.map_or(0, |d| d.count(key))
}

/// Reads one raw usage object.
pub(super) fn read(raw: Json, names: &Names, context: &Context) -> Reading {
    if !raw.has_number(names.input) && !raw.has_number(names.output) {
        return Reading::MISSING;
    }
    let mut input = raw.count(names.input);
    let mut output = raw.count(names.output);
    let read = cached(raw, names);
    let written = detail(raw, names.input_details, "cache_write_tokens");
    let mut flags = Flags::NONE;
    if read + written > input {
        input += read + written;
        flags |= Flags::CACHE_ADDITIVE;
    }
    let total = raw.has_number("total_tokens").then(|| raw.count("total_tokens"));
    let said = names.output_details.iter().find_map(|o| raw.get(o).filter(|d| d.has_number("reasoning_tokens")));
    let mut reasoning = said.unwrap_or(raw).count("reasoning_tokens");
    if said.is_none() && !raw.has_number("reasoning_tokens") && context.is_gemini() {
        // Gemini behind this shape hides its thoughts in the total.
        reasoning = total.unwrap_or(0).saturating_sub(input + output);
        output += reasoning;
    } else if is_on_top(reasoning, input, output, total, names.reasoning_on_top) {
        output += reasoning;
    }
    let usage = Usage {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: read,
        cache_write_tokens: written,
        reasoning_tokens: reasoning,
        input_audio_tokens: detail(raw, names.input_details, "audio_tokens"),
        input_image_tokens: detail(raw, names.input_details, "image_tokens"),
        cache_read_audio_tokens: cached_detail(raw, names, "audio_tokens"),
        cache_read_image_tokens: cached_detail(raw, names, "image_tokens"),
        output_audio_tokens: detail(raw, names.output_details, "audio_tokens"),
        output_image_tokens: detail(raw, names.output_details, "image_tokens"),
        ..Usage::default()
    };
    let mut reading = Reading::from(usage);
    reading.flags |= flags;
    reading
}

/// Says whether reasoning comes on top of the output: the total decides, else the shape; what is more than the output
/// cannot be inside it.
pub(super) fn is_on_top(reasoning: u64, input: u64, output: u64, total: Option<u64>, by_default: bool) -> bool {
    match total {
        _ if reasoning > output => true,
        Some(total) if total == input + output + reasoning => true,
        Some(total) if total == input + output => false,
        _ => by_default,
    }
}
