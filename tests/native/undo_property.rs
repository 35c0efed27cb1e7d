//! Random operations in random runs, crashes between any two writes, undo and redo in any legal order.
//!
//! The oracle keeps whole snapshots: what a run found and left at a path is read off the trees before and after each of its
//! operations, and the rules of `shared/vectors/undo/README.md` are checked on the trees before and after each undo.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sessionlog::core::undo::{Actor, Files, Limits, Mode, Report};
use sessionlog::core::vfs::{Errno, Remove, State, Write};

use super::undo::apply;

type Map = HashMap<String, Vec<u8>>;
type Snap = BTreeMap<String, State>;

/// SplitMix64: the same sequences on every machine.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn one<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A path of one to three short names.
    pub fn path(&mut self) -> String {
        let depth = 1 + self.below(3);
        (0..depth).map(|_| format!("/{}", self.one(&["a", "b", "c"]))).collect()
    }

    fn bytes(&mut self) -> Vec<u8> {
        // Some fit into a record, some stand beside it, some are equal to others.
        match self.below(8) {
            0 => Vec::new(),
            1 => vec![b'x'; 600],
            2 => vec![self.next() as u8; 1500],
            _ => vec![b'a' + self.below(4) as u8; 1 + self.below(3)],
        }
    }
}

#[derive(Clone, Default)]
struct ModelRun {
    images: Snap,
    lefts: Snap,
    changed: bool,
}

/// What the rules say the history is.
#[derive(Clone, Default)]
struct Model {
    tree: Snap,
    runs: BTreeMap<String, ModelRun>,
    /// In the order they began.
    open: Vec<String>,
    undoable: Vec<String>,
    /// With the tree from before the undo.
    redoable: Vec<(String, Snap)>,
    /// Whether anything changed since the undo on top of the redo line.
    disturbed: bool,
}

struct World {
    files: Files,
    numbers: BTreeMap<String, u32>,
    durable: Map,
    issued: Vec<sessionlog::core::undo::Batch>,
    /// The model after each operation since the last flush, with the writes issued by then.
    past: Vec<(usize, Model)>,
    model: Model,
    limits: Limits,
    /// Most bytes of a file that journals keep.
    image_limit: Option<usize>,
    now: i64,
    opens: u64,
    begun: usize,
    trace: Vec<String>,
}

fn snap(files: &Files) -> Snap {
    let tree = files.tree();
    let below = tree.tree("/").unwrap().into_iter();
    below.chain([("/".to_owned(), 0)]).map(|(path, id)| (path, tree.state(id))).collect()
}

fn at<'a>(snap: &'a Snap, path: &str) -> &'a State {
    snap.get(path).unwrap_or(&State::Absent)
}

fn is_leaf(state: &State) -> bool {
    matches!(state, State::File { .. } | State::Link { .. })
}

/// The same with the times of files.
fn exact(a: &State, b: &State) -> bool {
    a.same(b) && (!is_leaf(a) || a.mtime() == b.mtime())
}

fn differing(a: &Snap, b: &Snap) -> BTreeSet<String> {
    a.keys().chain(b.keys()).filter(|path| !exact(at(a, path), at(b, path))).cloned().collect()
}

impl World {
    fn new(limits: Limits, image_limit: Option<usize>) -> World {
        let mut world = World {
            files: Files::new(0),
            numbers: BTreeMap::new(),
            durable: Map::new(),
            issued: Vec::new(),
            past: Vec::new(),
            model: Model::default(),
            limits,
            image_limit,
            now: 1_000,
            opens: 0,
            begun: 0,
            trace: Vec::new(),
        };
        world.model.tree = snap(&world.files);
        world.open();
        world
    }

    fn open(&mut self) {
        self.opens += 1;
        let pairs = self.durable.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        self.files = Files::load("p", pairs, self.opens, self.now).expect("opens");
        self.files.set_image_limit(self.image_limit);
        assert_eq!(*self.files.damage(), sessionlog::core::undo::Damage::default());
        self.numbers.clear();
        self.issued.clear();
        self.restart();
    }

