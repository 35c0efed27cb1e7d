//! OpenAI's responses.

use super::openai_like::{self, RESPONSES};
use super::{Shape, no_amount};
use crate::core::cost::streams;

/// The one shape.
pub(super) const SHAPE: Shape = Shape {
    name: "openai.responses",
    read: |raw, context| openai_like::read(raw, &RESPONSES, context),
    amount: no_amount,
    merge: streams::last_response,
};
