//! Files for the shell. Nothing here throws or schedules: file calls answer an error number, so that they also work where
//! scripts run with most globals taken away.

use std::cell::{Cell, RefCell};

use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use super::error::throw;
use crate::core::json::{Object, Value};
use crate::core::undo::{Actor, Batch, Files, Limits, Mode, RunState};
use crate::core::vfs::{Errno, Remove, Stat, Write};

/// Bits of `write` and `open`.
const APPEND: u8 = 1;
const EXCLUSIVE: u8 = 2;
const MUST_EXIST: u8 = 4;
/// Bits of `remove`.
const RECURSIVE: u8 = 1;
const FORCE: u8 = 2;
const LEAF_ONLY: u8 = 4;
const DIR_ONLY: u8 = 8;

/// The files of one root.
#[wasm_bindgen]
pub struct RawFiles {
    files: RefCell<Files>,
    /// The error number of the last call that answered nothing.
    last: Cell<u8>,
}

/// Returns every error number with its name, its text and its code in `SessionLogError`.
#[wasm_bindgen]
pub fn raw_errnos() -> String {
    let rows = Errno::ALL.iter().map(|errno| {
        let row: [Value; 4] =
            [i64::from(errno.number()).into(), errno.name().into(), errno.text().into(), errno.kind().code().into()];
        Value::Array(row.into())
    });
    Value::Array(rows.collect()).to_text()
}

/// Returns the two prefixes under which a root stands.
#[wasm_bindgen]
pub fn raw_files_prefixes(root: &str) -> Vec<String> {
    Files::prefixes(root).into()
}

fn millis(time: f64) -> i64 {
    time as i64
}

fn mode_of(mode: u8) -> Mode {
    match mode {
        1 => Mode::Skip,
        2 => Mode::Force,
        _ => Mode::Strict,
    }
}

fn how(flags: u8, mode: u16) -> Write {
    Write {
        append: flags & APPEND != 0,
        create: flags & MUST_EXIST == 0,
        exclusive: flags & EXCLUSIVE != 0,
        mode: mode & 0o7777,
    }
}

fn numbers(stat: Stat) -> Vec<f64> {
    vec![
        f64::from(stat.kind as u8),
        stat.size as f64,
        f64::from(stat.mode),
        stat.mtime as f64,
        stat.ctime as f64,
        stat.ino as f64,
    ]
}

impl RawFiles {
    fn wrap(files: Files) -> RawFiles {
        RawFiles { files: RefCell::new(files), last: Cell::new(0) }
    }

    fn code<T>(&self, result: Result<T, Errno>) -> u8 {
        result.map_or_else(Errno::number, |_| 0)
    }

    fn some<T>(&self, result: Result<T, Errno>) -> Option<T> {
        self.last.set(0);
        result.map_err(|errno| self.last.set(errno.number())).ok()
    }
}

#[wasm_bindgen]
impl RawFiles {
    /// Makes an empty tree that stores nothing.
    pub fn memory(now: f64) -> RawFiles {
        RawFiles::wrap(Files::new(millis(now)))
    }

    /// Opens a root from all pairs under its two prefixes.
    pub fn load(root: &str, pairs: Array, nonce: f64, now: f64) -> Result<RawFiles, JsValue> {
        let read = |pair: JsValue| {
            let pair = Array::from(&pair);
            (pair.get(0).as_string().unwrap_or_default(), Uint8Array::new(&pair.get(1)).to_vec())
        };
        let pairs = pairs.iter().map(read).collect();
        Files::load(root, pairs, nonce as u64, millis(now)).map(RawFiles::wrap).map_err(throw)
    }

    /// The error number of the last call that answered nothing; 0 when that was no error.
    pub fn errno(&self) -> u8 {
        self.last.get()
    }

    /// Limits the bytes of all files together; a negative number is no limit.
    pub fn set_max_bytes(&self, limit: f64) {
        self.files.borrow_mut().set_max_bytes((limit >= 0.0).then_some(limit as u64));
    }

