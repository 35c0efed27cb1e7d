//! Sets up what a task needs, and is quick when all of it is there. What cannot be set up is said in one line.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::Outcome;
use crate::config::{Config, root};
use crate::process::{command, on_path, output, run};

/// The wasm target of the toolchain in use.
pub fn rust_target(config: &Config) -> Outcome {
    let target = config.text("tools.rust-target")?;
    let libdir = output(command("rustc").args(["--print", "target-libdir", "--target", target]));
    if libdir.is_some_and(|dir| PathBuf::from(dir).is_dir()) {
        return Ok(());
    }
    if on_path("rustup").is_none() {
        return Err(format!("the Rust target {target} is missing: install it with your Rust packages (or use rustup)"));
    }
    run(command("rustup").args(["target", "add", target]))
}

/// wasm-bindgen and its test runner in exactly the version of `Cargo.lock`: from PATH, else from `.tools/`, else built there.
pub fn wasm_bindgen(config: &Config) -> Outcome<WasmBindgen> {
    let version = config.wasm_bindgen()?;
    let local = root().join(".tools/bin");
    let in_dir = |dir: PathBuf| WasmBindgen {
        version: version.clone(),
        cli: dir.join("wasm-bindgen"),
        runner: dir.join("wasm-bindgen-test-runner"),
    };
    let from_path = on_path("wasm-bindgen").and_then(|path| path.parent().map(|dir| in_dir(dir.to_path_buf())));
    for found in from_path.into_iter().chain([in_dir(local.clone())]) {
        if found.installed().as_deref() == Some(&version) && found.runner.is_file() {
            return Ok(found);
        }
    }
    cargo_install("wasm-bindgen-cli", &version)?;
    Ok(in_dir(local))
}

/// Builds a program of crates.io into `.tools/bin`.
fn cargo_install(name: &str, version: &str) -> Outcome {
    println!("installing {name} {version} into .tools (once)");
    let wanted = format!("={version}");
    let tools = root().join(".tools");
    let install = |extra: &[&str]| {
        let args = ["install", "--quiet", name, "--version", &wanted, "--root"];
        // Its own target directory: a build of the tool must not disturb the project's.
        run(command("cargo").args(args).arg(&tools).args(extra).env("CARGO_TARGET_DIR", tools.join("target")))
    };
    install(&["--locked"]).or_else(|_| install(&[]))?;
    let _ = fs::remove_dir_all(tools.join("target"));
    Ok(())
}

/// A program from PATH in whatever version, else from `.tools/`, else built there in the version of `wasm-pack.toml`.
fn installed_or_built(name: &str, config: &Config) -> Outcome<PathBuf> {
    let local = root().join(".tools/bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if let Some(found) = on_path(name).or_else(|| Some(local.clone()).filter(|path| path.is_file())) {
        return Ok(found);
    }
    cargo_install(name, config.text(&format!("tools.{name}"))?)?;
    Ok(local)
}

/// wasm-pack, for the tests that call it as a user would.
pub fn wasm_pack(config: &Config) -> Outcome<PathBuf> {
    installed_or_built("wasm-pack", config)
}

/// The two programs of wasm-bindgen-cli.
pub struct WasmBindgen {
    pub version: String,
    pub cli: PathBuf,
    pub runner: PathBuf,
}

impl WasmBindgen {
    fn installed(&self) -> Option<String> {
        output(command(&self.cli).arg("--version"))?.split_whitespace().nth(1).map(str::to_owned)
    }
}

/// Node.js 20 or newer.
pub fn node() -> Outcome {
    let version = output(command("node").arg("--version")).ok_or("Node.js is missing: install Node.js 20 or newer")?;
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= 20 => Ok(()),
        _ => Err(format!("Node.js {version} is too old: install Node.js 20 or newer")),
    }
}

