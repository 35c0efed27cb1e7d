//! The undo vectors on the core, with a store that loses writes from the end.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sessionlog::core::undo::{Actor, Batch, Files, Limits, Mode, Report};
use sessionlog::core::vfs::{Errno, Remove, State, Write};

type Map = HashMap<String, Vec<u8>>;
type Snap = BTreeMap<String, State>;

/// Applies a batch to a map; answers false when a check failed.
pub fn apply(map: &mut Map, batch: &Batch) -> bool {
    if batch.checks.iter().any(|(key, equals)| map.get(key) != equals.as_ref()) {
        return false;
    }
    for key in &batch.deletes {
        map.remove(key);
    }
    for (key, value) in &batch.puts {
        map.insert(key.clone(), value.clone());
    }
    true
}

struct Machine {
    files: Files,
    /// What is durable for certain, and what was issued since.
    durable: Map,
    issued: Vec<Batch>,
    limits: Limits,
    now: i64,
    opens: u64,
    runs: BTreeMap<String, u32>,
    snaps: HashMap<String, Snap>,
    quota: Option<u64>,
    image_limit: Option<usize>,
    /// How many of the writes issued before a `crash each` survive; none: all.
    survivors: Option<usize>,
    /// How many there were.
    seen: usize,
}

impl Machine {
    fn new(limits: Limits, survivors: Option<usize>) -> Machine {
        let mut machine = Machine {
            files: Files::new(0),
            durable: Map::new(),
            issued: Vec::new(),
            limits,
            now: 1_700_000_000_000,
            opens: 0,
            runs: BTreeMap::new(),
            snaps: HashMap::new(),
            quota: None,
            image_limit: None,
            survivors,
            seen: 0,
        };
        machine.open();
        machine
    }

    fn open(&mut self) {
        self.opens += 1;
        let prefixes = Files::prefixes("t");
        let pairs = self.durable.iter().filter(|(key, _)| prefixes.iter().any(|prefix| key.starts_with(prefix)));
        let pairs = pairs.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.files = Files::load("t", pairs, self.opens, self.now).expect("opens");
        self.files.set_max_bytes(self.quota);
        self.files.set_image_limit(self.image_limit);
        self.runs.clear();
        self.issued.clear();
    }

    fn drain(&mut self) {
        let batches = self.files.drain(self.limits);
        for batch in &batches {
            assert!(batch.puts.len() + batch.deletes.len() <= self.limits.batch, "a batch over the limit");
            assert!(batch.puts.iter().all(|(_, value)| value.len() <= self.limits.value), "a value over the limit");
        }
        self.issued.extend(batches);
        assert!(!self.files.is_dirty(), "drained and still dirty");
    }

    fn keep(&mut self, count: usize) {
        for batch in self.issued.drain(..).take(count) {
            assert!(apply(&mut self.durable, &batch), "a check failed");
        }
    }

    fn actor(&self, op: &Value) -> Actor {
        let kind = op["op"].as_str().unwrap_or_default();
        match op.get("as").and_then(Value::as_str) {
            Some("user") => Actor::USER,
            Some(run) => Actor::run(self.runs[run]),
            None if kind.starts_with("user_") => Actor::USER,
            None if self.runs.len() == 1 => Actor::run(*self.runs.values().next().unwrap()),
            None => Actor::USER,
        }
    }

    fn change(&mut self, op: &Value) -> Result<(), Errno> {
        self.now += 1_000;
        let (actor, now) = (self.actor(op), self.now);
        let text = |key: &str| op[key].as_str().unwrap_or_default();
        let flag = |key: &str| op[key].as_bool().unwrap_or(false);
        let files = &mut self.files;
        match text("op") {
            "mkdir" if flag("recursive") => files.mkdir_all(actor, text("path"), 0o755, now).map(|_| ()),
            "mkdir" => files.mkdir(actor, text("path"), 0o755, now),
            "write" | "user_write" => {
                let how = Write { append: flag("append"), ..Write::default() };
                files.write(actor, text("path"), bytes(op), how, now).map(|_| ())
            }
            "rm" => {
                let how = Remove { recursive: flag("recursive"), force: flag("force"), ..Remove::default() };
                files.remove(actor, text("path"), how, now)
            }
            "rename" => files.rename(actor, text("from"), text("to"), now),
            "chmod" => files.chmod(actor, text("path"), octal(&op["mode"]), now),
            "utimes" => files.utimes(actor, text("path"), op["mtime"].as_i64().unwrap(), true, now),
            "symlink" => files.symlink(actor, text("target"), text("path"), now),
            other => panic!("unknown op {other}"),
        }
    }

