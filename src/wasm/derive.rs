//! Derivation on its way to JavaScript: texts that `npm/src/derive.ts` takes apart. The engine owns log and state.

use crate::core::derive::{Deriver, EventSource, NoBlobs, RequestOptions, check_messages, check_request};
use crate::core::error::Result;

/// Returns `{"keep":n,"messages":[…]}`, or an empty text when nothing changed.
pub(crate) fn update_text(log: &dyn EventSource, state: &mut Deriver) -> String {
    state.update_text(log)
}

/// Returns how the request for these options changed since the last call.
pub(crate) fn request_text(log: &dyn EventSource, state: &mut Deriver, options: &str) -> Result<String> {
    let options = RequestOptions::parse(options)?;
    Ok(state.request(log, &options, &NoBlobs).to_text(options.target.name))
}

/// Compares what is about to be sent with what the log yields: a request when there are options, else messages.
pub(crate) fn check(log: &dyn EventSource, outbound: &str, options: Option<&str>) -> Result<()> {
    match options {
        Some(options) => check_request(log, &RequestOptions::parse(options)?, outbound, &NoBlobs),
        None => check_messages(log, outbound),
    }
}
