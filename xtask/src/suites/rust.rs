//! Rust tests: native, and the wasm ones in headless browsers.

use std::path::{Path, PathBuf};

use super::counted;
use super::report::{Counts, rust_counts};
use crate::Outcome;
use crate::config::{Config, root};
use crate::process::{command, on_path};
use crate::tools;

/// Unit, property, structure and documentation tests of the crate and of xtask itself.
pub fn native(_: &Config) -> Outcome<Counts> {
    counted(command("cargo").args(["test", "--workspace", "--no-fail-fast"]), 20, rust_counts)
}

/// `wasm-bindgen-test` in the system's headless Chromium, as an isolated page and as the plain one that most users have;
/// in Firefox too where its driver is installed.
pub fn web(config: &Config) -> Outcome<Counts> {
    let tests = web_tests();
    if tests.is_empty() {
        return Ok(Counts::default());
    }
    let target = config.text("tools.rust-target")?;
    tools::rust_target(config)?;
    let run = WebRun { target, tests, runner: tools::wasm_bindgen(config)?.runner };
    let driver = tools::chromium()?.driver;
    let mut counts = run.counts("Chromium", "CHROMEDRIVER", &driver, true)?;
    counts.add(run.counts("Chromium, not isolated", "CHROMEDRIVER", &driver, false)?);
    match on_path("geckodriver") {
        Some(driver) => counts.add(run.counts("Firefox", "GECKODRIVER", &driver, true)?),
        None => counts.add(Counts {
            skipped: 1,
            notes: vec!["skipped Firefox: no geckodriver on PATH (cargo install geckodriver)".into()],
            ..Counts::default()
        }),
    }
    Ok(counts)
}

struct WebRun<'a> {
    target: &'a str,
    tests: Vec<String>,
    runner: PathBuf,
}

impl WebRun<'_> {
    fn counts(&self, browser: &str, driver_variable: &str, driver: &Path, isolated: bool) -> Outcome<Counts> {
        println!("-- {browser}");
        let mut cargo = command("cargo");
        cargo.args(["test", "--no-fail-fast", "--package", "sessionlog", "--target", self.target]);
        cargo.args(["--features", "conformance"]);
        for name in &self.tests {
            cargo.args(["--test", name]);
        }
        let runner = format!("CARGO_TARGET_{}_RUNNER", self.target.to_uppercase().replace('-', "_"));
        cargo.env(runner, &self.runner).env("WASM_BINDGEN_TEST_TIMEOUT", "120");
        for variable in ["CHROMEDRIVER", "GECKODRIVER", "SAFARIDRIVER"] {
            cargo.env_remove(variable);
        }
        cargo.env(driver_variable, driver);
        if !isolated {
            cargo.env("WASM_BINDGEN_TEST_NO_ORIGIN_ISOLATION", "1");
        }
        let mut counts = counted(&mut cargo, 15, rust_counts)?;
        if counts.is_empty() {
            counts.add(Counts::failure(format!("{browser}: ran nothing")));
        }
        Ok(counts)
    }
}

/// The test targets whose files stand in `tests/web`.
fn web_tests() -> Vec<String> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let tests = manifest.get("test").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let text =
        |test: &toml::Value, key: &str| test.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    tests.iter().filter(|test| text(test, "path").starts_with("tests/web/")).map(|test| text(test, "name")).collect()
}
