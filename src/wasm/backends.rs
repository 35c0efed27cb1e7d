//! Storage backends in JavaScript's terms: each raw class has the calls of the contract's `KeyValueBackend`.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, JsString, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use super::error::throw;
use crate::core::error::{Error, Kind, Result as CoreResult};
use crate::store::indexed_db::{IndexedDb, JsBatch, Settings};
use crate::store::local_storage::{LocalStorage, page_storage};
use crate::store::memory::Memory;
use crate::store::opfs::open_worker;
use crate::store::write_behind::{self, Input, Outcome, Output, WriteBehind};
use crate::store::{Batch, Entries, ListOptions, SyncBackend, layout};

/// A store whose calls finish before they return.
#[wasm_bindgen]
pub struct RawSyncBackend(Rc<dyn SyncBackend>);

#[wasm_bindgen]
impl RawSyncBackend {
    /// Returns the value of a key, or null.
    pub fn get(&self, key: &str) -> Result<JsValue, JsValue> {
        let found = self.0.get(key).map_err(throw)?;
        Ok(found.map_or(JsValue::NULL, |bytes| Uint8Array::from(bytes.as_slice()).into()))
    }

    /// Returns the entries with `start <= key < end` as pairs.
    pub fn list(&self, start: &str, end: &str, options: &JsValue) -> Result<Array, JsValue> {
        let entries = self.0.list(start, end, list_options(options)?).map_err(throw)?;
        Ok(pairs_of(&entries))
    }

    /// Carries out a batch.
    pub fn transact(&self, batch: &JsValue) -> Result<(), JsValue> {
        self.0.transact(&batch_to_bytes(batch)?).map_err(throw)
    }

    /// Lets go of what is held.
    pub fn close(&self) -> Result<(), JsValue> {
        self.0.close().map_err(throw)
    }
}

/// Makes an empty store in memory.
#[wasm_bindgen]
pub fn raw_open_memory() -> RawSyncBackend {
    RawSyncBackend(Rc::new(Memory::new()))
}

/// Returns the record of a batch that is under way in `localStorage`, or was never finished.
#[wasm_bindgen]
pub fn raw_local_storage_intent(prefix: &str) -> Result<Option<String>, JsValue> {
    page_storage().and_then(|items| LocalStorage::open(items, prefix, None)?.intent()).map_err(throw)
}

/// Opens a store in `localStorage`; `abandoned` is the record that stood there a moment ago.
#[wasm_bindgen]
pub fn raw_open_local_storage(prefix: &str, abandoned: Option<String>) -> Result<RawSyncBackend, JsValue> {
    let store = page_storage().and_then(|items| LocalStorage::open(items, prefix, abandoned.as_deref()));
    Ok(RawSyncBackend(Rc::new(store.map_err(throw)?)))
}

/// Opens a store in the origin's private file system; only a dedicated worker may.
#[wasm_bindgen]
pub fn raw_open_opfs(name: String) -> Promise {
    promise(async move { Ok(RawSyncBackend(Rc::new(open_worker(&name).await?)).into()) })
}

/// A store in IndexedDB; values pass through without a copy into the module.
#[wasm_bindgen]
pub struct RawIndexedDb(IndexedDb);

#[wasm_bindgen]
impl RawIndexedDb {
    /// Returns the value of a key, or null.
    pub fn get(&self, key: JsString) -> Promise {
        let store = self.0.clone();
        promise(async move { Ok(store.read(&key.into()).await?.map_or(JsValue::NULL, JsValue::from)) })
    }

    /// Returns the entries with `start <= key < end` as pairs.
    pub fn list(&self, start: String, end: String, options: &JsValue) -> Result<Promise, JsValue> {
        let (store, options) = (self.0.clone(), list_options(options)?);
        Ok(promise(async move { Ok(store.read_range(&start, &end, options).await?.into()) }))
    }

    /// Carries out a batch.
    pub fn transact(&self, batch: &JsValue) -> Result<Promise, JsValue> {
        let (store, batch) = (self.0.clone(), batch_of(batch)?);
        Ok(promise(async move { store.write(&batch).await.map(|()| JsValue::UNDEFINED) }))
    }

    /// Returns the live database, if there is one: the shell issues batches itself, for that costs a third of the same here.
    pub fn handle(&self) -> JsValue {
        self.0.handle().map_or(JsValue::NULL, JsValue::from)
    }

