//! Digests: of a payload with its salt, and of the chain that runs through a log. And how they are written.

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// What makes the digest of a payload unguessable, so that an erased payload cannot be found by trying.
pub type Salt = [u8; 16];

/// Works out the salted digest of a payload.
pub fn payload_digest(salt: &Salt, data: &str) -> Digest {
    let mut hash = Sha256::new();
    hash.update(salt);
    hash.update(data.as_bytes());
    hash.finalize().into()
}

/// Works out one link of the chain: over the digest before, the sequence number, the type and the payload's digest.
pub fn chain(previous: &Digest, seq: u64, kind: &str, payload: &Digest) -> Digest {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(seq.to_be_bytes());
    hash.update((kind.len() as u64).to_be_bytes());
    hash.update(kind.as_bytes());
    hash.update(payload);
    hash.finalize().into()
}

/// Writes bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    push_hex(&mut out, bytes);
    out
}

/// Appends bytes as lower-case hexadecimal digits.
pub fn push_hex(out: &mut String, bytes: &[u8]) {
    // In pieces, not digit by digit: every event is written with some 100 of them.
    for piece in bytes.chunks(4) {
        let mut four = [0; 4];
        four.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        let digits = digits_of(nibbles_of(four)).to_be_bytes();
        let digits = digits.get(..piece.len() * 2).and_then(|digits| std::str::from_utf8(digits).ok());
        out.push_str(digits.unwrap_or_default());
    }
}

/// Reads lower-case hexadecimal digits of a known number of bytes, a multiple of four.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (eights, rest) = text.as_bytes().as_chunks::<8>();
    let mut out = [0; N];
    let (fours, odd) = out.as_chunks_mut::<4>();
    if !rest.is_empty() || !odd.is_empty() || eights.len() != fours.len() {
        return None;
    }
    // Eight digits at a time, and no way out before the end: every line that is loaded has a hundred of them.
    let mut wrong = 0;
    for (four, eight) in fours.iter_mut().zip(eights) {
        let digits = u64::from_be_bytes(*eight);
        let letters = (digits >> 6) & EACH;
        let nibbles = (digits & (EACH * 0xf)) + letters * 9;
        wrong |= (nibbles & (EACH * 0xf0)) | (digits_of(nibbles) ^ digits);
        *four = bytes_of(nibbles);
    }
    (wrong == 0).then_some(out)
}

/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

/// Spreads four bytes over eight, half a byte in each.
fn nibbles_of(bytes: [u8; 4]) -> u64 {
    let bytes = u64::from(u32::from_be_bytes(bytes));
    let pairs = (bytes | bytes << 16) & 0x0000_ffff_0000_ffff;
    let singles = (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff;
    (singles | singles << 4) & (EACH * 0xf)
}

/// The way back.
fn bytes_of(nibbles: u64) -> [u8; 4] {
    let singles = (nibbles | nibbles >> 4) & 0x00ff_00ff_00ff_00ff;
    let pairs = (singles | singles >> 8) & 0x0000_ffff_0000_ffff;
    let [_, _, _, _, bytes @ ..] = (pairs | pairs >> 16).to_be_bytes();
    bytes
}

/// Makes digits of eight numbers below 16.
fn digits_of(nibbles: u64) -> u64 {
    let letters = ((nibbles + EACH * 6) >> 4) & EACH;
    nibbles + EACH * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_round_trips_and_refuses_other_text() {
        for n in 0..=255 {
            let bytes = [n, 255 - n, n / 16, n % 16, 0, 171, 255, n];
            let text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!((hex(&bytes), unhex(&text)), (text.clone(), Some(bytes)));
            assert_eq!(hex(bytes.get(..3).unwrap()), &text[..6]);
            // Every other character, in every place.
            let odd = char::from(n);
            if !(odd.is_ascii_digit() || ('a'..='f').contains(&odd)) {
                for at in 0..8 {
                    let mut text = "00af19c0".to_owned();
                    text.replace_range(at..=at, &odd.to_string());
                    assert_eq!(unhex::<4>(&text), None, "{text:?}");
                }
            }
        }
        for bad in ["", "00ab00a", "00ab00ab0", "00ab00ab00ab00ab", "0é0ab0"] {
            assert_eq!(unhex::<4>(bad), None, "{bad}");
        }
    }
}
