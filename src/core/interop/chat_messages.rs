//! Message lists in the shape of OpenAI's chat completions.
//!
//! Each message becomes one event that carries the message as it came under `raw`, so that it goes out again with nothing lost;
//! events that were appended afterwards are written from their payload.

use super::spoken::conversation;
use super::{Export, Import, Incoming, Outgoing, list, parts, something, text_at};
use crate::core::error::Result;
use crate::core::event::EventView;
use crate::core::json::{self, Object, Surrogates, Value};

/// The payload member under which a message from outside is kept as it came.
pub const RAW: &str = "raw";

/// Reads a file: a list of messages, alone or as the member `messages` of a request.
pub fn read_file(text: &str) -> Result<Import> {
    something(read(&list(text)?))
}

/// Writes the conversation as it stands: what was rewound or compacted is not in it.
pub fn write_file(session: &Outgoing<'_>) -> Result<Export> {
    let spoken = conversation(session)?;
    let (messages, lost) = write(spoken.iter().filter_map(|spoken| spoken.event));
    Ok(Export { text: Value::Array(messages).to_text(), lost })
}

/// Reads a list of messages.
pub fn read(messages: &[Value]) -> Import {
    let mut import = Import::default();
    for (index, message) in messages.iter().enumerate() {
        match event_of(message) {
            Some(mut event) => {
                event.data.set(RAW, message.clone());
                import.events.push(event);
            }
            None => import.lost.push(format!("message {index} has no role that is known")),
        }
    }
    import
}

fn event_of(message: &Value) -> Option<Incoming> {
    let role = message.get("role").and_then(Value::as_str)?;
    let content = message.get("content");
    match role {
        "user" => Some(Incoming { kind: "user/message", data: spoken(content) }),
        "system" | "developer" => {
            let data = Object::from([("text", Value::from(parts::plain(content))), ("source", role.into())]);
            Some(Incoming { kind: "context/message", data })
        }
        "assistant" => Some(Incoming { kind: "assistant/message", data: answered(message, content) }),
        "tool" | "function" => Some(Incoming { kind: "tool/result", data: result(message, content) }),
        _ => None,
    }
}

fn spoken(content: Option<&Value>) -> Object {
    let Some(Value::Array(parts)) = content else {
        return Object::from([("text", Value::from(parts::plain(content)))]);
    };
    Object::from([("parts", Value::Array(parts.iter().filter_map(part_of).collect()))])
}

fn part_of(part: &Value) -> Option<Value> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return Some(parts::text(text));
    }
    let url = part.at(&["image_url", "url"]).and_then(Value::as_str)?;
    Some(parts::media_at("image/*", url))
}

fn answered(message: &Value, content: Option<&Value>) -> Object {
    let mut said = Vec::new();
    if let Some(reasoning) = message.get("reasoning_content").and_then(Value::as_str).filter(|t| !t.is_empty()) {
        said.push(parts::reasoning(reasoning, &[]));
    }
    let text = parts::plain(content);
    if !text.is_empty() {
        said.push(parts::text(&text));
    }
    for call in message.get("tool_calls").and_then(Value::as_array).unwrap_or_default() {
        said.push(call_part(call));
    }
    Object::from([("parts", Value::Array(said))])
}

fn call_part(call: &Value) -> Value {
    let text = |path: &[&str]| text_at(call, path);
    parts::call_of_text(text(&["id"]), text(&["function", "name"]), text(&["function", "arguments"]))
}

fn result(message: &Value, content: Option<&Value>) -> Object {
    let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
    Object::from([("id", Value::from(id)), ("content", parts::plain(content).into())])
}

/// Writes the messages of a log, and says what has no place among messages.
pub fn write<'a>(events: impl Iterator<Item = EventView<'a>>) -> (Vec<Value>, Vec<String>) {
    let mut out = Vec::new();
    let mut lost = Vec::new();
    for event in events {
        let Ok(data) = json::parse(event.data, Surrogates::Replace) else { continue };
        match data.get(RAW).cloned().or_else(|| message_of(event.kind, &data)) {
            Some(message) => out.push(message),
            None if crate::core::event::is_message(event.kind) => {
                lost.push(format!("event {} ({}) has no place in a message list", event.seq, event.kind));
            }
            None => {}
        }
    }
    (out, lost)
}

