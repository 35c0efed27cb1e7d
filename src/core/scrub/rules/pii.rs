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

/// The length of an account number by country, two letters and two digits each.
const LENGTHS: &[u8] = b"AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28\
    EE20EG29ES24FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26\
    IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21MC27MD24ME22MK19MR27MT31MU30NL18\
    NO15PK24PL28PS29PT25QA29RO24RS22SA24SE24SI19SK24SM27TL23TN24TR26UA29VA22\
    VG24XK20";

fn iban(view: &View, at: usize) -> Verdict {
    if view.open(at + 3) {
        return Verdict::Need(ALNUM, at + 4);
    }
    let country = [view.at(at), view.at(at + 1)];
    let row = LENGTHS.chunks_exact(4).find(|row| row.starts_with(&country));
    let Some(&[_, _, tens, ones]) = row else { return Verdict::No };
    let length = usize::from(tens - b'0') * 10 + usize::from(ones - b'0');
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
