//! Sorted maps, sets and a stable sort that are small as code.
//!
//! The standard library's trees and sorts are fast for any size and take several kilobytes of WebAssembly for every type they
//! are used with. Where there are few entries, or they come in order, a sorted list does the same in a few hundred bytes.

use std::borrow::Borrow;

/// A map kept as a sorted list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap(Vec::new())
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Makes an empty map.
    pub const fn new() -> Self {
        SortedMap(Vec::new())
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|(k, _)| k.borrow().cmp(key))
    }

    /// Returns the value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        self.0.get(at).map(|(_, v)| v)
    }

    /// Returns the value of a key for changing.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        self.0.get_mut(at).map(|(_, v)| v)
    }

    /// Says whether a key is there.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Sets the value of a key and returns the former one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => self.0.get_mut(at).map(|(_, v)| std::mem::replace(v, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Removes a key and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Returns the value of a key, made when it is not there.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (key, make()));
                at
            }
        };
        #[allow(clippy::indexing_slicing, reason = "the place was found or filled just now")]
        &mut self.0[at].1
    }

    /// Iterates in order over the keys from `from` up to but not including `to`.
    pub fn range<Q: Ord + ?Sized>(&self, from: &Q, to: &Q) -> impl DoubleEndedIterator<Item = (&K, &V)>
    where
        K: Borrow<Q>,
    {
        let start = self.find(from).unwrap_or_else(|at| at);
        let end = self.find(to).unwrap_or_else(|at| at);
        self.0.get(start..end).unwrap_or_default().iter().map(|(k, v)| (k, v))
    }
}

impl<K, V> SortedMap<K, V> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Says whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Iterates in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0.iter().map(|(k, v)| (k, v))
    }

    /// Iterates over the keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.0.iter().map(|(k, _)| k)
    }

    /// Iterates over the values in order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.0.iter().map(|(_, v)| v)
    }

    /// Iterates over the values in order of their keys, for changing.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, v)| v)
    }

    /// Takes the values in order of their keys.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.0.into_iter().map(|(_, v)| v)
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = SortedMap::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

/// Sorts a list; equal items keep their order. Merges, whatever the order, in n log n comparisons.
pub fn sort_by<T>(list: &mut Vec<T>, mut is_before: impl FnMut(&T, &T) -> bool) {
    let order = {
        let list = &*list;
        merge_order(list.len(), &mut |a, b| match (list.get(a), list.get(b)) {
            (Some(a), Some(b)) => is_before(a, b),
            _ => false,
        })
    };
    let mut items: Vec<Option<T>> = list.drain(..).map(Some).collect();
    list.extend(order.into_iter().filter_map(|at| items.get_mut(at)?.take()));
}

/// The order in which the places of a list stand when it is sorted. Not generic: it exists once.
fn merge_order(len: usize, is_before: &mut dyn FnMut(usize, usize) -> bool) -> Vec<usize> {
    let mut from: Vec<usize> = (0..len).collect();
    let mut width = 1;
    while width < len {
        let mut to = Vec::with_capacity(len);
        for run in from.chunks(width * 2) {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            while let (Some((l, more_left)), Some((r, more_right))) = (left.split_first(), right.split_first()) {
                if is_before(*r, *l) {
                    to.push(*r);
                    right = more_right;
                } else {
                    to.push(*l);
                    left = more_left;
                }
            }
            to.extend_from_slice(left);
            to.extend_from_slice(right);
        }
        from = to;
        width *= 2;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_sorted_map_does_what_a_tree_does(steps in prop::collection::vec((0u8..4, 0u8..20, 0u8..9), 0..80)) {
            let (mut ours, mut theirs) = (SortedMap::new(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(ours.insert(key, value), theirs.insert(key, value)),
                    1 => prop_assert_eq!(ours.remove(&key), theirs.remove(&key)),
                    2 => prop_assert_eq!(*ours.get_or_insert_with(key, || value), *theirs.entry(key).or_insert(value)),
                    _ => prop_assert_eq!(ours.get(&key), theirs.get(&key)),
                }
                prop_assert!(ours.iter().eq(theirs.iter()));
                prop_assert!(ours.range(&key, &15).eq(theirs.range(key.min(15)..15)));
            }
        }

        #[test]
        fn sorting_is_stable(list in prop::collection::vec((0u8..10, any::<u16>()), 0..200)) {
            let (mut ours, mut theirs) = (list.clone(), list);
            sort_by(&mut ours, |a, b| a.0 < b.0);
            theirs.sort_by_key(|item| item.0);
            prop_assert_eq!(ours, theirs);
        }
    }
}
