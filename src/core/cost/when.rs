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

/// Takes a number of exactly `width` digits, in a range, from the front.
fn number(text: &str, width: usize, range: std::ops::RangeInclusive<i64>) -> Option<(i64, &str)> {
    let digits = text.get(..width)?;
    let value = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
    range.contains(&value).then(|| (value, text.get(width..).unwrap_or_default()))
}

fn date(text: &str) -> Option<(Millis, &str)> {
    let (year, rest) = number(text, 4, 0..=9999)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2, 1..=12)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2, 1..=days_in(year, month))?;
    Some((days(year, month, day) * DAY_MS, rest))
}

/// Parses `HH:MM` into minutes of the day.
pub fn minutes(text: &str) -> Option<(i64, &str)> {
    let (hours, rest) = number(text, 2, 0..=23)?;
    let (minutes, rest) = number(rest.strip_prefix(':')?, 2, 0..=59)?;
    Some((hours * 60 + minutes, rest))
}

/// Parses a day (its 00:00:00 UTC) or an ISO 8601 time; one without an offset is UTC.
pub fn parse(text: &str) -> Option<Millis> {
    let (day, rest) = date(text)?;
    if rest.is_empty() {
        return Some(day);
    }
    let (minute, rest) = minutes(rest.strip_prefix(['T', 't', ' '])?)?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => number(rest, 2, 0..=60)?,
        None => (0, rest),
    };
    let (milli, rest) = fraction(rest)?;
    Some(day + minute * 60_000 + second * 1_000 + milli - offset(rest)?)
}

fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let width = rest.bytes().take_while(u8::is_ascii_digit).count();
    let digits = rest.get(..width).filter(|d| !d.is_empty())?;
    let milli = digits.bytes().chain(*b"00").take(3).fold(0, |n, b| n * 10 + i64::from(b - b'0'));
    Some((milli, rest.get(width..).unwrap_or_default()))
}

fn offset(text: &str) -> Option<i64> {
    match text.as_bytes() {
        [] | [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), ..] => {
            let (minute, rest) = minutes(text.get(1..)?)?;
            rest.is_empty().then_some(if *sign == b'-' { -minute } else { minute } * 60_000)
        }
        _ => None,
    }
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
