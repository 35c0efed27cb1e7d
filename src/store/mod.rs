//! The storage port: an ordered key-value store with atomic batches, and its backends.
//!
//! Everything the module keeps goes through [`Backend`]. A new kind of storage is one file here and one line in [`BACKENDS`];
//! the conformance suite then runs against it.

use std::cmp::Ordering;
use std::future::Future;
use std::pin::Pin;

use crate::core::error::{Error, Kind, Result};

// Published to callers as plain code of the shell (npm/src/check-backend.ts); compiled it is too big for the module.
#[cfg(any(not(target_family = "wasm"), feature = "conformance"))]
pub mod conformance;
mod crc;
pub mod layout;
pub mod local_storage;
pub mod memory;
pub mod opfs;
pub mod write_behind;

#[cfg(target_family = "wasm")]
pub mod indexed_db;
#[cfg(target_family = "wasm")]
mod signal;

/// One kind of storage as the table shows it.
#[derive(Clone, Copy, Debug)]
pub struct BackendKind {
    /// The `kind` of a storage specification.
    pub kind: &'static str,
    /// The file or folder below `src/store` that implements it; empty for a caller's own.
    pub file: &'static str,
    /// Whether an acknowledged batch outlives the process.
    pub durable: bool,
    /// Whether a batch is finished when the call returns.
    pub sync: bool,
    /// One line of documentation.
    pub doc: &'static str,
}

/// Every kind of storage, one line each.
pub const BACKENDS: &[BackendKind] = &[
    BackendKind {
        kind: "memory",
        file: "memory.rs",
        durable: false,
        sync: true,
        doc: "Lives and dies with the page; the reference for all others.",
    },
    BackendKind {
        kind: "indexeddb",
        file: "indexed_db",
        durable: true,
        sync: false,
        doc: "The default of a browser: atomic, large, shared by tabs.",
    },
    BackendKind {
        kind: "localstorage",
        file: "local_storage.rs",
        durable: false,
        sync: true,
        doc: "Best effort: browsers lose recent items when they are killed.",
    },
    BackendKind {
        kind: "opfs",
        file: "opfs",
        durable: true,
        sync: false,
        doc: "Files of the origin, in a dedicated worker; one holder at a time.",
    },
    BackendKind {
        kind: "custom",
        file: "",
        durable: true,
        sync: false,
        doc: "A caller's own object with the calls of the contract; the shell calls it, nothing here does.",
    },
];

/// One atomic batch: all of it happens or none.
///
/// Checks come first, then deletes, then puts, so that a range can be replaced in one batch.
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

/// How a range is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// At most so many entries.
    pub limit: Option<usize>,
    /// From the end of the range to its start.
    pub reverse: bool,
    /// Leaves the values out (they come as empty bytes).
    pub keys_only: bool,
}

/// Keys with their values, in the order asked for.
pub type Entries = Vec<(String, Vec<u8>)>;

/// What a port call gives: a future that stays on its thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// How much one value and one batch may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest value, in bytes.
    pub max_value_bytes: usize,
    /// Most puts and deletes of one batch.
    pub max_batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_value_bytes: 64 * 1024 * 1024, max_batch: 10_000 }
    }
}

/// An ordered key-value store with atomic batches. Keys are ordered by UTF-16 code units, as JavaScript and IndexedDB do.
pub trait Backend {
    /// Returns how much fits.
    fn limits(&self) -> Limits {
        Limits::default()
    }
    /// Returns the value of a key.
    fn get<'a>(&'a self, key: &'a str) -> LocalFuture<'a, Option<Vec<u8>>>;
    /// Returns the entries with `start <= key < end`.
    fn list<'a>(&'a self, start: &'a str, end: &'a str, options: ListOptions) -> LocalFuture<'a, Entries>;
    /// Carries out a batch: all of it or nothing.
    fn transact(&self, batch: Batch) -> LocalFuture<'_, ()>;
    /// Lets go of whatever is held; later calls fail with `disposed`.
    fn close(&self) -> LocalFuture<'_, ()>;
}

/// A store whose calls finish before they return; every such store is a [`Backend`].
pub trait SyncBackend {
    /// Returns how much fits.
    fn limits(&self) -> Limits {
        Limits::default()
    }
    /// Returns the value of a key.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>>;
    /// Returns the entries with `start <= key < end`.
    fn list(&self, start: &str, end: &str, options: ListOptions) -> Result<Entries>;
    /// Carries out a batch: all of it or nothing.
    fn transact(&self, batch: &Batch) -> Result<()>;
    /// Lets go of whatever is held; later calls fail with `disposed`.
    fn close(&self) -> Result<()>;
}

impl<S: SyncBackend + ?Sized> Backend for S {
    fn limits(&self) -> Limits {
        SyncBackend::limits(self)
    }

    fn get<'a>(&'a self, key: &'a str) -> LocalFuture<'a, Option<Vec<u8>>> {
        Box::pin(std::future::ready(SyncBackend::get(self, key)))
    }

    fn list<'a>(&'a self, start: &'a str, end: &'a str, options: ListOptions) -> LocalFuture<'a, Entries> {
        Box::pin(std::future::ready(SyncBackend::list(self, start, end, options)))
    }

    fn transact(&self, batch: Batch) -> LocalFuture<'_, ()> {
        Box::pin(std::future::ready(SyncBackend::transact(self, &batch)))
    }

    fn close(&self) -> LocalFuture<'_, ()> {
        Box::pin(std::future::ready(SyncBackend::close(self)))
    }
}

/// A key ordered by UTF-16 code units; plain text order of Rust differs from it above U+FFFF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) String);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_keys(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares two keys by UTF-16 code units.
pub fn compare_keys(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.cmp(b);
    }
    a.encode_utf16().cmp(b.encode_utf16())
}

/// The error of a batch whose check failed.
pub(crate) fn conflict(key: &str) -> Error {
    Error::new(Kind::Conflict, "another writer was first").with("key", key)
}

/// The error of a call on a store that was closed.
pub(crate) fn closed() -> Error {
    Error::new(Kind::Disposed, "the storage was closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_by_code_units() {
        // U+10000 is D800 DC00 in UTF-16 and so stands before U+FFFD, which code point order has the other way round.
        assert_eq!(compare_keys("\u{10000}", "\u{fffd}"), Ordering::Less);
        assert_eq!(compare_keys("a", "b"), Ordering::Less);
        assert_eq!(compare_keys("a", "a\0"), Ordering::Less);
        assert_eq!(compare_keys("é", "é"), Ordering::Equal);
    }

    #[test]
    fn every_backend_file_is_in_the_table() {
        let helpers = ["mod.rs", "layout.rs", "segment.rs", "signal.rs", "write_behind", "conformance.rs", "crc.rs"];
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let known = helpers.contains(&name.as_str()) || BACKENDS.iter().any(|b| b.file == name);
            assert!(known, "{name} is not in BACKENDS");
        }
    }
}
