//! What a fault of IndexedDB means.

use wasm_bindgen::{JsCast, JsValue};
use web_sys::DomException;

use crate::core::error::{Error, Kind};

/// A fault with the name the browser gave it, which decides whether another try makes sense.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: Error,
    pub(super) retry: bool,
}

impl Fault {
    /// A fault that no other try will cure.
    pub(super) fn fatal(error: Error) -> Self {
        Fault { error, retry: false }
    }

    /// Reads what a call threw or a request carries.
    pub(super) fn from_js(thrown: &JsValue) -> Self {
        match thrown.dyn_ref::<DomException>() {
            Some(exception) => Fault::from_name(&exception.name(), &exception.message()),
            None => Fault::fatal(Error::new(Kind::Storage, js_text(thrown))),
        }
    }

    /// Reads the error of a transaction; none at all means that the browser aborted it by itself.
    pub(super) fn from_exception(exception: Option<DomException>) -> Self {
        match exception {
            Some(exception) => Fault::from_name(&exception.name(), &exception.message()),
            None => Fault::from_name("AbortError", "the transaction was aborted"),
        }
    }

    /// Names what a fault of this name means.
    pub(super) fn from_name(name: &str, message: &str) -> Self {
        let kind = match name {
            "QuotaExceededError" | "NS_ERROR_DOM_QUOTA_REACHED" => Kind::Quota,
            "ConstraintError" => Kind::Conflict,
            "VersionError" => Kind::NewerFormat,
            // Storage that is blocked by policy or by private browsing.
            "SecurityError" | "NotSupportedError" => Kind::Unavailable,
            _ => Kind::Storage,
        };
        // A handle that died (tab slept, disk service restarted, site data cleared) or an abort nobody asked for. The
        // keys make a second try harmless.
        let retry = matches!(
            name,
            "InvalidStateError"
                | "AbortError"
                | "UnknownError"
                | "TransactionInactiveError"
                | "NotFoundError"
                | "TimeoutError"
        );
        Fault { error: Error::new(kind, format!("IndexedDB: {message}")).with("name", name), retry }
    }
}

fn js_text(thrown: &JsValue) -> String {
    let message = js_sys::Reflect::get(thrown, &"message".into()).ok().and_then(|m| m.as_string());
    message.unwrap_or_else(|| "IndexedDB failed".into())
}
