//! Names of keys: which of them stand before a secret.

use super::bytes::{ALNUM, ALPHA, DASH, DOT, NAME, UNDERSCORE, is};
use super::view::View;

/// What kind of value a key announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Chosen by people: short ones count, words do not.
    Password,
    /// Made by machines: long and varied.
    Secret,
    /// `Authorization`: a scheme and its credentials.
    Authorization,
    /// `Cookie`, `Set-Cookie`.
    Cookie,
    /// The signature of a signed address, percent-encoded.
    Signature,
}

/// The key before an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) class: Class,
    pub(super) kind: &'static str,
    /// Whether it stands in quotes, as the keys of JSON do.
    pub(super) quoted: bool,
    /// Whether it opens its line in the style of an environment file: `NAME=`.
    pub(super) environment: bool,
}

/// Endings of names in lower case without `_ - .`; the first that fits decides. `None`: no secret.
const ENDINGS: &[(&str, Option<(Class, &str)>)] = &[
    ("pagetoken", None),
    ("nexttoken", None),
    ("csrftoken", None),
    ("xsrftoken", None),
    ("csrfmiddlewaretoken", None),
    ("continuationtoken", None),
    ("cancellationtoken", None),
    ("cursortoken", None),
    ("synctoken", None),
    ("clientrequesttoken", None),
    ("idempotencytoken", None),
    ("publictoken", None),
    ("eostoken", None),
    ("bostoken", None),
    ("padtoken", None),
    ("publickey", None),
    ("proxyauthorization", Some((Class::Authorization, "bearer"))),
    ("authorization", Some((Class::Authorization, "bearer"))),
    ("setcookie", Some((Class::Cookie, "cookie"))),
    ("cookie", Some((Class::Cookie, "cookie"))),
    ("password", Some((Class::Password, "password"))),
    ("passwd", Some((Class::Password, "password"))),
    ("passphrase", Some((Class::Password, "password"))),
    ("passcode", Some((Class::Password, "password"))),
    ("pswd", Some((Class::Password, "password"))),
    ("passwort", Some((Class::Password, "password"))),
    ("secretaccesskey", Some((Class::Secret, "aws-secret-key"))),
    ("awssecretkey", Some((Class::Secret, "aws-secret-key"))),
    ("awssessiontoken", Some((Class::Secret, "aws-session-token"))),
    ("npmauthtoken", Some((Class::Secret, "npmrc-token"))),
    ("xapikey", Some((Class::Secret, "api-key-header"))),
    ("sharedaccesskey", Some((Class::Secret, "azure-sb-key"))),
    ("accountkey", Some((Class::Secret, "azure-storage-key"))),
    ("sharedaccesssignature", Some((Class::Signature, "azure-sas"))),
    ("twilioapikey", Some((Class::Secret, "twilio-key"))),
    ("twilioauthtoken", Some((Class::Secret, "twilio-key"))),
    ("amzsignature", Some((Class::Signature, "generic-secret"))),
    ("googsignature", Some((Class::Signature, "generic-secret"))),
    ("token", Some((Class::Secret, "generic-secret"))),
    ("secret", Some((Class::Secret, "generic-secret"))),
    ("secretkeybase", Some((Class::Secret, "generic-secret"))),
    ("credential", Some((Class::Secret, "generic-secret"))),
    ("credentials", Some((Class::Secret, "generic-secret"))),
    ("bearer", Some((Class::Secret, "bearer"))),
    ("apikey", Some((Class::Secret, "generic-secret"))),
    ("appkey", Some((Class::Secret, "generic-secret"))),
    ("authkey", Some((Class::Secret, "generic-secret"))),
    ("accesskey", Some((Class::Secret, "generic-secret"))),
    ("secretkey", Some((Class::Secret, "generic-secret"))),
    ("privatekey", Some((Class::Secret, "generic-secret"))),
    ("signingkey", Some((Class::Secret, "generic-secret"))),
    ("encryptionkey", Some((Class::Secret, "generic-secret"))),
    ("masterkey", Some((Class::Secret, "generic-secret"))),
    ("sessionkey", Some((Class::Secret, "generic-secret"))),
    ("servicekey", Some((Class::Secret, "generic-secret"))),
    ("storagekey", Some((Class::Secret, "generic-secret"))),
    ("subscriptionkey", Some((Class::Secret, "generic-secret"))),
    ("functionskey", Some((Class::Secret, "generic-secret"))),
    ("licensekey", Some((Class::Secret, "generic-secret"))),
    ("licencekey", Some((Class::Secret, "generic-secret"))),
    ("servicerolekey", Some((Class::Secret, "generic-secret"))),
    ("consumerkey", Some((Class::Secret, "generic-secret"))),
    ("clientkey", Some((Class::Secret, "generic-secret"))),
    ("hmackey", Some((Class::Secret, "generic-secret"))),
    ("jwtkey", Some((Class::Secret, "generic-secret"))),
    ("cryptkey", Some((Class::Secret, "generic-secret"))),
    ("deploykey", Some((Class::Secret, "generic-secret"))),
    ("writekey", Some((Class::Secret, "generic-secret"))),
    ("adminkey", Some((Class::Secret, "generic-secret"))),
    ("phpsessid", Some((Class::Secret, "cookie"))),
    ("jsessionid", Some((Class::Secret, "cookie"))),
    ("sessionsecret", Some((Class::Secret, "generic-secret"))),
    // The only one of three letters is the last.
    ("pwd", Some((Class::Password, "password"))),
];

