//! Derivation on its way to JavaScript: texts that `npm/src/derive.ts` takes apart. The engine owns log and state.

use sha2::{Digest, Sha256};
use wasm_bindgen::prelude::*;

use super::error::throw;
use crate::core::derive::{
    Deriver, EventSource, RequestOptions, Shelf, check_messages, check_request, summary_request,
};
use crate::core::error::Result;

/// Returns how many messages stay, then the events that make those that follow; nothing when nothing changed.
pub(crate) fn update(log: &dyn EventSource, state: &mut Deriver) -> Option<Vec<f64>> {
    let (keep, fresh, changed) = state.advance(log);
    let fresh = fresh.into_iter().map(|seq| seq as f64);
    changed.then(|| std::iter::once(keep as f64).chain(fresh).collect())
}

/// Returns how the request for these options changed since the last call.
pub(crate) fn request_text(log: &dyn EventSource, state: &mut Deriver, options: &str, blobs: &Shelf) -> Result<String> {
    let options = RequestOptions::parse(options)?;
    Ok(state.request(log, &options, blobs).to_text(options.target.name))
}

/// Compares what is about to be sent with what the log yields: a request when there are options, else messages.
pub(crate) fn check(log: &dyn EventSource, outbound: &str, options: Option<&str>, blobs: &Shelf) -> Result<()> {
    match options {
        Some(options) => check_request(log, &RequestOptions::parse(options)?, outbound, blobs),
        None => check_messages(log, outbound),
    }
}

/// Returns the request that asks a model to sum a conversation up, as `derive_request` does.
#[wasm_bindgen]
pub fn raw_summary_request(conversation: &str, options: &str) -> std::result::Result<String, JsValue> {
    let options = RequestOptions::parse(options).map_err(throw)?;
    Ok(summary_request(conversation, &options).to_text(options.target.name))
}

/// Returns the name of a blob: the SHA-256 of its bytes.
#[wasm_bindgen]
pub fn raw_blob_name(bytes: &[u8]) -> String {
    crate::core::log::hex(&Sha256::digest(bytes))
}

/// Says whether base64 text begins as files of this type do.
#[wasm_bindgen]
pub fn raw_is_media(media_type: &str, data: &str) -> bool {
    crate::core::scrub::is_media(media_type, data)
}
