//! Digests: of a payload with its salt, and of the chain that runs through a log. And how they are written.

use sha2::{Digest as _, Sha256};

/// A digest of 256 bits.
pub type Digest = [u8; 32];

/// What makes the digest of a payload unguessable, so that an erased payload cannot be found by trying.
pub type Salt = [u8; 16];

/// The hash function of a link of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// What links are made with.
    Blake3,
    /// What they were made with before; such logs are still verified.
    Sha256,
}

impl Hash {
    fn of(self, parts: &[&[u8]]) -> Digest {
        match self {
            Self::Sha256 => parts.iter().fold(Sha256::new(), Sha256::chain_update).finalize().into(),
            // In one go takes a third of the code that pieces take.
            Self::Blake3 => blake3::hash(&parts.concat()).into(),
        }
    }
}

/// Works out the salted digest of a payload.
pub fn payload_digest(hash: Hash, salt: &Salt, data: &str) -> Digest {
    match hash {
        Hash::Sha256 => hash.of(&[salt, data.as_bytes()]),
        // A payload may be large, and is not copied.
        Hash::Blake3 => hash.of(&[salt, blake3::hash(data.as_bytes()).as_bytes()]),
    }
}

/// Works out one link of the chain: over the digest before, the sequence number, the type and the payload's digest.
pub fn chain(hash: Hash, previous: &Digest, seq: u64, kind: &str, payload: &Digest) -> Digest {
    let len = kind.len() as u64;
    hash.of(&[previous, &seq.to_be_bytes(), &len.to_be_bytes(), kind.as_bytes(), payload])
}

/// Writes bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    push_hex(&mut out, bytes);
    out
}

/// Appends bytes as lower-case hexadecimal digits.
pub fn push_hex(out: &mut String, bytes: &[u8]) {
    // Eight digits at a time, and many of them put in one go: every event is written with some 100.
    for piece in bytes.chunks(32) {
        let mut digits = [0; 64];
        for (eight, four) in digits.as_chunks_mut::<8>().0.iter_mut().zip(piece.chunks(4)) {
            let mut bytes = [0; 4];
            bytes.iter_mut().zip(four).for_each(|(to, from)| *to = *from);
            *eight = digits_of(nibbles_of(bytes)).to_be_bytes();
        }
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

    // Worked out with other implementations of both hashes.
    #[test]
    fn digests_are_what_the_format_says() {
        let data = format!("{{\"text\":\"{}\"}}", "é".repeat(700));
        for (hash, payload, link) in [
            (
                Hash::Blake3,
                "dee5fb2c54f1b020be8974fe276a3558129fe4626c4be5ed6ad76a69dce1dffe",
                "bf4a15a80a1f3ec3c4032e04592ebe6ff8727d5702db569b61bc1a9d866f4a52",
            ),
            (
                Hash::Sha256,
                "c02661638d90c316425978fdadf5aa943f7ed7fe7254d9aa902776d5b2a45e59",
                "ad138c8fb14e40de0f2da414680adb7ed6daed538a4a34f3099ac3f132d733c7",
            ),
        ] {
            let digest = payload_digest(hash, &[7; 16], &data);
            assert_eq!(hex(&digest), payload);
            assert_eq!(hex(&chain(hash, &[1; 32], 300, "user/message", &digest)), link);
        }
    }

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
