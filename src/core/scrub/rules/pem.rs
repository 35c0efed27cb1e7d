//! Private keys in PEM armour: whole or cut off, in files, JSON text, diffs and quotations; also armour inside base64.

use super::super::bytes::{BASE64, DIGIT, EQUALS, PEM_GLUE, UPPER, count, decode64, is};
use super::super::view::{Hit, Look, Verdict, View};
use super::{Family, Prefix};

pub(super) const FAMILY: Family = Family {
    name: "pem",
    pii: false,
    kinds: &["private-key"],
    prefixes: &[Prefix::other("LS0tLS1CRUdJTi", "private-key", encoded)],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &[
            "-----BEGIN EC PRIVATE ",
            "KEY-----\nMHcCAQEEIZq81kTmVx0bYw3RcNe57PsDhJ2gLfUa6oQ1yXk9wBvCnMlp0\n",
            "AB==\n-----END EC PRIVATE KEY-----",
        ],
        &["-----BEGIN PRIVATE ", "KEY-----\\nMHcCAQEEIZq81kTmVx0bYw3RcNe57PsDhJ2gLfUa6oQ1yXk9wBvCnMlp0\\n"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &[
            "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE",
            "sB31uZL4pYwJvavc\n-----END PUBLIC KEY-----",
        ],
        &["then -----BEGIN of the text"],
        &["put it between -----BEGIN PRIVATE ", "KEY----- and -----END PRIVATE KEY----- and save"],
    ],
};

/// No key is longer; RSA with 16,384 bits has 12.5 KB.
const LONGEST: usize = 16_384;
const BODY: u32 = BASE64 | EQUALS | PEM_GLUE;

pub(in super::super) fn at_dashes(view: &View, at: usize) -> Verdict {
    // One dash more is a line that a diff takes away.
    let at = match (view.look(at, b"-----BEGIN "), view.look(at, b"------BEGIN ")) {
        (Look::Yes, _) => at,
        (_, Look::Yes) => at + 1,
        (Look::Cut, _) | (_, Look::Cut) => return Verdict::Need(0, 0),
        _ => return Verdict::No,
    };
    let label = at + 11;
    let mut end = label;
    while end - label < 48 && (is(view.at(end), UPPER) || matches!(view.at(end), b' ' | b'0'..=b'9')) {
        end += 1;
    }
    if view.open(end) {
        return Verdict::Need(0, 0);
    }
    match view.look(end, b"-----") {
        Look::No => return Verdict::No,
        Look::Cut => return Verdict::Need(0, 0),
        Look::Yes => {}
    }
    let name = view.slice(label, end);
    if !(name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK")) {
        return Verdict::No;
    }
    body(view, at, end + 5)
}

/// Walks the lines of the key to its end line, or to where it is cut off.
fn body(view: &View, start: usize, from: usize) -> Verdict {
    let limit = from + LONGEST;
    let (mut at, mut sixty_four, mut last) = (from, 0usize, from);
    loop {
        at = view.run(at, PEM_GLUE, LONGEST);
        if at >= limit {
            break;
        }
        // Before the first line of a key each word is looked at, so that a sentence about keys is not held back.
        let waits = if sixty_four == 0 { BASE64 } else { BODY };
        if view.open(at) {
            return Verdict::Need(PEM_GLUE, limit + 1);
        }
        if let Some(verdict) = end_line(view, start, at, sixty_four) {
            return verdict;
        }
        if view.at(at) == b'-' && view.before(at) == b'\n' {
            // A line that a diff takes away.
            at += 1;
            continue;
        }
        let stop = match header_line(view, at) {
            Header::Cut => return Verdict::Need(0, 0),
            Header::Ends(end) => {
                at = end;
                continue;
            }
            Header::No => word(view, at),
        };
        if view.open(stop) && stop < limit {
            return Verdict::Need(waits, limit + 1);
        }
        if let Some(after) = apart(view, at, stop) {
            at = after;
            continue;
        }
        let length = stop - at;
        // The first word tells a key from a sentence about keys.
        if length == 0 || (sixty_four == 0 && length < 16) {
            break;
        }
        sixty_four += length;
        if length >= 16 || view.at(stop - 1) == b'=' {
            last = stop;
        }
        at = stop;
        if at >= limit {
            break;
        }
    }
    if sixty_four < 48 {
        return Verdict::No;
    }
    let open = if at >= limit { BODY } else { 0 };
    Verdict::Hit(Hit { start, end: if open == 0 { last } else { at }, kind: "private-key", open })
}

