//! OpenAI's realtime sessions: as responses, with details by modality also of what was cached.

use super::{Shape, openai_responses};

/// The one shape.
pub(super) const SHAPE: Shape = Shape { name: "openai.realtime", ..openai_responses::SHAPE };
