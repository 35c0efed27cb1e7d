//! Runs and calls from their beginning to undo and redo.

use std::rc::Rc;

use super::journal::{Call, Journal};
use super::plan::{Goal, Mode, Plan};
use super::report::Report;
use super::{Actor, Files};
use crate::core::error::{Error, Kind};
use crate::core::sorted::{self, SortedMap};
use crate::core::time::Millis;
use crate::core::vfs::{State, Tree};

/// How many runs stay undoable; the oldest are forgotten first.
const MAX_UNDOABLE: usize = 1_000;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Begun and not ended.
    Open,
    /// Ended; can be undone.
    Done,
    /// Undone; can be redone.
    Undone,
}

/// One run with what it changed.
#[derive(Debug)]
pub(crate) struct Run {
    pub id: Rc<str>,
    pub state: RunState,
    pub journal: Journal,
    /// What leads back from its undo.
    pub back: Option<Journal>,
    pub calls: SortedMap<u32, Call>,
    /// Calls that were pending when the process died; what they did counts as the run's.
    pub orphaned: Vec<Rc<str>>,
}

impl Run {
    pub fn new(id: Rc<str>, state: RunState) -> Run {
        Run { id, state, journal: Journal::default(), back: None, calls: SortedMap::new(), orphaned: Vec::new() }
    }

    fn damaged(&self) -> u32 {
        self.journal.damaged + self.back.as_ref().map_or(0, |back| back.damaged)
    }
}

/// What it takes to take a redo back.
#[derive(Debug)]
pub(super) struct Redone {
    number: u32,
    /// The journal that the redo used up.
    back: Journal,
    /// What leads back from it.
    lead: Journal,
}

/// Whether a journal is sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Entries that can be read, and stored pieces that cannot.
    pub total: usize,
    /// Stored pieces that cannot be read.
    pub corrupted: usize,
    /// Calls that never ended.
    pub orphaned: usize,
}

impl Files {
    /// Begins a run; its number stands for it until it ends.
    pub fn begin_run(&mut self, id: &str) -> Result<u32, Error> {
        if id.is_empty() {
            return Err(Error::new(Kind::InvalidId, "a run id is not empty"));
        }
        if self.runs.values().any(|run| &*run.id == id) {
            return Err(Error::new(Kind::AlreadyExists, "there is a run of that id").with("run", id));
        }
        self.last_run += 1;
        self.runs.insert(self.last_run, Run::new(Rc::from(id), RunState::Open));
        Ok(self.last_run)
    }

    /// Ends a run. Calls that are still pending count as done. A run that changed nothing is forgotten.
    pub fn end_run(&mut self, number: u32) {
        let Some(run) = self.runs.get_mut(&number).filter(|run| run.state == RunState::Open) else { return };
        if !run.calls.is_empty() {
            run.calls.clear();
            run.journal.head_dirty = true;
        }
        run.state = RunState::Done;
        if run.journal.ops == 0 {
            self.forget(number);
            return;
        }
        self.store.line_dirty = true;
        self.undoable.push(number);
        while self.undoable.len() > MAX_UNDOABLE {
            let oldest = self.undoable.remove(0);
            self.forget(oldest);
        }
    }

    /// Begins a tool call in a run: what it does can be rolled back until it is committed.
    pub fn begin_call(&mut self, run: u32, id: &str) -> Result<u32, Error> {
        let run = self.runs.get_mut(&run).filter(|run| run.state == RunState::Open);
        let run = run.ok_or_else(|| Error::new(Kind::NotFound, "the run is not open"))?;
        self.last_call += 1;
        run.calls.insert(self.last_call, Call::new(id));
        run.journal.head_dirty = true;
        Ok(self.last_call)
    }

    /// Ends a call that completed.
    pub fn commit_call(&mut self, actor: Actor) {
        if let Some(run) = self.runs.get_mut(&actor.run) {
            run.journal.head_dirty |= run.calls.remove(&actor.call).is_some();
        }
    }

    /// Ends a call that failed or was refused: takes back what it did, save what others changed since.
    pub fn rollback_call(&mut self, actor: Actor, now: Millis) -> Report {
        let Some(run) = self.runs.get_mut(&actor.run) else { return Report::default() };
        let Some(call) = run.calls.remove(&actor.call) else { return Report::default() };
        let goals = call.touched.iter().filter_map(|touched| {
            let entry = run.journal.get(touched.at)?;
            let path = Rc::clone(&entry.path);
            Some(Goal { path, image: touched.image.clone(), left: touched.left.clone(), broken: false })
        });
        let plan = Plan::of(&self.tree, goals, Mode::Skip);
        if !plan.report.ok {
            // Only want of room can be in the way; then the changes stay, and stay undoable.
            return plan.report;
        }
        let (report, _) = plan.apply(&mut self.tree, now);
        for touched in call.touched {
            settle(&self.tree, &mut run.journal, touched);
        }
        run.journal.ops = run.journal.ops.saturating_sub(call.ops);
        run.journal.head_dirty = true;
        // A run that has changed nothing after all is none to be undone, also after a crash.
        self.store.line_dirty |= run.journal.ops == 0;
        report
    }

