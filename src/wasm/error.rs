//! Errors on their way to JavaScript: an `Error` with `code` and `details` (JSON text), made a `SessionLogError` by the shell.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

use crate::core::error::Error;

/// Turns an error into a JavaScript `Error` object.
pub(crate) fn throw(error: Error) -> JsValue {
    let out = js_sys::Error::new(error.message());
    // Setting a property of a fresh plain object cannot fail.
    let _ = Reflect::set(&out, &"code".into(), &error.code().into());
    let _ = Reflect::set(&out, &"details".into(), &error.details().to_text().into());
    out.into()
}
