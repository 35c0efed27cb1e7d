//! Images and files: what a target takes, how large they are, and the note that stands for one that does not go.

use std::borrow::Cow;

use super::options::count_of;
use crate::core::error::{Error, Kind, Result};
use crate::core::json::Value;
use crate::core::message::{Media, Source};

/// Where the bytes of stored media are found.
pub trait Blobs {
    /// Returns the bytes of a blob as base64.
    fn base64(&self, blob: &str) -> Option<Cow<'_, str>>;
}

/// A store without blobs.
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn base64(&self, _: &str) -> Option<Cow<'_, str>> {
        None
    }
}

/// What a target takes in media. Bytes are those of the media themselves, before base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaLimits {
    /// How many.
    pub max_count: u64,
    /// The largest one.
    pub max_bytes_each: u64,
    /// All together.
    pub max_bytes_total: u64,
    /// The longest side of an image, in pixels.
    pub max_side: u64,
    /// With more media than the first number no side may be longer than the second.
    pub crowd: Option<(u64, u64)>,
    /// Which types, beyond what the target itself takes.
    pub media_types: Option<Vec<String>>,
}

impl MediaLimits {
    /// Replaces what a caller gave.
    pub(super) fn over(mut self, given: Option<&Value>) -> Result<MediaLimits> {
        let Some(given) = given.filter(|g| !g.is_null()) else { return Ok(self) };
        let fault = |what| Error::new(Kind::InvalidArgument, what).with("path", "media");
        if given.as_object().is_none() {
            return Err(fault("options.media: must be an object"));
        }
        for (key, slot) in [
            ("maxCount", &mut self.max_count),
            ("maxBytesEach", &mut self.max_bytes_each),
            ("maxBytesTotal", &mut self.max_bytes_total),
            ("maxSide", &mut self.max_side),
        ] {
            *slot = count_of(given, key)?.unwrap_or(*slot);
        }
        if let Some(types) = given.get("mediaTypes").filter(|t| !t.is_null()) {
            let texts = types.as_array().map(|t| t.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
            let Some(Some(texts)) = texts else {
                return Err(fault("options.media.mediaTypes: must be a list of texts"));
            };
            self.media_types = Some(texts.into_iter().map(|t| t.to_ascii_lowercase()).collect());
        }
        Ok(self)
    }
}

/// A medium whose bytes or address are at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Medium {
    /// In lower case, without parameters.
    pub media_type: String,
    /// Base64 text, or an address.
    pub data: Data,
    /// Its name.
    pub filename: Option<String>,
}

/// Base64 text, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// Plain base64, padded.
    Base64(String),
    /// `http`, `https` or what else the target takes.
    Url(String),
}

impl Medium {
    /// Says whether it is an image.
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// How many bytes it has, as far as that can be seen.
    pub fn bytes(&self) -> u64 {
        match &self.data {
            Data::Base64(text) => decoded_len(text),
            Data::Url(_) => 0,
        }
    }

    /// Finds bytes or address, and checks what can be checked of this medium alone.
    pub fn resolve(media: &Media<'_>, limits: &MediaLimits, blobs: &dyn Blobs) -> std::result::Result<Medium, String> {
        let mut media_type = bare_type(&media.media_type.plain());
        let data = match &media.source {
            Source::Data(data) => inline(&data.plain(), &mut media_type)?,
            Source::Url(url) => address(&url.plain(), &mut media_type)?,
            Source::Blob(blob) => match blobs.base64(&blob.plain()) {
                Some(text) => inline(&text, &mut media_type)?,
                None => return Err("its bytes are not at hand".into()),
            },
        };
        let filename = media.filename.as_ref().filter(|f| !f.is_blank()).map(|f| f.plain().into_owned());
        let medium = Medium { media_type, data, filename };
        if limits.media_types.as_ref().is_some_and(|types| !types.contains(&medium.media_type)) {
            return Err("its type is not accepted here".into());
        }
        if medium.bytes() > limits.max_bytes_each {
            return Err(format!("it is larger than {} bytes", limits.max_bytes_each));
        }
        let side = medium.longest_side().unwrap_or(0);
        if side > limits.max_side {
            return Err(format!("a side of {side} pixels is longer than {}", limits.max_side));
        }
        Ok(medium)
    }

