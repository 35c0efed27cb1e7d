//! Foreign formats for the shell.

use wasm_bindgen::prelude::*;

use super::error::throw;
use crate::core::error::{Error, Kind, Result};
use crate::core::interop::{Import, chat_messages, samagotchi};
use crate::core::json::{self, Object, Surrogates, Value};

fn import_text(record: Option<String>, import: Import) -> String {
    let events =
        import.events.into_iter().map(|e| Object::from([("type", Value::from(e.kind)), ("data", e.data.into())]));
    let events: Vec<Value> = events.map(Into::into).collect();
    let lost: Vec<Value> = import.lost.into_iter().map(Into::into).collect();
    let record = record.map(Value::from);
    Object::from([("record", record.into()), ("events", events.into()), ("lost", lost.into())]).to_text()
}

/// Reads a foreign session: JSON text `{record, events, lost}`; `record` is JSON text or null.
#[wasm_bindgen]
pub fn raw_import(format: &str, text: &str) -> std::result::Result<String, JsValue> {
    let read = || -> Result<String> {
        match format {
            "samagotchi" => samagotchi::read(text).map(|(record, import)| import_text(Some(record), import)),
            "openai-messages" => {
                let list = json::parse(text, Surrogates::Replace)?;
                let list =
                    list.as_array().ok_or_else(|| Error::new(Kind::Corrupt, "a list of messages is expected"))?;
                Ok(import_text(None, chat_messages::read(list)))
            }
            _ => Err(Error::new(Kind::InvalidArgument, "unknown format")),
        }
    };
    read().map_err(throw)
}
