//! What a turn is run with: model, limits, tools, policy.

use super::object;
use crate::core::error::{Error, Kind, Result};
use crate::core::json::{Object, Value};

/// Steps a turn may take when nothing else is said.
pub const MAX_STEPS: u64 = 25;

/// When a tool's calls need a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Never.
    #[default]
    Never,
    /// When the tool changes something and no policy pattern covers it.
    Policy,
    /// Before every call.
    Always,
}

/// What the loop must know about a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// Name, as the model calls it.
    pub name: String,
    /// Whether calls next to each other may run together.
    pub parallel: bool,
    /// Whether it changes something.
    pub mutating: bool,
    /// Whether running it twice is the same as running it once.
    pub idempotent: bool,
    /// When it needs a verdict.
    pub approval: Approval,
}

/// What a turn is run with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Number of the turn.
    pub turn: u64,
    /// What set it off: `{kind, …}`.
    pub trigger: Object,
    /// Payloads of `context/message` events that come before the user's message.
    pub context: Vec<Object>,
    /// Payload of the `user/message`; none for a continuation.
    pub user: Option<Object>,
    /// Who is asked.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// The API it is asked through.
    pub api: String,
    /// Most steps.
    pub max_steps: u64,
    /// Most picodollars.
    pub budget: Option<i128>,
    /// Tools.
    pub tools: Vec<Tool>,
    /// Tool names (with `*`) that need no verdict under a policy.
    pub patterns: Vec<String>,
    /// Prompt tokens of the last step at which the session is compacted when the turn is over.
    pub compact_at: Option<u64>,
}

impl Config {
    /// Reads a configuration from the shell.
    pub fn read(value: &Value) -> Result<Config> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let whole = |key: &str| value.get(key).and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
        let members = |key: &str| value.get(key).and_then(Value::as_object).cloned();
        let list = |key: &str| value.get(key).and_then(Value::as_array).unwrap_or_default();
        Ok(Config {
            turn: whole("turn").ok_or_else(|| invalid("turn"))?,
            trigger: members("trigger").unwrap_or_else(|| object([("kind", "message")])),
            context: list("context").iter().filter_map(Value::as_object).cloned().collect(),
            user: members("user"),
            provider: text("provider"),
            model: text("model"),
            api: text("api"),
            max_steps: whole("maxSteps").unwrap_or(MAX_STEPS),
            budget: value.get("budget").and_then(Value::as_str).map(budget).transpose()?,
            tools: list("tools").iter().map(Tool::read).collect::<Result<_>>()?,
            patterns: list("patterns").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            compact_at: whole("compactAt"),
        })
    }

    /// Returns a tool by its name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Says whether a call of a tool needs a verdict.
    pub fn needs_verdict(&self, tool: &Tool) -> bool {
        match tool.approval {
            Approval::Never => false,
            Approval::Always => true,
            Approval::Policy => tool.mutating && !self.patterns.iter().any(|pattern| covers(pattern, &tool.name)),
        }
    }
}

impl Tool {
    fn read(value: &Value) -> Result<Tool> {
        let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
        let approval = match value.get("approval").and_then(Value::as_str) {
            None | Some("never") => Approval::Never,
            Some("policy") => Approval::Policy,
            Some("always") => Approval::Always,
            Some(_) => return Err(invalid("tools.approval")),
        };
        let name = value.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        Ok(Tool {
            name: name.ok_or_else(|| invalid("tools.name"))?.to_owned(),
            parallel: flag("parallel"),
            mutating: flag("mutating"),
            idempotent: flag("idempotent"),
            approval,
        })
    }
}

fn invalid(what: &str) -> Error {
    Error::new(Kind::InvalidArgument, format!("run configuration: {what} is missing or not valid")).with("path", what)
}

/// Reads a budget: dollars as a decimal text, in picodollars.
fn budget(usd: &str) -> Result<i128> {
    picodollars(usd).ok_or_else(|| {
        Error::new(Kind::InvalidArgument, "maxCostUsd must be dollars as a plain decimal, such as \"0.25\"")
            .with("path", "maxCostUsd")
    })
}

/// Returns the picodollars of dollars in plain decimal notation; digits beyond the twelfth are cut off.
fn picodollars(usd: &str) -> Option<i128> {
    let (whole, fraction) = usd.trim().split_once('.').unwrap_or((usd.trim(), ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return None;
    }
    let mut amount = format!("0{whole}");
    amount.extend(fraction.chars().chain(std::iter::repeat('0')).take(12));
    amount.parse().ok()
}

/// Says whether a pattern, in which `*` stands for any text, covers a name.
fn covers(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece).and_then(|at| left.get(at + piece.len()..)) {
            Some(after) => left = after,
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_exactly() {
        for (usd, pico) in [
            ("1", Some(1_000_000_000_000)),
            ("0.0000000000019", Some(1)),
            (".5", Some(500_000_000_000)),
            ("0", Some(0)),
            ("1e3", None),
            ("-1", None),
            ("", None),
            (".", None),
            ("1.2.3", None),
            ("123456789012345678901234567890", None),
        ] {
            assert_eq!(picodollars(usd), pico, "{usd}");
        }
    }

    #[test]
    fn a_pattern_covers_whole_names() {
        for (pattern, name, right) in [
            ("write_file", "write_file", true),
            ("write_file", "write_files", false),
            ("write_*", "write_file", true),
            ("*", "anything", true),
            ("*_file", "write_file", true),
            ("*_file", "write_file_now", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(covers(pattern, name), right, "{pattern} {name}");
        }
    }
}
