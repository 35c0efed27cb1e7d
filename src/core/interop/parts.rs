//! Parts of messages in our own shape, made and taken apart.

use super::text_at;
use crate::core::json::{self, Object, Surrogates, Value};

/// A text.
pub(super) fn text(text: &str) -> Value {
    Object::from([("type", Value::from("text")), ("text", text.into())]).into()
}

/// Reasoning, with whatever seals it.
pub(super) fn reasoning(text: &str, seal: &[(&str, &str)]) -> Value {
    let mut part = Object::from([("type", Value::from("reasoning")), ("text", text.into())]);
    for (key, value) in seal.iter().filter(|(_, value)| !value.is_empty()) {
        part.set(key, *value);
    }
    part.into()
}

/// A call whose arguments are a value.
pub(super) fn call(id: &str, name: &str, args: Option<&Value>) -> Value {
    let args = args.cloned().unwrap_or_else(|| Object::default().into());
    let part = [("type", Value::from("tool-call")), ("id", id.into()), ("name", name.into()), ("args", args)];
    Object::from(part).into()
}

/// A call whose arguments are JSON text, which may be none.
pub(super) fn call_of_text(id: &str, name: &str, raw: &str) -> Value {
    let args = json::parse(raw, Surrogates::Replace).ok().filter(|value| value.as_object().is_some());
    let mut part = call(id, name, args.as_ref());
    if let Some(part) = part.as_object_mut().filter(|_| args.is_none() && !raw.is_empty()) {
        part.set("rawArgs", raw);
    }
    part
}

/// The arguments of a call part as JSON text.
pub(super) fn args_text(part: &Value) -> String {
    match part.get("rawArgs").and_then(Value::as_str) {
        Some(raw) => raw.to_owned(),
        None => part.get("args").map_or_else(|| "{}".to_owned(), Value::to_text),
    }
}

/// An image or another file of base64 text.
pub(super) fn media(media_type: &str, data: &str) -> Value {
    located(media_type, "data", data)
}

/// An image or another file behind an address, which may be a `data:` one.
pub(super) fn media_at(media_type: &str, url: &str) -> Value {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((own, data)) => media(own, data),
        None => located(media_type, "url", url),
    }
}

fn located(media_type: &str, key: &str, place: &str) -> Value {
    let kind = if media_type.starts_with("image/") { "image" } else { "file" };
    Object::from([("type", Value::from(kind)), ("mediaType", media_type.into()), (key, place.into())]).into()
}

/// Where a media part's bytes are: an address or a `data:` one. A part that only names a blob has none.
pub(super) fn address(part: &Value) -> Option<String> {
    if let Some(url) = part.get("url").and_then(Value::as_str) {
        return Some(url.to_owned());
    }
    let data = part.get("data").and_then(Value::as_str)?;
    Some(format!("data:{};base64,{data}", text_at(part, &["mediaType"])))
}

/// Says of which type a part is.
pub(super) fn is(part: &Value, kind: &str) -> bool {
    text_at(part, &["type"]) == kind
}

/// Says whether a part is media.
pub(super) fn is_media(part: &Value) -> bool {
    is(part, "image") || is(part, "file")
}

/// The text of a content: a text, or the texts of its parts in lines.
pub(super) fn plain(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// A user's payload: one text where that is all, else parts.
pub(super) fn user(parts: Vec<Value>) -> Object {
    match parts.as_slice() {
        [only] if is(only, "text") => Object::from([("text", Value::from(text_at(only, &["text"])))]),
        _ => Object::from([("parts", Value::Array(parts))]),
    }
}

/// A result's payload: one text where that is all, else parts.
pub(super) fn result(id: &str, mut parts: Vec<Value>, is_error: bool) -> Object {
    let content = match parts.as_slice() {
        [] => Value::from(""),
        [only] if is(only, "text") => Value::from(text_at(only, &["text"])),
        _ => Value::Array(std::mem::take(&mut parts)),
    };
    let mut data = Object::from([("id", Value::from(id)), ("content", content)]);
    if is_error {
        data.set("isError", true);
    }
    data
}

/// What a provider counted, as an event's payload. Imported answers have no turns of ours: each counts as a step of its own.
pub(super) fn usage(step: usize, shape: &str, raw: Value, about: &[(&str, &str)]) -> Object {
    let mut record = Object::from([("apiShape", Value::from(shape)), ("raw", raw)]);
    for (key, value) in about.iter().filter(|(_, value)| !value.is_empty()) {
        record.set(key, *value);
    }
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    Object::from([("turn", Value::from(0)), ("step", step.into()), ("usage", record.into())])
}
