//! A JSON text as a flat tree of slices: one pass, one allocation, nothing copied. What reads raw usage is built on it.

use std::cell::OnceCell;

use crate::core::error::{Error, Kind as ErrorKind, Result};
use crate::core::json::unescape;
use crate::core::limits::MAX_DEPTH;

use super::arithmetic::{count_of, is_number};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Null,
    True,
    False,
    Number,
    String,
    /// A string with escapes.
    Escaped,
    Array,
    Object,
}

/// `key` and `span` are byte ranges; a string's include its quotes. `next` is the index behind the whole value.
struct Node {
    key: (u32, u32),
    /// [`mark`] of the key, so that looking for a member compares one number per member.
    mark: u32,
    span: (u32, u32),
    kind: Kind,
    next: u32,
    /// A string with escapes, once it was asked for.
    decoded: OnceCell<Box<str>>,
}

/// Marks a key that has escapes: it must be decoded to be compared.
const ESCAPED: u32 = u32::MAX;

/// A number that tells most keys apart: length, first, middle and last byte.
#[inline]
fn mark(key: &[u8]) -> u32 {
    let byte = |at: usize| u32::from(key.get(at).copied().unwrap_or_default());
    let len = key.len();
    (len as u32 & 0x7f) | byte(0) << 7 | byte(len / 2) << 15 | byte(len.wrapping_sub(1)) << 23
}

/// No container is open.
const NONE: u32 = u32::MAX;

/// Builds the nodes of one text. While a container is open, its `next` is the container around it: that is the stack.
///
/// It does less than `json::Tokens` and takes half the time, and parsing is most of what pricing a record costs.
struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    open: u32,
    depth: usize,
}

impl Parser<'_> {
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// `None` is a fault at `self.at`.
    fn run(&mut self) -> Option<()> {
        let mut key = ((0, 0), 0);
        loop {
            let is_open = self.value(key)?;
            let more = if is_open { self.first() } else { self.after()? };
            match more {
                None => return self.peek().is_none().then_some(()),
                Some(Kind::Object) => key = self.key()?,
                Some(_) => key = ((0, 0), 0),
            }
        }
    }

    /// Reads a value, or the beginning of a container that is not empty: then the answer is true.
    fn value(&mut self, (key, mark): ((u32, u32), u32)) -> Option<bool> {
        let start = self.peek().map(|_| self.at)?;
        let kind = match *self.bytes.get(start)? {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' if self.string()? => Kind::Escaped,
            b'"' => Kind::String,
            b't' => self.word(b"true", Kind::True)?,
            b'f' => self.word(b"false", Kind::False)?,
            b'n' => self.word(b"null", Kind::Null)?,
            _ => self.number()?,
        };
        let own = self.nodes.len() as u32;
        let is_container = matches!(kind, Kind::Object | Kind::Array);
        let next = if is_container { self.open } else { own + 1 };
        let span = (start as u32, self.at as u32);
        self.nodes.push(Node { key, mark, span, kind, next, decoded: OnceCell::new() });
        if !is_container {
            return Some(false);
        }
        self.at += 1;
        self.depth += 1;
        self.open = own;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let end = if kind == Kind::Object { b'}' } else { b']' };
        Some(self.peek()? != end || self.close().is_none())
    }

    /// What stands in the container that was just opened.
    fn first(&self) -> Option<Kind> {
        self.nodes.get(self.open as usize).map(|n| n.kind)
    }

    /// Ends the innermost container.
    fn close(&mut self) -> Option<()> {
        self.at += 1;
        let (end, behind) = (self.at as u32, self.nodes.len() as u32);
        let node = self.nodes.get_mut(self.open as usize)?;
        node.span.1 = end;
        self.open = std::mem::replace(&mut node.next, behind);
        self.depth -= 1;
        Some(())
    }

    /// Goes on behind a value: what stands in the container that goes on, or `Some(None)` behind the one value.
    fn after(&mut self) -> Option<Option<Kind>> {
        loop {
            let Some(kind) = self.first() else { return Some(None) };
            match (self.peek()?, kind) {
                (b',', kind) => {
                    self.at += 1;
                    return Some(Some(kind));
                }
                (b'}', Kind::Object) | (b']', Kind::Array) => self.close()?,
                _ => return None,
            }
        }
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Option<((u32, u32), u32)> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at;
        let has_escapes = self.string()?;
        let end = self.at;
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        let mark = if has_escapes { ESCAPED } else { mark(self.bytes.get(start + 1..end - 1)?) };
        Some(((start as u32, end as u32), mark))
    }

    /// Passes over a string, and says whether it has escapes.
    fn string(&mut self) -> Option<bool> {
        let mut has_escapes = false;
        self.at += 1;
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(has_escapes);
                }
                b'\\' => {
                    has_escapes = true;
                    self.at += 2;
                }
                0..=0x1f => return None,
                _ => self.at += 1,
            }
        }
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Option<Kind> {
        let found = self.bytes.get(self.at..)?.starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found.then_some(kind)
    }

    fn number(&mut self) -> Option<Kind> {
        let rest = self.bytes.get(self.at..)?;
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let len = rest.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E')).count();
        let is_plain = digits == len && (digits == 1 || (digits > 1 && rest.first() != Some(&b'0')));
        if !is_plain && !is_number(std::str::from_utf8(rest.get(..len)?).ok()?) {
            return None;
        }
        self.at += len;
        Some(Kind::Number)
    }
}

