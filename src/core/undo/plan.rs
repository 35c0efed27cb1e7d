//! Undo as plan, check, apply: what would change, what stands against it, and the change itself.

use std::rc::Rc;

use super::journal::{Journal, is_forgotten};
use super::report::{Problem, Report};
use crate::core::sorted::{self, SortedMap};
use crate::core::time::Millis;
use crate::core::vfs::{Errno, State, Tree, parent_path};

/// What to do about conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Change nothing and list them.
    #[default]
    Strict,
    /// Leave those paths and do the rest.
    Skip,
    /// Overwrite them; still never a path that the run did not touch.
    Force,
}

/// One path of a plan.
struct Step {
    now: State,
    target: State,
    /// Becomes `target`; else it stays as it is.
    change: bool,
    /// Only the time is put back: not reported.
    silent: bool,
    /// What would be put back was too large to be kept.
    barrier: bool,
}

/// What an undo or redo would do.
pub(crate) struct Plan {
    steps: SortedMap<Rc<str>, Step>,
    pub report: Report,
}

/// Why a path stays that is a barrier.
const BARRIER: &str = "what it held before the run was over the limit and was not kept";

/// A state that stands already, with the time it is to have.
fn at_time(now: &State, image: &State) -> State {
    match (now, image) {
        (State::File { content, .. }, State::File { mode, mtime, .. }) => {
            State::File { content: Rc::clone(content), mode: *mode, mtime: *mtime }
        }
        _ => image.clone(),
    }
}

/// One path to go back on: what to put there and what is expected to stand there.
pub(crate) struct Goal {
    pub path: Rc<str>,
    pub image: State,
    pub left: State,
    /// Somebody else's edit lies between two runs that are undone together.
    pub broken: bool,
}

impl Plan {
    /// Plans to put every image of the journal back.
    pub fn new(tree: &Tree, journal: &Journal, mode: Mode) -> Plan {
        let goals = journal.live().map(|entry| Goal {
            path: Rc::clone(&entry.path),
            image: entry.image.clone(),
            left: entry.left.clone(),
            broken: false,
        });
        Plan::of(tree, goals, mode)
    }

    /// Plans to reach goals.
    pub fn of(tree: &Tree, goals: impl Iterator<Item = Goal>, mode: Mode) -> Plan {
        let mut plan = Plan { steps: SortedMap::new(), report: Report::default() };
        let mut conflicts = SortedMap::new();
        // In order, so that a sorted list grows at its end.
        let mut goals: Vec<Goal> = goals.collect();
        sorted::sort_by(&mut goals, |a, b| a.path < b.path);
        for goal in goals {
            let now = tree.peek(&goal.path);
            let (same, ours) = (now.same(&goal.image), now.same(&goal.left));
            let barrier = !same && is_forgotten(&goal.image);
            if !same && (!ours || goal.broken) {
                conflicts.insert(Rc::clone(&goal.path), "changed since the run");
            } else if barrier {
                conflicts.insert(Rc::clone(&goal.path), BARRIER);
            }
            // A touch alone is undone silently, where the run left the file so.
            let silent = same && ours && now.is_leaf() && now.mtime() != goal.image.mtime();
            let target = if same { at_time(&now, &goal.image) } else { goal.image };
            plan.steps.insert(goal.path, Step { now, target, change: !same || silent, silent, barrier });
        }
        plan.settle(tree, conflicts, mode);
        plan.check_room(tree);
        plan.report.ok = plan.report.errors.is_empty() && (mode != Mode::Strict || plan.report.conflicts.is_empty());
        plan
    }

    fn settle(&mut self, tree: &Tree, mut conflicts: SortedMap<Rc<str>, &'static str>, mode: Mode) {
        if mode != Mode::Force {
            self.leave(conflicts.keys().cloned().collect::<Vec<_>>());
        }
        loop {
            let blocked = self.blocked(tree);
            if blocked.is_empty() {
                break;
            }
            if mode == Mode::Force {
                self.report.errors = blocked.into_iter().map(|(path, errno)| Problem::of(errno, &path)).collect();
                break;
            }
            self.leave(blocked.iter().map(|(path, _)| Rc::clone(path)).collect::<Vec<_>>());
            for (path, errno) in blocked {
                let reason = match errno {
                    Errno::ENOTEMPTY => "a directory that would have to go holds something else",
                    Errno::EFBIG => BARRIER,
                    _ => "a directory above is now a file or link",
                };
                conflicts.insert(path, reason);
            }
        }
        self.report.conflicts = conflicts.into_iter().map(|(path, why)| (path.to_string(), why)).collect();
    }

    fn leave(&mut self, paths: Vec<Rc<str>>) {
        for path in paths {
            if let Some(step) = self.steps.get_mut(&path) {
                step.change = false;
            }
        }
    }

