//! xAI: OpenAI's shapes, reasoning on top in chat, and the amount that was charged in ticks of 1e-10 dollars.

use super::openai_like::{self, CHAT, Names};
use super::{Reported, Shape, openai_responses};
use crate::core::cost::arithmetic::pico_of_ticks;
use crate::core::cost::doc::Json;
use crate::core::cost::streams;

const NAMES: Names = Names { reasoning_on_top: true, ..CHAT };

fn ticks(raw: Json) -> Option<Reported> {
    raw.get("cost_in_usd_ticks")?.number().and_then(pico_of_ticks).map(Reported::from)
}

/// Chat completions.
pub(super) const CHAT_SHAPE: Shape = Shape {
    name: "xai.chat",
    read: |raw, context| openai_like::read(raw, &NAMES, context),
    amount: ticks,
    merge: streams::last_chat,
};
/// Responses.
pub(super) const RESPONSES_SHAPE: Shape = Shape { name: "xai.responses", amount: ticks, ..openai_responses::SHAPE };
