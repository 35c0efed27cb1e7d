//! Tokens without a prefix: known by what stands at fixed places inside them.

use super::super::bytes::{
    ALNUM, BASE64, DASH, DIGIT, DOT, HEX, LOWER, TILDE, UNDERSCORE, URL64, count, decode64, distinct, is,
};
use super::super::view::{Hit, Look, Verdict, View};
use super::{Family, is_hex, is_placeholder};

pub(super) const FAMILY: Family = Family {
    name: "shapes",
    pii: false,
    kinds: &[
        "azure-ad-secret",
        "azure-storage-key",
        "azure-key",
        "telegram-bot",
        "discord-bot",
        "mailchimp",
        "terraform-cloud",
        "airtable",
    ],
    prefixes: &[],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["Zq8", "8Q~", "kTmVx0bYw3RcNe57PsDhJ2gLfUa6oQ1y"],
        &["bot 6091", "415345:AA", "Zq81kTmVx0bYw3RcNe57PsDhJ2gLfUa6o"],
        &["5fa93c1be07d2468", "91bc0e7f3a5d24c6-us", "14"],
        &["Zq81kTmVx0bYw3.", "atlasv1.", "RcNe57PsDhJ2gLfUa6oQ1yXk9wBvCnMlp0Zq81kTmVx0bYw3RcNe57PsDhJ2"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["at 12:34:56 the 8Q~ bit"],
        &["a.b.c streamIndexRetryIndex.panelParserLoadStream.handlerCacheLoadRetry"],
        &["mac 02:42:ac:11:00:53"],
    ],
};

/// Asks every shape about a word; most words are settled by their length.
pub(in super::super) fn at_word(view: &View, at: usize, end: usize, escaped: bool) -> Verdict {
    let length = end - at;
    let next = view.at(end);
    let verdict = match next {
        b'~' if view.at(end.saturating_sub(1)) == b'Q' && length >= 2 => azure_ad(view, at, end),
        b':' if (8..=13).contains(&length) => telegram(view, at, end),
        b'.' if length == 14 => terraform(view, at, end),
        b'.' if length == 17 && view.slice(at, at + 3) == b"pat" => airtable(view, at, end),
        b'.' if (23..=28).contains(&length) => discord(view, at, end),
        b'-' if length == 32 => mailchimp(view, at, end),
        _ => Verdict::No,
    };
    if verdict != Verdict::No || view.open(end) {
        return verdict;
    }
    if length == 84 && view.slice(at + 52, at + 58) == b"JQQJ99" {
        return Hit::verdict(at, end, "azure-key");
    }
    azure_storage(view, at, end, escaped)
}

/// Three characters, a digit, `Q~`, 31 to 34 more.
fn azure_ad(view: &View, word: usize, tilde: usize) -> Verdict {
    if !is(view.at(tilde - 2), DIGIT) {
        return Verdict::No;
    }
    let start = word.max(tilde.saturating_sub(5));
    const CLASS: u32 = ALNUM | UNDERSCORE | TILDE | DOT | DASH;
    let end = view.run(tilde + 1, CLASS, 48);
    if view.open(end) && end - tilde <= 48 {
        return Verdict::Need(CLASS, tilde + 49);
    }
    let body = view.slice(tilde + 1, end);
    if body.len() < 30 || is_placeholder(body) { Verdict::No } else { Hit::verdict(start, end, "azure-ad-secret") }
}

/// The number of the bot (also right behind `bot` in a URL), a colon, 35 characters.
fn telegram(view: &View, word: usize, colon: usize) -> Verdict {
    let start = if view.look(word, b"bot") == Look::Yes { word + 3 } else { word };
    let digits = view.slice(start, colon);
    if !(8..=10).contains(&digits.len()) || count(digits, DIGIT) != digits.len() {
        return Verdict::No;
    }
    let end = view.run(colon + 1, URL64, 60);
    if view.open(end) && end - colon <= 60 {
        return Verdict::Need(URL64, colon + 61);
    }
    let body = view.slice(colon + 1, end);
    let fits = (34..=40).contains(&body.len()) && (body.starts_with(b"AA") || count(body, DIGIT) >= 2);
    if !fits || is_placeholder(body) || is_hex(body, body.len()) {
        Verdict::No
    } else {
        Hit::verdict(start, end, "telegram-bot")
    }
}

