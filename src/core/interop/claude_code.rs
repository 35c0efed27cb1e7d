//! Claude Code's session files: JSON lines that form a tree by `parentUuid`; the conversation is the branch of its last entry.

use super::spoken::{Spoken, conversation, uuid};
use super::{Export, Import, Outgoing, branch, lines, parts, short, something, text_at};
use crate::core::error::Result;
use crate::core::json::{Object, Value};
use crate::core::time::iso;

/// Reads a session file.
pub fn read(text: &str) -> Result<Import> {
    let mut import = Import::default();
    let entries = lines(text, &mut import.lost);
    let on_branch = branch(&entries, place);
    let mut reader = Reader { import, steps: 0, answer: None };
    for ((number, entry), on_branch) in entries.iter().zip(on_branch) {
        let kind = text_at(entry, &["type"]);
        match kind {
            "user" | "assistant" if is_set(entry, "isSidechain") => reader.lose(*number, "belongs to a sub-agent"),
            "user" | "assistant" if !on_branch => reader.lose(*number, "stands on a branch that was left"),
            "user" => reader.user(*number, entry),
            "assistant" => reader.assistant(*number, entry),
            "summary" => {
                reader.end_answer();
                reader.import.titled(text_at(entry, &["summary"]));
            }
            // It only links the branch before a compaction with the one after it.
            "system" if on_branch && text_at(entry, &["subtype"]) == "compact_boundary" => {}
            _ => reader.lose(*number, &format!("is of type {:?}", short(kind))),
        }
    }
    reader.end_answer();
    something(reader.import)
}

fn is_set(entry: &Value, key: &str) -> bool {
    entry.get(key).and_then(Value::as_bool) == Some(true)
}

/// An entry's id and its parent's. A compaction starts a new root and names the branch it came from.
fn place(entry: &Value) -> Option<(&str, &str)> {
    if is_set(entry, "isSidechain") || !matches!(text_at(entry, &["type"]), "user" | "assistant" | "system") {
        return None;
    }
    let parent = match text_at(entry, &["parentUuid"]) {
        "" => text_at(entry, &["logicalParentUuid"]),
        parent => parent,
    };
    Some((text_at(entry, &["uuid"]), parent))
}

struct Reader {
    import: Import,
    steps: usize,
    /// The answer that is being put together: its lines follow each other, one block each.
    answer: Option<Answer>,
}

struct Answer {
    id: String,
    model: String,
    stop: String,
    parts: Vec<Value>,
    usage: Option<Value>,
}

impl Reader {
    fn lose(&mut self, number: usize, why: &str) {
        self.import.lost.push(format!("line {number} {why}"));
    }

    fn about(&mut self, entry: &Value) {
        for (ours, theirs) in [("id", "sessionId"), ("cwd", "cwd"), ("createdAt", "timestamp")] {
            let found = text_at(entry, &[theirs]);
            if !found.is_empty() && self.import.head.get(ours).is_none() {
                self.import.head.set(ours, found);
            }
        }
    }

    fn user(&mut self, number: usize, entry: &Value) {
        self.about(entry);
        self.end_answer();
        let content = entry.at(&["message", "content"]);
        if is_set(entry, "isCompactSummary") {
            let until = self.import.events.len();
            return self.import.compacted(&parts::plain(content), until);
        }
        let mut said = Vec::new();
        match content {
            Some(Value::Array(blocks)) => {
                for block in blocks {
                    match text_at(block, &["type"]) {
                        "tool_result" => self.result(number, block),
                        _ => said.extend(self.part(number, block)),
                    }
                }
            }
            other => said.push(parts::text(&parts::plain(other))),
        }
        if said.is_empty() {
            return;
        }
        if is_set(entry, "isMeta") {
            let text = parts::plain(Some(&Value::Array(said)));
            return self.import.push("context/injected", Object::from([("text", Value::from(text))]));
        }
        self.import.push("user/message", parts::user(said));
    }

