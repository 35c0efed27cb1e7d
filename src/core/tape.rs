//! One-pass index over JSON text that is known to be valid: long strings are crossed eight bytes at a time and never copied.
//!
//! Derivation reads thousands of stored payloads of which it needs a few members each; a tree of owned values would cost
//! more than the whole derivation may.

use std::borrow::Cow;

use super::json::{self, Surrogates};

#[derive(Clone, Copy, Debug)]
struct Node {
    start: u32,
    end: u32,
    /// Index of the node after this one and all it holds.
    next: u32,
    /// Its first byte, which tells its shape.
    first: u8,
    /// A string with any escape at all.
    escaped: bool,
    /// A string with an escape that `JSON.stringify` would not have written that way.
    odd: bool,
}

/// The index of one text.
#[derive(Debug)]
pub struct Tape<'a> {
    text: &'a str,
    nodes: Vec<Node>,
    odd: bool,
}

impl<'a> Tape<'a> {
    /// Reads a text; what is not one whole value reads as nothing.
    pub fn new(text: &'a str) -> Self {
        let mut tape = Tape { text, nodes: Vec::with_capacity(32), odd: false };
        let scan = Scan { tape: &mut tape, at: 0, open: Vec::new() };
        if u32::try_from(text.len()).is_err() || scan.run().is_none() {
            tape.nodes.clear();
        }
        tape
    }

    /// Returns the outermost value.
    pub fn root(&self) -> Raw<'a, '_> {
        Raw { tape: self, at: 0 }
    }

    /// Says whether a key reads as `key`; most are told apart by their length alone.
    fn is_key(&self, node: &Node, key: &str) -> bool {
        if node.escaped {
            return json::unescape(self.slice(node)) == key;
        }
        let name = self.text.as_bytes().get(node.start as usize + 1..node.end as usize - 1);
        (node.end - node.start) as usize == key.len() + 2 && name.is_some_and(|name| name == key.as_bytes())
    }

    fn slice(&self, node: &Node) -> &'a str {
        self.text.get(node.start as usize..node.end as usize).unwrap_or_default()
    }

    /// Says whether the text is not one whole value.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The strings that hold escapes, keys too: where each begins, and its quoted form.
    pub fn escaped(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.nodes.iter().filter(|node| node.escaped).map(|node| (node.start as usize, self.slice(node)))
    }

    /// Says whether any string holds an escape that `JSON.stringify` would have written otherwise.
    pub fn is_odd(&self) -> bool {
        self.odd
    }
}

struct Scan<'a, 't> {
    tape: &'t mut Tape<'a>,
    at: usize,
    open: Vec<usize>,
}

impl Scan<'_, '_> {
    fn run(mut self) -> Option<()> {
        let bytes = self.tape.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => self.at += 1,
                b'{' | b'[' => {
                    self.open.push(self.tape.nodes.len());
                    self.push(byte, self.at, self.at + 1, false, false);
                }
                b'}' | b']' => self.close()?,
                b'"' => self.string(bytes)?,
                _ => self.word(bytes, byte)?,
            }
        }
        self.open.is_empty().then_some(())
    }

    fn push(&mut self, first: u8, start: usize, end: usize, escaped: bool, odd: bool) {
        let next = self.tape.nodes.len() as u32 + 1;
        self.tape.nodes.push(Node { start: start as u32, end: end as u32, next, first, escaped, odd });
        self.tape.odd |= odd;
        self.at = end;
    }

    fn close(&mut self) -> Option<()> {
        let opened = self.open.pop()?;
        self.at += 1;
        let next = self.tape.nodes.len() as u32;
        let node = self.tape.nodes.get_mut(opened)?;
        node.end = self.at as u32;
        node.next = next;
        Some(())
    }

    fn word(&mut self, bytes: &[u8], first: u8) -> Option<()> {
        let rest = bytes.get(self.at..)?;
        let len = rest.iter().position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
        let len = len.unwrap_or(rest.len());
        if len == 0 {
            return None;
        }
        self.push(first, self.at, self.at + len, false, false);
        Some(())
    }

    fn string(&mut self, bytes: &[u8]) -> Option<()> {
        let end = string_end(bytes.get(self.at + 1..)?)?;
        self.push(b'"', self.at, self.at + 1 + end.len, end.escaped, end.odd);
        Some(())
    }
}

/// What a string is, found on the way to its end.
#[derive(Debug, Default, PartialEq, Eq)]
struct StringEnd {
    /// Bytes up to and with the closing quote.
    len: usize,
    escaped: bool,
    odd: bool,
}

