//! The reference backend: an ordered map in memory.

use crate::core::sorted::SortedMap;
use std::cell::RefCell;

use super::{Batch, Entries, Key, ListOptions, SyncBackend, closed, compare_keys, conflict};
use crate::core::error::Result;

/// A store that lives in memory.
#[derive(Debug, Default)]
pub struct Memory {
    /// `None` once closed.
    map: RefCell<Option<SortedMap<Key, Vec<u8>>>>,
}

impl Memory {
    /// Makes an empty store.
    pub fn new() -> Self {
        Memory { map: RefCell::new(Some(SortedMap::new())) }
    }

    fn with<T>(&self, work: impl FnOnce(&mut SortedMap<Key, Vec<u8>>) -> Result<T>) -> Result<T> {
        self.map.borrow_mut().as_mut().ok_or_else(closed).and_then(work)
    }
}

impl SyncBackend for Memory {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.with(|map| Ok(map.get(&Key(key.into())).cloned()))
    }

    fn list(&self, start: &str, end: &str, options: ListOptions) -> Result<Entries> {
        self.with(|map| Ok(list_map(map, start, end, options, |_, value| value.clone())))
    }

    fn transact(&self, batch: &Batch) -> Result<()> {
        self.with(|map| {
            for (key, expected) in &batch.checks {
                if map.get(&Key(key.clone())) != expected.as_ref() {
                    return Err(conflict(key));
                }
            }
            for key in &batch.deletes {
                map.remove(&Key(key.clone()));
            }
            for (key, value) in &batch.puts {
                map.insert(Key(key.clone()), value.clone());
            }
            Ok(())
        })
    }

    fn close(&self) -> Result<()> {
        self.map.take();
        Ok(())
    }
}

/// Lists a range of an ordered map; `value` makes the bytes of one entry.
pub(crate) fn list_map<V>(
    map: &SortedMap<Key, V>,
    start: &str,
    end: &str,
    options: ListOptions,
    value: impl Fn(&Key, &V) -> Vec<u8>,
) -> Entries {
    if compare_keys(start, end).is_ge() {
        return Vec::new();
    }
    let entry = |(key, found): (&Key, &V)| {
        let bytes = if options.keys_only { Vec::new() } else { value(key, found) };
        (key.0.clone(), bytes)
    };
    let (start, end) = (Key(start.into()), Key(end.into()));
    let range = map.range(&start, &end);
    let limit = options.limit.unwrap_or(usize::MAX);
    if options.reverse { range.rev().take(limit).map(entry).collect() } else { range.take(limit).map(entry).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(puts: &[(&str, &str)]) -> Batch {
        Batch { puts: puts.iter().map(|(k, v)| ((*k).into(), v.as_bytes().to_vec())).collect(), ..Batch::default() }
    }

    #[test]
    fn a_failed_check_writes_nothing() {
        let store = Memory::new();
        store.transact(&batch(&[("a", "1")])).unwrap();
        let mut second = batch(&[("b", "2")]);
        second.checks.push(("a".into(), Some(b"other".to_vec())));
        assert_eq!(store.transact(&second).unwrap_err().code(), "conflict");
        assert_eq!(SyncBackend::get(&store, "b").unwrap(), None);
    }

    #[test]
    fn ranges_are_half_open_and_go_both_ways() {
        let store = Memory::new();
        store.transact(&batch(&[("a", "1"), ("b", "2"), ("c", "3")])).unwrap();
        let keys = |start: &str, end: &str, options| -> Vec<String> {
            SyncBackend::list(&store, start, end, options).unwrap().into_iter().map(|(k, _)| k).collect()
        };
        assert_eq!(keys("a", "c", ListOptions::default()), ["a", "b"]);
        let last = ListOptions { limit: Some(1), reverse: true, keys_only: true };
        assert_eq!(keys("a", "z", last), ["c"]);
        assert!(keys("c", "a", ListOptions::default()).is_empty());
    }

    #[test]
    fn a_closed_store_says_so() {
        let store = Memory::new();
        SyncBackend::close(&store).unwrap();
        assert_eq!(SyncBackend::get(&store, "a").unwrap_err().code(), "disposed");
    }
}
