//! Credentials in HTTP headers, and bearer tokens wherever they stand.

use super::super::bytes::{ALNUM, ALPHA, DIGIT, LINE, TOKEN68, contains, count, decode64, distinct, is};
use super::super::view::{Hit, Verdict, View};
use super::{Family, Prefix, is_placeholder, is_wordy};

pub(super) const FAMILY: Family = Family {
    name: "header",
    pii: false,
    kinds: &["bearer", "basic-auth", "cookie"],
    prefixes: &[
        Prefix::other("Bearer ", "bearer", bearer),
        Prefix::other("bearer ", "bearer", bearer),
        Prefix::other("BEARER ", "bearer", bearer),
        Prefix::other("Basic ", "basic-auth", basic_word),
        Prefix::other("basic ", "basic-auth", basic_word),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["> Authorization: Bearer ", "Zq81kTmVx0bYw3RcNe57", "PsDhJ2gL"],
        &["Authorization: Basic ", "c3ZjLXVzZXI6", "WnE4MWtUbVZ4MA=="],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["Authorization: Bearer $TOKEN"],
        &["Bearer <token>"],
        &["Basic authentication is disabled; Bearer authentication required."],
        &["Bearer of good news: the secret garden key was found."],
    ],
};

const LONGEST: usize = 4_096;

fn bearer(view: &View, _start: usize, body: usize) -> Verdict {
    token(view, body, "bearer", 20)
}

fn basic_word(view: &View, _start: usize, body: usize) -> Verdict {
    basic(view, body)
}

fn token(view: &View, at: usize, kind: &'static str, min: usize) -> Verdict {
    let word = view.run(at, ALNUM, 64);
    if view.open(word) && word - at < 64 {
        return Verdict::Need(ALNUM, at + 64);
    }
    match super::shapes::at_word(view, at, word, false) {
        Verdict::No => {}
        known => return known,
    }
    let end = view.run(at, TOKEN68, LONGEST);
    if view.open(end) && end - at < LONGEST {
        return Verdict::Need(TOKEN68, at + LONGEST);
    }
    let mut text = view.slice(at, end);
    while let Some((b'.', rest)) = text.split_last() {
        text = rest;
    }
    let digits = count(text.get(..128).unwrap_or(text), DIGIT);
    let plain = text.len() < min || digits == 0 || is_placeholder(text) || is_wordy(text.get(..128).unwrap_or(text));
    if plain {
        return Verdict::No;
    }
    Hit::verdict(at, at + text.len(), kind)
}

/// User and password in base64.
fn basic(view: &View, at: usize) -> Verdict {
    let end = view.run(at, TOKEN68, LONGEST);
    if view.open(end) && end - at < LONGEST {
        return Verdict::Need(TOKEN68, at + LONGEST);
    }
    let text = view.slice(at, end);
    let decoded = decode64(text, 256);
    let printable = decoded.iter().all(|b| *b >= 0x20 && *b != 0x7f);
    let pair = decoded.iter().position(|&b| b == b':').is_some_and(|colon| decoded.len() > colon + 3);
    if text.len() < 8 || !printable || !pair || decoded.len() * 4 < text.len().min(256) * 2 {
        Verdict::No
    } else {
        Hit::verdict(at, end, "basic-auth")
    }
}

/// The value of an `Authorization` header.
pub(super) fn authorization(view: &View, at: usize, kind: &'static str, _quote: u8) -> Verdict {
    let scheme = view.run(at, ALPHA, 24);
    if view.open(scheme) {
        return Verdict::Need(0, 0);
    }
    if view.at(scheme) != b' ' {
        // No scheme: the value itself, or a scheme that ends the line.
        return token(view, at, kind, 16);
    }
    let name = view.slice(at, scheme).to_ascii_lowercase();
    let from = view.run(scheme, super::super::bytes::SPACE, 4);
    if view.open(from) {
        return Verdict::Need(0, 0);
    }
    match name.as_slice() {
        b"basic" => basic(view, from),
        b"bearer" | b"token" | b"apikey" | b"key" | b"bot" | b"sso" | b"negotiate" | b"ntlm" => {
            prefixed(view, from, kind)
        }
        _ => Verdict::No,
    }
}

fn prefixed(view: &View, from: usize, kind: &'static str) -> Verdict {
    token(view, from, kind, 8)
}

/// The value of a `Cookie` header, when one of its pairs is a session.
pub(super) fn cookie(view: &View, at: usize, _quote: u8) -> Verdict {
    let end = view.run(at, LINE, LONGEST);
    if view.open(end) && end - at < LONGEST {
        return Verdict::Need(LINE, at + LONGEST);
    }
    let text = view.slice(at, end);
    // Another header on the same line has its own turn.
    let next = text.windows(6).position(|w| w == b"ookie:").map_or(text.len(), |next| next.saturating_sub(1));
    let (text, end) = (text.get(..next).unwrap_or(text), at + next);
    let secret = |pair: &[u8]| {
        let Some(eq) = pair.iter().position(|&b| b == b'=') else { return false };
        let value = pair.get(eq + 1..).unwrap_or_default();
        super::looks_random(value, 16) && value.iter().all(|&b| is(b, TOKEN68) || b == b'%' || b == b':')
    };
    let head = text.get(..1024).unwrap_or(text);
    if !head.split(|&b| b == b';').any(secret) || contains(head, b"${") || distinct(head) < 8 || count(head, ALNUM) == 0
    {
        return Verdict::No;
    }
    Hit::verdict(at, end, "cookie")
}
