//! The raw usage shapes: one file each, one line each in [`SHAPES`].

mod ai_sdk;
mod anthropic;
mod bedrock;
mod cohere;
mod gemini;
mod langchain;
mod ollama;
mod openai_chat;
mod openai_like;
mod openai_realtime;
mod openai_responses;
mod openrouter;
mod perplexity;
mod step_usage;
mod xai;

use super::doc::Json;
use super::flags::Flags;
use super::usage::Reading;
use crate::core::json::Value;

/// How one API reports usage.
pub struct Shape {
    /// Its name, as records give it.
    pub name: &'static str,
    /// Reads the counts out of one raw object.
    pub read: fn(Json, &Context) -> Reading,
    /// Reads the amount that the provider says it charged.
    pub amount: fn(Json) -> Option<Reported>,
    /// Makes one raw object out of the payloads of a stream.
    pub merge: fn(&[Value]) -> Option<Value>,
}

/// Every shape.
pub const SHAPES: &[Shape] = &[
    openai_chat::OPENAI,
    openai_responses::SHAPE,
    openai_realtime::SHAPE,
    anthropic::SHAPE,
    gemini::SHAPE,
    bedrock::SHAPE,
    openai_chat::MISTRAL,
    openai_chat::GROQ,
    openai_chat::DEEPSEEK,
    xai::CHAT_SHAPE,
    xai::RESPONSES_SHAPE,
    openrouter::SHAPE,
    perplexity::SHAPE,
    cohere::SHAPE,
    ollama::SHAPE,
    ai_sdk::V4,
    ai_sdk::V5,
    ai_sdk::V6,
    langchain::SHAPE,
    step_usage::SHAPE,
];

/// Finds a shape by name; `.stream` behind it is passed over.
pub fn shape(name: &str) -> Option<&'static Shape> {
    let name = name.strip_suffix(".stream").unwrap_or(name);
    // Version 7 kept what version 6 reports.
    let name = if name == "ai-sdk.v7" { "ai-sdk.v6" } else { name };
    SHAPES.iter().find(|s| s.name == name)
}

/// What a shape may need to know beside the raw object.
#[derive(Clone, Copy, Default)]
pub struct Context<'a> {
    /// Who served the request, as the record says it.
    pub provider: Option<&'a str>,
    /// Which model.
    pub model: Option<&'a str>,
    /// The AI SDK's metadata of the provider.
    pub metadata: Option<Json<'a>>,
}

impl Context<'_> {
    fn is_gemini(&self) -> bool {
        let google = |p: &str| ["google", "gemini", "gcp.", "vertex"].iter().any(|g| starts_with_ignoring_case(p, g));
        let gemini = |m: &str| starts_with_ignoring_case(m.rsplit('/').next().unwrap_or_default(), "gemini");
        self.model.map_or_else(|| self.provider.is_some_and(google), gemini)
    }

    fn keeps_cache_beside(&self) -> bool {
        self.provider.is_some_and(|p| {
            let p = p.to_ascii_lowercase();
            p.contains("anthropic") || p.contains("bedrock") || p == "claude" || p == "aws"
        })
    }
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// An amount that a provider reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reported {
    /// Picodollars.
    pub pico: i128,
    /// What to know about it.
    pub flags: Flags,
}

impl From<i128> for Reported {
    fn from(pico: i128) -> Self {
        Reported { pico, flags: Flags::NONE }
    }
}

/// For shapes that never carry an amount.
fn no_amount(_: Json) -> Option<Reported> {
    None
}