    /// Forgets what could be redone: a run has changed something.
    pub(super) fn end_redo_line(&mut self) {
        if self.line_held {
            self.line_ended = true;
            return;
        }
        for number in std::mem::take(&mut self.redoable) {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u32) {
        if let Some(run) = self.runs.remove(&number) {
            self.undoable.retain(|other| *other != number);
            self.store.drop_run(&run);
        }
    }

    /// Returns the runs that can be undone, the next first.
    pub fn undoable(&self) -> Vec<Rc<str>> {
        self.undoable.iter().rev().map(|number| self.id_of(*number)).collect()
    }

    /// Returns the runs that can be redone, the next first.
    pub fn redoable(&self) -> Vec<Rc<str>> {
        self.redoable.iter().rev().map(|number| self.id_of(*number)).collect()
    }

    fn choose(&self, id: Option<&str>) -> Result<u32, Report> {
        let Some(id) = id else {
            let has_open = self.runs.values().any(|run| run.state == RunState::Open && run.journal.ops > 0);
            return self.undoable.last().copied().ok_or_else(|| match has_open {
                true => Report::refused("RUN_ACTIVE", "every run that could be undone is still open"),
                false => Report::refused("NOTHING_TO_UNDO", "there is nothing to undo"),
            });
        };
        match self.runs.iter().find(|(_, run)| &*run.id == id) {
            Some((number, run)) if run.state == RunState::Done => Ok(*number),
            Some((_, run)) if run.state == RunState::Open => {
                Err(Report::refused("RUN_ACTIVE", "the run is still open"))
            }
            _ => Err(Report::refused("NOTHING_TO_UNDO", "there is nothing to undo of that run")),
        }
    }

    fn plan_undo(&self, id: Option<&str>, mode: Mode) -> Result<(u32, Plan), Report> {
        let number = self.choose(id)?;
        let corrupt = || Report::refused("ECORRUPT", "the stored journal cannot be read");
        let run = self.runs.get(&number).filter(|run| run.journal.damaged == 0).ok_or_else(corrupt)?;
        Ok((number, Plan::new(&self.tree, &run.journal, mode)))
    }

    /// Tells what an undo would do, of the run that ended last or of the one named.
    pub fn preview(&self, id: Option<&str>, mode: Mode) -> Report {
        match self.plan_undo(id, mode) {
            Ok((_, plan)) => plan.foretell(),
            Err(report) => report,
        }
    }

    /// Undoes the run that ended last, or the one named: all of it or nothing.
    pub fn undo(&mut self, id: Option<&str>, mode: Mode, now: Millis) -> Report {
        let (number, plan) = match self.plan_undo(id, mode) {
            Ok(found) => found,
            Err(report) => return report,
        };
        if !plan.report.ok {
            return plan.report;
        }
        let (report, mut back) = plan.apply(&mut self.tree, now);
        // Stored even when it is empty: a journal that is named and not there counts as damaged.
        back.head_dirty = true;
        if let Some(run) = self.runs.get_mut(&number) {
            run.state = RunState::Undone;
            run.back = Some(back);
        }
        self.undoable.retain(|other| *other != number);
        self.redoable.push(number);
        self.store.line_dirty = true;
        report
    }

    /// Takes the last undo back.
    pub fn redo(&mut self, mode: Mode, now: Millis) -> Report {
        let Some(number) = self.redoable.last().copied() else {
            return Report::refused("NOTHING_TO_REDO", "there is nothing to redo");
        };
        let back = self.runs.get(&number).and_then(|run| run.back.as_ref());
        let Some(back) = back.filter(|back| back.damaged == 0) else {
            return Report::refused("ECORRUPT", "the stored journal cannot be read");
        };
        let plan = Plan::new(&self.tree, back, mode);
        if !plan.report.ok {
            return plan.report;
        }
        let (report, lead) = plan.apply(&mut self.tree, now);
        if let Some(run) = self.runs.get_mut(&number) {
            run.state = RunState::Done;
            if let Some(back) = run.back.take() {
                self.store.drop_back(&run.id, &back);
                self.last_redo = Some(Redone { number, back, lead });
            }
        }
        self.redoable.pop();
        self.undoable.push(number);
        self.store.line_dirty = true;
        report
    }

    /// Tells what undoing all runs from the latest back to the one named would do.
    pub fn preview_rewind(&self, to_run: &str, mode: Mode) -> Report {
        match self.plan_rewind(to_run, mode) {
            Ok((_, plan)) => plan.foretell(),
            Err(report) => report,
        }
    }

    fn plan_rewind(&self, to_run: &str, mode: Mode) -> Result<(usize, Plan), Report> {
        let number = self.choose(Some(to_run))?;
        let from = self.undoable.iter().position(|other| *other == number).unwrap_or(self.undoable.len());
        let mut goals: SortedMap<Rc<str>, Goal> = SortedMap::new();
        for number in self.undoable.iter().skip(from).rev() {
            let Some(run) = self.runs.get(number) else { continue };
            if run.journal.damaged > 0 {
                return Err(Report::refused("ECORRUPT", "the stored journal cannot be read"));
            }
            for entry in run.journal.live() {
                let goal = goals.get_or_insert_with(Rc::clone(&entry.path), || Goal {
                    path: Rc::clone(&entry.path),
                    image: entry.left.clone(),
                    left: entry.left.clone(),
                    broken: false,
                });
                goal.broken |= !goal.image.same(&entry.left);
                goal.image = entry.image.clone();
            }
        }
        Ok((self.undoable.len() - from, Plan::of(&self.tree, goals.into_values(), mode)))
    }

    /// Undoes all runs from the latest back to the one named, which is undone too: all of them or none.
    pub fn rewind(&mut self, to_run: &str, mode: Mode, now: Millis) -> Report {
        let (count, plan) = match self.plan_rewind(to_run, mode) {
            Ok(found) => found,
            Err(report) => return report,
        };
        let report = plan.foretell();
        if !report.ok {
            return report;
        }
        for done in 0..count {
            let step = self.undo(None, mode, now);
            if !step.ok {
                for _ in 0..done {
                    self.redo(Mode::Force, now);
                }
                return step;
            }
        }
        report
    }

    /// Takes the last undo back as if it had not been: for a store that refused to keep it. What somebody else changed in
    /// the meantime stays.
    pub fn revert_undo(&mut self, number_at: usize, now: Millis) {
        let number = if self.redo(Mode::Skip, now).ok { self.undoable.pop() } else { None };
        if let Some(number) = number {
            let at = number_at.min(self.undoable.len());
            self.undoable.insert(at, number);
        }
    }

    /// Takes the last rewind back likewise; `count` is the number of runs that it undid.
    pub fn revert_rewind(&mut self, count: usize, now: Millis) {
        for _ in 0..count {
            self.redo(Mode::Skip, now);
        }
    }

    /// Takes the last redo back likewise.
    pub fn revert_redo(&mut self, now: Millis) {
        let Some(Redone { number, mut back, lead }) = self.last_redo.take() else { return };
        let plan = Plan::new(&self.tree, &lead, Mode::Skip);
        if !plan.report.ok {
            return;
        }
        plan.apply(&mut self.tree, now);
        // Its pieces are on their way out of the store, or not: new ones behind them say the same.
        back.mark_all();
        if let Some(run) = self.runs.get_mut(&number) {
            run.state = RunState::Undone;
            run.back = Some(back);
        }
        self.undoable.retain(|other| *other != number);
        self.redoable.push(number);
        self.store.line_dirty = true;
    }

    /// Begins a change of the history that may yet be reverted: until `settle` nothing on the redo line is forgotten.
    pub fn hold_line(&mut self) {
        self.line_held = true;
    }

    /// Ends what `hold_line` began.
    pub fn settle(&mut self) {
        self.last_redo = None;
        self.line_held = false;
        if std::mem::take(&mut self.line_ended) {
            self.end_redo_line();
        }
    }

    /// Returns the paths of a run that undo cannot take back, in order: they held more than is kept.
    pub fn barriers(&self, id: &str) -> Vec<Rc<str>> {
        let run = self.runs.values().find(|run| &*run.id == id);
        let entries = run.into_iter().flat_map(|run| run.journal.live()).filter(|entry| entry.is_barrier());
        let mut out: Vec<Rc<str>> = entries.map(|entry| Rc::clone(&entry.path)).collect();
        sorted::sort_by(&mut out, |a, b| a < b);
        out
    }

    /// Returns the paths a run changed, in order.
    pub fn changed_paths(&self, id: &str) -> Vec<Rc<str>> {
        let run = self.runs.values().find(|run| &*run.id == id);
        let mut out: Vec<Rc<str>> =
            run.into_iter().flat_map(|run| run.journal.live()).map(|entry| Rc::clone(&entry.path)).collect();
        sorted::sort_by(&mut out, |a, b| a < b);
        out
    }

    /// Returns where a run stands; none when it is not known (any more).
    pub fn run_state(&self, id: &str) -> Option<RunState> {
        self.runs.values().find(|run| &*run.id == id).map(|run| run.state)
    }

    /// Tells whether the journal of a run is sound.
    pub fn health(&self, id: &str) -> Health {
        let Some(run) = self.runs.values().find(|run| &*run.id == id) else { return Health::default() };
        let corrupted = run.damaged() as usize;
        Health { total: run.journal.live().count() + corrupted, corrupted, orphaned: run.orphaned.len() }
    }
}

/// Brings the run's entry in line after a call that touched it was taken back.
fn settle(tree: &Tree, journal: &mut Journal, touched: super::journal::Touched) {
    let at = touched.at;
    let Some(entry) = journal.get_mut(at) else { return };
    // Another call of the run came after, or somebody else's edit was left alone: the entry stays as it is.
    let now = tree.peek(&entry.path);
    if !entry.left.same(&touched.left) || !now.same(&touched.image) {
        return;
    }
    match touched.prev {
        Some((image, left)) => (entry.image, entry.left) = (image, left),
        None => {
            entry.dead = true;
            (entry.image, entry.left) = (State::Absent, State::Absent);
        }
    }
    journal.mark(at);
}