/// Short names that count only as whole words: `DB_PASS`, not `compass`.
const WORDS: &[(&str, Class, &str)] = &[
    ("pass", Class::Password, "password"),
    ("pw", Class::Password, "password"),
    ("psw", Class::Password, "password"),
    ("auth", Class::Secret, "generic-secret"),
    ("sig", Class::Signature, "azure-sas"),
];

/// Words after the name that change nothing: `API_KEY_PROD`, `password2`.
const TAILS: [&str; 9] = ["value", "base64", "b64", "production", "prod", "staging", "development", "dev", "test"];

/// Names the class of a key, when it announces a secret.
pub(super) fn classify(name: &[u8]) -> Option<(Class, &'static str)> {
    if !may_end(name) {
        return None;
    }
    let text = without_tails(name);
    // Four letters settle nearly all: endings with the same ones lie in one row.
    let row = row_of(last_four(text));
    let end = |row: usize| ROWS.1.get(row).map_or(0, |&end| usize::from(end));
    let row = ROWS.0.get(if row == 0 { 0 } else { end(row - 1) }..end(row)).unwrap_or_default();
    let ending = |pick: &u8| ENDINGS.get(usize::from(*pick)).filter(|ending| ends_in(text, ending.0));
    let found = row.iter().find_map(ending).or_else(|| {
        ENDINGS.last().filter(|shortest| matches!(text.last(), Some(b'd' | b'D')) && ends_in(text, shortest.0))
    });
    if let Some((_, found)) = found {
        return *found;
    }
    let two = last_two(name)?;
    let (_, class, kind) = WORDS.iter().find(|(word, ..)| pair_of(word) == two && is_last_word(name, word))?;
    Some((*class, kind))
}

/// A name without what may stand behind a key's: `API_KEY_PROD`, `password2`.
fn without_tails(name: &[u8]) -> &[u8] {
    let mut text = name;
    for tail in if may_have_tail(name) { TAILS.as_slice() } else { &[] } {
        // Only behind something: `PROD` alone is no key.
        if last_two(text).is_none_or(|two| two == pair_of(tail)) {
            text = strip(text, tail.as_bytes()).filter(|rest| rest.len() > 2).unwrap_or(text);
        }
    }
    while let Some((_, rest)) = text.split_last().filter(|(last, _)| !is(**last, ALPHA)) {
        text = rest;
    }
    text
}

