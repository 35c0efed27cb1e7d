//! Every task a developer or CI runs: `cargo xtask <task>`.

mod args;
mod config;
mod measure;
mod package;
mod process;
mod serve;
mod size;
mod suites;
mod tools;

use std::process::ExitCode;

use args::Args;

/// What a task returns; the text is one line that says what went wrong or what to install.
type Outcome<T = ()> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask <task>

  start [--port N] [--dev]     build all, serve the chat page on 127.0.0.1
  test [--only SUITE,SUITE]    run every suite
  build [--dev]                the finished npm package in pkg/
  size [--top N]               sizes against the budget, largest crates and functions
  bench [--only NAME]          medians and ratios in Node, Chromium and natively
  simulate [--seeds N]         seeded faults and interleavings
  prices                       check the price table, print its date
  shots                        pictures of the page
  serve [--port N] [--dir D]   serve what is built (D is www/dist)
";

fn main() -> ExitCode {
    let mut args = Args::from_env();
    let task = args.positional();
    let result = match task.as_deref() {
        Some("build") => package::task(&mut args),
        Some("start") => serve::start(&mut args),
        Some("serve") => serve::task(&mut args),
        Some("test") => suites::task(&mut args),
        Some("size") => size::task(&mut args),
        Some("bench") => measure::bench(&mut args),
        Some("simulate") => measure::simulate(&mut args),
        Some("prices") => measure::prices(&mut args),
        Some("shots") => measure::shots(&mut args),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
