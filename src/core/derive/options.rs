//! What a caller may ask of a request.

use super::ids::Pattern;
use super::media::MediaLimits;
use super::{TARGETS, Target};
use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Surrogates, Value};

/// The options of one derived request.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// The API it is for.
    pub target: &'static Target,
    /// Who will answer.
    pub provider: Option<String>,
    /// Which model will answer.
    pub model: Option<String>,
    /// What the system says.
    pub system: Option<String>,
    /// How many leading events count; all when absent.
    pub upto: Option<u64>,
    /// Whether the request may end with an assistant turn that the model goes on with.
    pub prefill: bool,
    /// Which ids the target takes.
    pub ids: Pattern,
    /// What media the target takes.
    pub media: MediaLimits,
    /// How many of the newest messages go in.
    pub max_messages: Option<usize>,
    /// Whether reasoning goes back at all.
    pub keep_reasoning: bool,
    /// Everything above as text, to know equal options again; without `upto`.
    pub(crate) key: String,
}

fn bad(path: &str, what: &str) -> Error {
    Error::new(Kind::InvalidArgument, format!("options.{path}: {what}")).with("path", path)
}

impl RequestOptions {
    /// Reads the JSON text of the contract's `RequestOptions`.
    pub fn parse(text: &str) -> Result<RequestOptions> {
        let value = json::parse(text, Surrogates::Replace)?;
        let name = text_of(&value, "target")?.ok_or_else(|| bad("target", "is required"))?;
        let target = Target::named(&name).ok_or_else(|| {
            let known: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
            bad("target", &format!("must be one of {}", known.join(", ")))
        })?;
        let ids = match value.get("toolCallId").and_then(|t| t.get("pattern")) {
            None | Some(Value::Null) => Pattern::parse(target.id_pattern)?,
            Some(pattern) => {
                Pattern::parse(pattern.as_str().ok_or_else(|| bad("toolCallId.pattern", "must be a text"))?)?
            }
        };
        let keep_reasoning = match text_of(&value, "reasoning")?.as_deref() {
            None | Some("keep") => true,
            Some("drop") => false,
            Some(_) => return Err(bad("reasoning", "must be \"keep\" or \"drop\"")),
        };
        let mut key = value.clone();
        if let Some(members) = key.as_object_mut() {
            members.remove("upto");
        }
        Ok(RequestOptions {
            target,
            provider: text_of(&value, "provider")?,
            model: text_of(&value, "model")?,
            system: text_of(&value, "system")?,
            upto: count_of(&value, "upto")?,
            prefill: flag_of(&value, "prefill")?,
            ids,
            media: target.media_limits().over(value.get("media"))?,
            max_messages: match count_of(&value, "maxMessages")? {
                Some(0) => return Err(bad("maxMessages", "must be at least 1")),
                count => count.map(|n| n as usize),
            },
            keep_reasoning,
            key: key.to_text(),
        })
    }
}

fn text_of(value: &Value, key: &str) -> Result<Option<String>> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(bad(key, "must be a text")),
    }
}

fn flag_of(value: &Value, key: &str) -> Result<bool> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| bad(key, "must be true or false")),
    }
}

/// Reads a whole number that is not negative.
pub(super) fn count_of(value: &Value, key: &str) -> Result<Option<u64>> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64().map(u64::try_from) {
            Some(Ok(count)) => Ok(Some(count)),
            _ => Err(bad(key, "must be a whole number, 0 or more")),
        },
    }
}
