//! Scrubbers against the shared vectors, lessons from the field, streams at every cut, and hostile texts.

mod held_out;
// Counts the work of the scanner, which a wasm build does not.
#[cfg(not(target_family = "wasm"))]
mod hostile;
mod lessons;
mod payloads;
mod streams;
mod texts;

use std::path::PathBuf;

use serde_json::Value;
use sessionlog::core::scrub::{Builtin, Chain, Detector};

/// Every line of a file of vectors.
pub(crate) fn vectors(name: &str) -> Vec<Value> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let places =
        [root.join("../shared/vectors/scrub").join(name), root.join("tests/fixtures/vectors/scrub").join(name)];
    let found: Vec<String> = places.iter().filter_map(|p| std::fs::read_to_string(p).ok()).collect();
    assert!(!found.is_empty(), "no vectors {name}");
    let lines = found.iter().flat_map(|text| text.lines().filter(|l| !l.trim().is_empty()));
    let mut seen = std::collections::HashSet::new();
    lines.filter(|line| seen.insert(*line)).map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

pub(crate) fn text_of(value: &Value) -> String {
    value.as_array().expect("pieces").iter().map(|p| p.as_str().expect("a piece")).collect()
}

pub(crate) fn detector(pii: bool) -> Detector {
    let builtin = if pii { Builtin::Pii } else { Builtin::Secrets };
    Detector::new(builtin, &[], &[]).expect("the built-in rules")
}

pub(crate) fn builtin() -> Chain {
    Chain::of(std::rc::Rc::new(detector(false)))
}

/// A synthetic token that no file holds in one piece.
pub(crate) fn token() -> String {
    ["ghp", "_Zq81kTmV", "x0bYw3RcNe57PsDhJ2gLfUa6oQ1y"].concat()
}
