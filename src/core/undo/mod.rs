//! Files with a memory: a tree, the journals of the runs that changed it, and the way both reach a store.
//!
//! Everything an agent did can be taken back, exactly, and never over somebody else's work. `shared/vectors/undo` decides.

mod codec;
mod history;
mod journal;
mod load;
mod persist;
mod plan;
mod report;

use std::rc::Rc;

use crate::core::sorted::SortedMap;
use crate::core::vfs::{Errno, Eye, NodeId, Remove, Result, Tree, Write};

pub use history::{Health, RunState};
use history::{Redone, Run};
use journal::Scribe;
pub use load::Damage;
use persist::Store;
pub use persist::{Batch, Limits};
pub use plan::Mode;
pub use report::{Problem, Report};

use crate::core::time::Millis;

/// Who makes a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// The number `begin_run` answered; 0 is the user, whose changes are never journaled.
    pub run: u32,
    /// The number `begin_call` answered; 0 is none.
    pub call: u32,
}

impl Actor {
    /// The user.
    pub const USER: Actor = Actor { run: 0, call: 0 };

    /// A run, outside any tool call.
    pub const fn run(run: u32) -> Actor {
        Actor { run, call: 0 }
    }
}

/// The files of one root with their history.
#[derive(Debug)]
pub struct Files {
    tree: Tree,
    /// Every run that is known, by number; numbers grow.
    runs: SortedMap<u32, Run>,
    /// Runs that can be undone, the latest last.
    undoable: Vec<u32>,
    /// Runs that can be redone, the next last.
    redoable: Vec<u32>,
    last_run: u32,
    last_call: u32,
    /// Set while the last change of the history may yet be reverted; and what waits for the end of that.
    line_held: bool,
    line_ended: bool,
    last_redo: Option<Redone>,
    image_limit: usize,
    store: Store,
    /// What was found damaged when the store was read.
    damage: Damage,
}

impl Files {
    /// Makes an empty tree that stores nothing.
    pub fn new(now: Millis) -> Files {
        Files {
            tree: Tree::new(now),
            runs: SortedMap::new(),
            undoable: Vec::new(),
            redoable: Vec::new(),
            last_run: 0,
            last_call: 0,
            line_held: false,
            line_ended: false,
            last_redo: None,
            image_limit: usize::MAX,
            store: Store::default(),
            damage: Damage::default(),
        }
    }

    /// Returns the tree, for reading.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Limits the bytes of all files together.
    pub fn set_max_bytes(&mut self, limit: Option<u64>) {
        self.tree.set_max_bytes(limit);
    }

    /// Limits the bytes of a file that are kept of what it was before a run changed it. What is larger becomes a barrier:
    /// the journal says, before the change, that this path cannot be taken back.
    pub fn set_image_limit(&mut self, limit: Option<usize>) {
        self.image_limit = limit.unwrap_or(usize::MAX);
    }

    /// Keeps a node's contents for as long as a handle on it is open.
    pub fn hold(&mut self, id: NodeId) {
        self.tree.hold(id);
    }

    /// Ends a hold.
    pub fn let_go(&mut self, id: NodeId) {
        self.tree.let_go(id);
    }

    /// Runs one operation for an actor and journals it.
    fn act<T>(&mut self, actor: Actor, work: impl FnOnce(&mut Tree, Eye) -> Result<T>) -> Result<T> {
        if actor.run == 0 {
            return work(&mut self.tree, None);
        }
        let run = self.runs.get_mut(&actor.run).filter(|run| run.state == RunState::Open).ok_or(Errno::EBADF)?;
        let ops = run.journal.ops;
        let call = match actor.call {
            0 => None,
            number => Some(run.calls.get_mut(&number).ok_or(Errno::EBADF)?),
        };
        let mut scribe = Scribe { journal: &mut run.journal, call, image_limit: self.image_limit };
        let out = work(&mut self.tree, Some(&mut scribe))?;
        if run.journal.ops != ops {
            if ops == 0 {
                self.store.line_dirty = true;
            }
            self.end_redo_line();
        }
        Ok(out)
    }

    /// Makes, replaces or appends to a file.
    pub fn write(&mut self, actor: Actor, path: &str, data: Vec<u8>, how: Write, now: Millis) -> Result<NodeId> {
        self.act(actor, |tree, eye| tree.write(path, data, how, now, eye))
    }

    /// Writes bytes into an open file at an offset.
    pub fn splice(&mut self, actor: Actor, id: NodeId, offset: usize, data: Vec<u8>, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.splice(id, offset, data, now, eye))
    }

    /// Cuts an open file, or fills it up with zeros.
    pub fn truncate(&mut self, actor: Actor, id: NodeId, len: usize, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.truncate(id, len, now, eye))
    }

    /// Makes a directory.
    pub fn mkdir(&mut self, actor: Actor, path: &str, mode: u16, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.mkdir(path, mode, now, eye))
    }

    /// Makes a directory and those above it; returns the first one made.
    pub fn mkdir_all(&mut self, actor: Actor, path: &str, mode: u16, now: Millis) -> Result<Option<String>> {
        self.act(actor, |tree, eye| tree.mkdir_all(path, mode, now, eye))
    }

    /// Removes a file, a link or a directory.
    pub fn remove(&mut self, actor: Actor, path: &str, how: Remove, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.remove(path, how, now, eye))
    }

    /// Renames as rename(2).
    pub fn rename(&mut self, actor: Actor, from: &str, to: &str, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.rename(from, to, now, eye))
    }

    /// Makes a symbolic link.
    pub fn symlink(&mut self, actor: Actor, target: &str, path: &str, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.symlink(target, path, now, eye))
    }

    /// Sets the permission bits.
    pub fn chmod(&mut self, actor: Actor, path: &str, mode: u16, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.chmod(path, mode, now, eye))
    }

    /// Sets the permission bits of an open file.
    pub fn chmod_node(&mut self, actor: Actor, id: NodeId, mode: u16, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| {
            tree.chmod_node(id, mode, now, eye);
            Ok(())
        })
    }

    /// Sets the modification time.
    pub fn utimes(&mut self, actor: Actor, path: &str, mtime: Millis, follow: bool, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.utimes(path, mtime, follow, now, eye))
    }

    /// Sets the modification time of an open file.
    pub fn utimes_node(&mut self, actor: Actor, id: NodeId, mtime: Millis, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| {
            tree.utimes_node(id, mtime, now, eye);
            Ok(())
        })
    }

    /// Copies a file or a tree.
    pub fn copy(&mut self, actor: Actor, from: &str, to: &str, recursive: bool, now: Millis) -> Result<()> {
        self.act(actor, |tree, eye| tree.copy(from, to, recursive, now, eye))
    }

    fn id_of(&self, number: u32) -> Rc<str> {
        self.runs.get(&number).map_or_else(|| Rc::from(""), |run| Rc::clone(&run.id))
    }
}
