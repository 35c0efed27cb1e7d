//! JSON Web Tokens, signed or encrypted: a header that decodes, and two or more further parts.

use super::super::bytes::{URL64, contains, decode64, is};
use super::super::view::{Hit, Verdict, View};
use super::{Family, Prefix};

pub(super) const FAMILY: Family = Family {
    name: "jwt",
    pii: false,
    kinds: &["jwt"],
    prefixes: &[
        // `{"`, `{` and a line end, `{` and a space.
        Prefix::other("eyJ", "jwt", jwt),
        Prefix::other("ewo", "jwt", jwt),
        Prefix::other("eyA", "jwt", jwt),
    ],
    #[cfg(not(target_family = "wasm"))]
    examples: &[&[
        "eyJhbGciOiJIUzI1NiJ9",
        ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
        "Zq81kTmVx0bYw3RcNe57PsDhJ2gLfUa6oQ1yXk9wBvC",
    ]],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["eyJ is how base64 of {\" starts"],
        &["cursor=eyJ8dgAaigYcgLFJSqpTClFvFrNrD+v4avUdkl6Htz8"],
        &["state.eyes.eyequrcr.length"],
    ],
};

const HEADER: usize = 4_096;
const PAYLOAD: usize = 16_384;

fn jwt(view: &View, start: usize, _body: usize) -> Verdict {
    let header = view.run(start, URL64, HEADER);
    if !header_may_be(view.slice(start, header)) {
        return Verdict::No;
    }
    if view.open(header) && header - start < HEADER {
        return Verdict::Need(URL64, start + HEADER);
    }
    if view.at(header) != b'.' || !is_header(view.slice(start, header)) {
        return Verdict::No;
    }
    let payload = view.run(header + 1, URL64, PAYLOAD);
    if view.open(payload) && payload - header <= PAYLOAD {
        return Verdict::Need(URL64, header + 1 + PAYLOAD);
    }
    if view.at(payload) != b'.' {
        return Verdict::No;
    }
    let mut end = view.run(payload + 1, URL64, PAYLOAD);
    if end - payload > PAYLOAD {
        return Verdict::Hit(Hit { start, end, kind: "jwt", open: URL64 });
    }
    // Encrypted ones have two parts more.
    for _ in 0..2 {
        if view.open(end) {
            return Verdict::Need(URL64, end + PAYLOAD);
        }
        if view.at(end) == b'.' {
            if view.open(end + 1) {
                return Verdict::Need(0, 0);
            }
            if is(view.at(end + 1), URL64) && view.at(payload + 1) != b'.' {
                end = view.run(end + 1, URL64, PAYLOAD);
            }
        }
    }
    if view.open(end) { Verdict::Need(URL64, end + PAYLOAD) } else { Hit::verdict(start, end, "jwt") }
}

/// Whether the first characters decode to the start of an object.
fn header_may_be(text: &[u8]) -> bool {
    let head = decode64(text.get(..4).unwrap_or(text), 3);
    match head.as_slice() {
        [b'{', second, _] => *second == b'"' || second.is_ascii_whitespace(),
        _ => head.len() < 3,
    }
}

fn is_header(text: &[u8]) -> bool {
    // A header is short, or has its algorithm early; bounded so that many starts in one run stay cheap.
    let decoded = decode64(text, 512);
    let plain = decoded.iter().take_while(|&&b| matches!(b, 0x20..=0x7e | b'\n' | b'\r' | b'\t')).count();
    plain == decoded.len() && contains(&decoded, b"\"alg\"")
}
