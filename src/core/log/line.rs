//! One event as one line of JSON text: the form in which events are stored and exported.
//!
//! `{"seq":0,"id":"…","at":0,"type":"…","salt":"…","digest":"…","note":{…},"bytes":N,"data":{…}}`. The payload stands last,
//! and its length in bytes before it, so that a whole store can be indexed without parsing payloads, and a torn or
//! overwritten line is found at once.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{Digest, NewEvent, Salt, push_hex, unhex};
use crate::core::error::{Error, Kind, Result};
use crate::core::event::EventView;
use crate::core::id::EventId;
use crate::core::json::{self, Object, Surrogates, Tokens, Value};
use crate::core::time::Millis;

/// A line that was read: ranges point into the line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    /// Sequence number.
    pub seq: u64,
    /// Event id.
    pub id: EventId,
    /// When it was appended.
    pub at: Millis,
    /// Event type.
    pub kind: Cow<'a, str>,
    /// Salt of the payload digest, when the line carries one.
    pub salt: Option<Salt>,
    /// Chain digest, when the line carries one.
    pub digest: Option<Digest>,
    /// Payload digest from before a rewrite.
    pub was: Option<Digest>,
    /// What was worked out about the event: JSON text.
    pub note: Option<&'a str>,
    /// Envelope members unknown to this version: JSON text of an object.
    pub extra: Option<Cow<'a, str>>,
    /// The payload: JSON text.
    pub data: &'a str,
}

impl Line<'_> {
    /// Makes the event that this line holds; `salt` stands in when the line has none.
    pub fn event(&self, salt: Salt) -> NewEvent<'_> {
        NewEvent {
            id: self.id,
            at: self.at,
            kind: &self.kind,
            data: self.data,
            note: self.note,
            salt: self.salt.unwrap_or(salt),
            was: self.was,
            extra: self.extra.as_deref(),
        }
    }
}

/// What stands beside the payload in a stored line.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a> {
    /// Salt of the payload digest.
    pub salt: Salt,
    /// Chain digest.
    pub digest: Digest,
    /// Payload digest from before a rewrite.
    pub was: Option<Digest>,
    /// Envelope members unknown to this version.
    pub extra: Option<&'a str>,
}

/// Appends one event as a line with its line feed.
pub fn write(out: &mut String, event: &EventView<'_>, beside: &Beside<'_>) {
    // Writing into a string cannot fail.
    let _ = write!(out, "{{\"seq\":{},\"id\":\"", event.seq);
    push_hex(out, &event.id.0.to_be_bytes());
    let _ = write!(out, "\",\"at\":{},\"type\":", event.at);
    json::write_string(out, event.kind);
    out.push_str(",\"salt\":\"");
    push_hex(out, &beside.salt);
    out.push_str("\",\"digest\":\"");
    push_hex(out, &beside.digest);
    out.push('"');
    if let Some(was) = beside.was {
        out.push_str(",\"was\":\"");
        push_hex(out, &was);
        out.push('"');
    }
    if let Some(note) = event.note {
        out.push_str(",\"note\":");
        out.push_str(note);
    }
    if let Some(extra) = beside.extra {
        out.push_str(",\"extra\":");
        out.push_str(extra);
    }
    let _ = write!(out, ",\"bytes\":{},\"data\":", event.data.len());
    out.push_str(event.data);
    out.push_str("}\n");
}

/// Reads one line without its line feed.
pub fn read(line: &str) -> Result<Line<'_>> {
    match read_own(line) {
        Some(read) => Ok(read),
        None => read_any(line),
    }
}

fn bad(what: &str) -> Error {
    Error::new(Kind::InvalidEvent, format!("not an event: {what}"))
}

/// A cursor over a line in exactly our form.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn eat(&mut self, token: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(token)?;
        Some(())
    }

    fn upto(&mut self, end: char) -> Option<&'a str> {
        let (before, after) = self.0.split_once(end)?;
        self.0 = after;
        Some(before)
    }

    /// Takes hexadecimal digits of a known number of bytes, and the quote after them.
    fn hex<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (digits, rest) = self.0.split_at_checked(N * 2)?;
        self.0 = rest;
        self.eat("\"")?;
        unhex(digits)
    }

    fn integer<T: std::str::FromStr>(&mut self) -> Option<T> {
        let len = self.0.bytes().take_while(|b| b.is_ascii_digit() || *b == b'-').count();
        let (digits, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        digits.parse().ok()
    }

    fn object(&mut self) -> Option<&'a str> {
        let len = first_value(self.0)?;
        let (object, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(object)
    }
}

