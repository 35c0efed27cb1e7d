//! OpenAI Responses: a list of items.

use std::collections::HashSet;

use super::media::{Data, Medium};
use super::openai_chat::{filename, filled, is_gs, result_text, tool_name, url_of};
use super::origin::ReasoningRule;
use super::round::{Answer, Block, CallBlock, Json, Round, TextBlock, Thought, object, write_list};
use super::{Place, RequestOptions, Target, Validator};
use crate::core::json::{self, Surrogates, Value};

/// The target.
pub(super) const TARGET: Target = Target {
    name: "openai-responses",
    family: Some("openai"),
    id_pattern: "^[a-zA-Z0-9_-]{1,64}$",
    first_is_user: false,
    prefill: true,
    calls_last: false,
    provider_calls: false,
    media_in_results: true,
    reasoning: ReasoningRule::Sealed,
    system_in_list: true,
    system: |text| {
        let part = object(|json| json.text("type", "input_text").text("text", text));
        object(|json| json.text("type", "message").text("role", "system").raw("content", &format!("[{part}]")))
    },
    media: [500, 20_000_000, 36_000_000, 65_535],
    crowd: None,
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
    for block in &round.assistant {
        match block {
            Block::Text(text) => out.push(said(text)),
            Block::Thought(thought) => out.push(reasoning(thought)),
            Block::Call(call) => out.push(function_call(call)),
            Block::Media(_) | Block::Provided(_) => {}
        }
    }
    out.extend(round.results.iter().map(output));
    if !round.user.is_empty() {
        let content = |out: &mut String| write_list(out, &round.user, |out, block| input(block, out));
        out.push(object(|json| json.text("type", "message").text("role", "user").with("content", content)));
    }
}

/// An item that has no id of the provider's gets one from its place, which is the same every time.
fn said(text: &TextBlock) -> String {
    let own = || format!("msg_{}_{}", text.place.0, text.place.1);
    let id = text.item_id.clone().unwrap_or_else(own);
    object(|json| {
        json.text("type", "message").text("id", &id).text("role", "assistant").text("status", "completed").with(
            "content",
            |out| {
                out.push('[');
                Json::new(out).text("type", "output_text").raw("text", &text.quoted).raw("annotations", "[]").end();
                out.push(']');
            },
        )
    })
}

fn reasoning(thought: &Thought) -> String {
    let summary = |out: &mut String| {
        let shown = (thought.text != "\"\"").then_some(&thought.text);
        write_list(out, shown, |out, text| Json::new(out).text("type", "summary_text").raw("text", text).end());
    };
    object(|json| {
        json.text("type", "reasoning")
            .maybe("id", thought.item_id.as_deref())
            .with("summary", summary)
            .maybe("encrypted_content", thought.encrypted.as_deref())
    })
}

fn function_call(call: &CallBlock) -> String {
    object(|json| {
        json.text("type", "function_call")
            .maybe("id", call.item_id.as_deref())
            .text("call_id", &call.id)
            .text("name", &call.name)
            .text("arguments", &call.text)
    })
}

fn output(answer: &Answer) -> String {
    let plain = answer.content.iter().all(|b| matches!(b, Block::Text(_)));
    object(|json| {
        let json = json.text("type", "function_call_output").text("call_id", &answer.id);
        match plain {
            true => json.text("output", &result_text(answer)),
            false => json.with("output", |out| write_list(out, &answer.content, |out, block| input(block, out))),
        }
    })
}

fn input(block: &Block, out: &mut String) {
    let json = Json::new(out);
    match block {
        Block::Text(text) => json.text("type", "input_text").raw("text", &text.quoted).end(),
        Block::Media(medium) if medium.is_image() => {
            json.text("type", "input_image").text("detail", "auto").text("image_url", &url_of(medium)).end();
        }
        Block::Media(medium) => match &medium.data {
            Data::Url(url) => json.text("type", "input_file").text("file_url", url).end(),
            Data::Base64(_) => {
                let json = json.text("type", "input_file").text("filename", filename(medium));
                json.text("file_data", &url_of(medium)).end();
            }
        },
        _ => json.end(),
    }
}

/// Judges by the API's reference and its error messages.
#[derive(Clone, Default)]
struct Judge {
    calls: HashSet<String>,
    items: HashSet<String>,
    owed: HashSet<String>,
    /// A reasoning item waits for the item it led to.
    leads: bool,
    last: Option<&'static str>,
}

