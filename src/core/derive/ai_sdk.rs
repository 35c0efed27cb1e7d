//! The Vercel AI SDK's `ModelMessage`, for any of its providers.

use std::collections::HashSet;

use crate::core::sorted::SortedMap;

use super::build::only_text;
use super::media::{Data, Medium};
use super::openai_chat::{filled, is_gs};
use super::origin::ReasoningRule;
use super::round::{Answer, Block, CallBlock, Json, Round, TextBlock, Thought, object, quote, write_list};
use super::{Place, RequestOptions, Target, Validator};
use crate::core::json::Value;

/// The target.
pub(super) const TARGET: Target = Target {
    name: "ai-sdk",
    family: None,
    id_pattern: "^[!-~]{1,128}$",
    first_is_user: false,
    prefill: true,
    calls_last: false,
    provider_calls: true,
    media_in_results: true,
    reasoning: ReasoningRule::Passed,
    system_in_list: false,
    system: quote,
    media: [500, 20_000_000, 36_000_000, 65_535],
    crowd: None,
    takes,
    render,
    validator: || Box::new(Judge::default()),
};

fn takes(medium: &Medium, _: Place) -> bool {
    // The SDK fetches what a provider does not take by address, and fetches only over HTTP.
    medium.media_type.contains('/') && !is_gs(medium)
}

fn render(round: &Round, _: &RequestOptions, out: &mut Vec<String>) {
    if !round.assistant.is_empty() {
        let content = |out: &mut String| write_list(out, &round.assistant, |out, block| part(block, out));
        out.push(object(|json| json.text("role", "assistant").with("content", content)));
    }
    if !round.results.is_empty() {
        let content = |out: &mut String| write_list(out, &round.results, |out, answer| result(answer, out));
        out.push(object(|json| json.text("role", "tool").with("content", content)));
    }
    if !round.user.is_empty() {
        let content = |out: &mut String| match only_text(&round.user) {
            Some(text) => out.push_str(&text.quoted),
            None => write_list(out, &round.user, |out, block| part(block, out)),
        };
        out.push(object(|json| json.text("role", "user").with("content", content)));
    }
}

fn part(block: &Block, out: &mut String) {
    match block {
        Block::Text(text) => text_part(text, out),
        Block::Thought(thought) => reasoning(thought, out),
        Block::Call(call) => call_part(call, out),
        Block::Provided(answer) => result(answer, out),
        Block::Media(medium) => {
            let data = match &medium.data {
                Data::Base64(data) => data,
                Data::Url(url) => url,
            };
            let json = Json::new(out).text("type", "file").text("mediaType", &medium.media_type).text("data", data);
            match &medium.filename {
                Some(name) => json.text("filename", name).end(),
                None => json.end(),
            }
        }
    }
}

/// Opaque fields go under the name of the provider they belong to.
fn options(family: Option<&str>, members: &[(&str, Option<&String>)]) -> Option<String> {
    let family = family?;
    let inner = object(|json| members.iter().fold(json, |json, (key, v)| json.maybe(key, v.map(String::as_str))));
    (inner != "{}").then(|| object(|json| json.raw(family, &inner)))
}

fn text_part(text: &TextBlock, out: &mut String) {
    let item_id = text.item_id.as_deref().map(quote);
    let members: &[(&str, Option<&String>)] = match text.family {
        Some("google") => &[("thoughtSignature", text.signature.as_ref())],
        Some("openai") => &[("itemId", item_id.as_ref())],
        _ => &[],
    };
    let opaque = options(text.family, members);
    let json = Json::new(out).text("type", "text").raw("text", &text.quoted);
    json.maybe("providerOptions", opaque.as_deref()).end();
}

fn reasoning(t: &Thought, out: &mut String) {
    let members: &[(&str, Option<&String>)] = match t.family {
        Some("anthropic") => &[("signature", t.signature.as_ref()), ("redactedData", t.redacted.as_ref())],
        Some("google") => &[("thoughtSignature", t.signature.as_ref())],
        _ => &[("itemId", t.item_id.as_ref()), ("reasoningEncryptedContent", t.encrypted.as_ref())],
    };
    let opaque = options(t.family, members);
    let json = Json::new(out).text("type", "reasoning").raw("text", &t.text);
    json.maybe("providerOptions", opaque.as_deref()).end();
}

fn call_part(call: &CallBlock, out: &mut String) {
    let members: &[(&str, Option<&String>)] = match call.family {
        Some("google") => &[("thoughtSignature", call.signature.as_ref())],
        Some("openai") => &[("itemId", call.item_id.as_ref())],
        _ => &[],
    };
    let opaque = options(call.family, members);
    let json = Json::new(out).text("type", "tool-call").text("toolCallId", &call.id).text("toolName", &call.name);
    let json = json.raw("input", &call.object).maybe("providerExecuted", call.provider.then_some("true"));
    json.maybe("providerOptions", opaque.as_deref()).end();
}

