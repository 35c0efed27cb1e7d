//! `cargo xtask bench`, `simulate`, `prices` and `shots`.

use std::fs;
use std::time::Duration;

use crate::args::Args;
use crate::config::root;
use crate::process::{command, run, watch};
use crate::{Outcome, package, serve, suites, tools};

/// Runs what stands in `benches/`: scripts in Node, `*.bench.mjs` in Node and in Chromium, native benches with cargo.
pub fn bench(args: &mut Args) -> Outcome {
    let only = args.value("--only")?;
    args.finish()?;
    package::build(false)?;
    let chromium = tools::chromium()?;
    let wanted = |name: &str| only.as_deref().is_none_or(|only| name.contains(only));
    for name in scripts().iter().filter(|name| wanted(name)) {
        println!("\n{name} in node");
        run(command("node").arg(format!("benches/{name}")))?;
    }
    for place in ["node", "chromium"] {
        let mut harness = command("node");
        harness.args(["benches/harness.mjs", place]).args(&only).env("CHROMIUM", &chromium.browser);
        run(&mut harness)?;
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap_or_default();
    if manifest.contains("[[bench]]") && only.is_none() {
        run(command("cargo").args(["bench", "--package", "sessionlog"]))?;
    }
    Ok(())
}

fn scripts() -> Vec<String> {
    let entries = fs::read_dir(root().join("benches")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> =
        names.filter(|name| name.ends_with(".mjs") && !name.ends_with(".bench.mjs") && name != "harness.mjs").collect();
    names.sort();
    names
}

/// Runs the seeded simulations: clock, storage faults and interleavings follow from one number each.
pub fn simulate(args: &mut Args) -> Outcome {
    let seeds = args.number("--seeds")?.unwrap_or(1_000);
    args.finish()?;
    println!("simulating {seeds} seeds");
    let tests = ["test", "--profile", "simulate", "--package", "sessionlog", "--lib", "--test", "native"];
    let mut cargo = command("cargo");
    cargo.args(tests).args(["--", "simulat", "seeded"]).env("SEEDS", seeds.to_string());
    let watched = watch(&mut cargo, Duration::from_secs(12 * 60 * 60))?;
    let counts = suites::report::rust_counts(&watched.text);
    match (counts.is_empty(), watched.success) {
        (true, _) => Err("no simulation ran".into()),
        (false, false) => Err(format!("{} of the simulations failed", counts.failed)),
        (false, true) => Ok(()),
    }
}

/// Checks the committed price table and prints its date.
pub fn prices(args: &mut Args) -> Outcome {
    args.finish()?;
    run(command("cargo").args(["run", "--quiet", "--package", "sessionlog", "--example", "prices"]))
}

/// Takes the page's pictures.
pub fn shots(args: &mut Args) -> Outcome {
    args.finish()?;
    let chromium = tools::chromium()?;
    package::build(false)?;
    serve::build_page()?;
    let mut node = command("node");
    if let Ok(own) = std::env::current_exe() {
        node.env("XTASK", own);
    }
    run(node.arg("tests/page/shots.mjs").env("CHROMIUM", chromium.browser))
}
