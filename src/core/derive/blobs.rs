//! Media whose bytes lie beside the log: which ones are named, and those that are at hand.

use std::borrow::Cow;
use std::rc::Rc;

use super::media::Blobs;
use super::{Deriver, EventSource};
use crate::core::base64;
use crate::core::message::{Message, Part, Source};
use crate::core::sorted::SortedMap;
use crate::core::tape::Tape;

/// The blobs of one session that were brought, as base64; nothing for one that the store does not have.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    held: SortedMap<String, Option<Rc<str>>>,
}

impl Shelf {
    /// Takes a blob in, or that there is none.
    pub fn put(&mut self, blob: &str, bytes: Option<&[u8]>) {
        let text = bytes.map(|bytes| {
            let mut text = base64::encode(bytes);
            text.push_str("=".repeat((4 - text.len() % 4) % 4).as_str());
            text.into()
        });
        self.held.insert(blob.to_owned(), text);
    }
}

impl Blobs for Shelf {
    fn base64(&self, blob: &str) -> Option<Cow<'_, str>> {
        self.held.get(blob)?.as_deref().map(Cow::Borrowed)
    }
}

/// Names of blobs in the messages of these events, each once.
pub fn blobs_of(log: &dyn EventSource, seqs: impl IntoIterator<Item = u64>) -> Vec<String> {
    let mut names = SortedMap::new();
    for event in seqs.into_iter().filter_map(|seq| log.event(seq)) {
        // Most messages name none: they are not read.
        if !event.data.contains("\"blob\"") {
            continue;
        }
        let tape = Tape::new(event.data);
        let Some(message) = Message::read(&event, &tape) else { continue };
        note(&message.parts, &mut names);
    }
    names.iter().map(|(name, ())| name.clone()).collect()
}

fn note(parts: &[Part<'_>], names: &mut SortedMap<String, ()>) {
    for part in parts {
        match part {
            Part::Media(media) => {
                if let Source::Blob(blob) = &media.source {
                    names.insert(blob.plain().into_owned(), ());
                }
            }
            Part::Result(outcome) => note(outcome.parts(), names),
            _ => {}
        }
    }
}

impl Deriver {
    /// Returns the blobs that are seen and were not asked for yet.
    pub fn wanted_blobs(&mut self, log: &dyn EventSource, shelf: &Shelf) -> Vec<String> {
        self.read(log);
        let mut names = blobs_of(log, self.message_seqs());
        names.retain(|name| !shelf.held.contains_key(name));
        names
    }
}
