//! A record as JSON text, read in place: the index that derivation has, with the strings decoded that need it.

use crate::core::error::{Error, Kind as ErrorKind, Result};
use crate::core::json::unescape;
use crate::core::tape::{Raw, Shape, Tape};

use super::arithmetic::count_of;

/// One parsed text.
pub struct Doc<'a> {
    tape: Tape<'a>,
    /// Strings with escapes, by their place in the text; there are hardly ever any.
    decoded: Vec<(usize, Box<str>)>,
}

impl<'a> Doc<'a> {
    /// Parses a text that holds exactly one value. Duplicate keys and wrong escapes are not looked for: what comes here
    /// was checked when it was stored, or written by JavaScript. Callers in Rust may bring anything, so there the grammar is.
    pub fn parse(text: &'a str) -> Result<Self> {
        #[cfg(not(target_family = "wasm"))]
        check(text)?;
        let tape = Tape::new(text);
        if tape.is_empty() {
            return Err(Error::new(ErrorKind::NotJson, "not JSON"));
        }
        let decoded = tape.escaped().map(|(at, quoted)| (at, unescape(quoted).into())).collect();
        Ok(Doc { tape, decoded })
    }

    /// Returns the one value.
    pub fn root(&self) -> Json<'_> {
        Json { doc: self, raw: self.tape.root() }
    }
}

#[cfg(not(target_family = "wasm"))]
fn check(text: &str) -> Result<()> {
    use crate::core::json::{Surrogates, Tokens};
    let mut tokens = Tokens::new(text, Surrogates::Replace);
    while tokens.next_token()?.is_some() {}
    Ok(())
}

/// One value of a [`Doc`].
#[derive(Clone, Copy)]
pub struct Json<'d> {
    doc: &'d Doc<'d>,
    raw: Raw<'d, 'd>,
}

