//! Lossless JSON text: one-pass scan without recursion, values that keep the text of their numbers, canonical output.
//!
//! Numbers are text here (`1.50` and `9007199254740993` survive), members keep their order, duplicate keys are refused.

use std::borrow::Cow;
use std::collections::HashSet;

use super::error::{Error, Kind, Result};
use super::limits::MAX_DEPTH;

/// What to do with an escaped lone surrogate half (`"\ud83d"` without its other half).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surrogates {
    /// Refuse the text.
    Refuse,
    /// Let the escape stand in the text; it reads as U+FFFD.
    Replace,
}

/// One token of a JSON text; ranges are byte offsets, strings include their quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// `{`
    BeginObject,
    /// `}`
    EndObject,
    /// `[`
    BeginArray,
    /// `]`
    EndArray,
    /// A member key, with its quotes.
    Key(usize, usize),
    /// A string value, with its quotes.
    String(usize, usize),
    /// A number, as written.
    Number(usize, usize),
    /// `true` or `false`.
    Bool(bool),
    /// `null`
    Null,
}

#[derive(Clone, Copy, PartialEq)]
enum Expect {
    Value,
    FirstItem,
    FirstKey,
    Key,
    Comma,
    End,
}

/// A pull tokenizer over one JSON text. It checks the grammar and the depth, not duplicate keys.
pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
    stack: Vec<u8>,
    expect: Expect,
    surrogates: Surrogates,
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of a text that holds exactly one value.
    pub fn new(text: &'a str, surrogates: Surrogates) -> Self {
        Tokens { text, at: 0, stack: Vec::new(), expect: Expect::Value, surrogates }
    }

    /// Returns the byte offset that was reached.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns how many arrays and objects are open.
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    fn fail<T>(&self, what: &str) -> Result<T> {
        Err(Error::new(Kind::NotJson, format!("{what} at byte {}", self.at)).with("offset", self.at))
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Returns the next token, or `None` after the one value.
    pub fn next_token(&mut self) -> Result<Option<Token>> {
        loop {
            self.skip_space();
            let Some(byte) = self.peek() else {
                return if self.expect == Expect::End { Ok(None) } else { self.fail("text ends early") };
            };
            match (self.expect, byte) {
                (Expect::End, _) => return self.fail("text after the value"),
                (Expect::Comma, b',') => {
                    self.at += 1;
                    let in_object = self.stack.last() == Some(&b'{');
                    self.expect = if in_object { Expect::Key } else { Expect::Value };
                }
                (Expect::Comma | Expect::FirstKey, b'}') if self.stack.last() == Some(&b'{') => {
                    return Ok(Some(self.close(Token::EndObject)));
                }
                (Expect::Comma | Expect::FirstItem, b']') if self.stack.last() == Some(&b'[') => {
                    return Ok(Some(self.close(Token::EndArray)));
                }
                (Expect::FirstKey | Expect::Key, b'"') => return self.key().map(Some),
                (Expect::Value | Expect::FirstItem, _) => return self.value(byte).map(Some),
                _ => return self.fail("unexpected character"),
            }
        }
    }

    fn close(&mut self, token: Token) -> Token {
        self.at += 1;
        self.stack.pop();
        self.after_value();
        token
    }

    fn after_value(&mut self) {
        self.expect = if self.stack.is_empty() { Expect::End } else { Expect::Comma };
    }

    fn key(&mut self) -> Result<Token> {
        let (start, end) = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.fail("a colon is missing");
        }
        self.at += 1;
        self.expect = Expect::Value;
        Ok(Token::Key(start, end))
    }

    fn value(&mut self, byte: u8) -> Result<Token> {
        let token = match byte {
            b'{' => return self.open(b'{', Expect::FirstKey, Token::BeginObject),
            b'[' => return self.open(b'[', Expect::FirstItem, Token::BeginArray),
            b'"' => {
                let (start, end) = self.string()?;
                Token::String(start, end)
            }
            b't' => self.word("true", Token::Bool(true))?,
            b'f' => self.word("false", Token::Bool(false))?,
            b'n' => self.word("null", Token::Null)?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return self.fail("unexpected character"),
        };
        self.after_value();
        Ok(token)
    }

    fn open(&mut self, kind: u8, expect: Expect, token: Token) -> Result<Token> {
        if self.stack.len() >= MAX_DEPTH {
            return self.fail("nesting is deeper than 1,000");
        }
        self.stack.push(kind);
        self.at += 1;
        self.expect = expect;
        Ok(token)
    }

    fn word(&mut self, word: &str, token: Token) -> Result<Token> {
        if self.bytes().get(self.at..self.at + word.len()) != Some(word.as_bytes()) {
            return self.fail("unexpected word");
        }
        self.at += word.len();
        Ok(token)
    }

    fn digits(&mut self) -> Result<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.fail("a digit is missing") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Token> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Token::Number(start, self.at))
    }

    fn string(&mut self) -> Result<(usize, usize)> {
        let start = self.at;
        self.at += 1;
        loop {
            // The hot loop: most bytes of a log are inside strings.
            let rest = self.bytes().get(self.at..).unwrap_or_default();
            let Some(plain) = rest.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20) else {
                return self.fail("a string does not end");
            };
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok((start, self.at));
                }
                Some(b'\\') => self.escape()?,
                _ => return self.fail("a control character stands in a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<()> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                let unit = self.hex4()?;
                match unit {
                    0xd800..=0xdbff => self.low_half(),
                    0xdc00..=0xdfff => self.lone(),
                    _ => Ok(()),
                }
            }
            _ => self.fail("unknown escape"),
        }
    }

    fn hex4(&mut self) -> Result<u32> {
        let unit = self.bytes().get(self.at..self.at + 4).and_then(hex4);
        let Some(unit) = unit else { return self.fail("a \\u escape needs four hexadecimal digits") };
        self.at += 4;
        Ok(unit)
    }

    fn low_half(&mut self) -> Result<()> {
        let next = self.bytes().get(self.at..self.at + 6);
        let low = next.filter(|n| n.starts_with(b"\\u")).and_then(|n| n.get(2..)).and_then(hex4);
        match low {
            Some(0xdc00..=0xdfff) => {
                self.at += 6;
                Ok(())
            }
            _ => self.lone(),
        }
    }

    fn lone(&self) -> Result<()> {
        match self.surrogates {
            Surrogates::Refuse => self.fail("a lone surrogate half"),
            Surrogates::Replace => Ok(()),
        }
    }
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, &d| Some(unit << 4 | (d as char).to_digit(16)?))
}

