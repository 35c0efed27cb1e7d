//! UI messages of the AI SDK: one message per side, with the steps of an answer, its calls and their results as parts of it.

use super::spoken::conversation;
use super::{Export, Import, Outgoing, list, parts, short, something, text_at};
use crate::core::error::Result;
use crate::core::json::{Object, Value};

/// Reads a list of UI messages.
pub fn read(text: &str) -> Result<Import> {
    let mut reader = Reader { import: Import::default(), said: Vec::new(), results: Vec::new() };
    for (index, message) in list(text)?.iter().enumerate() {
        reader.message(index, message);
    }
    something(reader.import)
}

struct Reader {
    import: Import,
    /// The step that is being read.
    said: Vec<Value>,
    /// The results of its calls.
    results: Vec<Object>,
}

impl Reader {
    fn lose(&mut self, index: usize, what: &str) {
        self.import.lost.push(format!("message {index} holds {:?}", short(what)));
    }

    fn message(&mut self, index: usize, message: &Value) {
        let role = text_at(message, &["role"]);
        if !matches!(role, "user" | "assistant" | "system") {
            return self.import.lost.push(format!("message {index} has no role that is known"));
        }
        match message.get("parts").and_then(Value::as_array) {
            Some(list) => list.iter().for_each(|part| self.part(index, part)),
            // Before version 5 the text stood beside the calls.
            None => self.old_message(message),
        }
        match role {
            "assistant" => self.end_step(),
            "user" => {
                let said = std::mem::take(&mut self.said);
                if !said.is_empty() {
                    self.import.push("user/message", parts::user(said));
                }
            }
            _ => {
                let text = parts::plain(Some(&Value::Array(std::mem::take(&mut self.said))));
                let data = Object::from([("text", Value::from(text)), ("source", role.into())]);
                self.import.push("context/message", data);
            }
        }
    }

    fn old_message(&mut self, message: &Value) {
        for call in message.get("toolInvocations").and_then(Value::as_array).unwrap_or_default() {
            let of = |key: &str| text_at(call, &[key]);
            self.said.push(parts::call(of("toolCallId"), of("toolName"), call.get("args")));
            if of("state") == "result" {
                self.results.push(result(of("toolCallId"), call.get("result"), false));
            }
        }
        if !self.said.is_empty() {
            self.end_step();
        }
        let text = text_at(message, &["content"]);
        if !text.is_empty() {
            self.said.push(parts::text(text));
        }
    }

    fn part(&mut self, index: usize, part: &Value) {
        let of = |key: &str| text_at(part, &[key]);
        match of("type") {
            "text" if of("text").is_empty() => {}
            "text" => self.said.push(parts::text(of("text"))),
            "reasoning" => {
                let anthropic = |key: &str| text_at(part, &["providerMetadata", "anthropic", key]);
                let openai = |key: &str| text_at(part, &["providerMetadata", "openai", key]);
                let seal = [
                    ("signature", anthropic("signature")),
                    ("redacted", anthropic("redactedData")),
                    ("itemId", openai("itemId")),
                    ("encrypted", openai("reasoningEncryptedContent")),
                ];
                self.said.push(parts::reasoning(of("text"), &seal));
            }
            "file" => self.said.push(file(part)),
            "step-start" => self.end_step(),
            "dynamic-tool" => self.call(part, of("toolName")),
            kind => match kind.strip_prefix("tool-") {
                Some(name) => self.call(part, name),
                None => self.lose(index, kind),
            },
        }
    }

    fn call(&mut self, part: &Value, name: &str) {
        let of = |key: &str| text_at(part, &[key]);
        let input = part.get("input").or_else(|| part.get("rawInput")).filter(|input| !input.is_null());
        self.said.push(parts::call(of("toolCallId"), name, input));
        match of("state") {
            "output-available" => self.results.push(result(of("toolCallId"), part.get("output"), false)),
            "output-error" => {
                self.results.push(result(of("toolCallId"), part.get("errorText"), true));
            }
            "output-denied" => {
                let mut verdict =
                    Object::from([("callId", Value::from(of("toolCallId"))), ("verdict", "denied".into())]);
                let reason = text_at(part, &["approval", "reason"]);
                if !reason.is_empty() {
                    verdict.set("reason", reason);
                }
                self.end_step();
                self.import.push("approval/resolved", verdict);
            }
            _ => {}
        }
    }

    fn end_step(&mut self) {
        let said = std::mem::take(&mut self.said);
        if !said.is_empty() {
            self.import.push("assistant/message", Object::from([("parts", Value::Array(said))]));
        }
        for result in std::mem::take(&mut self.results) {
            self.import.push("tool/result", result);
        }
    }
}

