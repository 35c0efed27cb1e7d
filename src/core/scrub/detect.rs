//! The built-in rules on one text: one pass finds the places where a rule may begin, the rule decides.
//!
//! A rule answers no, hit, or need-more. The same pass serves whole texts and streams: a stream holds what comes after the
//! first place that needs more.

use std::borrow::Cow;
use std::rc::Rc;

use super::super::error::{Error, Kind, Result};
use super::bytes::{ALNUM, ALPHA, DASH, DIGIT, DOT, HEX, Mask, UNDERSCORE, is};
use super::chain::{Pieces, Scrubber};
use super::rules::{self, FAMILIES, Prefix};
use super::stream::DetectPieces;
use super::view::{Hit, Verdict, View};

/// Words longer than this begin no shape that has to be seen whole.
const LONGEST_WORD: usize = 100;

/// Which set of built-in rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Credentials.
    Secrets,
    /// Personal data; opt-in.
    Pii,
}

impl Builtin {
    /// Returns the name that registers it.
    pub fn name(self) -> &'static str {
        match self {
            Builtin::Secrets => "secrets",
            Builtin::Pii => "pii",
        }
    }
}

/// A secret that was found; byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The type in the mark.
    pub kind: &'static str,
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// The built-in rules, all or some of them.
pub struct Detector {
    builtin: Builtin,
    /// Prefixes ordered by their first byte.
    prefixes: Vec<&'static Prefix>,
    /// Where the prefixes of a first byte begin.
    index: Vec<u16>,
    /// Which hashes of three bytes begin a prefix.
    heads: Vec<u64>,
    only: Vec<String>,
    except: Vec<String>,
}

fn head(a: u8, b: u8, c: u8) -> usize {
    (usize::from(a).wrapping_mul(31) ^ usize::from(b).wrapping_mul(193) ^ usize::from(c).wrapping_mul(7)) & 4095
}

impl Detector {
    /// Makes the detector of all rules, of the types in `only`, or of all but those in `except`.
    pub fn new(builtin: Builtin, only: &[String], except: &[String]) -> Result<Self> {
        let known = |kind: &String| rules::kinds(builtin).any(|k| k == kind);
        if let Some(unknown) = only.iter().chain(except).find(|k| !known(k)) {
            let quoted: String = unknown.chars().take(80).collect();
            return Err(Error::new(Kind::ScrubberRefused, format!("there is no built-in rule for `{quoted}`")));
        }
        let mut prefixes: Vec<&'static Prefix> = FAMILIES.iter().flat_map(|f| f.prefixes).collect();
        if builtin == Builtin::Pii {
            prefixes.clear();
        }
        let first = |p: &Prefix| p.text.as_bytes().first().copied().unwrap_or(0);
        // Longer ones first, so that `sk-ant-` is asked before `sk-`.
        let order = |p: &Prefix| (first(p), usize::MAX - p.text.len());
        crate::core::sorted::sort_by(&mut prefixes, |a, b| order(a) < order(b));
        let index = (0..=256usize).map(|b| prefixes.partition_point(|p| usize::from(first(p)) < b) as u16).collect();
        let mut heads = vec![0u64; 64];
        for prefix in &prefixes {
            if let [a, b, c, ..] = prefix.text.as_bytes() {
                let bit = head(*a, *b, *c);
                if let Some(word) = heads.get_mut(bit >> 6) {
                    *word |= 1 << (bit & 63);
                }
            }
        }
        Ok(Detector { builtin, prefixes, index, heads, only: only.to_vec(), except: except.to_vec() })
    }

    /// Finds every secret of a whole text, from left to right, none overlapping.
    pub fn find(&self, text: &str) -> Vec<Match> {
        let mut found = Vec::new();
        let mut state = State::default();
        self.scan(text.as_bytes(), true, &mut state, &mut |hit| {
            found.push(Match { kind: hit.kind, start: hit.start, end: hit.end });
        });
        found
    }

    fn wanted(&self, kind: &str) -> bool {
        (self.only.is_empty() || self.only.iter().any(|k| k == kind)) && !self.except.iter().any(|k| k == kind)
    }

    /// Scans from `state.at`, reports hits, and stops at the end or at the first place that needs more text.
    pub(super) fn scan(&self, bytes: &[u8], eof: bool, state: &mut State, report: &mut dyn FnMut(Hit)) {
        let mut view = View::new(bytes, eof, state.floor);
        state.wake = (0, 0);
        let mut at = state.at;
        while at < bytes.len() {
            let (next, verdict) = match self.builtin {
                Builtin::Secrets => self.place(&view, at),
                Builtin::Pii => rules::pii::place(&view, at),
            };
            match verdict {
                Verdict::No => at = next,
                Verdict::Need(mask, until) => {
                    state.wake = (mask, until);
                    break;
                }
                Verdict::Hit(hit) if self.wanted(hit.kind) => {
                    let end = if hit.open == 0 { hit.end } else { view.run(hit.end, hit.open, usize::MAX) };
                    report(Hit { end, ..hit });
                    at = end.max(at + 1);
                    view.floor = at;
                    state.open = if view.open(end) { hit.open } else { 0 };
                }
                // Not wanted: it is still one token, in which nothing else is looked for.
                Verdict::Hit(hit) => at = hit.end.max(next),
            }
        }
        state.at = at;
        state.floor = view.floor;
    }

