//! Scrubbers for the shell: the chain of a store, streams, and the built-in rules on one text.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Function, JsString};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

use super::error::throw;
use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Object, Surrogates, Value};
use crate::core::scrub::{self, Builtin, Chain, Detector, Pattern, ScrubStream, Scrubber, Values};

/// What a caller's function threw; it goes through the core as an error and out again as it is.
type Thrown = Rc<RefCell<Option<JsValue>>>;

/// A scrubber that is a function of the caller's.
struct Caller {
    name: String,
    call: Function,
    max_match_length: Option<usize>,
    thrown: Thrown,
}

impl Scrubber for Caller {
    fn name(&self) -> &str {
        &self.name
    }

    fn scrub<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        let out = self.call.call1(&JsValue::UNDEFINED, &text.into()).map_err(|thrown| {
            *self.thrown.borrow_mut() = Some(thrown);
            Error::new(Kind::ScrubberContract, "the scrubber threw")
        })?;
        // A lone surrogate half would silently become U+FFFD on its way into the module.
        let out: JsString = out.dyn_into().map_err(|_| scrub::check_replacement(&self.name))?;
        if !out.is_valid_utf16() {
            return Err(scrub::check_replacement(&self.name));
        }
        let out = String::from(out);
        Ok(if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) })
    }

    fn max_match_length(&self) -> Option<usize> {
        self.max_match_length
    }
}

/// Scrubbers in the order of their registration.
#[wasm_bindgen]
#[derive(Default)]
pub struct RawChain {
    chain: RefCell<Chain>,
    thrown: Thrown,
}

fn texts(list: &str) -> Result<Vec<String>> {
    let list = json::parse(list, Surrogates::Refuse)?;
    let items = list.as_array().unwrap_or_default().iter();
    Ok(items.filter_map(|item| item.as_str().map(ToOwned::to_owned)).collect())
}

fn builtin(name: &str) -> Result<Builtin> {
    [Builtin::Secrets, Builtin::Pii]
        .into_iter()
        .find(|b| b.name() == name)
        .ok_or_else(|| Error::new(Kind::ScrubberRefused, "the built-in scrubbers are `secrets` and `pii`"))
}

thread_local! {
    /// The rules without a choice of types, made once: their index is not built anew for every text.
    static ALL: [RefCell<Option<Rc<Detector>>>; 2] = const { [RefCell::new(None), RefCell::new(None)] };
}

fn rules(name: &str, only: &str, except: &str) -> Result<Rc<Detector>> {
    let which = builtin(name)?;
    let (only, except) = (texts(only)?, texts(except)?);
    if !only.is_empty() || !except.is_empty() {
        return Detector::new(which, &only, &except).map(Rc::new);
    }
    ALL.with(|[secrets, pii]| {
        let kept = if which == Builtin::Secrets { secrets } else { pii };
        if let Some(made) = kept.borrow().as_ref() {
            return Ok(made.clone());
        }
        let made = Rc::new(Detector::new(which, &[], &[])?);
        *kept.borrow_mut() = Some(made.clone());
        Ok(made)
    })
}

/// Text that came as bytes: the quicker way in for long ones.
fn text_of(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::new(Kind::InvalidArgument, "the bytes are no UTF-8"))
}

#[wasm_bindgen]
impl RawChain {
    /// Makes an empty chain.
    #[wasm_bindgen(constructor)]
    pub fn new() -> RawChain {
        RawChain::default()
    }

    fn add(&self, identity: u32, scrubber: Rc<dyn Scrubber>) {
        self.chain.borrow_mut().add(identity, scrubber);
    }

    pub(super) fn fail(&self, error: Error) -> JsValue {
        self.thrown.borrow_mut().take().unwrap_or_else(|| throw(error))
    }

    /// The chain as it is now; a cheap copy, so that nothing is borrowed while a caller's function runs.
    pub(super) fn now(&self) -> Chain {
        self.chain.borrow().clone()
    }

    /// Registers built-in rules; `only` and `except` are JSON lists of types.
    pub fn add_builtin(&self, identity: u32, name: &str, only: &str, except: &str) -> std::result::Result<(), JsValue> {
        self.add(identity, rules(name, only, except).map_err(throw)?);
        Ok(())
    }

    /// Registers exact values: a JSON list of texts.
    pub fn add_values(&self, identity: u32, values: &str, name: Option<String>) -> std::result::Result<(), JsValue> {
        let make = || Values::new(&texts(values)?, name.as_deref());
        self.add(identity, Rc::new(make().map_err(throw)?));
        Ok(())
    }

    /// Registers a pattern.
    pub fn add_pattern(
        &self,
        identity: u32,
        pattern: &str,
        replacement: Option<String>,
        name: Option<String>,
    ) -> std::result::Result<(), JsValue> {
        let pattern = Pattern::new(pattern, replacement.as_deref(), name.as_deref()).map_err(throw)?;
        self.add(identity, Rc::new(pattern));
        Ok(())
    }

    /// Registers a function of the caller's.
    pub fn add_function(&self, identity: u32, call: Function, name: String, max_match_length: Option<f64>) {
        let max_match_length = max_match_length.map(|n| n as usize);
        self.add(identity, Rc::new(Caller { name, call, max_match_length, thrown: self.thrown.clone() }));
    }

