//! Values that are secrets because of the name before them: assignments, members, flags, tags, connection strings.

use super::super::bytes::{
    ALNUM, ALPHA, ANY_HEX, BARE, DIGIT, LOWER, Mask, NAME, QUOTED, UNDERSCORE, UPPER, all_classes, contains, count,
    distinct, is,
};
use super::super::detect::Detector;
use super::super::keys::{self, Class, Key};
use super::super::view::{Hit, Look, Verdict, View};
use super::{Family, header, is_wordy, looks_random, url};

pub(super) const FAMILY: Family = Family {
    name: "assign",
    pii: false,
    kinds: &[
        "password",
        "generic-secret",
        "aws-secret-key",
        "azure-sb-key",
        "azure-sas",
        "twilio-key",
        "npmrc-token",
        "api-key-header",
    ],
    prefixes: &[],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["DB_PASSWORD=", "Mo0nl.jJw4"],
        &["{\"user\":\"svc\",\"password\":\"", "Tr0ub%0rsI", "\",\"retries\":3}"],
        &["const cfg = { apiSecret: \"", "3e6625929febdd73", "d832890b66ee94b4\" };"],
        &["run --token ", "Zq81kTmVx0bYw3RcNe57 --dry"],
        &["<password>", "V1per#h8AQ", "</password>"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["const token = await getToken(user);"],
        &["session token id=", "95f3bedef890f105 in 236ms"],
        &["password: str = Field(..., min_length=8)"],
        &["password=$(cat /run/secrets/db_password)"],
        &["secret = \"changeme\""],
        &["Password: must be at least 12 characters long and contain a symbol."],
        &["usage: {\"prompt_tokens\":4289,\"max_tokens\":4096}"],
    ],
};

/// Longest value that is looked at.
const LONGEST: usize = 1_024;

/// How much of a value tells what it is.
const HEAD: usize = 128;

/// `=` or `:`.
pub(in super::super) fn at_operator(detector: &Detector, view: &View, at: usize) -> Verdict {
    let byte = view.at(at);
    if byte == b':' {
        let verdict = url::at_colon(view, at);
        if verdict != Verdict::No {
            return verdict;
        }
    }
    if byte == b'=' && matches!(view.before(at), b'=' | b'!' | b'<' | b'>') {
        return Verdict::No;
    }
    let end = if byte == b'=' && view.before(at) == b':' { at - 1 } else { at };
    let Some(key) = keys::before(view, end) else { return Verdict::No };
    let key = Key { environment: key.environment && end == at, ..key };
    let mut from = at + 1;
    if view.open(from) {
        return Verdict::Need(0, 0);
    }
    match (byte, view.at(from)) {
        (b'=', b'=') | (b':', b':') => return Verdict::No,
        (b'=', b'>') | (b':', b'=') => from += 1,
        _ => {}
    }
    value(detector, view, &key, from)
}

/// `>` of `<password>`.
pub(in super::super) fn at_tag(detector: &Detector, view: &View, at: usize) -> Verdict {
    if !is(view.before(at), ALNUM) {
        return Verdict::No;
    }
    let start = view.run_back(at, NAME, at);
    if start == 0 || view.before(start) != b'<' {
        return Verdict::No;
    }
    let Some((class, kind)) = keys::classify(view.slice(start, at)) else { return Verdict::No };
    value(detector, view, &Key { class, kind, quoted: false, environment: false }, at + 1)
}

/// `--password VALUE`, also as two items of a list.
pub(in super::super) fn at_flag(detector: &Detector, view: &View, at: usize) -> Verdict {
    if is(view.before(at), ALNUM) || view.at(at + 1) != b'-' {
        return if view.open(at + 1) { Verdict::Need(0, 0) } else { Verdict::No };
    }
    let name = at + 2;
    let end = view.run(name, NAME, 48);
    if view.open(end) && end - name < 48 {
        return Verdict::Need(NAME, name + 48);
    }
    let Some((class, kind)) = keys::classify(view.slice(name, end)) else { return Verdict::No };
    let mut from = end;
    while from < end + 6 && matches!(view.at(from), b' ' | b'"' | b'\'' | b',' | b'\\') {
        from += 1;
    }
    if view.open(from) {
        return Verdict::Need(0, 0);
    }
    // The quote that opens the value belongs to it.
    while from > end && matches!(view.at(from - 1), b'"' | b'\'' | b'\\') {
        from -= 1;
    }
    if from == end || view.slice(end, from).iter().all(|b| matches!(b, b'"' | b'\'' | b'\\')) {
        return Verdict::No;
    }
    value(detector, view, &Key { class, kind, quoted: false, environment: false }, from)
}

