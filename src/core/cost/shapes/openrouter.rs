//! OpenRouter: OpenAI's chat shape and the amount that was charged.

use super::{Reported, Shape, openai_chat};
use crate::core::cost::arithmetic::pico_of_usd_number;
use crate::core::cost::doc::Json;
use crate::core::cost::flags::Flags;

/// With the caller's own key the upstream bill comes on top; otherwise the upstream figure is information only.
fn charged(raw: Json) -> Option<Reported> {
    let mut reported = Reported::from(raw.get("cost")?.number().and_then(pico_of_usd_number)?);
    if raw.get("is_byok").is_some_and(Json::is_true) {
        let upstream = raw.get("cost_details").and_then(|d| d.get("upstream_inference_cost"));
        match upstream.and_then(Json::number).and_then(pico_of_usd_number) {
            Some(amount) => reported.pico += amount,
            None => reported.flags |= Flags::UPSTREAM_UNKNOWN,
        }
    }
    Some(reported)
}

/// The one shape.
pub(super) const SHAPE: Shape = Shape { name: "openrouter.chat", amount: charged, ..openai_chat::OPENAI };
