//! OpenAI's chat completions and the APIs that copy their usage object.

use super::openai_like::{self, CHAT};
use super::{Shape, no_amount};
use crate::core::cost::streams;

/// OpenAI itself and everything compatible.
pub(super) const OPENAI: Shape = Shape {
    name: "openai.chat",
    read: |raw, context| openai_like::read(raw, &CHAT, context),
    amount: no_amount,
    merge: streams::last_chat,
};
/// Groq.
pub(super) const GROQ: Shape = Shape { name: "groq.chat", ..OPENAI };
/// Mistral.
pub(super) const MISTRAL: Shape = Shape { name: "mistral.chat", ..OPENAI };
/// DeepSeek.
pub(super) const DEEPSEEK: Shape = Shape { name: "deepseek.chat", ..OPENAI };
