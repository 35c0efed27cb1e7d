//! The built-in rules on one text: one pass finds the places where a rule may begin, the rule decides.
//!
//! A rule answers no, hit, or need-more. The same pass serves whole texts and streams: a stream holds what comes after the
//! first place that needs more.

use std::borrow::Cow;
use std::rc::Rc;

use super::super::error::{Error, Kind, Result};
use super::bytes::{ALNUM, ALPHA, BASE64, DASH, DIGIT, DOT, HEX, Mask, UNDERSCORE, is};
use super::chain::{Pieces, Scrubber};
use super::keys;
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
    /// Prefixes ordered by the hash of their first three bytes, longer ones first.
    prefixes: Vec<(u16, &'static Prefix)>,
    /// Which hashes of three bytes begin a prefix.
    heads: Vec<u64>,
    only: Vec<String>,
    except: Vec<String>,
    #[cfg(not(target_family = "wasm"))]
    work: std::cell::Cell<u64>,
}

/// A number of 12 bits for the first three bytes.
#[inline(always)]
fn hash(bytes: &[u8]) -> Option<u16> {
    let [a, b, c, ..] = bytes else { return None };
    let letters = u32::from(*a) | u32::from(*b) << 8 | u32::from(*c) << 16;
    // Of many odd numbers this one lets the fewest words of prose, code and logs begin like a prefix.
    Some((letters.wrapping_mul(0x0741_c7a9) >> 20) as u16)
}