    fn snap(&self) -> Snap {
        let tree = self.files.tree();
        tree.tree("/").unwrap().into_iter().map(|(path, id)| (path, tree.state(id))).collect()
    }

    fn run(&mut self, op: &Value) -> Result<(), String> {
        match op["op"].as_str().unwrap_or_default() {
            "begin_run" => {
                let id = op["run"].as_str().unwrap();
                let number = self.files.begin_run(id).map_err(|error| error.to_string())?;
                self.runs.insert(id.to_owned(), number);
            }
            "end_run" => {
                let only = self.runs.keys().next().cloned().unwrap_or_default();
                let id = op["run"].as_str().map_or(only, str::to_owned);
                let number = self.runs.remove(&id).ok_or("no such run")?;
                self.files.end_run(number);
            }
            "undo" | "redo" => self.back(op)?,
            "flush" => self.keep(usize::MAX),
            "reload" => {
                self.keep(usize::MAX);
                self.open();
            }
            "crash" => {
                self.seen = self.issued.len();
                let count = match op["lose"].as_str().unwrap() {
                    "all" => 0,
                    "none" => usize::MAX,
                    _ => self.survivors.unwrap_or(usize::MAX),
                };
                self.keep(count);
                self.open();
            }
            "damage_journal" => {
                let prefix = format!("{}{}/", Files::prefixes("t")[1], op["run"].as_str().unwrap());
                let mut hit = 0;
                for (_, value) in self.durable.iter_mut().filter(|(key, _)| key.starts_with(&prefix)) {
                    *value = b"garbage".to_vec();
                    hit += 1;
                }
                assert!(hit > 0, "no journal is stored under {prefix}");
            }
            "quota" => {
                self.quota = op["bytes"].as_u64();
                self.files.set_max_bytes(self.quota);
            }
            "image_limit" => {
                self.image_limit = op["bytes"].as_u64().map(|bytes| bytes as usize);
                self.files.set_image_limit(self.image_limit);
            }
            "snap" => {
                let snap = self.snap();
                self.snaps.insert(op["label"].as_str().unwrap().to_owned(), snap);
            }
            "repeat" => {
                for i in 0..op["n"].as_u64().unwrap() {
                    for inner in op["do"].as_array().unwrap() {
                        self.run(&fill(inner, i))?;
                    }
                }
            }
            "expect" => self.expect(op)?,
            _ => self.checked_change(op)?,
        }
        self.drain();
        Ok(())
    }

    fn checked_change(&mut self, op: &Value) -> Result<(), String> {
        let allowed: Vec<&str> = match &op["fails"] {
            Value::Null => Vec::new(),
            Value::String(code) => vec![code],
            list => list.as_array().unwrap().iter().filter_map(Value::as_str).collect(),
        };
        let before = if allowed.is_empty() { None } else { Some(self.snap()) };
        match self.change(op) {
            Ok(()) if allowed.is_empty() => Ok(()),
            Ok(()) => Err(format!("succeeded: {op}")),
            Err(errno) if allowed.contains(&errno.name()) => {
                same(&self.snap(), &before.unwrap(), true).map_err(|why| format!("a failed op changed the tree: {why}"))
            }
            Err(errno) => Err(format!("{}: {op}", errno.name())),
        }
    }

    fn back(&mut self, op: &Value) -> Result<(), String> {
        let flag = |key: &str| op[key].as_bool().unwrap_or(false);
        let mode = match (flag("force"), flag("skip")) {
            (true, _) => Mode::Force,
            (_, true) => Mode::Skip,
            _ => Mode::Strict,
        };
        self.now += 1_000;
        let before = self.snap();
        let report = match op["op"].as_str() {
            Some("undo") => {
                let run = op["run"].as_str();
                let foretold = self.files.preview(run, mode);
                let report = self.files.undo(run, mode, self.now);
                if foretold != report {
                    return Err(format!("preview {foretold:?} is not {report:?}"));
                }
                report
            }
            _ => self.files.redo(mode, self.now),
        };
        if !report.ok {
            same(&self.snap(), &before, true).map_err(|why| format!("a refused undo changed the tree: {why}"))?;
        }
        check_report(&report, &op["report"])
    }

