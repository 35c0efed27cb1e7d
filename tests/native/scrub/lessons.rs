//! Lessons from the field, part D.

use std::rc::Rc;

use sessionlog::core::scrub::{Chain, Pattern, ScrubStream, has_marker, scrub_payload};

use super::{builtin, token};

fn scrub(text: &str) -> String {
    builtin().scrub(text).unwrap().into_owned()
}

#[test]
fn d01_every_string_passes() {
    let secret = token();
    for payload in [
        r#"{"text":"T"}"#,
        r#"{"id":"c","name":"x","args":{"a":["T"]}}"#,
        r#"{"id":"c","content":"T"}"#,
        r#"{"id":"c","content":[{"type":"text","text":"T"}]}"#,
        r#"{"parts":[{"type":"text","text":"T"}]}"#,
        r#"{"summary":"T","uptoSeq":3}"#,
        r#"{"message":"T"}"#,
        r#"{"title":"T"}"#,
        r#"{"meta":{"note":"T"}}"#,
        r#"{"turn":1,"reason":{"kind":"error","message":"T"}}"#,
    ] {
        let text = payload.replace('T', &format!("see {secret} now"));
        let right = payload.replace('T', "see [REDACTED:github-pat] now");
        assert_eq!(scrub_payload("x", &text, &builtin()).unwrap(), right);
    }
}

#[test]
fn d03_ids_and_counts_stay() {
    let tool = ["toolu_01", "9oMWzgoUqzGUhPXYRLGJST"].concat();
    for text in [
        "e58aac92e8d729944a5faeaab780869ed4ca88e8",
        "4cecd77227cee16e95cbe9ef08b89f6d811ec86fd585562f53582b759f46443c",
        "9b82cbbf-5688-4de0-9790-02ac6fef5134",
        &tool,
        r#"{"max_tokens":8192,"input_tokens":5,"tokenizer":"cl100k","author":"al"}"#,
    ] {
        assert_eq!(scrub(text), text);
    }
    let random = ["Zq81kTmVx0bYw3RcNe57", "PsDhJ2gLfUa6oQ1yXk9w"].concat();
    assert_eq!(scrub(&format!(r#"{{"access_token":"{random}"}}"#)), r#"{"access_token":"[REDACTED:generic-secret]"}"#);
}

#[test]
fn d05_json_stays_json() {
    let secret = token();
    let args = format!(r#"{{"cmd":"API_KEY={secret}","n":[1,"x"]}}"#);
    let right = r#"{"cmd":"API_KEY=[REDACTED:github-pat]","n":[1,"x"]}"#;
    assert_eq!(scrub(&args), right);
    let mut outer = String::new();
    sessionlog::core::json::write_string(&mut outer, &args);
    let inner: String = serde_json::from_str(&scrub(&outer)).unwrap();
    assert_eq!(inner, right);
    // In five pieces, cut inside the token.
    let mut stream = ScrubStream::new(&builtin());
    let mut out = String::new();
    for piece in args.as_bytes().chunks(args.len() / 5 + 1) {
        out.push_str(&stream.push(std::str::from_utf8(piece).unwrap()).unwrap());
    }
    out.push_str(&stream.end().unwrap());
    assert_eq!(out, right);
}

#[test]
fn d07_what_is_not_linear_is_refused() {
    assert_eq!(Pattern::new("(a)\\1", None, None).err().unwrap().code(), "scrubber_refused");
    let chain = Chain::of(Rc::new(Pattern::new("(\\w+\\s?)+@x", None, None).unwrap()));
    let words = "word ".repeat(20_000);
    assert_eq!(chain.scrub(&words).unwrap(), words);
}

#[test]
fn d09_once_is_enough() {
    for text in ["password: *****", "k=[REDACTED:openai]", "what does [REDACTED:x] mean?", "API_KEY=[REDACTED:openai]"]
    {
        assert_eq!(scrub(text), text);
    }
    let once = scrub(&token());
    assert_eq!(scrub(&once), once);
    let masked = scrub("api_key = abc[REDACTED:x]def");
    assert_eq!(masked, "api_key = [REDACTED:generic-secret]");
    assert_eq!(scrub(&masked), masked);
    assert!(has_marker(&once) && !has_marker("REDACTED"));
}
