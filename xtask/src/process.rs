//! Running other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::config::root;

/// A command that runs in the repository's root.
pub fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(root());
    command
}

/// Runs a command whose output the user sees; fails when it does.
pub fn run(command: &mut Command) -> Outcome {
    let name = shown(command);
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
}

/// Runs a command quietly; its output is part of the error when it fails.
pub fn run_quiet(command: &mut Command) -> Outcome {
    let name = shown(command);
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!("{name} failed ({})\n{}", output.status, String::from_utf8_lossy(&text).trim_end()))
}

/// What a command prints, or nothing when it cannot run.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The program of this name on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = [name.to_owned(), format!("{name}{}", std::env::consts::EXE_SUFFIX)];
    std::env::split_paths(&path).flat_map(|dir| names.clone().map(|name| dir.join(name))).find(|path| path.is_file())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program()).to_string_lossy();
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
    let mut text = format!("{program} {}", args.join(" "));
    if let Some((at, _)) = text.char_indices().nth(120) {
        text.truncate(at);
        text.push('…');
    }
    text
}
