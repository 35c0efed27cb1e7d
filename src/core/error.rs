//! The one error type, and the one table of its kinds.

use std::fmt;

use super::json::{Object, Value};

macro_rules! kinds {
    ($($variant:ident $code:literal $doc:literal)+) => {
        /// What went wrong; each kind has a stable code that JavaScript sees.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $(#[doc = $doc] $variant,)+ }

        impl Kind {
            /// Every kind, in the order of the documentation.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant,)+];

            /// Returns the stable code.
            pub const fn code(self) -> &'static str {
                match self { $(Kind::$variant => $code,)+ }
            }

            /// Returns one line of documentation.
            pub const fn doc(self) -> &'static str {
                match self { $(Kind::$variant => $doc,)+ }
            }
        }
    };
}

kinds! {
    NotJson "not_json" "A value would not survive JSON text unchanged; `details.path` names where."
    UndeclaredType "undeclared_type" "An event type is neither built in nor declared."
    InvalidEvent "invalid_event" "An event is not shaped as its type says."
    InvalidSeed "invalid_seed" "A seed is not a contiguous valid log; `details.index` names the first bad event."
    InvalidId "invalid_id" "An id is not 1 to 128 of `[A-Za-z0-9_-]`, or starts with `-`."
    InvalidCwd "invalid_cwd" "A working directory is not absolute."
    InvalidArgument "invalid_argument" "An argument or option is of the wrong kind or out of range."
    InvalidBoundary "invalid_boundary" "A fork names two boundaries, or one outside the log."
    InvalidPath "invalid_path" "A path is empty, holds a NUL, or cannot be used."
    OpenTurn "open_turn" "A fork would cut a turn in the middle."
    AlreadyExists "already_exists" "A session or provider of that name exists."
    NotFound "not_found" "Nothing has that id."
    AmbiguousId "ambiguous_id" "An id prefix fits several sessions; `details.matches` lists them."
    Missing "missing" "The store has no such session."
    Corrupt "corrupt" "Stored data cannot be read; it is kept as it is."
    NewerFormat "newer_format" "Stored data was written by a newer version."
    Conflict "conflict" "Another writer was first; `details.head` is what the store holds."
    Locked "locked" "Another tab or process holds the session or file."
    Blocked "blocked" "Another connection keeps the database from opening."
    Timeout "timeout" "The storage did not answer in time."
    Quota "quota" "The storage is full."
    Unavailable "unavailable" "This environment has no such storage or feature."
    Disposed "disposed" "The object was disposed of."
    Busy "busy" "A task is already running."
    ScrubberContract "scrubber_contract" "A scrubber returned something other than well-formed text."
    ScrubberRefused "scrubber_refused" "A scrubber cannot be registered as given."
    LogInvariant "log_invariant" "What is about to be sent is not what the log yields; `details.index` is the first difference."
    EmptyHistory "empty_history" "There is nothing to compact."
    InvalidPriceTable "invalid_price_table" "A price table has a fault; `details.path` names it."
    InvalidUsage "invalid_usage" "A usage figure or amount is not a number that can be counted."
    BudgetReached "budget_reached" "The budget of the run is used up."
    UndoConflict "undo_conflict" "Files changed since the run; `details.paths` lists them."
    UndoFailed "undo_failed" "An undo could not be carried out and changed nothing."
    NotUndoable "not_undoable" "There is nothing to undo, or not any more."
    CspBlocked "csp_blocked" "The page's Content-Security-Policy does not let WebAssembly compile."
    Poisoned "poisoned" "The module instance had an internal fault; call `init` again."
    Storage "storage" "The storage failed in a way that has no code of its own."
}

/// An error: kind, message for people, details for machines. Messages never carry payload text.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    kind: Kind,
    message: String,
    details: Object,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error of a kind with a message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, message: message.into(), details: Object::default() }))
    }

    /// Adds one detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.details.set(key, value.into());
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the machine-readable context.
    pub fn details(&self) -> &Object {
        &self.0.details
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_snake_case() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in Kind::ALL {
            assert!(seen.insert(kind.code()), "{} twice", kind.code());
            assert!(kind.code().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        }
    }

    #[test]
    fn an_error_shows_code_and_message_and_keeps_details() {
        let error = Error::new(Kind::NotJson, "bad value").with("path", "a.b");
        assert_eq!(error.to_string(), "not_json: bad value");
        assert_eq!(error.details().get("path").and_then(Value::as_str), Some("a.b"));
    }
}
