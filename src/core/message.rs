//! Provider-neutral messages: what one event says, borrowed from its stored text.
//!
//! A message comes from exactly one event. Payloads of an odd shape (made by hand, imported, from another version) give
//! what can be read of them and never an error.

use super::event::EventView;
use super::json::write_string;
use super::tape::{Raw, Shape, Tape, Text};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user, or text the harness puts in the user's place.
    User,
    /// The model.
    Assistant,
    /// The answer to one tool call.
    Tool,
}

impl Role {
    /// Returns the role of the message an event of this type makes, if it makes one.
    pub fn of(kind: &str) -> Option<Role> {
        match kind {
            "user/message" | "context/message" | "context/injected" | "steering/message" | "session/compacted" => {
                Some(Role::User)
            }
            "assistant/message" => Some(Role::Assistant),
            "tool/result" => Some(Role::Tool),
            _ => None,
        }
    }

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// One message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part<'a>>,
    /// Seq of the event it came from.
    pub source: u64,
    /// Who made it, for an assistant.
    pub origin: Origin<'a>,
    /// An answer that was cut off.
    pub partial: bool,
    /// Parts that could not be read at all.
    pub unreadable: usize,
}

/// Which model made an answer, as far as the log says.
#[derive(Clone, Debug, Default)]
pub struct Origin<'a> {
    /// Such as `anthropic`.
    pub provider: Option<Text<'a>>,
    /// Such as `anthropic.messages`.
    pub api: Option<Text<'a>>,
    /// Such as `claude-sonnet-4-5`.
    pub model: Option<Text<'a>>,
}

