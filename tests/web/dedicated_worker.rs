//! IndexedDB in a dedicated worker.
#![cfg(all(target_family = "wasm", feature = "conformance"))]

#[path = "worker_body.rs"]
mod worker_body;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);