    /// The longest side of an image, in pixels, as far as that can be seen.
    pub fn longest_side(&self) -> Option<u64> {
        let Data::Base64(text) = &self.data else { return None };
        if !self.is_image() {
            return None;
        }
        let (width, height) = dimensions(&decode(text, HEADER_BYTES))?;
        Some(u64::from(width.max(height)))
    }
}

/// The text that stands for a medium that does not go.
pub(crate) fn note(media: &Media<'_>, why: &str) -> String {
    let what = if media.is_image { "image" } else { "file" };
    let name = media.filename.as_ref().filter(|f| !f.is_blank());
    let name = name.map(|f| format!(" \"{}\"", f.plain())).unwrap_or_default();
    let kind = bare_type(&media.media_type.plain());
    format!("[{what}{name} ({kind}) left out: {why}]")
}

fn bare_type(text: &str) -> String {
    let bare = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        "image/jpg" => "image/jpeg".into(),
        "audio/mp3" => "audio/mpeg".into(),
        "audio/x-wav" | "audio/wave" => "audio/wav".into(),
        "" => "application/octet-stream".into(),
        _ => bare,
    }
}

fn inline(text: &str, media_type: &mut String) -> std::result::Result<Data, String> {
    if text.starts_with("data:") {
        return address(text, media_type);
    }
    base64(text).map(Data::Base64).ok_or_else(|| "its bytes cannot be read".into())
}

fn address(url: &str, media_type: &mut String) -> std::result::Result<Data, String> {
    let url = url.trim();
    if let Some(rest) = url.strip_prefix("data:") {
        let (head, data) = rest.split_once(',').ok_or("its bytes cannot be read")?;
        let Some(kind) = head.strip_suffix(";base64") else { return Err("its bytes cannot be read".into()) };
        if kind.contains('/') {
            *media_type = bare_type(kind);
        }
        return base64(data).map(Data::Base64).ok_or_else(|| "its bytes cannot be read".into());
    }
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let reachable = match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => is_authority(rest.split(['/', '?', '#', '\\']).next().unwrap_or_default()),
        "gs" => !rest.is_empty(),
        _ => false,
    };
    match reachable && !url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        true => Ok(Data::Url(url.to_owned())),
        false => Err("its address cannot be reached from there".into()),
    }
}

/// Says whether a client can parse host and port; one address that it cannot would cost the whole request.
fn is_authority(authority: &str) -> bool {
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = place.split_once(':').unwrap_or((place, ""));
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or_default();
    // What ends in a number is read as an address of four, in hexadecimal too.
    let is_number =
        last.starts_with(|c: char| c.is_ascii_digit()) && last.bytes().all(|b| b.is_ascii_hexdigit() || b == b'x');
    let is_host = match is_number {
        true => {
            host.split('.').count() == 4 && host.split('.').all(|n| n.parse::<u8>().is_ok_and(|b| b.to_string() == n))
        }
        false => !last.is_empty() && host.bytes().all(plain),
    };
    is_host && (port.is_empty() || port.parse::<u16>().is_ok())
}

/// Returns base64 in the plain alphabet and padded, or nothing when it is not base64 or empty.
fn base64(text: &str) -> Option<String> {
    let strict = |t: &str| {
        let body = t.trim_end_matches('=');
        let padding = t.len() - body.len();
        let letters = body.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/');
        letters && !body.is_empty() && padding <= 2 && t.len().is_multiple_of(4)
    };
    if strict(text) {
        return Some(text.to_owned());
    }
    let mut tidy: String = text.chars().filter(|c| !c.is_ascii_whitespace() && *c != '=').collect();
    tidy = tidy.replace('-', "+").replace('_', "/");
    if tidy.len() % 4 != 1 {
        tidy.push_str("=".repeat((4 - tidy.len() % 4) % 4).as_str());
    }
    strict(&tidy).then_some(tidy)
}

fn decoded_len(base64: &str) -> u64 {
    let padding = base64.bytes().rev().take_while(|b| *b == b'=').count();
    (base64.len() as u64 / 4 * 3).saturating_sub(padding as u64)
}

