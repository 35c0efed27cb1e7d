//! The storage port: an ordered key-value store with atomic batches, and its backends.

/// One atomic batch: all of it happens or none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// What must stand under a key (or not) for the batch to go through; else it fails with `conflict`.
    pub checks: Vec<(String, Option<Vec<u8>>)>,
    /// Values to write, in order.
    pub puts: Vec<(String, Vec<u8>)>,
    /// Keys to remove.
    pub deletes: Vec<String>,
}

impl Batch {
    /// Says whether the batch would change nothing.
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.deletes.is_empty()
    }
}
