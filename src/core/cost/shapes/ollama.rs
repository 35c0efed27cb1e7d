//! Ollama's chat: counts of evaluated tokens; local models are known to be free.

use super::{Shape, no_amount};
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

fn read(raw: Json) -> Reading {
    if !raw.has_number("prompt_eval_count") && !raw.has_number("eval_count") {
        return Reading::MISSING;
    }
    let usage = Usage {
        input_tokens: raw.count("prompt_eval_count"),
        output_tokens: raw.count("eval_count"),
        cache_read_tokens: raw.count("prompt_eval_cached_count"),
        ..Usage::default()
    };
    usage.into()
}

/// The one shape.
pub(super) const SHAPE: Shape =
    Shape { name: "ollama.chat", read: |raw, _| read(raw), amount: no_amount, merge: streams::last_ollama };
