//! Codex's rollout files: JSON lines `{timestamp, type, payload}` whose `response_item`s are items of OpenAI's responses API.
//! Older files have the items bare, after a first line about the session.

use super::spoken::{Spoken, conversation};
use super::{Export, Import, Outgoing, lines, parts, short, something, text_at};
use crate::core::error::Result;
use crate::core::json::{Object, Value};
use crate::core::time::iso;

const SHAPE: &str = "openai.responses";

/// Reads a rollout file.
pub fn read(text: &str) -> Result<Import> {
    let mut import = Import::default();
    let entries = lines(text, &mut import.lost);
    let mut reader = Reader { import, steps: 0, answer: Vec::new(), model: String::new() };
    for (number, entry) in &entries {
        let payload = entry.get("payload").unwrap_or(entry);
        match (text_at(entry, &["type"]), entry.get("payload").is_some()) {
            ("session_meta", true) => reader.about(payload),
            ("turn_context", true) => text_at(payload, &["model"]).clone_into(&mut reader.model),
            ("response_item", true) => reader.item(*number, payload),
            ("compacted", true) => reader.compacted(*number, payload),
            ("event_msg", true) => reader.told(payload),
            ("", false) if entry.get("id").is_some() => reader.about(entry),
            ("", false) if entry.get("record_type").is_some() => {}
            (_, false) => reader.item(*number, entry),
            (kind, true) => reader.lose(*number, kind),
        }
    }
    reader.end_answer();
    something(reader.import)
}

struct Reader {
    import: Import,
    steps: usize,
    /// Items that follow each other make one answer.
    answer: Vec<Value>,
    model: String,
}

impl Reader {
    fn lose(&mut self, number: usize, kind: &str) {
        self.import.lost.push(format!("line {number} holds {:?}", short(kind)));
    }

    fn about(&mut self, meta: &Value) {
        for (ours, theirs) in [("id", "id"), ("cwd", "cwd"), ("createdAt", "timestamp")] {
            let found = text_at(meta, &[theirs]);
            if !found.is_empty() {
                self.import.head.set(ours, found);
            }
        }
    }

    fn item(&mut self, number: usize, item: &Value) {
        let of = |key: &str| text_at(item, &[key]);
        match of("type") {
            "message" => self.message(number, item),
            "reasoning" => {
                let text = [item.get("summary"), item.get("content")].map(parts::plain).join("\n");
                let seal = [("itemId", of("id")), ("encrypted", of("encrypted_content"))];
                self.answer.push(parts::reasoning(text.trim_end_matches('\n'), &seal));
            }
            "function_call" => self.answer.push(parts::call_of_text(of("call_id"), of("name"), of("arguments"))),
            "custom_tool_call" => {
                let args = Object::from([("input", Value::from(of("input")))]).into();
                self.answer.push(parts::call(of("call_id"), of("name"), Some(&args)));
            }
            "local_shell_call" => {
                let id = if of("call_id").is_empty() { of("id") } else { of("call_id") };
                self.answer.push(parts::call(id, "local_shell", item.get("action")));
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.end_answer();
                let (content, failed) = output(item.get("output"));
                self.import.push("tool/result", parts::result(of("call_id"), content, failed));
            }
            kind => self.lose(number, kind),
        }
    }

    fn message(&mut self, number: usize, item: &Value) {
        let mut said = Vec::new();
        for part in item.get("content").and_then(Value::as_array).unwrap_or_default() {
            match said_part(part) {
                Some(part) => said.push(part),
                None => self.lose(number, text_at(part, &["type"])),
            }
        }
        if let Some(Value::String(text)) = item.get("content") {
            said.push(parts::text(text));
        }
        if said.is_empty() {
            return;
        }
        let role = text_at(item, &["role"]);
        if role == "assistant" {
            return self.answer.extend(said);
        }
        self.end_answer();
        let text = parts::plain(Some(&Value::Array(said.clone())));
        match role {
            "user" if is_surroundings(&text) => {
                self.import.push("context/injected", Object::from([("text", Value::from(text))]));
            }
            "user" => self.import.push("user/message", parts::user(said)),
            _ => {
                let data = Object::from([("text", Value::from(text)), ("source", role.into())]);
                self.import.push("context/message", data);
            }
        }
    }

    fn compacted(&mut self, number: usize, payload: &Value) {
        self.end_answer();
        let summary = text_at(payload, &["message"]);
        if summary.trim().is_empty() {
            return self.lose(number, "a compaction without a summary that can be read");
        }
        let until = self.import.events.len();
        self.import.compacted(summary, until);
    }

    /// Of the messages for its display only what was counted is not said elsewhere.
    fn told(&mut self, payload: &Value) {
        let Some(counted) = payload.at(&["info", "last_token_usage"]).filter(|_| parts::is(payload, "token_count"))
        else {
            return;
        };
        self.end_answer();
        let number =
            |key: &str| counted.get(key).filter(|value| value.as_number().is_some()).cloned().unwrap_or(0.into());
        let raw = Object::from([
            ("input_tokens", number("input_tokens")),
            ("input_tokens_details", Object::from([("cached_tokens", number("cached_input_tokens"))]).into()),
            ("output_tokens", number("output_tokens")),
            ("output_tokens_details", Object::from([("reasoning_tokens", number("reasoning_output_tokens"))]).into()),
            ("total_tokens", number("total_tokens")),
        ]);
        self.steps += 1;
        let about = [("provider", "openai"), ("model", self.model.as_str())];
        self.import.push("usage", parts::usage(self.steps, SHAPE, raw.into(), &about));
    }

