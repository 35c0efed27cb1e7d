//! Scrubbing once more what is stored already: which payloads change, and to what.

use crate::core::error::Result;
use crate::core::json::{self, Surrogates, Value};
use crate::core::scrub::{Chain, scrub_payload};
use crate::core::sorted::SortedMap;

/// A stored event, copied out so that nothing is borrowed while a caller's scrubber runs.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// Sequence number.
    pub seq: u64,
    /// Event type.
    pub kind: String,
    /// Payload: JSON text.
    pub data: String,
}

/// Returns the payloads that change, by seq. Chunks of one stream are scrubbed as the one text they are: a secret may lie
/// across them.
pub fn plan(events: &[StoredEvent], chain: &Chain) -> Result<SortedMap<u64, String>> {
    let mut changes = SortedMap::new();
    let mut streams: Vec<(String, Vec<Chunk>)> = Vec::new();
    for event in events {
        match Chunk::read(event) {
            Some((stream, chunk)) => match streams.iter_mut().rev().find(|(key, _)| *key == stream) {
                Some((_, chunks)) => chunks.push(chunk),
                None => streams.push((stream, vec![chunk])),
            },
            None => {
                let scrubbed = scrub_payload(&event.kind, &event.data, chain)?;
                if *scrubbed != event.data {
                    changes.insert(event.seq, scrubbed.into_owned());
                }
            }
        }
    }
    for (_, chunks) in streams {
        rewrite_stream(chunks, chain, &mut changes)?;
    }
    Ok(changes)
}

struct Chunk {
    seq: u64,
    data: Value,
    text: String,
}

impl Chunk {
    fn read(event: &StoredEvent) -> Option<(String, Chunk)> {
        if event.kind != "assistant/chunk" {
            return None;
        }
        let data = json::parse(&event.data, Surrogates::Replace).ok()?;
        let text = data.get("text")?.as_str()?.to_owned();
        let key = |name: &str| data.get(name).map(Value::to_text).unwrap_or_default();
        let stream = [key("turn"), key("step"), key("kind"), key("id")].join(" ");
        Some((stream, Chunk { seq: event.seq, data, text }))
    }
}

/// When the joined text changes, its first chunk carries all of it and the others nothing.
fn rewrite_stream(chunks: Vec<Chunk>, chain: &Chain, changes: &mut SortedMap<u64, String>) -> Result<()> {
    let joined: String = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    let scrubbed = chain.scrub(&joined)?;
    if *scrubbed == joined {
        return Ok(());
    }
    let mut rest = scrubbed.into_owned();
    for mut chunk in chunks {
        if let Some(data) = chunk.data.as_object_mut() {
            data.set("text", std::mem::take(&mut rest));
        }
        changes.insert(chunk.seq, chunk.data.to_text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::scrub::Values;
    use std::rc::Rc;

    #[test]
    fn secrets_go_from_payloads_and_from_across_chunks() {
        let chain = Chain::of(Rc::new(Values::new(&["hunter2-hunter2".to_owned()], None).unwrap()));
        let event = |seq, kind: &str, data: &str| StoredEvent { seq, kind: kind.into(), data: data.into() };
        let events = [
            event(0, "user/message", r#"{"text":"it is hunter2-hunter2."}"#),
            event(1, "assistant/chunk", r#"{"turn":1,"step":1,"kind":"text","text":"so hunter2"}"#),
            event(2, "assistant/chunk", r#"{"turn":1,"step":1,"kind":"reasoning","text":"other"}"#),
            event(3, "assistant/chunk", r#"{"turn":1,"step":1,"kind":"text","text":"-hunter2 it is"}"#),
            event(4, "user/message", r#"{"text":"clean"}"#),
        ];
        let changes = plan(&events, &chain).unwrap();
        let mut seqs: Vec<_> = changes.keys().copied().collect();
        seqs.sort_unstable();
        assert_eq!(seqs, [0, 1, 3]);
        assert!(changes.values().all(|data| !data.contains("hunter2")));
        let text =
            |seq| json::parse(changes.get(&seq).unwrap(), Surrogates::Refuse).unwrap().get("text").unwrap().to_text();
        assert!(text(1).contains("[REDACTED:") && text(1).contains(" it is"));
        assert_eq!(text(3), "\"\"");
    }
}