/// A piece of a message.
#[derive(Clone, Debug)]
pub enum Part<'a> {
    /// Text.
    Text(TextPart<'a>),
    /// Reasoning and its opaque fields.
    Reasoning(Reasoning<'a>),
    /// A call the model asks for.
    Call(Call<'a>),
    /// The result of a call.
    Result(Outcome<'a>),
    /// An image or a file.
    Media(Media<'a>),
}

/// Text, perhaps with the signature some providers put on it.
#[derive(Clone, Debug)]
pub struct TextPart<'a> {
    /// The text.
    pub text: Text<'a>,
    /// `thoughtSignature`
    pub signature: Option<Text<'a>>,
    /// `itemId`
    pub item_id: Option<Text<'a>>,
    raw: Option<&'a str>,
}

/// Reasoning and its opaque fields.
#[derive(Clone, Debug)]
pub struct Reasoning<'a> {
    /// What can be read of it.
    pub text: Text<'a>,
    /// Proof of origin.
    pub signature: Option<Text<'a>>,
    /// A block that is opaque as a whole.
    pub redacted: Option<Text<'a>>,
    /// The provider's id of the item.
    pub item_id: Option<Text<'a>>,
    /// The provider's sealed copy.
    pub encrypted: Option<Text<'a>>,
    raw: Option<&'a str>,
}

/// A call the model asks for.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Its id; may be empty when the payload had none.
    pub id: Text<'a>,
    /// The tool.
    pub name: Text<'a>,
    /// `args` as JSON text, when there.
    pub args: Option<&'a str>,
    /// The arguments as the model wrote them.
    pub raw_args: Option<Text<'a>>,
    /// The provider's id of the item.
    pub item_id: Option<Text<'a>>,
    /// Proof of origin.
    pub signature: Option<Text<'a>>,
    /// Run by the provider, not by us.
    pub provider: bool,
    raw: Option<&'a str>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    /// Id of the call.
    pub id: Text<'a>,
    /// The tool, when the payload says so.
    pub name: Option<Text<'a>>,
    /// What came out: texts and media.
    pub content: Content<'a>,
    /// Whether it failed.
    pub is_error: bool,
    /// Written by a recovery, not by the tool.
    pub synthetic: bool,
}

/// What a tool gave back.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// One text.
    Text(Text<'a>),
    /// Texts and media.
    Parts(Vec<Part<'a>>),
}

/// An image or a file.
#[derive(Clone, Debug)]
pub struct Media<'a> {
    /// `image` or `file`.
    pub is_image: bool,
    /// Such as `image/png`.
    pub media_type: Text<'a>,
    /// Where its bytes are.
    pub source: Source<'a>,
    /// Its name.
    pub filename: Option<Text<'a>>,
    raw: Option<&'a str>,
}

/// Where the bytes of a medium are.
#[derive(Clone, Debug)]
pub enum Source<'a> {
    /// Here, as base64.
    Data(Text<'a>),
    /// At an address.
    Url(Text<'a>),
    /// In the store, under its hash.
    Blob(Text<'a>),
}

impl<'a> Message<'a> {
    /// Reads the message an event makes; `tape` is the index of its data.
    pub fn read(event: &EventView<'a>, tape: &Tape<'a>) -> Option<Message<'a>> {
        let role = Role::of(event.kind)?;
        let data = tape.root();
        let mut message = Message {
            role,
            parts: Vec::new(),
            source: event.seq,
            origin: Origin::default(),
            partial: false,
            unreadable: 0,
        };
        match event.kind {
            "user/message" => message.read_user(data, !tape.is_odd()),
            "assistant/message" => message.read_assistant(data, !tape.is_odd()),
            "tool/result" => {
                let outcome = read_outcome(data, !tape.is_odd(), &mut message.unreadable);
                message.parts.push(Part::Result(outcome));
            }
            "context/message" => message.text(wrapped(data, "context", data.string_at("source"))),
            "steering/message" => message.text(wrapped(data, "steering", None)),
            "session/compacted" => message.text(data.string_at("summary")),
            _ => message.text(data.string_at("text")),
        }
        Some(message)
    }

    fn text(&mut self, text: Option<Text<'a>>) {
        self.parts.extend(text.map(|text| Part::Text(TextPart { text, signature: None, item_id: None, raw: None })));
    }

    fn read_user(&mut self, data: Raw<'a, '_>, verbatim: bool) {
        let parts = data.get("parts");
        for part in parts.into_iter().flat_map(Raw::items) {
            match read_part(part, verbatim) {
                Some(part @ (Part::Text(_) | Part::Media(_))) => self.parts.push(part),
                _ => self.unreadable += 1,
            }
        }
        // Both at once: the text is the parts' own text said again, or it comes before them.
        let Some(text) = data.string_at("text") else { return };
        let said = self.parts.iter().any(|p| matches!(p, Part::Text(t) if t.text == text));
        if !said && (self.parts.is_empty() || !text.is_blank()) {
            self.parts.insert(0, Part::Text(TextPart { text, signature: None, item_id: None, raw: None }));
        }
    }

    fn read_assistant(&mut self, data: Raw<'a, '_>, verbatim: bool) {
        self.origin =
            Origin { provider: data.string_at("provider"), api: data.string_at("api"), model: data.string_at("model") };
        self.partial = data.is_true("partial");
        for part in data.get("parts").into_iter().flat_map(Raw::items) {
            match read_part(part, verbatim) {
                Some(part) => self.parts.push(part),
                None => self.unreadable += 1,
            }
        }
        if self.parts.is_empty() {
            self.text(data.string_at("text"));
        }
    }

    /// Appends the JSON text of this message, as the contract's `Message`.
    pub fn write(&self, out: &mut String) {
        out.push_str("{\"role\":\"");
        out.push_str(self.role.name());
        out.push_str("\",\"parts\":[");
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            part.write(out);
        }
        out.push_str("],\"sources\":[");
        out.push_str(&self.source.to_string());
        out.push(']');
        field(out, "provider", self.origin.provider.as_ref());
        field(out, "api", self.origin.api.as_ref());
        field(out, "model", self.origin.model.as_ref());
        if self.partial {
            out.push_str(",\"partial\":true");
        }
        out.push('}');
    }
}

/// Text of the harness in its own tag; a closing tag inside is escaped, so that content cannot leave it.
fn wrapped(data: Raw<'_, '_>, tag: &str, source: Option<Text<'_>>) -> Option<Text<'static>> {
    let text = data.string_at("text")?;
    if text.is_blank() {
        return None;
    }
    let mut out = format!("<{tag}");
    if let Some(source) = source {
        out.push_str(" source=\"");
        for c in source.plain().chars() {
            match c {
                '"' => out.push_str("&quot;"),
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                _ => out.push(c),
            }
        }
        out.push('"');
    }
    out.push('>');
    escape_closing(&text.plain(), tag, &mut out);
    out.push_str("</");
    out.push_str(tag);
    out.push('>');
    Some(Text::of(&out))
}

/// Writes `text` with every `</tag`, in any case and with any space after the slash, made harmless.
fn escape_closing(text: &str, tag: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let inner = from.get(1..).unwrap_or_default().trim_start();
        let name = inner.strip_prefix('/').map(str::trim_start).unwrap_or_default();
        let closes = name.get(..tag.len()).is_some_and(|n| n.eq_ignore_ascii_case(tag));
        out.push_str(if closes { "&lt;" } else { "<" });
        rest = from.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
}

fn read_part<'a>(part: Raw<'a, '_>, verbatim: bool) -> Option<Part<'a>> {
    let kind = part.string_at("type")?;
    let raw = verbatim.then(|| part.text());
    match kind.quoted() {
        "\"text\"" => Some(Part::Text(TextPart {
            text: part.string_at("text")?,
            signature: part.string_at("thoughtSignature"),
            item_id: part.string_at("itemId"),
            raw,
        })),
        "\"reasoning\"" => {
            let text = part.string_at("text");
            Some(Part::Reasoning(Reasoning {
                raw: raw.filter(|_| text.is_some()),
                text: text.unwrap_or_else(|| Text::of("")),
                signature: part.string_at("signature"),
                redacted: part.string_at("redacted"),
                item_id: part.string_at("itemId"),
                encrypted: part.string_at("encrypted"),
            }))
        }
        "\"tool-call\"" => Some(Part::Call(read_call(part, raw))),
        "\"tool-result\"" => {
            let mut unreadable = 0;
            Some(Part::Result(read_outcome(part, verbatim, &mut unreadable)))
        }
        "\"image\"" => read_media(part, true, raw),
        "\"file\"" => read_media(part, false, raw),
        _ => None,
    }
}

fn read_call<'a>(part: Raw<'a, '_>, raw: Option<&'a str>) -> Call<'a> {
    let whole = part.string_at("id").is_some() && part.string_at("name").is_some() && part.get("args").is_some();
    Call {
        id: read_id(part, "id"),
        name: part.string_at("name").unwrap_or_else(|| Text::of("")),
        args: part.get("args").map(|a| a.text()),
        raw_args: part.string_at("rawArgs"),
        item_id: part.string_at("itemId"),
        signature: part.string_at("thoughtSignature"),
        provider: part.is_true("providerExecuted"),
        raw: raw.filter(|_| whole),
    }
}