    /// From here on writes count anew; with none of them the store holds what the model says now.
    fn restart(&mut self) {
        self.past = vec![(0, self.model.clone())];
        self.note();
    }

    fn note(&mut self) {
        let batches = self.files.drain(self.limits);
        self.issued.extend(batches);
        self.past.push((self.issued.len(), self.model.clone()));
    }

    fn flush(&mut self) {
        for batch in self.issued.drain(..) {
            assert!(apply(&mut self.durable, &batch), "a check failed");
        }
        self.restart();
    }

    /// Loses the last writes; the tree must be that after some number of the operations.
    fn crash(&mut self, dice: &mut Dice) {
        let kept = dice.below(self.issued.len() + 1);
        self.trace.push(format!("crash: {kept} of {} writes survive", self.issued.len()));
        for batch in self.issued.drain(..).take(kept) {
            assert!(apply(&mut self.durable, &batch), "a check failed");
        }
        let past = std::mem::take(&mut self.past);
        self.open();
        let tree = snap(&self.files);
        // The state after the last operation that is whole, or the next one where it took effect before its last write.
        let last = past.iter().rposition(|(count, _)| *count <= kept).expect("the state at the flush");
        let fits = |model: &Model| differing(&tree, &model.tree).is_empty();
        let mut found = past[last].1.clone();
        let runs = |files: &Files| (names(&files.undoable()), names(&files.redoable()));
        let ended = |model: &Model| {
            let mut model = model.clone();
            model.end_all();
            (reversed(&model.undoable), model.redoable.iter().rev().map(|(id, _)| id.clone()).collect::<Vec<_>>())
        };
        if !fits(&found) || runs(&self.files) != ended(&found) {
            found = past.get(last + 1).map(|(_, model)| model.clone()).expect("a tree of some operation");
        }
        assert!(fits(&found), "after a crash the tree is none that ever was: {tree:?}");
        found.end_all();
        self.model = found;
        self.check_lists();
        self.restart();
    }

    fn check_lists(&self) {
        assert_eq!(names(&self.files.undoable()), reversed(&self.model.undoable), "undoable");
        let redoable: Vec<String> = self.model.redoable.iter().rev().map(|(id, _)| id.clone()).collect();
        assert_eq!(names(&self.files.redoable()), redoable, "redoable");
    }

    fn begin(&mut self) {
        self.begun += 1;
        let id = format!("r{}", self.begun);
        self.trace.push(format!("begin {id}"));
        self.numbers.insert(id.clone(), self.files.begin_run(&id).unwrap());
        self.model.runs.insert(id.clone(), ModelRun::default());
        self.model.open.push(id);
    }

    fn end(&mut self, id: &str) {
        self.trace.push(format!("end {id}"));
        self.files.end_run(self.numbers.remove(id).unwrap());
        self.model.end(id);
    }

    fn change(&mut self, run: Option<&str>, dice: &mut Dice) {
        self.change_in(run, 0, dice);
    }

    /// One operation, in a tool call of the run where `call` is not 0.
    fn change_in(&mut self, run: Option<&str>, call: u32, dice: &mut Dice) {
        let actor = run.map_or(Actor::USER, |id| Actor { run: self.numbers[id], call });
        self.now += 1;
        let before = self.model.tree.clone();
        let (text, ends, result) = operate(&mut self.files, actor, self.now, dice);
        self.trace.push(format!("{} {text}: {result:?}", run.unwrap_or("user")));
        let after = snap(&self.files);
        let mut touched = differing(&before, &after);
        if result.is_err() {
            assert!(touched.is_empty(), "a failed operation changed {touched:?}");
            return;
        }
        if let (Some((from, to)), false) = (ends, touched.is_empty()) {
            let under = |snap: &Snap, top: &str| -> Vec<String> {
                snap.keys().filter(|path| **path == *top || path.starts_with(&format!("{top}/"))).cloned().collect()
            };
            touched.extend(under(&before, &from));
            touched.extend(under(&after, &to));
        }
        // A touch always counts, also of a directory, whose time is not looked at here.
        touched.extend(text.starts_with("utimes").then(|| self.files.tree().realpath(path_of(&text)).unwrap()));
        let has_changed = !touched.is_empty();
        if let Some(id) = run {
            self.model.journal(id, &before, &after, &touched);
        }
        self.model.disturbed |= has_changed;
        self.model.tree = after;
    }

