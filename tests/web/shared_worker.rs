//! IndexedDB in a shared worker.
#![cfg(all(target_family = "wasm", feature = "conformance"))]

#[path = "worker_body.rs"]
mod worker_body;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_shared_worker);