/// One parsed text.
pub struct Doc<'a> {
    text: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Doc<'a> {
    /// Parses a text that holds exactly one value. Duplicate keys and wrong escapes are not looked for: what comes here
    /// was checked when it was stored, or written by JavaScript.
    pub fn parse(text: &'a str) -> Result<Self> {
        let mut parser = Parser { bytes: text.as_bytes(), at: 0, nodes: Vec::with_capacity(40), open: NONE, depth: 0 };
        let is_short = u32::try_from(text.len()).is_ok();
        match parser.run() {
            Some(()) if is_short => Ok(Doc { text, nodes: parser.nodes }),
            _ => {
                Err(Error::new(ErrorKind::NotJson, format!("not JSON at byte {}", parser.at)).with("offset", parser.at))
            }
        }
    }

    /// Returns the one value.
    pub fn root(&self) -> Json<'_> {
        Json { doc: self, at: 0 }
    }

    #[inline]
    fn key_is(&self, node: &Node, key: &str) -> bool {
        if node.mark == ESCAPED {
            return unescape(self.slice(node.key)) == key;
        }
        let (start, end) = node.key;
        self.text.as_bytes().get(start as usize + 1..end as usize - 1) == Some(key.as_bytes())
    }

    fn slice(&self, (start, end): (u32, u32)) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// One value of a [`Doc`].
#[derive(Clone, Copy)]
pub struct Json<'d> {
    doc: &'d Doc<'d>,
    at: usize,
}