    /// A tool call of a few operations that completes or fails; a failed one leaves no trace, whatever it did.
    fn call(&mut self, run: &str, dice: &mut Dice) {
        let number = self.files.begin_call(self.numbers[run], "c").unwrap();
        self.trace.push(format!("{run} begins a call"));
        let before = self.model.clone();
        for _ in 0..1 + dice.below(4) {
            self.change_in(Some(run), number, dice);
            // A crash here leaves what the call did so far to its run.
            self.note();
        }
        let actor = Actor { run: self.numbers[run], call: number };
        if dice.below(2) == 0 {
            self.trace.push("commit".to_owned());
            return self.files.commit_call(actor);
        }
        self.now += 1;
        let report = self.files.rollback_call(actor, self.now);
        self.trace.push(format!("roll back: {report:?}"));
        assert!(report.ok && report.conflicts.is_empty(), "a call that nobody disturbed is rolled back whole");
        let differs = differing(&snap(&self.files), &before.tree);
        assert!(differs.is_empty(), "the failed call left {differs:?}");
        // Its first change ended the redo line, and it stays ended.
        let redoable = std::mem::take(&mut self.model.redoable);
        let disturbed = self.model.disturbed;
        self.model = Model { redoable, disturbed, ..before };
    }

    /// The store refuses what is drained now, at any batch up to the one from which on it counts.
    fn refused(&mut self, dice: &mut Dice) {
        let batches = self.files.drain(self.limits);
        let sent = dice.below(1 + batches.iter().position(|batch| batch.counts).expect("a change that never counts"));
        self.trace.push(format!("the store refuses batch {sent} of {}", batches.len()));
        self.issued.extend(batches.into_iter().take(sent));
        self.files.refused(sent);
    }

    /// Undoes several runs at once, or none; sometimes redoes them all.
    fn rewind(&mut self, dice: &mut Dice) {
        if self.model.undoable.is_empty() {
            return;
        }
        let at = dice.below(self.model.undoable.len());
        let id = self.model.undoable[at].clone();
        self.now += 1;
        let before = self.model.tree.clone();
        let foretold = self.files.preview_rewind(&id, Mode::Strict);
        let report = self.files.rewind(&id, Mode::Strict, self.now);
        self.trace.push(format!("rewind {id}: {report:?}"));
        let after = snap(&self.files);
        if !report.ok {
            assert!(differing(&before, &after).is_empty(), "a refused rewind changed the tree");
            return;
        }
        assert_eq!(foretold, report, "preview");
        check_report(&before, &after, &report);
        let count = self.model.undoable.len() - at;
        if dice.below(2) == 0 {
            self.refused(dice);
            self.files.revert_rewind(count, self.now);
            let differs = differing(&snap(&self.files), &before);
            assert!(differs.is_empty(), "the rewind taken back left {differs:?}");
            return;
        }
        for id in self.model.undoable.split_off(at).into_iter().rev() {
            // The trees in between were never seen: redo one by one is checked by what it reports alone.
            self.model.redoable.push((id, after.clone()));
        }
        self.model.tree = after;
        self.model.disturbed = true;
        if dice.below(2) == 0 {
            for _ in 0..count {
                self.now += 1;
                assert!(self.files.redo(Mode::Strict, self.now).ok, "the rewind cannot be redone");
                let (id, _) = self.model.redoable.pop().unwrap();
                self.model.undoable.push(id);
            }
            let differs = differing(&snap(&self.files), &before);
            assert!(differs.is_empty(), "redone, the rewind left {differs:?}");
            self.model.tree = before;
        }
    }

