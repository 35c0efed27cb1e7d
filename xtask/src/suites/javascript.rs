//! Tests that run in Node against the built package, and through it in Chromium.

use std::fs;

use super::report::{Counts, tap_counts};
use super::{counted, test_files};
use crate::Outcome;
use crate::config::{Config, root};
use crate::process::command;
use crate::{serve, tools};

/// The public API against the built package.
pub fn js(_: &Config) -> Outcome<Counts> {
    node_tests("js", "tests/js", 15, &[])
}

/// The page in headless Chromium, its main stories in Firefox too.
pub fn page(config: &Config) -> Outcome<Counts> {
    let browsers = browsers(config)?;
    serve::build_page()?;
    node_tests("page", "tests/page", 20, &browsers)
}

/// The packed tarball in runtimes and bundlers.
pub fn pack(config: &Config) -> Outcome<Counts> {
    let browsers = browsers(config)?;
    tools::npm("tests/pack")?;
    node_tests("pack", "tests/pack", 30, &browsers)
}

/// Where the tests find the browsers. Without Firefox its tests skip themselves, and say so.
fn browsers(config: &Config) -> Outcome<Vec<(&'static str, String)>> {
    let mut found = vec![("CHROMIUM", tools::chromium()?.browser.display().to_string())];
    if let Ok(firefox) = tools::firefox(config) {
        found.push(("FIREFOX", firefox.browser.display().to_string()));
    }
    Ok(found)
}

/// The worker that hosts sessions, in workerd, and clients of it.
pub fn edge(_: &Config) -> Outcome<Counts> {
    let chromium = tools::chromium()?;
    tools::npm("edge")?;
    node_tests("edge", "tests/edge", 15, &[("CHROMIUM", chromium.browser.display().to_string())])
}

fn node_tests(name: &str, dir: &str, minutes: u64, env: &[(&str, String)]) -> Outcome<Counts> {
    let files = test_files(dir);
    if files.is_empty() {
        return Ok(Counts::default());
    }
    let tap = root().join(format!("target/{name}.tap"));
    let _ = fs::remove_file(&tap);
    let mut node = command("node");
    // People read the one form, we count from the other.
    node.args(["--test", "--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=tap"]);
    node.arg(format!("--test-reporter-destination={}", tap.display()));
    if dir != "tests/js" {
        // Each of these starts browsers or bundlers: side by side they only slow each other down.
        node.arg("--test-concurrency=1");
    }
    node.args(&files).envs(env.iter().map(|(key, value)| (key, value)));
    if let Ok(own) = std::env::current_exe() {
        node.env("XTASK", own);
    }
    counted(&mut node, minutes, |_| fs::read_to_string(&tap).map(|text| tap_counts(&text)).unwrap_or_default())
}