impl<'d> Json<'d> {
    fn node(self) -> Option<&'d Node> {
        self.doc.nodes.get(self.at)
    }

    fn kind(self) -> Kind {
        self.node().map_or(Kind::Null, |n| n.kind)
    }

    /// Iterates over the items of an array or the values of an object.
    pub fn children(self) -> impl Iterator<Item = Json<'d>> {
        let end = self.node().map_or(0, |n| n.next as usize);
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let child = Json { doc: self.doc, at };
            if at >= end {
                return None;
            }
            at = child.node().map_or(end, |n| n.next as usize);
            Some(child)
        })
    }

    /// Returns a member of an object that is there and not null.
    pub fn get(self, key: &str) -> Option<Json<'d>> {
        let nodes = &*self.doc.nodes;
        let own = nodes.get(self.at)?;
        if own.kind as u8 != Kind::Object as u8 {
            return None;
        }
        let wanted = mark(key.as_bytes());
        let (mut at, end) = (self.at + 1, own.next as usize);
        while at < end {
            let node = nodes.get(at)?;
            if (node.mark == wanted || node.mark == ESCAPED) && self.doc.key_is(node, key) {
                return (node.kind as u8 != Kind::Null as u8).then_some(Json { doc: self.doc, at });
            }
            at = node.next as usize;
        }
        None
    }

    /// Follows several names; an empty one stays where it is.
    #[inline(never)]
    pub fn at(self, path: &[&str]) -> Option<Json<'d>> {
        let mut out = self;
        for key in path {
            out = if key.is_empty() { out } else { out.get(key)? };
        }
        Some(out)
    }

    /// Returns the first of several members that is there and not null.
    #[inline(never)]
    pub fn any(self, keys: &[&str]) -> Option<Json<'d>> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// Returns the key under which this value stands, decoded.
    pub fn key(self) -> std::borrow::Cow<'d, str> {
        self.node().map_or_else(Default::default, |n| unescape(self.doc.slice(n.key)))
    }

    /// Returns the text of a number, as written.
    #[inline(never)]
    pub fn number(self) -> Option<&'d str> {
        let node = self.node()?;
        (node.kind == Kind::Number).then(|| self.doc.slice(node.span))
    }

    /// Returns a string, decoded.
    #[inline(never)]
    pub fn string(self) -> Option<&'d str> {
        let node = self.node()?;
        let quoted = self.doc.slice(node.span);
        match node.kind {
            Kind::String => quoted.get(1..quoted.len() - 1),
            Kind::Escaped => Some(node.decoded.get_or_init(|| unescape(quoted).into())),
            _ => None,
        }
    }

    /// Returns a member that is a number, as written.
    #[inline(never)]
    pub fn number_of(self, key: &str) -> Option<&'d str> {
        self.get(key)?.number()
    }

    /// Returns a member that is a string, decoded.
    #[inline(never)]
    pub fn text_of(self, key: &str) -> Option<&'d str> {
        self.get(key)?.string()
    }

    /// Says whether a member is this text.
    #[inline(never)]
    pub fn is_text(self, key: &str, text: &str) -> bool {
        self.text_of(key) == Some(text)
    }

    /// Says whether this is `true`.
    pub fn is_true(self) -> bool {
        self.kind() == Kind::True
    }

    /// Says whether this is an object.
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// Says whether this is an array.
    pub fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    /// Returns the JSON text of an object, array, string or number.
    pub fn text(self) -> &'d str {
        self.node().map_or("", |n| self.doc.slice(n.span))
    }

    /// Returns a member as a count: what is not a number of at least 0 is 0.
    #[inline(never)]
    pub fn count(self, key: &str) -> u64 {
        self.number_of(key).map_or(0, count_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_whatever_stands_between() {
        let doc = Doc::parse(r#"{"a":{"x":[1,{"y":2}],"b":3},"b":"q\n","\u0063":true,"n":null}"#).unwrap();
        let root = doc.root();
        assert_eq!(root.get("b").unwrap().string().unwrap(), "q\n");
        assert_eq!(root.get("a").unwrap().count("b"), 3);
        assert!(root.get("c").unwrap().is_true());
        assert!(root.get("n").is_none());
        let x = root.get("a").unwrap().get("x").unwrap();
        assert_eq!(x.text(), r#"[1,{"y":2}]"#);
        assert_eq!(x.children().count(), 2);
        assert_eq!(x.children().nth(1).unwrap().count("y"), 2);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for bad in [
            "",
            " ",
            "{",
            "}",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\"}",
            "{a:1}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "-",
            "nul",
            "\"a",
            "1 2",
            "[1 2]",
            "{\"a\" 1}",
            "[}",
            "{]",
            "NaN",
            "[,1]",
            "]",
            "[1]]",
            "{}{}",
            "\"\n\"",
            "\"\\",
            "[",
            "[[]",
        ] {
            assert!(Doc::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Doc::parse(&"[".repeat(100_000)).is_err());
        assert!(Doc::parse(&format!("{}{}", "[".repeat(1_001), "]".repeat(1_001))).is_err());
        Doc::parse(&format!("{}{}", "[".repeat(1_000), "]".repeat(1_000))).unwrap();
    }

    /// Rebuilds the value from the tree.
    fn rebuilt(json: Json) -> serde_json::Value {
        match json.kind() {
            Kind::Object => json.children().map(|c| (c.key().into_owned(), rebuilt(c))).collect(),
            Kind::Array => json.children().map(rebuilt).collect(),
            Kind::Null => serde_json::Value::Null,
            Kind::True | Kind::False => json.is_true().into(),
            Kind::String | Kind::Escaped | Kind::Number => serde_json::from_str(json.text()).unwrap(),
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_an_independent_parser(text in "[\\[\\]{}\",:0-9eE+. a-u-]{0,40}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text).ok();
            let doc = Doc::parse(&text).ok();
            // Duplicate keys are not looked for here: the last one wins there.
            let rebuilt = doc.as_ref().map(|d| rebuilt(d.root()));
            proptest::prop_assert_eq!(rebuilt, theirs);
        }

        #[test]
        fn agrees_on_values(seed in proptest::collection::vec((0usize..9, "[a-c\\\\\"é]{0,4}"), 0..30)) {
            let mut value = serde_json::Value::Null;
            for (kind, text) in seed {
                value = match kind {
                    0 => serde_json::json!([value]),
                    1 => serde_json::json!({ text: value }),
                    2 => serde_json::json!({ "x": text, "y": value, "z": [] }),
                    3 => serde_json::json!([1, value, {}, -2.5]),
                    4 => serde_json::json!({ "k": true, "": value }),
                    5 => serde_json::json!([[], [value], null]),
                    _ => serde_json::json!(text),
                };
            }
            let text = serde_json::to_string_pretty(&value).unwrap();
            proptest::prop_assert_eq!(rebuilt(Doc::parse(&text).unwrap().root()), value);
        }
    }
}
