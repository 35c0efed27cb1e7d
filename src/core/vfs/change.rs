//! What stands at a path, as journals remember it.

use std::rc::Rc;

use super::content::Content;
use crate::core::time::Millis;

/// What stands at a path.
#[derive(Clone, Debug)]
pub enum State {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// Its bytes.
        content: Rc<Content>,
        /// Permission bits.
        mode: u16,
        /// Modification time.
        mtime: Millis,
    },
    /// A directory; what it holds are paths of their own.
    Dir {
        /// Permission bits.
        mode: u16,
        /// Modification time.
        mtime: Millis,
    },
    /// A symbolic link.
    Link {
        /// Where it points, as written.
        target: Rc<str>,
        /// Modification time.
        mtime: Millis,
    },
}

impl State {
    /// Says whether two states are the same: type, bytes, mode and target; time does not count.
    pub fn same(&self, other: &State) -> bool {
        match (self, other) {
            (State::Absent, State::Absent) => true,
            (State::File { content: a, mode: m, .. }, State::File { content: b, mode: n, .. }) => {
                m == n && Content::same(a, b)
            }
            (State::Dir { mode: m, .. }, State::Dir { mode: n, .. }) => m == n,
            (State::Link { target: a, .. }, State::Link { target: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Returns the modification time; nothing has none.
    pub fn mtime(&self) -> Option<Millis> {
        match self {
            State::Absent => None,
            State::File { mtime, .. } | State::Dir { mtime, .. } | State::Link { mtime, .. } => Some(*mtime),
        }
    }

    /// Says whether nothing is there.
    pub fn is_absent(&self) -> bool {
        matches!(self, State::Absent)
    }

    /// Says whether this is a directory.
    pub fn is_dir(&self) -> bool {
        matches!(self, State::Dir { .. })
    }

    /// Says whether this is a file or a link.
    pub fn is_leaf(&self) -> bool {
        matches!(self, State::File { .. } | State::Link { .. })
    }

    /// Returns how many bytes count against the limit.
    pub fn size(&self) -> u64 {
        match self {
            State::File { content, .. } => content.len() as u64,
            _ => 0,
        }
    }
}

/// Someone who is told of every change of the tree, path by path.
///
/// `before` comes when the operation is certain to succeed and before anything changed; its answer is handed to `after`.
/// What `before` was given may be dropped at once: then a file that nobody else holds is changed in place. `lost` says that
/// the tree does not hold those bytes any more afterwards, as it does when a file only moves.
pub trait Watch {
    /// A path is about to change.
    fn before(&mut self, path: &str, state: State, lost: bool) -> u32;
    /// It has changed.
    fn after(&mut self, ticket: u32, state: State);
    /// One operation is done.
    fn done(&mut self);
}
