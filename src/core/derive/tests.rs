//! What derivation yields, from logs written down as pairs of type and data.

use super::*;
use crate::core::id::EventId;
use crate::core::json::{Surrogates, Value, parse};

/// A log in a list.
#[derive(Clone, Default)]
struct List(Vec<(String, String)>);

impl List {
    fn of(events: &[(&str, &str)]) -> List {
        List(events.iter().map(|(k, d)| ((*k).to_owned(), (*d).to_owned())).collect())
    }

    fn push(&mut self, kind: &str, data: &str) {
        self.0.push((kind.to_owned(), data.to_owned()));
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

fn say(text: &str) -> String {
    format!(r#"{{"text":"{text}"}}"#)
}

/// The texts that are seen, in order.
fn texts(messages: &str) -> Vec<String> {
    let messages = parse(messages, Surrogates::Refuse).unwrap();
    let text = |m: &Value| m.get("parts")?.as_array()?.first()?.get("text")?.as_str().map(str::to_owned);
    messages.as_array().unwrap().iter().map(|m| text(m).unwrap_or_default()).collect()
}

#[test]
fn a_compaction_stands_for_what_it_covers_and_a_rewind_across_it_brings_that_back() {
    let mut log = List::default();
    for text in ["a", "b", "c"] {
        log.push("user/message", &say(text));
    }
    log.push("session/compacted", r#"{"summary":"S","uptoSeq":1}"#);
    log.push("user/message", &say("d"));
    assert_eq!(texts(&messages(&log, None)), ["S", "c", "d"]);
    log.push("session/compacted", r#"{"summary":"T","uptoSeq":4}"#);
    assert_eq!(texts(&messages(&log, None)), ["T"]);
    // Back to before the second, then to before both.
    log.push("session/rewound", r#"{"uptoSeq":4}"#);
    assert_eq!(texts(&messages(&log, None)), ["S", "c", "d"]);
    log.push("session/rewound", r#"{"uptoSeq":1}"#);
    log.push("user/message", &say("e"));
    assert_eq!(texts(&messages(&log, None)), ["a", "b", "e"]);
    // Back to before that rewind: it is undone, and what it hid is seen again.
    log.push("session/rewound", r#"{"uptoSeq":6}"#);
    assert_eq!(texts(&messages(&log, None)), ["S", "c", "d"]);
    log.push("session/rewound", r#"{"uptoSeq":-1}"#);
    assert_eq!(texts(&messages(&log, None)), Vec::<String>::new());
    for upto in 0..=log.len() {
        assert_eq!(messages(&log, Some(upto)), messages(&Prefix { log: &log, len: upto }, None));
    }
    assert_eq!(texts(&messages(&log, Some(5))), ["S", "c", "d"]);
}

#[test]
fn overlays_that_say_nothing_cover_nothing() {
    let mut log = List::of(&[("user/message", r#"{"text":"a"}"#)]);
    for (kind, data) in [
        ("session/rewound", "{}"),
        ("session/rewound", r#"{"uptoSeq":"0"}"#),
        ("session/rewound", r#"{"uptoSeq":99}"#),
        ("session/compacted", r#"{"summary":" ","uptoSeq":0}"#),
        ("session/compacted", r#"{"summary":"S"}"#),
        ("session/compacted", "[]"),
    ] {
        log.push(kind, data);
        assert_eq!(texts(&messages(&log, None)), ["a"], "{kind} {data}");
    }
    // A boundary in the future is the boundary now.
    log.push("session/compacted", r#"{"summary":"S","uptoSeq":99}"#);
    log.push("user/message", &say("b"));
    assert_eq!(texts(&messages(&log, None)), ["S", "b"]);
}

#[test]
fn updates_add_up_to_what_deriving_anew_gives() {
    let mut log = List::default();
    let mut deriver = Deriver::new();
    let mut kept: Vec<Value> = Vec::new();
    let events: Vec<(&str, String)> = vec![
        ("turn/start", "{}".into()),
        ("user/message", say("a")),
        ("user/message", say("b")),
        ("assistant/chunk", say("x")),
        ("session/rewound", r#"{"uptoSeq":1}"#.into()),
        ("user/message", say("c")),
        ("session/compacted", r#"{"summary":"S","uptoSeq":1}"#.into()),
        ("user/message", say("d")),
        ("session/rewound", r#"{"uptoSeq":3}"#.into()),
        ("session/titled", r#"{"title":"t"}"#.into()),
    ];
    for (kind, data) in &events {
        log.push(kind, data);
        let update = deriver.update(&log);
        let fresh = parse(&update.messages, Surrogates::Refuse).unwrap();
        assert_eq!(update.changed, update.added > 0 || update.keep < kept.len(), "{kind}");
        kept.truncate(update.keep);
        kept.extend(fresh.as_array().unwrap().iter().cloned());
        assert_eq!(Value::from(kept.clone()).to_text(), messages(&log, None), "after {kind}");
        assert!(!deriver.update(&log).changed);
    }
}

/// A13
#[test]
fn a_cut_moves_back_to_the_start_of_the_round() {
    let calls = r#"{"parts":[{"type":"tool-call","id":"t1","name":"n","args":{}},{"type":"tool-call","id":"t2","name":"n","args":{}},{"type":"tool-call","id":"t3","name":"n","args":{}}]}"#;
    let mut log = List::default();
    log.push("user/message", &say(&"u".repeat(400)));
    log.push("assistant/message", calls);
    for id in ["t1", "t2", "t3"] {
        log.push("tool/result", &format!(r#"{{"id":"{id}","content":"{}"}}"#, "r".repeat(400)));
    }
    log.push("assistant/message", r#"{"parts":[{"type":"text","text":"a2"}]}"#);
    log.push("user/message", &say("u2"));
    let cut = |log: &List, keep| Deriver::new().cut(log, keep).map(|c| (c.covered, c.upto_seq));
    assert_eq!(cut(&log, Some(150)), Some((1, 0)));
    assert_eq!(cut(&log, Some(40)), Some((5, 4)));
    assert_eq!(cut(&log, Some(1)), Some((6, 5)));
    assert_eq!(cut(&log, None), Some((7, 6)));
    assert_eq!(cut(&log, Some(100_000)), None);
    // The newest round alone is over the budget: the cut is right before it.
    log.0.truncate(5);
    assert_eq!(cut(&log, Some(10)), Some((1, 0)));
    assert_eq!(cut(&List::default(), None), None);
}

#[test]
fn tokens_are_counted_by_bytes_from_the_last_real_count_on() {
    let mut log = List::default();
    log.push("user/message", &say(&"u".repeat(389)));
    log.push("step/end", "{}");
    log.push("user/message", &say("u2"));
    let mut deriver = Deriver::new();
    let fresh = deriver.tokens(&log, None);
    let anchored = deriver.tokens(&log, Some(Anchor { seq: 1, tokens: 5_000 }));
    assert_eq!((fresh, anchored), (104 + 8, 5_008));
    log.push("session/compacted", r#"{"summary":"S","uptoSeq":2}"#);
    assert!(deriver.tokens(&log, Some(Anchor { seq: 1, tokens: 5_000 })) < 50);
}
