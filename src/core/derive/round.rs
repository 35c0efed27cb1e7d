//! What every target is given to render: one round at a time, in a form that is already clean.

use super::media::Medium;
use super::text::Arguments;
use crate::core::json::write_string;

/// An answer of the model, the results of its calls, and what the user said then.
#[derive(Default)]
pub(crate) struct Round {
    /// What the model said and asked for.
    pub assistant: Vec<Block>,
    /// One answer for every call, in call order.
    pub results: Vec<Answer>,
    /// What came from the user.
    pub user: Vec<Block>,
}

/// A piece of a turn. Fields named `quoted` hold JSON strings with their quotes.
#[derive(Clone)]
pub(crate) enum Block {
    /// Text that shows something.
    Text(TextBlock),
    /// Reasoning that goes back as it came.
    Thought(Thought),
    /// A call.
    Call(CallBlock),
    /// An image or a file.
    Media(Medium),
    /// What the provider's own tool gave back.
    Provided(Answer),
}

/// Text that shows something.
#[derive(Clone)]
pub(crate) struct TextBlock {
    /// The text.
    pub quoted: String,
    /// A signature that stands on this very part.
    pub signature: Option<String>,
    /// The provider's id of the item.
    pub item_id: Option<String>,
    /// Who made it, in the words of the AI SDK.
    pub family: Option<&'static str>,
    /// It goes on where the block before it ends.
    pub glued: bool,
    /// Seq it came from, and its place there.
    pub place: (u64, usize),
}

/// Reasoning that goes back as it came; all fields quoted.
#[derive(Clone)]
pub(crate) struct Thought {
    pub text: String,
    pub signature: Option<String>,
    pub redacted: Option<String>,
    pub item_id: Option<String>,
    pub encrypted: Option<String>,
    /// Who made it, in the words of the AI SDK.
    pub family: Option<&'static str>,
}

/// A call.
#[derive(Clone)]
pub(crate) struct CallBlock {
    /// Its id in this request.
    pub id: String,
    /// Its tool, legal at the target.
    pub name: String,
    /// JSON text of an object.
    pub object: String,
    /// The same as the model wrote it.
    pub text: String,
    /// The arguments could be read.
    pub valid: bool,
    /// Quoted.
    pub signature: Option<String>,
    /// Quoted.
    pub item_id: Option<String>,
    /// Run by the provider.
    pub provider: bool,
    /// Seq of its message, and its place among the calls there.
    pub place: (u64, usize),
    /// Its id in the log.
    pub original: String,
    /// Who made it, in the words of the AI SDK.
    pub family: Option<&'static str>,
    /// The result that stands in the same message.
    pub inline: Option<Answer>,
}

impl CallBlock {
    /// Takes the arguments in.
    pub fn set(&mut self, arguments: Arguments) {
        self.object = arguments.object;
        self.text = arguments.text;
        self.valid = arguments.valid;
    }
}

/// The answer to one call.
#[derive(Clone)]
pub(crate) struct Answer {
    /// Id of the call in this request.
    pub id: String,
    /// Its tool.
    pub name: String,
    /// Texts and media; never empty.
    pub content: Vec<Block>,
    /// It failed.
    pub is_error: bool,
    /// The user denied it.
    pub denied: bool,
}

impl Answer {
    /// An answer that is one text.
    pub fn text(id: &str, name: &str, text: &str, is_error: bool) -> Answer {
        Answer { id: id.into(), name: name.into(), content: vec![Block::text(text)], is_error, denied: false }
    }

    /// All its text in one, plain.
    pub fn plain(&self) -> String {
        join(self.content.iter())
    }
}

impl Block {
    /// A text of the harness.
    pub fn text(plain: &str) -> Block {
        let mut quoted = String::with_capacity(plain.len() + 2);
        write_string(&mut quoted, plain);
        Block::Text(TextBlock { quoted, signature: None, item_id: None, family: None, glued: false, place: (0, 0) })
    }

    /// Says whether a turn can stand on this block alone.
    pub fn is_solid(&self) -> bool {
        !matches!(self, Block::Thought(_))
    }
}

impl Round {
    /// Says whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.assistant.is_empty() && self.results.is_empty() && self.user.is_empty()
    }
}

/// Joins the texts among blocks: without a gap where one goes on where the other ended, else as paragraphs.
pub(crate) fn join<'a>(blocks: impl Iterator<Item = &'a Block>) -> String {
    let mut out = String::new();
    for block in blocks {
        let Block::Text(text) = block else { continue };
        if !out.is_empty() && !text.glued {
            out.push_str("\n\n");
        }
        out.push_str(&crate::core::json::unescape(&text.quoted));
    }
    out
}

/// Writes one JSON object, member by member.
pub(crate) struct Json<'a> {
    out: &'a mut String,
    open: bool,
}

impl<'a> Json<'a> {
    /// Opens an object.
    pub fn new(out: &'a mut String) -> Json<'a> {
        out.push('{');
        Json { out, open: false }
    }

    fn key(&mut self, key: &str) -> &mut String {
        if self.open {
            self.out.push(',');
        }
        self.open = true;
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
        self.out
    }

    /// A member whose value is JSON text.
    pub fn raw(mut self, key: &str, json: &str) -> Self {
        self.key(key).push_str(json);
        self
    }

    /// A member whose value is JSON text, if there is one.
    pub fn maybe(self, key: &str, json: Option<&str>) -> Self {
        match json {
            Some(json) => self.raw(key, json),
            None => self,
        }
    }

    /// A member that is a text.
    pub fn text(mut self, key: &str, plain: &str) -> Self {
        write_string(self.key(key), plain);
        self
    }

    /// A member that something else writes.
    pub fn with(mut self, key: &str, write: impl FnOnce(&mut String)) -> Self {
        write(self.key(key));
        self
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push('}');
    }
}

/// Writes an array of what a function writes of each item.
pub(crate) fn write_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    let mut first = true;
    for item in items {
        if !first {
            out.push(',');
        }
        first = false;
        write(out, item);
    }
    out.push(']');
}

/// Makes one JSON object.
pub(crate) fn object(fill: impl FnOnce(Json<'_>) -> Json<'_>) -> String {
    let mut out = String::new();
    fill(Json::new(&mut out)).end();
    out
}

/// A plain string as JSON text.
pub(crate) fn quote(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len() + 2);
    write_string(&mut out, plain);
    out
}
