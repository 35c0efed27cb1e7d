//! The bytes of a file: shared between tree and journals, hashed only when they are stored.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use sha2::{Digest, Sha256};

/// SHA-256 of some bytes; the name under which they are stored.
pub type Hash = [u8; 32];

/// Immutable bytes. Cloning the `Rc` around it is how a copy, a before-image or an undo costs nothing.
#[derive(Debug)]
pub struct Content {
    /// None when only length and hash are known: enough to compare with.
    bytes: Option<Vec<u8>>,
    known: usize,
    hash: OnceCell<Box<Hash>>,
    stored: Cell<bool>,
}

impl Content {
    /// Holds bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Content { bytes: Some(bytes), known: 0, hash: OnceCell::new(), stored: Cell::new(false) }
    }

    /// Holds bytes that stand in the store under this hash.
    pub fn loaded(bytes: Vec<u8>, hash: Hash) -> Self {
        let content = Content::new(bytes);
        content.stored.set(true);
        let _ = content.hash.set(Box::new(hash));
        content
    }

    /// Stands for bytes of which only length and hash are known.
    pub fn known(len: usize, hash: Hash) -> Self {
        let cell = OnceCell::new();
        let _ = cell.set(Box::new(hash));
        Content { bytes: None, known: len, hash: cell, stored: Cell::new(false) }
    }

    /// Returns the same without its bytes.
    pub fn forgotten(&self) -> Content {
        Content::known(self.len(), *self.hash())
    }

    /// Returns the bytes; none when only the hash is known.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }

    /// Says whether the bytes are here.
    pub fn is_whole(&self) -> bool {
        self.bytes.is_some()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.as_ref().map_or(self.known, Vec::len)
    }

    /// Says whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the hash, computed once.
    pub fn hash(&self) -> &Hash {
        self.hash.get_or_init(|| Box::new(Sha256::digest(self.bytes()).into()))
    }

    /// Says whether the store has these bytes.
    pub fn is_stored(&self) -> bool {
        self.stored.get()
    }

    /// Notes that the store has these bytes.
    pub fn set_stored(&self) {
        self.stored.set(true);
    }

    /// Says whether two contents are the same bytes.
    pub fn same(a: &Rc<Content>, b: &Rc<Content>) -> bool {
        if Rc::ptr_eq(a, b) {
            return true;
        }
        if a.len() != b.len() {
            return false;
        }
        match (&a.bytes, &b.bytes) {
            (Some(x), Some(y)) => x == y,
            _ => a.hash() == b.hash(),
        }
    }

    /// Gives the bytes for changing: in place when nobody else holds them, else in a copy.
    pub fn edit(content: &mut Rc<Content>) -> &mut Vec<u8> {
        let own = Rc::make_mut(content);
        own.hash = OnceCell::new();
        own.stored = Cell::new(false);
        own.bytes.get_or_insert_default()
    }
}

impl Clone for Content {
    fn clone(&self) -> Self {
        Content::new(self.bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editing_never_changes_what_another_holds() {
        let mut a = Rc::new(Content::new(b"one".to_vec()));
        let b = Rc::clone(&a);
        let first = *a.hash();
        Content::edit(&mut a).push(b'!');
        assert_eq!((a.bytes(), b.bytes()), (&b"one!"[..], &b"one"[..]));
        assert_ne!(*a.hash(), first);
        assert!(Content::same(&b, &Rc::new(Content::known(3, first))));
        assert!(!Content::same(&a, &b));
    }
}