    fn end_answer(&mut self) {
        if self.answer.is_empty() {
            return;
        }
        let mut data = Object::from([("parts", Value::Array(std::mem::take(&mut self.answer)))]);
        for (key, value) in [("provider", "openai"), ("api", SHAPE), ("model", self.model.as_str())] {
            if !value.is_empty() {
                data.set(key, value);
            }
        }
        self.import.push("assistant/message", data);
    }
}

/// What the program itself says in the user's place at the start of a turn.
fn is_surroundings(text: &str) -> bool {
    let text = text.trim_start();
    ["<environment_context>", "<user_instructions>", "<permissions instructions>", "# AGENTS.md instructions"]
        .iter()
        .any(|start| text.starts_with(start))
}

fn said_part(part: &Value) -> Option<Value> {
    match text_at(part, &["type"]) {
        "input_text" | "output_text" | "text" => Some(parts::text(text_at(part, &["text"]))),
        "input_image" => Some(parts::media_at("image/*", text_at(part, &["image_url"]))),
        _ => None,
    }
}

/// An output is a text, a list of parts, or an object around either that says whether the call succeeded.
fn output(output: Option<&Value>) -> (Vec<Value>, bool) {
    match output {
        Some(Value::String(text)) => (vec![parts::text(text)], false),
        Some(Value::Array(list)) => (list.iter().filter_map(said_part).collect(), false),
        Some(Value::Object(around)) => {
            let failed = around.get("success").and_then(Value::as_bool) == Some(false);
            (self::output(around.get("content").or_else(|| around.get("output"))).0, failed)
        }
        _ => (Vec::new(), false),
    }
}

/// Writes a rollout file.
pub fn write(session: &Outgoing<'_>) -> Result<Export> {
    let mut out = Export::default();
    let start = iso(session.created_at);
    let meta = Object::from([
        ("id", Value::from(session.id)),
        ("timestamp", start.as_str().into()),
        ("cwd", session.cwd.unwrap_or("/").into()),
        ("originator", "sessionlog".into()),
        ("cli_version", env!("CARGO_PKG_VERSION").into()),
        ("instructions", Value::Null),
    ]);
    line(&mut out.text, &start, "session_meta", meta);
    for spoken in conversation(session)? {
        let at = iso(spoken.at());
        if spoken.is("session/compacted") {
            let summary = parts::plain(Some(&Value::Array(spoken.parts().to_vec())));
            line(&mut out.text, &at, "compacted", Object::from([("message", Value::from(summary))]));
            continue;
        }
        let mut said = Vec::new();
        for part in spoken.parts() {
            match item(part, &spoken, &mut out.lost) {
                Some(Written::Part(part)) => said.push(part),
                Some(Written::Item(item)) => {
                    message(&mut out.text, &at, &spoken, &mut said);
                    line(&mut out.text, &at, "response_item", item);
                }
                None => {}
            }
        }
        message(&mut out.text, &at, &spoken, &mut said);
    }
    Ok(out)
}

fn line(out: &mut String, at: &str, kind: &str, payload: Object) {
    Object::from([("timestamp", Value::from(at)), ("type", kind.into()), ("payload", payload.into())]).write(out);
    out.push('\n');
}

fn message(out: &mut String, at: &str, spoken: &Spoken<'_>, said: &mut Vec<Value>) {
    if said.is_empty() {
        return;
    }
    let content = Value::Array(std::mem::take(said));
    let message = [("type", Value::from("message")), ("role", spoken.role().into()), ("content", content)];
    line(out, at, "response_item", Object::from(message));
}

/// A part of ours is either part of a message there, or an item of its own.
enum Written {
    Part(Value),
    Item(Object),
}

fn item(part: &Value, spoken: &Spoken<'_>, lost: &mut Vec<String>) -> Option<Written> {
    let of = |key: &str| text_at(part, &[key]);
    let typed = |kind: &str, key: &str, value: Value| Object::from([("type", Value::from(kind)), (key, value)]);
    let item = match of("type") {
        "text" => {
            let kind = if spoken.role() == "assistant" { "output_text" } else { "input_text" };
            return Some(Written::Part(typed(kind, "text", of("text").into()).into()));
        }
        "image" if parts::address(part).is_some() => {
            let url = parts::address(part).unwrap_or_default();
            return Some(Written::Part(typed("input_image", "image_url", url.into()).into()));
        }
        "reasoning" if !of("encrypted").is_empty() || !of("text").is_empty() => {
            let summary = typed("summary_text", "text", of("text").into());
            let mut item = typed("reasoning", "summary", Value::Array(vec![summary.into()]));
            for (theirs, ours) in [("id", "itemId"), ("encrypted_content", "encrypted")] {
                if !of(ours).is_empty() {
                    item.set(theirs, of(ours));
                }
            }
            item
        }
        "tool-call" => {
            let mut item = typed("function_call", "name", of("name").into());
            item.set("arguments", parts::args_text(part));
            item.set("call_id", of("id"));
            item
        }
        "tool-result" => {
            let mut item = typed("function_call_output", "call_id", of("id").into());
            let content = part.get("content");
            if content.and_then(Value::as_array).is_some_and(|inner| inner.iter().any(parts::is_media)) {
                lost.push(format!("media in the result in event {} have no place", spoken.seq()));
            }
            item.set("output", parts::plain(content));
            item
        }
        kind => {
            lost.push(format!("a part of type {kind} in event {} has no place", spoken.seq()));
            return None;
        }
    };
    Some(Written::Item(item))
}
