//! Exact secrets, and the forms they take inside other texts: JSON-escaped, URL-encoded, base64 at each alignment.

use crate::core::sorted::SortedMap;
use std::borrow::Cow;
use std::rc::Rc;

use super::super::error::{Error, Kind, Result};
use super::super::json::write_string;
use super::chain::{Pieces, Scrubber};

/// Shorter values would be found everywhere.
const SHORTEST: usize = 8;

/// Exact values, found in one pass whatever their number (Aho–Corasick, leftmost and longest first).
pub struct Values {
    name: String,
    mark: String,
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    next: SortedMap<u8, u32>,
    fail: u32,
    depth: u32,
    /// The longest form that ends here, in bytes.
    found: u32,
}

impl Values {
    /// Takes the values; refuses those under 8 characters.
    pub fn new(values: &[String], name: Option<&str>) -> Result<Self> {
        if let Some(at) = values.iter().position(|v| v.chars().count() < SHORTEST) {
            let message = format!("an exact value needs at least {SHORTEST} characters");
            return Err(Error::new(Kind::ScrubberRefused, message).with("index", at));
        }
        let name = name.unwrap_or("value").to_owned();
        let mut out = Values { mark: super::mark(&name), name, nodes: vec![Node::default()] };
        let mark = out.mark.clone();
        for form in values.iter().flat_map(|v| forms(v)).filter(|f| !mark.as_bytes().windows(f.len()).any(|w| w == f)) {
            out.add(&form);
        }
        out.link();
        Ok(out)
    }

    fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    fn child(&self, at: u32, byte: u8) -> Option<u32> {
        self.node(at)?.next.get(&byte).copied()
    }

    fn add(&mut self, form: &[u8]) {
        let mut at = 0;
        for (depth, &byte) in form.iter().enumerate() {
            at = match self.child(at, byte) {
                Some(next) => next,
                None => {
                    let next = self.nodes.len() as u32;
                    self.nodes.push(Node { depth: depth as u32 + 1, ..Node::default() });
                    if let Some(node) = self.nodes.get_mut(at as usize) {
                        node.next.insert(byte, next);
                    }
                    next
                }
            };
        }
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.found = form.len() as u32;
        }
    }

    /// Links every node to the longest other beginning that its text ends with.
    fn link(&mut self) {
        let mut queue: std::collections::VecDeque<u32> = [0].into();
        while let Some(at) = queue.pop_front() {
            let children: Vec<(u8, u32)> =
                self.node(at).map(|n| n.next.iter().map(|(&b, &c)| (b, c)).collect()).unwrap_or_default();
            let fail_of_parent = self.node(at).map_or(0, |n| n.fail);
            for (byte, child) in children {
                let fail = if at == 0 { 0 } else { self.step(fail_of_parent, byte) };
                let inherited = self.node(fail).map_or(0, |n| n.found);
                if let Some(node) = self.nodes.get_mut(child as usize) {
                    node.fail = fail;
                    node.found = node.found.max(inherited);
                }
                queue.push_back(child);
            }
        }
    }

    fn step(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            if let Some(next) = self.child(at, byte) {
                return next;
            }
            if at == 0 {
                return 0;
            }
            at = self.node(at).map_or(0, |n| n.fail);
        }
    }
}

/// Every form of a value.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut json = String::new();
    write_string(&mut json, value);
    let inner = |quoted: &str| quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
    let json = inner(&json);
    let mut twice = String::new();
    write_string(&mut twice, &json);
    let ascii: String = json.chars().map(|c| if c.is_ascii() { c.to_string() } else { units(c) }).collect();
    let texts = [
        value.to_owned(),
        json.clone(),
        json.replace('/', "\\/"),
        inner(&twice),
        ascii,
        percent(value, b"-_.~"),
        percent(value, b"-_.!~*'()"),
        percent(value, b"-_.~").replace("%20", "+"),
        lower_percent(value),
    ];
    let mut out: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
    for skip in 0..3 {
        out.extend(base64_inside(value.as_bytes(), skip));
    }
    crate::core::sorted::sort_by(&mut out, |a, b| a < b);
    out.dedup();
    out
}

fn units(c: char) -> String {
    let mut buffer = [0u16; 2];
    c.encode_utf16(&mut buffer).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

fn percent(value: &str, plain: &[u8]) -> String {
    value
        .bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || plain.contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

fn lower_percent(value: &str) -> String {
    value
        .bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02x}")
            }
        })
        .collect()
}

