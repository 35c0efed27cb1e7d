//! Native tests of the whole crate: one binary, one module per part.

mod cost;
mod sessions;
mod structure;
mod undo;
mod undo_property;
