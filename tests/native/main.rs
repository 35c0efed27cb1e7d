//! Native tests of the whole crate: one binary, one module per part.

mod cost;
mod derive;
mod persist;
mod run;
mod run_world;
mod scrub;
mod sessions;
mod structure;
mod undo;
mod undo_property;
mod vfs_disk;
mod vfs_hard;
