//! What holds in every kind of worker: all that holds in a page, save what needs localStorage. Each kind is a test of its own
//! that includes this.

use sessionlog::store::local_storage::page_storage;
use wasm_bindgen_test::wasm_bindgen_test;

macro_rules! page_only {
    ($test:item) => {
        #[wasm_bindgen_test]
        #[ignore = "a worker has no localStorage"]
        $test
    };
}

#[path = "everywhere.rs"]
mod everywhere;

#[wasm_bindgen_test]
fn a_worker_has_no_local_storage_and_says_so() {
    assert_eq!(page_storage().err().unwrap().code(), "unavailable");
}