impl Validator for Judge {
    fn message(&mut self, item: &Value) -> Result<(), String> {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        if let Some(id) = text("id") {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            if id.is_empty() || id.len() > 64 || !id.bytes().all(plain) {
                return Err("an item id is not legal".into());
            }
            if !self.items.insert(id.to_owned()) {
                return Err("an item stands twice".into());
            }
        }
        let kind = text("type").unwrap_or("message");
        if self.leads && (kind == "function_call_output" || (kind == "message" && text("role") != Some("assistant"))) {
            return Err("a reasoning item is not followed by the item it led to".into());
        }
        self.leads = kind == "reasoning";
        match kind {
            "message" => self.said(item),
            "reasoning" => self.reasoning(item),
            "function_call" => self.call(item),
            "function_call_output" => self.output(item),
            _ => Err("unknown kind of item".into()),
        }
    }

    fn end(&self, prefill: bool) -> Result<(), String> {
        match self.last {
            _ if !self.owed.is_empty() => Err("a call has no output".into()),
            _ if self.leads => Err("a reasoning item is not followed by the item it led to".into()),
            Some("user" | "output") => Ok(()),
            Some("assistant") if prefill => Ok(()),
            _ => Err("the last item is not the user's or an output".into()),
        }
    }

    fn boxed(&self) -> Box<dyn Validator> {
        Box::new(self.clone())
    }
}

impl Judge {
    fn said(&mut self, item: &Value) -> Result<(), String> {
        let role = item.get("role").and_then(Value::as_str).unwrap_or_default();
        let own = if role == "assistant" { "output_text" } else { "input_text" };
        self.last = match role {
            "assistant" => Some("assistant"),
            "user" => Some("user"),
            "system" | "developer" => self.last,
            _ => return Err("unknown role".into()),
        };
        if role == "user" && !self.owed.is_empty() {
            return Err("a call has no output before the user speaks".into());
        }
        let content = item.get("content").unwrap_or(&Value::Null);
        let Some(parts) = content.as_array() else { return filled(content) };
        if parts.is_empty() {
            return Err("a message is empty".into());
        }
        parts.iter().try_for_each(|part| input_part(part, own))
    }

    fn reasoning(&mut self, item: &Value) -> Result<(), String> {
        filled(item.get("id").unwrap_or(&Value::Null))?;
        filled(item.get("encrypted_content").unwrap_or(&Value::Null))?;
        item.get("summary").and_then(Value::as_array).map(|_| ()).ok_or_else(|| "a summary is missing".into())
    }

    fn call(&mut self, item: &Value) -> Result<(), String> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).ok_or_else(|| format!("{key} is missing"));
        let id = text("call_id")?;
        if id.is_empty() || id.len() > 64 || !self.calls.insert(id.to_owned()) {
            return Err("a call id is not legal or stands twice".into());
        }
        if item.get("id").is_some_and(|i| i.as_str().is_none_or(|i| !i.starts_with("fc_"))) {
            return Err("an item id does not begin with fc_".into());
        }
        tool_name(text("name")?, 64)?;
        let args = json::parse(text("arguments")?, Surrogates::Refuse).map_err(|_| "arguments are not JSON")?;
        args.as_object().ok_or("arguments are not an object")?;
        self.owed.insert(id.to_owned());
        self.last = Some("call");
        Ok(())
    }

    fn output(&mut self, item: &Value) -> Result<(), String> {
        let id = item.get("call_id").and_then(Value::as_str).unwrap_or_default();
        if !self.owed.remove(id) {
            return Err("an output has no call".into());
        }
        self.last = Some("output");
        let output = item.get("output").unwrap_or(&Value::Null);
        match output.as_array() {
            Some(parts) if !parts.is_empty() => parts.iter().try_for_each(|part| input_part(part, "input_text")),
            _ => filled(output),
        }
    }
}

fn input_part(part: &Value, own: &str) -> Result<(), String> {
    let at = |key: &str| part.get(key).unwrap_or(&Value::Null);
    match part.get("type").and_then(Value::as_str) {
        Some(kind) if kind == own => filled(at("text")),
        Some("input_image") if own == "input_text" => filled(at("image_url")),
        Some("input_file") if own == "input_text" => filled(at("file_data")).or_else(|_| filled(at("file_url"))),
        _ => Err("a part does not belong there".into()),
    }
}
