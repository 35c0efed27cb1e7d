//! Command-line arguments: flags may stand anywhere after the task.

use std::collections::VecDeque;

use crate::Outcome;

pub struct Args(VecDeque<String>);

impl Args {
    pub fn from_env() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Takes the first argument that is no flag.
    pub fn positional(&mut self) -> Option<String> {
        if self.0.front()?.starts_with('-') { None } else { self.0.pop_front() }
    }

    /// Takes a flag without a value.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|arg| arg == name);
        found.and_then(|at| self.0.remove(at)).is_some()
    }

    /// Takes `--name value` or `--name=value`.
    pub fn value(&mut self, name: &str) -> Outcome<Option<String>> {
        let prefix = format!("{name}=");
        let Some(at) = self.0.iter().position(|arg| arg == name || arg.starts_with(&prefix)) else { return Ok(None) };
        let arg = self.0.remove(at).unwrap_or_default();
        if let Some(value) = arg.strip_prefix(&prefix) {
            return Ok(Some(value.to_owned()));
        }
        self.0.remove(at).map(Some).ok_or_else(|| format!("{name} needs a value"))
    }

    /// Takes a whole number.
    pub fn number(&mut self, name: &str) -> Outcome<Option<u64>> {
        let text = self.value(name)?;
        text.map(|text| text.parse().map_err(|_| format!("{name} needs a number, not {text:?}"))).transpose()
    }

    /// Refuses what no task took.
    pub fn finish(&self) -> Outcome {
        self.0.front().map_or(Ok(()), |arg| Err(format!("unknown argument {arg:?}")))
    }
}
