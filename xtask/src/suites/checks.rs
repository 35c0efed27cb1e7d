//! Checks that are commands rather than tests.

use super::report::Counts;
use crate::Outcome;
use crate::config::{Config, root};
use crate::process::{command, run, run_quiet};
use crate::{size, tools};

/// rustfmt.
pub fn format(_: &Config) -> Outcome<Counts> {
    Ok(Counts::one(run(command("cargo").args(["fmt", "--all", "--check"]))))
}

/// clippy, natively and for wasm: a warning is a failure.
pub fn lints(config: &Config) -> Outcome<Counts> {
    tools::rust_target(config)?;
    let target = config.text("tools.rust-target")?;
    let clippy = |args: &[&str]| {
        run(command("cargo").args(["clippy", "--quiet", "--all-targets"]).args(args).args(["--", "-D", "warnings"]))
    };
    let mut counts = Counts::one(clippy(&["--workspace"]));
    counts.add(Counts::one(clippy(&["--package", "sessionlog", "--target", target, "--features", "conformance"])));
    Ok(counts)
}

/// The shell's TypeScript, and samples that must and must not compile against the published declarations.
pub fn types(_: &Config) -> Outcome<Counts> {
    tools::npm("")?;
    let mut counts = Counts::default();
    for compiler in ["node_modules/typescript/bin/tsc", "node_modules/typescript5/bin/tsc"] {
        for project in ["tsconfig.json", "tests/types/tsconfig.json"] {
            let check = command("node").arg(root().join(compiler)).args(["--project", project]).status();
            let passes = check.map_err(|error| format!("node: {error}"))?.success();
            counts.add(Counts::one(if passes { Ok(()) } else { Err(format!("{compiler} --project {project}")) }));
        }
    }
    counts.add(Counts::one(run_quiet(command("node").arg("tests/types/no-any.mjs"))));
    Ok(counts)
}

/// The budget in `wasm-pack.toml`.
pub fn size(config: &Config) -> Outcome<Counts> {
    Ok(Counts::one(size::check(config)))
}
