//! The plain form `{prompt_tokens, completion_tokens, cost}` with the cost in dollars.

use super::{Reported, Shape};
use crate::core::cost::arithmetic::pico_of_usd_number;
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

fn read(raw: Json) -> Reading {
    if !raw.has_number("prompt_tokens") && !raw.has_number("completion_tokens") {
        return Reading::MISSING;
    }
    let usage = Usage {
        input_tokens: raw.count("prompt_tokens"),
        output_tokens: raw.count("completion_tokens"),
        ..Usage::default()
    };
    usage.into()
}

fn charged(raw: Json) -> Option<Reported> {
    raw.get("cost")?.number().and_then(pico_of_usd_number).map(Reported::from)
}

/// The one shape.
pub(super) const SHAPE: Shape =
    Shape { name: "step.usage", read: |raw, _| read(raw), amount: charged, merge: streams::last_chat };