    fn undo(&mut self, dice: &mut Dice) {
        let id = if self.model.undoable.is_empty() { None } else { Some(dice.one(&self.model.undoable).clone()) };
        let mode = *dice.one(&[Mode::Strict, Mode::Strict, Mode::Skip, Mode::Force]);
        self.now += 1;
        let before = self.model.tree.clone();
        let foretold = self.files.preview(id.as_deref(), mode);
        let report = self.files.undo(id.as_deref(), mode, self.now);
        assert_eq!(foretold, report, "preview");
        self.trace.push(format!("undo {id:?} {mode:?}: {report:?}"));
        let after = snap(&self.files);
        let Some(id) = id else {
            assert!(!report.ok && differing(&before, &after).is_empty());
            return;
        };
        let run = self.model.runs[&id].clone();
        check_undo(&run, &before, &after, mode, &report);
        self.check_barriers(&id, &run, &report);
        if report.ok && dice.below(5) == 0 {
            self.refused(dice);
            let at = self.model.undoable.iter().position(|other| *other == id).unwrap();
            self.files.revert_undo(at, self.now);
            let differs = differing(&snap(&self.files), &before);
            assert!(differs.is_empty(), "the undo taken back left {differs:?}");
        } else if report.ok {
            self.model.undoable.retain(|other| *other != id);
            self.model.redoable.push((id, before));
            self.model.tree = after;
            self.model.disturbed = false;
        }
    }

    /// What undo says it cannot take back was over the limit when the run found it, and was said before the undo, too.
    fn check_barriers(&self, id: &str, run: &ModelRun, report: &Report) {
        let declared = names(&self.files.barriers(id));
        for path in &declared {
            let limit = self.image_limit.expect("no limit and a barrier");
            assert!(at(&run.images, path).size() > limit as u64, "{path} is a barrier and not over the limit");
        }
        for (path, reason) in &report.conflicts {
            assert!(!reason.contains("limit") || declared.contains(path), "{path} was not declared");
        }
        assert!(!report.errors.iter().any(|problem| problem.code == "EFBIG" && !declared.contains(&problem.path)));
    }

    fn redo(&mut self, dice: &mut Dice) {
        self.now += 1;
        let before = self.model.tree.clone();
        let report = self.files.redo(Mode::Strict, self.now);
        self.trace.push(format!("redo: {report:?}"));
        let after = snap(&self.files);
        let Some((id, goal)) = self.model.redoable.last().cloned() else {
            assert!(!report.ok && differing(&before, &after).is_empty());
            return;
        };
        check_report(&before, &after, &report);
        if !self.model.disturbed {
            assert!(report.ok, "nothing changed since the undo, and it cannot be redone: {report:?}");
            let differs = differing(&after, &goal);
            assert!(differs.is_empty(), "redo does not bring back {differs:?}");
        }
        if report.ok && dice.below(5) == 0 {
            self.refused(dice);
            self.files.revert_redo(self.now);
            self.files.settle();
            let differs = differing(&snap(&self.files), &before);
            assert!(differs.is_empty(), "the redo taken back left {differs:?}");
        } else if report.ok {
            self.model.redoable.pop();
            self.model.undoable.push(id);
            self.model.tree = after;
            // What the undo below was done on is not what stands here, unless nothing else happened.
            self.model.disturbed = true;
        } else {
            assert!(differing(&before, &after).is_empty(), "a refused redo changed the tree");
        }
    }
}

fn names(ids: &[std::rc::Rc<str>]) -> Vec<String> {
    ids.iter().map(|id| id.to_string()).collect()
}

fn reversed(ids: &[String]) -> Vec<String> {
    ids.iter().rev().cloned().collect()
}

impl Model {
    fn end(&mut self, id: &str) {
        self.open.retain(|other| other != id);
        if self.runs[id].changed {
            self.undoable.push(id.to_owned());
        }
    }

    fn end_all(&mut self) {
        for id in self.open.clone() {
            self.end(&id);
        }
    }

