//! Storage backends in JavaScript's terms: each raw class has the calls of the contract's `KeyValueBackend`.

use std::rc::Rc;

use js_sys::{Array, JsString, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use super::error::throw;
use crate::core::error::{Error, Kind, Result as CoreResult};
use crate::store::indexed_db::{IndexedDb, JsBatch, Settings};
use crate::store::memory::Memory;
use crate::store::{Batch, Entries, ListOptions, SyncBackend};

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