/// Returns how long the JSON value at the start of a text is.
fn first_value(text: &str) -> Option<usize> {
    let mut tokens = Tokens::new(text, Surrogates::Replace);
    loop {
        tokens.next_token().ok()??;
        if tokens.depth() == 0 {
            return Some(tokens.position());
        }
    }
}

/// Reads a line in exactly the form that `write` gives it, without looking into the payload.
pub fn read_own(line: &str) -> Option<Line<'_>> {
    let mut rest = Cursor(line);
    rest.eat("{\"seq\":")?;
    let seq = rest.integer()?;
    rest.eat(",\"id\":\"")?;
    let id = EventId(u64::from_be_bytes(rest.hex()?));
    rest.eat(",\"at\":")?;
    let at = rest.integer()?;
    rest.eat(",\"type\":\"")?;
    let kind = rest.upto('"')?;
    if kind.contains('\\') {
        return None;
    }
    rest.eat(",\"salt\":\"")?;
    let salt = rest.hex()?;
    rest.eat(",\"digest\":\"")?;
    let digest = rest.hex()?;
    let mut was = None;
    if rest.eat(",\"was\":\"").is_some() {
        was = Some(rest.hex()?);
    }
    let mut note = None;
    if rest.eat(",\"note\":").is_some() {
        note = Some(rest.object()?);
    }
    let mut extra = None;
    if rest.eat(",\"extra\":").is_some() {
        extra = Some(rest.object()?.into());
    }
    rest.eat(",\"bytes\":")?;
    let bytes: usize = rest.integer()?;
    rest.eat(",\"data\":")?;
    let data = rest.0.strip_suffix('}')?;
    let whole = data.len() == bytes && data.starts_with('{') && data.ends_with('}');
    // A run of NULs in the middle keeps the length; no control character stands in JSON text of ours.
    (whole && !has_control(data)).then_some(Line {
        seq,
        id,
        at,
        kind: kind.into(),
        salt: Some(salt),
        digest: Some(digest),
        was,
        note,
        extra,
        data,
    })
}

/// Says whether a text holds a control character; looks at eight bytes at a time, without a way out.
fn has_control(text: &str) -> bool {
    let (eights, rest) = text.as_bytes().as_chunks::<8>();
    let found = eights.iter().fold(0, |found, eight| {
        let bytes = u64::from_ne_bytes(*eight);
        found | (bytes.wrapping_sub(0x2020_2020_2020_2020) & !bytes)
    });
    found & 0x8080_8080_8080_8080 != 0 || rest.iter().any(|b| *b < 0x20)
}

/// Reads a line whose members stand in any order, as other writers and seeds give it.
fn read_any(line: &str) -> Result<Line<'_>> {
    let members = members(line)?;
    let find = |key: &str| members.iter().find(|(k, _)| k == key).map(|(_, text)| *text);
    let value = |key: &str| find(key).map(|text| json::parse(text, Surrogates::Replace)).transpose();
    let text = |key: &str| -> Result<Option<String>> {
        Ok(value(key)?.as_ref().and_then(Value::as_str).map(ToOwned::to_owned))
    };
    let whole = |key: &str| -> Result<i64> {
        value(key)?.as_ref().and_then(Value::as_i64).ok_or_else(|| bad(&format!("`{key}` must be a whole number")))
    };
    let seq = u64::try_from(whole("seq")?).map_err(|_| bad("`seq` must not be negative"))?;
    let id =
        text("id")?.as_deref().and_then(EventId::parse).ok_or_else(|| bad("`id` must be 16 hexadecimal digits"))?;
    let kind = text("type")?.filter(|k| !k.is_empty()).ok_or_else(|| bad("`type` must be text"))?;
    let data = find("data").filter(|d| d.starts_with('{')).ok_or_else(|| bad("`data` must be an object"))?;
    let bytes = value("bytes")?;
    if bytes.is_some_and(|bytes| bytes.as_i64() != i64::try_from(data.len()).ok()) {
        return Err(bad("`bytes` is not the length of `data`"));
    }
    const KNOWN: [&str; 11] =
        ["seq", "id", "sessionId", "at", "type", "salt", "digest", "was", "note", "bytes", "extra"];
    let mut extra: Object = value("extra")?.and_then(|v| v.as_object().cloned()).unwrap_or_default();
    for (key, text) in &members {
        if key != "data" && !KNOWN.contains(&key.as_str()) {
            extra.set(key, json::parse(text, Surrogates::Replace)?);
        }
    }
    Ok(Line {
        seq,
        id,
        at: whole("at")?,
        kind: kind.into(),
        salt: text("salt")?.as_deref().and_then(unhex),
        digest: text("digest")?.as_deref().and_then(unhex),
        was: text("was")?.as_deref().and_then(unhex),
        note: find("note").filter(|n| n.starts_with('{')),
        extra: (!extra.is_empty()).then(|| extra.to_text().into()),
        data,
    })
}

