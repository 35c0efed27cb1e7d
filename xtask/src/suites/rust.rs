//! Rust tests: native, and the wasm ones in headless browsers.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::counted;
use super::report::{Counts, rust_counts};
use crate::Outcome;
use crate::config::{Config, root};
use crate::process::command;
use crate::tools::{self, WasmBindgen};

/// Unit, property, structure and documentation tests of the crate and of xtask itself.
pub fn native(_: &Config) -> Outcome<Counts> {
    counted(command("cargo").args(["test", "--workspace", "--no-fail-fast"]), 20, rust_counts)
}

/// `wasm-bindgen-test` in headless browsers: with `wasm-pack test` as a user would call it, which serves an isolated page, and
/// once more in Chromium as the plain page that most users have.
pub fn web(config: &Config) -> Outcome<Counts> {
    tools::rust_target(config)?;
    let chromium = tools::chromium()?;
    let bindgen = tools::wasm_bindgen(config)?;
    let wasm_pack = WasmPack { program: tools::wasm_pack(config)?, bindgen: &bindgen };
    let mut counts = wasm_pack.test("--chrome", "--chromedriver", &chromium.driver)?;
    counts.add(plain_page(config, &bindgen, &chromium.driver)?);
    match tools::firefox(config) {
        Ok(firefox) => counts.add(wasm_pack.test("--firefox", "--geckodriver", &firefox.driver)?),
        Err(reason) => {
            counts.add(Counts { skipped: 1, notes: vec![format!("skipped Firefox: {reason}")], ..Counts::default() })
        }
    }
    Ok(counts)
}

struct WasmPack<'a> {
    program: PathBuf,
    bindgen: &'a WasmBindgen,
}

impl WasmPack<'_> {
    fn test(&self, browser: &str, driver_flag: &str, driver: &Path) -> Outcome<Counts> {
        println!("-- wasm-pack test --headless {browser}");
        let mut test = command(&self.program);
        test.args(["test", "--headless", browser, driver_flag]).arg(driver);
        // It takes wasm-bindgen from PATH when the version is right, and would download it otherwise.
        let mut path = self.bindgen.cli.parent().map_or_else(Default::default, |dir| dir.as_os_str().to_owned());
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        counts(test.env("PATH", path), browser)
    }
}

fn plain_page(config: &Config, bindgen: &WasmBindgen, driver: &Path) -> Outcome<Counts> {
    println!("-- Chromium, not isolated");
    let target = config.text("tools.rust-target")?;
    let mut cargo = command("cargo");
    cargo.args(["test", "--no-fail-fast", "--package", "sessionlog", "--target", target]);
    for name in web_tests() {
        cargo.args(["--test", &name]);
    }
    let runner = format!("CARGO_TARGET_{}_RUNNER", target.to_uppercase().replace('-', "_"));
    cargo.env(runner, &bindgen.runner);
    for variable in ["GECKODRIVER", "SAFARIDRIVER"] {
        cargo.env_remove(variable);
    }
    cargo.env("CHROMEDRIVER", driver).env("WASM_BINDGEN_TEST_NO_ORIGIN_ISOLATION", "1");
    counts(&mut cargo, "Chromium, not isolated")
}

fn counts(test: &mut Command, browser: &str) -> Outcome<Counts> {
    let mut counts = counted(test.env("WASM_BINDGEN_TEST_TIMEOUT", "120"), 15, rust_counts)?;
    if counts.is_empty() {
        counts.add(Counts::failure(format!("{browser}: ran nothing")));
    }
    Ok(counts)
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
