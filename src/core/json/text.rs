//! Strings, with their escapes and without.

use std::borrow::Cow;

use super::tokens::hex4;

/// Decodes a string token with its quotes; a lone surrogate half reads as U+FFFD.
pub fn unescape(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap_or(quoted);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = tail.chars();
        chars.next();
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                rest = unescape_unit(tail, &mut out);
                continue;
            }
            Some(other) => out.push(other),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes one `\uXXXX` or a pair at the start of `tail` and returns what follows.
fn unescape_unit<'a>(tail: &'a str, out: &mut String) -> &'a str {
    let unit_at = |at: usize| {
        let escape = tail.as_bytes().get(at..at + 6)?;
        escape.starts_with(b"\\u").then(|| escape.get(2..).and_then(hex4))?
    };
    let Some(high) = unit_at(0) else { return "" };
    if let Some(c) = char::from_u32(high) {
        out.push(c);
        return tail.get(6..).unwrap_or_default();
    }
    if let (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) = (high, unit_at(6)) {
        out.extend(char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
        return tail.get(12..).unwrap_or_default();
    }
    out.push('\u{fffd}');
    tail.get(6..).unwrap_or_default()
}

/// Appends a string with quotes and escapes, byte for byte as `JSON.stringify` writes it.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(text.get(from..at).unwrap_or_default());
        from = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => out.push_str(&format!("\\u{byte:04x}")),
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}