/// Splits the text of an object into its members: decoded key, and text of the value. Checks the whole text.
pub fn members(text: &str) -> Result<Vec<(String, &str)>> {
    json::check_tokens(text, Tokens::new(text, Surrogates::Replace).around(1))?;
    let mut tokens = Tokens::new(text, Surrogates::Replace).around(1);
    let mut out = Vec::new();
    let mut key = None;
    let mut start = 0;
    if tokens.next_token()? != Some(json::Token::BeginObject) {
        return Err(bad("a line must be an object"));
    }
    while let Some(token) = tokens.next_token()? {
        let end = tokens.position();
        match (token, tokens.depth()) {
            (json::Token::Key(from, to), 1) => {
                key = Some(json::unescape(text.get(from..to).unwrap_or_default()).into_owned());
                start = end;
            }
            (json::Token::BeginObject | json::Token::BeginArray, _) | (_, 0) => {}
            (_, 1) => {
                if let Some(key) = key.take() {
                    out.push((key, text.get(start..end).unwrap_or_default().trim()));
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> String {
        let mut out = String::new();
        let view = EventView {
            seq: 3,
            id: EventId(0xabc),
            at: -5,
            kind: "user/message",
            data: "{\"text\":\"a}\\n\",\"n\":1.50}",
            note: Some("{\"cost\":{\"usd\":\"1\"}}"),
        };
        write(
            &mut out,
            &view,
            &Beside { salt: [1; 16], digest: [2; 32], was: Some([3; 32]), extra: Some("{\"x\":[1]}") },
        );
        out
    }

    #[test]
    fn a_line_reads_back_exactly_in_our_form_and_in_any_order() {
        let text = line();
        let own = read(text.trim_end()).unwrap();
        assert_eq!((own.seq, own.id, own.at, &*own.kind), (3, EventId(0xabc), -5, "user/message"));
        assert_eq!((own.data, own.note), ("{\"text\":\"a}\\n\",\"n\":1.50}", Some("{\"cost\":{\"usd\":\"1\"}}")));
        assert_eq!((own.salt, own.digest, own.was), (Some([1; 16]), Some([2; 32]), Some([3; 32])));
        assert_eq!(own.extra.as_deref(), Some("{\"x\":[1]}"));
        assert_eq!(read_any(text.trim_end()).unwrap(), own);
        let loose =
            r#" { "data" : {"b":1.50} , "type":"x", "future":{"k":1e2}, "at":5.0,"id":"0000000000000abc","seq":0 } "#;
        let read = read(loose).unwrap();
        assert_eq!((read.data, read.at, read.extra.as_deref()), ("{\"b\":1.50}", 5, Some("{\"future\":{\"k\":1e2}}")));
    }

    #[test]
    fn control_characters_are_found_wherever_they_stand() {
        for len in 0..40 {
            let text = "aé ~".repeat(len);
            assert!(!has_control(&text));
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                for control in ['\0', '\t', '\u{1f}'] {
                    let mut text = text.clone();
                    text.insert(at, control);
                    assert!(has_control(&text), "{text:?}");
                }
            }
        }
    }

    /// B01, torn and overwritten lines
    #[test]
    fn damaged_lines_are_refused_at_every_cut() {
        let text = line();
        let text = text.trim_end();
        for cut in 0..text.len() {
            if let Some(torn) = text.get(..cut) {
                assert!(read(torn).is_err(), "{cut}");
            }
        }
        let at = text.find("text").unwrap();
        let nul = format!("{}\0\0\0\0{}", &text[..at], &text[at + 4..]);
        assert!(read(&nul).is_err());
        for other in ["true", "{\"seq\":3,\"te", "\0\0\0\0", "", "[]", "{}", "{\"seq\":-1}"] {
            assert!(read(other).is_err(), "{other:?}");
        }
    }
}
