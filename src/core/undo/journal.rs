//! The journal of one run: what it found and what it left, path by path.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use crate::core::vfs::{State, Watch};

/// A hasher for short texts from one's own tree: fast, and not meant to withstand an adversary.
#[derive(Default)]
pub(crate) struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            self.write_u64(word);
        }
        let tail = words.remainder().iter().fold(bytes.len() as u64, |sum, byte| (sum << 8) | u64::from(*byte));
        self.write_u64(tail);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// What a run found at one path and what it left there.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub path: Rc<str>,
    pub image: State,
    pub left: State,
    /// Waits to be stored.
    pub dirty: bool,
    /// Taken back with a failed call; kept in its place so that indices stay.
    pub dead: bool,
}

impl Entry {
    /// Says whether undo cannot go behind this: the bytes that the run found were too many to be kept.
    pub fn is_barrier(&self) -> bool {
        !self.dead && is_forgotten(&self.image)
    }
}

/// Says whether a state is a file of which only length and hash are known.
pub(super) fn is_forgotten(state: &State) -> bool {
    matches!(state, State::File { content, .. } if !content.is_whole())
}

/// The entries of one run, or of one undo.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub entries: Vec<Entry>,
    index: QuickMap<Rc<str>, u32>,
    pub dirty: Vec<u32>,
    /// Something besides entries waits to be stored.
    pub head_dirty: bool,
    /// Operations that changed the tree.
    pub ops: u64,
    /// Stored pieces that could not be read.
    pub damaged: u32,
    /// Numbers of the stored pieces: first and one past the last.
    pub pieces: (u32, u32),
    /// Entries in the stored pieces, later ones overriding earlier ones.
    pub written: usize,
}

impl Journal {
    /// Stands for a journal that is named and not there.
    pub fn broken() -> Journal {
        Journal { damaged: 1, ..Journal::default() }
    }

    /// Returns the entry of a path, by index.
    pub fn find(&self, path: &str) -> Option<u32> {
        self.index.get(path).copied()
    }

    /// Returns the entries that count.
    pub fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.dead)
    }

    pub fn get(&self, at: u32) -> Option<&Entry> {
        self.entries.get(at as usize)
    }

    pub fn get_mut(&mut self, at: u32) -> Option<&mut Entry> {
        self.entries.get_mut(at as usize)
    }

    /// Adds or replaces the entry of a path.
    pub fn set(&mut self, path: Rc<str>, image: State, left: State) -> u32 {
        let at = match self.find(&path) {
            Some(at) => {
                if let Some(entry) = self.get_mut(at) {
                    (entry.image, entry.left, entry.dead) = (image, left, false);
                }
                at
            }
            None => {
                let at = self.entries.len() as u32;
                self.index.insert(Rc::clone(&path), at);
                self.entries.push(Entry { path, image, left, dirty: false, dead: false });
                at
            }
        };
        self.mark(at);
        at
    }

    /// Notes that an entry waits to be stored.
    pub fn mark(&mut self, at: u32) {
        if let Some(entry) = self.entries.get_mut(at as usize).filter(|entry| !entry.dirty) {
            entry.dirty = true;
            self.dirty.push(at);
        }
    }

    /// Notes that all entries wait to be stored, in new pieces behind those that there are.
    pub fn mark_all(&mut self) {
        self.pieces.0 = self.pieces.1;
        self.written = 0;
        self.head_dirty = true;
        for at in 0..self.entries.len() as u32 {
            self.mark(at);
        }
    }

    /// Remembers what stands at a path that is about to change.
    ///
    /// When it is not what the run left there, the image is taken anew: undo never goes behind somebody else's edit.
    fn before(&mut self, path: &str, state: State, too_large: bool) -> u32 {
        let state = if too_large { self.forget(state) } else { state };
        let Some(at) = self.find(path) else { return self.set(Rc::from(path), state, State::Absent) };
        if let Some(entry) = self.entries.get_mut(at as usize) {
            if entry.dead || !state.same(&entry.left) {
                entry.image = state;
                entry.dead = false;
            }
            // Lets go of the bytes, so that a file nobody else holds grows in place.
            entry.left = State::Absent;
        }
        self.mark(at);
        at
    }

    fn after(&mut self, at: u32, state: State) {
        if let Some(entry) = self.entries.get_mut(at as usize) {
            entry.left = state;
        }
    }

    /// Declares that the bytes of a file will not be kept: images of them become barriers, under whatever path.
    fn forget(&mut self, state: State) -> State {
        let State::File { content, mode, mtime } = state else { return state };
        let less = Rc::new(content.forgotten());
        for at in 0..self.entries.len() as u32 {
            let image = self.get_mut(at).map(|entry| &mut entry.image);
            let Some(State::File { content: held, .. }) = image else { continue };
            if Rc::ptr_eq(held, &content) {
                *held = Rc::clone(&less);
                self.mark(at);
            }
        }
        State::File { content: less, mode, mtime }
    }
}