impl Detector {
    /// Makes the detector of all rules, of the types in `only`, or of all but those in `except`.
    pub fn new(builtin: Builtin, only: &[String], except: &[String]) -> Result<Self> {
        let known = |kind: &String| rules::kinds(builtin).any(|k| k == kind);
        if let Some(unknown) = only.iter().chain(except).find(|k| !known(k)) {
            let quoted: String = unknown.chars().take(80).collect();
            return Err(Error::new(Kind::ScrubberRefused, format!("there is no built-in rule for `{quoted}`")));
        }
        let secrets = FAMILIES.iter().filter(|_| builtin == Builtin::Secrets);
        let mut prefixes: Vec<(u16, &'static Prefix)> =
            secrets.flat_map(|f| f.prefixes).map(|p| (hash(p.text.as_bytes()).unwrap_or(0), p)).collect();
        // Longer ones first, so that `sk-ant-` is asked before `sk-`.
        let order = |p: &(u16, &'static Prefix)| (p.0, usize::MAX - p.1.text.len());
        crate::core::sorted::sort_by(&mut prefixes, |a, b| order(a) < order(b));
        let mut heads = vec![0u64; 64];
        for (hash, _) in &prefixes {
            if let Some(word) = heads.get_mut(usize::from(hash >> 6)) {
                *word |= 1 << (hash & 63);
            }
        }
        Ok(Detector {
            builtin,
            prefixes,
            heads,
            only: only.to_vec(),
            except: except.to_vec(),
            #[cfg(not(target_family = "wasm"))]
            work: std::cell::Cell::new(0),
        })
    }

    /// How many bytes all scans so far have looked at: for tests, which hold it against the length of the texts.
    #[cfg(not(target_family = "wasm"))]
    pub fn work(&self) -> u64 {
        self.work.get()
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
                Builtin::Secrets => {
                    at = self.skip(&view, at);
                    if at >= bytes.len() {
                        break;
                    }
                    self.place(&view, at)
                }
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
        #[cfg(not(target_family = "wasm"))]
        self.work.set(self.work.get() + view.work() + (at - state.at) as u64);
        state.at = at;
        state.floor = view.floor;
    }

    /// Skips what begins no rule: the loop that most texts spend their time in.
    #[inline(never)]
    fn skip(&self, view: &View, mut at: usize) -> usize {
        let bytes = view.bytes;
        loop {
            // Plain loops over places: the module is built for size, which keeps iterators from being unrolled.
            while bytes.get(at).is_some_and(|&b| kind(b) & (WORD | OPERATOR) == 0) {
                at += 1;
            }
            let Some(&byte) = bytes.get(at) else { return at };
            if kind(byte) & OPERATOR != 0 {
                match (byte, bytes.get(at + 1)) {
                    (b'-', Some(&next)) if next != b'-' => at += 1,
                    (b'>', _) if kind(view.before(at)) & WORD == 0 => at += 1,
                    // Most members of JSON: their names end like no secret's.
                    (b':', _) if view.before(at) == b'"' && !keys::may_be_quoted(view, at - 1) => at += 1,
                    // No address and no option's password follows: only a key's name counts.
                    (b':', Some(b' ' | b'"')) if !keys::may_be_plain(view, at) => at += 1,
                    _ => return at,
                }
                continue;
            }
            let end = word_end(bytes, at + 1);
            let Some(&next) = bytes.get(end) else { return at };
            let previous = view.before(at);
            if self.may_begin(view, at)
                || ((kind(next) & SHAPE != 0 || end - at >= 40) && shapes_may(view, at, end, next))
                || (kind(previous) & ESCAPE != 0 && escape_before(view, at) > 0)
            {
                return at;
            }
            at = end;
        }
    }

    /// Whether three bytes may begin a prefix; also where there are not three.
    #[inline(always)]
    fn may_begin(&self, view: &View, at: usize) -> bool {
        hash(view.bytes.get(at..).unwrap_or_default()).is_none_or(|hash| self.is_head(hash))
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
        let here = view.slice(at, at + 3);
        let Some(hash) = hash(here) else { return self.cut_prefix(view, at, here) };
        if !self.is_head(hash) {
            return Verdict::No;
        }
        let first = self.prefixes.partition_point(|p| p.0 < hash);
        let same = self.prefixes.get(first..).unwrap_or_default().iter().take_while(|p| p.0 == hash);
        same.map(|p| p.1.check(view, at)).find(|verdict| *verdict != Verdict::No).unwrap_or(Verdict::No)
    }

    /// Where the text ends within three bytes: whether more may make a prefix of them.
    fn cut_prefix(&self, view: &View, at: usize, here: &[u8]) -> Verdict {
        let may = view.open(at + here.len()) && self.prefixes.iter().any(|p| p.1.text.as_bytes().starts_with(here));
        if may { Verdict::Need(0, 0) } else { Verdict::No }
    }

    #[inline(always)]
    fn is_head(&self, hash: u16) -> bool {
        self.heads.get(usize::from(hash >> 6)).is_some_and(|word| word >> (hash & 63) & 1 == 1)
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

/// A letter or digit.
const WORD: u8 = 1;
/// What may stand between a name and its value.
const OPERATOR: u8 = 2;
/// What may follow the first word of a shape.
const SHAPE: u8 = 4;
/// What may stand before the end of an escape.
const ESCAPE: u8 = 8;

/// What a byte is to the outer loop.
const KINDS: [u8; 256] = kinds();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, which would refuse an index out of bounds")]
const fn kinds() -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = match at as u8 {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => WORD,
            b'=' | b':' | b'-' => OPERATOR | SHAPE,
            b'>' => OPERATOR,
            b'~' | b'.' | b'+' | b'/' => SHAPE,
            b'\\' | b'%' | b'[' | b';' => ESCAPE,
            _ => 0,
        };
        at += 1;
    }
    table
}

/// The end of a run of letters and digits, eight bytes at a time: that leaves nothing to guess for the processor.
#[inline(always)]
fn word_end(bytes: &[u8], mut at: usize) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    while let Some(eight) = bytes.get(at..at + 8).and_then(|eight| <[u8; 8]>::try_from(eight).ok()) {
        let eight = u64::from_le_bytes(eight);
        // Adding carries into the top bit of each byte that is at least so much; bytes outside ASCII have it from the start.
        let ascii = eight & (0x7f * LOW);
        let small = ascii | (0x20 * LOW);
        let letter = (small + 0x1f * LOW) & !(small + 0x05 * LOW);
        let digit = (ascii + 0x50 * LOW) & !(ascii + 0x46 * LOW);
        let other = !((letter | digit) & !eight) & (0x80 * LOW);
        if other != 0 {
            return at + other.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&b| kind(b) & WORD != 0) {
        at += 1;
    }
    at
}

#[inline(always)]
fn kind(byte: u8) -> u8 {
    KINDS.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Whether a word can begin a shape: its length and what follows tell nearly always.
#[inline(always)]
fn shapes_may(view: &View, at: usize, end: usize, next: u8) -> bool {
    let length = end - at;
    if length >= 40 {
        return true;
    }
    match next {
        b'~' => true,
        b':' => (8..=13).contains(&length),
        b'.' => (14..=28).contains(&length),
        b'-' => length == 32,
        // Keys of base64: it must go on as such.
        b'+' | b'/' | b'=' => {
            let goes_on = |k: usize| view.bytes.get(at + k).is_none_or(|&b| is(b, BASE64));
            let opens = !is(view.before(at), BASE64) || !is(view.before(at.saturating_sub(1)), BASE64);
            opens && goes_on(18) && goes_on(27) && goes_on(36)
        }
        _ => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_ends_where_its_bytes_say() {
        for byte in 0..=u8::MAX {
            for at in 0..20 {
                let mut bytes = *b"aZ09zA5mQ7xYb3Kw8Tce1";
                bytes[at] = byte;
                let end = bytes.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(bytes.len());
                assert_eq!(word_end(&bytes, 0), end, "{byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn every_prefix_is_found_by_its_first_three_bytes() {
        let detector = Detector::new(Builtin::Secrets, &[], &[]).unwrap();
        for prefix in FAMILIES.iter().flat_map(|family| family.prefixes) {
            assert!(detector.may_begin(&View::new(prefix.text.as_bytes(), true, 0), 0), "{}", prefix.text);
        }
    }
}