/// An id should be a text; a number is read as its text, anything else as no id.
fn read_id<'a>(of: Raw<'a, '_>, key: &str) -> Text<'a> {
    let Some(id) = of.get(key) else { return Text::of("") };
    match id.shape() {
        Shape::Number => Text::of(id.text()),
        _ => id.string().unwrap_or_else(|| Text::of("")),
    }
}

fn read_outcome<'a>(data: Raw<'a, '_>, verbatim: bool, unreadable: &mut usize) -> Outcome<'a> {
    let error = data.get("error").filter(|e| e.shape() == Shape::Object);
    let content = data.get("content");
    let shape = content.map_or(Shape::Null, |c| c.shape());
    let content = match (content, shape) {
        (Some(c), Shape::String) => Content::Text(c.string().unwrap_or_else(|| Text::of(""))),
        (Some(c), Shape::Array) => Content::Parts(read_content(c.items(), verbatim, unreadable)),
        (Some(c), Shape::Object) if c.get("type").is_some() => {
            Content::Parts(read_content(std::iter::once(c), verbatim, unreadable))
        }
        (Some(c), Shape::Object | Shape::Number | Shape::Bool) => Content::Text(Text::of(&c.value().to_text())),
        _ => Content::Text(error.and_then(|e| e.string_at("message")).unwrap_or_else(|| Text::of(""))),
    };
    Outcome {
        id: read_id(data, "id"),
        name: data.string_at("name"),
        content,
        is_error: data.is_true("isError") || (error.is_some() && data.get("isError").is_none()),
        synthetic: data.is_true("synthetic"),
    }
}

fn read_content<'a, 't>(
    items: impl Iterator<Item = Raw<'a, 't>>,
    verbatim: bool,
    unreadable: &mut usize,
) -> Vec<Part<'a>>
where
    'a: 't,
{
    let mut parts = Vec::new();
    for item in items {
        match read_part(item, verbatim) {
            Some(part @ (Part::Text(_) | Part::Media(_))) => parts.push(part),
            _ => match item.string().or_else(|| item.string_at("text")) {
                Some(text) => parts.push(Part::Text(TextPart { text, signature: None, item_id: None, raw: None })),
                None => *unreadable += 1,
            },
        }
    }
    parts
}

