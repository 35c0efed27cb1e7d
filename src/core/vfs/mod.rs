//! An in-memory POSIX file tree: files, directories, links, modes, times.
//!
//! A real Linux disk is the measure. Nothing here stores anything or keeps a history: a [`Watch`] is told of every change,
//! path by path, and the nodes whose records are behind are listed for whoever stores them (`core::undo`).

mod change;
mod content;
mod errno;
mod ops;
mod path;
mod tree;

pub use change::{State, Watch};
pub use content::{Content, Hash};
pub use errno::{Errno, Result};
pub use ops::{Eye, Remove, Write};
pub(crate) use path::parent as parent_path;
pub(crate) use tree::{Body, Node};
pub use tree::{NodeId, ROOT, Stat, Tree, Type};