fn terraform(view: &View, at: usize, dot: usize) -> Verdict {
    match view.look(dot, b".atlasv1.") {
        Look::Yes => super::run(view, at, dot + 9, URL64, 50, "terraform-cloud"),
        Look::Cut => Verdict::Need(0, 0),
        Look::No => Verdict::No,
    }
}

fn airtable(view: &View, at: usize, dot: usize) -> Verdict {
    super::run(view, at, dot + 1, HEX, 64, "airtable")
}

/// The number of the bot in base64, a time stamp, a signature.
fn discord(view: &View, at: usize, dot: usize) -> Verdict {
    let id = decode64(view.slice(at, dot), 24);
    if !(17..=20).contains(&id.len()) || !id.iter().all(u8::is_ascii_digit) {
        return Verdict::No;
    }
    let second = view.run(dot + 1, URL64, 8);
    if view.open(second) {
        return Verdict::Need(0, 0);
    }
    if !(5..=7).contains(&(second - dot - 1)) || view.at(second) != b'.' {
        return Verdict::No;
    }
    super::run(view, at, second + 1, URL64, 25, "discord-bot")
}

fn mailchimp(view: &View, at: usize, dash: usize) -> Verdict {
    match view.look(dash, b"-us") {
        Look::Cut => return Verdict::Need(0, 0),
        Look::No => return Verdict::No,
        Look::Yes => {}
    }
    let end = view.run(dash + 3, DIGIT, 3);
    if view.open(end) {
        return Verdict::Need(0, 0);
    }
    let hex = view.slice(at, dash);
    let fits = is_hex(hex, 32) && distinct(hex) >= 8 && (1..=2).contains(&(end - dash - 3)) && !is(view.at(end), LOWER);
    if fits { Hit::verdict(at, end, "mailchimp") } else { Verdict::No }
}

/// Marks of storage, messaging, search and other keys: where they stand, what they are, how long the key is.
const AZURE: [(usize, &[u8], usize); 9] = [
    (76, b"+ASt", 86),
    (76, b"ACDb", 86),
    (76, b"+ABa", 86),
    (76, b"+AMC", 86),
    (76, b"APIM", 86),
    (33, b"AIoT", 43),
    (33, b"+ASb", 43),
    (33, b"+AEh", 43),
    (42, b"AzSe", 52),
];

/// A key of base64 with a mark of its service near its end.
fn azure_storage(view: &View, at: usize, word_end: usize, escaped: bool) -> Verdict {
    // Base64 runs begin where nothing of base64 stands before; `=` may, it separates a key's name from it. The first character
    // may be no letter: it has been passed then, and is no secret alone.
    let joined = |at: usize| is(view.before(at), BASE64);
    let passed = !escaped && matches!(view.before(at), b'+' | b'/') && !joined(at - 1);
    if joined(at) && !passed && !escaped {
        return Verdict::No;
    }
    let passed = usize::from(passed);
    if !matches!(view.at(word_end), b'+' | b'/' | b'=') && word_end - at < 40 {
        return Verdict::No;
    }
    let end = view.run(at, BASE64, 89);
    if view.open(end) && end - at < 89 {
        return Verdict::Need(BASE64, at + 89);
    }
    let run = view.slice(at, end);
    let has = |&(place, mark, length): &(usize, &[u8], usize)| {
        // A sign of addition that opens a line of a diff is none of the key's either.
        (0..=passed).any(|gone| {
            (length..=length + 2).contains(&(run.len() + gone)) && run.get(place - gone..place - gone + 4) == Some(mark)
        })
    };
    if !AZURE.iter().any(has) || distinct(run) < 12 {
        return Verdict::No;
    }
    let padded = view.run(end, super::super::bytes::EQUALS, 3);
    if view.open(padded) && padded - end < 2 {
        return Verdict::Need(0, 0);
    }
    Hit::verdict(at, padded, "azure-storage-key")
}
