//! OPFS in a dedicated worker: the conformance suite, reopening, and a file that another one holds.
#![cfg(all(target_family = "wasm", feature = "conformance"))]

use std::rc::Rc;

use sessionlog::store::conformance::{Maker, check};
use sessionlog::store::opfs::open_worker;
use sessionlog::store::{Backend, Batch, LocalFuture};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

struct Opfs;
impl Maker for Opfs {
    fn make(&self) -> LocalFuture<'_, Rc<dyn Backend>> {
        Box::pin(async { Ok(Rc::new(open_worker("conforms").await?) as Rc<dyn Backend>) })
    }
}

#[wasm_bindgen_test]
async fn opfs_conforms() {
    let report = check(&Opfs).await;
    assert_eq!(report.failed, []);
    assert!(report.passed > 20);
}

/// C11: held is `locked`, the bytes stay, and it opens once the other one has closed.
#[wasm_bindgen_test]
async fn a_file_that_is_held_is_locked_and_never_empty() {
    let batch = Batch { puts: vec![("k".into(), b"v".to_vec())], ..Batch::default() };
    let first = open_worker("held").await.unwrap();
    Backend::transact(&first, batch).await.unwrap();
    assert_eq!(open_worker("held").await.err().unwrap().code(), "locked");
    Backend::close(&first).await.unwrap();
    let again = open_worker("held").await.unwrap();
    assert_eq!(Backend::get(&again, "k").await.unwrap(), Some(b"v".to_vec()));
    Backend::close(&again).await.unwrap();
}
