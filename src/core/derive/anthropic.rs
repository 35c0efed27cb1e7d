//! Anthropic Messages: two roles in turn, results first, thinking byte for byte.

use std::collections::HashSet;

use super::media::{Data, Medium};
use super::openai_chat::{filled, is_gs, tool_name};
use super::origin::ReasoningRule;
use super::round::{Answer, Block, Json, Round, Thought, object, quote, write_list};
use super::{Place, RequestOptions, Target, Validator};
use crate::core::json::Value;

/// The target.
pub(super) const TARGET: Target = Target {
    name: "anthropic",
    family: Some("anthropic"),
    id_pattern: "^[a-zA-Z0-9_-]{1,64}$",
    first_is_user: true,
    prefill: true,
    calls_last: true,
    provider_calls: false,
    media_in_results: true,
    reasoning: ReasoningRule::Signed,
    system_in_list: false,
    system: quote,
    // 5 MB each and 32 MB in all count the base64 text.
    media: [100, 3_932_160, 22_000_000, 8_000],
    crowd: Some((20, 2_000)),
    takes,
    render,
    validator: || Box::new(Judge::default()),
};

fn takes(medium: &Medium, place: Place) -> bool {
    let known = match medium.media_type.as_str() {
        "image/png" | "image/jpeg" | "image/webp" | "image/gif" | "application/pdf" => !is_gs(medium),
        _ => false,
    };
    known && place != Place::Assistant
}

fn render(round: &Round, _: &RequestOptions, out: &mut Vec<String>) {
    if !round.assistant.is_empty() {
        let content = |out: &mut String| write_list(out, &round.assistant, |out, block| write_block(block, out));
        out.push(object(|json| json.text("role", "assistant").with("content", content)));
    }
    if round.results.is_empty() && round.user.is_empty() {
        return;
    }
    let content = |out: &mut String| {
        let blocks = round.results.iter().map(Either::Result).chain(round.user.iter().map(Either::Block));
        write_list(out, blocks, |out, block| match block {
            Either::Result(answer) => result(answer, out),
            Either::Block(block) => write_block(block, out),
        });
    };
    out.push(object(|json| json.text("role", "user").with("content", content)));
}