    /// Returns what would stand at a path afterwards, not counting directories that are made or stay.
    fn end<'a>(&'a self, tree: &Tree, path: &str) -> std::borrow::Cow<'a, State> {
        match self.steps.get(path) {
            Some(step) if step.change => std::borrow::Cow::Borrowed(&step.target),
            Some(step) => std::borrow::Cow::Borrowed(&step.now),
            None => std::borrow::Cow::Owned(tree.peek(path)),
        }
    }

    /// Returns the paths whose image cannot be put back, and why.
    fn blocked(&self, tree: &Tree) -> Vec<(Rc<str>, Errno)> {
        let mut out = Vec::new();
        let mut sound: SortedMap<&str, ()> = std::iter::once(("/", ())).collect();
        for (path, step) in self.steps.iter().filter(|(_, step)| step.change && !step.silent) {
            if step.barrier {
                out.push((Rc::clone(path), Errno::EFBIG));
            } else if !step.target.is_absent() && !self.has_ground(tree, path, &mut sound) {
                out.push((Rc::clone(path), Errno::ENOTDIR));
            } else if step.now.is_dir() && step.target.is_leaf() && self.keeps_something(tree, path) {
                out.push((Rc::clone(path), Errno::ENOTEMPTY));
            }
        }
        out
    }

    /// Says whether every directory above a path is one, or can be made.
    fn has_ground<'a>(&self, tree: &Tree, path: &'a str, sound: &mut SortedMap<&'a str, ()>) -> bool {
        let mut passed = Vec::new();
        let mut above = parent_path(path);
        while let Some(dir) = above {
            if sound.contains_key(dir) {
                break;
            }
            if self.end(tree, dir).is_leaf() {
                return false;
            }
            passed.push(dir);
            above = parent_path(dir);
        }
        for dir in passed {
            sound.insert(dir, ());
        }
        true
    }

    /// Says whether a directory would still hold something.
    fn keeps_something(&self, tree: &Tree, dir: &str) -> bool {
        let below = tree.tree(dir).unwrap_or_default();
        below
            .iter()
            .any(|(path, _)| self.steps.get(path.as_str()).is_none_or(|step| !step.change || !step.target.is_absent()))
    }

    fn check_room(&mut self, tree: &Tree) {
        let changed = || self.steps.iter().filter(|(_, step)| step.change);
        let freed: u64 = changed().map(|(_, step)| step.now.size()).sum();
        let mut bytes = tree.bytes().saturating_sub(freed);
        let needed: u64 = changed().map(|(_, step)| step.target.size()).sum();
        let limit = tree.max_bytes().max(tree.bytes());
        if bytes + needed <= limit {
            return;
        }
        let first = changed().find(|(_, step)| {
            bytes += step.target.size();
            bytes > limit
        });
        if let Some((path, _)) = first {
            self.report.errors.push(Problem::of(Errno::ENOSPC, path));
        }
    }

    /// Fills the lists of what would be restored and deleted.
    pub fn foretell(mut self) -> Report {
        if self.report.ok {
            self.list();
        }
        self.report
    }

    fn list(&mut self) {
        for (path, step) in self.steps.iter().filter(|(_, step)| step.change && !step.silent) {
            if step.target.is_leaf() {
                self.report.restored.push(path.to_string());
            } else if step.now.is_leaf() {
                self.report.deleted.push(path.to_string());
            }
        }
    }

    /// Returns the directories above what is put back: those that are there stay, whoever made them.
    fn needed(&self) -> SortedMap<&str, ()> {
        let mut out = SortedMap::new();
        for (path, _) in self.steps.iter().filter(|(_, step)| step.change && !step.target.is_absent()) {
            let mut above = parent_path(path);
            while let Some(dir) = above.filter(|dir| out.insert(*dir, ()).is_none()) {
                above = parent_path(dir);
            }
        }
        out
    }

    /// Carries the plan out, which cannot fail any more; returns the journal that leads back.
    pub fn apply(mut self, tree: &mut Tree, now: Millis) -> (Report, Journal) {
        self.list();
        let mut back = Journal::default();
        let needed = self.needed();
        // What must go first: children before the directories that hold them.
        for (path, step) in self.steps.iter().rev().filter(|(_, step)| step.change) {
            let kept_kind = std::mem::discriminant(&step.now) == std::mem::discriminant(&step.target);
            let is_used = step.now.is_dir() && step.target.is_absent() && needed.contains_key(&**path);
            if !step.now.is_absent() && !kept_kind && !is_used {
                tree.place(path, &State::Absent, now);
            }
        }
        for (path, step) in self.steps.iter().filter(|(_, step)| step.change && !step.target.is_absent()) {
            make_parents(tree, path, now, &mut back);
            tree.place(path, &step.target, now);
        }
        for (path, step) in self.steps.iter().filter(|(_, step)| step.change) {
            // The making of what a directory holds has stamped it.
            if let State::Dir { mtime, .. } = step.target {
                tree.set_mtime(path, mtime);
            }
            let after = tree.peek(path);
            if step.silent || !after.same(&step.now) {
                back.set(Rc::clone(path), step.now.clone(), after);
            }
        }
        back.ops = 1;
        (self.report, back)
    }
}

fn make_parents(tree: &mut Tree, path: &str, now: Millis, back: &mut Journal) {
    let mut missing = Vec::new();
    let mut above = parent_path(path);
    while let Some(dir) = above.filter(|dir| tree.peek(dir).is_absent()) {
        missing.push(dir);
        above = parent_path(dir);
    }
    for dir in missing.into_iter().rev() {
        tree.place(dir, &State::Dir { mode: 0o755, mtime: now }, now);
        back.set(Rc::from(dir), State::Absent, tree.peek(dir));
    }
}
