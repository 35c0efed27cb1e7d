//! OpenAI Chat Completions, and the many servers that speak it.

use std::collections::HashSet;

use super::build::{only_text, text_of};
use super::media::{Data, Medium};
use super::origin::ReasoningRule;
use super::round::{Answer, Block, Json, Round, object, quote, write_list};
use super::{Place, RequestOptions, Target, Validator};
use crate::core::json::{self, Surrogates, Value};
use crate::core::tape::is_blank;

/// The target.
pub(super) const TARGET: Target = Target {
    name: "openai-chat",
    family: None,
    id_pattern: "^[!-~]{1,40}$",
    first_is_user: false,
    prefill: true,
    calls_last: false,
    provider_calls: false,
    media_in_results: false,
    reasoning: ReasoningRule::Never,
    system_in_list: true,
    system: |text| object(|json| json.text("role", "system").text("content", text)),
    media: [500, 20_000_000, 36_000_000, 65_535],
    crowd: None,
    takes,
    render,
    validator: || Box::new(Judge::default()),
};

fn takes(medium: &Medium, place: Place) -> bool {
    let inline = matches!(medium.data, Data::Base64(_));
    let known = match medium.media_type.as_str() {
        "image/png" | "image/jpeg" | "image/webp" | "image/gif" => !is_gs(medium),
        "audio/wav" | "audio/mpeg" | "application/pdf" => inline,
        _ => false,
    };
    known && place != Place::Assistant
}

/// Says whether an address can be reached by Google only.
pub(super) fn is_gs(medium: &Medium) -> bool {
    matches!(&medium.data, Data::Url(url) if !url.to_ascii_lowercase().starts_with("http"))
}

fn render(round: &Round, _: &RequestOptions, out: &mut Vec<String>) {
    if !round.assistant.is_empty() {
        out.push(assistant(&round.assistant));
    }
    out.extend(round.results.iter().map(result));
    if !round.user.is_empty() {
        out.push(object(|json| json.text("role", "user").with("content", |out| user(&round.user, out))));
    }
}

fn assistant(blocks: &[Block]) -> String {
    let text = text_of(blocks);
    let calls: Vec<_> = blocks.iter().filter_map(|b| if let Block::Call(c) = b { Some(c) } else { None }).collect();
    object(|json| {
        let content = if text.is_empty() { "null".to_owned() } else { quote(&text) };
        let json = json.text("role", "assistant").raw("content", &content);
        if calls.is_empty() {
            return json;
        }
        json.with("tool_calls", |out| {
            write_list(out, calls, |out, call| {
                let function = |out: &mut String| {
                    Json::new(out).text("name", &call.name).text("arguments", &call.text).end();
                };
                Json::new(out).text("id", &call.id).text("type", "function").with("function", function).end();
            });
        })
    })
}

/// The text of a result; an error has to say so in words, as there is no flag.
pub(super) fn result_text(answer: &Answer) -> String {
    let text = answer.plain();
    let says_so = text.get(..5).is_some_and(|t| t.eq_ignore_ascii_case("error"));
    if answer.is_error && !says_so { format!("Error: {text}") } else { text }
}

fn result(answer: &Answer) -> String {
    object(|json| json.text("role", "tool").text("tool_call_id", &answer.id).text("content", &result_text(answer)))
}

fn user(blocks: &[Block], out: &mut String) {
    if let Some(text) = only_text(blocks) {
        out.push_str(&text.quoted);
        return;
    }
    write_list(out, blocks, |out, block| match block {
        Block::Media(medium) => media(medium, out),
        Block::Text(text) => Json::new(out).text("type", "text").raw("text", &text.quoted).end(),
        _ => out.push_str("null"),
    });
}

/// The address of a medium, as a data URL where the bytes are at hand.
pub(super) fn url_of(medium: &Medium) -> String {
    match &medium.data {
        Data::Base64(data) => format!("data:{};base64,{data}", medium.media_type),
        Data::Url(url) => url.clone(),
    }
}

/// The name of a file; the API wants one.
pub(super) fn filename(medium: &Medium) -> &str {
    medium.filename.as_deref().unwrap_or("file.pdf")
}