/// The npm packages of the lock file in `dir`, when they are not installed yet.
pub fn npm(dir: &str) -> Outcome {
    node()?;
    let dir = root().join(dir);
    let lock = fs::read(dir.join("package-lock.json")).map_err(|error| format!("package-lock.json: {error}"))?;
    // npm writes its own lock into node_modules in another form, so ours is remembered beside it.
    let stamp = dir.join("node_modules/.installed-lock.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    if on_path("npm").is_none() {
        return Err("npm is missing: install it with Node.js".into());
    }
    println!("installing npm packages (once)");
    run(command("npm").current_dir(&dir).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    fs::write(&stamp, lock).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// A browser and its driver.
pub struct Browser {
    pub browser: PathBuf,
    pub driver: PathBuf,
}

/// The system's Chromium: found, else installed where the package manager is apt and we may use it.
pub fn chromium() -> Outcome<Browser> {
    if let Some(found) = find_chromium() {
        return Ok(found);
    }
    let install = "install Chromium and its driver (Debian: apt-get install chromium chromium-driver)";
    if on_path("apt-get").is_none() {
        return Err(format!("Chromium or chromedriver is missing: {install}"));
    }
    apt_install(&["chromium", "chromium-driver"])
        .map_err(|_| format!("Chromium or chromedriver is missing: {install}"))?;
    find_chromium().ok_or_else(|| format!("Chromium or chromedriver is still missing: {install}"))
}

/// The system's Firefox, installed as Chromium is, and its driver.
pub fn firefox(config: &Config) -> Outcome<Browser> {
    let install = "install Firefox (Debian: apt-get install firefox-esr)";
    let browser = match find_firefox() {
        Some(found) => found,
        None if on_path("apt-get").is_none() => return Err(format!("Firefox is missing: {install}")),
        None => {
            apt_install(&["firefox-esr"]).map_err(|_| format!("Firefox is missing: {install}"))?;
            find_firefox().ok_or_else(|| format!("Firefox is still missing: {install}"))?
        }
    };
    Ok(Browser { browser, driver: installed_or_built("geckodriver", config)? })
}

fn find_firefox() -> Option<PathBuf> {
    let named = std::env::var_os("FIREFOX").map(PathBuf::from).filter(|path| path.is_file());
    named.or_else(|| ["firefox-esr", "firefox"].into_iter().find_map(on_path))
}

/// WebKitGTK's driver, and the display it needs: it has no headless mode.
pub fn webkit() -> Outcome<PathBuf> {
    let found = || on_path("WebKitWebDriver").filter(|_| on_path("xvfb-run").is_some());
    let install = "install WebKitGTK's driver (Debian: apt-get install webkit2gtk-driver xvfb xauth)";
    if let Some(driver) = found() {
        return Ok(driver);
    }
    if on_path("apt-get").is_none() {
        return Err(format!("WebKitWebDriver or xvfb-run is missing: {install}"));
    }
    apt_install(&["webkit2gtk-driver", "xvfb", "xauth"])
        .map_err(|_| format!("WebKitWebDriver or xvfb-run is missing: {install}"))?;
    found().ok_or_else(|| format!("WebKitWebDriver or xvfb-run is still missing: {install}"))
}

fn apt_install(packages: &[&str]) -> Outcome {
    println!("installing {} with apt-get (once)", packages.join(" and "));
    let _ = apt_get(&["update"]);
    apt_get(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

fn apt_get(args: &[&str]) -> Outcome {
    let is_root = output(command("id").arg("-u")).as_deref() == Some("0");
    let mut apt = if is_root { command("apt-get") } else { command("sudo") };
    if !is_root {
        // Without a password or not at all: a test run must not wait for someone to type.
        apt.args(["--non-interactive", "apt-get"]);
    }
    run(apt
        .args(["-qq", "-o", "Dpkg::Use-Pty=0"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null()))
}

fn find_chromium() -> Option<Browser> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from).filter(|path| path.is_file());
    let browser = named.or_else(|| ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(on_path))?;
    let named = std::env::var_os("CHROMEDRIVER").map(PathBuf::from).filter(|path| path.is_file());
    Some(Browser { browser, driver: named.or_else(|| on_path("chromedriver"))? })
}
