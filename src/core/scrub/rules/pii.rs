//! Personal data, opt-in: mail addresses, phone numbers, cards, bank accounts, social security numbers.

use super::super::bytes::{ALNUM, ALPHA, DASH, DIGIT, DOT, PERCENT, PLUS, UNDERSCORE, UPPER, count, distinct, is};
use super::super::view::{Hit, Verdict, View};
use super::Family;

pub(super) const FAMILY: Family = Family {
    name: "pii",
    pii: true,
    kinds: &["email", "phone", "card", "iban", "ssn"],
    prefixes: &[],
    #[cfg(not(target_family = "wasm"))]
    examples: &[
        &["mail ada", ".h56@corp.example", ".co.uk today"],
        &["charged 4242 ", "4242 4242 ", "4242 today"],
        &["to DE89 3704 ", "0044 0532 0130 00 by Friday"],
        &["call +44 20 ", "7946 0489 now"],
    ],
    #[cfg(not(target_family = "wasm"))]
    counter_examples: &[
        &["ts=1700854151061 dur=849us"],
        &["ISBN 978-3-16-148410-0"],
        &["git@github.com:acme/app.git"],
        &["listening on 10.12.0.1:8080"],
    ],
};

const LOCAL: u32 = ALNUM | DOT | UNDERSCORE | DASH | PLUS | PERCENT;

/// Asks the rules of personal data about a place.
pub(in super::super) fn place(view: &View, at: usize) -> (usize, Verdict) {
    let byte = view.at(at);
    if byte == b'+' || byte == b'(' {
        return if is(view.before(at), ALNUM) { (at + 1, Verdict::No) } else { (at + 1, phone(view, at)) };
    }
    if !is(byte, ALNUM) {
        return (at + 1, Verdict::No);
    }
    let mail = email(view, at);
    if mail != Verdict::No {
        return (at + 1, mail);
    }
    let verdict = if is(view.before(at), ALNUM | UNDERSCORE | DOT) {
        Verdict::No
    } else if is(byte, DIGIT) {
        numbers(view, at)
    } else if is(byte, UPPER) {
        iban(view, at)
    } else {
        Verdict::No
    };
    // A whole local part of an address has been looked at; a number is looked at once.
    (view.run(at, ALNUM, usize::MAX), verdict)
}

fn email(view: &View, at: usize) -> Verdict {
    if is(view.before(at), LOCAL) && view.before(at) != b'%' {
        return Verdict::No;
    }
    let end = view.run(at, LOCAL, 65);
    if view.open(end) && end - at < 65 {
        return Verdict::Need(LOCAL, at + 65);
    }
    if view.at(end) != b'@' || end - at > 64 {
        return Verdict::No;
    }
    let host = end + 1;
    let mut stop = view.run(host, ALNUM | DOT | DASH, 255);
    if view.open(stop) && stop - host < 255 {
        return Verdict::Need(ALNUM | DOT | DASH, host + 255);
    }
    while stop > host && is(view.at(stop - 1), DOT | DASH) {
        stop -= 1;
    }
    let name = view.slice(host, stop);
    let top = name.rsplit(|&b| b == b'.').next().unwrap_or_default();
    let fits = name.contains(&b'.') && top.len() >= 2 && top.iter().all(|&b| is(b, ALPHA)) && view.at(stop) != b':';
    if fits { Hit::verdict(at, stop, "email") } else { Verdict::No }
}

/// Collects up to `most` digits with single separators between them; the end and the separators' count.
fn digits(view: &View, from: usize, most: usize, separators: &[u8]) -> (Vec<u8>, usize, usize) {
    let (mut found, mut at, mut end, mut breaks) = (Vec::new(), from, from, 0);
    while found.len() <= most {
        let b = view.at(at);
        if is(b, DIGIT) {
            found.push(b - b'0');
            end = at + 1;
        } else if !(separators.contains(&b) && at == end && at > from) {
            break;
        } else {
            breaks += 1;
        }
        at += 1;
    }
    (found, end, breaks)
}

