//! Opening a database: with a time limit, and without leaving a handle behind.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Function, Reflect};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Event, IdbDatabase, IdbFactory, IdbOpenDbRequest};

use super::fault::Fault;
use crate::core::error::{Error, Kind};
use crate::store::signal::Signal;

/// The one object store.
pub(super) const STORE: &str = "kv";
/// Version of the database itself; the layout inside has its own number.
const VERSION: u32 = 1;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(work: &JsValue, ms: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);
}

type Opened = Result<IdbDatabase, Fault>;

/// Opens the database, or says `timeout`, `blocked`, `newer_format`, `unavailable`.
pub(super) async fn open(name: &str, timeout_ms: f64) -> Opened {
    let request = factory()?.open_with_u32(name, VERSION).map_err(|thrown| Fault::from_js(&thrown))?;
    let signal = Signal::new();
    let blocked = Rc::new(Cell::new(false));
    listen(&request, &signal, &blocked);
    let timer = start_timer(timeout_ms, &signal, &blocked);
    let opened = signal.await;
    clear_timeout(&timer);
    opened
}

fn factory() -> Result<IdbFactory, Fault> {
    // Reading the property can throw: a page in a sandbox has no right to it.
    let found = Reflect::get(&js_sys::global(), &"indexedDB".into()).unwrap_or(JsValue::UNDEFINED);
    found.dyn_into().map_err(|_| Fault::fatal(Error::new(Kind::Unavailable, "there is no IndexedDB here")))
}

/// Sets the handlers of a request. JavaScript owns them, so that one that comes late still finds its function.
fn listen(request: &IdbOpenDbRequest, signal: &Signal<Opened>, blocked: &Rc<Cell<bool>>) {
    let (own, sink) = (request.clone(), signal.clone());
    on(
        |f| request.set_onupgradeneeded(f),
        move |event| {
            if was_lost(event) {
                // The empty one is made all the same; whoever opens again gets it, and has been told.
                let lost = "the browser found the database broken and threw it away";
                let _ = sink.send(Err(Fault::from_name("UnknownError", lost)));
            }
            if let Some(db) = database(&own) {
                // Fails only when the store is there already.
                let _ = db.create_object_store(STORE);
            }
        },
    );
    let (own, sink) = (request.clone(), signal.clone());
    on(
        |f| request.set_onsuccess(f),
        move |_| {
            let Some(db) = database(&own) else { return };
            // Whoever waited has given up: a handle nobody holds would block every later upgrade.
            if let Err(Ok(late)) = sink.send(Ok(db)) {
                late.close();
            }
        },
    );
    let (own, sink) = (request.clone(), signal.clone());
    on(
        |f| request.set_onerror(f),
        move |_| {
            let _ = sink.send(Err(Fault::from_exception(own.error().ok().flatten())));
        },
    );
    let blocked = Rc::clone(blocked);
    on(|f| request.set_onblocked(f), move |_| blocked.set(true));
}

/// Chromium says with the upgrade that there was a database before, of which nothing is left.
fn was_lost(upgrade: &Event) -> bool {
    Reflect::get(upgrade, &"dataLoss".into()).is_ok_and(|amount| amount.as_string().as_deref() == Some("total"))
}

fn on(set: impl FnOnce(Option<&Function>), work: impl FnOnce(&Event) + 'static) {
    let handler = Closure::once_into_js(move |event: Event| {
        // An unhandled error event of a request would reach the page's own error reporting.
        event.prevent_default();
        event.stop_propagation();
        work(&event);
    });
    set(handler.dyn_ref());
}

fn database(request: &IdbOpenDbRequest) -> Option<IdbDatabase> {
    request.result().ok()?.dyn_into().ok()
}

fn start_timer(timeout_ms: f64, signal: &Signal<Opened>, blocked: &Rc<Cell<bool>>) -> JsValue {
    let (sink, blocked) = (signal.clone(), Rc::clone(blocked));
    let fire = Closure::once_into_js(move || {
        let error = if blocked.get() {
            Error::new(Kind::Blocked, "another connection keeps the database from opening")
        } else {
            Error::new(Kind::Timeout, "the database did not open in time")
        };
        let _ = sink.send(Err(Fault::fatal(error.with("timeoutMs", timeout_ms))));
    });
    set_timeout(&fire, timeout_ms)
}
