//! Patterns of users, matched in linear time: syntax of JavaScript's regular expressions, run as a set of states (Pike's way).
//!
//! What cannot be matched so is refused: references back, look-ahead and look-behind. Own code, because the smallest crate
//! costs several times as much in the module (docs/scrubbing.md).

mod parse;
mod run;

use std::borrow::Cow;
use std::rc::Rc;

use super::super::error::{Error, Kind, Result};
use super::chain::{Pieces, Scrubber};
use parse::{Node, Range};
use run::Run;

/// More states than this are refused: time is states times text.
const MAX_STATES: usize = 2_000;

/// One step of the program.
#[derive(Clone, Debug)]
enum Step {
    /// A character of a class; the flag turns the class around.
    Class(Rc<[Range]>, bool),
    /// Both ways, the first preferred.
    Split(usize, usize),
    Jump(usize),
    Assert(Assert),
    Match,
}

/// A condition on a place between characters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Assert {
    Start,
    End,
    Boundary,
    NotBoundary,
}

/// A pattern and what is put in the place of its matches.
pub struct Pattern {
    name: String,
    replacement: String,
    /// The replacement when it is a mark: where it stands already, nothing is looked for.
    barrier: String,
    program: Vec<Step>,
}

impl Pattern {
    /// Compiles a pattern; without a replacement the mark of its name stands for every match.
    pub fn new(pattern: &str, replacement: Option<&str>, name: Option<&str>) -> Result<Self> {
        let name = name.unwrap_or("pattern").to_owned();
        let refuse = |why: String| {
            Error::new(Kind::ScrubberRefused, format!("the pattern {why}")).with("scrubber", name.as_str())
        };
        let node = parse::parse(pattern).map_err(|why| refuse(why.to_owned()))?;
        let mut program = Vec::new();
        compile(&node, &mut program).map_err(|why| refuse(why.to_owned()))?;
        program.push(Step::Match);
        let replacement = replacement.map_or_else(|| super::mark(&name), str::to_owned);
        let barrier = if replacement.starts_with(super::MARK) { replacement.clone() } else { String::new() };
        Ok(Pattern { name, replacement, barrier, program })
    }
}

fn compile(node: &Node, out: &mut Vec<Step>) -> std::result::Result<(), &'static str> {
    if out.len() > MAX_STATES {
        return Err("is too large");
    }
    match node {
        Node::Empty => {}
        Node::Class(ranges, negated) => out.push(Step::Class(ranges.clone(), *negated)),
        Node::Assert(what) => out.push(Step::Assert(*what)),
        Node::Sequence(items) => items.iter().try_for_each(|item| compile(item, out))?,
        Node::Either(ways) => either(ways, out)?,
        Node::Repeat { node, min, max, greedy } => repeat(node, *min, *max, *greedy, out)?,
    }
    Ok(())
}

fn set(out: &mut [Step], at: usize, step: Step) {
    if let Some(slot) = out.get_mut(at) {
        *slot = step;
    }
}

fn either(ways: &[Node], out: &mut Vec<Step>) -> std::result::Result<(), &'static str> {
    let mut jumps = Vec::new();
    for (at, way) in ways.iter().enumerate() {
        if at + 1 == ways.len() {
            compile(way, out)?;
            break;
        }
        let split = out.len();
        out.push(Step::Match);
        compile(way, out)?;
        jumps.push(out.len());
        out.push(Step::Match);
        let after = out.len();
        set(out, split, Step::Split(split + 1, after));
    }
    let end = out.len();
    jumps.into_iter().for_each(|at| set(out, at, Step::Jump(end)));
    Ok(())
}

fn repeat(
    node: &Node,
    min: usize,
    max: Option<usize>,
    greedy: bool,
    out: &mut Vec<Step>,
) -> std::result::Result<(), &'static str> {
    let split =
        |first: usize, second: usize| if greedy { Step::Split(first, second) } else { Step::Split(second, first) };
    for _ in 0..min {
        compile(node, out)?;
    }
    let Some(max) = max else {
        let start = out.len();
        out.push(Step::Match);
        compile(node, out)?;
        out.push(Step::Jump(start));
        let end = out.len();
        set(out, start, split(start + 1, end));
        return Ok(());
    };
    let mut splits = Vec::new();
    for _ in min..max {
        splits.push(out.len());
        out.push(Step::Match);
        compile(node, out)?;
    }
    let end = out.len();
    splits.into_iter().for_each(|at| set(out, at, split(at + 1, end)));
    Ok(())
}

impl Scrubber for Pattern {
    fn name(&self) -> &str {
        &self.name
    }

