//! Derivation: what the field reported, golden requests, and every prefix of many logs for every target.

#[path = "derive/gen.rs"]
mod generate;
#[path = "derive/lessons.rs"]
mod lessons;
#[path = "derive/overlays.rs"]
mod overlays;
#[path = "derive/prefixes.rs"]
mod prefixes;

use serde_json::Value;
use sessionlog::core::derive::{Deriver, EventSource, NoBlobs, RequestOptions, RequestUpdate};
use sessionlog::core::event::EventView;
use sessionlog::core::id::EventId;

/// A log in a list.
#[derive(Clone, Default, Debug)]
pub struct List(pub Vec<(String, String)>);

impl List {
    pub fn push(&mut self, kind: &str, data: Value) -> &mut List {
        self.0.push((kind.to_owned(), data.to_string()));
        self
    }

    pub fn prefix(&self, len: usize) -> Start<'_> {
        Start { log: self, len: len as u64 }
    }
}

impl EventSource for List {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn event(&self, seq: u64) -> Option<EventView<'_>> {
        let (kind, data) = self.0.get(seq as usize)?;
        Some(EventView { seq, id: EventId(seq), at: 0, kind, data, note: None })
    }
}

/// The first events of a log.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    log: &'a List,
    len: u64,
}

impl EventSource for Start<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn event(&self, seq: u64) -> Option<EventView<'_>> {
        if seq < self.len { self.log.event(seq) } else { None }
    }
}

pub fn options(value: Value) -> RequestOptions {
    RequestOptions::parse(&value.to_string()).expect("good options")
}

pub fn request(log: &dyn EventSource, given: Value) -> RequestUpdate {
    Deriver::new().request(log, &options(given), &NoBlobs)
}

/// The messages as an independent parser reads them.
pub fn sent(log: &dyn EventSource, given: Value) -> Value {
    let request = request(log, given);
    assert!(request.repairs.iter().all(|r| r.code != "invalid_request"), "{:?}", request.repairs);
    request.messages.iter().map(|m| serde_json::from_str::<Value>(m).expect("strict JSON")).collect()
}

pub fn codes(log: &dyn EventSource, given: Value) -> Vec<&'static str> {
    request(log, given).repairs.iter().map(|r| r.code).collect()
}
