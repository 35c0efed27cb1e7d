//! Which strings of a payload are scrubbed. Scope is by position, not by name alone; what is not touched keeps its bytes.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::error::{Error, Kind, Result};
use super::super::json::{Surrogates, Token, Tokens, unescape, write_string};
use super::bytes::{ALNUM, is};
use super::chain::Chain;
use super::media::{is_media, is_opaque_key};

/// Keys whose values the harness mints.
const STRUCTURAL: [&str; 15] = [
    "id",
    "callId",
    "call_id",
    "type",
    "verdict",
    "status",
    "agent",
    "parentId",
    "parent_id",
    "from",
    "boundary",
    "uptoSeq",
    "upto_seq",
    "n",
    "patterns",
];

/// Names of fields in the vocabulary of events: a scrubber that matches such a word means values, not the field.
const FIELDS: [&str; 40] = [
    "text",
    "parts",
    "content",
    "name",
    "args",
    "rawArgs",
    "data",
    "mediaType",
    "url",
    "blob",
    "filename",
    "summary",
    "title",
    "reason",
    "message",
    "code",
    "error",
    "isError",
    "turn",
    "step",
    "kind",
    "trigger",
    "usage",
    "provider",
    "model",
    "api",
    "source",
    "signature",
    "encrypted",
    "redacted",
    "itemId",
    "thoughtSignature",
    "input",
    "output",
    "arguments",
    "value",
    "path",
    "command",
    "key",
    "role",
];

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Scope {
    /// The payload itself, or an item of its `parts`.
    Structural,
    /// Below a structural key.
    Minted,
    /// A list of texts the harness mints.
    Patterns,
    /// The list under `parts`, or the object that some put there.
    Parts,
    /// Everything else.
    Content,
    /// The list under `content`: its items may be media.
    Contents,
    /// An item of `content`.
    ContentPart,
}

struct Frame {
    is_object: bool,
    scope: Scope,
    /// The member whose value comes next: its name, and where its key starts.
    key: String,
    key_start: usize,
    /// Whether this object is an item of `parts` or `content`.
    is_part: bool,
    /// Keys after scrubbing; filled only once one has changed or may collide.
    keys: HashSet<String>,
    media: Option<(usize, usize)>,
    data: Option<Site>,
    /// Where the value of the last member ended.
    last_end: usize,
    unsigned: bool,
}

/// The place of one string in the text, quotes included.
#[derive(Clone, Copy)]
struct Site {
    member_start: usize,
    start: usize,
    end: usize,
    before: usize,
}

/// An edit of the text.
struct Edit {
    start: usize,
    end: usize,
    with: String,
}

/// Scrubs the payload of an event. `kind` is the event's type; the rules are the same for all of them.
pub fn scrub_payload<'t>(_kind: &str, data: &'t str, chain: &Chain) -> Result<Cow<'t, str>> {
    Walk::new(data, chain, Scope::Structural).run()
}

/// Returns a value as it would stand under a content key.
pub fn stored_form<'t>(value: &'t str, chain: &Chain) -> Result<Cow<'t, str>> {
    Walk::new(value, chain, Scope::Content).run()
}

/// Says whether scrubbing would change a stored payload: what the scan after a rescrub asks.
pub fn would_change(kind: &str, data: &str, chain: &Chain) -> Result<bool> {
    scrub_payload(kind, data, chain).map(|out| matches!(out, Cow::Owned(_)))
}

struct Walk<'t, 'c> {
    text: &'t str,
    chain: &'c Chain,
    root: Scope,
    stack: Vec<Frame>,
    edits: Vec<Edit>,
}

impl<'t, 'c> Walk<'t, 'c> {
    fn new(text: &'t str, chain: &'c Chain, root: Scope) -> Self {
        Walk { text, chain, root, stack: Vec::new(), edits: Vec::new() }
    }

