//! Base64 without padding, as small as it gets: the store's text form of bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn digit(value: u32) -> char {
    DIGITS.get((value & 63) as usize).map_or('A', |d| char::from(*d))
}

/// Writes bytes as base64 without padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0, |word, b| word << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        out.extend((0..=group.len()).map(|at| digit(word >> (18 - 6 * at))));
    }
    out
}

/// Reads base64 without padding; nothing when the text is not what `encode` writes.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut word = 0;
        for byte in group {
            word = word << 6 | u32::try_from(DIGITS.iter().position(|d| d == byte)?).ok()?;
        }
        let unused = 6 * (4 - group.len());
        let [_, a, b, c] = (word << unused).to_be_bytes();
        let bytes = match (group.len(), b, c) {
            (4, ..) => 3,
            (3, _, 0) => 2,
            (2, 0, 0) => 1,
            _ => return None,
        };
        out.extend([a, b, c].iter().take(bytes));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_texts() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")] {
            assert_eq!((encode(bytes.as_bytes()).as_str(), decode(text)), (text, Some(bytes.as_bytes().to_vec())));
        }
        for bad in ["Z", "Zh", "Zm9", "Zg==", "Zm9v!", "Zm 9v", "é"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
