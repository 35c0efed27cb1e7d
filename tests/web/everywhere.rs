//! IndexedDB and localStorage in real browsers: the conformance suite, and every fault of PERSIST.8 by patched prototypes. The
//! page and each kind of worker is a test of its own that includes this; what needs a page says so with the includer's `page_only`.

use std::cell::Cell;
use std::rc::Rc;

use sessionlog::core::error::Result;
use sessionlog::store::conformance::{Maker, Report, check};
use sessionlog::store::indexed_db::{IndexedDb, Settings};
use sessionlog::store::local_storage::{LocalStorage, page_storage};
use sessionlog::store::memory::Memory;
use sessionlog::store::{Backend, Batch, ListOptions, LocalFuture, SyncBackend};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test;

// Each function switches one fault on; it lasts for a number of calls and then the prototype is as it was.
#[wasm_bindgen(inline_js = r#"
const once = (object, name, times, replace) => {
  const real = object[name];
  let left = times;
  object[name] = function (...args) {
    if (--left === 0) object[name] = real;
    return replace.call(this, real, args);
  };
};
export function open_never_answers() {
  once(IDBFactory.prototype, "open", 1, function (real, args) {
    const request = real.apply(this, args);
    let handler = null;
    // The answer comes long after whoever asked has given up.
    Object.defineProperty(request, "onsuccess", { set(f) { handler = f; }, get() { return handler; }, configurable: true });
    globalThis.lateHandle = new Promise((resolve) => request.addEventListener("success", (event) => setTimeout(() => {
      handler?.call(request, event);
      try { request.result.transaction("kv"); resolve(false); } catch { resolve(true); }
    }, 200)));
    return request;
  });
}
export async function late_handle_was_closed() { return await globalThis.lateHandle; }
export function transaction_throws(name, times) {
  once(IDBDatabase.prototype, "transaction", times, () => { throw new DOMException("made up", name); });
}
export function puts_run_out_of_space(times) {
  // Only the transaction's abort event says so, as in a real browser.
  once(IDBObjectStore.prototype, "put", times, function (real, args) {
    const tx = this.transaction;
    Object.defineProperty(tx, "error", { value: new DOMException("full", "QuotaExceededError") });
    tx.commit = () => {};
    const request = real.apply(this, args);
    queueMicrotask(() => tx.abort());
    return request;
  });
}
export function aborts_after_commit(times) {
  // The data is in, and the page is told that it was aborted.
  once(IDBDatabase.prototype, "transaction", times, function (real, args) {
    const tx = real.apply(this, args);
    if (tx.mode !== "readwrite") return tx;
    let complete = null, abort = null;
    Object.defineProperty(tx, "oncomplete", { set(f) { complete = f; }, get() { return complete; }, configurable: true });
    Object.defineProperty(tx, "onabort", { set(f) { abort = f; }, get() { return abort; }, configurable: true });
    Object.defineProperty(tx, "error", { value: new DOMException("gone", "AbortError"), configurable: true });
    tx.addEventListener("complete", () => abort?.call(tx, new Event("abort")));
    tx.addEventListener("abort", (e) => abort?.call(tx, e));
    return tx;
  });
}
export function kill_in_the_middle() {
  once(IDBObjectStore.prototype, "add", 1, function (real, args) {
    const request = real.apply(this, args);
    const tx = this.transaction;
    request.addEventListener("success", () => tx.abort());
    tx.commit = () => {};
    return request;
  });
}
const raw_open = (name, version, upgrade) => new Promise((resolve, reject) => {
  const request = indexedDB.open(name, version);
  request.onupgradeneeded = () => upgrade?.(request.result);
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
export async function make_newer(name) { (await raw_open(name, 99, (db) => db.createObjectStore("kv"))).close(); }
export async function make_foreign(name) { (await raw_open(name, 1, (db) => db.createObjectStore("other"))).close(); }
export async function hold_old_version(name) {
  // A connection that ignores `versionchange`, and a deletion that waits for it: every later open waits behind that.
  globalThis.held = await raw_open(name, 1, (db) => db.createObjectStore("kv"));
  indexedDB.deleteDatabase(name);
}
export function let_go() { globalThis.held.close(); }
export async function delete_database(name) {
  return await new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve("deleted");
    request.onblocked = () => resolve("blocked");
    request.onerror = () => reject(request.error);
  });
}
export function storage_is_full(name) {
  once(Storage.prototype, "setItem", 1, () => { throw new DOMException("full", name); });
}
export function hide(name) {
  let owner = globalThis;
  while (!Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner);
  const found = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(globalThis, name, { get() { throw new DOMException("blocked", "SecurityError"); }, configurable: true });
  return found;
}
export function show(name, found) { delete globalThis[name]; Object.defineProperty(globalThis, name, found); }
"#)]
extern "C" {
    fn open_never_answers();
    #[wasm_bindgen]
    async fn late_handle_was_closed() -> JsValue;
    fn transaction_throws(name: &str, times: u32);
    fn puts_run_out_of_space(times: u32);
    fn aborts_after_commit(times: u32);
    fn kill_in_the_middle();
    async fn make_newer(name: &str);
    async fn make_foreign(name: &str);
    async fn hold_old_version(name: &str);
    fn let_go();
    async fn delete_database(name: &str) -> JsValue;
    fn storage_is_full(name: &str);
    fn hide(name: &str) -> JsValue;
    fn show(name: &str, found: &JsValue);
}

