//! The table of rules: one file per family of secrets, each with examples and counter-examples.

use super::bytes::{
    ALNUM, ALPHA, ANY_HEX, BASE64, DASH, DIGIT, DOT, EQUALS, LOWER, Mask, UNDERSCORE, UPPER, contains, count, distinct,
    is,
};
use super::detect::Builtin;
use super::view::{Hit, Look, Verdict, View};

pub(super) mod assign;
mod chat;
mod cloud;
mod github;
mod gitlab;
mod header;
mod hosting;
mod jwt;
mod models;
mod packages;
mod payment;
pub(super) mod pem;
pub(super) mod pii;
pub(super) mod shapes;
mod url;

/// A family of secrets: its prefixes, the types it reports, texts it finds and texts it leaves alone.
pub struct Family {
    /// The name of the family, which is the name of its file.
    pub name: &'static str,
    /// Whether it is personal data.
    pub pii: bool,
    /// The types it reports.
    pub kinds: &'static [&'static str],
    pub(super) prefixes: &'static [Prefix],
    /// Texts with one secret, in pieces so that no file holds a whole token. For tests; the module goes without.
    #[cfg(not(target_family = "wasm"))]
    pub examples: &'static [&'static [&'static str]],
    /// Texts without one, in pieces.
    #[cfg(not(target_family = "wasm"))]
    pub counter_examples: &'static [&'static [&'static str]],
}

/// Every family, in the order of the documentation.
pub const FAMILIES: &[&Family] = &[
    &github::FAMILY,
    &gitlab::FAMILY,
    &cloud::FAMILY,
    &models::FAMILY,
    &chat::FAMILY,
    &payment::FAMILY,
    &packages::FAMILY,
    &hosting::FAMILY,
    &shapes::FAMILY,
    &jwt::FAMILY,
    &pem::FAMILY,
    &url::FAMILY,
    &header::FAMILY,
    &assign::FAMILY,
    &pii::FAMILY,
];

/// The types that a set of rules reports.
pub(super) fn kinds(builtin: Builtin) -> impl Iterator<Item = &'static str> {
    let wanted = builtin == Builtin::Pii;
    FAMILIES.iter().filter(move |f| f.pii == wanted).flat_map(|f| f.kinds).copied()
}

/// A token that begins with a literal.
pub(super) struct Prefix {
    pub(super) text: &'static str,
    pub(super) kind: &'static str,
    pub(super) body: Body,
}

/// What follows a prefix.
pub(super) enum Body {
    /// A run of a class of at least so many bytes. Formats grow, so the whole run goes, however long.
    Run(Mask, usize),
    /// A run of exactly so many bytes to so many, with digits in it: for prefixes that words begin with too.
    Exact(Mask, usize, usize),
    /// Something with more structure; gets the start of the prefix and its end.
    Other(fn(&View, usize, usize) -> Verdict),
}

/// Runs longer than this are decided; the rest of the run is dropped as it comes.
const LONGEST_BODY: usize = 320;

impl Prefix {
    pub(super) const fn run(text: &'static str, kind: &'static str, mask: Mask, min: usize) -> Self {
        Prefix { text, kind, body: Body::Run(mask, min) }
    }

    pub(super) const fn exact(text: &'static str, kind: &'static str, mask: Mask, min: usize, max: usize) -> Self {
        Prefix { text, kind, body: Body::Exact(mask, min, max) }
    }

    pub(super) const fn other(
        text: &'static str,
        kind: &'static str,
        rule: fn(&View, usize, usize) -> Verdict,
    ) -> Self {
        Prefix { text, kind, body: Body::Other(rule) }
    }

    pub(super) fn check(&self, view: &View, at: usize) -> Verdict {
        match view.look(at, self.text.as_bytes()) {
            Look::No => return Verdict::No,
            Look::Cut => return Verdict::Need(0, 0),
            Look::Yes => {}
        }
        let body = at + self.text.len();
        match self.body {
            Body::Run(mask, min) => run(view, at, body, mask, min, self.kind),
            Body::Exact(mask, min, max) => exact(view, at, body, mask, (min, max), self.kind),
            Body::Other(rule) => rule(view, at, body),
        }
    }
}