    fn result(&mut self, number: usize, block: &Value) {
        let content = match block.get("content") {
            Some(Value::Array(blocks)) => blocks.iter().filter_map(|block| self.part(number, block)).collect(),
            Some(Value::String(text)) => vec![parts::text(text)],
            _ => Vec::new(),
        };
        let data = parts::result(text_at(block, &["tool_use_id"]), content, is_set(block, "is_error"));
        self.import.push("tool/result", data);
    }

    fn part(&mut self, number: usize, block: &Value) -> Option<Value> {
        let source = |key: &str| text_at(block, &["source", key]);
        match (text_at(block, &["type"]), source("type")) {
            ("text", _) => Some(parts::text(text_at(block, &["text"]))),
            ("image" | "document", "base64") => Some(parts::media(source("media_type"), source("data"))),
            ("image", "url") => Some(parts::media_at("image/*", source("url"))),
            ("document", "url") => Some(parts::media_at("application/pdf", source("url"))),
            (kind, _) => {
                self.lose(number, &format!("holds a block of type {:?}", short(kind)));
                None
            }
        }
    }

    fn assistant(&mut self, number: usize, entry: &Value) {
        self.about(entry);
        let of = |key: &str| text_at(entry, &["message", key]);
        if self.answer.as_ref().is_some_and(|answer| answer.id.is_empty() || answer.id != of("id")) {
            self.end_answer();
        }
        let (id, model) = (of("id").to_owned(), of("model").to_owned());
        let mut answer = self.answer.take().unwrap_or_else(|| Answer {
            id,
            model,
            stop: String::new(),
            parts: Vec::new(),
            usage: None,
        });
        match entry.at(&["message", "content"]) {
            Some(Value::Array(blocks)) => {
                for block in blocks {
                    answer.parts.extend(self.said(number, block));
                }
            }
            other => answer.parts.push(parts::text(&parts::plain(other))),
        }
        if !of("stop_reason").is_empty() {
            answer.stop = of("stop_reason").to_owned();
        }
        if let Some(usage) = entry.at(&["message", "usage"]).filter(|usage| usage.as_object().is_some()) {
            answer.usage = Some(usage.clone());
        }
        self.answer = Some(answer);
    }

    fn said(&mut self, number: usize, block: &Value) -> Option<Value> {
        let of = |key: &str| text_at(block, &[key]);
        match of("type") {
            "thinking" => Some(parts::reasoning(of("thinking"), &[("signature", of("signature"))])),
            "redacted_thinking" => Some(parts::reasoning("", &[("redacted", of("data"))])),
            "tool_use" => Some(parts::call(of("id"), of("name"), block.get("input"))),
            _ => self.part(number, block),
        }
    }

    fn end_answer(&mut self) {
        let Some(answer) = self.answer.take() else { return };
        if !answer.parts.is_empty() {
            let mut data = Object::from([("parts", Value::Array(answer.parts))]);
            let about = [("provider", "anthropic"), ("api", "anthropic.messages"), ("model", &answer.model)];
            let more = [("responseId", answer.id.as_str()), ("stopReason", &answer.stop)];
            for (key, value) in about.into_iter().chain(more).filter(|(_, value)| !value.is_empty()) {
                data.set(key, value);
            }
            self.import.push("assistant/message", data);
        }
        if let Some(usage) = answer.usage {
            self.steps += 1;
            let about = [("provider", "anthropic"), ("model", answer.model.as_str()), ("responseId", &answer.id)];
            self.import.push("usage", parts::usage(self.steps, "anthropic.messages", usage, &about));
        }
    }
}