    /// Asks the rules that may begin at a place; returns where to go on when they say no.
    fn place(&self, view: &View, at: usize) -> (usize, Verdict) {
        let byte = view.at(at);
        if !is(byte, ALNUM) {
            let verdict = match byte {
                b'=' | b':' => rules::assign::at_operator(self, view, at),
                b'-' => self.dashes(view, at),
                b'>' => rules::assign::at_tag(self, view, at),
                _ => Verdict::No,
            };
            return (at + 1, verdict);
        }
        let end = view.run(at, ALNUM, usize::MAX);
        if view.open(end) && end - at <= LONGEST_WORD {
            return (end, Verdict::Need(ALNUM, at + LONGEST_WORD + 1));
        }
        (end, self.word(view, at, end))
    }

    fn word(&self, view: &View, at: usize, end: usize) -> Verdict {
        let verdict = self.word_at(view, at, end, false);
        if verdict != Verdict::No {
            return verdict;
        }
        match escape_before(view, at) {
            0 => Verdict::No,
            skip if at + skip < end => self.word_at(view, at + skip, end, true),
            _ => Verdict::No,
        }
    }

    /// Asks about a word; `escaped` says that an escape ends right before it.
    fn word_at(&self, view: &View, at: usize, end: usize, escaped: bool) -> Verdict {
        let verdict = self.prefix(view, at);
        if verdict != Verdict::No {
            return verdict;
        }
        rules::shapes::at_word(view, at, end, escaped)
    }

    fn dashes(&self, view: &View, at: usize) -> Verdict {
        if view.before(at) == b'-' {
            return Verdict::No;
        }
        match rules::pem::at_dashes(view, at) {
            Verdict::No => rules::assign::at_flag(self, view, at),
            verdict => verdict,
        }
    }

    /// Asks the rules whose prefix stands here.
    pub(super) fn prefix(&self, view: &View, at: usize) -> Verdict {
        let (a, b, c) = (view.at(at), view.at(at + 1), view.at(at + 2));
        let bit = head(a, b, c);
        let may = self.heads.get(bit >> 6).is_some_and(|word| word >> (bit & 63) & 1 == 1);
        if !may && !view.open(at + 2) {
            return Verdict::No;
        }
        let bound = |b: usize| self.index.get(b).copied().map_or(0, usize::from);
        let same_first = self.prefixes.get(bound(usize::from(a))..bound(usize::from(a) + 1)).unwrap_or_default();
        for prefix in same_first {
            let verdict = prefix.check(view, at);
            if verdict != Verdict::No {
                return verdict;
            }
        }
        Verdict::No
    }

    /// Whether a rule with a literal may begin at a place.
    pub(super) fn may_start(&self, view: &View, at: usize) -> bool {
        view.at(at) == b'-' || self.prefix(view, at) != Verdict::No
    }

    /// The type of the token that begins at a place, when a rule knows it.
    pub(super) fn token_at(&self, view: &View, at: usize) -> Verdict {
        if view.at(at) == b'-' {
            return rules::pem::at_dashes(view, at);
        }
        if is(view.at(at), DIGIT | ALPHA | UNDERSCORE | DASH | DOT) {
            let end = view.run(at, ALNUM, usize::MAX);
            return self.word_at(view, at, end, false);
        }
        Verdict::No
    }
}

/// How many characters of a word still belong to an escape that began before it: `\n`, `\u0022`, `ESC[32m`, `%3D`.
fn escape_before(view: &View, at: usize) -> usize {
    match view.before(at) {
        b'\\' => match view.at(at) {
            b'n' | b't' | b'r' | b'b' | b'f' | b'v' => 1,
            b'u' if (1..5).all(|k| is(view.at(at + k).to_ascii_lowercase(), HEX)) => 5,
            b'x' => 3,
            _ => 0,
        },
        b'%' => 2,
        b'[' | b';' => {
            let digits = view.run(at, DIGIT, 3) - at;
            if digits > 0 && view.at(at + digits) == b'm' { digits + 1 } else { 0 }
        }
        _ => 0,
    }
}

/// How far a scan has come.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Where to go on.
    pub(super) at: usize,
    /// Where the last match ended.
    pub(super) floor: usize,
    /// The class of bytes that still belong to the last match.
    pub(super) open: Mask,
    /// When to look again: at a byte outside the class, or at this length.
    pub(super) wake: (Mask, usize),
}

impl Scrubber for Detector {
    fn name(&self) -> &str {
        self.builtin.name()
    }

    fn scrub<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        Ok(replace(text, &self.find(text)))
    }

    fn pieces(self: Rc<Self>) -> Option<Box<dyn Pieces>> {
        Some(Box::new(DetectPieces::new(self)))
    }
}

/// Puts marks in the place of matches.
pub(super) fn replace<'t>(text: &'t str, found: &[Match]) -> Cow<'t, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for hit in found {
        out.push_str(text.get(from..hit.start).unwrap_or_default());
        out.push_str(&super::mark(hit.kind));
        from = hit.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}