/// A token of `min` or more bytes of a class after its prefix.
pub(super) fn run(view: &View, start: usize, body: usize, mask: Mask, min: usize, kind: &'static str) -> Verdict {
    let cap = LONGEST_BODY.max(min);
    let end = view.run(body, mask, cap);
    if view.open(end) && end - body < cap {
        return Verdict::Need(mask, body + cap);
    }
    if end - body < min || shows_place(view, body, end) {
        return Verdict::No;
    }
    Verdict::Hit(Hit { start, end, kind, open: if end - body == cap { mask } else { 0 } })
}

fn exact(
    view: &View,
    start: usize,
    body: usize,
    mask: Mask,
    (min, max): (usize, usize),
    kind: &'static str,
) -> Verdict {
    let end = view.run(body, mask, max + 1);
    if view.open(end) && end - body <= max {
        return Verdict::Need(mask, body + max + 1);
    }
    let text = view.slice(body, end);
    // The mark of a word is that it goes on: `-` or `_` or a letter outside the alphabet.
    let goes_on = is(view.at(end), ALNUM | UNDERSCORE) || is_joined(view, start);
    let varied = count(text, DIGIT) >= 2 || ((text.len() >= 30 || mixed_case(text)) && !is_wordy(text));
    let fits = (min..=max).contains(&text.len()) && !goes_on && varied;
    if !fits || is_placeholder(text) { Verdict::No } else { Hit::verdict(start, end, kind) }
}

/// Whether a word goes on from one before it: `data-key-…`. A dash that opens a line is none of a word's.
pub(super) fn is_joined(view: &View, start: usize) -> bool {
    let before = view.before(start);
    let opens_line = before == b'-' && matches!(view.before(start - 1), 0 | b'\n');
    is(before, UNDERSCORE | DASH | DOT) && !opens_line
}

/// Says whether a value only shows where a secret would stand.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    // Enough to tell, and bounded so that many starts in one long run stay cheap.
    let text = text.get(..64).unwrap_or(text);
    distinct(text) < FEW || has_placeholder(text)
}

/// Fewer different characters than this make no secret.
const FEW: u32 = 8;

fn has_placeholder(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] =
        [b"example", b"xxxx", b"****", b"...", b"your", b"placeholder", b"redacted", b"changeme", b"dummy"];
    WORDS.iter().any(|word| contains(text, word))
}

/// As [`is_placeholder`], for what stands at a place of the text.
pub(super) fn shows_place(view: &View, start: usize, end: usize) -> bool {
    let end = end.min(start + 64);
    view.has_few(start, end, FEW) || has_placeholder(view.slice(start, end))
}

/// Says whether a text is made of words as programs and people write them, rather than drawn at random.
pub(super) fn is_wordy(text: &[u8]) -> bool {
    let cased = count(text, LOWER) > 0;
    let (mut pieces, mut letters, mut numbers, mut previous) = (0usize, 0usize, 0usize, 0u8);
    for &b in text {
        if is(b, ALPHA) {
            // In names every capital opens a word; names in capitals have other borders.
            pieces += usize::from(!is(previous, ALPHA) || (cased && is(b, UPPER)));
            letters += 1;
        }
        numbers += usize::from(is(b, DIGIT) && !is(previous, DIGIT));
        previous = b;
    }
    // Few digits, or one number in a long name: `x25519_generate_private_key`.
    let few = count(text, DIGIT) * 8 <= text.len() || (numbers == 1 && letters >= 14);
    letters * 2 >= 7 * pieces && few
}

/// Says whether a value of a secret's key looks like one: long, varied, with digits, not made of words.
pub(super) fn looks_random(text: &[u8], min: usize) -> bool {
    if text.len() < min || is_placeholder(text) {
        return false;
    }
    let text = text.get(..128).unwrap_or(text);
    let digits = count(text, DIGIT);
    if digits > 0 && count(text, ALNUM & !DIGIT) > 0 {
        return !is_wordy(text);
    }
    // Without a digit only a long mix of cases is not a name.
    digits == 0 && text.len() >= 20 && count(text, BASE64 | EQUALS) == text.len() && !is_wordy(text) && mixed_case(text)
}

fn mixed_case(text: &[u8]) -> bool {
    let changes = text.windows(2).filter(|w| matches!(w, [a, b] if a.is_ascii_uppercase() != b.is_ascii_uppercase()));
    changes.count() * 3 >= text.len()
}

/// A hexadecimal run of exactly `length` bytes.
pub(super) fn is_hex(text: &[u8], length: usize) -> bool {
    text.len() == length && text.iter().all(|&b| is(b, ANY_HEX))
}
