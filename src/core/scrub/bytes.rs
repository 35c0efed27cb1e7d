//! Classes of bytes as bit masks: one table look-up answers "is this byte one of those".

/// A union of byte classes.
pub(super) type Mask = u32;

pub(super) const DIGIT: Mask = 1;
pub(super) const UPPER: Mask = 1 << 1;
pub(super) const LOWER: Mask = 1 << 2;
/// `a` to `f`.
const LOWER_AF: Mask = 1 << 3;
/// `A` to `F`.
const UPPER_AF: Mask = 1 << 4;
pub(super) const UNDERSCORE: Mask = 1 << 5;
pub(super) const DASH: Mask = 1 << 6;
/// `+` and `/`.
pub(super) const PLUS: Mask = PLUS_SLASH;
const PLUS_SLASH: Mask = 1 << 7;
pub(super) const DOT: Mask = 1 << 8;
pub(super) const TILDE: Mask = 1 << 9;
pub(super) const EQUALS: Mask = 1 << 10;
/// Space, tab, line ends.
pub(super) const SPACE: Mask = 1 << 11;
pub(super) const PERCENT: Mask = 1 << 12;
/// What can stand in a value without quotes: all but space, quotes, brackets of markup, backslash and `` ` ``.
pub(super) const BARE: Mask = 1 << 13;
/// All but line ends, quotes and backslashes.
pub(super) const LINE: Mask = 1 << 14;
/// The user name and password of a URL: all but space, `/ ? #`, quotes, brackets of markup, backslash.
pub(super) const USERINFO: Mask = 1 << 15;
/// What lies between the lines of a private key in some quoting: space, `\n` in escapes, quotes, `+ > | # * ,`.
pub(super) const PEM_GLUE: Mask = 1 << 16;
/// `2` to `7`.
const DIGIT_27: Mask = 1 << 17;
/// What can be neither the end of a quoted value nor one of its escapes.
pub(super) const QUOTED: Mask = 1 << 18;
/// `@`.
pub(super) const AT: Mask = 1 << 20;
/// A byte of a character outside ASCII.
pub(super) const HIGH: Mask = 1 << 19;

pub(super) const ALPHA: Mask = UPPER | LOWER;
pub(super) const ALNUM: Mask = ALPHA | DIGIT;
pub(super) const HEX: Mask = DIGIT | LOWER_AF;
pub(super) const ANY_HEX: Mask = DIGIT | LOWER_AF | UPPER_AF;
pub(super) const BASE32: Mask = UPPER | DIGIT_27;
/// Base64 for URLs, also "word characters and dash".
pub(super) const URL64: Mask = ALNUM | UNDERSCORE | DASH;
pub(super) const BASE64: Mask = ALNUM | PLUS_SLASH;
pub(super) const ANY64: Mask = URL64 | PLUS_SLASH;
/// The characters of a bearer token (RFC 6750).
pub(super) const TOKEN68: Mask = ANY64 | DOT | TILDE | EQUALS;
/// The characters of a key's name.
pub(super) const NAME: Mask = URL64 | DOT;

const TABLE: [Mask; 256] = table();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, which would refuse an index out of bounds")]
const fn table() -> [Mask; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = classes(at as u8);
        at += 1;
    }
    table
}

const fn classes(b: u8) -> Mask {
    let mut mask = match b {
        b'0'..=b'9' => DIGIT,
        b'A'..=b'Z' => UPPER,
        b'a'..=b'z' => LOWER,
        b'_' => UNDERSCORE,
        b'-' => DASH,
        b'+' | b'/' => PLUS_SLASH,
        b'.' => DOT,
        b'~' => TILDE,
        b'=' => EQUALS,
        b' ' | b'\t' | b'\n' | b'\r' => SPACE,
        b'%' => PERCENT,
        b'@' => AT,
        0x80.. => HIGH,
        _ => 0,
    };
    if matches!(b, b'2'..=b'7') {
        mask |= DIGIT_27;
    }
    if matches!(b, b'a'..=b'f') {
        mask |= LOWER_AF;
    }
    if matches!(b, b'A'..=b'F') {
        mask |= UPPER_AF;
    }
    if b > b' ' && !matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | 0x7f) {
        mask |= BARE;
    }
    if (b >= b' ' || b == b'\t') && !matches!(b, b'"' | b'\'' | b'\\') {
        mask |= LINE;
    }
    if b > b' ' && !matches!(b, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\') {
        mask |= USERINFO;
    }
    if matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b'\\' | b'"' | b'\'' | b'+' | b'>' | b'|' | b'#' | b'*' | b',') {
        mask |= PEM_GLUE;
    }
    if !matches!(b, b'"' | b'\'' | b'`' | b'\\' | b'\n' | b'\r' | b'<') {
        mask |= QUOTED;
    }
    mask
}

/// Says whether a byte is of one of the classes.
#[inline(always)]
pub(super) fn is(byte: u8, mask: Mask) -> bool {
    TABLE.get(usize::from(byte)).copied().unwrap_or(0) & mask != 0
}

/// Counts the bytes of one of the classes.
pub(super) fn count(bytes: &[u8], mask: Mask) -> usize {
    bytes.iter().filter(|&&b| is(b, mask)).count()
}

/// The classes of all the bytes together.
pub(super) fn all_classes(bytes: &[u8]) -> Mask {
    bytes.iter().fold(0, |mask, &b| mask | TABLE.get(usize::from(b)).copied().unwrap_or(0))
}

/// A set of bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Set {
    low: u64,
    high: u64,
    beyond: [u64; 2],
}

impl Set {
    /// Adds bytes. One word for every 64 of them, chosen without a branch.
    pub(super) fn with(mut self, bytes: &[u8]) -> Set {
        for &b in bytes {
            let bit = 1u64 << (b & 63);
            let is_high = 0u64.wrapping_sub(u64::from(b >> 6 & 1));
            if b < 0x80 {
                self.low |= bit & !is_high;
                self.high |= bit & is_high;
            } else {
                self.beyond = [self.beyond[0] | bit & !is_high, self.beyond[1] | bit & is_high];
            }
        }
        self
    }

    /// How many different ones there are.
    pub(super) fn len(&self) -> u32 {
        [self.low, self.high, self.beyond[0], self.beyond[1]].iter().map(|set| set.count_ones()).sum()
    }
}

/// Counts how many different bytes there are.
pub(super) fn distinct(bytes: &[u8]) -> u32 {
    Set::default().with(bytes).len()
}

/// Finds a word in lower case, in capitals or with one capital; `needle` is in lower case. In other mixes of case it is chance.
pub(super) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    let tail = |window: &[u8], class: Mask| window.iter().skip(1).any(|&b| is(b, class));
    let one_case = |window: &[u8]| !tail(window, UPPER) || !tail(window, LOWER);
    bytes.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle) && one_case(window))
}

/// The value of a character of base64, of either alphabet.
pub(super) fn base64_value(b: u8) -> Option<u8> {
    match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// Decodes base64 of either alphabet up to `max` bytes; stops at the first character that is not of it.
pub(super) fn decode64(text: &[u8], max: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut bits, mut held) = (0u32, 0u32);
    for value in text.iter().map_while(|&b| base64_value(b)) {
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            if out.len() >= max {
                break;
            }
        }
    }
    out
}
