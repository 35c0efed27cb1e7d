//! `cargo xtask build`: module, glue, optimiser, shell — the finished npm package in `pkg/`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::config::{Config, root};
use crate::process::{command, run, run_quiet};
use crate::{Outcome, tools};

/// The default module path would make bundlers look for a file that the entries choose; the reset function makes a new
/// instance after a fault.
const FLAGS: [&str; 6] =
    ["--target", "web", "--out-name", "glue", "--omit-default-module-path", "--experimental-reset-state-function"];

pub fn task(args: &mut Args) -> Outcome {
    let dev = args.flag("--dev");
    args.finish()?;
    build(dev)
}

/// Builds the package; `dev` trades size and speed of the module for a short wait.
pub fn build(dev: bool) -> Outcome {
    let config = Config::read()?;
    tools::rust_target(&config)?;
    tools::npm("")?;
    let bindgen = tools::wasm_bindgen(&config)?;
    let matrix = if dev { "build.dev" } else { "build.release" };
    let profile = config.text(&format!("{matrix}.profile"))?;
    let target = config.text("tools.rust-target")?;

    run(command("cargo")
        .args(["build", "--quiet", "--package", "sessionlog", "--lib", "--target", target])
        .args(["--profile", profile]))?;
    let module = module_path(target, profile);
    let glue = root().join(config.text("build.glue-dir")?);
    let passes = config.texts(&format!("{matrix}.wasm-opt"))?;
    // The optimiser takes seconds: the same module gives the same glue.
    let stamp = stamp(&module, &bindgen.version, &passes)?;
    if fs::read_to_string(glue.join(".stamp")).is_ok_and(|made| made == stamp) {
        return run_quiet(command("node").arg("npm/build.mjs"));
    }
    let _ = fs::remove_file(glue.join(".stamp"));
    fs::create_dir_all(&glue).map_err(|error| format!("{}: {error}", glue.display()))?;
    run(command(&bindgen.cli).args(FLAGS).arg("--out-dir").arg(&glue).arg(&module))?;

    if !passes.is_empty() {
        optimise(&config, &glue.join("glue_bg.wasm"), &passes)?;
    }
    fs::write(glue.join(".stamp"), stamp).map_err(|error| format!("{}: {error}", glue.display()))?;
    run_quiet(command("node").arg("npm/build.mjs"))
}

/// What the glue was made from.
fn stamp(module: &Path, bindgen: &str, passes: &[String]) -> Outcome<String> {
    let facts = fs::metadata(module).and_then(|facts| Ok((facts.len(), facts.modified()?)));
    let (bytes, made) = facts.map_err(|error| format!("{}: {error}", module.display()))?;
    Ok(format!("{} {bytes} {made:?} {bindgen} {passes:?} {FLAGS:?}", module.display()))
}

fn optimise(config: &Config, wasm: &Path, passes: &[String]) -> Outcome {
    check_binaryen(config)?;
    run_quiet(command(root().join("node_modules/.bin/wasm-opt")).arg(wasm).args(passes).arg("-o").arg(wasm))
}

fn check_binaryen(config: &Config) -> Outcome {
    let wanted = config.text("tools.binaryen")?;
    let manifest = fs::read_to_string(root().join("node_modules/binaryen/package.json")).unwrap_or_default();
    if manifest.contains(&format!("\"version\": \"{wanted}\"")) {
        return Ok(());
    }
    Err(format!("wasm-pack.toml names binaryen {wanted}, node_modules holds another: update package.json"))
}

/// Where cargo leaves the module of a profile.
pub fn module_path(target: &str, profile: &str) -> PathBuf {
    let dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir));
    let profile = if profile == "dev" { "debug" } else { profile };
    dir.join(target).join(profile).join("sessionlog.wasm")
}
