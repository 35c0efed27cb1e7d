//! Running other programs.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

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

/// What a watched command did.
pub struct Watched {
    pub success: bool,
    pub timed_out: bool,
    pub text: String,
}

/// Runs a command whose output the user sees and we keep; ends it and its children when it takes too long.
pub fn watch(command: &mut Command, limit: Duration) -> Outcome<Watched> {
    let name = shown(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let text = Arc::new(Mutex::new(String::new()));
    let readers = [tee(child.stdout.take(), &text), tee(child.stderr.take(), &text)];
    let started = Instant::now();
    let (success, timed_out) = loop {
        match child.try_wait() {
            Ok(Some(status)) => break (status.success(), false),
            Ok(None) if started.elapsed() < limit => thread::sleep(Duration::from_millis(50)),
            _ => {
                end(&mut child);
                break (false, true);
            }
        }
    };
    // A grandchild that outlives its parent holds the pipes open: what it still says is not waited for.
    let patience = Instant::now() + Duration::from_secs(5);
    while readers.iter().flatten().any(|reader| !reader.is_finished()) && Instant::now() < patience {
        thread::sleep(Duration::from_millis(20));
    }
    let text = text.lock().map_or_else(|broken| broken.into_inner().clone(), |text| text.clone());
    Ok(Watched { success, timed_out, text })
}

fn tee(stream: Option<impl Read + Send + 'static>, text: &Arc<Mutex<String>>) -> Option<JoinHandle<()>> {
    let text = Arc::clone(text);
    let mut reader = BufReader::new(stream?);
    Some(thread::spawn(move || {
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            let shown = String::from_utf8_lossy(&line);
            print!("{shown}");
            if let Ok(mut text) = text.lock() {
                text.push_str(&shown);
            }
            line.clear();
        }
    }))
}

/// Ends a command and what it started: it leads a process group of its own.
fn end(child: &mut Child) {
    #[cfg(unix)]
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    let _ = child.kill();
    let _ = child.wait();
}