    fn journal(&mut self, id: &str, before: &Snap, after: &Snap, touched: &BTreeSet<String>) {
        let run = self.runs.get_mut(id).unwrap();
        for path in touched {
            let stands = at(before, path);
            if run.lefts.get(path).is_none_or(|left| !left.same(stands)) {
                run.images.insert(path.clone(), stands.clone());
            }
            run.lefts.insert(path.clone(), at(after, path).clone());
        }
        if !touched.is_empty() {
            run.changed = true;
            self.redoable.clear();
        }
    }
}

/// The lists of a report are exactly what the trees show.
fn check_report(before: &Snap, after: &Snap, report: &Report) {
    if !report.ok {
        assert!(report.restored.is_empty() && report.deleted.is_empty());
        return;
    }
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |path: &str| !at(before, path).same(at(after, path));
    let restored: Vec<String> =
        paths.iter().filter(|path| is_leaf(at(after, path)) && differs(path)).map(|path| path.to_string()).collect();
    let deleted: Vec<String> = paths
        .iter()
        .filter(|path| is_leaf(at(before, path)) && !is_leaf(at(after, path)))
        .map(|path| path.to_string())
        .collect();
    assert_eq!(report.restored, restored, "restored");
    assert_eq!(report.deleted, deleted, "deleted");
}

fn check_undo(run: &ModelRun, before: &Snap, after: &Snap, mode: Mode, report: &Report) {
    check_report(before, after, report);
    let conflicts: BTreeSet<&str> = report.conflicts.iter().map(|(path, _)| path.as_str()).collect();
    let foreign: Vec<&String> = run
        .images
        .iter()
        .filter(|(path, image)| !at(before, path).same(image) && !at(before, path).same(&run.lefts[*path]))
        .map(|(path, _)| path)
        .collect();
    for path in &foreign {
        assert!(conflicts.contains(path.as_str()), "{path} was changed by somebody else and is no conflict");
    }
    if !report.ok {
        assert!(differing(before, after).is_empty(), "a refused undo changed the tree");
        assert!(!report.conflicts.is_empty() || !report.errors.is_empty());
        assert!(mode != Mode::Skip, "skip never refuses");
        return;
    }
    assert!(mode != Mode::Strict || conflicts.is_empty());
    for (path, image) in &run.images {
        let (was, is) = (at(before, path), at(after, path));
        let is_kept_dir = matches!(image, State::Absent) && matches!((was, is), (State::Dir { .. }, State::Dir { .. }));
        let holds = |path: &str| after.keys().any(|other| other.starts_with(&format!("{path}/")));
        if mode == Mode::Skip && conflicts.contains(path.as_str()) {
            assert!(
                exact(was, is) || matches!((was, is), (State::Absent, State::Dir { .. })),
                "{path} was to be skipped"
            );
        } else if is_kept_dir {
            assert!(holds(path), "{path} is empty and stays");
        } else if matches!((image, is), (State::Absent, State::Dir { .. })) {
            assert!(holds(path), "{path} was made for nothing");
        } else {
            assert!(is.same(image), "{path} is {is:?}, found by the run was {image:?}");
            // Times come back with what is put back; what somebody else put back keeps his.
            let put_back = !was.same(image) || was.same(&run.lefts[path]);
            assert!(!put_back || exact(is, image), "the time of {path}");
        }
    }
    for path in differing(before, after).iter().filter(|path| !run.images.contains_key(*path)) {
        let made = matches!((at(before, path), at(after, path)), (State::Absent, State::Dir { .. }));
        assert!(made, "{path} was never touched by the run and changed");
    }
}

/// The path in the text of a `utimes`.
fn path_of(text: &str) -> &str {
    text.split(' ').nth(1).unwrap_or_default()
}

type Ends = Option<(String, String)>;