/// Decodes a string token with its quotes; a lone surrogate half reads as U+FFFD.
pub fn unescape(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap_or(quoted);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = tail.chars();
        chars.next();
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                rest = unescape_unit(tail, &mut out);
                continue;
            }
            Some(other) => out.push(other),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes one `\uXXXX` or a pair at the start of `tail` and returns what follows.
fn unescape_unit<'a>(tail: &'a str, out: &mut String) -> &'a str {
    let unit_at = |at: usize| {
        let escape = tail.as_bytes().get(at..at + 6)?;
        escape.starts_with(b"\\u").then(|| escape.get(2..).and_then(hex4))?
    };
    let Some(high) = unit_at(0) else { return "" };
    if let Some(c) = char::from_u32(high) {
        out.push(c);
        return tail.get(6..).unwrap_or_default();
    }
    if let (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) = (high, unit_at(6)) {
        out.extend(char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
        return tail.get(12..).unwrap_or_default();
    }
    out.push('\u{fffd}');
    tail.get(6..).unwrap_or_default()
}

/// Appends a string with quotes and escapes, byte for byte as `JSON.stringify` writes it.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(text.get(from..at).unwrap_or_default());
        from = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => out.push_str(&format!("\\u{byte:04x}")),
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}

/// Checks that a text is exactly one value: grammar, depth, surrogates, no duplicate keys.
pub fn check(text: &str, surrogates: Surrogates) -> Result<()> {
    let mut tokens = Tokens::new(text, surrogates);
    let mut keys = KeySets::default();
    while let Some(token) = tokens.next_token()? {
        keys.see(text, token)?;
    }
    Ok(())
}

/// Finds duplicate keys, object by object.
#[derive(Default)]
struct KeySets<'a> {
    open: Vec<KeySet<'a>>,
}

#[derive(Default)]
struct KeySet<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<String>,
}

/// Up to this many keys a linear search is faster than hashing.
const FEW_KEYS: usize = 12;

impl<'a> KeySet<'a> {
    fn insert(&mut self, key: Cow<'a, str>) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(key.into_owned());
        }
        if self.few.contains(&key) {
            return false;
        }
        self.few.push(key);
        if self.few.len() > FEW_KEYS {
            self.many = self.few.drain(..).map(Cow::into_owned).collect();
        }
        true
    }
}