fn file(part: &Value) -> Value {
    let mut media = parts::media_at(text_at(part, &["mediaType"]), text_at(part, &["url"]));
    let name = text_at(part, &["filename"]);
    if let Some(file) = media.as_object_mut().filter(|_| !name.is_empty()) {
        // Only files have names among our parts; an image is told by its type there too.
        file.set("filename", name);
    }
    media
}

/// What a tool gave back may be any value; what is no text goes to a model as JSON text.
fn result(id: &str, output: Option<&Value>, is_error: bool) -> Object {
    let text = match output {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_text(),
        None => String::new(),
    };
    parts::result(id, vec![parts::text(&text)], is_error)
}

/// Writes a list of UI messages.
pub fn write(session: &Outgoing<'_>) -> Result<Export> {
    let mut lost = Vec::new();
    let mut out: Vec<Object> = Vec::new();
    for spoken in conversation(session)? {
        if spoken.role() == "tool" {
            for result in spoken.parts().iter().filter(|part| parts::is(part, "tool-result")) {
                if !answer_call(&mut out, result) {
                    lost.push(format!("the result in event {} answers no call", spoken.seq()));
                }
            }
            continue;
        }
        let pieces = spoken.parts().iter().filter_map(|part| {
            let piece = piece(part);
            if piece.is_none() {
                let kind = text_at(part, &["type"]);
                lost.push(format!("a part of type {kind} in event {} has no place", spoken.seq()));
            }
            piece
        });
        let pieces: Vec<Value> = pieces.collect();
        let assistant = spoken.role() == "assistant";
        let last = out.last_mut().filter(|last| assistant && is_answer(last));
        match last.and_then(|last| last.get_mut("parts")) {
            Some(Value::Array(said)) => {
                said.push(step_start());
                said.extend(pieces);
            }
            _ => {
                let start = assistant.then(step_start);
                out.push(Object::from([
                    ("id", Value::from(spoken.id().to_string())),
                    ("role", spoken.role().into()),
                    ("parts", start.into_iter().chain(pieces).collect::<Vec<_>>().into()),
                ]));
            }
        }
    }
    let messages: Vec<Value> = out.into_iter().map(Into::into).collect();
    Ok(Export { text: Value::Array(messages).to_text(), lost })
}

fn step_start() -> Value {
    Object::from([("type", Value::from("step-start"))]).into()
}

fn is_answer(message: &Object) -> bool {
    message.get("role").and_then(Value::as_str) == Some("assistant")
}

fn piece(part: &Value) -> Option<Value> {
    let of = |key: &str| text_at(part, &[key]);
    let piece = match of("type") {
        "text" => Object::from([("type", Value::from("text")), ("text", of("text").into()), ("state", "done".into())]),
        "reasoning" => {
            let mut piece = Object::from([("type", Value::from("reasoning")), ("text", of("text").into())]);
            let seals = [
                ("anthropic", [("signature", "signature"), ("redactedData", "redacted")]),
                ("openai", [("itemId", "itemId"), ("reasoningEncryptedContent", "encrypted")]),
            ];
            let mut sealed = Object::default();
            for (provider, keys) in seals {
                let seal: Object = keys
                    .into_iter()
                    .filter(|(_, ours)| !of(ours).is_empty())
                    .map(|(theirs, ours)| (theirs.to_owned(), Value::from(of(ours))))
                    .collect();
                if !seal.is_empty() {
                    sealed.set(provider, seal);
                }
            }
            if !sealed.is_empty() {
                piece.set("providerMetadata", sealed);
            }
            piece
        }
        "tool-call" => Object::from([
            ("type", Value::from(format!("tool-{}", of("name")))),
            ("toolCallId", of("id").into()),
            ("state", "input-available".into()),
            ("input", part.get("args").cloned().unwrap_or_default()),
        ]),
        "image" | "file" => {
            let mut piece = Object::from([("type", Value::from("file")), ("mediaType", of("mediaType").into())]);
            piece.set("url", parts::address(part)?);
            if !of("filename").is_empty() {
                piece.set("filename", of("filename"));
            }
            piece
        }
        _ => return None,
    };
    Some(piece.into())
}

/// Puts a result into the newest part that asked for it.
fn answer_call(out: &mut [Object], result: &Value) -> bool {
    let id = text_at(result, &["id"]);
    for message in out.iter_mut().rev() {
        let Some(Value::Array(said)) = message.get_mut("parts") else { continue };
        let call = said.iter_mut().rev().find(|part| text_at(part, &["toolCallId"]) == id);
        let Some(call) = call.and_then(Value::as_object_mut) else { continue };
        let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
        call.set("state", if failed { "output-error" } else { "output-available" });
        match result.get("content") {
            content if failed => call.set("errorText", parts::plain(content)),
            Some(content) => call.set("output", content.clone()),
            None => call.set("output", ""),
        }
        return true;
    }
    false
}