fn read_media<'a>(part: Raw<'a, '_>, is_image: bool, raw: Option<&'a str>) -> Option<Part<'a>> {
    let source = (part.string_at("data").map(Source::Data))
        .or_else(|| part.string_at("blob").map(Source::Blob))
        .or_else(|| part.string_at("url").map(Source::Url))?;
    let media_type = part.string_at("mediaType");
    Some(Part::Media(Media {
        is_image,
        raw: raw.filter(|_| media_type.is_some()),
        media_type: media_type
            .unwrap_or_else(|| Text::of(if is_image { "image/png" } else { "application/octet-stream" })),
        source,
        filename: part.string_at("filename"),
    }))
}

fn field(out: &mut String, key: &str, value: Option<&Text<'_>>) {
    if let Some(value) = value {
        out.push_str(",\"");
        out.push_str(key);
        out.push_str("\":");
        out.push_str(value.quoted());
    }
}

impl Part<'_> {
    fn raw(&self) -> Option<&str> {
        match self {
            Part::Text(p) => p.raw,
            Part::Reasoning(p) => p.raw,
            Part::Call(p) => p.raw,
            Part::Media(p) => p.raw,
            Part::Result(_) => None,
        }
    }

    fn write(&self, out: &mut String) {
        match (self.raw(), self) {
            (Some(raw), _) => out.push_str(raw),
            (None, Part::Text(p)) => {
                out.push_str("{\"type\":\"text\",\"text\":");
                out.push_str(p.text.quoted());
                field(out, "thoughtSignature", p.signature.as_ref());
                field(out, "itemId", p.item_id.as_ref());
                out.push('}');
            }
            (None, Part::Reasoning(p)) => p.write(out),
            (None, Part::Call(p)) => p.write(out),
            (None, Part::Result(p)) => p.write(out),
            (None, Part::Media(p)) => p.write(out),
        }
    }
}

impl Reasoning<'_> {
    fn write(&self, out: &mut String) {
        out.push_str("{\"type\":\"reasoning\",\"text\":");
        out.push_str(self.text.quoted());
        field(out, "signature", self.signature.as_ref());
        field(out, "redacted", self.redacted.as_ref());
        field(out, "itemId", self.item_id.as_ref());
        field(out, "encrypted", self.encrypted.as_ref());
        out.push('}');
    }
}

impl Call<'_> {
    fn write(&self, out: &mut String) {
        out.push_str("{\"type\":\"tool-call\",\"id\":");
        out.push_str(self.id.quoted());
        field(out, "name", Some(&self.name));
        out.push_str(",\"args\":");
        match self.args {
            Some(args) => Tape::new(args).root().value().write(out),
            None => out.push_str("{}"),
        }
        field(out, "rawArgs", self.raw_args.as_ref());
        field(out, "itemId", self.item_id.as_ref());
        field(out, "thoughtSignature", self.signature.as_ref());
        if self.provider {
            out.push_str(",\"providerExecuted\":true");
        }
        out.push('}');
    }
}

impl Outcome<'_> {
    fn write(&self, out: &mut String) {
        out.push_str("{\"type\":\"tool-result\",\"id\":");
        out.push_str(self.id.quoted());
        field(out, "name", self.name.as_ref());
        out.push_str(",\"content\":");
        match &self.content {
            Content::Text(text) => out.push_str(text.quoted()),
            Content::Parts(parts) => {
                out.push('[');
                for (i, part) in parts.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    part.write(out);
                }
                out.push(']');
            }
        }
        if self.is_error {
            out.push_str(",\"isError\":true");
        }
        out.push('}');
    }
}

impl Media<'_> {
    fn write(&self, out: &mut String) {
        out.push_str(if self.is_image { "{\"type\":\"image\"" } else { "{\"type\":\"file\"" });
        field(out, "mediaType", Some(&self.media_type));
        match &self.source {
            Source::Data(data) => field(out, "data", Some(data)),
            Source::Url(url) => field(out, "url", Some(url)),
            Source::Blob(blob) => field(out, "blob", Some(blob)),
        }
        field(out, "filename", self.filename.as_ref());
        out.push('}');
    }
}