fn numbers(view: &View, at: usize) -> Verdict {
    let (found, end, breaks) = digits(view, at, 19, b" -");
    if view.open(end) || view.open(end + 1) {
        return Verdict::Need(0, 0);
    }
    if !is(view.at(end), ALNUM | UNDERSCORE) && is_card(&found) {
        return Hit::verdict(at, end, "card");
    }
    let shape: Vec<usize> = view.slice(at, end).split(|b| !is(*b, DIGIT)).map(<[u8]>::len).collect();
    if shape == [3, 2, 4] && view.slice(at, end).iter().filter(|&&b| b == b'-').count() == 2 {
        let area = found.iter().take(3).fold(0u32, |n, &d| n * 10 + u32::from(d));
        if area != 0 && area != 666 && area < 900 {
            return Hit::verdict(at, end, "ssn");
        }
    }
    if breaks >= 2 { phone(view, at) } else { Verdict::No }
}

/// Length, range of the maker, check digit.
fn is_card(digits: &[u8]) -> bool {
    let maker = digits.iter().take(2).fold(0u32, |n, &d| n * 10 + u32::from(d));
    let length = match maker {
        40..=49 => matches!(digits.len(), 13 | 16 | 19),
        22..=27 | 51..=55 => digits.len() == 16,
        34 | 37 => digits.len() == 15,
        30 | 36 | 38 | 39 => digits.len() == 14,
        35 | 50 | 56..=69 => (16..=19).contains(&digits.len()),
        _ => false,
    };
    length && distinct(digits) > 1 && luhn(digits)
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, &d)| {
            let d = u32::from(d) << (place & 1);
            if d > 9 { d - 9 } else { d }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// International with `+`, or ten digits in the groups of North America.
fn phone(view: &View, at: usize) -> Verdict {
    let mut from = at;
    let plus = view.at(at) == b'+';
    if plus {
        from += 1;
    }
    let (mut count_digits, mut end, mut i) = (0, from, from);
    while i < from + 24 {
        let b = view.at(i);
        if is(b, DIGIT) {
            count_digits += 1;
            end = i + 1;
        } else if !matches!(b, b' ' | b'-' | b'.' | b'(' | b')') || (i > end + 2) {
            break;
        }
        i += 1;
    }
    if view.open(i) {
        return Verdict::Need(0, 0);
    }
    if is(view.at(end), ALNUM | UNDERSCORE) {
        return Verdict::No;
    }
    let text = view.slice(from, end);
    let groups: Vec<usize> = text.split(|b| !is(*b, DIGIT)).map(<[u8]>::len).filter(|&n| n > 0).collect();
    let american = groups == [3, 3, 4] && !text.contains(&b' ') | text.contains(&b'-') | text.starts_with(b"(");
    let fits = if plus { (8..=15).contains(&count_digits) && is(view.at(from), DIGIT | ALPHA) } else { american };
    if fits && count(text, DIGIT) == count_digits { Hit::verdict(at, end, "phone") } else { Verdict::No }
}

/// The length of an account number by country.
const LENGTHS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NL", 18),
    (b"NO", 15),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
];

fn iban(view: &View, at: usize) -> Verdict {
    if view.open(at + 3) {
        return Verdict::Need(ALNUM, at + 4);
    }
    let country = [view.at(at), view.at(at + 1)];
    let Some(&(_, length)) = LENGTHS.iter().find(|(c, _)| **c == country) else { return Verdict::No };
    if !is(view.at(at + 2), DIGIT) || !is(view.at(at + 3), DIGIT) {
        return Verdict::No;
    }
    let (mut text, mut i) = (Vec::with_capacity(length), at);
    while text.len() < length {
        let b = view.at(i);
        if is(b, UPPER | DIGIT) {
            text.push(b);
        } else if b != b' ' || view.at(i - 1) == b' ' {
            break;
        }
        i += 1;
    }
    if view.open(i) {
        return Verdict::Need(0, 0);
    }
    if text.len() < length || is(view.at(i), ALNUM) || mod97(&text) != 1 {
        Verdict::No
    } else {
        Hit::verdict(at, i, "iban")
    }
}

/// The check of ISO 7064 over the account number with its first four characters moved to the end.
fn mod97(text: &[u8]) -> u32 {
    let (head, tail) = text.split_at_checked(4).unwrap_or_default();
    tail.iter().chain(head).fold(0, |rest, &b| match b {
        b'0'..=b'9' => (rest * 10 + u32::from(b - b'0')) % 97,
        _ => (rest * 100 + u32::from(b - b'A') + 10) % 97,
    })
}