impl<'d> Json<'d> {
    fn beside(self, raw: Raw<'d, 'd>) -> Json<'d> {
        Json { doc: self.doc, raw }
    }

    /// Iterates over the items of an array or the values of an object.
    pub fn children(self) -> impl Iterator<Item = Json<'d>> {
        self.raw.values().map(move |raw| self.beside(raw))
    }

    /// Returns a member of an object that is there and not null.
    pub fn get(self, key: &str) -> Option<Json<'d>> {
        let raw = self.raw.get(key)?;
        (raw.shape() != Shape::Null).then_some(self.beside(raw))
    }

    /// Follows several names; an empty one stays where it is.
    #[inline(never)]
    pub fn at(self, path: &[&str]) -> Option<Json<'d>> {
        let mut out = self;
        for key in path {
            out = if key.is_empty() { out } else { out.get(key)? };
        }
        Some(out)
    }

    /// Returns the first of several members that is there and not null.
    #[inline(never)]
    pub fn any(self, keys: &[&str]) -> Option<Json<'d>> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// Returns the key under which this value stands in an object, decoded.
    pub fn key(self) -> std::borrow::Cow<'d, str> {
        unescape(self.raw.key())
    }

    /// Returns the text of a number, as written.
    #[inline(never)]
    pub fn number(self) -> Option<&'d str> {
        (self.raw.shape() == Shape::Number).then(|| self.raw.text())
    }

    /// Returns a string, decoded.
    #[inline(never)]
    pub fn string(self) -> Option<&'d str> {
        if self.raw.shape() != Shape::String {
            return None;
        }
        let decoded = self.doc.decoded.iter().find(|(at, _)| *at == self.raw.start());
        match decoded {
            Some((_, decoded)) => Some(decoded),
            None => self.text().get(1..self.text().len() - 1),
        }
    }

    /// Returns a member that is a number, as written.
    #[inline(never)]
    pub fn number_of(self, key: &str) -> Option<&'d str> {
        self.get(key)?.number()
    }

    /// Returns a member that is a string, decoded.
    #[inline(never)]
    pub fn text_of(self, key: &str) -> Option<&'d str> {
        self.get(key)?.string()
    }

    /// Says whether a member is this text.
    #[inline(never)]
    pub fn is_text(self, key: &str, text: &str) -> bool {
        self.text_of(key) == Some(text)
    }

    /// Says whether this is `true`.
    pub fn is_true(self) -> bool {
        self.text() == "true"
    }

    /// Says whether this is an object.
    pub fn is_object(self) -> bool {
        self.raw.shape() == Shape::Object
    }

    /// Says whether this is an array.
    pub fn is_array(self) -> bool {
        self.raw.shape() == Shape::Array
    }

    /// Returns the JSON text of an object, array, string or number.
    pub fn text(self) -> &'d str {
        self.raw.text()
    }

    /// Returns a member as a count: what is not a number of at least 0 is 0.
    #[inline(never)]
    pub fn count(self, key: &str) -> u64 {
        self.number_of(key).map_or(0, count_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_whatever_stands_between() {
        let doc = Doc::parse(r#"{"a":{"x":[1,{"y":2}],"b":3},"b":"q\n","\u0063":true,"n":null}"#).unwrap();
        let root = doc.root();
        assert_eq!(root.get("b").unwrap().string().unwrap(), "q\n");
        assert_eq!(root.get("a").unwrap().count("b"), 3);
        assert!(root.get("c").unwrap().is_true());
        assert!(root.get("n").is_none());
        let x = root.get("a").unwrap().get("x").unwrap();
        assert_eq!(x.text(), r#"[1,{"y":2}]"#);
        assert_eq!(x.children().count(), 2);
        assert_eq!(x.children().nth(1).unwrap().count("y"), 2);
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
            "\"a",
            "1 2",
            "[1 2]",
            "{\"a\" 1}",
            "[}",
            "{]",
            "NaN",
            "[,1]",
            "]",
            "[1]]",
            "{}{}",
            "\"\n\"",
            "\"\\",
            "[",
            "[[]",
        ] {
            assert!(Doc::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Doc::parse(&"[".repeat(100_000)).is_err());
        assert!(Doc::parse(&format!("{}{}", "[".repeat(1_001), "]".repeat(1_001))).is_err());
        Doc::parse(&format!("{}{}", "[".repeat(1_000), "]".repeat(1_000))).unwrap();
    }

    /// Rebuilds the value from the tree.
    fn rebuilt(json: Json) -> serde_json::Value {
        match json.raw.shape() {
            Shape::Object => json.children().map(|c| (c.key().into_owned(), rebuilt(c))).collect(),
            Shape::Array => json.children().map(rebuilt).collect(),
            Shape::Null => serde_json::Value::Null,
            Shape::Bool => json.is_true().into(),
            Shape::String => json.string().unwrap().into(),
            Shape::Number => serde_json::from_str(json.text()).unwrap(),
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_an_independent_parser(text in "[\\[\\]{}\",:0-9eE+. a-u-]{0,40}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text).ok();
            let doc = Doc::parse(&text).ok();
            // Duplicate keys are not looked for here: the last one wins there.
            let rebuilt = doc.as_ref().map(|d| rebuilt(d.root()));
            proptest::prop_assert_eq!(rebuilt, theirs);
        }

        #[test]
        fn agrees_on_values(seed in proptest::collection::vec((0usize..9, "[a-c\\\\\"é]{0,4}"), 0..30)) {
            let mut value = serde_json::Value::Null;
            for (kind, text) in seed {
                value = match kind {
                    0 => serde_json::json!([value]),
                    1 => serde_json::json!({ text: value }),
                    2 => serde_json::json!({ "x": text, "y": value, "z": [] }),
                    3 => serde_json::json!([1, value, {}, -2.5]),
                    4 => serde_json::json!({ "k": true, "": value }),
                    5 => serde_json::json!([[], [value], null]),
                    _ => serde_json::json!(text),
                };
            }
            let text = serde_json::to_string_pretty(&value).unwrap();
            proptest::prop_assert_eq!(rebuilt(Doc::parse(&text).unwrap().root()), value);
        }
    }
}