/// The value of a key, and whether it is a secret.
fn value(detector: &Detector, view: &View, key: &Key, from: usize) -> Verdict {
    let mut at = from;
    while at < from + 32 && matches!(view.at(at), b' ' | b'\t') {
        at += 1;
    }
    // `b"…"`, `r'…'`, `@"…"`
    if matches!(view.at(at), b'b' | b'r' | b'u' | b'f' | b'@') && matches!(view.at(at + 1), b'"' | b'\'') {
        at += 1;
    }
    let mut slashes = 0;
    while view.at(at + slashes) == b'\\' && slashes < 8 {
        slashes += 1;
    }
    if view.open(at + slashes) || view.open(at + 1) {
        return Verdict::Need(0, 0);
    }
    let quote = view.at(at + slashes);
    if matches!(quote, b'"' | b'\'' | b'`') {
        return quoted(detector, view, key, at + slashes + 1, (quote, slashes));
    }
    if slashes > 0 {
        return Verdict::No;
    }
    match key.class {
        Class::Authorization => header::authorization(view, at, key.kind, 0),
        Class::Cookie => header::cookie(view, at, 0),
        _ => bare(detector, view, key, at),
    }
}

/// A value in quotes that are escaped `slashes` deep.
fn quoted(detector: &Detector, view: &View, key: &Key, start: usize, (quote, slashes): (u8, usize)) -> Verdict {
    match key.class {
        Class::Authorization => return header::authorization(view, start, key.kind, quote),
        Class::Cookie => return header::cookie(view, start, quote),
        _ => {}
    }
    let mut at = start;
    let end = loop {
        at = view.run(at, QUOTED, LONGEST);
        if at - start >= LONGEST {
            return Verdict::No;
        }
        if view.open(at) {
            return Verdict::Need(QUOTED, start + LONGEST);
        }
        let mut run = 0;
        while view.at(at + run) == b'\\' && run < LONGEST {
            run += 1;
        }
        if view.open(at + run) {
            return Verdict::Need(0, 0);
        }
        match view.at(at + run) {
            // An escape inside holds twice the slashes and one more; what is left ends the value.
            b if b == quote && run >= slashes && (run - slashes).is_multiple_of(2 * (slashes + 1)) => {
                break at + run - slashes;
            }
            b if b == quote && run < slashes => break at,
            b'\n' | b'\r' => return Verdict::No,
            _ if at + run >= view.len() => return Verdict::No,
            _ if run > 0 && !matches!(view.at(at + run), b'"' | b'\'' | b'`' | b'<') => at += run,
            _ => at += run + 1,
        }
    };
    decide(detector, view, key, start, end, true)
}

/// A value without quotes.
fn bare(detector: &Detector, view: &View, key: &Key, start: usize) -> Verdict {
    let end = view.run(start, BARE, LONGEST);
    if view.open(end) && end - start < LONGEST {
        return Verdict::Need(BARE, start + LONGEST);
    }
    if key.quoted
        && matches!(view.at(start), b'0'..=b'9' | b'-' | b'[' | b'{')
        && !view.slice(start, end).starts_with(b"[REDACTED:")
    {
        // A number, list or object of JSON keeps its type.
        return Verdict::No;
    }
    let text = view.slice(start, end);
    match is_type(view, start, end) {
        Look::Yes => return Verdict::No,
        Look::Cut => return Verdict::Need(0, 0),
        Look::No => {}
    }
    let head = text.get(..HEAD).unwrap_or(text);
    if is_bland(head) && !detector.may_start(view, start) {
        return Verdict::No;
    }
    let mut length = bare_length(key, head);
    if length == HEAD {
        // Bounded work first: in a long run every operator may start a value.
        if !is_secret_of(key, head, false) && !detector.may_start(view, start) {
            return Verdict::No;
        }
        length = bare_length(key, text);
    }
    let mut end = start + length;
    if !key.environment && !view.slice(start, end).ends_with(b"..") {
        while end > start && matches!(view.at(end - 1), b'.' | b':') {
            end -= 1;
        }
    }
    decide(detector, view, key, start, end, false)
}

