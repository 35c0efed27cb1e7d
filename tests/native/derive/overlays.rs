//! What overlays leave, against a reading of the rules that knows no shortcuts; and where compaction cuts.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sessionlog::core::derive::{Deriver, messages};

use super::List;
use super::generate::{Random, log};

const MESSAGES: [&str; 6] =
    ["user/message", "assistant/message", "tool/result", "context/message", "context/injected", "steering/message"];

/// The boundary of an overlay, if its payload has one that counts.
fn boundary(seq: usize, kind: &str, data: &str) -> Option<i64> {
    let data: Value = serde_json::from_str(data).ok()?;
    if kind == "session/compacted" && data["summary"].as_str().is_none_or(|s| s.trim().is_empty()) {
        return None;
    }
    Some(data["uptoSeq"].as_i64()?.clamp(-1, seq as i64 - 1))
}

/// The seqs that are seen: every rule said once, every event looked at each time.
fn seen(log: &List, len: usize) -> Vec<u64> {
    let events = &log.0[..len];
    let mut hidden = BTreeSet::new();
    for (seq, (kind, data)) in events.iter().enumerate().rev() {
        if kind == "session/rewound"
            && !hidden.contains(&seq)
            && let Some(upto) = boundary(seq, kind, data)
        {
            hidden.extend((0..seq).filter(|at| *at as i64 > upto));
        }
    }
    let shown = |seq: &usize| !hidden.contains(seq);
    let latest = (0..len).rev().filter(shown).find_map(|seq| {
        let (kind, data) = &events[seq];
        if kind == "session/compacted" { boundary(seq, kind, data).map(|upto| (seq, upto)) } else { None }
    });
    let from = latest.map_or(-1, |(_, upto)| upto);
    let kept = (0..len).filter(shown).filter(|seq| *seq as i64 > from && MESSAGES.contains(&events[*seq].0.as_str()));
    latest.map(|(seq, _)| seq).into_iter().chain(kept).map(|seq| seq as u64).collect()
}

fn sources(text: &str) -> Vec<u64> {
    let messages: Value = serde_json::from_str(text).expect("JSON");
    messages.as_array().expect("a list").iter().map(|m| m["sources"][0].as_u64().expect("a source")).collect()
}

#[test]
fn overlays_leave_what_their_rules_say() {
    let mut overlays = 0;
    for seed in 0..80 {
        let mut log = log(seed, 40);
        // More of them than happen to come, one across the other.
        let mut r = Random(seed ^ 0x5151);
        for _ in 0..12 {
            let seq = log.0.len() as u64;
            match r.below(4) {
                0 => log.push("session/rewound", json!({"uptoSeq": r.below(seq + 1) as i64 - 1})),
                1 => log.push("session/compacted", json!({"summary": "S", "uptoSeq": r.below(seq + 1) as i64 - 1})),
                _ => log.push("user/message", json!({"text": "on"})),
            };
        }
        for len in 0..=log.0.len() {
            assert_eq!(sources(&messages(&log.prefix(len), None)), seen(&log, len), "seed {seed}, {len} events");
        }
        overlays += log.0.iter().filter(|(kind, _)| kind.starts_with("session/")).count();
    }
    assert!(overlays > 600, "{overlays}");
}

/// Rounds with calls that are answered in any order, late ones too.
fn rounds(r: &mut Random) -> List {
    let mut log = List::default();
    for n in 0..3 + r.below(8) {
        log.push("user/message", json!({"text": "q".repeat(1 + r.below(300) as usize)}));
        for step in 0..r.below(4) {
            let ids: Vec<String> = (0..r.below(4)).map(|i| format!("c{n}.{step}.{i}")).collect();
            let calls: Vec<Value> = ids
                .iter()
                .map(|id| json!({"type": "tool-call", "id": id, "name": "n", "args": {"a": "x".repeat(r.below(200) as usize)}}))
                .collect();
            log.push("assistant/message", json!({"parts": calls}));
            for id in ids.iter().rev().filter(|_| r.below(8) > 0).collect::<Vec<_>>() {
                log.push("tool/call", json!({"id": id, "name": "n", "args": {}}));
                log.push("tool/result", json!({"id": id, "content": "r".repeat(1 + r.below(600) as usize)}));
            }
        }
        log.push("assistant/message", json!({"parts": [{"type": "text", "text": "a"}]}));
    }
    log
}

#[test]
fn a_cut_never_parts_a_call_from_its_results() {
    let mut cuts = 0;
    for seed in 0..200 {
        let mut log = rounds(&mut Random(seed));
        let keep = Random(seed ^ 77).below(900);
        let Some(cut) = Deriver::new().cut(&log, Some(keep)) else { continue };
        cuts += 1;
        let all = messages(&log, None);
        let kept: Vec<u64> = sources(&all).split_off(cut.covered);
        assert_eq!(cut.upto_seq, kept[0] as i64 - 1, "the boundary is right before what is kept");
        let calls = |seqs: &[u64], kind: &str, pointer: &str| -> Vec<String> {
            let of = |seq: &u64| serde_json::from_str::<Value>(&log.0[*seq as usize].1).expect("JSON");
            let events = seqs.iter().filter(|seq| log.0[**seq as usize].0 == kind).map(of);
            let ids = events.flat_map(|data| match data["parts"].as_array() {
                Some(parts) => parts.iter().map(|part| part[pointer].clone()).collect::<Vec<_>>(),
                None => vec![data[pointer].clone()],
            });
            ids.filter_map(|id| id.as_str().map(str::to_owned)).collect()
        };
        let asked = calls(&kept, "assistant/message", "id");
        for answered in calls(&kept, "tool/result", "id") {
            assert!(asked.contains(&answered), "seed {seed}: {answered} lost its call");
        }
        assert_ne!(log.0[kept[0] as usize].0, "tool/result");
        log.push("session/compacted", json!({"summary": "S", "uptoSeq": cut.upto_seq}));
        let left = sources(&messages(&log, None));
        assert_eq!(left[1..], kept[..], "the summary, then what was kept");
        let codes = super::codes(&log, json!({"target": "anthropic"}));
        assert!(!codes.contains(&"orphan_result"), "seed {seed}: {codes:?}");
    }
    assert!(cuts > 100, "{cuts}");
}
