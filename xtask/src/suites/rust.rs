//! Rust tests: native, and the wasm ones in headless Chromium.

use super::counted;
use super::report::{Counts, rust_counts};
use crate::Outcome;
use crate::config::{Config, root};
use crate::process::command;
use crate::tools;

/// Unit, property, structure and documentation tests of the crate and of xtask itself.
pub fn native(_: &Config) -> Outcome<Counts> {
    counted(command("cargo").args(["test", "--workspace", "--no-fail-fast"]), 20, rust_counts)
}

/// `wasm-bindgen-test` in the system's headless Chromium.
pub fn web(config: &Config) -> Outcome<Counts> {
    let target = config.text("tools.rust-target")?;
    let tests = web_tests();
    if tests.is_empty() {
        return Ok(Counts::default());
    }
    tools::rust_target(config)?;
    let bindgen = tools::wasm_bindgen(config)?;
    let chromium = tools::chromium()?;
    let mut cargo = command("cargo");
    cargo.args(["test", "--no-fail-fast", "--package", "sessionlog", "--target", target]);
    for name in &tests {
        cargo.args(["--test", name]);
    }
    let runner = format!("CARGO_TARGET_{}_RUNNER", target.to_uppercase().replace('-', "_"));
    cargo.env(runner, bindgen.runner).env("CHROMEDRIVER", chromium.driver).env("WASM_BINDGEN_TEST_TIMEOUT", "120");
    counted(&mut cargo, 15, rust_counts)
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
