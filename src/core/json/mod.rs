//! Lossless JSON text: one-pass scan without recursion, values that keep the text of their numbers, canonical output.
//!
//! Numbers are text here (`1.50` and `9007199254740993` survive), members keep their order, duplicate keys are refused.

mod keys;
mod text;
mod tokens;
mod value;

use super::error::Result;
use keys::KeySets;

pub use text::{unescape, write_string};
pub use tokens::{Token, Tokens};
pub use value::{Object, Value};

/// What to do with an escaped lone surrogate half (`"\ud83d"` without its other half).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surrogates {
    /// Refuse the text.
    Refuse,
    /// Let the escape stand in the text; it reads as U+FFFD.
    Replace,
}

/// Checks that a text is exactly one value: grammar, depth, surrogates, no duplicate keys.
pub fn check(text: &str, surrogates: Surrogates) -> Result<()> {
    check_tokens(text, Tokens::new(text, surrogates))
}

/// The same for a text of which the tokens are read in another way.
pub fn check_tokens<'a>(text: &'a str, mut tokens: Tokens<'a>) -> Result<()> {
    let mut keys = KeySets::default();
    while let Some(token) = tokens.next_token()? {
        keys.see(text, token)?;
    }
    Ok(())
}

enum Open {
    Array(Vec<Value>),
    Object(Object, Option<String>),
}

/// Parses one value; refuses duplicate keys.
pub fn parse(text: &str, surrogates: Surrogates) -> Result<Value> {
    parse_tokens(text, Tokens::new(text, surrogates))
}

/// The same for a text of which the tokens are read in another way.
pub fn parse_tokens<'a>(text: &'a str, mut tokens: Tokens<'a>) -> Result<Value> {
    let mut keys = KeySets::default();
    let mut open: Vec<Open> = Vec::new();
    let mut root = Value::Null;
    while let Some(token) = tokens.next_token()? {
        keys.see(text, token)?;
        let slice = |start: usize, end: usize| text.get(start..end).unwrap_or_default();
        let value = match token {
            Token::BeginArray => {
                open.push(Open::Array(Vec::new()));
                continue;
            }
            Token::BeginObject => {
                open.push(Open::Object(Object::default(), None));
                continue;
            }
            Token::Key(start, end) => {
                if let Some(Open::Object(_, key)) = open.last_mut() {
                    *key = Some(unescape(slice(start, end)).into_owned());
                }
                continue;
            }
            Token::EndArray | Token::EndObject => match open.pop() {
                Some(Open::Array(items)) => Value::Array(items),
                Some(Open::Object(members, _)) => Value::Object(members),
                None => Value::Null,
            },
            Token::String(start, end) => Value::String(unescape(slice(start, end)).into_owned()),
            Token::Number(start, end) => Value::Number(slice(start, end).into()),
            Token::Bool(b) => Value::Bool(b),
            Token::Null => Value::Null,
        };
        match open.last_mut() {
            Some(Open::Array(items)) => items.push(value),
            Some(Open::Object(members, key)) => members.push_unchecked(key.take().unwrap_or_default(), value),
            None => root = value,
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round(text: &str) -> String {
        parse(text, Surrogates::Refuse).unwrap().to_text()
    }

    #[test]
    fn numbers_keep_their_text_and_members_their_order() {
        let text = r#"{"z":1.50,"a":9007199254740993,"m":[-0,1e400,0.1]}"#;
        assert_eq!(round(text), text);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for bad in [
            "",
            " ",
            "{",
            "}",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\"}",
            "{a:1}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "-",
            "nul",
            "tru",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\n\"",
            "1 2",
            "[1 2]",
            "{\"a\" 1}",
            "[}",
            "{]",
            "NaN",
            "'a'",
            "[,1]",
            "\u{feff}1",
            "\"\\u12g4\"",
        ] {
            assert!(check(bad, Surrogates::Refuse).is_err(), "{bad:?}");
            assert!(parse(bad, Surrogates::Refuse).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn duplicate_keys_are_refused_also_when_escaped() {
        for bad in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"k":1,"k":1}}]"#] {
            assert_eq!(check(bad, Surrogates::Refuse).unwrap_err().code(), "not_json");
        }
        let many: Vec<String> = (0..50).map(|i| format!("\"k{}\":1", i % 49)).collect();
        assert!(check(&format!("{{{}}}", many.join(",")), Surrogates::Refuse).is_err());
        check(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#, Surrogates::Refuse).unwrap();
    }

    /// G05
    #[test]
    fn nesting_is_bounded_and_never_overflows() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        parse(&deep(1_000), Surrogates::Refuse).unwrap();
        assert_eq!(check(&deep(1_001), Surrogates::Refuse).unwrap_err().code(), "not_json");
        assert!(parse(&"[".repeat(100_000), Surrogates::Refuse).is_err());
        assert!(parse(&"{\"a\":".repeat(100_000), Surrogates::Refuse).is_err());
    }

    /// A15
    #[test]
    fn lone_halves_are_refused_or_read_as_replacement() {
        for (text, read) in [
            (r#""x\ud83d…""#, "x\u{fffd}…"),
            (r#""\udc00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\ud83d\ud83d\udd25""#, "\u{fffd}🔥"),
        ] {
            assert!(check(text, Surrogates::Refuse).is_err(), "{text}");
            assert_eq!(parse(text, Surrogates::Replace).unwrap().as_str(), Some(read), "{text}");
        }
        assert_eq!(parse(r#""\ud83d\udd25""#, Surrogates::Refuse).unwrap().as_str(), Some("🔥"));
    }

    #[test]
    fn strings_are_written_as_javascript_writes_them() {
        let mut out = String::new();
        write_string(&mut out, "a\"\\/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é🔥\u{2028}");
        assert_eq!(out, "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é🔥\u{2028}\"");
    }

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        let read = |t: &str| parse(t, Surrogates::Refuse).unwrap().as_i64();
        assert_eq!(read("12"), Some(12));
        assert_eq!(read("1.2e1"), Some(12));
        assert_eq!(read("12.0"), Some(12));
        assert_eq!(read("12.5"), None);
        assert_eq!(read("1e300"), None);
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_an_independent_parser(value in any_json(), pretty in any::<bool>()) {
            let compact = value.to_string();
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { compact.clone() };
            let ours = parse(&text, Surrogates::Refuse).unwrap();
            prop_assert_eq!(ours.to_text(), compact);
        }

        #[test]
        fn random_text_never_panics_and_is_judged_alike(text in "[\\[\\]{}\",:0-9eE+.\\\\a-u -]{0,40}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            let ours = parse(&text, Surrogates::Refuse);
            if ours.is_ok() { prop_assert!(theirs.is_ok()); }
            if theirs.is_ok() && ours.is_err() {
                prop_assert!(ours.unwrap_err().message().contains("twice"));
            }
        }
    }
}
