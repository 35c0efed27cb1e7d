//! How a turn ends, and what is said of calls that get no result of their own.

use super::effect::{Cancel, Fault, Outcome, Status};
use super::object;
use crate::core::json::Object;

/// How the turn is going to end.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) status: Status,
    pub(super) reason: Object,
    pub(super) answer: Option<String>,
    pub(super) error: Option<Fault>,
}

impl Ending {
    pub(super) fn plain(status: Status, kind: &str) -> Self {
        Ending { status, reason: object([("kind", kind)]), answer: None, error: None }
    }

    pub(super) fn failed(kind: &str, fault: Fault) -> Self {
        let reason = object([("kind", kind), ("message", fault.message.as_str()), ("code", fault.code.as_str())]);
        Ending { status: Status::Failed, reason, answer: None, error: Some(fault) }
    }

    pub(super) fn cancelled(cancel: &Cancel) -> Self {
        let Cancel::Asked(why) = cancel else { return Ending::plain(Status::Cancelled, "disposed") };
        let mut ending = Ending::plain(Status::Cancelled, "cancelled");
        if let Some(why) = why {
            ending.reason.set("reason", why.as_str());
        }
        ending
    }
}

/// Makes the payload of a `tool/result`.
pub(super) fn result(turn: u64, step: u64, id: &str, outcome: &Outcome) -> Object {
    let mut data = object([("turn", turn), ("step", step)]);
    data.set("id", id);
    data.set("content", outcome.content.clone());
    if let Some(fault) = &outcome.error {
        data.set("isError", true);
        data.set("error", object([("code", fault.code.as_str()), ("message", fault.message.as_str())]));
    }
    if outcome.synthetic {
        data.set("synthetic", true);
    }
    data
}

/// Returns the outcome of a call that was denied.
pub(super) fn denied(reason: Option<&str>) -> Outcome {
    let message = match reason {
        Some(reason) => format!("The call was denied and not executed: {reason}"),
        None => "The call was denied and not executed.".to_owned(),
    };
    Outcome::closed(DENIED, &message)
}

const DENIED: &str = "denied";

/// Says whether an outcome is that of a denied call.
pub(super) fn is_denied(outcome: &Outcome) -> bool {
    outcome.error.as_ref().is_some_and(|fault| fault.code == DENIED)
}

/// Returns the outcome of a call that was cut off while it ran.
pub(super) fn unknown() -> Outcome {
    Outcome::closed("outcome_unknown", "The tool was cut off while it was running; its outcome is unknown.")
}