    fn expect(&self, op: &Value) -> Result<(), String> {
        let snap = self.snap();
        if let Some(tree) = op["tree"].as_object() {
            let (have, want): (Vec<_>, Vec<_>) = (snap.keys().collect(), tree.keys().collect());
            let (mut want_sorted, mut have_sorted) = (want, have);
            want_sorted.sort();
            have_sorted.sort();
            if have_sorted != want_sorted {
                return Err(format!("paths {have_sorted:?}, expected {want_sorted:?}"));
            }
        }
        let nodes = ["tree", "has"].iter().filter_map(|key| op[*key].as_object()).flatten();
        for (path, node) in nodes {
            check_node(snap.get(path).unwrap_or(&State::Absent), node).map_err(|why| format!("{path}: {why}"))?;
        }
        for path in op["missing"].as_array().into_iter().flatten() {
            if snap.contains_key(path.as_str().unwrap()) {
                return Err(format!("{path} exists"));
            }
        }
        if let Some(count) = op["count"].as_u64() {
            let have = snap.values().filter(|state| state.is_leaf()).count() as u64;
            if have != count {
                return Err(format!("{have} files, expected {count}"));
            }
        }
        let mtimes = op["mtimes"].as_bool().unwrap_or(false);
        if let Some(barriers) = op["barriers"].as_object() {
            for (run, want) in barriers {
                let have: Vec<String> = self.files.barriers(run).iter().map(|path| path.to_string()).collect();
                if serde_json::json!(have) != *want {
                    return Err(format!("barriers of {run} {have:?}, expected {want}"));
                }
            }
        }
        if let Some(label) = op["same_as"].as_str() {
            same(&snap, &self.snaps[label], mtimes)?;
        }
        if let Some(labels) = op["one_of"].as_array() {
            let fits = labels.iter().any(|label| same(&snap, &self.snaps[label.as_str().unwrap()], mtimes).is_ok());
            if !fits {
                return Err(format!("the tree is none of {labels:?}"));
            }
        }
        for (key, have) in [("undoable", self.files.undoable()), ("redoable", self.files.redoable())] {
            if let Some(want) = op[key].as_array() {
                let want: Vec<&str> = want.iter().filter_map(Value::as_str).collect();
                if have.iter().map(|id| &**id).collect::<Vec<_>>() != want {
                    return Err(format!("{key} {have:?}, expected {want:?}"));
                }
            }
        }
        Ok(())
    }
}

fn bytes(op: &Value) -> Vec<u8> {
    match op["base64"].as_str() {
        Some(text) => unbase64(text),
        None => op["utf8"].as_str().unwrap().as_bytes().to_vec(),
    }
}

fn unbase64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = (bits << 6) | DIGITS.iter().position(|digit| *digit == byte).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

fn octal(mode: &Value) -> u16 {
    u16::from_str_radix(mode.as_str().unwrap(), 8).unwrap()
}

/// Replaces `${i}`, `${i%7}` and `${i/7}` in every string.
fn fill(op: &Value, i: u64) -> Value {
    match op {
        Value::String(text) => {
            let mut out = String::new();
            let mut rest = text.as_str();
            while let Some(at) = rest.find("${i") {
                out.push_str(&rest[..at]);
                let end = at + rest[at..].find('}').unwrap();
                let body = &rest[at + 3..end];
                let n = || body[1..].parse::<u64>().unwrap();
                let value = match body.chars().next() {
                    Some('%') => i % n(),
                    Some('/') => i / n(),
                    _ => i,
                };
                out.push_str(&value.to_string());
                rest = &rest[end + 1..];
            }
            Value::String(out + rest)
        }
        Value::Array(items) => items.iter().map(|item| fill(item, i)).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), fill(value, i))).collect(),
        other => other.clone(),
    }
}

fn same(have: &Snap, want: &Snap, mtimes: bool) -> Result<(), String> {
    for path in have.keys().chain(want.keys()) {
        let (a, b) = (have.get(path).unwrap_or(&State::Absent), want.get(path).unwrap_or(&State::Absent));
        if !a.same(b) {
            return Err(format!("{path} differs"));
        }
        if mtimes && matches!(a, State::File { .. }) && a.mtime() != b.mtime() {
            return Err(format!("the time of {path} differs"));
        }
    }
    Ok(())
}