fn result(answer: &Answer, out: &mut String) {
    let json = Json::new(out).text("type", "tool-result").text("toolCallId", &answer.id);
    json.text("toolName", &answer.name).with("output", |out| output(answer, out)).end();
}

fn output(answer: &Answer, out: &mut String) {
    let json = Json::new(out);
    if answer.denied {
        return json.text("type", "execution-denied").text("reason", &answer.plain()).end();
    }
    if answer.is_error {
        return json.text("type", "error-text").text("value", &answer.plain()).end();
    }
    if answer.content.iter().all(|b| matches!(b, Block::Text(_))) {
        return json.text("type", "text").text("value", &answer.plain()).end();
    }
    let value = |out: &mut String| write_list(out, &answer.content, |out, block| content(block, out));
    json.text("type", "content").with("value", value).end();
}

fn content(block: &Block, out: &mut String) {
    let json = Json::new(out);
    match block {
        Block::Media(Medium { data: Data::Base64(data), media_type, .. }) => {
            let kind = if media_type.starts_with("image/") { "image-data" } else { "file-data" };
            json.text("type", kind).text("data", data).text("mediaType", media_type).end();
        }
        Block::Media(Medium { data: Data::Url(url), media_type, .. }) => {
            let kind = if media_type.starts_with("image/") { "image-url" } else { "file-url" };
            let json = json.text("type", kind).text("url", url);
            if kind == "file-url" { json.text("mediaType", media_type).end() } else { json.end() }
        }
        Block::Text(text) => json.text("type", "text").raw("text", &text.quoted).end(),
        _ => json.end(),
    }
}

/// Judges by the SDK's schemas and its conversion to a prompt.
#[derive(Clone, Default)]
struct Judge {
    seen: HashSet<String>,
    owed: SortedMap<String, String>,
    last: Option<String>,
}

impl Validator for Judge {
    fn message(&mut self, message: &Value) -> Result<(), String> {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
        let content = message.get("content").unwrap_or(&Value::Null);
        match role.as_str() {
            "user" | "assistant" if !self.owed.is_empty() => return Err("a call has no result".into()),
            "user" if content.as_array().is_none() => filled(content)?,
            "user" | "assistant" | "tool" => {
                let parts = content.as_array().filter(|p| !p.is_empty()).ok_or("a message has no parts")?;
                parts.iter().try_for_each(|part| self.part(part, &role))?;
            }
            _ => return Err("unknown role".into()),
        }
        self.last = Some(role);
        Ok(())
    }

    fn end(&self, prefill: bool) -> Result<(), String> {
        match self.last.as_deref() {
            _ if !self.owed.is_empty() => Err("a call has no result".into()),
            Some("user" | "tool") => Ok(()),
            Some("assistant") if prefill => Ok(()),
            _ => Err("the last message is not the user's or a result".into()),
        }
    }

    fn boxed(&self) -> Box<dyn Validator> {
        Box::new(self.clone())
    }
}

impl Judge {
    fn part(&mut self, part: &Value, role: &str) -> Result<(), String> {
        let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
        let at = |key: &str| part.get(key).unwrap_or(&Value::Null);
        match (text("type"), role) {
            ("text", "user" | "assistant") => filled(at("text")),
            ("file", "user" | "assistant") => filled(at("mediaType")).and(filled(at("data"))),
            ("reasoning", "assistant") => at("text").as_str().map(|_| ()).ok_or_else(|| "reasoning has no text".into()),
            ("tool-call", "assistant") => {
                filled(at("toolName"))?;
                if text("toolCallId").is_empty() || !self.seen.insert(text("toolCallId").to_owned()) {
                    return Err("an id is empty or stands twice".into());
                }
                if at("providerExecuted").as_bool() != Some(true) {
                    self.owed.insert(text("toolCallId").to_owned(), text("toolName").to_owned());
                }
                part.get("input").map(|_| ()).ok_or_else(|| "a call has no input".into())
            }
            ("tool-result", "tool" | "assistant") => {
                let known = self.seen.contains(text("toolCallId"));
                let name = self.owed.remove(text("toolCallId"));
                if !known || name.is_some_and(|n| n != text("toolName")) {
                    return Err("a result has no call".into());
                }
                let kind = part.at(&["output", "type"]).and_then(Value::as_str);
                let value = part.at(&["output", "value"]).unwrap_or(&Value::Null);
                match kind {
                    Some("text" | "error-text") => filled(value),
                    Some("execution-denied") => Ok(()),
                    Some("content") => value.as_array().map(|_| ()).ok_or_else(|| "content is not a list".into()),
                    _ => Err("unknown kind of output".into()),
                }
            }
            _ => Err("a part does not belong there".into()),
        }
    }
}
