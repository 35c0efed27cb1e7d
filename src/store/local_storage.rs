//! localStorage: one item per key, and an intent record that makes a batch whole where the store knows no transactions.
//!
//! Before a batch of several changes, one item is written that tells how to undo it; after the batch it is removed. Whoever
//! finds it when opening undoes the batch, which was never acknowledged. The store itself is a [`TextStore`], so that a native
//! test can stop after every single step.

use super::{Batch, Entries, Limits, ListOptions, SyncBackend, compare_keys, conflict};
use crate::core::base64;
use crate::core::error::{Error, Kind, Result};
use crate::core::json::{self, Object, Surrogates, Value};

/// What a store of text items can do; the real one is `localStorage`.
pub trait TextStore {
    /// Returns an item.
    fn get(&self, key: &str) -> Result<Option<String>>;
    /// Writes an item.
    fn set(&self, key: &str, value: &str) -> Result<()>;
    /// Removes an item.
    fn remove(&self, key: &str) -> Result<()>;
    /// Returns all keys, in any order.
    fn keys(&self) -> Result<Vec<String>>;
}

/// Items of about 5 million characters in all are what browsers give.
const MAX_VALUE_BYTES: usize = 256 * 1024;

/// A store in text items below a prefix.
#[derive(Debug)]
pub struct LocalStorage<T> {
    items: T,
    prefix: String,
}

impl<T: TextStore> LocalStorage<T> {
    /// Opens the store. `abandoned` is the intent record that stood here a moment ago (see [`LocalStorage::intent`]): when it
    /// still does, its writer is gone and the batch is undone.
    pub fn open(items: T, prefix: &str, abandoned: Option<&str>) -> Result<Self> {
        let store = LocalStorage { items, prefix: prefix.into() };
        if let Some(intent) = store.intent()?
            && abandoned == Some(intent.as_str())
        {
            store.undo(&intent)?;
        }
        Ok(store)
    }

    /// Returns the record of a batch that is under way, in this tab's eyes, or was never finished.
    pub fn intent(&self) -> Result<Option<String>> {
        self.items.get(&self.intent_key())
    }

    fn intent_key(&self) -> String {
        format!("{}!", self.prefix)
    }

    fn item_key(&self, key: &str) -> String {
        format!("{}={key}", self.prefix)
    }

    /// Puts back what a batch had changed, removals first so that there is room.
    fn undo(&self, intent: &str) -> Result<()> {
        let before = json::parse(intent, Surrogates::Replace)?;
        let before = before.as_object().ok_or_else(|| corrupt("the intent record"))?;
        for (key, old) in before.iter() {
            if old.is_null() {
                self.items.remove(&self.item_key(key))?;
            }
        }
        for (key, old) in before.iter() {
            if let Some(old) = old.as_str() {
                self.items.set(&self.item_key(key), old)?;
            }
        }
        self.items.remove(&self.intent_key())
    }

    fn intent_of(&self, batch: &Batch) -> Result<String> {
        let mut before = Object::default();
        for key in batch.deletes.iter().chain(batch.puts.iter().map(|(key, _)| key)) {
            let old = self.items.get(&self.item_key(key))?;
            before.set(key, old.map_or(Value::Null, Value::from));
        }
        Ok(Value::Object(before).to_text())
    }

    fn apply(&self, batch: &Batch) -> Result<()> {
        for key in &batch.deletes {
            self.items.remove(&self.item_key(key))?;
        }
        for (key, value) in &batch.puts {
            self.items.set(&self.item_key(key), &to_text(value))?;
        }
        Ok(())
    }

    fn check(&self, batch: &Batch) -> Result<()> {
        for (key, expected) in &batch.checks {
            if &SyncBackend::get(self, key)? != expected {
                return Err(conflict(key));
            }
        }
        Ok(())
    }
}

impl<T: TextStore> SyncBackend for LocalStorage<T> {
    fn limits(&self) -> Limits {
        Limits { max_value_bytes: MAX_VALUE_BYTES, max_batch: 256 }
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.items.get(&self.item_key(key))?.map(|text| from_text(&text)).transpose()
    }

