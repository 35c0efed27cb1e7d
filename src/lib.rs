//! The history of an agent, kept right.
//!
//! Three rooms, and arrows only in this direction: [`core`] is pure (no clock, no randomness, no I/O), [`store`] holds the
//! storage port and its backends, and `wasm` translates both for JavaScript and decides nothing.

pub mod core;
pub mod store;
#[cfg(target_family = "wasm")]
pub mod wasm;