fn settings(name: &str) -> Settings {
    Settings { name: format!("test-{name}"), ..Settings::default() }
}

async fn open(name: &str) -> IndexedDb {
    IndexedDb::open(settings(name)).await.unwrap()
}

fn put(key: &str, value: &str) -> Batch {
    Batch { puts: vec![(key.into(), value.into())], ..Batch::default() }
}

/// A batch of three events whose place must be free, as a flush makes it.
fn segment(key: &str) -> Batch {
    let checks = vec![("fence".into(), None), (key.into(), None)];
    Batch { checks, puts: vec![(key.into(), b"3 events".to_vec()), ("z".into(), b"head".to_vec())], ..Batch::default() }
}

async fn keys(store: &dyn Backend) -> Vec<String> {
    let found = store.list("", "\u{ffff}", ListOptions::default()).await.unwrap();
    found.into_iter().map(|(key, _)| key).collect()
}

fn all_passed(report: Report) {
    assert_eq!(report.failed, []);
    assert!(report.passed > 20);
}

#[derive(Clone, Copy)]
enum Kind {
    Memory,
    IndexedDb { strict: bool },
    LocalStorage,
}

impl Kind {
    async fn open(self) -> Result<Rc<dyn Backend>> {
        Ok(match self {
            Kind::Memory => Rc::new(Memory::new()),
            Kind::IndexedDb { strict } => Rc::new(IndexedDb::open(Settings { strict, ..settings("conforms") }).await?),
            Kind::LocalStorage => Rc::new(LocalStorage::open(page_storage()?, "conforms", None)?),
        })
    }
}

impl Maker for Kind {
    fn make(&self) -> LocalFuture<'_, Rc<dyn Backend>> {
        Box::pin(self.open())
    }
}

#[wasm_bindgen_test]
async fn memory_conforms() {
    all_passed(check(&Kind::Memory).await);
}

#[wasm_bindgen_test]
async fn indexed_db_conforms() {
    all_passed(check(&Kind::IndexedDb { strict: false }).await);
    all_passed(check(&Kind::IndexedDb { strict: true }).await);
}

page_only! {
    async fn local_storage_conforms() {
        all_passed(check(&Kind::LocalStorage).await);
    }
}

page_only! {
    fn local_storage_says_when_it_is_full_in_both_dialects() {
        let store = LocalStorage::open(page_storage().unwrap(), "full", None).unwrap();
        for name in ["QuotaExceededError", "NS_ERROR_DOM_QUOTA_REACHED"] {
            storage_is_full(name);
            assert_eq!(SyncBackend::transact(&store, &put("k", "v")).unwrap_err().code(), "quota");
        }
        SyncBackend::transact(&store, &put("k", "v")).unwrap();
        SyncBackend::transact(&store, &Batch { deletes: vec!["k".into()], ..Batch::default() }).unwrap();
    }
}

page_only! {
    fn blocked_local_storage_is_unavailable() {
        let found = hide("localStorage");
        let opened = page_storage();
        show("localStorage", &found);
        assert_eq!(opened.err().unwrap().code(), "unavailable");
    }
}

#[wasm_bindgen_test]
async fn blocked_storage_is_unavailable() {
    let found = hide("indexedDB");
    let opened = IndexedDb::open(settings("hidden")).await;
    show("indexedDB", &found);
    assert_eq!(opened.err().unwrap().code(), "unavailable");
}

/// C01
#[wasm_bindgen_test]
async fn a_full_disk_is_quota_and_the_next_write_works() {
    let store = open("quota").await;
    store.transact(put("1", "a")).await.unwrap();
    puts_run_out_of_space(1);
    assert_eq!(store.transact(put("3", "c")).await.unwrap_err().code(), "quota");
    store.transact(put("4", "d")).await.unwrap();
    assert_eq!(keys(&store).await, ["1", "4"]);
}

