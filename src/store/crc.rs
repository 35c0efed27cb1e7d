//! CRC-32 (the one of zip and PNG), four bytes at a time.

/// Four tables of 256 words; worked out when they are first needed, since in the module they would cost more than their code.
type Tables = [[u32; 256]; 4];

thread_local! {
    static TABLES: Box<Tables> = Box::new(tables());
}

#[allow(clippy::indexing_slicing, reason = "every index runs over the length of its table")]
fn tables() -> Tables {
    let mut tables = [[0u32; 256]; 4];
    let mut n = 0;
    while n < 256 {
        let mut value = n as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        tables[0][n] = value;
        n += 1;
    }
    let mut n = 0;
    while n < 256 {
        let mut level = 1;
        while level < 4 {
            let before = tables[level - 1][n];
            tables[level][n] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            level += 1;
        }
        n += 1;
    }
    tables
}

fn look(table: &[u32; 256], byte: u8) -> u32 {
    table.get(usize::from(byte)).copied().unwrap_or_default()
}

/// Returns the checksum of some bytes.
pub fn crc32(bytes: &[u8]) -> u32 {
    TABLES.with(|tables| checksum(tables, bytes))
}

fn checksum([t0, t1, t2, t3]: &Tables, bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut words = bytes.chunks_exact(4);
    for word in words.by_ref() {
        let word: [u8; 4] = word.try_into().unwrap_or_default();
        let [a, b, c, d] = (crc ^ u32::from_le_bytes(word)).to_le_bytes();
        crc = look(t3, a) ^ look(t2, b) ^ look(t1, c) ^ look(t0, d);
    }
    for byte in words.remainder() {
        let [low, ..] = crc.to_le_bytes();
        crc = (crc >> 8) ^ look(t0, low ^ byte);
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn known_values() {
        // The check value of the catalogue of parametrised CRC algorithms, and two from zip files.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
    }
}
