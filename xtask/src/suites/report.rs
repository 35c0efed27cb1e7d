//! What suites found, and how their output is read.

use std::time::Duration;

/// What one suite found.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    /// What was skipped or went wrong, one line each.
    pub notes: Vec<String>,
}

impl Counts {
    /// A check that is one thing: it holds or not.
    pub fn one(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self { passed: 1, ..Self::default() },
            Err(note) => Self::failure(note),
        }
    }

    /// One failure with its reason.
    pub fn failure(note: impl Into<String>) -> Self {
        Self { failed: 1, notes: vec![note.into()], ..Self::default() }
    }

    /// One thing that was skipped, with its reason.
    pub fn skip(note: impl Into<String>) -> Self {
        Self { skipped: 1, notes: vec![note.into()], ..Self::default() }
    }

    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.notes.extend(other.notes);
    }

    /// Whether no test ran.
    pub fn is_empty(&self) -> bool {
        self.passed + self.failed == 0
    }
}

/// Reads what `cargo test` and the wasm test runner print. Skipped tests are listed with their reasons.
pub fn rust_counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines().map(str::trim) {
        if let Some((_, numbers)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) {
            counts.passed += number_before(numbers, " passed");
            counts.failed += number_before(numbers, " failed");
            counts.skipped += number_before(numbers, " ignored");
        } else if let Some((name, reason)) = ignored(line) {
            counts.notes.push(format!("skipped {name}: {reason}"));
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            counts.notes.push(format!("FAILED {name}"));
        }
    }
    counts
}

fn ignored(line: &str) -> Option<(&str, &str)> {
    let (name, state) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = state.strip_prefix("ignored")?;
    Some((name, reason.strip_prefix(", ").filter(|reason| !reason.is_empty()).unwrap_or("no reason given")))
}

fn number_before(text: &str, word: &str) -> u64 {
    let found = text.split(';').find_map(|part| part.trim().strip_suffix(word.trim_start()));
    found.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Reads the TAP that `node --test` writes. The summary counts tests, not files; a cancelled test is a failed one.
pub fn tap_counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines() {
        let number = |word: &str| line.strip_prefix(word).and_then(|rest| rest.trim().parse::<u64>().ok()).unwrap_or(0);
        counts.passed += number("# pass ");
        counts.failed += number("# fail ") + number("# cancelled ");
        counts.skipped += number("# skipped ") + number("# todo ");
        let line = line.trim();
        if let Some((name, reason)) = tap_skip(line) {
            counts.notes.push(format!("skipped {name}: {reason}"));
        } else if let Some(name) = line.strip_prefix("not ok ") {
            counts.notes.push(format!("FAILED {}", tap_name(name)));
        }
    }
    counts
}

fn tap_skip(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("ok ")?;
    let (name, reason) = rest.split_once(" # SKIP").or_else(|| rest.split_once(" # TODO"))?;
    Some((tap_name(name), Some(reason.trim()).filter(|reason| !reason.is_empty()).unwrap_or("no reason given")))
}

fn tap_name(rest: &str) -> &str {
    rest.split_once(" - ").map_or(rest, |(_, name)| name)
}

/// The table of counts, the notes, and the last line.
pub fn print(results: &[(&str, Counts, Duration)]) {
    println!("\n{:<10} {:>7} {:>7} {:>8} {:>8}", "suite", "passed", "failed", "skipped", "seconds");
    let mut total = Counts::default();
    for (name, counts, time) in results {
        let seconds = time.as_secs_f64();
        println!("{name:<10} {:>7} {:>7} {:>8} {seconds:>8.1}", counts.passed, counts.failed, counts.skipped);
        total.passed += counts.passed;
        total.failed += counts.failed;
        total.skipped += counts.skipped;
    }
    for (name, counts, _) in results {
        for note in &counts.notes {
            println!("{name}: {note}");
        }
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_output_is_counted_over_all_binaries() {
        let text = "test a::b ... ok\ntest c ... ignored, needs a disk\ntest d ... FAILED\n\
            test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
            test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n";
        let counts = rust_counts(text);
        assert_eq!((counts.passed, counts.failed, counts.skipped), (43, 1, 1));
        assert_eq!(counts.notes, ["skipped c: needs a disk", "FAILED d"]);
    }

    #[test]
    fn tap_output_is_counted_from_its_summary() {
        let text = "TAP version 13\n# Subtest: x\nok 1 - x\nok 2 - y # SKIP no Deno here\n    not ok 1 - inner\n\
            1..2\n# tests 4\n# suites 0\n# pass 1\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 0\n";
        let counts = tap_counts(text);
        assert_eq!((counts.passed, counts.failed, counts.skipped), (1, 2, 1));
        assert_eq!(counts.notes, ["skipped y: no Deno here", "FAILED inner"]);
    }

    #[test]
    fn nothing_ran_is_seen() {
        assert!(rust_counts("running 0 tests\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured").is_empty());
        assert!(tap_counts("TAP version 13\n1..0\n# tests 0\n# pass 0\n# fail 0").is_empty());
    }
}