/// Whether the last two letters of a name can end a tail.
fn may_have_tail(name: &[u8]) -> bool {
    let known = |two: u16| matches!(&two.to_be_bytes(), b"ue" | b"64" | b"on" | b"od" | b"ng" | b"nt" | b"ev" | b"st");
    last_two(name).is_none_or(known)
}

fn ends_in(text: &[u8], ending: &str) -> bool {
    ending.len() <= text.len() && strip(text, ending.as_bytes()).is_some()
}

fn is_last_word(name: &[u8], word: &str) -> bool {
    last_word(name).eq_ignore_ascii_case(word.as_bytes())
}

/// How many rows the endings are spread over.
const ROW_COUNT: usize = 64;

/// The endings in rows by their last four letters (places in `ENDINGS`, in its order), and where each row ends.
const ROWS: ([u8; ENDINGS.len()], [u8; ROW_COUNT]) = rows();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, which would refuse an index out of bounds")]
const fn rows() -> ([u8; ENDINGS.len()], [u8; ROW_COUNT]) {
    let (mut picks, mut ends) = ([0; ENDINGS.len()], [0; ROW_COUNT]);
    let (mut filled, mut row) = (0, 0);
    while row < ROW_COUNT {
        let mut at = 0;
        while at < ENDINGS.len() {
            if row_of(last_four(ENDINGS[at].0.as_bytes())) == row {
                picks[filled] = at as u8;
                filled += 1;
            }
            at += 1;
        }
        ends[row] = filled as u8;
        row += 1;
    }
    (picks, ends)
}

const fn row_of(letters: u32) -> usize {
    (letters.wrapping_mul(0x9e37_79b1) >> 26) as usize
}

/// The last four letters and digits of a name in lower case as one number, whatever stands between them.
const fn last_four(mut name: &[u8]) -> u32 {
    let mut letters = 0;
    while let [rest @ .., last] = name {
        if last.is_ascii_alphanumeric() {
            letters = letters << 8 | last.to_ascii_lowercase() as u32;
            if letters >> 24 != 0 {
                break;
            }
        }
        name = rest;
    }
    letters
}

/// The last two letters of an ending as one number; a digit counts as a letter.
const fn pair_of(ending: &str) -> u16 {
    match ending.as_bytes() {
        [.., a, b] => (*a as u16) << 8 | *b as u16,
        _ => 0,
    }
}

/// The last two letters of a name in lower case; none where something else stands between them.
#[inline(always)]
fn last_two(name: &[u8]) -> Option<u16> {
    match name {
        [.., a, b] if is(*a, ALNUM) && is(*b, ALNUM) => {
            Some(u16::from(a.to_ascii_lowercase()) << 8 | u16::from(b.to_ascii_lowercase()))
        }
        _ => None,
    }
}

/// What stands before an ending, in any case and with any of `_ - .` inside it.
fn strip<'n>(name: &'n [u8], ending: &[u8]) -> Option<&'n [u8]> {
    let mut rest = name;
    for &letter in ending.iter().rev() {
        loop {
            let (&last, before) = rest.split_last()?;
            rest = before;
            if is(last, ALNUM) {
                if last.to_ascii_lowercase() != letter {
                    return None;
                }
                break;
            }
        }
    }
    Some(rest)
}

/// The last two letters of every ending, word and tail above.
const LAST: &[u8] = b"enonierdwdsedertetalerlsreidpwswthiguengodntevstsseyie";

/// For each letter before the last one, which last letters there are.
const PAIRS: [u32; 32] = pairs();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, which would refuse an index out of bounds")]
const fn pairs() -> [u32; 32] {
    let mut table = [0; 32];
    let mut at = 0;
    while at + 1 < LAST.len() {
        table[(LAST[at] & 31) as usize] |= 1 << (LAST[at + 1] & 31);
        at += 2;
    }
    table
}

/// Whether the name that ends at a quote may be a secret's.
#[inline(always)]
pub(super) fn may_be_quoted(view: &View, quote: usize) -> bool {
    let escaped = usize::from(quote > 0 && view.at(quote - 1) == b'\\');
    let end = quote - escaped;
    may_end(view.bytes.get(end.saturating_sub(9)..end).unwrap_or_default())
}

