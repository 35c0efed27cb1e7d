//! Gemini generateContent: signatures on parts, as many responses as calls.

use super::media::{Data, Medium};
use super::openai_chat::filled;
use super::origin::ReasoningRule;
use super::round::{Answer, Block, CallBlock, Json, Round, object, quote, write_list};
use super::{Place, RequestOptions, Target, Validator};
use crate::core::json::Value;

/// The target.
pub(super) const TARGET: Target = Target {
    name: "gemini",
    family: Some("google"),
    id_pattern: "^[!-~]{1,64}$",
    first_is_user: true,
    prefill: false,
    calls_last: false,
    provider_calls: false,
    media_in_results: false,
    reasoning: ReasoningRule::Part,
    system_in_list: false,
    system: |text| format!("{{\"parts\":[{{\"text\":{}}}]}}", quote(text)),
    // The whole request may have 20 MB, base64 counted.
    media: [3_000, 14_000_000, 14_000_000, 65_535],
    crowd: None,
    takes,
    render,
    validator: || Box::new(Judge::default()),
};

/// What the documentation names for calls that come from elsewhere.
const NO_SIGNATURE: &str = "\"skip_thought_signature_validator\"";

fn takes(medium: &Medium, place: Place) -> bool {
    let kind = medium.media_type.as_str();
    let known = matches!(
        kind,
        "image/png" | "image/jpeg" | "image/webp" | "image/heic" | "image/heif" | "application/pdf" | "text/plain"
    ) || kind.starts_with("audio/")
        || kind.starts_with("video/");
    known && (place != Place::Assistant || matches!(medium.data, Data::Base64(_)))
}

fn render(round: &Round, options: &RequestOptions, out: &mut Vec<String>) {
    if !round.assistant.is_empty() {
        let unsigned = first_unsigned(&round.assistant, options);
        let parts = |out: &mut String| {
            write_list(out, &round.assistant, |out, block| part(block, unsigned.as_deref(), out));
        };
        out.push(object(|json| json.text("role", "model").with("parts", parts)));
    }
    if round.results.is_empty() && round.user.is_empty() {
        return;
    }
    out.push(object(|json| {
        json.text("role", "user").with("parts", |out| {
            out.push('[');
            for (i, answer) in round.results.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                response(answer, out);
            }
            for (i, block) in round.user.iter().enumerate() {
                if i > 0 || !round.results.is_empty() {
                    out.push(',');
                }
                part(block, None, out);
            }
            out.push(']');
        })
    }));
}

/// The id of the first call of a turn when it has no signature and the model wants one.
fn first_unsigned(blocks: &[Block], options: &RequestOptions) -> Option<String> {
    let old = |m: &String| m.contains("gemini-1") || m.contains("gemini-2") || m.contains("gemma");
    if options.model.as_ref().is_some_and(old) {
        return None;
    }
    let first = blocks.iter().find_map(|b| if let Block::Call(c) = b { Some(c) } else { None })?;
    first.signature.is_none().then(|| first.id.clone())
}

fn part(block: &Block, unsigned: Option<&str>, out: &mut String) {
    let json = Json::new(out);
    match block {
        Block::Text(text) => json.raw("text", &text.quoted).maybe("thoughtSignature", text.signature.as_deref()).end(),
        Block::Thought(t) => {
            json.raw("text", &t.text).raw("thought", "true").maybe("thoughtSignature", t.signature.as_deref()).end();
        }
        Block::Call(call) => {
            let skip = (unsigned == Some(&call.id)).then_some(NO_SIGNATURE);
            json.with("functionCall", |out| function(call, out))
                .maybe("thoughtSignature", call.signature.as_deref().or(skip))
                .end();
        }
        Block::Media(medium) => match &medium.data {
            Data::Base64(data) => {
                let blob = object(|json| json.text("mimeType", &medium.media_type).text("data", data));
                json.raw("inlineData", &blob).end();
            }
            Data::Url(url) => {
                let file = object(|json| json.text("mimeType", &medium.media_type).text("fileUri", url));
                json.raw("fileData", &file).end();
            }
        },
        Block::Provided(_) => json.end(),
    }
}