/// Whether a name is the type of what is declared: `const WRONG_PASSWORD: WIN32_ERROR = 1323`, `raw_key: Seed25519Bin<'_>`.
fn is_type(view: &View, start: usize, end: usize) -> Look {
    let name = view.run(start, ALNUM | UNDERSCORE, 64);
    if !is(view.at(start), UPPER) {
        return Look::No;
    }
    match view.at(end) {
        // `</` ends an element.
        b'<' if name == end => match view.look(end, b"</") {
            Look::No => Look::Yes,
            Look::Yes => Look::No,
            Look::Cut => Look::Cut,
        },
        b' ' if name == end => view.look(name, b" = "),
        _ => Look::No,
    }
}

/// How much of a run without quotes is the value.
fn bare_length(key: &Key, text: &[u8]) -> usize {
    if key.environment && key.class == Class::Password {
        return text.len();
    }
    let mut open = [0i32; 3];
    let mut ends = |at: usize, b: u8| {
        if b == b'&' && key.class == Class::Password {
            // Passwords have ampersands; a name behind one is the next pair of a query.
            let rest = text.get(at + 1..).unwrap_or_default();
            let name = rest.iter().position(|&b| !is(b, NAME)).unwrap_or(rest.len());
            return name > 0 && rest.get(name) == Some(&b'=');
        }
        if matches!(b, b'&' | b',' | b';' | b'|') {
            return true;
        }
        // Brackets that close what was opened before the value do not belong to it.
        let (pair, step) = match b {
            b'(' => (0, 1),
            b')' => (0, -1),
            b'[' => (1, 1),
            b']' => (1, -1),
            b'{' => (2, 1),
            b'}' => (2, -1),
            _ => return false,
        };
        open.get_mut(pair).is_some_and(|depth| {
            *depth += step;
            *depth < 0 && !key.environment
        })
    };
    text.iter().enumerate().position(|(at, &b)| ends(at, b)).unwrap_or(text.len())
}

fn decide(detector: &Detector, view: &View, key: &Key, start: usize, end: usize, quoted: bool) -> Verdict {
    let text = view.slice(start, end);
    if is_mark(text) {
        return Verdict::No;
    }
    // A token that a rule knows gets its type; a longer value goes whole.
    match detector.token_at(view, start) {
        Verdict::Hit(hit) if hit.start <= start + 3 => {
            return Verdict::Hit(Hit { start, end: hit.end.max(end), ..hit });
        }
        need @ Verdict::Need(..) => return need,
        _ => {}
    }
    if is_secret_of(key, text, quoted) { Hit::verdict(start, end, key.kind) } else { Verdict::No }
}

/// Whether a value is what its key announces, judged by its beginning.
fn is_secret_of(key: &Key, text: &[u8], quoted: bool) -> bool {
    let text = text.get(..2 * HEAD).unwrap_or(text);
    let unmasked = unmask(text);
    let text = unmasked.as_deref().unwrap_or(text);
    match key.class {
        Class::Password => is_password(text, quoted, key.environment),
        Class::Signature => is_signature(text),
        _ => is_secret(text),
    }
}

/// A mark and nothing else.
fn is_mark(text: &[u8]) -> bool {
    super::super::mark_length(text) == Some(text.len())
}

