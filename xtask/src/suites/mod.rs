//! `cargo xtask test`: every suite, a table of counts, and a failure when one fails or ran nothing.

mod checks;
mod javascript;
pub mod report;
mod rust;

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::args::Args;
use crate::config::{Config, root};
use crate::process::{Watched, watch};
use report::Counts;

/// A suite: its name, how long it may take, and what it does.
struct Suite {
    name: &'static str,
    /// Whether it uses the built package.
    needs_package: bool,
    run: fn(&Config) -> Outcome<Counts>,
}

/// In the order they run: what fails fastest stands first.
const SUITES: [Suite; 10] = [
    Suite { name: "format", needs_package: false, run: checks::format },
    Suite { name: "lints", needs_package: false, run: checks::lints },
    Suite { name: "native", needs_package: false, run: rust::native },
    Suite { name: "web", needs_package: false, run: rust::web },
    Suite { name: "types", needs_package: true, run: checks::types },
    Suite { name: "size", needs_package: true, run: checks::size },
    Suite { name: "js", needs_package: true, run: javascript::js },
    Suite { name: "page", needs_package: true, run: javascript::page },
    Suite { name: "edge", needs_package: true, run: javascript::edge },
    Suite { name: "pack", needs_package: true, run: javascript::pack },
];

/// Runs all suites, or those named with `--only`.
pub fn task(args: &mut Args) -> Outcome {
    let only = args.value("--only")?;
    args.finish()?;
    let suites = chosen(only.as_deref())?;
    let config = Config::read()?;
    let package = prepare(&suites);
    let results: Vec<_> = suites
        .iter()
        .map(|suite| {
            println!("\n== {}", suite.name);
            let started = Instant::now();
            (suite.name, result(suite, &config, &package), started.elapsed())
        })
        .collect();
    report::print(&results);
    if results.iter().all(|(_, counts, _)| counts.failed == 0) {
        return Ok(());
    }
    // The table says it all and ends with the line of counts.
    std::process::exit(1)
}

fn chosen(only: Option<&str>) -> Outcome<Vec<&'static Suite>> {
    let Some(only) = only else { return Ok(SUITES.iter().collect()) };
    let names: Vec<_> = only.split(',').map(str::trim).collect();
    let known = SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>();
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(format!("no suite {name:?}; there are {}", known.join(", "))),
        None => Ok(SUITES.iter().filter(|suite| names.contains(&suite.name)).collect()),
    }
}

/// Builds once what several suites use. A failure is theirs: the others run all the same.
fn prepare(suites: &[&Suite]) -> Outcome {
    if !suites.iter().any(|suite| suite.needs_package) {
        return Ok(());
    }
    println!("\n== package");
    crate::package::build(false).inspect_err(|error| eprintln!("{error}"))
}

fn result(suite: &Suite, config: &Config, package: &Outcome) -> Counts {
    if suite.needs_package && package.is_err() {
        return Counts::failure("the package could not be built");
    }
    match (suite.run)(config) {
        Ok(mut counts) => {
            if counts.is_empty() {
                counts.add(Counts::failure("ran nothing"));
            }
            counts
        }
        Err(error) => {
            eprintln!("{error}");
            Counts::failure(error.lines().next().unwrap_or("failed").to_owned())
        }
    }
}

/// Runs a command and counts its tests; a command that failed without a failed test counts as one.
fn counted(command: &mut std::process::Command, minutes: u64, read: impl FnOnce(&str) -> Counts) -> Outcome<Counts> {
    let watched = watch(command, Duration::from_secs(minutes * 60))?;
    let mut counts = read(&watched.text);
    if let Some(note) = fault(&watched, minutes)
        && (counts.failed == 0 || watched.timed_out)
    {
        counts.add(Counts::failure(note));
    }
    Ok(counts)
}

fn fault(watched: &Watched, minutes: u64) -> Option<String> {
    match (watched.timed_out, watched.success) {
        (true, _) => Some(format!("took more than {minutes} minutes and was ended")),
        (false, false) => Some("failed before or beside its tests; see its output above".into()),
        (false, true) => None,
    }
}

/// Test files in a folder, as paths from the root.
fn test_files(dir: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(dir)).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".test.mjs"))
        .map(|name| format!("{dir}/{name}"))
        .collect();
    names.sort();
    names
}
