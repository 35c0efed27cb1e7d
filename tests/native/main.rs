//! Native tests of the whole crate: one binary, one module per part.

mod structure;
mod undo;
