//! Foreign formats for the shell.

use wasm_bindgen::prelude::*;

use super::error::throw;
use crate::core::error::Result;
use crate::core::interop::{Export, Format, Import};
use crate::core::json::{Object, Value};

/// Reads a foreign session: JSON text `{head, record, events, lost}`; `record` is JSON text or null.
#[wasm_bindgen]
pub fn raw_import(format: &str, text: &str) -> std::result::Result<String, JsValue> {
    let read = || -> Result<Import> { (Format::named(format)?.read)(text) };
    read().map(import_text).map_err(throw)
}

fn import_text(import: Import) -> String {
    let events =
        import.events.into_iter().map(|e| Object::from([("type", Value::from(e.kind)), ("data", e.data.into())]));
    let events: Vec<Value> = events.map(Into::into).collect();
    let record = import.record.map(Value::from);
    Object::from([
        ("head", Value::from(import.head)),
        ("record", record.into()),
        ("events", events.into()),
        ("lost", lost_list(import.lost)),
    ])
    .to_text()
}

/// JSON text `{text, lost}`.
pub(super) fn export_text(export: Export) -> String {
    Object::from([("text", Value::from(export.text)), ("lost", lost_list(export.lost))]).to_text()
}

fn lost_list(lost: Vec<String>) -> Value {
    lost.into_iter().map(Value::from).collect::<Vec<_>>().into()
}