/// Crosses a string from behind its opening quote, eight bytes at a time.
fn string_end(bytes: &[u8]) -> Option<StringEnd> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const QUOTES: u64 = ONES * b'"' as u64;
    const SLASHES: u64 = ONES * b'\\' as u64;
    let mut end = StringEnd::default();
    let (words, rest) = bytes.as_chunks::<8>();
    // Whether the first byte of what follows belongs to an escape.
    let mut is_escaped = false;
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (quotes, slashes) = (word ^ QUOTES, word ^ SLASHES);
        let mut hits = ((quotes.wrapping_sub(ONES) & !quotes) | (slashes.wrapping_sub(ONES) & !slashes)) & HIGH;
        if is_escaped {
            hits &= !0xff;
            is_escaped = false;
        }
        while hits != 0 {
            // The byte behind a hit may look like one; so each is looked at.
            let bit = hits.trailing_zeros() & !7;
            hits &= hits - 1;
            match (word >> bit) as u8 {
                b'"' => {
                    end.len = at * 8 + (bit / 8) as usize + 1;
                    return Some(end);
                }
                b'\\' => {
                    end.see(*bytes.get(at * 8 + (bit / 8) as usize + 1)?);
                    is_escaped = bit == 56;
                    hits &= !0xffff_u64 << bit;
                }
                _ => {}
            }
        }
    }
    let mut tail = rest.iter().enumerate();
    if is_escaped {
        tail.next();
    }
    while let Some((at, byte)) = tail.next() {
        match byte {
            b'"' => {
                end.len = words.len() * 8 + at + 1;
                return Some(end);
            }
            b'\\' => end.see(*tail.next()?.1),
            _ => {}
        }
    }
    None
}

impl StringEnd {
    /// Takes in what follows a backslash.
    fn see(&mut self, escape: u8) {
        self.escaped = true;
        self.odd |= matches!(escape, b'u' | b'/');
    }
}

/// One value inside a text.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a, 't> {
    tape: &'t Tape<'a>,
    at: usize,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `null`, or nothing at all.
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl<'a, 't> Raw<'a, 't> {
    fn node(&self) -> Option<&'t Node> {
        self.tape.nodes.get(self.at)
    }

    /// Returns the text of this value as it stands.
    pub fn text(&self) -> &'a str {
        self.node().map_or("null", |n| self.tape.slice(n))
    }

    /// Says what this value is.
    pub fn shape(&self) -> Shape {
        match self.node().map(|n| n.first) {
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            Some(b'"') => Shape::String,
            Some(b't' | b'f') => Shape::Bool,
            Some(b'-' | b'0'..=b'9') => Shape::Number,
            _ => Shape::Null,
        }
    }

    /// Returns where this value begins in the text.
    pub fn start(&self) -> usize {
        self.node().map_or(0, |n| n.start as usize)
    }

    /// Returns the quoted key of a member of an object.
    pub fn key(&self) -> &'a str {
        self.at.checked_sub(1).and_then(|at| self.tape.nodes.get(at)).map_or("", |node| self.tape.slice(node))
    }

    /// Iterates over the items of an array; empty for anything else.
    pub fn items(self) -> impl Iterator<Item = Raw<'a, 't>> {
        self.inner(self.inside(Shape::Array), 0)
    }

    /// Iterates over the items of an array or the values of an object.
    pub fn values(self) -> impl Iterator<Item = Raw<'a, 't>> {
        let is_object = self.shape() == Shape::Object;
        self.inner(self.inside(if is_object { Shape::Object } else { Shape::Array }), usize::from(is_object))
    }

    /// The values in a range of nodes, each behind so many others.
    fn inner(self, (mut at, end): (usize, usize), behind: usize) -> impl Iterator<Item = Raw<'a, 't>> {
        std::iter::from_fn(move || {
            let item = Raw { tape: self.tape, at: at + behind };
            let node = (at < end).then(|| item.node()).flatten()?;
            at = node.next as usize;
            Some(item)
        })
    }

    fn inside(&self, shape: Shape) -> (usize, usize) {
        match self.node() {
            Some(node) if self.shape() == shape => (self.at + 1, node.next as usize),
            _ => (0, 0),
        }
    }

    /// Returns a member of an object.
    pub fn get(&self, key: &str) -> Option<Raw<'a, 't>> {
        let (mut at, end) = self.inside(Shape::Object);
        while at < end {
            let name = self.tape.nodes.get(at)?;
            let value = name.next as usize;
            if self.tape.is_key(name, key) {
                return Some(Raw { tape: self.tape, at: value });
            }
            at = self.tape.nodes.get(value)?.next as usize;
        }
        None
    }

    /// Returns a string.
    pub fn string(&self) -> Option<Text<'a>> {
        if self.shape() != Shape::String {
            return None;
        }
        let odd = self.node().is_some_and(|n| n.odd);
        Some(if odd { Text::of(&json::unescape(self.text())) } else { Text(Cow::Borrowed(self.text())) })
    }

    /// Returns a member that is a string.
    pub fn string_at(&self, key: &str) -> Option<Text<'a>> {
        self.get(key)?.string()
    }

    /// Says whether a member is `true`.
    pub fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| v.text() == "true")
    }

    /// Returns a whole number, however it is written.
    pub fn as_i64(&self) -> Option<i64> {
        json::Value::Number(self.text().into()).as_i64().filter(|_| self.shape() == Shape::Number)
    }

    /// Returns this value as a tree; lone halves read as U+FFFD.
    pub fn value(&self) -> json::Value {
        json::parse(self.text(), Surrogates::Replace).unwrap_or_default()
    }
}

