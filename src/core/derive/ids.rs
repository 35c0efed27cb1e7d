//! Ids of calls: legal at the target, distinct in one request, the same whenever the same log is derived again.

use std::collections::HashSet;

use crate::core::error::{Error, Kind, Result};

/// Which ids a target takes: a chain of character sets with counts, such as `^[A-Za-z0-9]{9}$`.
///
/// It has to be made, not only matched; so it is a regular expression without groups and alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    units: Vec<Unit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    /// One bit per ASCII character.
    set: u128,
    min: usize,
    max: usize,
}

/// Every ASCII character that prints, without the space.
const PRINTABLE: u128 = (!0u128 >> 1) & !((1u128 << 33) - 1);

/// The longest id made where a pattern sets no end.
const OPEN_END: usize = 64;

/// The fewest distinct ids a pattern must allow.
const LEAST_CAPACITY: f64 = 1e6;

fn refused(what: &str) -> Error {
    Error::new(Kind::InvalidArgument, format!("options.toolCallId.pattern: {what}")).with("path", "toolCallId.pattern")
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Pattern> {
        let inner = text.strip_prefix('^').unwrap_or(text);
        let inner = inner.strip_suffix('$').unwrap_or(inner);
        let mut chars = inner.chars().peekable();
        let mut units = Vec::new();
        while let Some(c) = chars.next() {
            let set = match c {
                '[' => class(&mut chars)?,
                '\\' => escaped(chars.next().ok_or_else(|| refused("ends in a backslash"))?)?,
                '.' => PRINTABLE,
                '(' | ')' | '|' | '*' | '+' | '?' | '{' | '}' | '^' | '$' => {
                    return Err(refused("only characters, sets and counts are understood"));
                }
                c => bit(c)?,
            };
            let (min, max) = counts(&mut chars)?;
            units.push(Unit { set, min, max });
        }
        let pattern = Pattern { units };
        if pattern.capacity() < LEAST_CAPACITY {
            return Err(refused("allows too few distinct ids"));
        }
        Ok(pattern)
    }

    fn capacity(&self) -> f64 {
        self.lengths().iter().zip(&self.units).map(|(n, u)| f64::from(u.set.count_ones()).powi(*n as i32)).product()
    }

    /// Says whether an id is legal.
    pub fn fits(&self, id: &str) -> bool {
        if !id.is_ascii() {
            return false;
        }
        let bytes = id.as_bytes();
        // Which lengths of the id the units so far can take up.
        let mut ends = vec![false; bytes.len() + 1];
        if let Some(first) = ends.first_mut() {
            *first = true;
        }
        for unit in &self.units {
            let mut next = vec![false; bytes.len() + 1];
            for start in (0..ends.len()).filter(|i| ends.get(*i) == Some(&true)) {
                let rest = bytes.get(start..).unwrap_or_default();
                let run = rest.iter().take(unit.max).take_while(|b| unit.set >> **b & 1 == 1).count();
                for slot in (unit.min..=run).filter_map(|n| start.checked_add(n)) {
                    if let Some(end) = next.get_mut(slot) {
                        *end = true;
                    }
                }
            }
            ends = next;
        }
        ends.last() == Some(&true)
    }

    /// How often each unit is repeated in an id that is made: enough to be distinct, no more than 24 in all.
    fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> = self.units.iter().map(|u| u.min).collect();
        for (length, unit) in lengths.iter_mut().zip(&self.units).rev() {
            if unit.max > unit.min && unit.set.count_ones() > 1 {
                *length = unit.max.min((*length).max(16));
            }
        }
        lengths
    }

    /// Makes the id that a number stands for.
    fn make(&self, mut state: u64) -> String {
        let mut id = String::new();
        for (length, unit) in self.lengths().into_iter().zip(&self.units) {
            let letters: Vec<char> = unit.letters();
            for _ in 0..length {
                state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
                let at = (state % letters.len().max(1) as u64) as usize;
                id.extend(letters.get(at));
            }
        }
        id
    }
}

impl Unit {
    /// The characters ids are made of: letters and digits where the set has any.
    fn letters(&self) -> Vec<char> {
        let all = || (0u8..128).filter(|b| self.set >> *b & 1 == 1);
        let plain: Vec<char> = all().filter(u8::is_ascii_alphanumeric).map(char::from).collect();
        if plain.is_empty() { all().map(char::from).collect() } else { plain }
    }
}

fn bit(c: char) -> Result<u128> {
    if c.is_ascii_graphic() { Ok(1 << c as u32) } else { Err(refused("ids are printable ASCII")) }
}

fn range(from: char, to: char) -> Result<u128> {
    bit(from)?;
    bit(to)?;
    Ok((from..=to).fold(0, |set, c| set | 1 << c as u32))
}