    /// Limits the bytes of a file that journals keep; a negative number is no limit.
    pub fn set_image_limit(&self, limit: f64) {
        self.files.borrow_mut().set_image_limit((limit >= 0.0).then_some(limit as usize));
    }

    /// Returns the bytes of all files together.
    pub fn bytes(&self) -> f64 {
        self.files.borrow().tree().bytes() as f64
    }

    // ------------------------------------------------------------------ reading

    /// Returns the bytes of a file.
    pub fn read(&self, path: &str) -> Option<Uint8Array> {
        let files = self.files.borrow();
        self.some(files.tree().read(path)).map(Uint8Array::from)
    }

    /// Returns the text of a file; what is not UTF-8 becomes U+FFFD.
    pub fn read_text(&self, path: &str) -> Option<js_sys::JsString> {
        let files = self.files.borrow();
        self.some(files.tree().read(path)).map(|bytes| String::from_utf8_lossy(bytes).as_ref().into())
    }

    /// Returns type, size, mode, mtime, ctime and inode number.
    pub fn stat(&self, path: &str, follow: bool) -> Option<Vec<f64>> {
        self.some(self.files.borrow().tree().stat(path, follow)).map(numbers)
    }

    /// Says whether a path leads anywhere.
    pub fn exists(&self, path: &str) -> bool {
        self.files.borrow().tree().lookup(path, true).is_ok()
    }

    /// Returns the names in a directory, with a slash after each.
    pub fn readdir(&self, path: &str) -> Option<String> {
        let files = self.files.borrow();
        let entries = self.some(files.tree().readdir(path))?;
        let mut out = String::new();
        for (name, _) in entries {
            out.push_str(name);
            out.push('/');
        }
        Some(out)
    }

    /// Returns the names in a directory, each with a digit for its type before and a slash after it.
    pub fn readdir_types(&self, path: &str) -> Option<String> {
        let files = self.files.borrow();
        let entries = self.some(files.tree().readdir(path))?;
        let mut out = String::new();
        for (name, kind) in entries {
            out.push(char::from(b'0' + kind as u8));
            out.push_str(name);
            out.push('/');
        }
        Some(out)
    }

    /// Returns where a link points.
    pub fn readlink(&self, path: &str) -> Option<String> {
        self.some(self.files.borrow().tree().readlink(path).map(str::to_owned))
    }

    /// Returns the path without links that a path leads to.
    pub fn realpath(&self, path: &str) -> Option<String> {
        self.some(self.files.borrow().tree().realpath(path))
    }

    /// Returns everything below a directory as JSON rows of path, type, size, mode, mtime.
    pub fn walk(&self, path: &str) -> Option<String> {
        let files = self.files.borrow();
        let all = self.some(files.tree().tree(path))?;
        let row = |(path, id): (String, u32)| {
            let stat = files.tree().stat_node(id).ok()?;
            let row: [Value; 5] = [
                path.into(),
                i64::from(stat.kind as u8).into(),
                (stat.size as i64).into(),
                i64::from(stat.mode).into(),
                stat.mtime.into(),
            ];
            Some(Value::Array(row.into()))
        };
        Some(Value::Array(all.into_iter().filter_map(row).collect()).to_text())
    }

    // ------------------------------------------------------------------ writing

    /// Makes, replaces or appends to a file.
    #[allow(clippy::too_many_arguments, reason = "one flat call is cheaper than an options object")]
    pub fn write(&self, run: u32, call: u32, path: &str, data: Vec<u8>, flags: u8, mode: u16, now: f64) -> u8 {
        self.code(self.files.borrow_mut().write(Actor { run, call }, path, data, how(flags, mode), millis(now)))
    }

    /// The same with a short text.
    #[allow(clippy::too_many_arguments, reason = "one flat call is cheaper than an options object")]
    pub fn write_text(&self, run: u32, call: u32, path: &str, text: String, flags: u8, mode: u16, now: f64) -> u8 {
        self.write(run, call, path, text.into_bytes(), flags, mode, now)
    }