enum Either<'a> {
    Result(&'a Answer),
    Block(&'a Block),
}

fn write_block(block: &Block, out: &mut String) {
    match block {
        Block::Text(text) => Json::new(out).text("type", "text").raw("text", &text.quoted).end(),
        Block::Thought(t) => thinking(t, out),
        Block::Call(call) => {
            let json = Json::new(out).text("type", "tool_use").text("id", &call.id);
            json.text("name", &call.name).raw("input", &call.object).end();
        }
        Block::Media(medium) => media(medium, out),
        Block::Provided(_) => out.push_str("null"),
    }
}

fn thinking(thought: &Thought, out: &mut String) {
    match (&thought.signature, &thought.redacted) {
        (None, Some(redacted)) => Json::new(out).text("type", "redacted_thinking").raw("data", redacted).end(),
        (signature, _) => {
            let json = Json::new(out).text("type", "thinking").raw("thinking", &thought.text);
            json.maybe("signature", signature.as_deref()).end();
        }
    }
}

fn media(medium: &Medium, out: &mut String) {
    let kind = if medium.is_image() { "image" } else { "document" };
    let source = object(|json| match &medium.data {
        Data::Base64(data) => json.text("type", "base64").text("media_type", &medium.media_type).text("data", data),
        Data::Url(url) => json.text("type", "url").text("url", url),
    });
    let json = Json::new(out).text("type", kind).raw("source", &source);
    match medium.filename.as_deref().filter(|_| kind == "document") {
        Some(name) => json.text("title", name).end(),
        None => json.end(),
    }
}

fn result(answer: &Answer, out: &mut String) {
    let json = Json::new(out).text("type", "tool_result").text("tool_use_id", &answer.id);
    let plain = answer.content.iter().all(|b| matches!(b, Block::Text(_)));
    let json = match plain {
        true => json.text("content", &answer.plain()),
        false => json.with("content", |out| write_list(out, &answer.content, |out, block| write_block(block, out))),
    };
    if answer.is_error { json.raw("is_error", "true").end() } else { json.end() }
}

/// Judges by the API's reference and its error messages.
#[derive(Clone, Default)]
struct Judge {
    seen: HashSet<String>,
    owed: Vec<String>,
    last: Option<String>,
    /// How the last assistant turn ends.
    tail: Option<(String, String)>,
    thinks: bool,
}

impl Validator for Judge {
    fn message(&mut self, message: &Value) -> Result<(), String> {
        let role = message.get("role").and_then(Value::as_str).ok_or("a message has no role")?.to_owned();
        match (self.last.as_deref(), role.as_str()) {
            (None, "user") | (Some("user"), "assistant") | (Some("assistant"), "user") => {}
            (None, _) => return Err("the first message is not the user's".into()),
            _ => return Err("roles do not take turns".into()),
        }
        let content = message.get("content").unwrap_or(&Value::Null);
        let blocks = content.as_array().ok_or("content is not a list of blocks")?;
        if blocks.is_empty() {
            return Err("a message is empty".into());
        }
        if role == "user" {
            self.user(blocks)?
        } else {
            self.assistant(blocks)?
        }
        self.last = Some(role);
        Ok(())
    }

    fn end(&self, prefill: bool) -> Result<(), String> {
        match (self.last.as_deref(), &self.tail) {
            (Some("user"), _) => Ok(()),
            (Some("assistant"), Some((kind, text))) if prefill && kind == "text" => {
                if self.thinks {
                    return Err("a turn to go on with holds thinking".into());
                }
                if text.ends_with(char::is_whitespace) {
                    Err("the last text ends in white space".into())
                } else {
                    Ok(())
                }
            }
            _ => Err("the last message is not the user's".into()),
        }
    }

    fn boxed(&self) -> Box<dyn Validator> {
        Box::new(self.clone())
    }
}

impl Judge {
    fn user(&mut self, blocks: &[Value]) -> Result<(), String> {
        let mut results_over = false;
        for block in blocks {
            let is_result = kind(block) == "tool_result";
            if is_result && results_over {
                return Err("a result stands after other content".into());
            }
            results_over |= !is_result;
            if is_result { self.result(block)? } else { input(block)? }
        }
        if self.owed.is_empty() { Ok(()) } else { Err("tool_use ids without tool_result blocks right after".into()) }
    }

    fn result(&mut self, block: &Value) -> Result<(), String> {
        let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        let at = self.owed.iter().position(|o| o == id).ok_or("a result refers to no call of the turn before")?;
        self.owed.remove(at);
        let failed = block.get("is_error").and_then(Value::as_bool) == Some(true);
        match block.get("content") {
            None => Ok(()),
            Some(Value::Array(parts)) if !parts.is_empty() => {
                if failed && parts.iter().any(|p| kind(p) != "text") {
                    return Err("a failed result holds more than text".into());
                }
                parts.iter().try_for_each(input)
            }
            Some(other) => filled(other),
        }
    }

    fn assistant(&mut self, blocks: &[Value]) -> Result<(), String> {
        let mut calls_begun = false;
        self.thinks = false;
        for block in blocks {
            let text = |key: &str| block.get(key).and_then(Value::as_str);
            if calls_begun && kind(block) != "tool_use" {
                return Err("something stands between a call and its result".into());
            }
            match kind(block) {
                "text" => filled(block.get("text").unwrap_or(&Value::Null))?,
                "thinking" => {
                    self.thinks = true;
                    text("thinking").ok_or("thinking has no text")?;
                    filled(block.get("signature").unwrap_or(&Value::Null))?;
                }
                "redacted_thinking" => {
                    self.thinks = true;
                    filled(block.get("data").unwrap_or(&Value::Null))?;
                }
                "tool_use" => {
                    calls_begun = true;
                    self.call(block)?;
                }
                _ => return Err("unknown kind of block".into()),
            }
        }
        let last = blocks.last().unwrap_or(&Value::Null);
        if kind(last).ends_with("thinking") {
            return Err("the final block is thinking".into());
        }
        let text = last.get("text").and_then(Value::as_str).unwrap_or_default();
        self.tail = Some((kind(last).to_owned(), text.to_owned()));
        Ok(())
    }

    fn call(&mut self, block: &Value) -> Result<(), String> {
        let id = block.get("id").and_then(Value::as_str).unwrap_or_default();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if id.is_empty() || id.len() > 64 || !id.bytes().all(plain) {
            return Err("an id is not legal".into());
        }
        if !self.seen.insert(id.to_owned()) {
            return Err("tool_use ids must be unique".into());
        }
        tool_name(block.get("name").and_then(Value::as_str).unwrap_or_default(), 128)?;
        block.get("input").and_then(Value::as_object).ok_or("input is not an object")?;
        self.owed.push(id.to_owned());
        Ok(())
    }
}

fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn input(block: &Value) -> Result<(), String> {
    match kind(block) {
        "text" => filled(block.get("text").unwrap_or(&Value::Null)),
        "image" | "document" => {
            let source = block.get("source").unwrap_or(&Value::Null);
            let media_type = source.get("media_type").and_then(Value::as_str);
            match source.get("type").and_then(Value::as_str) {
                Some("url") => filled(source.get("url").unwrap_or(&Value::Null)),
                Some("base64") => {
                    let images = ["image/jpeg", "image/png", "image/gif", "image/webp"];
                    let known = media_type.is_some_and(|t| images.contains(&t) || t == "application/pdf");
                    if known {
                        filled(source.get("data").unwrap_or(&Value::Null))
                    } else {
                        Err("a type is not taken".into())
                    }
                }
                _ => Err("a source is missing".into()),
            }
        }
        _ => Err("unknown kind of block".into()),
    }
}
