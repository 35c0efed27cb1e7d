//! Scrubbers in the order of their registration.

use std::borrow::Cow;
use std::rc::Rc;

use super::super::error::{Error, Kind, Result};

/// A function over text that is applied to every string before it is stored.
pub trait Scrubber {
    /// The name that errors and `session/rescrubbed` carry.
    fn name(&self) -> &str;

    /// Returns the text without what this scrubber looks for; borrowed when there is nothing of it.
    fn scrub<'t>(&self, text: &'t str) -> Result<Cow<'t, str>>;

    /// The longest text this scrubber can match, in UTF-16 units; `None` when unknown.
    fn max_match_length(&self) -> Option<usize> {
        None
    }

    /// Where its matches stand, as byte offsets, when the scrubber can say so.
    fn spans(&self, _text: &str) -> Option<Vec<(usize, usize)>> {
        None
    }

    /// A face that takes text in pieces and yields exactly what [`Scrubber::scrub`] yields for the whole.
    fn pieces(self: Rc<Self>) -> Option<Box<dyn Pieces>> {
        None
    }
}

/// Text in pieces: what is decided is appended to `out`, the rest waits.
pub trait Pieces {
    /// Takes one piece.
    fn push(&mut self, piece: &str, out: &mut String) -> Result<()>;
    /// Says that nothing follows.
    fn end(&mut self, out: &mut String) -> Result<()>;
}

/// Scrubbers folded over text in order. A clone is cheap, so that nothing is borrowed while a caller's function runs.
#[derive(Clone, Default)]
pub struct Chain {
    links: Rc<Vec<Link>>,
}

#[derive(Clone)]
struct Link {
    identity: u32,
    scrubber: Rc<dyn Scrubber>,
}

impl Chain {
    /// Makes a chain of one.
    pub fn of(scrubber: Rc<dyn Scrubber>) -> Self {
        let mut chain = Chain::default();
        chain.add(0, scrubber);
        chain
    }

    /// Adds a scrubber at the end; `identity` names the object that was registered.
    pub fn add(&mut self, identity: u32, scrubber: Rc<dyn Scrubber>) {
        Rc::make_mut(&mut self.links).push(Link { identity, scrubber });
    }

    /// Removes the last registration of an identity.
    pub fn remove(&mut self, identity: u32) -> bool {
        let Some(at) = self.links.iter().rposition(|link| link.identity == identity) else { return false };
        Rc::make_mut(&mut self.links).remove(at);
        true
    }

    /// Says whether nothing scrubs.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The scrubbers in their order.
    pub fn scrubbers(&self) -> impl Iterator<Item = &Rc<dyn Scrubber>> {
        self.links.iter().map(|link| &link.scrubber)
    }

    /// Where a chain of one finds its matches, when its scrubber can say so.
    pub fn spans(&self, text: &str) -> Option<Vec<(usize, usize)>> {
        self.scrubbers().next()?.spans(text)
    }

    /// Folds every scrubber over a text.
    pub fn scrub<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        let mut out = Cow::Borrowed(text);
        for scrubber in self.scrubbers() {
            if let Cow::Owned(changed) = scrubber.scrub(&out)? {
                out = Cow::Owned(changed);
            }
        }
        // Two scrubbers may undo each other's work; what is equal counts as untouched.
        Ok(match out {
            Cow::Owned(changed) if changed != text => Cow::Owned(changed),
            _ => Cow::Borrowed(text),
        })
    }
}

/// Makes the error for a scrubber that returned something other than well-formed text.
pub fn check_replacement(name: &str) -> Error {
    Error::new(Kind::ScrubberContract, format!("the scrubber `{name}` returned something other than well-formed text"))
        .with("scrubber", name)
}
