//! Bindings: they translate between JavaScript and the core, and decide nothing.
//!
//! The classes exported here are raw: the hand-written shell in `npm/src` wraps them into the public interface.

mod backends;
mod cost;
mod derive;
mod engine;
mod error;
mod interop;
mod record;
mod run;
mod scrub;
mod vfs;
