//! Recall, precision, negatives byte for byte, JSON intact, idempotence.

use serde_json::Value;
use sessionlog::core::scrub::{Match, Scrubber};

use super::{detector, text_of, vectors};

fn changed(text: &str, found: &[Match]) -> Vec<(usize, usize)> {
    found.iter().map(|m| (units(text, m.start), units(text, m.end))).collect()
}

fn units(text: &str, at: usize) -> usize {
    text[..at].encode_utf16().count()
}

/// Whether no long run of the secret is left.
pub(super) fn caught(secret: &str, out: &str) -> bool {
    let chars: Vec<char> = secret.chars().collect();
    let run = 4.max(12.min(chars.len() / 3)) + 1;
    !chars.windows(run.min(chars.len())).any(|w| out.contains(&w.iter().collect::<String>()))
}

#[test]
fn positives_are_caught_and_little_else() {
    let (mut secrets, mut missed, mut regions, mut extra) = (0, Vec::new(), 0, Vec::new());
    for line in vectors("positives.jsonl") {
        let text = text_of(&line["parts"]);
        let detector = detector(line["pii"] == true);
        let found = detector.find(&text);
        let out = detector.scrub(&text).unwrap();
        let listed = line["secrets"].as_array().unwrap();
        for secret in listed {
            let (start, end) = (secret["start"].as_u64().unwrap() as usize, secret["end"].as_u64().unwrap() as usize);
            secrets += 1;
            if !caught(&text[start..end], &out) {
                missed.push(format!("{} {}", line["name"], secret["type"]));
            }
        }
        for (start, end) in changed(&text, &found) {
            regions += 1;
            let inside = |s: &Value| {
                start < s["wide"][1].as_u64().unwrap() as usize && end > s["wide"][0].as_u64().unwrap() as usize
            };
            if !listed.iter().any(inside) {
                extra.push(format!("{} {start}..{end}", line["name"]));
            }
        }
        if line["json"] == true {
            same_shape(&line["name"], &text, &out);
        }
        assert_eq!(detector.scrub(&out).unwrap(), out, "twice: {}", line["name"]);
    }
    println!("recall {}/{secrets}, regions outside {}/{regions}", secrets - missed.len(), extra.len());
    assert!((missed.len() as f64) < 0.02 * secrets as f64, "missed {missed:#?}");
    assert!((extra.len() as f64) < 0.005 * regions as f64, "outside {extra:#?}");
    assert_eq!((missed, extra), (vec![], vec![]));
}

pub(super) fn same_shape(name: &Value, before: &str, after: &str) {
    let before: Value = serde_json::from_str(before).unwrap();
    let after: Value = serde_json::from_str(after).unwrap_or_else(|e| panic!("{name}: {e}: {after}"));
    assert!(alike(&before, &after), "{name}: {after}");
}

fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && alike(a, b))
        }
        (Value::String(_), Value::String(_)) => true,
        (a, b) => a == b,
    }
}

#[test]
fn negatives_come_out_byte_for_byte() {
    let mut wrong = Vec::new();
    for line in vectors("negatives.jsonl") {
        let text = text_of(&line["parts"]);
        let out = detector(false);
        let out = out.scrub(&text).unwrap();
        if out != text {
            wrong.push(format!("{} {out}", line["name"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Personal data in texts that have none: only what looks exactly like it may go.
#[test]
fn negatives_hold_little_personal_data() {
    let detector = detector(true);
    let hits: Vec<String> = vectors("negatives.jsonl")
        .iter()
        .filter_map(|line| {
            let text = text_of(&line["parts"]);
            let out = detector.scrub(&text).unwrap();
            (out != text).then(|| format!("{} {out}", line["name"]))
        })
        .collect();
    assert!(hits.len() <= 1, "{hits:#?}");
}