/// Writes the message of an event, when it makes one.
pub fn write_message(event: &EventView<'_>, out: &mut String) -> bool {
    let tape = Tape::new(event.data);
    let message = Message::read(event, &tape);
    if let Some(message) = &message {
        message.write(out);
    }
    message.is_some()
}

/// Writes one message of the user's that holds a plain text.
pub fn write_user_text(out: &mut String, text: &str) {
    out.push_str("{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":");
    write_string(out, text);
    out.push_str("}],\"sources\":[]}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::EventId;

    fn message(kind: &str, data: &str) -> String {
        let event = EventView { seq: 7, id: EventId(0), at: 0, kind, data, note: None };
        let mut out = String::new();
        if write_message(&event, &mut out) { out } else { "none".to_owned() }
    }

    fn user(text: &str) -> String {
        format!(r#"{{"role":"user","parts":[{{"type":"text","text":{text}}}],"sources":[7]}}"#)
    }

    #[test]
    fn each_event_type_makes_its_message() {
        assert_eq!(message("user/message", r#"{"text":"hi"}"#), user(r#""hi""#));
        assert_eq!(message("context/injected", r#"{"text":"x"}"#), user(r#""x""#));
        assert_eq!(message("session/compacted", r#"{"summary":"s","uptoSeq":3}"#), user(r#""s""#));
        assert_eq!(
            message("context/message", r#"{"text":"a</context>b</ CONTEXT >","source":"f\"<"}"#),
            user(r#""<context source=\"f&quot;&lt;\">a&lt;/context>b&lt;/ CONTEXT ></context>""#)
        );
        assert_eq!(
            message("steering/message", r#"{"text":"</steering><b></c>"}"#),
            user(r#""<steering>&lt;/steering><b></c></steering>""#)
        );
        let parts = r#"[{"type":"reasoning","text":"r","signature":"s"},{"type":"tool-call","id":"t","name":"n","args":{"a":1.50}}]"#;
        assert_eq!(
            message(
                "assistant/message",
                &format!(r#"{{"turn":1,"parts":{parts},"provider":"p","model":"m","partial":true}}"#)
            ),
            format!(
                r#"{{"role":"assistant","parts":{parts},"sources":[7],"provider":"p","model":"m","partial":true}}"#
            )
        );
        assert_eq!(
            message("tool/result", r#"{"id":"t","content":"ok"}"#),
            r#"{"role":"tool","parts":[{"type":"tool-result","id":"t","content":"ok"}],"sources":[7]}"#
        );
        for none in ["assistant/chunk", "tool/call", "turn/start", "error", "usage", "session/rewound"] {
            assert_eq!(message(none, r#"{"text":"x"}"#), "none");
        }
    }

    #[test]
    fn odd_payloads_give_what_can_be_read() {
        assert_eq!(message("user/message", "[]"), r#"{"role":"user","parts":[],"sources":[7]}"#);
        assert_eq!(message("user/message", r#"{"text":5,"parts":{}}"#), r#"{"role":"user","parts":[],"sources":[7]}"#);
        assert_eq!(
            message("user/message", r#"{"parts":[null,7,{"type":"text"},{"type":"text","text":"x"}]}"#),
            user(r#""x""#)
        );
        assert_eq!(
            message(
                "assistant/message",
                r#"{"parts":[{"type":"tool-call","id":3},{"type":"reasoning","redacted":"QQ=="}]}"#
            ),
            r#"{"role":"assistant","parts":[{"type":"tool-call","id":"3","name":"","args":{}},{"type":"reasoning","text":"","redacted":"QQ=="}],"sources":[7]}"#
        );
        assert_eq!(
            message("tool/result", r#"{"id":"t","error":{"code":"x","message":"boom"}}"#),
            r#"{"role":"tool","parts":[{"type":"tool-result","id":"t","content":"boom","isError":true}],"sources":[7]}"#
        );
        assert_eq!(
            message("tool/result", r#"{"id":"t","content":{"n":1}}"#),
            r#"{"role":"tool","parts":[{"type":"tool-result","id":"t","content":"{\"n\":1}"}],"sources":[7]}"#
        );
    }

    /// A15
    #[test]
    fn stored_lone_halves_come_out_well_formed() {
        assert_eq!(message("user/message", r#"{"parts":[{"type":"text","text":"x\ud83d…"}]}"#), user("\"x\u{fffd}…\""));
    }
}