/// What one tool call did, kept until it is known whether it succeeded.
#[derive(Debug)]
pub(crate) struct Call {
    pub id: Rc<str>,
    pub ops: u64,
    pub touched: Vec<Touched>,
    index: QuickMap<u32, usize>,
}

/// One path that a call touched.
#[derive(Debug)]
pub(crate) struct Touched {
    /// The entry of the run.
    pub at: u32,
    /// That entry as it was before the call; none when the call made it.
    pub prev: Option<(State, State)>,
    pub image: State,
    pub left: State,
}

impl Call {
    pub fn new(id: &str) -> Self {
        Call { id: Rc::from(id), ops: 0, touched: Vec::new(), index: QuickMap::default() }
    }

    fn before(&mut self, at: u32, prev: Option<(State, State)>, state: State) {
        match self.index.get(&at).and_then(|slot| self.touched.get_mut(*slot)) {
            Some(touched) => {
                if !state.same(&touched.left) {
                    touched.image = state;
                }
                touched.left = State::Absent;
            }
            None => {
                self.index.insert(at, self.touched.len());
                self.touched.push(Touched { at, prev, image: state, left: State::Absent });
            }
        }
    }

    fn after(&mut self, at: u32, state: State) {
        if let Some(touched) = self.index.get(&at).and_then(|slot| self.touched.get_mut(*slot)) {
            touched.left = state;
        }
    }

    fn knows(&self, at: u32) -> bool {
        self.index.contains_key(&at)
    }
}

/// Writes down what one operation of a run, or of a call in it, changes.
pub(crate) struct Scribe<'a> {
    pub journal: &'a mut Journal,
    pub call: Option<&'a mut Call>,
    /// Most bytes of a file that are kept of what it was before.
    pub image_limit: usize,
}

impl Watch for Scribe<'_> {
    fn before(&mut self, path: &str, state: State, lost: bool) -> u32 {
        let too_large = lost && state.size() > self.image_limit as u64;
        let Some(call) = self.call.as_deref_mut() else { return self.journal.before(path, state, too_large) };
        let known = self.journal.find(path).filter(|at| !call.knows(*at));
        let prev = known
            .and_then(|at| self.journal.get(at))
            .filter(|entry| !entry.dead)
            .map(|entry| (entry.image.clone(), entry.left.clone()));
        // The call can be rolled back all the same: it keeps the bytes until it ends.
        let at = self.journal.before(path, state.clone(), too_large);
        call.before(at, prev, state);
        at
    }

    fn after(&mut self, at: u32, state: State) {
        if let Some(call) = self.call.as_deref_mut() {
            call.after(at, state.clone());
        }
        self.journal.after(at, state);
    }

    fn done(&mut self) {
        self.journal.ops += 1;
        if let Some(call) = self.call.as_deref_mut() {
            call.ops += 1;
        }
    }
}
