//! The bytes of the files: header, records, and what a record holds (`docs/format.md`).

use crate::core::error::{Error, Kind, Result};
use crate::store::Batch;
use crate::store::crc::crc32;

pub(super) const MAGIC: [u8; 7] = *b"slkvlog";
pub(super) const VERSION: u8 = 1;
/// Magic, version, generation, checksum, four zeros.
pub(super) const HEADER: usize = 24;
/// Stands before every record, so that the next whole one is found behind damage.
pub(super) const MARK: [u8; 4] = *b"\x00\xffKV";
/// Mark, length, checksum.
pub(super) const RECORD_HEAD: usize = 12;
/// No batch is larger; a length above is damage.
const MAX_RECORD: usize = 512 * 1024 * 1024;

pub(super) fn header(generation: u64) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.push(VERSION);
    out.extend_from_slice(&generation.to_le_bytes());
    out.extend_from_slice(&crc32(&out).to_le_bytes());
    out.resize(HEADER, 0);
    out
}

/// Reads a generation; `None` when this is no finished header.
pub(super) fn read_header(bytes: &[u8]) -> Result<Option<u64>> {
    let (Some(magic), Some(version), Some(number), Some(sum), Some(signed)) =
        (bytes.get(..7), bytes.get(7), bytes.get(8..16), bytes.get(16..20), bytes.get(..16))
    else {
        return Ok(None);
    };
    if magic != MAGIC || sum != crc32(signed).to_le_bytes() {
        return Ok(None);
    }
    if *version != VERSION {
        return Err(Error::new(Kind::NewerFormat, "the file was written by a newer version")
            .with("version", i32::from(*version)));
    }
    Ok(number.try_into().ok().map(u64::from_le_bytes))
}

pub(super) fn read_record_head(head: &[u8]) -> Option<(usize, u32)> {
    let number = |from: usize| head.get(from..from + 4)?.try_into().ok().map(u32::from_le_bytes);
    let len = number(4)? as usize;
    (head.get(..4)? == MARK && len > 0 && len <= MAX_RECORD).then_some((len, number(8)?))
}

pub(super) fn record(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(RECORD_HEAD + payload.len());
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32(payload).to_le_bytes());
    out.extend_from_slice(payload);
    out
}

pub(super) const PUT: u8 = 1;
pub(super) const DELETE: u8 = 2;

pub(super) fn encode(batch: &Batch) -> Vec<u8> {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    for key in &batch.deletes {
        out.push(DELETE);
        text(&mut out, key.as_bytes());
    }
    for (key, value) in &batch.puts {
        out.push(PUT);
        text(&mut out, key.as_bytes());
        text(&mut out, value);
    }
    out
}

pub(super) enum Change {
    Put { key: String, at: usize, len: usize },
    Delete { key: String },
}

pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl Reader<'_> {
    pub(super) fn take(&mut self, len: usize) -> Option<&[u8]> {
        let found = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(found)
    }

    fn number(&mut self) -> Option<usize> {
        self.take(4)?.try_into().ok().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn text(&mut self) -> Option<String> {
        let len = self.number()?;
        String::from_utf8(self.take(len)?.to_vec()).ok()
    }

    pub(super) fn change(&mut self) -> Option<Change> {
        let kind = self.take(1)?.first().copied()?;
        let key = self.text()?;
        match kind {
            PUT => {
                let len = self.number()?;
                let at = self.at;
                self.take(len)?;
                Some(Change::Put { key, at, len })
            }
            DELETE => Some(Change::Delete { key }),
            _ => None,
        }
    }
}
