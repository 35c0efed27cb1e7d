//! One transaction each: everything is computed before it opens, all requests are issued in one go, and nothing foreign is
//! awaited while it lives.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Uint8Array};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{
    Event, IdbCursorDirection, IdbCursorWithValue, IdbDatabase, IdbKeyRange, IdbObjectStore, IdbRequest, IdbTransaction,
};

use super::fault::Fault;
use super::open::STORE;
use crate::store::signal::Signal;
use crate::store::{ListOptions, conflict};

// What web-sys still calls unstable, though every browser has had it for years.
#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(extends = IdbDatabase)]
    type Database;
    #[wasm_bindgen(method, catch)]
    fn transaction(this: &Database, store: &str, mode: &str, options: &JsValue) -> Result<IdbTransaction, JsValue>;
}

type Outcome<T> = Result<T, Fault>;

/// What a transaction may do, and for writing how far it must reach before it counts as done.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    Read,
    Write { strict: bool },
}

impl Mode {
    fn open(self, db: &IdbDatabase) -> Result<IdbTransaction, JsValue> {
        let options = js_sys::Object::new();
        let name = match self {
            Mode::Read => "readonly",
            Mode::Write { strict } => {
                let durability = if strict { "strict" } else { "relaxed" };
                // Setting a property of a fresh plain object cannot fail.
                let _ = js_sys::Reflect::set(&options, &"durability".into(), &durability.into());
                "readwrite"
            }
        };
        db.unchecked_ref::<Database>().transaction(STORE, name, &options)
    }
}

/// A batch in JavaScript's terms: values go to the database as they are, without a copy into the module.
#[derive(Clone, Default)]
pub(crate) struct JsBatch {
    pub(crate) checks: Vec<(JsValue, Option<Uint8Array>)>,
    pub(crate) puts: Vec<(JsValue, JsValue)>,
    pub(crate) deletes: Vec<JsValue>,
}

/// A transaction and the future of its end.
struct Running {
    transaction: IdbTransaction,
    store: IdbObjectStore,
    end: Signal<Outcome<()>>,
    /// Why we aborted it ourselves, if we did.
    verdict: Rc<RefCell<Option<Fault>>>,
    _handlers: [Closure<dyn FnMut(Event)>; 3],
}

impl Running {
    fn begin(db: &IdbDatabase, mode: Mode) -> Outcome<Self> {
        let transaction = mode.open(db).map_err(|thrown| Fault::from_js(&thrown))?;
        let store = transaction.object_store(STORE).map_err(|thrown| Fault::from_js(&thrown))?;
        let end = Signal::new();
        let verdict = Rc::new(RefCell::new(None));
        let handlers = [complete_handler(&end), error_handler(&verdict), abort_handler(&transaction, &end, &verdict)];
        let [complete, error, abort] = &handlers;
        transaction.set_oncomplete(complete.as_ref().dyn_ref());
        // The transaction's own error is not set in every case where a request failed: the reason is taken when it passes.
        transaction.set_onerror(error.as_ref().dyn_ref());
        // Quota fires only this one, so success and failure are both read from the transaction, never from a request.
        transaction.set_onabort(abort.as_ref().dyn_ref());
        Ok(Running { transaction, store, end, verdict, _handlers: handlers })
    }

    /// Issues a request; one that throws takes the whole transaction with it.
    fn issue(&self, request: Result<IdbRequest, JsValue>) -> Outcome<IdbRequest> {
        request.map_err(|thrown| {
            let _ = self.transaction.abort();
            Fault::from_js(&thrown)
        })
    }

    async fn finish(self) -> Outcome<()> {
        let ended = self.end.clone().await;
        self.transaction.set_oncomplete(None);
        self.transaction.set_onerror(None);
        self.transaction.set_onabort(None);
        ended
    }
}

fn complete_handler(end: &Signal<Outcome<()>>) -> Closure<dyn FnMut(Event)> {
    let end = end.clone();
    Closure::new(move |_: Event| {
        let _ = end.send(Ok(()));
    })
}