/// Whether the name that ends in front of a colon may be a secret's: told only where letters stand there.
#[inline(always)]
pub(super) fn may_be_plain(view: &View, colon: usize) -> bool {
    match view.bytes.get(..colon).unwrap_or_default() {
        [.., a, b] if is(*a, ALPHA) && is(*b, ALPHA) => may_end(&[*a, *b]),
        _ => true,
    }
}

/// Whether the last two letters of a name can end a key: settles most names at once.
fn may_end(name: &[u8]) -> bool {
    match name {
        [.., a, b] if is(*a, ALPHA) && is(*b, ALPHA) => {
            let may = PAIRS.get(usize::from(a & 31)).is_some_and(|last| last >> (b & 31) & 1 == 1);
            // Of all the names that end in `id` only those of whole sessions count.
            may && (name.len() > 8 || !(b | 32 == b'd' && a | 32 == b'i'))
        }
        _ => name.len() > 1,
    }
}

/// The last word of a name in any spelling.
fn last_word(name: &[u8]) -> &[u8] {
    let separate = |b: &u8| is(*b, UNDERSCORE | DASH | DOT);
    let word = name.rsplit(|b| separate(b)).next().unwrap_or(name);
    let camel = word.windows(2).rposition(|w| matches!(w, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    camel.and_then(|at| word.get(at + 1..)).unwrap_or(word)
}

/// Finds the key that an operator at `anchor` belongs to.
pub(super) fn before(view: &View, anchor: usize) -> Option<Key> {
    let (name, quoted) = name_before(view, anchor, anchor)?;
    if view.at(anchor) == b':' && view.before(name.0) == b':' {
        // A part of a name with parts: `arn:…:secret:prod/db-x1`.
        return None;
    }
    let text = view.slice(name.0, name.1);
    let environment = view.at(anchor) == b'=' && name.1 == anchor && opens_line(view, name.0);
    if let Some((class, kind)) = classify(text) {
        return Some(Key { class, kind, quoted, environment });
    }
    if text.eq_ignore_ascii_case(b"key")
        && let Some((class, kind)) = worded(view, name, anchor)
    {
        return Some(Key { class, kind, quoted, environment: false });
    }
    let other =
        if text.eq_ignore_ascii_case(b"value") { named(view, name.0, anchor) } else { typed(view, name.0, anchor) };
    other.map(|(class, kind)| Key { class, kind, quoted, environment: false })
}

/// The name that ends before `end`: its range, and whether it stands in quotes.
fn name_before(view: &View, end: usize, anchor: usize) -> Option<((usize, usize), bool)> {
    let mut at = back_over(view, end, b" \t", 6);
    if view.before(at) == b']' {
        at -= 1;
        if !matches!(view.before(at), b'"' | b'\'' | b'`') {
            // `char password[] = …`
            at = back_over(view, at, b"[", 1);
        }
    }
    let quoted = matches!(view.before(at), b'"' | b'\'' | b'`');
    if quoted {
        at = back_over(view, at - 1, b"\\", 3);
    } else if view.before(at) == b'?' {
        at -= 1;
    }
    let start = view.run_back(at, NAME, anchor);
    (start < at).then_some(((start, at), quoted))
}

/// `API key: …`, `Secret Access Key: …`: the name has words of its own.
fn worded(view: &View, (start, end): (usize, usize), anchor: usize) -> Option<(Class, &'static str)> {
    let first = (0..2).fold(start, |at, _| match view.before(at) {
        b' ' => view.run_back(at - 1, NAME, anchor),
        _ => at,
    });
    classify(view.slice(first, end))
}

fn back_over(view: &View, end: usize, over: &[u8], most: usize) -> usize {
    let mut at = end;
    while end - at < most && at > view.floor && over.contains(&view.before(at)) {
        at -= 1;
    }
    at
}

/// `name: string = …`, `apiKey string = …`: the name stands before its type.
fn typed(view: &View, type_start: usize, anchor: usize) -> Option<(Class, &'static str)> {
    if view.at(anchor) != b'=' || !view.at(type_start).is_ascii_alphabetic() {
        return None;
    }
    let at = back_over(view, type_start, b" &'*", 6);
    // Without a colon only what is surely a type counts: `token id=…` is prose of a log.
    let name = view.slice(type_start, view.run(type_start, ALPHA, 16));
    let at = match view.before(at) {
        b':' => at - 1,
        _ if matches!(name, b"string" | b"str" | b"byte" | b"bytes" | b"char") => at,
        _ => return None,
    };
    if at == type_start {
        return None;
    }
    let (name, _) = name_before(view, at, anchor)?;
    classify(view.slice(name.0, name.1))
}

/// `{"name": "DB_PASSWORD", "value": …}`, `<add key="ApiKey" value=…`: the name is the value of the pair before.
fn named(view: &View, value_start: usize, anchor: usize) -> Option<(Class, &'static str)> {
    let gap = b" \t\r\n\"'`\\,;-";
    let at = back_over(view, value_start, gap, 24);
    let start = view.run_back(at, NAME, anchor);
    let found = classify(view.slice(start, at))?;
    let before = back_over(view, start, b" \t\"'`\\:=", 12);
    let label = view.slice(view.run_back(before, NAME, anchor), before);
    let is_label = label.eq_ignore_ascii_case(b"name") || label.eq_ignore_ascii_case(b"key");
    is_label.then_some(found)
}

/// Whether a name opens its line, `export` and spaces apart.
fn opens_line(view: &View, start: usize) -> bool {
    let upper = view.slice(start, start + 2).iter().all(|b| b.is_ascii_uppercase() || *b == b'_');
    let before = back_over(view, start, b" \t", 4);
    upper && (before == 0 || matches!(view.before(before), b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_passes_the_quick_look() {
        let names = ENDINGS.iter().map(|e| e.0).chain(WORDS.iter().map(|w| w.0)).chain(TAILS);
        for name in names {
            assert!(may_end(name.as_bytes()), "{name}");
            assert!(!TAILS.contains(&name) || may_have_tail(name.as_bytes()), "{name}");
        }
        assert!(LAST.len().is_multiple_of(2));
    }

    #[test]
    fn rows_answer_as_the_whole_list_does() {
        let first = |name: &[u8]| ENDINGS.iter().find(|ending| strip(name, ending.0.as_bytes()).is_some()).unwrap().1;
        for (ending, _) in ENDINGS {
            let parted: String = ending.chars().flat_map(|c| ['_', c.to_ascii_uppercase()]).collect();
            for name in [ending.to_string(), format!("my{ending}"), format!("my.{}", parted), ending.to_uppercase()] {
                assert_eq!(classify(name.as_bytes()), first(name.as_bytes()), "{name}");
            }
        }
        let (shortest, longer) = ENDINGS.split_last().unwrap();
        assert!(shortest.0.len() == 3 && longer.iter().all(|ending| ending.0.len() >= 4));
    }

    #[test]
    fn names_are_classified_in_any_spelling() {
        let class = |name: &str| classify(name.as_bytes()).map(|found| found.0);
        for name in ["DB_PASSWORD", "dbPassword", "db-password", "password2", "PASSWORD_PROD", "DB_PASS", "userPw"] {
            assert_eq!(class(name), Some(Class::Password), "{name}");
        }
        for name in ["apiKey", "API-KEY", "x-api-key", "access.token", "SECRET_KEY_BASE", "clientSecretValue", "_auth"]
        {
            assert_eq!(class(name), Some(Class::Secret), "{name}");
        }
        for name in
            ["compass", "max_tokens", "tokenizer", "nextPageToken", "csrf_token", "public_key", "key", "author", "id"]
        {
            assert_eq!(class(name), None, "{name}");
        }
    }
}
