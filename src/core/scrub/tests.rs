use std::rc::Rc;

use super::*;

fn joined(pieces: &[&str]) -> String {
    pieces.concat()
}

fn detector(family: &Family) -> Detector {
    let builtin = if family.pii { Builtin::Pii } else { Builtin::Secrets };
    Detector::new(builtin, &[], &[]).unwrap()
}

#[test]
fn every_family_finds_its_examples_and_leaves_its_counter_examples() {
    for family in FAMILIES {
        let detector = detector(family);
        for example in family.examples {
            let text = joined(example);
            assert_eq!(detector.find(&text).len(), 1, "{}: {text}", family.name);
            for found in detector.find(&text) {
                assert!(family.kinds.contains(&found.kind), "{}: {}", family.name, found.kind);
            }
        }
        for example in family.counter_examples {
            let text = joined(example);
            assert_eq!(detector.find(&text), [], "{}: {text}", family.name);
        }
    }
}

#[test]
fn kinds_are_ascii_and_marks_are_marks() {
    for kind in FAMILIES.iter().flat_map(|f| f.kinds) {
        assert!(has_marker(&mark(kind)), "{kind}");
    }
    assert!(!has_marker("[REDACTED:") && !has_marker("[REDACTED:]") && has_marker("a [REDACTED:x] b"));
}

#[test]
fn types_can_be_chosen() {
    let text = joined(&["AKIA", "Z5MVQ2XB7KTP3W4R and DB_PASSWORD=Mo0nl.jJw4"]);
    let only = Detector::new(Builtin::Secrets, &["password".to_owned()], &[]).unwrap();
    assert_eq!(only.find(&text).iter().map(|m| m.kind).collect::<Vec<_>>(), ["password"]);
    let except = Detector::new(Builtin::Secrets, &[], &["password".to_owned()]).unwrap();
    assert_eq!(except.find(&text).iter().map(|m| m.kind).collect::<Vec<_>>(), ["aws-access-key-id"]);
    assert!(Detector::new(Builtin::Secrets, &["no-such".to_owned()], &[]).is_err());
}

#[test]
fn values_are_found_in_every_form() {
    let value = "hun\"ter 2/ü";
    let chain = Chain::of(Rc::new(Values::new(&[value.to_owned()], Some("pw")).unwrap()));
    let scrub = |text: &str| chain.scrub(text).unwrap().into_owned();
    assert_eq!(scrub(&format!("a{value}b")), "a[REDACTED:pw]b");
    assert_eq!(scrub(r#"{"p":"hun\"ter 2/ü"}"#), r#"{"p":"[REDACTED:pw]"}"#);
    assert_eq!(scrub("p=hun%22ter%202%2F%C3%BC&x"), "p=[REDACTED:pw]&x");
    for before in ["", "x", "xy"] {
        let plain = format!("{before}{value} and more");
        let text = base64(plain.as_bytes());
        let out = scrub(&text);
        assert!(out.contains("[REDACTED:pw]"), "{text} {out}");
    }
    assert_eq!(Values::new(&["short".to_owned()], None).err().unwrap().code(), "scrubber_refused");
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = bytes.iter().flat_map(|b| (0..8).map(move |k| b >> (7 - k) & 1)).collect();
    bits.chunks(6)
        .map(|c| (0..6).fold(0, |n, k| n << 1 | usize::from(*c.get(k).unwrap_or(&0))))
        .map(|d| DIGITS[d] as char)
        .collect()
}

#[test]
fn values_prefer_the_leftmost_and_longest() {
    let values = Values::new(&["abcdefgh".to_owned(), "abcdefghij".to_owned(), "cdefghijkl".to_owned()], None).unwrap();
    let scrub = |text: &str| values.scrub(text).unwrap().into_owned();
    assert_eq!(scrub("abcdefghijkl"), "[REDACTED:value]kl");
    assert_eq!(scrub("xxabcdefghi"), "xx[REDACTED:value]i");
    assert_eq!(scrub("cdefghijklm"), "[REDACTED:value]m");
}

#[test]
fn spans_are_those_of_the_matches() {
    let values = Values::new(&["hunter2hunter2".to_owned()], None).unwrap();
    assert_eq!(values.spans("a hunter2hunter2 é hunter2hunter2"), Some(vec![(2, 16), (20, 34)]));
    let pattern = Pattern::new("\\d+", None, None).unwrap();
    assert_eq!(pattern.spans("é 12 3"), Some(vec![(3, 5), (6, 7)]));
}

/// What may stand behind a prefix and make its rule start anew, or run on.
const BEHIND: [&str; 20] = [
    "",
    "a",
    "A0",
    "0",
    "a.",
    "-",
    "_",
    "1_ey",
    "=",
    "/",
    "+",
    "\\n",
    "\"",
    "%3D",
    "aB3dE5gH7jK9mN1pQ3",
    ".",
    "é",
    "a b",
    "\n",
    "eyJ.",
];

#[test]
fn every_prefix_behind_itself_is_linear_work() {
    let work = |text: &str| {
        let detector = Detector::new(Builtin::Secrets, &[], &[]).unwrap();
        detector.find(text);
        detector.work()
    };
    let mut at = 0;
    for family in FAMILIES {
        for prefix in family.prefixes {
            // Five of the twenty with each prefix, all twenty with each family.
            for behind in BEHIND.iter().cycle().skip(at).take(5) {
                let unit = [prefix.text, behind].concat();
                let text = unit.repeat(1 + 6_000 / unit.len());
                let (one, two) = (work(&text), work(&[text.as_str(), text.as_str()].concat()));
                assert!(two * 2 <= one * 5, "{unit:?}: {one} -> {two}");
                assert!(two <= 250 * 2 * text.len() as u64, "{unit:?}: {} a byte", two / (2 * text.len() as u64));
            }
            at = (at + 5) % BEHIND.len();
        }
    }
}