    fn list(&self, start: &str, end: &str, options: ListOptions) -> Result<Entries> {
        let stem = self.item_key("");
        let mut keys: Vec<String> = self.items.keys()?;
        keys.retain_mut(|key| {
            let Some(own) = key.strip_prefix(&stem) else { return false };
            *key = own.to_owned();
            compare_keys(start, key).is_le() && compare_keys(key, end).is_lt()
        });
        crate::core::sorted::sort_by(&mut keys, |a, b| compare_keys(a, b).is_lt());
        if options.reverse {
            keys.reverse();
        }
        keys.truncate(options.limit.unwrap_or(usize::MAX));
        let entry = |key: String| -> Result<Option<(String, Vec<u8>)>> {
            if options.keys_only {
                return Ok(Some((key, Vec::new())));
            }
            // Another tab may have removed it since.
            Ok(SyncBackend::get(self, &key)?.map(|value| (key, value)))
        };
        keys.into_iter().filter_map(|key| entry(key).transpose()).collect()
    }

    fn transact(&self, batch: &Batch) -> Result<()> {
        self.check(batch)?;
        if batch.puts.len() + batch.deletes.len() <= 1 {
            return self.apply(batch);
        }
        let intent = self.intent_of(batch)?;
        self.items.set(&self.intent_key(), &intent)?;
        match self.apply(batch).and_then(|()| self.items.remove(&self.intent_key())) {
            Ok(()) => Ok(()),
            Err(error) => {
                // When this fails too, the record stays and the next one to open the store undoes the batch.
                let _ = self.undo(&intent);
                Err(error)
            }
        }
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

fn corrupt(what: &str) -> Error {
    Error::new(Kind::Corrupt, format!("localStorage: {what} cannot be read"))
}

/// Values of ours are text, and text is stored as it is: half the room of base64. Anything else is base64.
fn to_text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) if !text.bytes().any(|b| b < 0x20 && b != b'\n') => format!("t{text}"),
        _ => format!("b{}", base64::encode(value)),
    }
}

fn from_text(text: &str) -> Result<Vec<u8>> {
    if let Some(text) = text.strip_prefix('t') {
        return Ok(text.as_bytes().to_vec());
    }
    text.strip_prefix('b').and_then(base64::decode).ok_or_else(|| corrupt("an item"))
}

#[cfg(target_family = "wasm")]
pub use self::page::{PageStorage, page_storage};

#[cfg(target_family = "wasm")]
mod page {
    use js_sys::Reflect;
    use wasm_bindgen::{JsCast, JsValue};
    use web_sys::{DomException, Storage};

    use super::TextStore;
    use crate::core::error::{Error, Kind, Result};

    /// The page's own `localStorage`.
    #[derive(Debug)]
    pub struct PageStorage(Storage);

    /// Finds `localStorage`; a page whose storage is blocked throws when the property is read.
    pub fn page_storage() -> Result<PageStorage> {
        let found = Reflect::get(&js_sys::global(), &"localStorage".into()).unwrap_or(JsValue::NULL);
        found.dyn_into().map(PageStorage).map_err(|_| Error::new(Kind::Unavailable, "there is no localStorage here"))
    }

    fn fault(thrown: JsValue) -> Error {
        let exception = thrown.dyn_ref::<DomException>();
        let (name, code) = exception.map_or((String::new(), 0), |e| (e.name(), e.code()));
        // The second name and code are Firefox's.
        let is_quota =
            matches!(name.as_str(), "QuotaExceededError" | "NS_ERROR_DOM_QUOTA_REACHED") || matches!(code, 22 | 1014);
        let kind = match (is_quota, name.as_str()) {
            (true, _) => Kind::Quota,
            (false, "SecurityError") => Kind::Unavailable,
            _ => Kind::Storage,
        };
        Error::new(kind, "localStorage refused an item").with("name", name)
    }

    impl TextStore for PageStorage {
        fn get(&self, key: &str) -> Result<Option<String>> {
            self.0.get_item(key).map_err(fault)
        }

        fn set(&self, key: &str, value: &str) -> Result<()> {
            self.0.set_item(key, value).map_err(fault)
        }

        fn remove(&self, key: &str) -> Result<()> {
            self.0.remove_item(key).map_err(fault)
        }

