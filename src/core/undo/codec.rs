//! Records as bytes: variable-length numbers, texts with their length, a checksum at the end (docs/format-files.md).

use std::hash::Hasher;
use std::rc::Rc;

use super::journal::Quick;
use crate::core::vfs::{Content, Hash, State};

/// Contents up to this size stand in the record itself.
pub(super) const INLINE: usize = 512;

/// Writes one record.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub fn number(&mut self, mut n: u64) -> &mut Self {
        while n >= 0x80 {
            self.0.push((n as u8) | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
        self
    }

    pub fn signed(&mut self, n: i64) -> &mut Self {
        self.number(((n << 1) ^ (n >> 63)) as u64)
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Writes small contents, or the name of larger ones.
    pub fn content(&mut self, content: &Content, digest_only: bool) -> &mut Self {
        let inline = if digest_only { 32 } else { INLINE };
        if content.is_whole() && content.len() <= inline {
            return self.number(0).bytes(content.bytes());
        }
        self.number(1).number(content.len() as u64);
        self.0.extend_from_slice(content.hash());
        self
    }

    /// Writes what stands at a path; `digest_only` when it will only be compared with.
    pub fn state(&mut self, state: &State, digest_only: bool) -> &mut Self {
        match state {
            State::Absent => self.number(0),
            State::File { content, mode, mtime } => {
                self.number(1).number(u64::from(*mode)).signed(*mtime).content(content, digest_only)
            }
            State::Dir { mode, mtime } => self.number(2).number(u64::from(*mode)).signed(*mtime),
            State::Link { target, mtime } => self.number(3).signed(*mtime).text(target),
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Ends the record.
    pub fn seal(&mut self) -> Vec<u8> {
        seal(std::mem::take(&mut self.0))
    }
}

/// Adds the checksum.
pub(super) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Takes the checksum off; none when it does not fit.
pub(super) fn unseal(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let at = bytes.len().checked_sub(4)?;
    let sum = u32::from_le_bytes(bytes.get(at..)?.try_into().ok()?);
    bytes.truncate(at);
    (checksum(&bytes) == sum).then_some(bytes)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = Quick::default();
    hasher.write(bytes);
    hasher.write_u64(bytes.len() as u64);
    hasher.finish() as u32
}

/// Reads one record; every call answers none at the end of what is there.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    pub fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut out = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            out |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(out);
            }
        }
        None
    }

    pub fn signed(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.take(usize::try_from(len).ok()?)
    }

    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Reads contents; `find` knows the larger ones. The answer is none when a record is cut, and the inner one when the
    /// bytes are missing.
    pub fn content(&mut self, find: &dyn Fn(&Hash, usize) -> Rc<Content>) -> Option<Rc<Content>> {
        match self.number()? {
            0 => Some(Rc::new(Content::new(self.bytes()?.to_vec()))),
            1 => {
                let len = usize::try_from(self.number()?).ok()?;
                let hash: Hash = self.take(32)?.try_into().ok()?;
                Some(find(&hash, len))
            }
            _ => None,
        }
    }

    pub fn state(&mut self, find: &dyn Fn(&Hash, usize) -> Rc<Content>) -> Option<State> {
        match self.number()? {
            0 => Some(State::Absent),
            1 => {
                let (mode, mtime) = (self.number()? as u16, self.signed()?);
                Some(State::File { content: self.content(find)?, mode, mtime })
            }
            2 => Some(State::Dir { mode: self.number()? as u16, mtime: self.signed()? }),
            3 => {
                let mtime = self.signed()?;
                Some(State::Link { target: Rc::from(self.text()?), mtime })
            }
            _ => None,
        }
    }
}

/// Returns a text as part of a key: letters, digits, `_`, `.`, `-` as they are, other bytes as `%xx`.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    if out.is_empty() { "%".to_owned() } else { out }
}

/// Undoes [`escape`].
pub(super) fn unescape(key: &str) -> Option<String> {
    if key == "%" {
        return Some(String::new());
    }
    let mut out = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(out).ok()
}

/// Returns a hash as lower-case hexadecimal digits.
pub(super) fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Undoes [`hex`].
pub(super) fn unhex(text: &str) -> Option<Hash> {
    let mut out = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (slot, at) in out.iter_mut().zip((0..64).step_by(2)) {
        *slot = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_come_back() {
        for n in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut writer = Writer::default();
            let bytes = writer.number(n).signed(n as i64).text("é/\0").seal();
            let bytes = unseal(bytes).unwrap();
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.number(), Some(n));
            assert_eq!(reader.signed(), Some(n as i64));
            assert_eq!(reader.text(), Some("é/\0"));
            assert!(reader.is_done());
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let sealed = seal(b"some record of middling length".to_vec());
        for at in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[at] ^= 0x40;
            assert_eq!(unseal(bad), None, "byte {at}");
        }
        assert_eq!(unseal(vec![1, 2]), None);
    }

    #[test]
    fn keys_are_injective() {
        for text in ["", "%", "r1", "a/b", "é", "A b\n", "%25"] {
            assert_eq!(unescape(&escape(text)).as_deref(), Some(text));
            assert!(!escape(text).contains('/'));
        }
        let hash: Hash = std::array::from_fn(|i| i as u8 * 7);
        assert_eq!(unhex(&hex(&hash)), Some(hash));
    }
}