/// Writes a session file.
pub fn write(session: &Outgoing<'_>) -> Result<Export> {
    let mut out = Export::default();
    if let Some(title) = session.title {
        let line = Object::from([("type", Value::from("summary")), ("summary", title.into()), ("leafUuid", "".into())]);
        line.write(&mut out.text);
        out.text.push('\n');
    }
    let mut parent = Value::Null;
    for spoken in conversation(session)? {
        let own = uuid(spoken.id(), spoken.seq());
        let mut line = Object::from([("parentUuid", parent), ("isSidechain", false.into())]);
        let about = [("userType", "external"), ("cwd", session.cwd.unwrap_or("/")), ("sessionId", session.id)];
        for (key, value) in about.into_iter().chain([("version", env!("CARGO_PKG_VERSION"))]) {
            line.set(key, value);
        }
        let assistant = spoken.role() == "assistant";
        let blocks: Vec<Value> = spoken.parts().iter().filter_map(|part| block(part, &spoken, &mut out.lost)).collect();
        if blocks.is_empty() {
            parent = line.remove("parentUuid").unwrap_or_default();
            continue;
        }
        line.set("type", if assistant { "assistant" } else { "user" });
        line.set("message", if assistant { answer(&spoken, blocks) } else { question(blocks) });
        if spoken.is("session/compacted") {
            line.set("isCompactSummary", true);
        }
        line.set("uuid", own.as_str());
        line.set("timestamp", iso(spoken.at()));
        line.write(&mut out.text);
        out.text.push('\n');
        parent = own.into();
    }
    Ok(out)
}

fn question(mut blocks: Vec<Value>) -> Object {
    let content = match blocks.as_slice() {
        [only] if parts::is(only, "text") => Value::from(text_at(only, &["text"])),
        _ => Value::Array(std::mem::take(&mut blocks)),
    };
    Object::from([("role", Value::from("user")), ("content", content)])
}

fn answer(spoken: &Spoken<'_>, blocks: Vec<Value>) -> Object {
    let data = spoken.data();
    let id = match text_at(&data, &["responseId"]) {
        "" => format!("msg_{}", spoken.id()),
        id => id.to_owned(),
    };
    let stop = if blocks.iter().any(|block| parts::is(block, "tool_use")) { "tool_use" } else { "end_turn" };
    let nothing = Object::from([("input_tokens", Value::from(0)), ("output_tokens", 0.into())]);
    let model = match text_at(&data, &["model"]) {
        "" => "unknown",
        model => model,
    };
    Object::from([
        ("id", Value::from(id)),
        ("type", "message".into()),
        ("role", "assistant".into()),
        ("model", model.into()),
        ("content", blocks.into()),
        ("stop_reason", stop.into()),
        ("stop_sequence", Value::Null),
        ("usage", nothing.into()),
    ])
}

fn block(part: &Value, spoken: &Spoken<'_>, lost: &mut Vec<String>) -> Option<Value> {
    let of = |key: &str| text_at(part, &[key]);
    let block = match of("type") {
        "text" => Object::from([("type", Value::from("text")), ("text", of("text").into())]),
        "reasoning" if !of("redacted").is_empty() => {
            Object::from([("type", Value::from("redacted_thinking")), ("data", of("redacted").into())])
        }
        "reasoning" if !of("signature").is_empty() => Object::from([
            ("type", Value::from("thinking")),
            ("thinking", of("text").into()),
            ("signature", of("signature").into()),
        ]),
        "tool-call" => Object::from([
            ("type", Value::from("tool_use")),
            ("id", of("id").into()),
            ("name", of("name").into()),
            ("input", part.get("args").cloned().unwrap_or_else(|| Object::default().into())),
        ]),
        "tool-result" => {
            let content = match part.get("content") {
                Some(Value::Array(inner)) => {
                    Value::Array(inner.iter().filter_map(|part| block(part, spoken, lost)).collect())
                }
                other => Value::from(parts::plain(other)),
            };
            let mut result = Object::from([
                ("type", Value::from("tool_result")),
                ("tool_use_id", of("id").into()),
                ("content", content),
            ]);
            if is_set(part, "isError") {
                result.set("is_error", true);
            }
            result
        }
        "image" | "file" if part.get("data").is_some() => media(part, "base64", "data"),
        "image" | "file" if part.get("url").is_some() => media(part, "url", "url"),
        kind => {
            lost.push(format!("a part of type {kind} in event {} has no place", spoken.seq()));
            return None;
        }
    };
    Some(block.into())
}

fn media(part: &Value, kind: &str, key: &str) -> Object {
    let mut source = Object::from([("type", Value::from(kind))]);
    if key == "data" {
        source.set("media_type", text_at(part, &["mediaType"]));
    }
    source.set(key, text_at(part, &[key]));
    let kind = if parts::is(part, "image") { "image" } else { "document" };
    Object::from([("type", Value::from(kind)), ("source", source.into())])
}