/// One random operation: how it reads, the two ends of a rename without links, and how it went.
fn operate(files: &mut Files, actor: Actor, now: i64, dice: &mut Dice) -> (String, Ends, Result<(), Errno>) {
    let path = dice.path();
    match dice.below(20) {
        0..7 => {
            let (data, append) = (dice.bytes(), dice.below(4) == 0);
            let text = format!("write {path} {} bytes append {append}", data.len());
            let how = Write { append, ..Write::default() };
            (text, None, files.write(actor, &path, data, how, now).map(|_| ()))
        }
        7..10 => (format!("mkdir -p {path}"), None, files.mkdir_all(actor, &path, 0o755, now).map(|_| ())),
        10..13 => {
            let how = Remove { recursive: dice.below(2) == 0, ..Remove::default() };
            (format!("rm {path} {}", how.recursive), None, files.remove(actor, &path, how, now))
        }
        13..16 => {
            let to = dice.path();
            let ends = canonical(files, &path).zip(canonical(files, &to));
            (format!("rename {path} {to}"), ends, files.rename(actor, &path, &to, now))
        }
        16 => {
            let mode = *dice.one(&[0o644, 0o600, 0o755]);
            (format!("chmod {path} {mode:o}"), None, files.chmod(actor, &path, mode, now))
        }
        17 => {
            let mtime = 10 + dice.below(3) as i64;
            (format!("utimes {path} {mtime}"), None, files.utimes(actor, &path, mtime, true, now))
        }
        18 => {
            let target = dice.one(&["/a", "b", "../c", "/a/b", "."]).to_string();
            (format!("symlink {target} {path}"), None, files.symlink(actor, &target, &path, now))
        }
        _ => {
            let (to, recursive) = (dice.path(), dice.below(2) == 0);
            (format!("copy {path} {to}"), None, files.copy(actor, &path, &to, recursive, now))
        }
    }
}

/// A path with the links in its directories followed, as rename takes it.
fn canonical(files: &Files, path: &str) -> Option<String> {
    let (dir, name) = path.rsplit_once('/')?;
    let dir = files.tree().realpath(if dir.is_empty() { "/" } else { dir }).ok()?;
    Some(if dir == "/" { format!("/{name}") } else { format!("{dir}/{name}") })
}

fn sequence(seed: u64) {
    let mut dice = Dice(seed);
    let limits = *dice.one(&[Limits::default(), Limits { value: 1600, batch: 4 }, Limits { value: 900, batch: 1 }]);
    // Some of the contents are over this.
    let image_limit = *dice.one(&[None, None, Some(1_000), Some(2)]);
    let mut world = World::new(limits, image_limit);
    let steps = 8 + dice.below(24);
    // A panic names the seed and the trace.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for _ in 0..steps {
            step(&mut world, &mut dice);
            world.note();
        }
    }));
    if let Err(panic) = result {
        eprintln!("seed {seed}, store of {limits:?}, images of {image_limit:?}:\n  {}", world.trace.join("\n  "));
        std::panic::resume_unwind(panic);
    }
}

fn step(world: &mut World, dice: &mut Dice) {
    let open: Vec<String> = world.model.open.clone();
    match dice.below(27) {
        0..3 if open.len() < 2 => world.begin(),
        0..3 => world.end(dice.one::<String>(&open)),
        3..5 => {
            if !open.is_empty() {
                world.end(dice.one::<String>(&open));
            }
        }
        5..8 => world.undo(dice),
        8..10 => world.redo(dice),
        10 => world.flush(),
        11 => world.crash(dice),
        12..15 => world.change(None, dice),
        24 => world.rewind(dice),
        25..27 if !open.is_empty() => {
            let run = dice.one(&open).clone();
            world.call(&run, dice);
        }
        _ => match open.is_empty() {
            true => world.begin(),
            false => {
                let run = dice.one(&open).clone();
                world.change(Some(&run), dice);
            }
        },
    }
    world.check_lists();
}

/// 10,000 sequences; `SEQUENCES` and `SEED` ask for others.
#[test]
fn undo_holds_for_random_histories() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("SEED") {
        return sequence(seed);
    }
    for seed in 0..number("SEQUENCES").unwrap_or(10_000) {
        sequence(seed);
    }
}
