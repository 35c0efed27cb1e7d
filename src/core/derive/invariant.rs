//! What is about to be sent must be what the log yields.

use super::media::Blobs;
use super::text::write_js;
use super::{Deriver, EventSource, RequestOptions, messages};
use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Surrogates, Value};

fn broken(index: usize, what: &str) -> Error {
    Error::new(Kind::LogInvariant, format!("{what} {index} is not what the log yields")).with("index", index)
}

fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_js(value, &mut out);
    out
}

/// Finds the first item of two lists that is not the same.
fn first_difference(ours: &[Value], theirs: &[Value]) -> Option<usize> {
    let shared = ours.iter().zip(theirs).position(|(a, b)| canonical(a) != canonical(b));
    shared.or_else(|| (ours.len() != theirs.len()).then_some(ours.len().min(theirs.len())))
}

/// Compares outgoing messages (JSON text of an array) with those the log yields.
pub fn check_messages(log: &dyn EventSource, outbound: &str) -> Result<()> {
    let theirs = json::parse(outbound, Surrogates::Refuse)?;
    let theirs = theirs.as_array().ok_or_else(|| Error::new(Kind::InvalidArgument, "messages must be an array"))?;
    let ours = json::parse(&messages(log, None), Surrogates::Refuse)?;
    match first_difference(ours.as_array().unwrap_or_default(), theirs) {
        None => Ok(()),
        Some(index) => Err(broken(index, "message")),
    }
}

/// Compares an outgoing request (JSON text of a `DerivedRequest`) with the one the log yields for the same options.
pub fn check_request(log: &dyn EventSource, options: &RequestOptions, outbound: &str, blobs: &dyn Blobs) -> Result<()> {
    let theirs = json::parse(outbound, Surrogates::Refuse)?;
    let list = theirs.get("messages").and_then(Value::as_array);
    let list = list.ok_or_else(|| Error::new(Kind::InvalidArgument, "a request must have messages"))?;
    let ours = Deriver::new().request(log, options, blobs);
    let parsed = ours.messages.iter().map(|m| json::parse(m, Surrogates::Refuse));
    let parsed: Vec<Value> = parsed.collect::<Result<_>>()?;
    if let Some(index) = first_difference(&parsed, list) {
        return Err(broken(index, "message"));
    }
    let system = ours.system.map(|s| json::parse(&s, Surrogates::Refuse)).transpose()?;
    let same_system = system.as_ref().map(canonical) == theirs.get("system").map(canonical);
    let same_digest = theirs.get("digest").and_then(Value::as_str) == Some(ours.digest.as_str());
    let same_target = theirs.get("target").and_then(Value::as_str) == Some(options.target.name);
    if same_system && same_digest && same_target { Ok(()) } else { Err(broken(0, "what stands beside message")) }
}
