//! What is no text: opaque fields of providers and media that prove to be what they say.

use super::bytes::base64_value;

/// Fields of parts that a provider made and wants back as they were.
const OPAQUE: [&str; 7] =
    ["signature", "encrypted", "thoughtSignature", "redacted", "itemId", "thought_signature", "encrypted_content"];

/// Says whether a member of a part is a provider's.
pub(super) fn is_opaque_key(key: &str) -> bool {
    OPAQUE.contains(&key)
}

/// Beginnings of files by media type.
const MAGIC: &[(&str, usize, &[u8])] = &[
    ("image/png", 0, b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", 0, b"\xff\xd8\xff"),
    ("image/jpg", 0, b"\xff\xd8\xff"),
    ("image/gif", 0, b"GIF8"),
    ("image/webp", 8, b"WEBP"),
    ("image/bmp", 0, b"BM"),
    ("image/tiff", 0, b"II*\0"),
    ("image/tiff", 0, b"MM\0*"),
    ("image/avif", 4, b"ftyp"),
    ("image/heic", 4, b"ftyp"),
    ("image/x-icon", 0, b"\0\0\x01\0"),
    ("application/pdf", 0, b"%PDF-"),
    ("application/zip", 0, b"PK\x03\x04"),
    ("application/gzip", 0, b"\x1f\x8b"),
    ("application/wasm", 0, b"\0asm"),
    ("audio/mpeg", 0, b"ID3"),
    ("audio/mpeg", 0, b"\xff\xfb"),
    ("audio/mp3", 0, b"ID3"),
    ("audio/mp3", 0, b"\xff\xfb"),
    ("audio/wav", 8, b"WAVE"),
    ("audio/x-wav", 8, b"WAVE"),
    ("audio/ogg", 0, b"OggS"),
    ("audio/flac", 0, b"fLaC"),
    ("audio/mp4", 4, b"ftyp"),
    ("video/mp4", 4, b"ftyp"),
    ("video/quicktime", 4, b"ftyp"),
    ("video/webm", 0, b"\x1a\x45\xdf\xa3"),
    ("audio/webm", 0, b"\x1a\x45\xdf\xa3"),
];

/// Says whether base64 text decodes and begins as files of its media type do.
pub fn is_media(media_type: &str, data: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let bytes = data.as_bytes();
    let body = data.trim_end_matches('=').as_bytes();
    let padded = bytes.len() - body.len() <= 2 && bytes.len().is_multiple_of(4);
    let bare = bytes.len() == body.len() && body.len() % 4 != 1;
    if !(padded || bare) || !body.iter().all(|&b| base64_value(b).is_some()) {
        return false;
    }
    let head = super::bytes::decode64(body, 16);
    MAGIC.iter().any(|(t, at, magic)| *t == kind && head.get(*at..*at + magic.len()) == Some(*magic))
}
