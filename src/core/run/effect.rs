//! What goes into the loop and what comes out of it.

use super::answer::Chunk;
use crate::core::json::{Object, Value};

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Begin the turn.
    Start,
    /// What was appended before is durable.
    CheckpointDone,
    /// It could not be made durable.
    CheckpointFailed(Fault),
    /// An event could not be appended; what came after it in the same answer was not carried out.
    AppendFailed {
        /// Why.
        fault: Fault,
        /// Type and call of every event that is not in the log for it, the failed one first.
        lost: Vec<(String, String)>,
    },
    /// The request was derived and is what the log yields.
    Derived,
    /// It was not.
    DeriveFailed(Fault),
    /// A piece of the stream.
    Chunk(Chunk),
    /// The stream is over.
    StreamEnded,
    /// The stream broke, or never began.
    StreamFailed {
        /// Why.
        fault: Fault,
        /// Whether the request was too long for the model.
        overflow: bool,
    },
    /// A compaction is over, and whether anything was compacted.
    Compacted(bool),
    /// Arguments were checked; these calls do not fit their schema, and why.
    Validated(Vec<(String, String)>),
    /// A verdict about a call.
    Verdict {
        /// The call.
        call: String,
        /// Whether it may run.
        approved: bool,
        /// Why not.
        reason: Option<String>,
    },
    /// A tool is done.
    ToolDone {
        /// The call.
        call: String,
        /// What came of it.
        outcome: Outcome,
    },
    /// The step that just ended was priced.
    Settled {
        /// Picodollars this run has cost by now.
        spent: i128,
        /// Prompt tokens of the step.
        prompt_tokens: u64,
    },
    /// The user steers.
    Steer {
        /// Id of the queue entry.
        id: String,
        /// What is said.
        text: String,
    },
    /// Stop.
    Cancel(Cancel),
}

/// Why a run is stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancel {
    /// Somebody wanted it.
    Asked(Option<String>),
    /// The session is being disposed of.
    Disposed,
}

/// What went wrong outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Stable code.
    pub code: String,
    /// For people.
    pub message: String,
}

impl Fault {
    /// Makes a fault.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Fault { code: code.to_owned(), message: message.into() }
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Text, or content parts.
    pub content: Value,
    /// What went wrong.
    pub error: Option<Fault>,
    /// Whether the loop says it, not the tool.
    pub synthetic: bool,
}

impl Outcome {
    /// Makes the outcome of a tool that did its work.
    pub fn done(content: impl Into<Value>) -> Self {
        Outcome { content: content.into(), error: None, synthetic: false }
    }

    /// Makes the outcome of a tool that failed.
    pub fn failed(code: &str, message: &str) -> Self {
        Outcome { content: message.into(), error: Some(Fault::new(code, message)), synthetic: false }
    }

    /// Makes the outcome of a call that the loop answers by itself.
    pub fn closed(code: &str, message: &str) -> Self {
        Outcome { synthetic: true, ..Outcome::failed(code, message) }
    }
}

/// A call, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// Id.
    pub id: String,
    /// Tool.
    pub name: String,
    /// Arguments.
    pub args: Object,
}

/// What is to be done; effects are carried out in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append an event.
    Append(&'static str, Object),
    /// Make durable what was appended; answered by `CheckpointDone` or `CheckpointFailed`.
    Checkpoint,
    /// Derive the request of a step and check it; answered by `Derived` or `DeriveFailed`.
    Derive(u64),
    /// Send it; answered by chunks and `StreamEnded` or `StreamFailed`.
    Send(u64),
    /// Check arguments against the schemas; answered by `Validated`.
    Validate(Vec<Ready>),
    /// Wait for a verdict, asking for it unless that stands in the log already; answered by `Verdict`.
    Ask {
        /// The call.
        call: Ready,
        /// Whether it was asked before.
        asked: bool,
    },
    /// Run these calls at the same time; answered by one `ToolDone` each.
    Run(Vec<Ready>),
    /// Compact the session; answered by `Compacted`.
    Compact,
    /// Price the step that just ended; answered by `Settled`.
    Settle,
    /// Fire the abort signal of the transport and the tools.
    Abort,
    /// The run is over.
    Finish(Finish),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// How.
    pub status: Status,
    /// The answer.
    pub answer: Option<String>,
    /// What went wrong.
    pub error: Option<Fault>,
    /// Steps taken.
    pub steps: u64,
    /// Ids of queue entries that nobody claimed: drafts now.
    pub drafts: Vec<String>,
}

macro_rules! statuses {
    ($($variant:ident $name:literal $doc:literal)+) => {
        /// How a run ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Status { $(#[doc = $doc] $variant,)+ }

        impl Status {
            /// Returns its name in the log and for JavaScript.
            pub const fn name(self) -> &'static str {
                match self { $(Status::$variant => $name,)+ }
            }
        }
    };
}

statuses! {
    Completed "completed" "The model gave its final answer."
    Failed "failed" "Something went wrong that the loop could not mend."
    Cancelled "cancelled" "It was stopped."
    Suspended "suspended" "It waits for a verdict that will come after a reload."
    MaxSteps "max-steps" "It would have taken more steps than allowed."
    BudgetReached "budget-reached" "It would have cost more than allowed."
}