    /// Makes a directory.
    pub fn mkdir(&self, run: u32, call: u32, path: &str, mode: u16, now: f64) -> u8 {
        self.code(self.files.borrow_mut().mkdir(Actor { run, call }, path, mode & 0o7777, millis(now)))
    }

    /// Makes a directory and those above it; returns the first one made.
    pub fn mkdir_all(&self, run: u32, call: u32, path: &str, mode: u16, now: f64) -> Option<String> {
        let made = self.files.borrow_mut().mkdir_all(Actor { run, call }, path, mode & 0o7777, millis(now));
        self.some(made).flatten()
    }

    /// Removes a file, a link or a directory.
    pub fn remove(&self, run: u32, call: u32, path: &str, flags: u8, now: f64) -> u8 {
        let how = Remove {
            recursive: flags & RECURSIVE != 0,
            force: flags & FORCE != 0,
            leaf_only: flags & LEAF_ONLY != 0,
            dir_only: flags & DIR_ONLY != 0,
        };
        self.code(self.files.borrow_mut().remove(Actor { run, call }, path, how, millis(now)))
    }

    /// Renames.
    pub fn rename(&self, run: u32, call: u32, from: &str, to: &str, now: f64) -> u8 {
        self.code(self.files.borrow_mut().rename(Actor { run, call }, from, to, millis(now)))
    }

    /// Copies.
    pub fn copy(&self, run: u32, call: u32, from: &str, to: &str, recursive: bool, now: f64) -> u8 {
        self.code(self.files.borrow_mut().copy(Actor { run, call }, from, to, recursive, millis(now)))
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, run: u32, call: u32, target: &str, path: &str, now: f64) -> u8 {
        self.code(self.files.borrow_mut().symlink(Actor { run, call }, target, path, millis(now)))
    }

    /// Sets the permission bits.
    pub fn chmod(&self, run: u32, call: u32, path: &str, mode: u16, now: f64) -> u8 {
        self.code(self.files.borrow_mut().chmod(Actor { run, call }, path, mode, millis(now)))
    }

    /// Sets the modification time.
    pub fn utimes(&self, run: u32, call: u32, path: &str, mtime: f64, follow: bool, now: f64) -> u8 {
        self.code(self.files.borrow_mut().utimes(Actor { run, call }, path, millis(mtime), follow, millis(now)))
    }

    // ------------------------------------------------------------------ open files

    /// Finds a file, or makes an empty one, and keeps it until `let_go`; returns its node, or the negative error number.
    pub fn open(&self, run: u32, call: u32, path: &str, flags: u8, mode: u16, now: f64) -> f64 {
        let mut files = self.files.borrow_mut();
        let makes = flags & MUST_EXIST == 0;
        let found = match files.tree().lookup(path, flags & EXCLUSIVE == 0) {
            _ if makes && path.ends_with('/') => files.tree().check_makable(path).and(Err(Errno::EISDIR)),
            Ok(_) if flags & EXCLUSIVE != 0 => Err(Errno::EEXIST),
            Err(Errno::ENOENT) if makes => {
                files.write(Actor { run, call }, path, Vec::new(), how(flags, mode), millis(now))
            }
            other => other,
        };
        match found {
            Ok(id) => {
                files.hold(id);
                f64::from(id)
            }
            Err(errno) => -f64::from(errno.number()),
        }
    }

    /// Ends what `open` began.
    pub fn let_go(&self, node: u32) {
        self.files.borrow_mut().let_go(node);
    }

    /// Tells about an open file.
    pub fn stat_node(&self, node: u32) -> Option<Vec<f64>> {
        self.some(self.files.borrow().tree().stat_node(node)).map(numbers)
    }

