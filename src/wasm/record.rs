//! Session records for the shell: JSON text in, JSON text out.

use wasm_bindgen::prelude::*;

use super::error::throw;
use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Object, Surrogates, Value};
use crate::core::record::{self, Record};

const WRITTEN_BY: &str = concat!("sessionlog ", env!("CARGO_PKG_VERSION"));

fn object(text: &str) -> Result<Object> {
    match json::parse(text, Surrogates::Replace)? {
        Value::Object(object) => Ok(object),
        _ => Err(Error::new(Kind::InvalidArgument, "a record must be an object")),
    }
}

/// Makes a fresh record from the given fields and returns it as it is stored.
#[wasm_bindgen]
pub fn raw_record_fresh(given: &str) -> std::result::Result<String, JsValue> {
    let fresh = |given| Ok(Record::fresh(object(given)?)?.to_object(WRITTEN_BY).to_text());
    fresh(given).map_err(throw)
}

/// Returns what a stored record reads as: every row of the table, then what no row knows.
#[wasm_bindgen]
pub fn raw_record_reading(stored: &str) -> std::result::Result<String, JsValue> {
    Record::read(stored).map(|record| record.reading().to_text()).map_err(throw)
}

/// Changes fields and returns the record as it is stored.
#[wasm_bindgen]
pub fn raw_record_set(stored: &str, change: &str) -> std::result::Result<String, JsValue> {
    let set = || {
        let mut record = Record::read(stored)?;
        record.set(object(change)?)?;
        Ok(record.to_object(WRITTEN_BY).to_text())
    };
    set().map_err(throw)
}

/// Returns the fields that a next link or a fork (or, fewer, a delegate child) starts with.
#[wasm_bindgen]
pub fn raw_record_setup(stored: &str, delegate: bool) -> std::result::Result<String, JsValue> {
    Record::read(stored).map(|record| record.setup(delegate).to_text()).map_err(throw)
}

/// Returns the title to show.
#[wasm_bindgen]
pub fn raw_display_title(title: Option<String>, preview: &str) -> String {
    record::display_title(title.as_deref(), preview)
}
