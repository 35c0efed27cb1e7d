//! Passwords in addresses, and behind the user name of `curl -u`.

use super::super::bytes::{ALNUM, DASH, DOT, PLUS, USERINFO, contains, distinct, is};
use super::super::view::{Hit, LOOK_BACK, Look, Verdict, View};
use super::{Family, assign};

pub(super) const FAMILY: Family = Family {
    name: "url",
    pii: false,
    kinds: &["url-password"],
    prefixes: &[],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["postgres://app:", "Ny1on!RPdL3", "@db-2.internal:5432/main"],
        &["redis://:", "Fj0rd!60pr", "@10.0.3.7:6379/0"],
        &["curl -u admin:", "V1per_u157", " https://repo.example.com"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["postgres://user:password@localhost:5432/db"],
        &["https://user:${PASSWORD}@host/"],
        &["https://example.com:443/a@b/c?x=1#y"],
        &["git@github.com:acme/token-service.git"],
        &["http://localhost:8080/@scope/pkg"],
    ],
};

const LONGEST: usize = 320;

/// `://` behind a scheme, or the colon of `-u user:password`.
pub(super) fn at_colon(view: &View, at: usize) -> Verdict {
    if !is(view.before(at), ALNUM) {
        return Verdict::No;
    }
    match view.look(at, b"://") {
        Look::Yes => credentials(view, at + 3),
        Look::Cut => Verdict::Need(0, 0),
        Look::No => user_option(view, at),
    }
}

fn credentials(view: &View, from: usize) -> Verdict {
    let end = view.run(from, USERINFO, LONGEST);
    if view.open(end) && end - from < LONGEST {
        return Verdict::Need(USERINFO, from + LONGEST);
    }
    let text = view.slice(from, end);
    let Some(at_sign) = text.iter().rposition(|&b| b == b'@') else { return Verdict::No };
    let info = text.get(..at_sign).unwrap_or_default();
    let Some(colon) = info.iter().position(|&b| b == b':') else { return Verdict::No };
    let password = info.get(colon + 1..).unwrap_or_default();
    if is_shown(password) { Verdict::No } else { Hit::verdict(from + colon + 1, from + at_sign, "url-password") }
}

/// Whether a password only stands for one.
fn is_shown(password: &[u8]) -> bool {
    const WORDS: [&str; 10] =
        ["password", "passwd", "pass", "pwd", "secret", "token", "changeme", "user", "username", "pw"];
    let known = |word: &str| password.eq_ignore_ascii_case(word.as_bytes());
    const INSIDE: [&[u8]; 6] = [b"${", b"{{", b"$(", b"[REDACTED:", b"your", b"%s"];
    password.len() < 3
        || distinct(password) < 2
        || matches!(password.first(), Some(b'$' | b'{' | b'%' | b'<' | b'['))
        || WORDS.iter().any(|w| known(w))
        || INSIDE.iter().any(|i| contains(password, i))
}

/// `-u user:password`, `--user user:password`.
fn user_option(view: &View, colon: usize) -> Verdict {
    let name = view.run_back(
        colon,
        ALNUM | DASH | DOT | PLUS | super::super::bytes::UNDERSCORE | super::super::bytes::AT,
        colon,
    );
    let mut at = name;
    if matches!(view.before(at), b'"' | b'\'') {
        at -= 1;
    }
    // Behind most names stands no option: two bytes tell.
    let (last, second) = (view.before(at), view.before(at.saturating_sub(1)));
    if name == colon || !matches!(last, b' ' | b'=' | b'u') || !matches!(second, b'u' | b'U' | b'r' | b'-') {
        return Verdict::No;
    }
    let low = colon.saturating_sub(LOOK_BACK).max(view.floor);
    let before = view.slice(low, at);
    const OPTIONS: [&[u8]; 6] = [b" -u ", b" --user ", b" --user=", b" -U ", b" --proxy-user ", b" -u"];
    if !OPTIONS.iter().any(|o| before.ends_with(o)) {
        return Verdict::No;
    }
    let from = colon + 1;
    let end = view.run(from, super::super::bytes::BARE, LONGEST);
    if view.open(end) && end - from < LONGEST {
        return Verdict::Need(super::super::bytes::BARE, from + LONGEST);
    }
    let password = view.slice(from, end);
    if is_shown(password) || !assign::is_password(password, true, true) {
        Verdict::No
    } else {
        Hit::verdict(from, end, "url-password")
    }
}