/// A value with marks in it, judged as if a token stood in the place of each: so it is masked as one value, and a value that
/// was left alone before a token in it was masked is left alone afterwards.
fn unmask(text: &[u8]) -> Option<Vec<u8>> {
    let mark = super::super::MARK.as_bytes();
    if !text.contains(&b'[') || !text.windows(mark.len()).any(|w| w == mark) {
        return None;
    }
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(at) {
        match super::super::mark_length(text.get(at..).unwrap_or_default()) {
            Some(length) => {
                out.extend_from_slice(b"q8Zk1TmV7x0bYw3RcNe5");
                at += length;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Some(out)
}

/// Says whether a value is an expression, a reference or a template instead of a text.
fn is_expression(text: &[u8]) -> bool {
    let Some(&first) = text.first() else { return true };
    const INSIDE: [&[u8]; 8] = [b"::", b"${", b"{{", b"$(", b"<%", b"://", b"()", b"%("];
    if matches!(first, b'$' | b'<' | b'%' | b'(' | b'[' | b'{') || INSIDE.iter().any(|i| contains(text, i)) {
        return true;
    }
    if text.contains(&b' ') || text.contains(&b'\t') {
        return true;
    }
    // A call, an index, a path through names: `os.environ["X"]`, `cfg.section.key`.
    let called = text.iter().position(|&b| b == b'(' || b == b'[');
    if let Some(at) = called
        && at > 0
        && text
            .get(..at)
            .is_some_and(|name| name.iter().all(|&b| is(b, NAME)) && name.first().is_some_and(|&b| is(b, ALPHA)))
    {
        return true;
    }
    is_path(text)
}

fn is_path(text: &[u8]) -> bool {
    let rooted =
        text.starts_with(b"/") || text.starts_with(b"./") || text.starts_with(b"../") || text.starts_with(b"~/");
    let drive = matches!(text, [d, b':', b'\\' | b'/', ..] if is(*d, ALPHA));
    let named = count(text, UPPER) == 0 || text.iter().any(|b| matches!(b, b'.' | b'_' | b'-'));
    drive || (rooted && named)
}

/// Names joined by dots, without digits to speak of.
fn is_dotted_name(text: &[u8]) -> bool {
    text.contains(&b'.') && text.iter().all(|&b| is(b, NAME)) && is_wordy(text)
}

const NO_PASSWORDS: [&str; 25] = [
    "password",
    "passwd",
    "passw0rd",
    "secret",
    "changeme",
    "change-me",
    "change_me",
    "required",
    "optional",
    "undefined",
    "null",
    "none",
    "true",
    "false",
    "string",
    "example",
    "placeholder",
    "redacted",
    "hidden",
    "yourpassword",
    "your_password",
    "your-password",
    "<password>",
    "dummy",
    "todo",
];

/// Whether a value that is said to be a password is one.
pub(super) fn is_password(text: &[u8], quoted: bool, environment: bool) -> bool {
    let digits = count(text, DIGIT);
    if text.len() < 6 || is_bland(text) || distinct(text) < 4 || is_expression(text) || is_dotted_name(text) {
        return false;
    }
    let known = |word: &&str| text.eq_ignore_ascii_case(word.as_bytes());
    if NO_PASSWORDS.iter().any(known)
        || contains(text, b"your")
        || contains(text, b"example")
        || contains(text, b"xxxx")
    {
        return false;
    }
    if is_number(text) && digits < text.len() {
        return false;
    }
    if digits == text.len() {
        return quoted || environment;
    }
    let symbols = text.iter().filter(|b| b"!@#$%^&*+=?~".contains(b)).count();
    let wordy = is_wordy(text) && text.iter().all(|&b| is(b, NAME)) && !text.last().is_some_and(u8::is_ascii_digit);
    if wordy && digits > 0 && text.contains(&b'_') {
        return false;
    }
    digits > 0 || (symbols > 0 && count(text, ALPHA) > 0 && text.last() != Some(&b'?'))
}

/// A number as programs write it: sign, base, type, fraction.
fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (text, class) = match text.strip_prefix(b"0x") {
        Some(hex) => (hex, ANY_HEX),
        None => (text, DIGIT),
    };
    let digits = text.iter().take_while(|&&b| is(b, class) || b == b'_' || b == b'.').count();
    let tail = text.get(digits..).unwrap_or_default();
    let typed =
        matches!(tail, [b'u' | b'i' | b'f', rest @ ..] if rest.len() <= 4 && rest.iter().all(|&b| is(b, DIGIT)));
    digits > 0 && (tail.is_empty() || typed || matches!(tail, b"L" | b"UL" | b"n"))
}

/// No digit and one case only, in any part of it: no secret, save a token that a rule knows.
fn is_bland(text: &[u8]) -> bool {
    let classes = all_classes(text);
    classes & DIGIT == 0 && (classes & UPPER == 0 || classes & LOWER == 0)
}

/// Whether a value that is said to be a token or key is one.
fn is_secret(text: &[u8]) -> bool {
    const OK: Mask = NAME;
    if is_bland(text) || is_expression(text) || is_dotted_name(text) {
        return false;
    }
    let odd = text.iter().filter(|&&b| !is(b, OK) && !b"+/=:~!@#%^*$&".contains(&b)).count();
    // Digests are public; a name of the algorithm says so.
    let digest = text.starts_with(b"sha256:")
        || text.starts_with(b"sha512-")
        || text.starts_with(b"sha1-")
        || text.starts_with(b"SHA256:");
    odd == 0 && !digest && looks_random(text, 16)
}

/// A signature in a signed address.
fn is_signature(text: &[u8]) -> bool {
    text.len() >= 40
        && distinct(text) >= 10
        && text.iter().all(|&b| is(b, NAME) || b"+/=%".contains(&b))
        && !is_wordy(text)
}
