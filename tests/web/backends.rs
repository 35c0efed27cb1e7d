//! IndexedDB and localStorage in a page.
#![cfg(all(target_family = "wasm", feature = "conformance"))]

macro_rules! page_only {
    ($test:item) => {
        #[wasm_bindgen_test]
        $test
    };
}

#[path = "everywhere.rs"]
mod everywhere;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);