/// Keeps the first reason of a failed request. The requests that an abort takes along say only that there was one.
fn error_handler(verdict: &Rc<RefCell<Option<Fault>>>) -> Closure<dyn FnMut(Event)> {
    let verdict = Rc::clone(verdict);
    Closure::new(move |event: Event| {
        event.stop_propagation();
        let request = event.target().and_then(|target| target.dyn_into::<IdbRequest>().ok());
        let reason = request.and_then(|request| request.error().ok().flatten());
        let Some(reason) = reason.filter(|reason| reason.name() != "AbortError") else { return };
        verdict.borrow_mut().get_or_insert_with(|| Fault::from_exception(Some(reason)));
    })
}

fn abort_handler(
    transaction: &IdbTransaction,
    end: &Signal<Outcome<()>>,
    verdict: &Rc<RefCell<Option<Fault>>>,
) -> Closure<dyn FnMut(Event)> {
    let (own, end, verdict) = (transaction.clone(), end.clone(), Rc::clone(verdict));
    Closure::new(move |event: Event| {
        event.stop_propagation();
        let ours = verdict.borrow_mut().take();
        let _ = end.send(Err(ours.unwrap_or_else(|| Fault::from_exception(own.error()))));
    })
}

/// Reads one value.
pub(super) async fn get(db: &IdbDatabase, key: &JsValue) -> Outcome<Option<Uint8Array>> {
    let running = Running::begin(db, Mode::Read)?;
    let request = running.issue(running.store.get(key))?;
    running.finish().await?;
    let found = request.result().map_err(|thrown| Fault::from_js(&thrown))?;
    Ok(if found.is_undefined() { None } else { Some(found.unchecked_into()) })
}

/// Reads a range as pairs `[key, value]`.
pub(super) async fn list(db: &IdbDatabase, start: &str, end: &str, options: ListOptions) -> Outcome<Array> {
    if crate::store::compare_keys(start, end).is_ge() || options.limit == Some(0) {
        return Ok(Array::new());
    }
    let range = IdbKeyRange::bound_with_lower_open_and_upper_open(&start.into(), &end.into(), false, true)
        .map_err(|thrown| Fault::from_js(&thrown))?;
    let running = Running::begin(db, Mode::Read)?;
    if options.reverse { backwards(running, &range, options).await } else { forwards(running, &range, options).await }
}

async fn forwards(running: Running, range: &IdbKeyRange, options: ListOptions) -> Outcome<Array> {
    // Zero means no limit in WebIDL's eyes; the largest number does the same.
    let limit = options.limit.map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let keys = running.issue(running.store.get_all_keys_with_key_and_limit(range, limit))?;
    let values = match options.keys_only {
        true => None,
        false => Some(running.issue(running.store.get_all_with_key_and_limit(range, limit))?),
    };
    running.finish().await?;
    let keys = array_of(&keys)?;
    let values = values.map(|request| array_of(&request)).transpose()?;
    let empty = Uint8Array::new_with_length(0);
    let out = Array::new_with_length(keys.length());
    for index in 0..keys.length() {
        let value = values.as_ref().map_or_else(|| JsValue::from(&empty), |values| values.get(index));
        out.set(index, Array::of2(&keys.get(index), &value).into());
    }
    Ok(out)
}

fn array_of(request: &IdbRequest) -> Outcome<Array> {
    request.result().map(JsCast::unchecked_into).map_err(|thrown| Fault::from_js(&thrown))
}