/// The characters of base64, of both alphabets, that the value alone decides when `skip` bytes stand before it.
fn base64_inside(value: &[u8], skip: usize) -> Vec<Vec<u8>> {
    let first = (skip * 8).div_ceil(6);
    let last = (skip + value.len()) * 8 / 6;
    let mut bytes = vec![0; skip];
    bytes.extend_from_slice(value);
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |b| b >> (7 - at % 8) & 1);
    let digit = |at: usize| (0..6).fold(0u8, |n, k| n << 1 | bit(at * 6 + k));
    let digits: Vec<u8> = (first..last).map(digit).collect();
    let write = |alphabet: [u8; 2]| -> Vec<u8> {
        digits
            .iter()
            .map(|&d| match d {
                0..=25 => b'A' + d,
                26..=51 => b'a' + d - 26,
                52..=61 => b'0' + d - 52,
                62 => alphabet[0],
                _ => alphabet[1],
            })
            .collect()
    };
    vec![write(*b"+/"), write(*b"-_")]
}

impl Scrubber for Values {
    fn name(&self) -> &str {
        &self.name
    }

    fn scrub<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        let mut run = Run::default();
        let mut out = String::new();
        run.buffer = text.as_bytes().to_vec();
        run.advance(self, true, &mut out);
        Ok(if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) })
    }

    fn spans(&self, text: &str) -> Option<Vec<(usize, usize)>> {
        let mut run = Run { buffer: text.as_bytes().to_vec(), found: Some(Vec::new()), ..Run::default() };
        run.advance(self, true, &mut String::new());
        run.found
    }

    fn pieces(self: Rc<Self>) -> Option<Box<dyn Pieces>> {
        Some(Box::new(ValuePieces { values: self, run: Run::default() }))
    }
}

/// A scan that can be put down and taken up again.
#[derive(Default)]
struct Run {
    buffer: Vec<u8>,
    /// How much of the buffer the automaton has read.
    read: usize,
    node: u32,
    /// The best match so far that has not been passed.
    best: Option<(usize, usize)>,
    released: usize,
    /// Matches of a whole text, when they are asked for.
    found: Option<Vec<(usize, usize)>>,
}

impl Run {
    fn advance(&mut self, values: &Values, eof: bool, out: &mut String) {
        loop {
            while let Some(&byte) = self.buffer.get(self.read) {
                self.node = values.step(self.node, byte);
                self.read += 1;
                let Some(node) = values.node(self.node) else { break };
                if node.found > 0 {
                    let start = self.read - node.found as usize;
                    // Leftmost first, then longest.
                    if self.best.is_none_or(|(s, e)| start < s || (start == s && self.read > e)) {
                        self.best = Some((start, self.read));
                    }
                }
                if self.best.is_some_and(|(s, _)| self.read - node.depth as usize > s) {
                    break;
                }
            }
            let depth = values.node(self.node).map_or(0, |n| n.depth as usize);
            let passed = self.best.filter(|&(s, _)| eof && self.read >= self.buffer.len() || self.read - depth > s);
            let Some((start, end)) = passed else { break };
            self.release(start, out);
            out.push_str(&values.mark);
            if let Some(found) = &mut self.found {
                found.push((start, end));
            }
            self.released = end;
            self.read = end;
            self.node = 0;
            self.best = None;
        }
        let depth = values.node(self.node).map_or(0, |n| n.depth as usize);
        let held = if eof {
            self.buffer.len()
        } else {
            self.best.map_or(self.read - depth, |(s, _)| s.min(self.read - depth))
        };
        self.release(held, out);
        if self.released > 4_096 {
            self.buffer.drain(..self.released);
            self.read -= self.released;
            self.best = self.best.map(|(s, e)| (s - self.released, e - self.released));
            self.released = 0;
        }
    }

    fn release(&mut self, to: usize, out: &mut String) {
        let mut to = to.max(self.released);
        while to > self.released && self.buffer.get(to).is_some_and(|b| b & 0xc0 == 0x80) {
            to -= 1;
        }
        let bytes = self.buffer.get(self.released..to).unwrap_or_default();
        out.push_str(&String::from_utf8_lossy(bytes));
        self.released = to;
    }
}

struct ValuePieces {
    values: Rc<Values>,
    run: Run,
}

impl Pieces for ValuePieces {
    fn push(&mut self, piece: &str, out: &mut String) -> Result<()> {
        self.run.buffer.extend_from_slice(piece.as_bytes());
        self.run.advance(&self.values, false, out);
        Ok(())
    }

    fn end(&mut self, out: &mut String) -> Result<()> {
        self.run.advance(&self.values, true, out);
        Ok(())
    }
}