    /// Removes the last registration of an identity.
    pub fn remove(&self, identity: u32) -> bool {
        self.chain.borrow_mut().remove(identity)
    }

    /// Says whether nothing scrubs.
    pub fn is_empty(&self) -> bool {
        self.chain.borrow().is_empty()
    }

    /// Scrubs a text; nothing when it stays as it is.
    pub fn scrub(&self, text: &str) -> std::result::Result<Option<String>, JsValue> {
        changed(self.now().scrub(text)).map_err(|e| self.fail(e))
    }

    /// As `scrub`, for a text in UTF-8.
    pub fn scrub_bytes(&self, text: &[u8]) -> std::result::Result<Option<String>, JsValue> {
        self.scrub(text_of(text).map_err(throw)?)
    }

    /// As `scrub_payload`, for a payload in UTF-8.
    pub fn scrub_payload_bytes(&self, kind: &str, data: &[u8]) -> std::result::Result<Option<String>, JsValue> {
        self.scrub_payload(kind, text_of(data).map_err(throw)?)
    }

    /// Where a chain of one finds its matches: `start end start end …` in UTF-16 units; nothing when its scrubber cannot say.
    pub fn spans(&self, text: &str) -> Option<Vec<u32>> {
        let mut units = Units { text, byte: 0, units: 0 };
        let spans = self.now().spans(text)?;
        Some(spans.into_iter().flat_map(|(start, end)| [units.at(start) as u32, units.at(end) as u32]).collect())
    }

    /// Scrubs the payload of an event (JSON text); nothing when it stays as it is.
    pub fn scrub_payload(&self, kind: &str, data: &str) -> std::result::Result<Option<String>, JsValue> {
        changed(scrub::scrub_payload(kind, data, &self.now())).map_err(|e| self.fail(e))
    }

    /// Returns a value (JSON text) as it would stand under a content key; nothing when it stays as it is.
    pub fn stored_form(&self, value: &str) -> std::result::Result<Option<String>, JsValue> {
        changed(scrub::stored_form(value, &self.now())).map_err(|e| self.fail(e))
    }

    /// Starts a stream with the scrubbers registered now.
    pub fn stream(&self) -> RawScrubStream {
        RawScrubStream { stream: RefCell::new(ScrubStream::new(&self.now())), thrown: self.thrown.clone() }
    }
}

fn changed(out: Result<Cow<'_, str>>) -> Result<Option<String>> {
    out.map(|text| match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    })
}

/// Text in pieces.
#[wasm_bindgen]
pub struct RawScrubStream {
    stream: RefCell<ScrubStream>,
    thrown: Thrown,
}

#[wasm_bindgen]
impl RawScrubStream {
    fn with<T>(&self, work: impl FnOnce(&mut ScrubStream) -> Result<T>) -> std::result::Result<T, JsValue> {
        // A caller's function may come back to this very stream: it then finds it taken.
        let Ok(mut stream) = self.stream.try_borrow_mut() else {
            return Err(throw(Error::new(Kind::Busy, "a scrubber used the stream that it is scrubbing")));
        };
        let out = work(&mut stream);
        drop(stream);
        out.map_err(|e| self.thrown.borrow_mut().take().unwrap_or_else(|| throw(e)))
    }

    /// Takes a piece and returns what is decided.
    pub fn push(&self, piece: &str) -> std::result::Result<String, JsValue> {
        self.with(|stream| stream.push(piece))
    }

    /// Ends the stream and returns the rest.
    pub fn end(&self) -> std::result::Result<String, JsValue> {
        self.with(ScrubStream::end)
    }
}

impl RawScrubStream {
    /// Takes a piece, the last one with what is left.
    pub(super) fn take(&self, piece: &str, last: bool) -> std::result::Result<String, JsValue> {
        self.with(|stream| {
            let mut text = stream.push(piece)?;
            if last {
                text.push_str(&stream.end()?);
            }
            Ok(text)
        })
    }
}

/// Byte offsets on their way to UTF-16 units, in ascending order.
struct Units<'t> {
    text: &'t str,
    byte: usize,
    units: usize,
}

impl Units<'_> {
    fn at(&mut self, byte: usize) -> usize {
        self.units += self.text.get(self.byte..byte).unwrap_or_default().encode_utf16().count();
        self.byte = byte;
        self.units
    }
}

/// Finds what the built-in rules redact: JSON text `[{type, start, end}]`, in UTF-16 units.
#[wasm_bindgen]
pub fn raw_find_secrets(name: &str, only: &str, except: &str, text: &str) -> std::result::Result<String, JsValue> {
    let find = || {
        let detector = rules(name, only, except)?;
        let mut units = Units { text, byte: 0, units: 0 };
        let rows = detector.find(text).into_iter().map(|found| {
            let (start, end) = (units.at(found.start), units.at(found.end));
            Object::from([("type", Value::from(found.kind)), ("start", start.into()), ("end", end.into())]).into()
        });
        Ok(Value::Array(rows.collect()).to_text())
    };
    find().map_err(throw)
}

/// Says whether a text holds a redaction mark.
#[wasm_bindgen]
pub fn raw_has_marker(text: &str) -> bool {
    scrub::has_marker(text)
}