    /// Carries out a batch that the shell tried in vain.
    pub fn transact_again(&self, batch: &JsValue) -> Result<Promise, JsValue> {
        let (store, batch) = (self.0.clone(), batch_of(batch)?);
        Ok(promise(async move { store.write_again(&batch).await.map(|()| JsValue::UNDEFINED) }))
    }

    /// Closes the handle.
    pub fn close(&self) {
        self.0.shut();
    }
}

/// Opens a store in IndexedDB.
#[wasm_bindgen]
pub fn raw_open_indexed_db(name: Option<String>, strict: bool, open_timeout_ms: Option<f64>) -> Promise {
    let mut settings = Settings { strict, ..Settings::default() };
    settings.name = name.unwrap_or(settings.name);
    settings.open_timeout_ms = open_timeout_ms.unwrap_or(settings.open_timeout_ms);
    promise(async move { Ok(RawIndexedDb(IndexedDb::open(settings).await?).into()) })
}

fn promise(work: impl Future<Output = CoreResult<JsValue>> + 'static) -> Promise {
    future_to_promise(async move { work.await.map_err(throw) })
}

fn list_options(options: &JsValue) -> Result<ListOptions, JsValue> {
    if options.is_undefined() || options.is_null() {
        return Ok(ListOptions::default());
    }
    let limit = Reflect::get(options, &"limit".into())?.as_f64();
    if limit.is_some_and(|n| n < 0.0 || n.fract() != 0.0) {
        return Err(throw(Error::new(Kind::InvalidArgument, "limit must be a whole number of 0 or more")));
    }
    Ok(ListOptions {
        limit: limit.map(|n| n as usize),
        reverse: Reflect::get(options, &"reverse".into())?.is_truthy(),
        keys_only: Reflect::get(options, &"keysOnly".into())?.is_truthy(),
    })
}

fn pairs_of(entries: &Entries) -> Array {
    entries.iter().map(|(key, value)| Array::of2(&key.into(), &Uint8Array::from(value.as_slice()).into())).collect()
}

/// Reads a batch and leaves its values where they are.
fn batch_of(batch: &JsValue) -> Result<JsBatch, JsValue> {
    let mut out = JsBatch::default();
    for check in items(batch, "checks")? {
        let expected = Reflect::get(&check, &"equals".into())?;
        let bytes = if expected.is_null() || expected.is_undefined() { None } else { Some(bytes_of(&expected)?) };
        out.checks.push((key_of(&Reflect::get(&check, &"key".into())?)?, bytes));
    }
    for pair in items(batch, "puts")? {
        let pair: Array = pair.dyn_into().map_err(|_| wrong("puts must be pairs of key and value"))?;
        out.puts.push((key_of(&pair.get(0))?, bytes_of(&pair.get(1))?.into()));
    }
    for key in items(batch, "deletes")? {
        out.deletes.push(key_of(&key)?);
    }
    Ok(out)
}

/// Reads a batch with its values copied into the module.
fn batch_to_bytes(batch: &JsValue) -> Result<Batch, JsValue> {
    let batch = batch_of(batch)?;
    let text = |key: JsValue| key.as_string().unwrap_or_default();
    Ok(Batch {
        checks: batch.checks.into_iter().map(|(key, value)| (text(key), value.map(|bytes| bytes.to_vec()))).collect(),
        puts: batch.puts.into_iter().map(|(key, value)| (text(key), Uint8Array::from(value).to_vec())).collect(),
        deletes: batch.deletes.into_iter().map(text).collect(),
    })
}

fn items(batch: &JsValue, name: &str) -> Result<Vec<JsValue>, JsValue> {
    let list = Reflect::get(batch, &name.into())?;
    if list.is_undefined() || list.is_null() {
        return Ok(Vec::new());
    }
    let list: Array = list.dyn_into().map_err(|_| wrong(&format!("{name} must be an array")))?;
    Ok(list.iter().collect())
}

fn key_of(key: &JsValue) -> Result<JsValue, JsValue> {
    if key.is_string() { Ok(key.clone()) } else { Err(wrong("a key must be text")) }
}

fn bytes_of(value: &JsValue) -> Result<Uint8Array, JsValue> {
    value.clone().dyn_into().map_err(|_| wrong("a value must be a Uint8Array"))
}

fn wrong(message: &str) -> JsValue {
    throw(Error::new(Kind::InvalidArgument, message))
}

