//! Everything that decides: log, derivation, scrubbing, cost, files and undo, the agent loop.
//!
//! Pure: time, ids and bytes come in as arguments, so that a whole session runs in a native test and one seed can drive
//! clock, faults and interleavings. Modules import only from modules above them in this list.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod base64;
pub mod double;
pub mod error;
pub mod limits;

pub mod json;
pub mod sorted;

pub mod id;
pub mod time;

pub mod event;

pub mod log;

pub mod tape;

pub mod message;

pub mod derive;

pub mod scrub;

pub mod cost;

pub mod record;

pub mod vfs;

pub mod undo;

pub mod run;

pub mod interop;

pub mod session;