        fn keys(&self) -> Result<Vec<String>> {
            let count = self.0.length().map_err(fault)?;
            (0..count).filter_map(|index| self.0.key(index).map_err(fault).transpose()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;
    use std::rc::Rc;

    use super::*;

    /// A store that fails, or dies, after so many writes.
    #[derive(Clone, Default)]
    struct Fake {
        items: Rc<RefCell<HashMap<String, String>>>,
        left: Rc<Cell<Option<usize>>>,
        dead: Rc<Cell<bool>>,
        /// A full store refuses larger items but removes; a dead one does nothing any more.
        dies: bool,
    }

    impl Fake {
        fn spend(&self) -> Result<()> {
            match self.left.get() {
                Some(0) => {
                    self.dead.set(self.dies);
                    if self.dies {
                        return Err(Error::new(Kind::Storage, "dead"));
                    }
                    self.left.set(None);
                    Err(Error::new(Kind::Quota, "full"))
                }
                Some(n) => {
                    self.left.set(Some(n - 1));
                    Ok(())
                }
                None => Ok(()),
            }
        }
    }

    impl TextStore for Fake {
        fn get(&self, key: &str) -> Result<Option<String>> {
            Ok(self.items.borrow().get(key).cloned())
        }
        fn set(&self, key: &str, value: &str) -> Result<()> {
            self.spend()?;
            self.items.borrow_mut().insert(key.into(), value.into());
            Ok(())
        }
        fn remove(&self, key: &str) -> Result<()> {
            self.spend()?;
            self.items.borrow_mut().remove(key);
            Ok(())
        }
        fn keys(&self) -> Result<Vec<String>> {
            Ok(self.items.borrow().keys().cloned().collect())
        }
    }

    fn all(store: &LocalStorage<Fake>) -> Entries {
        SyncBackend::list(store, "", "\u{ffff}", ListOptions::default()).unwrap()
    }

    fn change() -> Batch {
        Batch {
            puts: vec![("new".into(), b"1".to_vec()), ("old".into(), b"changed".to_vec())],
            deletes: vec!["gone".into()],
            ..Batch::default()
        }
    }

    fn filled(fake: &Fake) -> (LocalStorage<Fake>, Entries) {
        let store = LocalStorage::open(fake.clone(), "p:", None).unwrap();
        let puts = vec![("old".into(), vec![0, 255]), ("gone".into(), b"text".to_vec())];
        SyncBackend::transact(&store, &Batch { puts, ..Batch::default() }).unwrap();
        let before = all(&store);
        (store, before)
    }

    #[test]
    fn a_batch_that_dies_at_any_step_is_undone_when_the_store_is_opened() {
        for steps in 0..6 {
            let fake = Fake { dies: true, ..Fake::default() };
            let (store, before) = filled(&fake);
            fake.left.set(Some(steps));
            let done = SyncBackend::transact(&store, &change()).is_ok();
            fake.left.set(None);
            let seen = store.intent().unwrap();
            let again = LocalStorage::open(fake.clone(), "p:", seen.as_deref()).unwrap();
            let after = all(&again);
            let wanted: Entries = vec![("new".into(), b"1".to_vec()), ("old".into(), b"changed".to_vec())];
            assert_eq!(after, if done { wanted } else { before }, "stopped after {steps} steps");
            assert_eq!(done, steps == 5);
            assert_eq!(again.intent().unwrap(), None);
        }
    }

    #[test]
    fn a_full_store_takes_the_batch_back_at_once() {
        for steps in 0..4 {
            let fake = Fake::default();
            let (store, before) = filled(&fake);
            fake.left.set(Some(steps));
            assert_eq!(SyncBackend::transact(&store, &change()).unwrap_err().code(), "quota");
            assert_eq!(all(&store), before, "full after {steps} steps");
        }
    }

    #[test]
    fn a_batch_of_another_tab_that_is_under_way_is_left_alone() {
        let fake = Fake::default();
        let (store, before) = filled(&fake);
        let intent = store.intent_of(&change()).unwrap();
        fake.items.borrow_mut().insert("p:!".into(), intent);
        let other = LocalStorage::open(fake.clone(), "p:", None).unwrap();
        assert!(other.intent().unwrap().is_some());
        assert_eq!(all(&other), before);
    }

    #[test]
    fn values_keep_every_byte_and_prefixes_do_not_mix() {
        let fake = Fake::default();
        let store = LocalStorage::open(fake.clone(), "p:", None).unwrap();
        let other = LocalStorage::open(fake, "p:q", None).unwrap();
        for value in [vec![], b"plain\n".to_vec(), (0..=255).collect(), "é\u{10000}".as_bytes().to_vec(), vec![0; 9]] {
            let batch = Batch { puts: vec![("k".into(), value.clone())], ..Batch::default() };
            SyncBackend::transact(&store, &batch).unwrap();
            assert_eq!(SyncBackend::get(&store, "k").unwrap(), Some(value));
        }
        assert!(all(&other).is_empty());
    }
}