impl<'a> KeySets<'a> {
    fn see(&mut self, text: &'a str, token: Token) -> Result<()> {
        match token {
            Token::BeginObject => self.open.push(KeySet::default()),
            Token::EndObject => {
                self.open.pop();
            }
            Token::Key(start, end) => {
                let key = unescape(text.get(start..end).unwrap_or_default());
                if self.open.last_mut().is_some_and(|set| !set.insert(key)) {
                    return Err(Error::new(Kind::NotJson, format!("a key stands twice in one object at byte {start}"))
                        .with("offset", start));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A JSON value that keeps the text of its numbers and the order of its members.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as written.
    Number(Box<str>),
    /// A string, decoded.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Object),
}

/// The members of an object in their order; keys are unique.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    /// Returns a member.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Returns a member for changing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Sets a member: in its place if it is there, else at the end.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.get_mut(key) {
            Some(slot) => *slot = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Removes a member and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    /// Iterates in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Iterates in order, values for changing.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(k, v)| (k.as_str(), v))
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Says whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a member without looking for an equal key; the caller knows that there is none.
    pub fn push_unchecked(&mut self, key: String, value: Value) {
        self.0.push((key, value));
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Into<String>, const N: usize> From<[(K, Value); N]> for Object {
    fn from(members: [(K, Value); N]) -> Self {
        // By way of one list, so that the work exists once and not for every length.
        Object::of(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl Object {
    fn of(members: Vec<(String, Value)>) -> Self {
        members.into_iter().collect()
    }
}

impl FromIterator<(String, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        let mut object = Object::default();
        for (key, value) in members {
            object.set(&key, value);
        }
        object
    }
}

impl Value {
    /// Returns a member, when this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Returns what a chain of member names leads to.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// Returns a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns the text of a number.
    pub fn as_number(&self) -> Option<&str> {
        match self {
            Value::Number(n) => Some(n),
            _ => None,
        }
    }

    /// Returns the nearest double of a number.
    pub fn as_f64(&self) -> Option<f64> {
        super::double::parse(self.as_number()?)
    }

    /// Returns a number that is a whole number of at most 2^53, however it is written.
    pub fn as_i64(&self) -> Option<i64> {
        let text = self.as_number()?;
        if let Ok(n) = text.parse::<i64>() {
            return Some(n);
        }
        let n = super::double::parse(text)?;
        (n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0).then_some(n as i64)
    }

    /// Returns the items of an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the members of an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the members of an object for changing.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Says whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Appends the shortest JSON text of this value.
    pub fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(n) => out.push_str(n),
            Value::String(s) => write_string(out, s),
            Value::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Value::Object(members) => members.write(out),
        }
    }

    /// Returns the shortest JSON text of this value.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

impl Object {
    /// Appends the shortest JSON text of this object.
    pub fn write(&self, out: &mut String) {
        out.push('{');
        for (i, (key, value)) in self.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_string(out, key);
            out.push(':');
            value.write(out);
        }
        out.push('}');
    }

    /// Returns the shortest JSON text of this object.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

impl From<f64> for Value {
    /// A number that is not finite becomes `null`, as JSON has no other word for it.
    fn from(n: f64) -> Self {
        if n.is_finite() { Value::Number(super::double::print(n).into()) } else { Value::Null }
    }
}

macro_rules! from_whole {
    ($($t:ty)+) => { $(impl From<$t> for Value {
        fn from(n: $t) -> Self { Value::Number(n.to_string().into()) }
    })+ };
}
from_whole!(i32 u32 i64 u64 usize);

impl From<Object> for Value {
    fn from(members: Object) -> Self {
        Value::Object(members)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::Array(items)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

enum Open {
    Array(Vec<Value>),
    Object(Object, Option<String>),
}

/// Parses one value; refuses duplicate keys.
pub fn parse(text: &str, surrogates: Surrogates) -> Result<Value> {
    let mut tokens = Tokens::new(text, surrogates);
    let mut keys = KeySets::default();
    let mut open: Vec<Open> = Vec::new();
    let mut root = Value::Null;
    while let Some(token) = tokens.next_token()? {
        keys.see(text, token)?;
        let slice = |start: usize, end: usize| text.get(start..end).unwrap_or_default();
        let value = match token {
            Token::BeginArray => {
                open.push(Open::Array(Vec::new()));
                continue;
            }
            Token::BeginObject => {
                open.push(Open::Object(Object::default(), None));
                continue;
            }
            Token::Key(start, end) => {
                if let Some(Open::Object(_, key)) = open.last_mut() {
                    *key = Some(unescape(slice(start, end)).into_owned());
                }
                continue;
            }
            Token::EndArray | Token::EndObject => match open.pop() {
                Some(Open::Array(items)) => Value::Array(items),
                Some(Open::Object(members, _)) => Value::Object(members),
                None => Value::Null,
            },
            Token::String(start, end) => Value::String(unescape(slice(start, end)).into_owned()),
            Token::Number(start, end) => Value::Number(slice(start, end).into()),
            Token::Bool(b) => Value::Bool(b),
            Token::Null => Value::Null,
        };
        match open.last_mut() {
            Some(Open::Array(items)) => items.push(value),
            Some(Open::Object(members, key)) => members.push_unchecked(key.take().unwrap_or_default(), value),
            None => root = value,
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round(text: &str) -> String {
        parse(text, Surrogates::Refuse).unwrap().to_text()
    }

    #[test]
    fn numbers_keep_their_text_and_members_their_order() {
        let text = r#"{"z":1.50,"a":9007199254740993,"m":[-0,1e400,0.1]}"#;
        assert_eq!(round(text), text);
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
            "tru",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\n\"",
            "1 2",
            "[1 2]",
            "{\"a\" 1}",
            "[}",
            "{]",
            "NaN",
            "'a'",
            "[,1]",
            "\u{feff}1",
            "\"\\u12g4\"",
        ] {
            assert!(check(bad, Surrogates::Refuse).is_err(), "{bad:?}");
            assert!(parse(bad, Surrogates::Refuse).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn duplicate_keys_are_refused_also_when_escaped() {
        for bad in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"k":1,"k":1}}]"#] {
            assert_eq!(check(bad, Surrogates::Refuse).unwrap_err().code(), "not_json");
        }
        let many: Vec<String> = (0..50).map(|i| format!("\"k{}\":1", i % 49)).collect();
        assert!(check(&format!("{{{}}}", many.join(",")), Surrogates::Refuse).is_err());
        check(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#, Surrogates::Refuse).unwrap();
    }

    /// G05
    #[test]
    fn nesting_is_bounded_and_never_overflows() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        parse(&deep(1_000), Surrogates::Refuse).unwrap();
        assert_eq!(check(&deep(1_001), Surrogates::Refuse).unwrap_err().code(), "not_json");
        assert!(parse(&"[".repeat(100_000), Surrogates::Refuse).is_err());
        assert!(parse(&"{\"a\":".repeat(100_000), Surrogates::Refuse).is_err());
    }

    /// A15
    #[test]
    fn lone_halves_are_refused_or_read_as_replacement() {
        for (text, read) in [
            (r#""x\ud83d…""#, "x\u{fffd}…"),
            (r#""\udc00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\ud83d\ud83d\udd25""#, "\u{fffd}🔥"),
        ] {
            assert!(check(text, Surrogates::Refuse).is_err(), "{text}");
            assert_eq!(parse(text, Surrogates::Replace).unwrap().as_str(), Some(read), "{text}");
        }
        assert_eq!(parse(r#""\ud83d\udd25""#, Surrogates::Refuse).unwrap().as_str(), Some("🔥"));
    }

    #[test]
    fn strings_are_written_as_javascript_writes_them() {
        let mut out = String::new();
        write_string(&mut out, "a\"\\/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é🔥\u{2028}");
        assert_eq!(out, "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é🔥\u{2028}\"");
    }

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        let read = |t: &str| parse(t, Surrogates::Refuse).unwrap().as_i64();
        assert_eq!(read("12"), Some(12));
        assert_eq!(read("1.2e1"), Some(12));
        assert_eq!(read("12.0"), Some(12));
        assert_eq!(read("12.5"), None);
        assert_eq!(read("1e300"), None);
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_an_independent_parser(value in any_json(), pretty in any::<bool>()) {
            let compact = value.to_string();
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { compact.clone() };
            let ours = parse(&text, Surrogates::Refuse).unwrap();
            prop_assert_eq!(ours.to_text(), compact);
        }

        #[test]
        fn random_text_never_panics_and_is_judged_alike(text in "[\\[\\]{}\",:0-9eE+.\\\\a-u -]{0,40}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            let ours = parse(&text, Surrogates::Refuse);
            if ours.is_ok() { prop_assert!(theirs.is_ok()); }
            if theirs.is_ok() && ours.is_err() {
                prop_assert!(ours.unwrap_err().message().contains("twice"));
            }
        }
    }
}