    /// Returns a part of an open file.
    pub fn read_at(&self, node: u32, offset: f64, length: f64) -> Option<Uint8Array> {
        let files = self.files.borrow();
        let bytes = self.some(files.tree().content(node))?.bytes();
        let start = (offset as usize).min(bytes.len());
        let end = start.saturating_add(length as usize).min(bytes.len());
        bytes.get(start..end).map(Uint8Array::from)
    }

    /// Writes into an open file at an offset; a negative one is its end.
    pub fn write_at(&self, run: u32, call: u32, node: u32, offset: f64, data: Vec<u8>, now: f64) -> u8 {
        let mut files = self.files.borrow_mut();
        let size = match files.tree().content(node) {
            Ok(content) => content.len(),
            Err(errno) => return errno.number(),
        };
        let offset = if offset < 0.0 { size } else { offset as usize };
        self.code(files.splice(Actor { run, call }, node, offset, data, millis(now)))
    }

    /// Cuts an open file, or fills it up with zeros.
    pub fn truncate_node(&self, run: u32, call: u32, node: u32, length: f64, now: f64) -> u8 {
        self.code(self.files.borrow_mut().truncate(Actor { run, call }, node, length as usize, millis(now)))
    }

    /// Sets the permission bits of an open file.
    pub fn chmod_node(&self, run: u32, call: u32, node: u32, mode: u16, now: f64) -> u8 {
        self.code(self.files.borrow_mut().chmod_node(Actor { run, call }, node, mode, millis(now)))
    }

    /// Sets the modification time of an open file.
    pub fn utimes_node(&self, run: u32, call: u32, node: u32, mtime: f64, now: f64) -> u8 {
        self.code(self.files.borrow_mut().utimes_node(Actor { run, call }, node, millis(mtime), millis(now)))
    }

    // ------------------------------------------------------------------ runs

    /// Begins a run.
    pub fn begin_run(&self, id: &str) -> Result<u32, JsValue> {
        self.files.borrow_mut().begin_run(id).map_err(throw)
    }

    /// Ends a run.
    pub fn end_run(&self, run: u32) {
        self.files.borrow_mut().end_run(run);
    }

    /// Begins a tool call.
    pub fn begin_call(&self, run: u32, id: &str) -> Result<u32, JsValue> {
        self.files.borrow_mut().begin_call(run, id).map_err(throw)
    }

    /// Ends a call that completed.
    pub fn commit_call(&self, run: u32, call: u32) {
        self.files.borrow_mut().commit_call(Actor { run, call });
    }

    /// Takes back what a call did; returns the report.
    pub fn rollback_call(&self, run: u32, call: u32, now: f64) -> String {
        self.files.borrow_mut().rollback_call(Actor { run, call }, millis(now)).to_json()
    }

    /// Undoes; returns the report.
    pub fn undo(&self, run: Option<String>, mode: u8, now: f64) -> String {
        self.files.borrow_mut().undo(run.as_deref(), mode_of(mode), millis(now)).to_json()
    }

    /// Redoes; returns the report.
    pub fn redo(&self, mode: u8, now: f64) -> String {
        self.files.borrow_mut().redo(mode_of(mode), millis(now)).to_json()
    }

    /// Takes the last undo back after the store refused it; `at` is where the run stood, counted from the oldest.
    pub fn revert_undo(&self, at: u32, now: f64) {
        self.files.borrow_mut().revert_undo(at as usize, millis(now));
    }

    /// Begins a change of the history that may yet be reverted.
    pub fn hold_line(&self) {
        self.files.borrow_mut().hold_line();
    }

    /// Ends what `hold_line` began.
    pub fn settle(&self) {
        self.files.borrow_mut().settle();
    }

    /// Takes the last redo back after the store refused it.
    pub fn revert_redo(&self, now: f64) {
        self.files.borrow_mut().revert_redo(millis(now));
    }

    /// Takes the last rewind, of so many runs, back after the store refused it.
    pub fn revert_rewind(&self, count: u32, now: f64) {
        self.files.borrow_mut().revert_rewind(count as usize, millis(now));
    }

