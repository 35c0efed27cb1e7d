//! The agent loop for the shell: JSON text in, JSON text out.

use std::cell::RefCell;

use wasm_bindgen::prelude::*;

use super::error::throw;
use crate::core::error::Result;
use crate::core::json::{self, Object, Surrogates};
use crate::core::run::{self, Config, Failure, Machine, Past};

/// One turn.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawRun {
    machine: RefCell<Machine>,
}

#[wasm_bindgen]
impl RawRun {
    /// Makes a turn from its configuration.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str) -> std::result::Result<RawRun, JsValue> {
        let read = || Config::read(&json::parse(config, Surrogates::Replace)?);
        Ok(RawRun { machine: RefCell::new(Machine::new(read().map_err(throw)?)) })
    }

    /// Goes on with a turn from its events (JSON text of a list of `{type, data}`) and returns the first effects.
    pub fn recover(&self, events: &str) -> std::result::Result<String, JsValue> {
        let events = json::parse(events, Surrogates::Replace).map_err(throw)?;
        let past = events
            .as_array()
            .unwrap_or_default()
            .iter()
            .filter_map(|event| Some(Past { kind: event.get("type")?.as_str()?, data: event.get("data")? }));
        let config = self.machine.borrow().config().clone();
        let (machine, effects) = Machine::recover(config, past);
        *self.machine.borrow_mut() = machine;
        Ok(run::write_effects(effects))
    }

    /// Takes an input and returns the effects.
    pub fn handle(&self, input: &str) -> std::result::Result<String, JsValue> {
        let read = || run::read_input(&json::parse(input, Surrogates::Replace)?);
        let input = read().map_err(throw)?;
        Ok(run::write_effects(self.machine.borrow_mut().handle(input)))
    }

    /// Returns the turn and the step that are at hand.
    pub fn at(&self) -> Vec<f64> {
        let (turn, step) = self.machine.borrow().at();
        vec![turn as f64, step as f64]
    }

    /// Takes a piece of the stream that has no short form.
    pub fn chunk(&self, chunk: &str) -> std::result::Result<(), JsValue> {
        let read = || -> Result<()> {
            let chunk = run::read_chunk(&json::parse(chunk, Surrogates::Replace)?)?;
            run::take_all(&mut self.machine.borrow_mut(), [chunk]);
            Ok(())
        };
        read().map_err(throw)
    }

    /// Takes a piece of text.
    pub fn text(&self, text: &str) {
        if let Some(answer) = self.machine.borrow_mut().streaming() {
            answer.text(text);
        }
    }

    /// Takes a piece of reasoning without opaque fields.
    pub fn reasoning(&self, text: &str) {
        if let Some(answer) = self.machine.borrow_mut().streaming() {
            answer.reasoning(text, Object::default());
        }
    }

    /// Takes a piece of a call's arguments.
    pub fn args(&self, id: &str, name: Option<String>, delta: &str) {
        if let Some(answer) = self.machine.borrow_mut().streaming() {
            answer.args(id, name.as_deref(), delta);
        }
    }
}

/// Returns how long to wait before a request is sent again, or nothing when it is not.
#[wasm_bindgen]
pub fn raw_retry_pause_ms(attempts: u32, status: Option<u16>, retry_after_ms: Option<f64>, jitter: u32) -> Option<f64> {
    // A server's wish comes as a float; what is negative or not a number is no wish.
    let retry_after_ms = retry_after_ms.filter(|ms| *ms >= 0.0).map(|ms| ms as u64);
    run::pause_ms(Failure { attempts, status, retry_after_ms, jitter }).map(|ms| ms as f64)
}
