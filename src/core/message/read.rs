//! From the stored text of an event to the message it makes.

use super::{Call, Content, Media, Message, Origin, Outcome, Part, Reasoning, Role, Source, TextPart};
use crate::core::event::EventView;
use crate::core::tape::{Raw, Shape, Tape, Text};

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
