//! Cohere's chat, version 2: what is billed, not what was tokenised.

use super::{Shape, no_amount};
use crate::core::cost::doc::Json;
use crate::core::cost::streams;
use crate::core::cost::usage::{Reading, Usage};

fn read(raw: Json) -> Reading {
    let Some(billed) =
        raw.get("billed_units").filter(|b| b.has_number("input_tokens") || b.has_number("output_tokens"))
    else {
        return Reading::MISSING;
    };
    let usage = Usage {
        input_tokens: billed.count("input_tokens"),
        output_tokens: billed.count("output_tokens"),
        ..Usage::default()
    };
    usage.into()
}

/// The one shape.
pub(super) const SHAPE: Shape =
    Shape { name: "cohere.v2", read: |raw, _| read(raw), amount: no_amount, merge: streams::last_cohere };
