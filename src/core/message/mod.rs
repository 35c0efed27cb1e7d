//! Provider-neutral messages: what one event says, borrowed from its stored text.
//!
//! A message comes from exactly one event. Payloads of an odd shape (made by hand, imported, from another version) give
//! what can be read of them and never an error.

mod read;
mod write;

use super::tape::Text;

pub use write::write_message;

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

impl Media<'_> {
    /// How long what stands for its bytes is in the log.
    pub fn stored_len(&self) -> usize {
        let (Source::Data(text) | Source::Url(text) | Source::Blob(text)) = &self.source;
        text.quoted().len()
    }
}

impl<'a> Outcome<'a> {
    /// Its pieces, when it is not one text.
    pub fn parts(&self) -> &[Part<'a>] {
        match &self.content {
            Content::Parts(parts) => parts,
            Content::Text(_) => &[],
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::EventView;
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
