//! Other programs' session formats, in and out, each with a report of what was lost. One file per format.

pub mod chat_messages;
pub mod claude_code;
pub mod codex;
mod parts;
pub mod pi;
pub mod samagotchi;
mod spoken;
pub mod ui_messages;

use super::derive::EventSource;
use super::error::{Error, Kind, Result};
use super::json::{self, Object, Surrogates, Value};
use super::time::Millis;

/// An event on its way in: its type and payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// Event type.
    pub kind: &'static str,
    /// Payload. The `uptoSeq` of a compaction counts from the first event of the import.
    pub data: Object,
}

/// What an import yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// What the file says about itself: `id`, `cwd`, `createdAt` (text), as far as it does.
    pub head: Object,
    /// The stored record, as JSON text, when the format has one.
    pub record: Option<String>,
    /// The events, in order.
    pub events: Vec<Incoming>,
    /// What could not be taken over, one line each.
    pub lost: Vec<String>,
}

impl Import {
    fn push(&mut self, kind: &'static str, data: Object) {
        self.events.push(Incoming { kind, data });
    }

    /// Adds a summary that stands for the first `until` events.
    fn compacted(&mut self, summary: &str, until: usize) {
        if summary.trim().is_empty() || until == 0 {
            return;
        }
        let upto = i64::try_from(until - 1).unwrap_or(i64::MAX);
        self.push("session/compacted", Object::from([("summary", summary.into()), ("uptoSeq", upto.into())]));
    }

    fn titled(&mut self, title: &str) {
        let title = title.trim();
        if !title.is_empty() {
            self.push("session/titled", Object::from([("title", Value::from(title))]));
        }
    }
}

/// A session on its way out.
pub struct Outgoing<'a> {
    /// Its id.
    pub id: &'a str,
    /// When it was created.
    pub created_at: Millis,
    /// Its working directory.
    pub cwd: Option<&'a str>,
    /// Its latest title.
    pub title: Option<&'a str>,
    /// Its stored record, as JSON text.
    pub record: &'a str,
    /// Its log.
    pub log: &'a dyn EventSource,
}

/// What an export yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Export {
    /// The file.
    pub text: String,
    /// What has no place in the format, one line each.
    pub lost: Vec<String>,
}

/// A foreign format.
pub struct Format {
    /// Its name in the options of import and export.
    pub name: &'static str,
    /// Reads a file.
    pub read: fn(&str) -> Result<Import>,
    /// Writes a file.
    pub write: fn(&Outgoing<'_>) -> Result<Export>,
}

/// All of them.
pub const FORMATS: [Format; 6] = [
    Format { name: "claude-code", read: claude_code::read, write: claude_code::write },
    Format { name: "codex", read: codex::read, write: codex::write },
    Format { name: "pi", read: pi::read, write: pi::write },
    Format { name: "openai-messages", read: chat_messages::read_file, write: chat_messages::write_file },
    Format { name: "ai-sdk-ui", read: ui_messages::read, write: ui_messages::write },
    Format { name: "samagotchi", read: samagotchi::read, write: samagotchi::write },
];

impl Format {
    /// Finds a format.
    pub fn named(name: &str) -> Result<&'static Format> {
        FORMATS
            .iter()
            .find(|format| format.name == name)
            .ok_or_else(|| Error::new(Kind::InvalidArgument, "unknown format"))
    }
}

/// The objects of a file of JSON lines, with their line numbers; what is none is reported.
fn lines(text: &str, lost: &mut Vec<String>) -> Vec<(usize, Value)> {
    let mut out = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() {
            continue;
        }
        match json::parse(line, Surrogates::Replace) {
            Ok(value) if value.as_object().is_some() => out.push((number, value)),
            _ => lost.push(format!("line {number} is not a JSON object ({} bytes)", line.len())),
        }
    }
    out
}

/// Which entries of a tree stand on the way from the last that counts back to its root. Parents stand before their children.
fn branch<'v>(entries: &'v [(usize, Value)], place: impl Fn(&'v Value) -> Option<(&'v str, &'v str)>) -> Vec<bool> {
    let mut wanted = None;
    let on_branch = entries.iter().rev().map(|(_, entry)| {
        let Some((id, parent)) = place(entry) else { return false };
        let hit = wanted.is_none_or(|wanted| wanted == id);
        if hit {
            wanted = Some(parent);
        }
        hit
    });
    let mut on_branch: Vec<bool> = on_branch.collect();
    on_branch.reverse();
    on_branch
}

/// The beginning of a word from outside, for a report.
fn short(word: &str) -> String {
    word.chars().take(40).collect()
}

/// A list in a file: either the whole file, or its member `messages`.
fn list(text: &str) -> Result<Vec<Value>> {
    match json::parse(text, Surrogates::Replace)? {
        Value::Array(list) => Ok(list),
        Value::Object(mut file) => match file.remove("messages") {
            Some(Value::Array(list)) => Ok(list),
            _ => Err(Error::new(Kind::Corrupt, "a list of messages is expected")),
        },
        _ => Err(Error::new(Kind::Corrupt, "a list of messages is expected")),
    }
}

/// Refuses a file of which nothing could be read: a wrong format must not look like an empty session.
fn something(import: Import) -> Result<Import> {
    if import.events.is_empty() && !import.lost.is_empty() {
        let first = import.lost.first().cloned().unwrap_or_default();
        return Err(Error::new(Kind::Corrupt, format!("nothing in the file could be read: {first}")));
    }
    Ok(import)
}

/// The text at a path, or "".
fn text_at<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    value.at(path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod testing {
    use super::{EventSource, Incoming};
    use crate::core::event::EventView;
    use crate::core::id::EventId;

    /// Events as a log would hold them.
    pub(super) struct Log(Vec<(&'static str, String)>);

    impl EventSource for Log {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn event(&self, seq: u64) -> Option<EventView<'_>> {
            let (kind, data) = self.0.get(seq as usize)?;
            Some(EventView { seq, id: EventId(seq + 1), at: 1_000, kind, data, note: None })
        }
    }

    pub(super) fn log(events: &[Incoming]) -> Log {
        Log(events.iter().map(|event| (event.kind, event.data.to_text())).collect())
    }
}

#[cfg(test)]
mod tests;