fn check_node(state: &State, node: &Value) -> Result<(), String> {
    let fits = match state {
        State::Absent => false,
        State::File { content, .. } => {
            (node.get("utf8").is_some() || node.get("base64").is_some()) && content.bytes() == bytes(node)
        }
        State::Dir { .. } => node["dir"].as_bool() == Some(true),
        State::Link { target, .. } => node["link"].as_str() == Some(target),
    };
    let mode = match state {
        State::File { mode, .. } | State::Dir { mode, .. } => Some(*mode),
        _ => None,
    };
    let fits = fits && node.get("mode").is_none_or(|want| mode == Some(octal(want)));
    let fits = fits && node.get("mtime").is_none_or(|want| state.mtime() == want.as_i64());
    if fits { Ok(()) } else { Err(format!("{state:?}, expected {node}")) }
}

fn check_report(report: &Report, want: &Value) -> Result<(), String> {
    let have: Value = serde_json::from_str(&report.to_json()).unwrap();
    for (key, want) in want.as_object().into_iter().flatten() {
        let fits = match (key.as_str(), want) {
            ("restored" | "deleted", Value::Number(count)) => {
                have[key].as_array().unwrap().len() as u64 == count.as_u64().unwrap()
            }
            ("conflicts", _) => sorted(have[key].as_array().unwrap().iter().map(|c| &c["path"])) == sorted(list(want)),
            ("errors", _) => {
                let errors = have[key].as_array().unwrap();
                errors.len() == want.as_array().unwrap().len()
                    && list(want).zip(errors).all(|(want, have)| {
                        want["code"] == have["code"] && want.get("path").is_none_or(|path| *path == have["path"])
                    })
            }
            (_, Value::Array(_)) => sorted(list(&have[key])) == sorted(list(want)),
            _ => have[key] == *want,
        };
        if !fits {
            return Err(format!("report {have}, expected {key} {want}"));
        }
    }
    Ok(())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn sorted<'a>(items: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut out: Vec<String> = items.map(Value::to_string).collect();
    out.sort();
    out
}

fn play(vector: &Value, limits: Limits, survivors: Option<usize>) -> Result<usize, String> {
    let mut machine = Machine::new(limits, survivors);
    for (at, op) in vector["ops"].as_array().unwrap().iter().enumerate() {
        // Rust text cannot hold half a surrogate pair; that row is the shell's.
        if op["path"].as_str().is_some_and(|path| path.contains(HALF)) {
            continue;
        }
        machine.run(op).map_err(|why| format!("op {at}: {why}"))?;
    }
    Ok(machine.seen)
}

const HALF: &str = "\u{f8ff}half\u{f8ff}";

/// Vectors beside the checkout when they are there, and the copy in the repository always.
fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = root.join("../shared/vectors/undo");
    let own = root.join("tests/fixtures/vectors/undo");
    [shared, own].into_iter().filter(|folder| folder.is_dir()).collect()
}

fn vectors() -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    for folder in folders() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ext| ext != "jsonl") {
                continue;
            }
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let vector: Value = serde_json::from_str(&line.replace("\\ud800", HALF)).unwrap();
                let name = format!("{} {}", path.display(), vector["id"].as_str().unwrap());
                out.insert(name, vector);
            }
        }
    }
    out
}

fn all(limits: Limits) {
    let vectors = vectors();
    assert!(vectors.len() >= 87, "only {} vectors", vectors.len());
    let mut failed = Vec::new();
    for (name, vector) in vectors {
        let scale = vector["tags"][0] == "scale";
        if scale && limits.batch < 10 {
            continue;
        }
        let result = play(&vector, limits, None).and_then(|seen| {
            let each = vector.to_string().contains("\"lose\":\"each\"");
            let cuts = if each { 0..seen } else { 0..0 };
            assert!(!each || seen > 0, "nothing was written before the crash");
            for k in cuts {
                play(&vector, limits, Some(k)).map_err(|why| format!("{k} of {seen} writes survive: {why}"))?;
            }
            Ok(())
        });
        if let Err(why) = result {
            failed.push(format!("{name}: {why}"));
        }
    }
    assert!(failed.is_empty(), "{} vectors fail:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn undo_vectors() {
    all(Limits::default());
}

/// The same with a store that takes three keys a batch and 300 bytes a value: every change is cut into many writes.
#[test]
fn undo_vectors_on_a_store_of_tiny_batches() {
    all(Limits { value: 700, batch: 3 });
}