/// Decides when a session's events are written (see `store::write_behind`). Each call returns what to do as triples of
/// numbers: code, first, second.
#[wasm_bindgen]
pub struct RawWriteBehind(RefCell<WriteBehind>);

#[wasm_bindgen]
impl RawWriteBehind {
    /// Makes a machine that waits for `loaded`.
    #[wasm_bindgen(constructor)]
    pub fn new(flush_interval_ms: Option<f64>) -> RawWriteBehind {
        let mut settings = write_behind::Settings::default();
        settings.flush_interval_ms = flush_interval_ms.map_or(settings.flush_interval_ms, |ms| ms as i64);
        RawWriteBehind(RefCell::new(WriteBehind::new(settings)))
    }

    fn step(&self, input: Input) -> Vec<f64> {
        self.0.borrow_mut().step(input).into_iter().flat_map(triple).collect()
    }

    /// The store holds so many events.
    pub fn loaded(&self, stored: f64) -> Vec<f64> {
        self.step(Input::Loaded { stored: stored as u64 })
    }

    /// The log has so many events.
    pub fn appended(&self, now: f64, length: f64, urgent: bool) -> Vec<f64> {
        self.step(Input::Appended { now: now as i64, length: length as u64, urgent })
    }

    /// Writes everything now.
    pub fn flush(&self, now: f64, token: Option<f64>) -> Vec<f64> {
        self.step(Input::Flush { now: now as i64, token: token.map(|token| token as u64) })
    }

    /// Stores one event before it is seen.
    pub fn store_first(&self, now: f64, token: f64) -> Vec<f64> {
        self.step(Input::StoreFirst { now: now as i64, token: token as u64 })
    }

    /// An event that cannot wait is about to be appended.
    pub fn make_room(&self, now: f64) -> Vec<f64> {
        self.step(Input::MakeRoom { now: now as i64 })
    }

    /// Time has passed.
    pub fn tick(&self, now: f64) -> Vec<f64> {
        self.step(Input::Tick { now: now as i64 })
    }

    /// The write under way ended: 0 stored, 1 conflict, 3 refused, or else it failed.
    pub fn done(&self, now: f64, outcome: u32) -> Vec<f64> {
        let outcome = match outcome {
            0 => Outcome::Stored,
            1 => Outcome::Conflict,
            3 => Outcome::Refused,
            _ => Outcome::Failed,
        };
        self.step(Input::Done { now: now as i64, outcome })
    }

    /// The session was taken over and read again.
    pub fn reloaded(&self, now: f64, stored: f64, length: f64, candidate_stored: bool) -> Vec<f64> {
        let (stored, length) = (stored as u64, length as u64);
        self.step(Input::Reloaded { now: now as i64, stored, length, candidate_stored })
    }

    /// Reading again failed.
    pub fn reload_failed(&self, now: f64) -> Vec<f64> {
        self.step(Input::ReloadFailed { now: now as i64 })
    }

    /// The store is not where we believed it to be.
    pub fn overtaken(&self) -> Vec<f64> {
        self.step(Input::Overtaken)
    }

    /// Somebody else writes now.
    pub fn follow(&self) -> Vec<f64> {
        self.step(Input::Follow)
    }

    /// Nothing more is written.
    pub fn close(&self) -> Vec<f64> {
        self.step(Input::Close)
    }

    /// How many events the store holds for certain.
    pub fn stored(&self) -> f64 {
        self.0.borrow().stored() as f64
    }

    /// How many events are behind that.
    pub fn unsaved(&self) -> f64 {
        self.0.borrow().unsaved() as f64
    }
}

fn triple(output: Output) -> [f64; 3] {
    match output {
        Output::Admit(token) => [0.0, token as f64, 0.0],
        Output::Write { from, to } => [1.0, from as f64, to as f64],
        Output::WakeAt(at) => [2.0, at as f64, 0.0],
        Output::Reload => [3.0, 0.0, 0.0],
        Output::Durable(seq) => [4.0, seq as f64, 0.0],
        Output::Reveal(token) => [5.0, token as f64, 0.0],
        Output::Withdraw(token) => [6.0, token as f64, 0.0],
        Output::Settled(token, ok) => [7.0, token as f64, f64::from(u8::from(ok))],
    }
}

