//! Money without floats: decimals as written, half-even rounding, exact sums of picodollars, text and nearest doubles.

/// Decimal places of a picodollar in dollars.
pub const PICO_PLACES: usize = 12;
/// Decimal places of a picodollar in cents.
pub const CENT_PLACES: usize = 10;
/// Attodollars in a picodollar.
pub const ATTO_PER_PICO: u128 = 1_000_000;
/// Counts at or above 2^53 are held at 2^53: JavaScript could not tell them apart.
pub const MAX_COUNT: u64 = 1 << 53;

/// A decimal as written: `mantissa * 10^exponent`, and whether digits were cut off behind it.
struct Decimal {
    negative: bool,
    mantissa: u128,
    exponent: i64,
    more: bool,
}

/// Digits that are kept; what is behind them only breaks ties.
const KEPT_DIGITS: u32 = 36;

/// Parses the grammar of a JSON number.
#[inline(never)]
fn parse(text: &str) -> Option<Decimal> {
    let bytes = text.as_bytes();
    let negative = bytes.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut out = Decimal { negative, mantissa: 0, exponent: 0, more: false };
    let (mut at, mut places, mut kept) = (start, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' if kept < KEPT_DIGITS => {
                out.mantissa = out.mantissa * 10 + u128::from(byte - b'0');
                out.exponent -= places;
                kept += u32::from(out.mantissa > 0);
            }
            b'0'..=b'9' => {
                out.more |= byte != b'0';
                out.exponent += 1 - places;
            }
            b'.' if places == 0 && at > start => places = 1,
            b'e' | b'E' => {
                out.exponent += exponent_of(bytes.get(at + 1..)?)?;
                break;
            }
            _ => return None,
        }
        at += 1;
    }
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let has_zero_in_front = bytes.get(start) == Some(&b'0') && is_digit(start + 1);
    (at > start && is_digit(at - 1) && !has_zero_in_front).then_some(out)
}

/// Parses an exponent; absurd ones are held where they still mean "nothing" and "far too much".
fn exponent_of(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let mut size = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        size = (size * 10 + i64::from(byte - b'0')).min(999_999);
    }
    (!digits.is_empty()).then_some(sign * size)
}

/// A quotient, and what is known of the rest.
struct Quotient {
    whole: u128,
    /// Half to even is the next one.
    up: bool,
    exact: bool,
}

impl Quotient {
    fn rounded(&self) -> u128 {
        self.whole + u128::from(self.up)
    }
}

impl Decimal {
    /// Returns the value times `10^places`; `None` when it is too large.
    #[inline(never)]
    fn scaled(&self, places: u32) -> Option<Quotient> {
        let shift = self.exponent + i64::from(places);
        let factor = u32::try_from(shift.unsigned_abs()).ok().and_then(|s| 10_u128.checked_pow(s));
        if shift >= 0 && self.mantissa > 0 {
            let whole = product(self.mantissa, factor?)?;
            return Some(Quotient { whole, up: false, exact: !self.more });
        }
        match factor {
            Some(divisor) if shift < 0 => Some(divided(self.mantissa, divisor, self.more)),
            // Nothing, or far less than half.
            _ => Some(Quotient { whole: 0, up: false, exact: self.mantissa == 0 }),
        }
    }
}

/// Multiplies; `None` when it is too large.
#[inline(never)]
pub(super) fn product(a: u128, b: u128) -> Option<u128> {
    a.checked_mul(b).filter(|&v| v <= i128::MAX as u128)
}

/// Divides and rounds half to even; `more` says that a little is missing from `value`.
#[inline(never)]
fn divided(value: u128, divisor: u128, more: bool) -> Quotient {
    // Division of 128 bits is many times slower, and nearly every amount fits in 64.
    let (whole, rest) = match (u64::try_from(value), u64::try_from(divisor)) {
        (Ok(value), Ok(divisor)) => (u128::from(value / divisor), u128::from(value % divisor)),
        _ => (value / divisor, value % divisor),
    };
    // `divisor - rest` cannot overflow where `2 * rest` could.
    let up = match rest.cmp(&(divisor - rest)) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => more || whole % 2 == 1,
        std::cmp::Ordering::Less => false,
    };
    Quotient { whole, up, exact: rest == 0 && !more }
}

/// Rounds parts of a picodollar to picodollars, half to even; `None` when that is no i128.
pub fn pico_of(parts: u128, per_pico: u128) -> Option<i128> {
    i128::try_from(divided(parts, per_pico, false).rounded()).ok()
}

/// Reads a count of tokens or calls from the text of a JSON number: whole part, never negative, held at [`MAX_COUNT`].
pub fn count_of(number: &str) -> u64 {
    // 15 digits cannot reach 2^53.
    if number.len() <= 15 && number.bytes().all(|b| b.is_ascii_digit()) {
        return number.bytes().fold(0, |n, b| n * 10 + u64::from(b - b'0'));
    }
    match parse(number) {
        Some(decimal) if !decimal.negative => {
            decimal.scaled(0).map_or(MAX_COUNT, |count| u64::try_from(count.whole).unwrap_or(u64::MAX).min(MAX_COUNT))
        }
        _ => 0,
    }
}

/// An amount of money as it comes from outside, read into whole units of `10^-places`; `None` when it is none, negative
/// or too large.
#[inline(never)]
fn amount(text: &str, places: usize) -> Option<i128> {
    let decimal = parse(text)?;
    if decimal.negative && decimal.mantissa > 0 {
        return None;
    }
    // One in a million of what fits, so that sums of amounts do not end at once.
    let amount = i128::try_from(decimal.scaled(places as u32)?.rounded()).ok()?;
    (amount <= i128::MAX / 1_000_000).then_some(amount)
}