fn function(call: &CallBlock, out: &mut String) {
    Json::new(out).text("id", &call.id).text("name", &call.name).raw("args", &call.object).end();
}

fn response(answer: &Answer, out: &mut String) {
    let key = if answer.is_error { "error" } else { "output" };
    let body = object(|json| json.text(key, &answer.plain()));
    let response = object(|json| json.text("id", &answer.id).text("name", &answer.name).raw("response", &body));
    Json::new(out).raw("functionResponse", &response).end();
}

/// Judges by the API's reference and its error messages.
#[derive(Clone, Default)]
struct Judge {
    /// Names of the calls of the turn before.
    owed: Vec<(String, String)>,
    seen: std::collections::HashSet<String>,
    last: Option<String>,
}

impl Validator for Judge {
    fn message(&mut self, message: &Value) -> Result<(), String> {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned();
        match (self.last.as_deref(), role.as_str()) {
            (None | Some("model"), "user") | (Some("user"), "model") => {}
            _ => return Err("turns do not begin with the user and alternate".into()),
        }
        let parts = message.get("parts").and_then(Value::as_array).filter(|p| !p.is_empty());
        let parts = parts.ok_or("a turn has no parts")?;
        let owed = std::mem::take(&mut self.owed);
        let responses: Vec<&Value> = parts.iter().filter_map(|p| p.get("functionResponse")).collect();
        if responses.len() != owed.len() {
            return Err("the number of function responses is not that of the function calls".into());
        }
        for ((id, name), response) in owed.iter().zip(responses) {
            let text = |key: &str| response.get(key).and_then(Value::as_str);
            if text("name") != Some(name) || text("id") != Some(id) {
                return Err("a response is not that of its call".into());
            }
            response.get("response").and_then(Value::as_object).ok_or("a response is not an object")?;
        }
        for part in parts {
            self.part(part, &role)?;
        }
        self.last = Some(role);
        Ok(())
    }

    fn end(&self, _: bool) -> Result<(), String> {
        match self.last.as_deref() {
            Some("user") => Ok(()),
            _ => Err("the last turn is not the user's".into()),
        }
    }

    fn boxed(&self) -> Box<dyn Validator> {
        Box::new(self.clone())
    }
}

impl Judge {
    fn part(&mut self, part: &Value, role: &str) -> Result<(), String> {
        let kinds = ["text", "functionCall", "functionResponse", "inlineData", "fileData"];
        if kinds.iter().filter(|k| part.get(k).is_some()).count() != 1 {
            return Err("a part holds not exactly one thing".into());
        }
        let signed = part.get("thoughtSignature").is_some();
        if signed && role != "model" {
            return Err("a signature stands in a turn of the user's".into());
        }
        if let Some(text) = part.get("text") {
            // A summary of thoughts may be empty where its signature is what counts.
            return if signed && part.get("thought").is_some() { Ok(()) } else { filled(text) };
        }
        let at = |path: &[&str]| part.at(path).unwrap_or(&Value::Null);
        if let Some(call) = part.get("functionCall") {
            if role != "model" {
                return Err("a call stands in a turn of the user's".into());
            }
            let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default();
            call.get("args").and_then(Value::as_object).ok_or("args are not an object")?;
            filled(at(&["functionCall", "name"]))?;
            if !self.seen.insert(text("id").to_owned()) {
                return Err("an id stands twice".into());
            }
            self.owed.push((text("id").to_owned(), text("name").to_owned()));
        }
        if part.get("inlineData").is_some() {
            filled(at(&["inlineData", "mimeType"]))?;
            filled(at(&["inlineData", "data"]))?;
        }
        if part.get("fileData").is_some() {
            filled(at(&["fileData", "fileUri"]))?;
            if role == "model" {
                return Err("a file address stands in a turn of the model's".into());
            }
        }
        if part.get("functionResponse").is_some() && role != "user" {
            return Err("a response stands in a turn of the model's".into());
        }
        Ok(())
    }
}