/// Returns keys of the layout by name: "fence", "header", "record", "format", or "segment" with a seq.
#[wasm_bindgen]
pub fn raw_key(name: &str, id: &str, seq: Option<f64>) -> Result<String, JsValue> {
    Ok(match name {
        "fence" => layout::fence_key(id),
        "header" => layout::header_key(id),
        "record" => layout::record_key(id),
        "checkpoint" => layout::checkpoint_key(id),
        "format" => layout::FORMAT_KEY.into(),
        "segment" => layout::segment_key(id, seq.unwrap_or(0.0) as u64),
        _ => return Err(wrong("no such key")),
    })
}

/// Returns a half-open range `[start, end]`: "session", "segments" (from a seq on), or everything below a prefix.
#[wasm_bindgen]
pub fn raw_key_range(name: &str, id: &str, seq: Option<f64>) -> Vec<String> {
    let (start, end) = match name {
        "session" => layout::session_range(id),
        "segments" => layout::segment_range(id, seq.unwrap_or(0.0) as u64),
        prefix => layout::range_of(prefix),
    };
    vec![start, end]
}

/// Returns the value of the format record.
#[wasm_bindgen]
pub fn raw_format_record() -> Vec<u8> {
    layout::format_record()
}

/// Reads the epoch of a fence record (0 without one) and makes the value of one that is so much higher.
#[wasm_bindgen]
pub fn raw_next_fence(fence: Option<Vec<u8>>, step: f64) -> Result<Vec<u8>, JsValue> {
    let epoch = layout::epoch_of(fence.as_deref()).map_err(throw)?;
    Ok(layout::fence_value(epoch.wrapping_add(step as u64)))
}

/// Cuts a segment into the pairs that store it, each under the limit. The pair that commits it stands first.
#[wasm_bindgen]
pub fn raw_segment_puts(id: &str, first_seq: f64, lines: &Uint8Array, max_value: f64) -> Array {
    let pieces = layout::pieces(id, first_seq as u64, &lines.to_vec(), max_value as usize);
    let pairs = pieces.into_iter().map(|piece| {
        // A copy, not a view: storing a view would store the whole buffer below it.
        let bytes = lines.slice(piece.bytes.start as u32, piece.bytes.end as u32);
        let mark = Uint8Array::from(piece.mark.as_bytes());
        let value = if piece.mark.is_empty() { bytes } else { join(&[mark, bytes]) };
        Array::of2(&piece.key.into(), &value)
    });
    pairs.collect()
}

/// Groups a listing of segments into `[firstSeq, lines, whole]`.
#[wasm_bindgen]
pub fn raw_segments(entries: &Array) -> Array {
    let pair = |index: usize| -> Array { entries.get(index as u32).unchecked_into() };
    let value = |index: usize| -> Uint8Array { pair(index).get(1).unchecked_into() };
    let keys: Vec<String> =
        (0..entries.length() as usize).map(|index| pair(index).get(0).as_string().unwrap_or_default()).collect();
    let mark = |index: usize| {
        let value = value(index);
        let head = value.subarray(0, value.length().min(layout::MARK_BYTES as u32)).to_vec();
        layout::read_mark(&head)
    };
    let blocks = layout::blocks(keys.iter().map(String::as_str), mark).into_iter().map(|block| {
        let mut parts: Vec<Uint8Array> = block.entries.iter().map(|index| value(*index)).collect();
        if let Some(first) = parts.first_mut() {
            *first = first.subarray(block.skip as u32, first.length());
        }
        let lines = match &parts[..] {
            [only] => only.clone(),
            parts => join(parts),
        };
        Array::of3(&(block.first_seq as f64).into(), &lines, &block.whole.into())
    });
    blocks.collect()
}

fn join(parts: &[Uint8Array]) -> Uint8Array {
    let out = Uint8Array::new_with_length(parts.iter().map(Uint8Array::length).sum());
    let mut at = 0;
    for part in parts {
        out.set(part, at);
        at += part.length();
    }
    out
}

/// Says which neighbouring segments to merge into one, as `[start, end)` of the list; empty when none.
#[wasm_bindgen]
pub fn raw_merge_plan(first_seqs: &[f64], sizes: &[f64], max_value: f64) -> Vec<u32> {
    let segments: Vec<(u64, usize)> =
        first_seqs.iter().zip(sizes).map(|(seq, size)| (*seq as u64, *size as usize)).collect();
    let plan = layout::merge_plan(&segments, max_value as usize);
    plan.map_or(Vec::new(), |range| vec![range.start as u32, range.end as u32])
}
