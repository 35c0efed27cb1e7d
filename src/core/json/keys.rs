//! Keys that stand twice in one object.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Token, unescape};
use crate::core::error::{Error, Kind, Result};

/// Finds duplicate keys, object by object.
#[derive(Default)]
pub(super) struct KeySets<'a> {
    open: Vec<KeySet<'a>>,
}

#[derive(Default)]
struct KeySet<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<String>,
}

/// Up to this many keys a linear search is faster than hashing.
const FEW_KEYS: usize = 12;

impl<'a> KeySet<'a> {
    fn insert(&mut self, key: Cow<'a, str>) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(key.into_owned());
        }
        if self.few.contains(&key) {
            return false;
        }
        self.few.push(key);
        if self.few.len() > FEW_KEYS {
            self.many = self.few.drain(..).map(Cow::into_owned).collect();
        }
        true
    }
}

impl<'a> KeySets<'a> {
    /// Takes one more token in; an error when it is a key that its object has.
    pub(super) fn see(&mut self, text: &'a str, token: Token) -> Result<()> {
        match token {
            Token::BeginObject => self.open.push(KeySet::default()),
            Token::EndObject => {
                self.open.pop();
            }
            Token::Key(start, end) => {
                let key = unescape(text.get(start..end).unwrap_or_default());
                if self.open.last_mut().is_some_and(|set| !set.insert(key)) {
                    return Err(Error::new(Kind::NotJson, format!("a key stands twice in one object at byte {start}"))
                        .with("offset", start));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