/// How much of an image is looked at to find its size; a JPEG may carry a large profile before it.
const HEADER_BYTES: usize = 512 * 1024;

fn decode(base64: &str, most: usize) -> Vec<u8> {
    let value = |b: u8| match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for chunk in base64.trim_end_matches('=').as_bytes().chunks(4) {
        if out.len() >= most {
            break;
        }
        let bits = chunk.iter().fold(0u32, |bits, b| bits << 6 | u32::from(value(*b)));
        let bits = bits << (6 * (4 - chunk.len()));
        out.extend(bits.to_be_bytes().iter().skip(1).take(chunk.len().saturating_sub(1)));
    }
    out
}

fn be(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().fold(0, |n, b| n << 8 | u32::from(*b)))
}

fn le(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b)))
}

/// Reads width and height from the head of a PNG, GIF, WebP or JPEG.
fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((be(bytes, 16, 4)?, be(bytes, 20, 4)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((le(bytes, 6, 2)?, le(bytes, 8, 2)?));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return webp(bytes);
    }
    if bytes.starts_with(b"\xff\xd8") { jpeg(bytes) } else { None }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((le(bytes, 24, 3)? + 1, le(bytes, 27, 3)? + 1)),
        b"VP8L" => {
            let bits = le(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => Some((le(bytes, 26, 2)? & 0x3fff, le(bytes, 28, 2)? & 0x3fff)),
    }
}

fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = be(bytes, at, 2)?;
        match marker {
            0xffff => at += 1,
            0xffc0..=0xffc3 | 0xffc5..=0xffc7 | 0xffc9..=0xffcb | 0xffcd..=0xffcf => {
                return Some((be(bytes, at + 7, 2)?, be(bytes, at + 5, 2)?));
            }
            0xff01..=0xfffe => at += 2 + (be(bytes, at + 2, 2)? as usize).max(2),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_heads() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 0x0b, 0xa8, 0, 0, 0x20, 0x94, 8, 2]);
        assert_eq!(dimensions(&png), Some((2984, 8340)));
        assert_eq!(dimensions(b"GIF89a\x10\x00\x20\x01"), Some((16, 288)));
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\x40\x01\x00\x03";
        assert_eq!(dimensions(jpeg), Some((256, 64)));
        let webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x01\0\x0f\0\0";
        assert_eq!(dimensions(webp), Some((512, 16)));
        for cut in 0..png.len() {
            let _ = dimensions(&png[..cut]);
        }
        assert_eq!(dimensions(b"\xff\xd8\xff\xe0\x00\x00"), None);
    }

    #[test]
    fn only_addresses_that_clients_can_parse_are_taken() {
        let taken = |url: &str| address(url, &mut String::new()).is_ok();
        for good in [
            "https://example.com/a b".replace(' ', "%20").as_str(),
            "http://h",
            "HTTPS://h:8080?x",
            "https://u:p@h.x/",
            "http://127.0.0.1/x",
            "gs://b/o",
            "https://xn--bcher-kva.example/",
            "http://face.be/",
        ] {
            assert!(taken(good), "{good}");
        }
        for bad in [
            "https://",
            "https:///x",
            "https://?x",
            "http://[bad/",
            "https://a b/",
            "https://1.2.3.999/x",
            "http://99999999999/",
            "http://1.2.3/",
            "https://e%x/",
            "https://h:99999/",
            "https://h:x/",
            "https://./",
            "https://a<b/",
            "gs://",
            "ftp://h/",
            "h/x",
            "https://h/\u{1}",
        ] {
            assert!(!taken(bad), "{bad}");
        }
    }

    #[test]
    fn base64_is_made_strict_or_refused() {
        for (from, to) in [("QUJD", "QUJD"), ("QUI", "QUI="), ("QU\nJD", "QUJD"), ("_-8=", "/+8="), ("QQ==", "QQ==")] {
            assert_eq!(base64(from).as_deref(), Some(to));
        }
        for bad in ["", "=", "A", "QU*D", "QUJDA", "{}"] {
            assert_eq!(base64(bad), None, "{bad}");
        }
        assert_eq!((decode("QUI=", 10), decoded_len("QUI=")), (b"AB".to_vec(), 2));
    }
}
