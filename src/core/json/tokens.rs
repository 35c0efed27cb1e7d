//! A text taken apart token by token.

use super::Surrogates;
use crate::core::error::{Error, Kind, Result};
use crate::core::limits::MAX_DEPTH;

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
    deepest: usize,
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of a text that holds exactly one value.
    pub fn new(text: &'a str, surrogates: Surrogates) -> Self {
        Tokens { text, at: 0, stack: Vec::new(), expect: Expect::Value, surrogates, deepest: MAX_DEPTH }
    }

    /// Lets the text be deeper by the levels that payloads stand in: an event has one of its own, a list of events another.
    pub fn around(mut self, levels: usize) -> Self {
        self.deepest += levels;
        self
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
        if self.stack.len() >= self.deepest {
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

pub(super) fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, &d| Some(unit << 4 | (d as char).to_digit(16)?))
}