/// The end of a line of base64. An escape `\n` ends it; its letter is no part of it, its backslash is glue.
fn word(view: &View, at: usize) -> usize {
    let skip = usize::from(view.before(at) == b'\\' && matches!(view.at(at), b'n' | b'r' | b't'));
    view.run(at + skip, BASE64 | EQUALS, LONGEST)
}

/// What is no part of a line of the key though it reads like one: the letter of an escape `\n` before another one, the number
/// that a tool puts before every line. Returns where the line goes on.
fn apart(view: &View, at: usize, stop: usize) -> Option<usize> {
    let word = view.slice(at, stop);
    if view.before(at) == b'\\' && matches!(word, b"n" | b"r") {
        return Some(stop);
    }
    let number = word.len() <= 6 && count(word, DIGIT) == word.len() && !word.is_empty();
    let gap = [("\t", 1), (" ", 1), (":", 1), ("|", 1), ("→", 3)];
    let gap = gap.iter().find(|(mark, _)| view.look(stop, mark.as_bytes()) == Look::Yes)?.1;
    number.then_some(stop + gap)
}

fn end_line(view: &View, start: usize, at: usize, length: usize) -> Option<Verdict> {
    match view.look(at, b"-----END ") {
        Look::No if view.look(at, b"------END ") == Look::Yes => return end_line(view, start, at + 1, length),
        Look::No if view.look(at, b"------END ") == Look::Cut => return Some(Verdict::Need(0, 0)),
        Look::No => return None,
        Look::Cut => return Some(Verdict::Need(0, 0)),
        Look::Yes => {}
    }
    let mut end = at + 9;
    while end - at < 60 && (is(view.at(end), UPPER) || matches!(view.at(end), b' ' | b'0'..=b'9')) {
        end += 1;
    }
    if view.open(end) || view.look(end, b"-----") == Look::Cut {
        return Some(Verdict::Need(0, 0));
    }
    let end = if view.look(end, b"-----") == Look::Yes { end + 5 } else { end };
    Some(if length < 24 { Verdict::No } else { Hit::verdict(start, end, "private-key") })
}

enum Header {
    No,
    Cut,
    Ends(usize),
}

/// `Proc-Type: 4,ENCRYPTED` and its kin, up to the end of the line.
fn header_line(view: &View, at: usize) -> Header {
    const NAMES: [&[u8]; 7] = [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Charset:", b"Hash:", b"X-"];
    let skip = usize::from(view.before(at) == b'\\' && matches!(view.at(at), b'n' | b'r'));
    for name in NAMES {
        match view.look(at + skip, name) {
            Look::No => continue,
            Look::Cut => return Header::Cut,
            Look::Yes => {}
        }
        let end = view.run(at + skip, super::super::bytes::LINE, 120);
        return if view.open(end) { Header::Cut } else { Header::Ends(end) };
    }
    Header::No
}

/// `-----BEGIN … PRIVATE KEY-----` once more in base64, as in cluster configurations.
fn encoded(view: &View, start: usize, body: usize) -> Verdict {
    let end = view.run(body, BASE64, 80);
    if view.open(end) && end - body < 80 {
        return Verdict::Need(BASE64, body + 80);
    }
    let head = decode64(view.slice(start, end), 60);
    if !head.windows(11).any(|w| w == b"PRIVATE KEY") {
        return Verdict::No;
    }
    Verdict::Hit(Hit { start, end, kind: "private-key", open: BASE64 | EQUALS })
}
