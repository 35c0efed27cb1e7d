//! The syntax of patterns.

use std::rc::Rc;

use super::Assert;

/// Characters from one to another.
pub(super) type Range = (char, char);
type Parsed<T> = Result<T, &'static str>;

/// A pattern as a tree.
pub(super) enum Node {
    Empty,
    Class(Rc<[Range]>, bool),
    Assert(Assert),
    Sequence(Vec<Node>),
    Either(Vec<Node>),
    Repeat { node: Box<Node>, min: usize, max: Option<usize>, greedy: bool },
}

const DEEPEST: usize = 50;
const DIGITS: &[Range] = &[('0', '9')];
const WORD: &[Range] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
const SPACES: &[Range] = &[
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];
const LINE_ENDS: &[Range] = &[('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')];

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    any_case: bool,
}

/// Reads a pattern; says why when it is refused.
pub(super) fn parse(pattern: &str) -> Parsed<Node> {
    let any_case = pattern.starts_with("(?i)");
    let chars = pattern.strip_prefix("(?i)").unwrap_or(pattern).chars().collect();
    let mut parser = Parser { chars, at: 0, depth: 0, any_case };
    let node = parser.either()?;
    if parser.at < parser.chars.len() { Err("has a parenthesis too many") } else { Ok(node) }
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn either(&mut self) -> Parsed<Node> {
        let mut ways = vec![self.sequence()?];
        while self.take('|') {
            ways.push(self.sequence()?);
        }
        Ok(if ways.len() == 1 { ways.pop().unwrap_or(Node::Empty) } else { Node::Either(ways) })
    }

    fn sequence(&mut self) -> Parsed<Node> {
        let mut items = Vec::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            let atom = self.atom()?;
            items.push(self.repeated(atom)?);
        }
        Ok(Node::Sequence(items))
    }

    fn repeated(&mut self, node: Node) -> Parsed<Node> {
        let start = self.at;
        let (min, max) = match self.next() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.counts()? {
                Some(counts) => counts,
                None => {
                    self.at = start;
                    return Ok(node);
                }
            },
            _ => {
                self.at = start;
                return Ok(node);
            }
        };
        let greedy = !self.take('?');
        if matches!(self.peek(), Some('*' | '+' | '?')) {
            return Err("repeats a repetition");
        }
        Ok(Node::Repeat { node: Box::new(node), min, max, greedy })
    }

    /// `3}`, `3,}`, `3,5}` behind a brace; anything else is text, as in JavaScript.
    fn counts(&mut self) -> Parsed<Option<(usize, Option<usize>)>> {
        let Some(min) = self.number() else { return Ok(None) };
        let max = if self.take(',') { self.number() } else { Some(min) };
        if !self.take('}') {
            return Ok(None);
        }
        match max {
            Some(max) if max < min => Err("counts backwards"),
            max if min > 1_000 || max.is_some_and(|m| m > 1_000) => Err("repeats more than 1,000 times"),
            max => Ok(Some((min, max))),
        }
    }

    fn number(&mut self) -> Option<usize> {
        let mut value = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            value = Some(value.unwrap_or(0usize).saturating_mul(10).saturating_add(digit as usize));
            self.at += 1;
        }
        value
    }

    fn class(&self, ranges: &[Range], negated: bool) -> Node {
        let mut ranges = ranges.to_vec();
        if self.any_case {
            for (low, high) in ranges.clone() {
                add_other_case(&mut ranges, low, high);
            }
        }
        Node::Class(ranges.into(), negated)
    }

    fn atom(&mut self) -> Parsed<Node> {
        match self.next() {
            Some('.') => Ok(self.class(LINE_ENDS, true)),
            Some('^') => Ok(Node::Assert(Assert::Start)),
            Some('$') => Ok(Node::Assert(Assert::End)),
            Some('(') => self.group(),
            Some('[') => self.set(),
            Some('\\') => self.escape(),
            Some('*' | '+' | '?') => Err("repeats nothing"),
            Some(c) => Ok(self.class(&[(c, c)], false)),
            None => Ok(Node::Empty),
        }
    }

    fn group(&mut self) -> Parsed<Node> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("is nested too deeply");
        }
        if self.take('?') && !self.take(':') {
            match (self.next(), self.peek()) {
                (Some('='), _) | (Some('!'), _) => return Err("looks ahead, which has no linear-time match"),
                (Some('<'), Some('=' | '!')) => return Err("looks behind, which has no linear-time match"),
                (Some('<'), _) => self.group_name()?,
                _ => return Err("has a group of an unknown kind"),
            }
        }
        let node = self.either()?;
        self.depth -= 1;
        if self.take(')') { Ok(node) } else { Err("has a group that does not end") }
    }

    fn group_name(&mut self) -> Parsed<()> {
        while let Some(c) = self.next() {
            match c {
                '>' => return Ok(()),
                c if c.is_ascii_alphanumeric() || c == '_' => {}
                _ => break,
            }
        }
        Err("has a group with a bad name")
    }

    fn escape(&mut self) -> Parsed<Node> {
        match self.peek() {
            Some('b') => {
                self.at += 1;
                return Ok(Node::Assert(Assert::Boundary));
            }
            Some('B') => {
                self.at += 1;
                return Ok(Node::Assert(Assert::NotBoundary));
            }
            Some('1'..='9' | 'k') => return Err("refers back to a group, which has no linear-time match"),
            _ => {}
        }
        Ok(match self.escaped()? {
            Escaped::Char(c) => self.class(&[(c, c)], false),
            Escaped::Class(ranges, negated) => self.class(ranges, negated),
        })
    }

    fn escaped(&mut self) -> Parsed<Escaped> {
        let Some(c) = self.next() else { return Err("ends in a backslash") };
        Ok(match c {
            'd' => Escaped::Class(DIGITS, false),
            'D' => Escaped::Class(DIGITS, true),
            'w' => Escaped::Class(WORD, false),
            'W' => Escaped::Class(WORD, true),
            's' => Escaped::Class(SPACES, false),
            'S' => Escaped::Class(SPACES, true),
            'n' => Escaped::Char('\n'),
            'r' => Escaped::Char('\r'),
            't' => Escaped::Char('\t'),
            'v' => Escaped::Char('\u{b}'),
            'f' => Escaped::Char('\u{c}'),
            '0' => Escaped::Char('\0'),
            'x' => Escaped::Char(self.hex(2)?),
            'u' if self.take('{') => {
                let c = self.hex_until_brace()?;
                Escaped::Char(c)
            }
            'u' => Escaped::Char(self.hex(4)?),
            'p' | 'P' => return Err("uses Unicode properties, which are not in the module"),
            c if c.is_ascii_alphanumeric() => return Err("has an unknown escape"),
            c => Escaped::Char(c),
        })
    }

    fn hex(&mut self, digits: usize) -> Parsed<char> {
        let mut value = 0;
        for _ in 0..digits {
            let digit = self.next().and_then(|c| c.to_digit(16)).ok_or("has an escape that is cut short")?;
            value = value * 16 + digit;
        }
        char::from_u32(value).ok_or("names half a surrogate pair")
    }

    fn hex_until_brace(&mut self) -> Parsed<char> {
        let mut value = 0u32;
        loop {
            match self.next() {
                Some('}') => return char::from_u32(value).ok_or("names a character that does not exist"),
                Some(c) => {
                    let digit = c.to_digit(16).ok_or("has a bad escape")?;
                    value = value.saturating_mul(16).saturating_add(digit);
                }
                None => return Err("has an escape that is cut short"),
            }
        }
    }

    fn set(&mut self) -> Parsed<Node> {
        let negated = self.take('^');
        let mut ranges: Vec<Range> = Vec::new();
        loop {
            let low = match self.next() {
                None => return Err("has a set that does not end"),
                Some(']') => break,
                Some('\\') => match self.set_escape()? {
                    Escaped::Char(c) => c,
                    Escaped::Class(more, turned) => {
                        add_class(&mut ranges, more, turned);
                        continue;
                    }
                },
                Some(c) => c,
            };
            let range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|&c| c != ']');
            if !range {
                ranges.push((low, low));
                continue;
            }
            self.at += 1;
            let high = match self.next() {
                Some('\\') => match self.set_escape()? {
                    Escaped::Char(c) => c,
                    Escaped::Class(..) => return Err("has a range that ends in a class"),
                },
                Some(c) => c,
                None => return Err("has a set that does not end"),
            };
            if high < low {
                return Err("has a range that runs backwards");
            }
            ranges.push((low, high));
        }
        Ok(self.class(&ranges, negated))
    }

    fn set_escape(&mut self) -> Parsed<Escaped> {
        if self.take('b') {
            return Ok(Escaped::Char('\u{8}'));
        }
        self.escaped()
    }
}