/// Reads dollars, written as a decimal, into picodollars (half to even).
pub fn pico_of_usd(text: &str) -> Option<i128> {
    amount(text, PICO_PLACES)
}

/// Reads whole picodollars.
pub(super) fn pico_of_text(text: &str) -> Option<i128> {
    amount(text, 0)
}

/// Reads cents, written as a decimal, into picodollars (half to even).
pub fn pico_of_cents(text: &str) -> Option<i128> {
    amount(text, CENT_PLACES)
}

/// Reads dollars from a JSON number into picodollars.
pub fn pico_of_usd_number(number: &str) -> Option<i128> {
    amount_of_number(number, PICO_PLACES)
}

/// Reads xAI's ticks (1e-10 dollars) from a JSON number into picodollars.
pub fn pico_of_ticks(number: &str) -> Option<i128> {
    amount_of_number(number, 2)
}

/// A JSON number is the shortest decimal that reads as the same double. Up to 15 digits that is the number as it is written.
#[inline(never)]
fn amount_of_number(number: &str, places: usize) -> Option<i128> {
    let mantissa = number.bytes().take_while(|byte| !matches!(byte, b'e' | b'E'));
    if mantissa.filter(u8::is_ascii_digit).count() <= 15 {
        return amount(number, places);
    }
    let double = crate::core::double::parse(number).filter(|double| double.is_finite())?;
    amount(&crate::core::double::print(double), places)
}

/// Reads a rate, factor or fee that must be exact: whole units of `10^-places`, at most `10^(places + 9)`.
#[inline(never)]
pub fn exact(text: &str, places: u32) -> Result<u128, &'static str> {
    let decimal = parse(text).ok_or("is not a decimal")?;
    if decimal.negative {
        return Err("is negative");
    }
    let most = 10_u128.pow(places + 9);
    match decimal.scaled(places) {
        Some(scaled) if !scaled.exact => Err("has too many decimal places"),
        Some(scaled) if scaled.whole <= most => Ok(scaled.whole),
        _ => Err("is too large"),
    }
}

/// The digits of a whole number, written once and used for several units.
pub struct Digits {
    bytes: [u8; 40],
    start: usize,
    negative: bool,
}

impl Digits {
    /// Writes out a number.
    pub fn of(value: i128) -> Digits {
        let mut out = Digits { bytes: [b'0'; 40], start: 40, negative: value < 0 };
        let mut rest = value.unsigned_abs();
        // Division of 128 bits is slow: 19 digits at a time go through 64.
        while u64::try_from(rest).is_err() {
            let low = (rest % 10_000_000_000_000_000_000) as u64;
            rest /= 10_000_000_000_000_000_000;
            let end = out.start - 19;
            out.push(low);
            out.start = end;
        }
        out.push(rest as u64);
        out
    }

    /// Puts the digits of a number before those that stand, at least one.
    fn push(&mut self, mut rest: u64) {
        loop {
            let Some(at) = self.start.checked_sub(1) else { return };
            if let Some(slot) = self.bytes.get_mut(at) {
                *slot = b'0' + (rest % 10) as u8;
            }
            self.start = at;
            rest /= 10;
            if rest == 0 {
                return;
            }
        }
    }

    fn text(&self, from: usize, to: usize) -> &str {
        self.bytes.get(from..to).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or_default()
    }

    /// Appends the number times `10^-places`, without exponent or trailing zeros.
    pub fn write(&self, out: &mut String, places: usize) {
        if self.negative {
            out.push('-');
        }
        let point = 40 - places;
        if self.start < point {
            out.push_str(self.text(self.start, point));
        } else {
            out.push('0');
        }
        // The bytes in front of the digits are zeros, so a fraction needs no filling up.
        let zeros = self.bytes.iter().rev().take_while(|digit| **digit == b'0').count();
        if zeros < places {
            out.push('.');
            out.push_str(self.text(point, 40 - zeros));
        }
    }
}

/// Writes `value * 10^-places` without exponent or trailing zeros.
pub fn write_scaled(out: &mut String, value: i128, places: usize) {
    Digits::of(value).write(out, places);
}

/// Writes a count.
pub fn write_count(out: &mut String, value: u64) {
    write_scaled(out, i128::from(value), 0);
}

/// Returns picodollars as a decimal of other units.
#[inline(never)]
pub fn scaled_text(pico: i128, places: usize) -> String {
    let mut out = String::new();
    write_scaled(&mut out, pico, places);
    out
}

/// Writes picodollars as dollars.
pub fn usd_text(pico: i128) -> String {
    scaled_text(pico, PICO_PLACES)
}

/// Writes picodollars as cents.
pub fn cents_text(pico: i128) -> String {
    scaled_text(pico, CENT_PLACES)
}

/// Returns the double that is nearest to the exact cents.
pub fn cents_nearest(pico: i128) -> f64 {
    // Both sides of this division are exact doubles, so IEEE 754 rounds the true quotient, once.
    if pico.unsigned_abs() <= 1 << 53 {
        return pico as f64 / 1e10;
    }
    crate::core::double::parse(&cents_text(pico)).unwrap_or(f64::MAX)
}

/// Returns the double that is nearest to the exact dollars.
pub fn usd_nearest(pico: i128) -> f64 {
    if pico.unsigned_abs() <= 1 << 53 {
        return pico as f64 / 1e12;
    }
    crate::core::double::parse(&usd_text(pico)).unwrap_or(f64::MAX)
}

/// Rounds picodollars to nanodollars, half to even: for display next to systems that count in those.
pub fn nano_of_pico(pico: i128) -> i128 {
    let nano = i128::try_from(divided(pico.unsigned_abs(), 1_000, false).rounded()).unwrap_or(i128::MAX);
    if pico < 0 { -nano } else { nano }
}
