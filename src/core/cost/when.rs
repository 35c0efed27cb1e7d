//! Times as price tables and usage records write them: a UTC day, or a second with its offset.

use crate::core::time::Millis;

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// Returns the days since 1970-01-01 of a date of the proleptic Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that a leap day is the last of its year.
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// What is left to read of a time.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// Takes one of some characters from the front, if one stands there.
    #[inline(never)]
    fn take(&mut self, any: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first().filter(|(first, _)| any.contains(first))?;
        self.0 = rest;
        Some(first)
    }

    /// Takes a number of exactly `width` digits, in a range.
    #[inline(never)]
    fn number(&mut self, width: usize, least: i64, most: i64) -> Option<i64> {
        let mut out = 0;
        for _ in 0..width {
            let (digit, rest) = self.0.split_first().filter(|(digit, _)| digit.is_ascii_digit())?;
            out = out * 10 + i64::from(digit - b'0');
            self.0 = rest;
        }
        (least <= out && out <= most).then_some(out)
    }

    /// Takes `HH:MM`, as minutes of the day.
    #[inline(never)]
    fn minutes(&mut self) -> Option<i64> {
        let hours = self.number(2, 0, 23)?;
        self.take(b":")?;
        Some(hours * 60 + self.number(2, 0, 59)?)
    }

    /// Takes digits behind a point, as milliseconds; what is finer is cut off.
    fn fraction(&mut self) -> Option<i64> {
        let (mut out, mut unit) = (self.number(1, 0, 9)? * 100, 10);
        while let Some(digit) = self.number(1, 0, 9) {
            out += digit * unit;
            unit /= 10;
        }
        Some(out)
    }
}

/// Parses `HH:MM` into minutes of the day.
pub fn minutes(text: &str) -> Option<i64> {
    let mut rest = Rest(text.as_bytes());
    rest.minutes().filter(|_| rest.0.is_empty())
}

/// Parses a day (its 00:00:00 UTC) or an ISO 8601 time; one without an offset is UTC.
#[inline(never)]
pub fn parse(text: &str) -> Option<Millis> {
    let mut rest = Rest(text.as_bytes());
    let year = rest.number(4, 0, 9999)?;
    rest.take(b"-")?;
    let month = rest.number(2, 1, 12)?;
    rest.take(b"-")?;
    let day = rest.number(2, 1, days_in(year, month))?;
    let mut out = days(year, month, day) * DAY_MS;
    if rest.0.is_empty() {
        return Some(out);
    }
    rest.take(b"Tt ")?;
    out += rest.minutes()? * 60_000;
    if rest.take(b":").is_some() {
        out += rest.number(2, 0, 60)? * 1_000;
    }
    if rest.take(b".").is_some() {
        out += rest.fraction()?;
    }
    match rest.take(b"Zz+-") {
        Some(b'+') => out -= rest.minutes()? * 60_000,
        Some(b'-') => out += rest.minutes()? * 60_000,
        _ => {}
    }
    rest.0.is_empty().then_some(out)
}

/// Returns the minute of the UTC day and the ISO weekday (1 is Monday).
pub fn of_day(at: Millis) -> (i64, i64) {
    let minute = at.rem_euclid(DAY_MS) / 60_000;
    // 1970-01-01 was a Thursday.
    (minute, (at.div_euclid(DAY_MS) + 3).rem_euclid(7) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_read() {
        assert_eq!(parse("1970-01-01"), Some(0));
        assert_eq!(parse("2026-11-20T12:30:00Z"), Some(1_795_177_800_000));
        assert_eq!(parse("2026-11-20T20:30:00+08:00"), parse("2026-11-20T12:30:00Z"));
        assert_eq!(parse("2026-11-20T12:30:00.1239Z"), Some(1_795_177_800_123));
        assert_eq!(parse("2000-02-29T00:00:00Z"), Some(951_782_400_000));
        assert_eq!(parse("1969-12-31T23:59:59.5Z"), Some(-500));
        for bad in [
            "",
            "2026-13-01",
            "2026-02-30",
            "2026-11-20T25:00:00Z",
            "2026-11-20Tx",
            "20261120",
            "2026-11-20T12:30:00+8",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn weekdays_are_iso() {
        assert_eq!(of_day(0), (0, 4));
        assert_eq!(of_day(parse("2026-11-18T01:00:00Z").unwrap()), (60, 3));
        assert_eq!(of_day(parse("2026-11-22T23:59:59Z").unwrap()), (1_439, 7));
    }
}