/// C03
#[wasm_bindgen_test]
async fn a_dead_handle_is_replaced_once() {
    let store = open("dead").await;
    for name in ["InvalidStateError", "UnknownError"] {
        transaction_throws(name, 1);
        store.transact(put(name, "x")).await.unwrap();
        transaction_throws(name, 1);
        assert_eq!(store.get(name).await.unwrap(), Some(b"x".to_vec()));
        transaction_throws(name, 1);
        assert!(!keys(&store).await.is_empty());
        transaction_throws(name, 2);
        assert_eq!(store.transact(put("never", "x")).await.unwrap_err().code(), "storage");
    }
    assert_eq!(store.get("never").await.unwrap(), None);
}

/// C03, second half: the answer was lost, not the data.
#[wasm_bindgen_test]
async fn an_abort_after_the_commit_is_found_out() {
    let store = open("late-abort").await;
    aborts_after_commit(1);
    store.transact(segment("e1")).await.unwrap();
    assert_eq!(keys(&store).await, ["e1", "z"]);
    // A conflict that is none of ours stays one.
    assert_eq!(store.transact(segment("e1")).await.unwrap_err().code(), "conflict");
}

/// C05
#[wasm_bindgen_test]
async fn a_transaction_killed_in_the_middle_leaves_nothing() {
    let store = open("killed").await;
    kill_in_the_middle();
    // The one that is tried again goes through whole.
    store.transact(segment("e1")).await.unwrap();
    assert_eq!(keys(&store).await, ["e1", "z"]);
    let mut second = segment("e1");
    second.puts.push(("more".into(), vec![]));
    assert_eq!(store.transact(second).await.unwrap_err().code(), "conflict");
    assert_eq!(keys(&store).await, ["e1", "z"]);
}

#[wasm_bindgen_test]
async fn an_open_that_never_answers_times_out_and_its_late_handle_is_closed() {
    open_never_answers();
    let opened = IndexedDb::open(Settings { open_timeout_ms: 60.0, ..settings("slow") }).await;
    assert_eq!(opened.err().unwrap().code(), "timeout");
    assert_eq!(late_handle_was_closed().await, JsValue::TRUE);
}

#[wasm_bindgen_test]
async fn an_open_behind_another_connection_does_not_wait_for_ever() {
    hold_old_version("test-held").await;
    let opened = IndexedDb::open(Settings { open_timeout_ms: 200.0, ..settings("held") }).await;
    let code = opened.err().unwrap().code();
    assert!(matches!(code, "blocked" | "timeout"), "{code}");
    let_go();
}

#[wasm_bindgen_test]
async fn a_newer_or_foreign_database_is_refused() {
    make_newer("test-newer").await;
    assert_eq!(IndexedDb::open(settings("newer")).await.err().unwrap().code(), "newer_format");
    make_foreign("test-foreign").await;
    assert_eq!(IndexedDb::open(settings("foreign")).await.err().unwrap().code(), "corrupt");
}

#[wasm_bindgen_test]
async fn another_tab_may_delete_the_database_and_we_open_a_new_one() {
    let store = open("deleted").await;
    store.transact(put("k", "v")).await.unwrap();
    assert_eq!(delete_database("test-deleted").await, "deleted", "our connection closes on `versionchange`");
    assert_eq!(store.get("k").await.unwrap(), None);
    store.transact(put("k", "w")).await.unwrap();
    assert_eq!(store.get("k").await.unwrap(), Some(b"w".to_vec()));
}

#[wasm_bindgen_test]
async fn a_closed_store_is_disposed() {
    let store = open("closed").await;
    Backend::close(&store).await.unwrap();
    assert_eq!(store.get("k").await.unwrap_err().code(), "disposed");
    assert_eq!(store.transact(put("k", "v")).await.unwrap_err().code(), "disposed");
}

/// Two connections of one database, as two tabs have them: conditional writes alone keep the count.
#[wasm_bindgen_test]
async fn two_connections_append_in_turn_and_lose_nothing() {
    let (a, b) = (open("two").await, open("two").await);
    let lost = Cell::new(0);
    for seq in 0..20 {
        let (first, second) = if seq % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let batch = |who: &str| {
            let key = format!("e{seq:03}");
            Batch { checks: vec![(key.clone(), None)], puts: vec![(key, who.into())], ..Batch::default() }
        };
        first.transact(batch("first")).await.unwrap();
        if second.transact(batch("second")).await.is_err_and(|error| error.code() == "conflict") {
            lost.set(lost.get() + 1);
        }
    }
    assert_eq!(lost.get(), 20);
    let found = a.list("", "\u{ffff}", ListOptions::default()).await.unwrap();
    assert!(found.len() == 20 && found.iter().all(|(_, value)| value == b"first"));
}
