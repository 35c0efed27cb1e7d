//! A caller's own backend: a JavaScript object with the calls of the contract, as a [`Backend`].

use js_sys::{Array, Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use super::{Backend, Batch, Entries, Limits, ListOptions, LocalFuture};
use crate::core::error::{Error, Kind, Result};

/// A JavaScript object that stores.
#[derive(Clone, Debug)]
pub struct JsBackend(JsValue);

impl JsBackend {
    /// Wraps an object; it must have `get`, `list` and `transact`.
    pub fn new(object: JsValue) -> Result<Self> {
        for name in ["get", "list", "transact"] {
            if !Reflect::get(&object, &name.into()).is_ok_and(|found| found.is_function()) {
                return Err(Error::new(Kind::InvalidArgument, format!("the backend has no `{name}`")));
            }
        }
        Ok(JsBackend(object))
    }

    fn number(&self, name: &str) -> Option<usize> {
        Reflect::get(&self.0, &name.into()).ok()?.as_f64().map(|number| number as usize)
    }

    /// Calls a method and awaits its answer when that is a promise.
    async fn call(&self, name: &str, arguments: Array) -> Result<JsValue> {
        let method = Reflect::get(&self.0, &name.into()).map_err(|thrown| error_of(&thrown))?;
        let answer =
            method.unchecked_into::<Function>().apply(&self.0, &arguments).map_err(|thrown| error_of(&thrown))?;
        match answer.dyn_into::<Promise>() {
            Ok(promise) => JsFuture::from(promise).await.map_err(|thrown| error_of(&thrown)),
            Err(answer) => Ok(answer),
        }
    }
}

/// Reads what was thrown: one of our codes, or `storage`.
pub fn error_of(thrown: &JsValue) -> Error {
    let text = |name: &str| Reflect::get(thrown, &name.into()).ok().and_then(|found| found.as_string());
    let code = text("code").unwrap_or_default();
    let kind = Kind::ALL.iter().copied().find(|kind| kind.code() == code).unwrap_or(Kind::Storage);
    Error::new(kind, text("message").unwrap_or_else(|| "the backend failed".into()))
}

fn set(object: &Object, key: &str, value: &JsValue) {
    // Setting a property of a fresh plain object cannot fail.
    let _ = Reflect::set(object, &key.into(), value);
}

fn bytes(value: &[u8]) -> JsValue {
    Uint8Array::from(value).into()
}

fn batch_to_js(batch: &Batch) -> Object {
    let out = Object::new();
    let checks: Array = batch.checks.iter().map(|(key, expected)| check_to_js(key, expected.as_deref())).collect();
    let puts: Array = batch.puts.iter().map(|(key, value)| Array::of2(&key.into(), &bytes(value))).collect();
    let deletes: Array = batch.deletes.iter().map(JsValue::from).collect();
    set(&out, "checks", &checks);
    set(&out, "puts", &puts);
    set(&out, "deletes", &deletes);
    out
}

fn check_to_js(key: &str, expected: Option<&[u8]>) -> JsValue {
    let out = Object::new();
    set(&out, "key", &key.into());
    set(&out, "equals", &expected.map_or(JsValue::NULL, bytes));
    out.into()
}

fn options_to_js(options: ListOptions) -> Object {
    let out = Object::new();
    if let Some(limit) = options.limit {
        set(&out, "limit", &(limit as f64).into());
    }
    set(&out, "reverse", &options.reverse.into());
    set(&out, "keysOnly", &options.keys_only.into());
    out
}

fn wrong(what: &str) -> Error {
    Error::new(Kind::Storage, format!("the backend answered with {what}"))
}

fn value_of(found: &JsValue) -> Result<Vec<u8>> {
    found.dyn_ref::<Uint8Array>().map(Uint8Array::to_vec).ok_or_else(|| wrong("something other than a Uint8Array"))
}

fn entry_of(pair: &JsValue, keys_only: bool) -> Result<(String, Vec<u8>)> {
    let pair: &Array = pair.dyn_ref().ok_or_else(|| wrong("an entry that is no pair"))?;
    let key = pair.get(0).as_string().ok_or_else(|| wrong("a key that is no text"))?;
    Ok((key, if keys_only { Vec::new() } else { value_of(&pair.get(1))? }))
}

impl Backend for JsBackend {
    fn limits(&self) -> Limits {
        let limits = Limits::default();
        Limits {
            max_value_bytes: self.number("maxValueBytes").unwrap_or(limits.max_value_bytes),
            max_batch: self.number("maxBatch").unwrap_or(limits.max_batch),
        }
    }

    fn get<'a>(&'a self, key: &'a str) -> LocalFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let found = self.call("get", Array::of1(&key.into())).await?;
            if found.is_null() { Ok(None) } else { value_of(&found).map(Some) }
        })
    }

    fn list<'a>(&'a self, start: &'a str, end: &'a str, options: ListOptions) -> LocalFuture<'a, Entries> {
        Box::pin(async move {
            let arguments = Array::of3(&start.into(), &end.into(), &options_to_js(options));
            let found = self.call("list", arguments).await?;
            let found: Array = found.dyn_into().map_err(|_| wrong("a list that is no array"))?;
            found.iter().map(|pair| entry_of(&pair, options.keys_only)).collect()
        })
    }

    fn transact(&self, batch: Batch) -> LocalFuture<'_, ()> {
        Box::pin(async move { self.call("transact", Array::of1(&batch_to_js(&batch))).await.map(|_| ()) })
    }

    fn close(&self) -> LocalFuture<'_, ()> {
        Box::pin(async move {
            if Reflect::get(&self.0, &"close".into()).is_ok_and(|found| found.is_function()) {
                self.call("close", Array::new()).await?;
            }
            Ok(())
        })
    }
}