/// A string as well-formed JSON text with its quotes, escaped as `JSON.stringify` escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    /// Quotes a plain string.
    pub fn of(plain: &str) -> Text<'static> {
        let mut out = String::with_capacity(plain.len() + 2);
        json::write_string(&mut out, plain);
        Text(Cow::Owned(out))
    }

    /// Returns the quoted form.
    pub fn quoted(&self) -> &str {
        &self.0
    }

    /// Returns the plain string.
    pub fn plain(&self) -> Cow<'_, str> {
        json::unescape(&self.0)
    }

    /// Cuts the tie to the text it was read from.
    pub fn owned(self) -> Text<'static> {
        Text(Cow::Owned(self.0.into_owned()))
    }

    /// Says whether nothing in it can be seen: white space, control and zero-width characters only.
    pub fn is_blank(&self) -> bool {
        match self.0.as_bytes().get(1) {
            Some(b'\\' | 0..=b' ' | 0x7f..) => is_blank(&self.plain()),
            Some(b'"') => true,
            _ => false,
        }
    }
}

/// Says whether nothing in a text can be seen.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control() || matches!(c, '\u{feff}' | '\u{200b}' | '\u{2060}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_items_are_found_without_copying() {
        let text = r#"{"a":{"b":[1,{"c":"x\"y"},[]],"d":true},"\u0065":"\ud83d\ude00","n":-1.5e3,"z":null}"#;
        let tape = Tape::new(text);
        let root = tape.root();
        let items: Vec<_> = root.get("a").unwrap().get("b").unwrap().items().map(|i| i.text().to_owned()).collect();
        assert_eq!(items, ["1", r#"{"c":"x\"y"}"#, "[]"]);
        assert!(root.get("a").unwrap().is_true("d"));
        assert_eq!(root.string_at("e").unwrap().plain(), "😀");
        assert_eq!(root.get("n").unwrap().as_i64(), Some(-1500));
        assert_eq!(root.get("z").unwrap().shape(), Shape::Null);
        assert!(root.get("b").is_none() && root.get("c").is_none());
        assert!(tape.is_odd());
    }

    #[test]
    fn what_is_broken_reads_as_nothing() {
        for bad in ["", "{", "}", "[", "\"a", "{\"a\":\"\\", "]["] {
            let tape = Tape::new(bad);
            assert!(tape.root().get("a").is_none());
            assert_eq!(tape.root().items().count(), 0, "{bad}");
        }
    }

    #[test]
    fn escapes_are_written_the_one_way() {
        for (from, to) in [
            (r#""\/a""#, r#""/a""#),
            (r#""\u001B""#, r#""\u001b""#),
            (r#""x\ud83dy""#, "\"x\u{fffd}y\""),
            (r#""\n\"""#, r#""\n\"""#),
        ] {
            assert_eq!(Tape::new(from).root().string().unwrap().quoted(), to);
        }
    }

    #[test]
    fn blank_is_what_shows_nothing() {
        for blank in ["", " \n", "\u{feff}", "\u{a0}", "\u{200b}", "\0"] {
            assert!(Text::of(blank).is_blank(), "{blank:?}");
        }
        for seen in ["a", " a", "\\", "é", "\"", "\n\n."] {
            assert!(!Text::of(seen).is_blank(), "{seen:?}");
        }
    }

    /// The same, one byte at a time.
    fn end_by_bytes(bytes: &[u8]) -> Option<StringEnd> {
        let mut end = StringEnd::default();
        let mut all = bytes.iter();
        while let Some(byte) = all.next() {
            match byte {
                b'"' => {
                    end.len = bytes.len() - all.len();
                    return Some(end);
                }
                b'\\' => end.see(*all.next()?),
                _ => {}
            }
        }
        None
    }

    #[test]
    fn a_string_ends_at_its_first_quote_that_is_not_escaped() {
        for at in 0..40 {
            for inner in ["", "\\\"", "\\\\", "\\u0041", "\\/", "#]", "\\\"#", "\\\\]\\\\", "ÿÿÿÿÿ", "\\\\\\\"\\n\\\\"]
            {
                let text = format!("{}{inner}{}\"#\"", "x".repeat(at), "]".repeat(at % 3));
                let end = string_end(text.as_bytes()).unwrap();
                assert_eq!(end.len, text.len() - 2, "{text}");
                assert_eq!(end, end_by_bytes(text.as_bytes()).unwrap());
                for cut in 0..end.len {
                    assert_eq!(string_end(&text.as_bytes()[..cut]), None, "{text} at {cut}");
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn eight_bytes_at_a_time_find_what_one_at_a_time_finds(text in "[\"\\\\#\\]ux/é]{0,40}") {
            proptest::prop_assert_eq!(string_end(text.as_bytes()), end_by_bytes(text.as_bytes()));
        }
    }
}
