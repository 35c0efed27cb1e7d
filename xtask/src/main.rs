//! Every task a developer or CI runs: `cargo xtask <task>`.

mod args;
mod config;
mod package;
mod process;
mod tools;

use std::process::ExitCode;

use args::Args;

/// What a task returns; the text is one line that says what went wrong or what to install.
type Outcome<T = ()> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask <task>

  build [--dev]            the finished npm package in pkg/
";

fn main() -> ExitCode {
    let mut args = Args::from_env();
    let task = args.positional();
    let result = match task.as_deref() {
        Some("build") => package::task(&mut args),
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