fn message_of(kind: &str, data: &Value) -> Option<Value> {
    let text = || match data.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => parts::plain(data.get("parts")),
    };
    let message =
        |role: &str, content: String| Object::from([("role", Value::from(role)), ("content", content.into())]);
    let message = match kind {
        "user/message" | "context/injected" | "steering/message" => message("user", text()),
        "context/message" => message("system", text()),
        "session/compacted" => {
            message("user", data.get("summary").and_then(Value::as_str).unwrap_or_default().to_owned())
        }
        "assistant/message" => assistant_message(data),
        "tool/result" => {
            let id = data.get("id").and_then(Value::as_str).unwrap_or_default();
            let mut message = message("tool", parts::plain(data.get("content")));
            message.set("tool_call_id", id);
            message
        }
        _ => return None,
    };
    Some(message.into())
}

fn assistant_message(data: &Value) -> Object {
    let said = data.get("parts").and_then(Value::as_array).unwrap_or_default();
    let text: Vec<Value> = said.iter().filter(|part| parts::is(part, "text")).cloned().collect();
    let calls: Vec<Value> = said.iter().filter(|part| parts::is(part, "tool-call")).map(chat_call).collect();
    let content = parts::plain(Some(&Value::Array(text)));
    let content = if content.is_empty() && !calls.is_empty() { Value::Null } else { content.into() };
    let mut message = Object::from([("role", Value::from("assistant")), ("content", content)]);
    if !calls.is_empty() {
        message.set("tool_calls", calls);
    }
    message
}

fn chat_call(part: &Value) -> Value {
    let arguments = Value::from(parts::args_text(part));
    let function = Object::from([("name", Value::from(text_at(part, &["name"]))), ("arguments", arguments)]);
    let call =
        [("id", Value::from(text_at(part, &["id"]))), ("type", "function".into()), ("function", function.into())];
    Object::from(call).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::EventId;

    fn views(events: &[(&str, String)]) -> Vec<Value> {
        let views = events.iter().enumerate().map(|(seq, (kind, data))| EventView {
            seq: seq as u64,
            id: EventId(seq as u64),
            at: 0,
            kind,
            data,
            note: None,
        });
        write(views).0
    }

    #[test]
    fn messages_come_back_as_they_came() {
        let text = r#"[{"role":"system","content":"Be brief.","name":"x"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"n\":1.50}"}}],"custom":[1e2]},{"role":"tool","tool_call_id":"c1","content":"ok"},{"role":"assistant","content":"done","reasoning_content":"hm"}]"#;
        let list = json::parse(text, Surrogates::Refuse).unwrap();
        let import = read(list.as_array().unwrap());
        assert_eq!(import.lost, Vec::<String>::new());
        let kinds: Vec<_> = import.events.iter().map(|e| e.kind).collect();
        assert_eq!(kinds, ["context/message", "user/message", "assistant/message", "tool/result", "assistant/message"]);
        let call = import.events[2].data.get("parts").unwrap().as_array().unwrap()[0].clone();
        assert_eq!(call.at(&["args", "n"]).and_then(Value::as_number), Some("1.50"));
        let events: Vec<_> = import.events.iter().map(|e| (e.kind, e.data.to_text())).collect();
        assert_eq!(Value::Array(views(&events)).to_text(), text);
    }

    #[test]
    fn events_of_our_own_become_messages_and_odd_messages_are_reported() {
        let events = [
            ("user/message", r#"{"text":"hi"}"#.to_owned()),
            ("assistant/message", r#"{"parts":[{"type":"tool-call","id":"a","name":"f","args":{"x":1}}]}"#.to_owned()),
            ("tool/result", r#"{"id":"a","content":[{"type":"text","text":"r"}]}"#.to_owned()),
            ("turn/end", "{}".to_owned()),
        ];
        let text = Value::Array(views(&events)).to_text();
        assert_eq!(
            text,
            r#"[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","content":"r","tool_call_id":"a"}]"#
        );
        let odd = json::parse(r#"[{"role":"critic","content":"x"},5,null]"#, Surrogates::Refuse).unwrap();
        assert_eq!(read(odd.as_array().unwrap()).lost.len(), 3);
    }
}