/// Walks a cursor from the end; only the newest browsers can ask for that in one go.
async fn backwards(running: Running, range: &IdbKeyRange, options: ListOptions) -> Outcome<Array> {
    let out = Array::new();
    let request = running.issue(running.store.open_cursor_with_range_and_direction(range, IdbCursorDirection::Prev))?;
    let (own, sink, verdict) = (request.clone(), out.clone(), Rc::clone(&running.verdict));
    let limit = options.limit.map_or(u32::MAX, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let step = Closure::<dyn FnMut(Event)>::new(move |_: Event| {
        let Some(cursor) = own.result().ok().and_then(|found| found.dyn_into::<IdbCursorWithValue>().ok()) else {
            return;
        };
        let entry = cursor_entry(&cursor, options.keys_only);
        let moved = entry.and_then(|entry| {
            sink.push(&entry);
            if sink.length() < limit { cursor.continue_() } else { Ok(()) }
        });
        if let Err(thrown) = moved {
            *verdict.borrow_mut() = Some(Fault::from_js(&thrown));
        }
    });
    request.set_onsuccess(step.as_ref().dyn_ref());
    let verdict = Rc::clone(&running.verdict);
    running.finish().await?;
    request.set_onsuccess(None);
    let fault = verdict.borrow_mut().take();
    fault.map_or(Ok(out), Err)
}

fn cursor_entry(cursor: &IdbCursorWithValue, keys_only: bool) -> Result<JsValue, JsValue> {
    let value = if keys_only { Uint8Array::new_with_length(0).into() } else { cursor.value()? };
    Ok(Array::of2(&cursor.key()?, &value).into())
}

/// Carries out a batch. A check that fails aborts the transaction, and with it everything issued beside it.
///
/// The transaction is left to commit by itself: after an explicit `commit()` Firefox writes the rest of a batch of which a
/// request failed, unless it was the last one.
pub(super) async fn transact(db: &IdbDatabase, batch: &JsBatch, strict: bool) -> Outcome<()> {
    let running = Running::begin(db, Mode::Write { strict })?;
    let checked = issue_checks(&running, batch)?;
    for key in &batch.deletes {
        running.issue(running.store.delete(key))?;
    }
    for (index, (key, value)) in batch.puts.iter().enumerate() {
        let request = match checked.fresh.contains(&index) {
            true => running.store.add_with_key(value, key),
            false => running.store.put_with_key(value, key),
        };
        running.issue(request)?;
    }
    running.finish().await
}

/// What the checks left behind.
struct Checked {
    /// Puts that are to be `add`: the database itself then refuses a key that exists.
    fresh: Vec<usize>,
    /// Kept until the transaction has ended.
    handlers: Vec<Closure<dyn FnMut(Event)>>,
}

fn issue_checks(running: &Running, batch: &JsBatch) -> Outcome<Checked> {
    let mut checked = Checked { fresh: Vec::new(), handlers: Vec::new() };
    let mut reads = Vec::new();
    for (key, expected) in &batch.checks {
        match expected.is_none().then(|| lone_put(batch, key)).flatten() {
            Some(index) => checked.fresh.push(index),
            None => reads.push((key, expected.clone())),
        }
    }
    for (key, expected) in reads {
        let request = running.issue(running.store.get(key))?;
        let handler = check_handler(running, &request, key, expected);
        request.set_onsuccess(handler.as_ref().dyn_ref());
        checked.handlers.push(handler);
    }
    Ok(checked)
}

/// Finds the one put of a key that is not deleted in the same batch.
fn lone_put(batch: &JsBatch, key: &JsValue) -> Option<usize> {
    if batch.deletes.contains(key) {
        return None;
    }
    let mut puts = batch.puts.iter().enumerate().filter(|(_, (put, _))| put == key).map(|(index, _)| index);
    let first = puts.next();
    if puts.next().is_some() { None } else { first }
}

fn check_handler(
    running: &Running,
    request: &IdbRequest,
    key: &JsValue,
    expected: Option<Uint8Array>,
) -> Closure<dyn FnMut(Event)> {
    let (own, transaction, verdict) = (request.clone(), running.transaction.clone(), Rc::clone(&running.verdict));
    let key = key.as_string().unwrap_or_default();
    Closure::new(move |_: Event| {
        let found = own.result().unwrap_or(JsValue::UNDEFINED);
        if !same_bytes(&found, expected.as_ref()) {
            *verdict.borrow_mut() = Some(Fault::fatal(conflict(&key)));
            let _ = transaction.abort();
        }
    })
}

/// Compares a stored value with an expected one.
pub(super) fn same_bytes(found: &JsValue, expected: Option<&Uint8Array>) -> bool {
    match (found.dyn_ref::<Uint8Array>(), expected) {
        (None, None) => found.is_undefined(),
        (Some(found), Some(expected)) => found.length() == expected.length() && found.to_vec() == expected.to_vec(),
        _ => false,
    }
}
