//! A session record file of version 3: one JSON object of the record's fields, with its messages beside them.

use super::{Export, Import, Outgoing, chat_messages};
use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Object, Surrogates, Value};
use crate::core::record::Record;

/// The member that holds the messages.
const MESSAGES: &str = "messages";

/// Reads a record file: the record without its messages, and the events that the messages become.
pub fn read(text: &str) -> Result<Import> {
    let Value::Object(mut file) = json::parse(text, Surrogates::Replace)? else {
        return Err(Error::new(Kind::Corrupt, "a record file must be an object"));
    };
    let mut import = match file.remove(MESSAGES) {
        Some(Value::Array(messages)) if !messages.is_empty() => chat_messages::read(&messages),
        Some(other) => {
            // Kept as it is, and so is a list of none: the record writes back what no field knows.
            file.set(MESSAGES, other);
            Import::default()
        }
        None => Import::default(),
    };
    let record = file.to_text();
    Record::read(&record)?;
    for (ours, theirs) in [("id", "id"), ("cwd", "working_directory"), ("createdAt", "created_at")] {
        if let Some(found) = file.get(theirs).and_then(Value::as_str) {
            import.head.set(ours, found);
        }
    }
    import.record = Some(record);
    Ok(import)
}

/// Writes a record file from a stored record and a log.
pub fn write(session: &Outgoing<'_>) -> Result<Export> {
    let record = Record::read(session.record)?;
    let events = (0..session.log.len()).filter_map(|seq| session.log.event(seq));
    let (messages, lost) = chat_messages::write(events);
    let mut file: Object = record.to_object(concat!("sessionlog ", env!("CARGO_PKG_VERSION")));
    if !messages.is_empty() {
        file.set(MESSAGES, messages);
    }
    Ok(Export { text: file.to_text(), lost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_file_goes_in_and_out_with_nothing_lost() {
        let text = r#"{"metadata_version":3,"written_by":"d 1.0","id":"s1","mode":"chat","model_name":"m","working_directory":"/w","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-02T00:00:00Z","title":"T","verdicts":[{"a":1.50}],"thinking":{"odd":true},"x_new":[1e2],"messages":[{"role":"user","content":"hi","id":7},{"role":"assistant","content":"hello"}]}"#;
        let import = read(text).unwrap();
        assert_eq!((import.events.len(), import.lost.len()), (2, 0));
        let log = super::super::testing::log(&import.events);
        let record = import.record.unwrap();
        let session = Outgoing { id: "s1", created_at: 0, cwd: None, title: None, record: &record, log: &log };
        let out = json::parse(&write(&session).unwrap().text, Surrogates::Refuse).unwrap();
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
