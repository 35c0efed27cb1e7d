//! What holds in every kind of worker; each kind is a test of its own that includes this.

use std::rc::Rc;

use sessionlog::store::conformance::{Maker, check};
use sessionlog::store::indexed_db::{IndexedDb, Settings};
use sessionlog::store::local_storage::page_storage;
use sessionlog::store::{Backend, LocalFuture};
use wasm_bindgen_test::wasm_bindgen_test;

struct Database;
impl Maker for Database {
    fn make(&self) -> LocalFuture<'_, Rc<dyn Backend>> {
        Box::pin(async {
            let settings = Settings { name: "worker-conforms".into(), ..Settings::default() };
            Ok(Rc::new(IndexedDb::open(settings).await?) as Rc<dyn Backend>)
        })
    }
}

#[wasm_bindgen_test]
async fn indexed_db_conforms() {
    let report = check(&Database).await;
    assert_eq!(report.failed, []);
    assert!(report.passed > 20);
}

#[wasm_bindgen_test]
fn a_worker_has_no_local_storage_and_says_so() {
    assert_eq!(page_storage().err().unwrap().code(), "unavailable");
}
