//! What a session projects from its log as events arrive: title, open turn, parent.

use crate::core::json::{self, Surrogates, Value};

/// Small facts that are kept up to date with every event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    title: Option<String>,
    turn: Option<OpenTurn>,
    forked_from: Option<String>,
    created_parent: Option<String>,
    first_user: Option<u64>,
}

/// A turn that has no end yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    /// Its number as its start says.
    pub turn: i64,
    /// The seq of its start.
    pub start: u64,
    /// The step that has no end yet.
    pub step: Option<i64>,
}

impl State {
    /// Takes one more event in.
    pub fn see(&mut self, seq: u64, kind: &str, data: &str) {
        match kind {
            "session/titled" => self.title = text(data, "title"),
            "session/forked" => self.forked_from = text(data, "from"),
            "session/created" => self.created_parent = text(data, "parentId"),
            "turn/start" => self.turn = Some(OpenTurn { turn: number(data, "turn"), start: seq, step: None }),
            "turn/end" => self.turn = None,
            "step/start" => {
                if let Some(turn) = &mut self.turn {
                    turn.step = Some(number(data, "step"));
                }
            }
            "step/end" => {
                if let Some(turn) = &mut self.turn {
                    turn.step = None;
                }
            }
            "user/message" if self.first_user.is_none() => self.first_user = Some(seq),
            _ => {}
        }
    }

    /// Returns the latest title.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns the turn that has no end yet.
    pub fn open_turn(&self) -> Option<OpenTurn> {
        self.turn
    }

    /// Returns the parent that the events name.
    pub fn parent(&self) -> Option<&str> {
        self.forked_from.as_deref().or(self.created_parent.as_deref())
    }

    /// Returns the seq of the first user message.
    pub fn first_user(&self) -> Option<u64> {
        self.first_user
    }
}

fn member(data: &str, key: &str) -> Option<Value> {
    json::parse(data, Surrogates::Replace).ok()?.get(key).cloned()
}

fn text(data: &str, key: &str) -> Option<String> {
    member(data, key)?.as_str().map(ToOwned::to_owned)
}

fn number(data: &str, key: &str) -> i64 {
    member(data, key).as_ref().and_then(Value::as_i64).unwrap_or_default()
}
