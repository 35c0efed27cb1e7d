//! The calls of one answer: what stands about each, and which run together.

use super::answer::Asked;
use super::config::Config;
use super::effect::{Outcome, Ready};
use crate::core::json::Object;

/// What the loop knows about one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Id.
    pub id: String,
    /// Tool.
    pub name: String,
    /// Arguments.
    pub args: Object,
    /// Whether a request for a verdict stands in the log.
    pub asked: bool,
    /// Whether that request speaks of other arguments or another tool.
    pub misled: bool,
    /// Whether a verdict is still waited for.
    pub waiting: bool,
    /// Whether it was approved.
    pub approved: bool,
    /// Whether its `tool/call` stands in the log.
    pub started: bool,
    /// What came of it.
    pub outcome: Option<Outcome>,
    /// Whether its `tool/result` stands in the log.
    pub answered: bool,
}

impl Call {
    /// Takes a call of an answer; what can be said before anything runs is said at once.
    pub fn new(asked: Asked, config: &Config) -> Self {
        let outcome = match (&asked.args, config.tool(&asked.name)) {
            (_, None) => Some(Outcome::failed("unknown_tool", "There is no tool of that name.")),
            (None, _) => Some(invalid("The call was not executed: its arguments are not a JSON object.")),
            _ => None,
        };
        Call {
            id: asked.id,
            name: asked.name,
            args: asked.args.unwrap_or_default(),
            asked: false,
            misled: false,
            waiting: false,
            approved: false,
            started: false,
            outcome,
            answered: false,
        }
    }

    /// Returns what a driver needs to run it.
    pub fn ready(&self) -> Ready {
        Ready { id: self.id.clone(), name: self.name.clone(), args: self.args.clone() }
    }
}

/// Returns the outcome of a call whose arguments cannot be used.
pub fn invalid(message: &str) -> Outcome {
    Outcome::failed("invalid_arguments", message)
}

/// Returns how many calls from `from` on belong to one batch: neighbours that may run together, else one.
pub fn batch_len(calls: &[Call], from: usize, config: &Config) -> usize {
    // A call that will not run is no reason to wait.
    let together = |call: &&Call| call.outcome.is_some() || config.tool(&call.name).is_some_and(|tool| tool.parallel);
    let run = calls.iter().skip(from).take_while(together).count();
    run.max(1).min(calls.len().saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::run::config::Tool;

    #[test]
    fn neighbours_that_may_run_together_are_one_batch_and_others_stand_alone() {
        let tool = |name: &str, parallel| Tool { name: name.into(), parallel, ..Tool::default() };
        let config = Config { tools: vec![tool("p", true), tool("b", false)], ..Config::default() };
        let call = |name: &str| {
            Call::new(Asked { id: name.into(), name: name.into(), args: Some(Object::default()) }, &config)
        };
        for (names, right) in [
            ("ppbp", vec![2, 1, 1]),
            ("bb", vec![1, 1]),
            ("ppp", vec![3]),
            ("p?p", vec![3]),
            ("?b", vec![1, 1]),
            ("", vec![]),
        ] {
            let calls: Vec<_> = names.chars().map(|c| call(&c.to_string())).collect();
            let mut sizes = Vec::new();
            let mut from = 0;
            while from < calls.len() {
                sizes.push(batch_len(&calls, from, &config));
                from += sizes.last().copied().unwrap();
            }
            assert_eq!(sizes, right, "{names}");
        }
    }
}