fn media(medium: &Medium, out: &mut String) {
    let json = Json::new(out);
    match (&medium.data, medium.media_type.as_str()) {
        (Data::Base64(data), kind @ ("audio/wav" | "audio/mpeg")) => {
            let format = if kind == "audio/wav" { "wav" } else { "mp3" };
            let audio = object(|json| json.text("data", data).text("format", format));
            json.text("type", "input_audio").raw("input_audio", &audio).end();
        }
        (_, "application/pdf") => {
            let file = object(|json| json.text("filename", filename(medium)).text("file_data", &url_of(medium)));
            json.text("type", "file").raw("file", &file).end();
        }
        _ => {
            let image = object(|json| json.text("url", &url_of(medium)));
            json.text("type", "image_url").raw("image_url", &image).end();
        }
    }
}

/// Judges by the API's reference and its error messages.
#[derive(Clone, Default)]
struct Judge {
    seen: HashSet<String>,
    /// Calls of the turn before that wait for results.
    owed: Vec<String>,
    last: Option<String>,
}

impl Validator for Judge {
    fn message(&mut self, message: &Value) -> Result<(), String> {
        let role = message.get("role").and_then(Value::as_str).ok_or("a message has no role")?.to_owned();
        if role != "tool" && !self.owed.is_empty() {
            return Err("calls are not followed by a result each".into());
        }
        let content = message.get("content").unwrap_or(&Value::Null);
        match role.as_str() {
            "system" | "user" => full(content)?,
            "assistant" => self.assistant(message, content)?,
            "tool" => {
                let id = message.get("tool_call_id").and_then(Value::as_str).ok_or("a result has no id")?;
                let at = self.owed.iter().position(|o| o == id).ok_or("a result has no call right before it")?;
                self.owed.remove(at);
                filled(content)?;
            }
            _ => return Err("unknown role".into()),
        }
        self.last = Some(role);
        Ok(())
    }

    fn end(&self, prefill: bool) -> Result<(), String> {
        match self.last.as_deref() {
            _ if !self.owed.is_empty() => Err("calls are not followed by a result each".into()),
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
    fn assistant(&mut self, message: &Value, content: &Value) -> Result<(), String> {
        let Some(calls) = message.get("tool_calls") else { return filled(content) };
        if !content.is_null() {
            filled(content)?;
        }
        let calls = calls.as_array().filter(|c| !c.is_empty()).ok_or("tool_calls is not a list of some")?;
        for call in calls {
            let id = call.get("id").and_then(Value::as_str).ok_or("a call has no id")?;
            if id.is_empty() || id.len() > 40 {
                return Err("an id is longer than 40 characters or empty".into());
            }
            if !self.seen.insert(id.to_owned()) {
                return Err("an id stands twice".into());
            }
            let args = call.at(&["function", "arguments"]).and_then(Value::as_str).ok_or("arguments are not a text")?;
            let args = json::parse(args, Surrogates::Refuse).map_err(|_| "arguments are not JSON")?;
            args.as_object().ok_or("arguments are not an object")?;
            let name = call.at(&["function", "name"]).and_then(Value::as_str).unwrap_or_default();
            tool_name(name, 64)?;
            if call.get("type").and_then(Value::as_str) != Some("function") {
                return Err("a call is not of type function".into());
            }
            self.owed.push(id.to_owned());
        }
        Ok(())
    }
}

/// Fails when a tool name is not what providers take.
pub(super) fn tool_name(name: &str, most: usize) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let good = !name.is_empty() && name.len() <= most && name.bytes().all(plain);
    if good { Ok(()) } else { Err("a tool name is not legal".into()) }
}

/// Fails when a value is not a text that shows something.
pub(super) fn filled(value: &Value) -> Result<(), String> {
    match value.as_str() {
        Some(text) if !is_blank(text) => Ok(()),
        Some(_) => Err("a text is blank".into()),
        None => Err("a text is missing".into()),
    }
}

fn full(content: &Value) -> Result<(), String> {
    let Some(parts) = content.as_array() else { return filled(content) };
    if parts.is_empty() {
        return Err("a message is empty".into());
    }
    for part in parts {
        let at = |path: &[&str]| part.at(path).unwrap_or(&Value::Null);
        match part.get("type").and_then(Value::as_str) {
            Some("text") => filled(at(&["text"]))?,
            Some("image_url") => {
                let url = at(&["image_url", "url"]).as_str().unwrap_or_default();
                if !url.starts_with("http") && !url.starts_with("data:image/") {
                    return Err("an image has no address".into());
                }
            }
            Some("input_audio") => {
                filled(at(&["input_audio", "data"]))?;
                filled(at(&["input_audio", "format"]))?;
            }
            Some("file") => filled(at(&["file", "file_data"]))?,
            _ => return Err("unknown kind of part".into()),
        }
    }
    Ok(())
}