    fn scrub<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        let mut run = Run::new(self);
        let mut out = String::new();
        run.buffer.push_str(text);
        run.advance(self, true, &mut out);
        Ok(if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) })
    }

    fn spans(&self, text: &str) -> Option<Vec<(usize, usize)>> {
        let mut run = Run::new(self);
        run.found = Some(Vec::new());
        run.buffer.push_str(text);
        run.advance(self, true, &mut String::new());
        run.found
    }

    fn pieces(self: Rc<Self>) -> Option<Box<dyn Pieces>> {
        let run = Run::new(&self);
        Some(Box::new(PatternPieces { pattern: self, run }))
    }
}

struct PatternPieces {
    pattern: Rc<Pattern>,
    run: Run,
}

impl Pieces for PatternPieces {
    fn push(&mut self, piece: &str, out: &mut String) -> Result<()> {
        self.run.buffer.push_str(piece);
        self.run.advance(&self.pattern, false, out);
        Ok(())
    }

    fn end(&mut self, out: &mut String) -> Result<()> {
        self.run.advance(&self.pattern, true, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrub(pattern: &str, text: &str) -> String {
        Pattern::new(pattern, Some("#"), None).unwrap().scrub(text).unwrap().into_owned()
    }

    #[test]
    fn matches_as_javascript_does() {
        for (pattern, text, right) in [
            ("abc", "xabcabcx", "x##x"),
            ("a+", "caaat aa", "c#t #"),
            ("a+?", "aaa", "###"),
            ("a|ab", "ab", "#b"),
            ("ab|a", "ab", "#"),
            ("[0-9]{3}-\\d{2,3}", "123-45678", "#78"),
            ("(?:foo|bar)+\\b", "foobarx foobar", "foobarx #"),
            ("^a", "aa", "#a"),
            ("a$", "aa", "a#"),
            ("\\bcat\\b", "cat concat cat", "# concat #"),
            ("[^\\s]+@x", "to a@x b", "to # b"),
            ("x.y", "x\ny xzy", "x\ny #"),
            ("(?i)key", "KEY kEy", "# #"),
            ("\\x41\\u0042\\u{43}", "ABC", "#"),
            ("[\\w.-]+", "a.b-c d", "# #"),
            ("é+", "caféé!", "caf#!"),
            ("a{0}b", "ab", "a#"),
            ("(?<year>\\d{4})", "in 2026", "in #"),
            ("a*", "baab", "b#b"),
            ("", "abc", "abc"),
            ("[]a]", "]a", "]a"),
            ("[^]", "ab", "##"),
            ("a{,2}", "a{,2}", "#"),
            ("\\.", "a.b", "a#b"),
            ("(a|b)*c", "ababc", "#"),
        ] {
            assert_eq!(scrub(pattern, text), right, "{pattern}");
        }
    }

    #[test]
    fn what_is_not_linear_is_refused() {
        for pattern in [
            "(a)\\1",
            "(?=a)",
            "(?!a)",
            "(?<=a)b",
            "(?<!a)b",
            "(?<n>a)\\k<n>",
            "(",
            ")",
            "[",
            "a**",
            "*a",
            "a{3,2}",
            "\\p{L}",
            "a{5000}",
            "(a{99}){99}",
            "\\",
        ] {
            let error = Pattern::new(pattern, None, Some("mine")).err().unwrap_or_else(|| panic!("{pattern}"));
            assert_eq!(error.code(), "scrubber_refused");
        }
    }

    #[test]
    fn its_own_replacement_is_left_alone() {
        let pattern = Pattern::new("[A-Za-z]{5,}", None, Some("words")).unwrap();
        let once = pattern.scrub("some longer words").unwrap().into_owned();
        assert_eq!(once, "some [REDACTED:words] [REDACTED:words]");
        assert_eq!(pattern.scrub(&once).unwrap(), once);
    }

    #[test]
    fn pieces_equal_the_whole() {
        for (pattern, text) in [
            ("ab+c|\\d{3}\\b", "xabbbc 123 1234 abx ab"),
            ("\\bcat\\b", "cat cats a cat"),
            ("a.*z|a", "aaz a b\naa"),
            ("[a-z]+", "x [REDACTED:pattern] yy"),
        ] {
            let pattern = Rc::new(Pattern::new(pattern, None, None).unwrap());
            let whole = pattern.scrub(text).unwrap().into_owned();
            for cut in 0..=text.len() {
                let mut pieces = pattern.clone().pieces().unwrap();
                let mut out = String::new();
                pieces.push(&text[..cut], &mut out).unwrap();
                pieces.push(&text[cut..], &mut out).unwrap();
                pieces.end(&mut out).unwrap();
                assert_eq!(out, whole, "cut at {cut}");
            }
        }
    }
}