enum Escaped {
    Char(char),
    Class(&'static [Range], bool),
}

/// Adds a class inside a set, turned around when asked.
fn add_class(ranges: &mut Vec<Range>, class: &[Range], turned: bool) {
    if !turned {
        ranges.extend_from_slice(class);
        return;
    }
    let mut from = 0u32;
    for &(low, high) in class {
        if u32::from(low) > from {
            push_codes(ranges, from, u32::from(low) - 1);
        }
        from = u32::from(high) + 1;
    }
    push_codes(ranges, from, 0x10_ffff);
}

/// Adds code points without the surrogates between them.
fn push_codes(ranges: &mut Vec<Range>, low: u32, high: u32) {
    for (low, high) in [(low, high.min(0xd7ff)), (low.max(0xe000), high)] {
        if let (true, Some(low), Some(high)) = (low <= high, char::from_u32(low), char::from_u32(high)) {
            ranges.push((low, high));
        }
    }
}

fn add_other_case(ranges: &mut Vec<Range>, low: char, high: char) {
    let part = |from: char, to: char| (low.max(from) <= high.min(to)).then(|| (low.max(from), high.min(to)));
    ranges.extend(part('a', 'z').map(|(a, b)| (a.to_ascii_uppercase(), b.to_ascii_uppercase())));
    ranges.extend(part('A', 'Z').map(|(a, b)| (a.to_ascii_lowercase(), b.to_ascii_lowercase())));
}
