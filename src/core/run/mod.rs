//! The agent loop as a pure state machine: what happened goes in, what is to be done comes out.
//!
//! A driver (the shell in a page or worker, a test in Rust) carries out the effects in their order and hands back what
//! came of them. Everything that decides is here: the order of events, batches and barriers, verdicts, limits, what is
//! kept when a turn is cut off, and what may be run again after a reload.

mod answer;
mod batch;
mod calls;
mod codec;
mod config;
mod effect;
mod ending;
mod machine;
mod recover;
mod retry;

pub use answer::{Answer, Chunk, arguments};
pub use codec::{read_chunk, read_input, write_effects};
pub use config::{Approval, Config, MAX_STEPS, Tool};
pub use effect::{Cancel, Effect, Fault, Finish, Input, Outcome, Ready, Status};
pub use machine::{Machine, take_all};
pub use recover::Past;
pub use retry::{Failure, MAX_ATTEMPTS, pause_ms};

use super::json::{Object, Value};

/// Makes an object whose members are of one kind.
fn object<V: Into<Value>, const N: usize>(members: [(&str, V); N]) -> Object {
    members.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}