fn escaped(c: char) -> Result<u128> {
    Ok(match c {
        'd' => range('0', '9')?,
        'w' => range('0', '9')? | range('a', 'z')? | range('A', 'Z')? | bit('_')?,
        c if c.is_ascii_alphanumeric() => return Err(refused("unknown escape")),
        c => bit(c)?,
    })
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn class(chars: &mut Chars<'_>) -> Result<u128> {
    let negated = chars.next_if_eq(&'^').is_some();
    let mut set = 0;
    loop {
        let c = chars.next().ok_or_else(|| refused("a set does not end"))?;
        match c {
            ']' => break,
            '\\' => set |= escaped(chars.next().ok_or_else(|| refused("ends in a backslash"))?)?,
            from => {
                let mut ahead = chars.clone();
                let to = ahead.next_if_eq(&'-').and_then(|_| ahead.next()).filter(|to| *to != ']');
                match to {
                    Some(to) => {
                        *chars = ahead;
                        set |= range(from, to)?;
                    }
                    None => set |= bit(from)?,
                }
            }
        }
    }
    let set = if negated { PRINTABLE & !set } else { set };
    if set == 0 { Err(refused("a set is empty")) } else { Ok(set) }
}

fn counts(chars: &mut Chars<'_>) -> Result<(usize, usize)> {
    Ok(match chars.peek() {
        Some('*') => (0, OPEN_END),
        Some('+') => (1, OPEN_END),
        Some('?') => (0, 1),
        Some('{') => {
            chars.next();
            let text: String = chars.by_ref().take_while(|c| *c != '}').collect();
            let number =
                |t: &str| t.parse::<usize>().ok().filter(|n| *n <= 1_000).ok_or_else(|| refused("a count is odd"));
            return Ok(match text.split_once(',') {
                None => (number(&text)?, number(&text)?),
                Some((min, "")) => (number(min)?, number(min)?.max(OPEN_END)),
                Some((min, max)) => (number(min)?, number(max)?.max(number(min)?)),
            });
        }
        _ => return Ok((1, 1)),
    })
    .inspect(|_| {
        chars.next();
    })
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Digests texts and numbers into one number, the same everywhere and for ever.
fn digest(text: &str, numbers: [u64; 2]) -> u64 {
    let bytes = text.bytes().chain([0]).chain(numbers.into_iter().flat_map(u64::to_le_bytes));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The ids of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdMap {
    used: HashSet<String>,
}

impl IdMap {
    /// Returns the id a call goes by: its own if that is legal and free, else one made from it and from its place.
    pub fn assign(&mut self, pattern: &Pattern, id: &str, place: [u64; 2]) -> String {
        let own = if pattern.fits(id) { Some(id.to_owned()) } else { tidy(id).filter(|t| pattern.fits(t)) };
        if let Some(own) = own
            && self.used.insert(own.clone())
        {
            return own;
        }
        let mut state = digest(id, place);
        // A pattern has at least a million ids to give, so a free one is found at once.
        for _ in 0..100_000 {
            let made = pattern.make(state);
            if self.used.insert(made.clone()) {
                return made;
            }
            state = mix(state ^ 0x5555);
        }
        pattern.make(state)
    }
}

/// The id with everything but letters, digits, `_` and `-` replaced, so that it can still be recognised.
fn tidy(id: &str) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    (!id.is_empty()).then(|| id.chars().map(plain).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    #[test]
    fn patterns_match_and_make() {
        for (text, good, bad) in [
            ("^[A-Za-z0-9]{9}$", vec!["abcdefgh9"], vec!["abc", "abcdefgh_", "abcdefgh90", ""]),
            ("^[a-zA-Z0-9_-]{1,64}$", vec!["a", "toolu_01-x"], vec!["", "a:b", "é", "a b"]),
            (r"^call_\w+$", vec!["call_1"], vec!["call_", "cal_1", "xcall_1"]),
            (r"^[^:]{2,}\d?$", vec!["ab", "ab1"], vec!["a:b"]),
            ("^a*[a-c]b{8}[0-9]{6}$", vec!["aaabbbbbbbb123456", "abbbbbbbb123456"], vec!["abbb123456"]),
            ("^[!-~]{1,40}$", vec!["edit:22"], vec!["a b"]),
        ] {
            let pattern = pattern(text);
            for good in good {
                assert!(pattern.fits(good), "{text} {good}");
            }
            for bad in bad {
                assert!(!pattern.fits(bad), "{text} {bad}");
            }
            for state in 0..200 {
                assert!(pattern.fits(&pattern.make(state)), "{text} {}", pattern.make(state));
            }
        }
        for bad in
            ["", "a", "[0-9]{3}", "(a|b){20}", "[a-z", "a\\", "[é]{9}", "[a-z]{9999}", "[a-z]{x}", "+", "[^!-~]{9}"]
        {
            assert_eq!(Pattern::parse(bad).unwrap_err().code(), "invalid_argument", "{bad}");
        }
    }

    #[test]
    fn ids_are_distinct_legal_and_the_same_again() {
        let pattern = pattern("^[a-zA-Z0-9_-]{1,64}$");
        let run = || {
            let mut map = IdMap::default();
            let ids = ["edit:22", "edit:22", "edit.22", "edit_22", "", "", "ok", "ok"];
            ids.iter().enumerate().map(|(i, id)| map.assign(&pattern, id, [9, i as u64])).collect::<Vec<_>>()
        };
        let ids = run();
        assert_eq!(ids, run());
        assert_eq!((ids[0].as_str(), ids[6].as_str()), ("edit_22", "ok"));
        let distinct: HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
        assert!(ids.iter().all(|id| pattern.fits(id)));
    }
}
