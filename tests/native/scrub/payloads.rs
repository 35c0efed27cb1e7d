//! Which strings of a payload are rewritten.

use std::borrow::Cow;
use std::rc::Rc;

use regex::Regex;
use sessionlog::core::error::Result;
use sessionlog::core::scrub::{Chain, Pattern, Scrubber, Values, scrub_payload, stored_form, would_change};

use super::{builtin, text_of, token, vectors};

struct Replace(Regex, String);

impl Scrubber for Replace {
    fn name(&self) -> &str {
        "replace"
    }
    fn scrub<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        Ok(self.0.replace_all(text, regex::NoExpand(&self.1)))
    }
}

#[test]
fn every_vector() {
    for line in vectors("payloads.jsonl") {
        for own in [false, true] {
            let mut chain = Chain::default();
            for spec in line["scrubbers"].as_array().unwrap() {
                let (re, with) = (spec["re"].as_str().unwrap(), spec["with"].as_str().unwrap());
                let scrubber: Rc<dyn Scrubber> = if own {
                    Rc::new(Pattern::new(re, Some(with), None).unwrap())
                } else {
                    Rc::new(Replace(Regex::new(re).unwrap(), with.to_owned()))
                };
                chain.add(0, scrubber);
            }
            let payload = text_of(&line["payload"]);
            let kind = line["type"].as_str().unwrap();
            assert_eq!(scrub_payload(kind, &payload, &chain).unwrap(), text_of(&line["expect"]), "{}", line["name"]);
            assert_eq!(stored_form(&payload, &chain).unwrap(), text_of(&line["storedForm"]), "{} stored", line["name"]);
        }
    }
}

#[test]
fn untouched_bytes_pass_as_they_are() {
    let secret = token();
    let text = format!(r#"{{ "n" : 1.50, "z":[9007199254740993, "a\u0062\/c"] ,"text":"{secret}" , "e":"\ud83d" }}"#);
    let out = scrub_payload("x", &text, &builtin()).unwrap();
    assert_eq!(out, text.replace(&secret, "[REDACTED:github-pat]"));
    let clean = r#"{ "a" : "\u0041" }"#;
    assert!(matches!(scrub_payload("x", clean, &builtin()).unwrap(), Cow::Borrowed(_)));
    assert!(would_change("x", &text, &builtin()).unwrap() && !would_change("x", &out, &builtin()).unwrap());
}

#[test]
fn keys_are_scrubbed_and_must_stay_different() {
    let secret = token();
    let payload = format!(r#"{{"id":"a","args":{{"{secret}":1}}}}"#);
    let out = scrub_payload("tool/call", &payload, &builtin()).unwrap();
    assert_eq!(out, r#"{"id":"a","args":{"[REDACTED:github-pat]":1}}"#);
    let other = secret.replace('Z', "Y");
    let twice = format!(r#"{{"args":{{"{secret}":1,"{other}":2}}}}"#);
    assert_eq!(scrub_payload("tool/call", &twice, &builtin()).unwrap_err().code(), "not_json");
}

#[test]
fn opaque_fields_are_kept_or_dropped_whole() {
    let secret = token();
    let kept = r#"{"parts":[{"type":"reasoning","text":"hm","signature":"EqoB9klWiOAOVOXSkCALYUQo03U7dFyE==","itemId":"rs_1"}]}"#;
    assert!(matches!(scrub_payload("m", kept, &builtin()).unwrap(), Cow::Borrowed(_)));
    let hit =
        format!(r#"{{"parts":[{{"type":"reasoning","signature":"{secret}","encrypted": "x {secret}","text":"hm"}}]}}"#);
    assert_eq!(
        scrub_payload("m", &hit, &builtin()).unwrap(),
        r#"{"parts":[{"type":"reasoning","unsigned":true,"text":"hm"}]}"#
    );
}

#[test]
fn media_must_prove_to_be_media() {
    let chain = Chain::of(Rc::new(Values::new(&["IHDRIHDR".to_owned()], None).unwrap()));
    let png = "iVBORw0KGgoAAAANSUhEUgAA";
    let part =
        |kind: &str, data: &str| format!(r#"{{"parts":[{{"type":"image","data":"{data}","mediaType":"{kind}"}}]}}"#);
    let real = part("image/png", png);
    assert!(matches!(scrub_payload("m", &real, &builtin()).unwrap(), Cow::Borrowed(_)));
    // "IHDRIHDR" in base64 inside a picture: the picture goes.
    let hidden = part("image/png", &format!("{png}SUhEUklIRFI="));
    assert_eq!(
        scrub_payload("m", &hidden, &chain).unwrap(),
        r#"{"parts":[{"type":"image","unsigned":true,"mediaType":"image/png"}]}"#
    );
    // What only says that it is a picture is text.
    let secret = token();
    let false_one = part("image/png", &secret);
    assert_eq!(scrub_payload("m", &false_one, &builtin()).unwrap(), part("image/png", "[REDACTED:github-pat]"));
}

#[test]
fn registrations_are_removed_from_the_end() {
    let mut chain = Chain::default();
    for (identity, re, with) in [(1, "a", "b"), (2, "b", "c"), (1, "c", "a")] {
        chain.add(identity, Rc::new(Pattern::new(re, Some(with), None).unwrap()));
    }
    assert_eq!(chain.scrub("a").unwrap(), "a");
    assert!(chain.remove(1));
    assert_eq!(chain.scrub("a").unwrap(), "c");
    assert!(chain.remove(1) && !chain.remove(1));
    assert_eq!(chain.scrub("a").unwrap(), "a");
    assert!(chain.remove(2) && chain.is_empty());
}
