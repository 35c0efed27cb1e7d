//! From a message to the JSON text of the contract's `Message`.

use super::{Call, Content, Media, Message, Outcome, Part, Reasoning, Source};
use crate::core::event::EventView;
use crate::core::tape::{Tape, Text};

impl Message<'_> {
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
