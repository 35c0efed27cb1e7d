//! A JSON text as a flat tree of slices: one pass, one allocation, nothing copied. What reads raw usage is built on it.

use crate::core::error::Result;
use crate::core::json::{Surrogates, Token, Tokens, unescape};

use super::arithmetic::count_of;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Null,
    Bool(bool),
    Number,
    String,
    Array,
    Object,
}

/// `key` and `span` are byte ranges; a string's include its quotes. `next` is the index behind the whole value.
struct Node {
    key: (usize, usize),
    span: (usize, usize),
    kind: Kind,
    next: usize,
}

/// One parsed text.
pub struct Doc<'a> {
    text: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Doc<'a> {
    /// Parses a text that holds exactly one value.
    pub fn parse(text: &'a str) -> Result<Self> {
        let mut tokens = Tokens::new(text, Surrogates::Replace);
        let mut nodes: Vec<Node> = Vec::with_capacity(32);
        let mut open: Vec<usize> = Vec::with_capacity(8);
        let mut key = (0, 0);
        while let Some(token) = tokens.next_token()? {
            let (kind, span) = match token {
                Token::Key(start, end) => {
                    key = (start, end);
                    continue;
                }
                Token::EndObject | Token::EndArray => {
                    let end = nodes.len();
                    if let Some(node) = open.pop().and_then(|at| nodes.get_mut(at)) {
                        node.next = end;
                        node.span.1 = tokens.position();
                    }
                    continue;
                }
                Token::BeginObject => (Kind::Object, (tokens.position() - 1, 0)),
                Token::BeginArray => (Kind::Array, (tokens.position() - 1, 0)),
                Token::String(start, end) => (Kind::String, (start, end)),
                Token::Number(start, end) => (Kind::Number, (start, end)),
                Token::Bool(b) => (Kind::Bool(b), (0, 0)),
                Token::Null => (Kind::Null, (0, 0)),
            };
            let at = nodes.len();
            nodes.push(Node { key, span, kind, next: at + 1 });
            if matches!(kind, Kind::Object | Kind::Array) {
                open.push(at);
                key = (0, 0);
            }
        }
        Ok(Doc { text, nodes })
    }

    /// Returns the one value.
    pub fn root(&self) -> Json<'_> {
        Json { doc: self, at: 0 }
    }

    fn slice(&self, (start, end): (usize, usize)) -> &str {
        self.text.get(start..end).unwrap_or_default()
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

    fn key_is(self, key: &str) -> bool {
        let Some(node) = self.node() else { return false };
        let (start, end) = node.key;
        if end.wrapping_sub(start) == key.len() + 2 {
            return self.doc.slice((start + 1, end - 1)) == key;
        }
        // An escaped key is longer than what it reads as.
        let quoted = self.doc.slice(node.key);
        quoted.len() > key.len() + 2 && quoted.contains('\\') && unescape(quoted) == key
    }

    /// Iterates over the items of an array or the values of an object.
    pub fn children(self) -> impl Iterator<Item = Json<'d>> {
        let end = self.node().map_or(0, |n| n.next);
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            let child = Json { doc: self.doc, at };
            if at >= end {
                return None;
            }
            at = child.node().map_or(end, |n| n.next);
            Some(child)
        })
    }

    /// Returns a member of an object that is there and not null.
    pub fn get(self, key: &str) -> Option<Json<'d>> {
        if self.kind() != Kind::Object {
            return None;
        }
        self.children().find(|c| c.key_is(key)).filter(|c| c.kind() != Kind::Null)
    }

    /// Returns the first of several members that is there and not null.
    pub fn any(self, keys: &[&str]) -> Option<Json<'d>> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// Returns the key under which this value stands, decoded.
    pub fn key(self) -> std::borrow::Cow<'d, str> {
        self.node().map_or_else(Default::default, |n| unescape(self.doc.slice(n.key)))
    }

    /// Returns the text of a number, as written.
    pub fn number(self) -> Option<&'d str> {
        let node = self.node()?;
        (node.kind == Kind::Number).then(|| self.doc.slice(node.span))
    }

    /// Returns a string, decoded.
    pub fn string(self) -> Option<std::borrow::Cow<'d, str>> {
        let node = self.node()?;
        (node.kind == Kind::String).then(|| unescape(self.doc.slice(node.span)))
    }

    /// Says whether this is `true`.
    pub fn is_true(self) -> bool {
        self.kind() == Kind::Bool(true)
    }

    /// Says whether this is an object.
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// Returns the JSON text of an object, array, string or number.
    pub fn text(self) -> &'d str {
        self.node().map_or("", |n| self.doc.slice(n.span))
    }

    /// Returns a member as a count: what is not a number of at least 0 is 0.
    pub fn count(self, key: &str) -> u64 {
        self.get(key).and_then(Json::number).map_or(0, count_of)
    }

    /// Says whether a member is a number.
    pub fn has_number(self, key: &str) -> bool {
        self.get(key).is_some_and(|v| v.kind() == Kind::Number)
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
        assert!(Doc::parse("{").is_err());
    }
}