    fn run(mut self) -> Result<Cow<'t, str>> {
        if self.chain.is_empty() {
            return Ok(Cow::Borrowed(self.text));
        }
        let mut tokens = Tokens::new(self.text, Surrogates::Replace);
        while let Some(token) = tokens.next_token()? {
            let end = tokens.position();
            match token {
                Token::BeginObject | Token::BeginArray => self.open(token == Token::BeginObject),
                Token::EndObject | Token::EndArray => {
                    self.close()?;
                    self.ended(end);
                }
                Token::Key(start, end) => self.key(start, end)?,
                Token::String(start, end) => {
                    self.string(start, end)?;
                    self.ended(end);
                }
                _ => self.ended(end),
            }
        }
        Ok(self.finish())
    }

    fn raw(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The scope of a value at the current place.
    fn scope(&self) -> Scope {
        let Some(frame) = self.stack.last() else { return self.root };
        match (frame.scope, frame.is_object) {
            (Scope::Structural, true) => member_scope(&frame.key),
            // `parts` may be a list of parts, or by mistake one part.
            (Scope::Parts, true) => member_scope(&frame.key),
            (Scope::Parts, false) => Scope::Structural,
            (Scope::Contents, false) => Scope::ContentPart,
            (Scope::Minted, _) => Scope::Minted,
            (Scope::Patterns, false) => Scope::Patterns,
            _ => Scope::Content,
        }
    }

    fn open(&mut self, is_object: bool) {
        let scope = self.scope();
        let scope = match (self.stack.last(), scope) {
            // Text directly in `parts` is content; an object there is a part.
            (_, Scope::Patterns) if is_object => Scope::Content,
            _ => scope,
        };
        let parent = self.stack.last();
        let in_parts = parent.is_some_and(|f| !f.is_object && matches!(f.scope, Scope::Parts | Scope::Contents));
        self.stack.push(Frame {
            is_object,
            scope,
            key: String::new(),
            key_start: 0,
            is_part: is_object && (in_parts || scope == Scope::Parts),
            keys: HashSet::new(),
            media: None,
            data: None,
            last_end: 0,
            unsigned: false,
        });
    }

    fn key(&mut self, start: usize, end: usize) -> Result<()> {
        let raw = self.raw(start, end);
        let name = unescape(raw);
        let structural = self.stack.last().is_some_and(|f| matches!(f.scope, Scope::Structural | Scope::Parts));
        let kept = FIELDS.contains(&&*name) || (structural && is_field_name(&name));
        let scrubbed = if kept { Cow::Borrowed(&*name) } else { self.chain.scrub(&name)? };
        let Some(frame) = self.stack.last_mut() else { return Ok(()) };
        if !frame.keys.insert(scrubbed.clone().into_owned()) {
            return Err(Error::new(Kind::NotJson, "two keys become equal when they are scrubbed"));
        }
        if let Cow::Owned(changed) = &scrubbed {
            let mut with = String::new();
            write_string(&mut with, changed);
            self.edits.push(Edit { start, end, with });
        }
        frame.key = name.into_owned();
        frame.key_start = start;
        Ok(())
    }

    fn string(&mut self, start: usize, end: usize) -> Result<()> {
        let scope = self.scope();
        let value = unescape(self.raw(start, end));
        if let Some(frame) = self.stack.last_mut()
            && frame.is_part
        {
            let site = Site { member_start: frame.key_start, start, end, before: frame.last_end };
            match frame.key.as_str() {
                "mediaType" | "media_type" | "mimeType" | "mime_type" => frame.media = Some((start, end)),
                "data" => {
                    // Judged when the part is complete: its type may come later.
                    frame.data = Some(site);
                    return Ok(());
                }
                key if is_opaque_key(key) => return self.opaque(site, &value),
                _ => {}
            }
        }
        let exempt = match scope {
            Scope::Minted => is_minted(&value),
            Scope::Patterns => true,
            // A text directly in the payload's place or in `parts`.
            _ => false,
        };
        if !exempt {
            self.scrub_at(start, end, &value)?;
        }
        Ok(())
    }

    fn scrub_at(&mut self, start: usize, end: usize, value: &str) -> Result<()> {
        if let Cow::Owned(changed) = self.chain.scrub(value)? {
            let mut with = String::new();
            write_string(&mut with, &changed);
            self.edits.push(Edit { start, end, with });
        }
        Ok(())
    }

    /// A field that must come back as it was: whole or not at all.
    fn opaque(&mut self, site: Site, value: &str) -> Result<()> {
        if matches!(self.chain.scrub(value)?, Cow::Owned(_)) {
            self.drop_member(site);
        }
        Ok(())
    }

    /// Takes a member out; the first one of a part leaves the sign that the part is unsigned.
    fn drop_member(&mut self, site: Site) {
        let Some(frame) = self.stack.last_mut() else { return };
        let edit = if frame.unsigned {
            Edit { start: site.before, end: site.end, with: String::new() }
        } else {
            frame.unsigned = true;
            Edit { start: site.member_start, end: site.end, with: "\"unsigned\":true".to_owned() }
        };
        self.edits.push(edit);
    }

    fn close(&mut self) -> Result<()> {
        let Some(frame) = self.stack.last() else { return Ok(()) };
        if let Some(site) = frame.data {
            let media = frame.media.map(|(start, end)| unescape(self.raw(start, end)));
            let data = unescape(self.raw(site.start, site.end));
            if media.is_some_and(|media| is_media(&media, &data)) {
                self.opaque(site, &data)?;
            } else {
                self.scrub_at(site.start, site.end, &data)?;
            }
        }
        self.stack.pop();
        Ok(())
    }

    fn ended(&mut self, end: usize) {
        if let Some(frame) = self.stack.last_mut() {
            frame.last_end = end;
        }
    }

    fn finish(mut self) -> Cow<'t, str> {
        if self.edits.is_empty() {
            return Cow::Borrowed(self.text);
        }
        crate::core::sorted::sort_by(&mut self.edits, |a, b| a.start < b.start);
        let mut out = String::with_capacity(self.text.len());
        let mut from = 0;
        for edit in &self.edits {
            out.push_str(self.raw(from, edit.start));
            out.push_str(&edit.with);
            from = edit.end;
        }
        out.push_str(self.raw(from, self.text.len()));
        Cow::Owned(out)
    }
}

fn member_scope(key: &str) -> Scope {
    match key {
        "patterns" => Scope::Patterns,
        "parts" => Scope::Parts,
        "content" => Scope::Contents,
        key if STRUCTURAL.contains(&key) => Scope::Minted,
        _ => Scope::Content,
    }
}

/// Whether a text looks like what the harness mints.
fn is_minted(value: &str) -> bool {
    (1..=256).contains(&value.len()) && value.bytes().all(|b| is(b, ALNUM) || b"_.:/+=-".contains(&b))
}

/// Whether a key of the payload itself looks like the name of a field: letters, no digits.
fn is_field_name(key: &str) -> bool {
    (1..=40).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'-')
}
