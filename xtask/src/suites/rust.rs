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

/// `wasm-bindgen-test` in headless browsers: with `wasm-pack test` as a user would call it, which serves an isolated page;
/// once more in each as the plain page that most users have; and in WebKitGTK.
pub fn web(config: &Config) -> Outcome<Counts> {
    tools::rust_target(config)?;
    let chromium = tools::chromium()?;
    let bindgen = tools::wasm_bindgen(config)?;
    let wasm_pack = WasmPack { program: tools::wasm_pack(config)?, bindgen: &bindgen };
    let mut counts = wasm_pack.test("--chrome", "--chromedriver", &chromium.driver)?;
    let cargo = CargoTest { target: config.text("tools.rust-target")?, bindgen: &bindgen };
    counts.add(cargo.plain_page("Chromium, not isolated", "CHROMEDRIVER", &chromium.driver)?);
    match tools::firefox(config) {
        Ok(firefox) => {
            counts.add(wasm_pack.test("--firefox", "--geckodriver", &firefox.driver)?);
            counts.add(cargo.plain_page("Firefox, not isolated", "GECKODRIVER", &firefox.driver)?);
        }
        Err(reason) => counts.add(Counts::skip(format!("skipped Firefox: {reason}"))),
    }
    match tools::webkit() {
        Ok(driver) => counts.add(cargo.webkit(&driver)?),
        Err(reason) => counts.add(Counts::skip(format!("skipped WebKitGTK: {reason}"))),
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

/// The same tests without wasm-pack, which passes on neither of what these runs need.
struct CargoTest<'a> {
    target: &'a str,
    bindgen: &'a WasmBindgen,
}

impl CargoTest<'_> {
    /// Without the headers that isolate a page.
    fn plain_page(&self, name: &str, variable: &str, driver: &Path) -> Outcome<Counts> {
        println!("-- {name}");
        let mut cargo = command("cargo");
        self.prepare(&mut cargo, &web_tests()).env(variable, driver).env("WASM_BINDGEN_TEST_NO_ORIGIN_ISOLATION", "1");
        counts(&mut cargo, name)
    }

    fn webkit(&self, driver: &Path) -> Outcome<Counts> {
        println!("-- WebKitGTK");
        let (opfs, tests): (Vec<String>, Vec<String>) = web_tests().into_iter().partition(|name| name == OPFS);
        let mut cargo = command("xvfb-run");
        cargo.args(["--auto-servernum", "cargo"]);
        self.prepare(&mut cargo, &tests).env("SAFARIDRIVER", driver);
        let mut counts = counts(&mut cargo, "WebKitGTK")?;
        for name in opfs {
            counts.add(Counts::skip(format!("skipped {name} in WebKitGTK: it has no private file system")));
        }
        Ok(counts)
    }

    fn prepare<'c>(&self, cargo: &'c mut Command, tests: &[String]) -> &'c mut Command {
        cargo.args(["test", "--no-fail-fast", "--package", "sessionlog", "--target", self.target]);
        for name in tests {
            cargo.args(["--test", name]);
        }
        let runner = format!("CARGO_TARGET_{}_RUNNER", self.target.to_uppercase().replace('-', "_"));
        for variable in ["CHROMEDRIVER", "GECKODRIVER", "SAFARIDRIVER"] {
            cargo.env_remove(variable);
        }
        cargo.env(runner, &self.bindgen.runner)
    }
}

/// The one that needs the origin's private file system.
const OPFS: &str = "web_opfs";

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
