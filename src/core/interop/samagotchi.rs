//! A session record file of version 3: one JSON object of the record's fields, with its messages beside them.

use super::{Import, chat_messages};
use crate::core::error::{Error, Kind, Result};
use crate::core::event::EventView;
use crate::core::json::{self, Object, Surrogates, Value};
use crate::core::record::Record;

/// The member that holds the messages.
const MESSAGES: &str = "messages";

/// Reads a record file: the record's text without its messages, and the events that the messages become.
pub fn read(text: &str) -> Result<(String, Import)> {
    let Value::Object(mut file) = json::parse(text, Surrogates::Replace)? else {
        return Err(Error::new(Kind::Corrupt, "a record file must be an object"));
    };
    let import = match file.remove(MESSAGES) {
        Some(Value::Array(messages)) => chat_messages::read(&messages),
        Some(other) => {
            // Kept as it is: the record writes back what no field knows.
            file.set(MESSAGES, other);
            Import::default()
        }
        None => Import::default(),
    };
    let record = file.to_text();
    Record::read(&record)?;
    Ok((record, import))
}

/// Writes a record file from a stored record and a log.
pub fn write<'a>(record: &str, written_by: &str, events: impl Iterator<Item = EventView<'a>>) -> Result<String> {
    let record = Record::read(record)?;
    let (messages, _) = chat_messages::write(events);
    let mut file: Object = record.to_object(written_by);
    if !messages.is_empty() {
        file.set(MESSAGES, messages);
    }
    Ok(file.to_text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::EventId;

    #[test]
    fn a_record_file_goes_in_and_out_with_nothing_lost() {
        let text = r#"{"metadata_version":3,"written_by":"d 1.0","id":"s1","mode":"chat","model_name":"m","working_directory":"/w","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-02T00:00:00Z","title":"T","verdicts":[{"a":1.50}],"thinking":{"odd":true},"x_new":[1e2],"messages":[{"role":"user","content":"hi","id":7},{"role":"assistant","content":"hello"}]}"#;
        let (record, import) = read(text).unwrap();
        assert_eq!((import.events.len(), import.lost.len()), (2, 0));
        let data: Vec<String> = import.events.iter().map(|e| e.data.to_text()).collect();
        let views = import.events.iter().zip(&data).enumerate().map(|(seq, (e, data))| EventView {
            seq: seq as u64,
            id: EventId(0),
            at: 0,
            kind: e.kind,
            data,
            note: None,
        });
        let out = json::parse(&write(&record, "sessionlog", views).unwrap(), Surrogates::Refuse).unwrap();
        let file = json::parse(text, Surrogates::Refuse).unwrap();
        for (key, value) in file.as_object().unwrap().iter().filter(|(key, _)| *key != "written_by") {
            assert_eq!(out.get(key), Some(value), "{key}");
        }
    }

    #[test]
    fn a_file_that_lacks_what_is_required_is_refused() {
        assert_eq!(read("{\"id\":\"s1\"}").unwrap_err().code(), "corrupt");
        assert_eq!(read("[]").unwrap_err().code(), "corrupt");
        assert_eq!(read("{").unwrap_err().code(), "not_json");
    }
}
