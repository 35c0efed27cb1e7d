//! Streams: the joined output equals the whole text scrubbed, however the text is cut.

use std::borrow::Cow;
use std::rc::Rc;

use sessionlog::core::error::Result;
use sessionlog::core::scrub::{Chain, Pattern, ScrubStream, Scrubber, Values};

use super::{builtin, detector, text_of, token, vectors};

fn stream(chain: &Chain, pieces: &[&str]) -> String {
    let mut stream = ScrubStream::new(chain);
    let mut out: String = pieces.iter().map(|p| stream.push(p).unwrap()).collect();
    out.push_str(&stream.end().unwrap());
    out
}

fn at_every_cut(name: &str, chain: &Chain, text: &str) {
    let whole = chain.scrub(text).unwrap();
    for (cut, _) in text.char_indices() {
        assert_eq!(stream(chain, &[&text[..cut], &text[cut..]]), whole, "{name} cut at {cut}");
    }
    let singles: Vec<String> = text.chars().map(String::from).collect();
    let singles: Vec<&str> = singles.iter().map(String::as_str).collect();
    assert_eq!(stream(chain, &singles), whole, "{name} one by one");
}

#[test]
fn every_vector_at_every_cut() {
    for file in ["positives.jsonl", "negatives.jsonl"] {
        for line in vectors(file) {
            let chain = Chain::of(Rc::new(detector(line["pii"] == true)));
            at_every_cut(line["name"].as_str().unwrap(), &chain, &text_of(&line["parts"]));
        }
    }
}

#[test]
fn neighbours_at_every_cut() {
    // Texts that follow one another see each other's ends.
    let texts: Vec<String> = ["positives.jsonl", "negatives.jsonl"]
        .iter()
        .flat_map(|f| vectors(f))
        .map(|l| text_of(&l["parts"]))
        .filter(|t| t.len() < 400)
        .collect();
    let chain = builtin();
    for (at, pair) in texts.windows(2).enumerate().step_by(3) {
        for gap in ["", " ", "\n", "="] {
            let text = pair.join(gap);
            let whole = chain.scrub(&text).unwrap();
            let step = 1 + text.len() / 40;
            for cut in (0..text.len()).step_by(step).filter(|c| text.is_char_boundary(*c)) {
                assert_eq!(stream(&chain, &[&text[..cut], &text[cut..]]), whole, "{at} {gap:?} cut at {cut}");
            }
            assert_eq!(chain.scrub(&whole).unwrap(), whole, "{at} {gap:?} twice");
        }
    }
}

struct Upper;

impl Scrubber for Upper {
    fn name(&self) -> &str {
        "upper"
    }
    fn scrub<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        Ok(text.replace("secret!", "#").into())
    }
    fn max_match_length(&self) -> Option<usize> {
        Some(7)
    }
}

#[test]
fn chains_of_every_kind_at_every_cut() {
    let mut chain = builtin();
    chain.add(1, Rc::new(Values::new(&["hunter2hunter2".to_owned(), "hunter2h".to_owned()], None).unwrap()));
    chain.add(2, Rc::new(Pattern::new("\\bx\\d+y\\b", None, None).unwrap()));
    chain.add(3, Rc::new(Upper));
    let text = format!("a {} hunter2hunter3 hunter2hunter2 x12y x12yy secret! 🔥 sec ret", token());
    at_every_cut("chain", &chain, &text);
    assert_eq!(stream(&chain, &["x1", "2y"]), "[REDACTED:pattern]");
}

#[test]
fn what_cannot_become_a_secret_is_released_at_once() {
    let mut stream = ScrubStream::new(&builtin());
    assert_eq!(stream.push("Hello there. ").unwrap(), "Hello there. ");
    assert_eq!(stream.push("wor").unwrap(), "");
    assert_eq!(stream.push("ld, ").unwrap(), "world, ");
    let secret = token();
    assert_eq!(stream.push(&secret).unwrap(), "");
    assert_eq!(stream.push(" ").unwrap(), "[REDACTED:github-pat] ");
    assert_eq!(stream.end().unwrap(), "");
}

/// A stream of 20-byte deltas holds back 16 bytes or less on average.
#[test]
fn little_is_held_back() {
    let texts: Vec<String> = vectors("negatives.jsonl")
        .iter()
        .filter(|l| l["cat"] != "base64img" && l["cat"] != "pubkey")
        .map(|l| text_of(&l["parts"]))
        .collect();
    let text = texts.join("\n");
    let chars: Vec<char> = text.chars().collect();
    let mut stream = ScrubStream::new(&builtin());
    let (mut given, mut released, mut held, mut pushes) = (0i64, 0i64, 0i64, 0i64);
    for piece in chars.chunks(20) {
        let piece: String = piece.iter().collect();
        given += piece.len() as i64;
        released += stream.push(&piece).unwrap().len() as i64;
        held += (given - released).max(0);
        pushes += 1;
    }
    assert!(held <= 16 * pushes, "{} bytes on average", held / pushes);
}