    /// Tells what an undo would do.
    pub fn preview(&self, run: Option<String>, mode: u8) -> String {
        self.files.borrow().preview(run.as_deref(), mode_of(mode)).to_json()
    }

    /// Undoes all runs from the latest back to the one named.
    pub fn rewind(&self, run: &str, mode: u8, now: f64) -> String {
        self.files.borrow_mut().rewind(run, mode_of(mode), millis(now)).to_json()
    }

    /// Tells what that would do.
    pub fn preview_rewind(&self, run: &str, mode: u8) -> String {
        self.files.borrow().preview_rewind(run, mode_of(mode)).to_json()
    }

    /// Returns the runs that can be undone, the next first.
    pub fn undoable(&self) -> Vec<String> {
        self.files.borrow().undoable().iter().map(ToString::to_string).collect()
    }

    /// Returns the runs that can be redone, the next first.
    pub fn redoable(&self) -> Vec<String> {
        self.files.borrow().redoable().iter().map(ToString::to_string).collect()
    }

    /// Returns the paths a run changed.
    pub fn changed_paths(&self, run: &str) -> Vec<String> {
        self.files.borrow().changed_paths(run).iter().map(ToString::to_string).collect()
    }

    /// Returns the paths that undo of a run cannot take back.
    pub fn barriers(&self, run: &str) -> Vec<String> {
        self.files.borrow().barriers(run).iter().map(ToString::to_string).collect()
    }

    /// Returns where a run stands: `open`, `done`, `undone`; none when it is not known.
    pub fn run_state(&self, run: &str) -> Option<String> {
        let state = self.files.borrow().run_state(run)?;
        let name = match state {
            RunState::Open => "open",
            RunState::Done => "done",
            RunState::Undone => "undone",
        };
        Some(name.to_owned())
    }

    /// Returns how many entries a journal has, how many of its stored pieces are damaged, how many calls never ended.
    pub fn health(&self, run: &str) -> Vec<u32> {
        let health = self.files.borrow().health(run);
        vec![health.total as u32, health.corrupted as u32, health.orphaned as u32]
    }

    // ------------------------------------------------------------------ storing

    /// Says whether anything waits to be stored.
    pub fn is_dirty(&self) -> bool {
        self.files.borrow().is_dirty()
    }

    /// Returns the batches that bring the store up to date: each three lists, of checks, puts and deletes, and whether the
    /// change counts from that one on.
    pub fn drain(&self, max_value: f64, max_batch: f64) -> Array {
        let limits = Limits { value: (max_value as usize).max(1024), batch: (max_batch as usize).max(1) };
        let batches = self.files.borrow_mut().drain(limits);
        batches.iter().map(batch_of).collect()
    }

    /// Notes that the store took only so many of the batches drained last, and that the others are dropped.
    pub fn refused(&self, sent: u32) {
        self.files.borrow_mut().refused(sent as usize);
    }

    /// Returns what was found damaged when the store was read, as JSON.
    pub fn damage(&self) -> String {
        let files = self.files.borrow();
        let texts = |items: &[String]| Value::Array(items.iter().map(|text| text.as_str().into()).collect());
        let damage = files.damage();
        Object::from([("keys", texts(&damage.keys)), ("paths", texts(&damage.paths))]).to_text()
    }
}

fn batch_of(batch: &Batch) -> Array {
    let pair = |key: &str, value: JsValue| JsValue::from(Array::of2(&key.into(), &value));
    let bytes = |value: &[u8]| JsValue::from(Uint8Array::from(value));
    let checks: Array =
        batch.checks.iter().map(|(key, value)| pair(key, value.as_deref().map_or(JsValue::NULL, bytes))).collect();
    let puts: Array = batch.puts.iter().map(|(key, value)| pair(key, bytes(value))).collect();
    let deletes: Array = batch.deletes.iter().map(|key| JsValue::from_str(key)).collect();
    Array::of4(&checks, &puts, &deletes, &batch.counts.into())
}
