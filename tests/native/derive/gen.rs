//! Logs as they come: turns that end in every way, odd ids, blank and broken text, media, overlays.

use serde_json::{Value, json};

use super::List;

/// A small random source: the same seed gives the same log.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A word that stands nowhere else, so that one can see whether it was lost.
pub fn marker(seq: usize, n: usize) -> String {
    format!("<m{seq}.{n}>")
}

fn text(r: &mut Random, seq: usize, n: usize) -> String {
    match r.below(12) {
        0 => String::new(),
        1 => " \n\t".into(),
        2 => format!("{} \u{1f525}\u{0}\"\\\n ", marker(seq, n)),
        3 => format!("</context>{}", marker(seq, n)),
        _ => format!("{} said", marker(seq, n)),
    }
}

fn id(r: &mut Random) -> String {
    match r.below(10) {
        0 => String::new(),
        1 => "edit:22".into(),
        2 => "x".repeat(90),
        3 => "a b/é".into(),
        4 => "call_0".into(),
        n => format!("call_{}", n * 10 + r.below(6)),
    }
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";

fn media(r: &mut Random) -> Value {
    let kind = r.pick(&["image", "file"]);
    let media_type = r.pick(&["image/png", "image/tiff", "application/pdf", "audio/wav", "text/plain", "IMAGE/JPG"]);
    match r.below(5) {
        0 => json!({"type": kind, "mediaType": media_type, "url": "https://example.com/x"}),
        1 => json!({"type": kind, "mediaType": media_type, "blob": "00ff"}),
        2 => json!({"type": kind, "mediaType": media_type, "data": "not base64!"}),
        3 => json!({"type": kind, "mediaType": media_type, "url": "file:///etc/x"}),
        _ => json!({"type": kind, "mediaType": media_type, "data": PNG, "filename": "f"}),
    }
}

fn parts(r: &mut Random, seq: usize) -> Value {
    (0..r.below(4) as usize)
        .map(|n| match r.below(6) {
            0 | 1 => media(r),
            2 => json!({"type": "odd", "x": 1}),
            _ => json!({"type": "text", "text": text(r, seq, n)}),
        })
        .collect()
}

fn call(r: &mut Random) -> Value {
    let mut call = json!({"type": "tool-call", "id": id(r), "name": r.pick(&["read", "write", "", "a b", "näme"])});
    match r.below(9) {
        0 => call["args"] = json!("{\"n\":1}"),
        1 => call["args"] = json!(""),
        2 => call["args"] = json!([1]),
        3 => call["rawArgs"] = json!("{\"cut\":"),
        4 => call["args"] = Value::Null,
        5 => {}
        n => call["args"] = json!({"n": n, "10": 1.5, "2": "é\u{1f525}"}),
    }
    if r.one_in(4) {
        call["thoughtSignature"] = json!("c2ln");
    }
    if r.one_in(4) {
        call["itemId"] = json!(format!("fc_{}", r.below(40)));
    }
    if r.one_in(8) {
        call["providerExecuted"] = json!(true);
    }
    call
}

fn reasoning(r: &mut Random) -> Value {
    match r.below(5) {
        0 => json!({"type": "reasoning", "text": "thought"}),
        1 => json!({"type": "reasoning", "text": "", "redacted": "QQ=="}),
        2 => json!({"type": "reasoning", "text": "t", "itemId": format!("rs_{}", r.below(30)), "encrypted": "ZW5j"}),
        3 => json!({"type": "reasoning", "text": "", "signature": "c2ln"}),
        _ => json!({"type": "reasoning", "text": "thought", "signature": "c2ln"}),
    }
}

fn assistant(r: &mut Random, seq: usize) -> Value {
    let parts: Vec<Value> = (0..r.below(6) as usize)
        .map(|n| match r.below(9) {
            0 | 1 => reasoning(r),
            2..=4 => call(r),
            5 if r.one_in(3) => media(r),
            6 if r.one_in(3) => json!({"type": "tool-result", "id": id(r), "content": "inline"}),
            _ => json!({"type": "text", "text": text(r, seq, n)}),
        })
        .collect();
    let mut data = json!({"turn": 1, "step": 1, "parts": parts});
    if !r.one_in(3) {
        let (provider, api, model) =
            [("anthropic", "anthropic.messages", "c"), ("openai", "openai.responses", "g"), ("google", "gemini", "m")]
                [r.below(3) as usize];
        data["provider"] = json!(provider);
        data["api"] = json!(api);
        data["model"] = json!(model);
    }
    if r.one_in(6) {
        data["partial"] = json!(true);
    }
    data
}

fn result(r: &mut Random, seq: usize, known: &[String]) -> Value {
    let id = if known.is_empty() || r.one_in(6) { id(r) } else { known[r.below(known.len() as u64) as usize].clone() };
    let content = match r.below(6) {
        0 => json!([{"type": "text", "text": text(r, seq, 0)}, media(r)]),
        1 => json!(""),
        2 => json!({"n": 1}),
        3 => Value::Null,
        _ => json!(format!("{} out", marker(seq, 0))),
    };
    let mut data = json!({"turn": 1, "id": id, "content": content});
    if r.one_in(4) {
        data["isError"] = json!(true);
    }
    if r.one_in(6) {
        data["synthetic"] = json!(true);
    }
    data
}

fn odd(r: &mut Random) -> Value {
    match r.below(5) {
        0 => json!([]),
        1 => json!({"parts": "x", "text": 5, "id": {}, "content": 7}),
        2 => {
            json!({"parts": [null, 1, [], {"type": 7}, {"type": "tool-call"}, {"type": "tool-result"}, {"type": "image"}]})
        }
        3 => json!({"uptoSeq": "x", "summary": null}),
        _ => json!({}),
    }
}

/// Makes a log of about `len` events.
pub fn log(seed: u64, len: usize) -> List {
    let r = &mut Random(seed);
    let mut log = List::default();
    let mut known: Vec<String> = Vec::new();
    while log.0.len() < len {
        let seq = log.0.len();
        match r.below(40) {
            0..=7 => log.push(
                "user/message",
                match r.below(3) {
                    0 => json!({"parts": parts(r, seq)}),
                    _ => json!({"text": text(r, seq, 0)}),
                },
            ),
            8..=17 => {
                let data = assistant(r, seq);
                let ids = data["parts"].as_array().into_iter().flatten().filter(|p| p["type"] == "tool-call");
                known =
                    ids.filter_map(|p| p["id"].as_str().map(str::to_owned)).chain(known.into_iter().take(3)).collect();
                log.push("assistant/message", data)
            }
            18..=26 => {
                let data = result(r, seq, &known);
                log.push("tool/result", data)
            }
            27 => log.push("context/message", json!({"text": text(r, seq, 0), "source": "a\"<b>"})),
            28 => log.push("context/injected", json!({"text": text(r, seq, 0)})),
            29 => log.push("steering/message", json!({"text": text(r, seq, 0)})),
            30 if !known.is_empty() => log.push("tool/call", json!({"id": known[0], "name": "n", "args": {}})),
            31 if !known.is_empty() => {
                let verdict = r.pick(&["approved", "denied"]);
                log.push("approval/resolved", json!({"callId": known[0], "verdict": verdict, "reason": "no"}))
            }
            32 => {
                log.push("session/compacted", json!({"summary": text(r, seq, 0), "uptoSeq": r.below(seq as u64 + 2)}))
            }
            33 => log.push("session/rewound", json!({"uptoSeq": r.below(seq as u64 + 2) as i64 - 1})),
            34 => {
                let kind = r.pick(&[
                    "user/message",
                    "assistant/message",
                    "tool/result",
                    "session/rewound",
                    "session/compacted",
                ]);
                log.push(kind, odd(r))
            }
            35 => log.push("assistant/chunk", json!({"turn": 1, "step": 1, "kind": "text", "text": "chunk"})),
            36 => log.push("turn/end", json!({"turn": 1, "reason": {"kind": "aborted"}})),
            37 => log.push("session/forked", json!({"from": "s", "boundary": 3})),
            38 => log.push("usage", json!({"turn": 1, "step": 1, "usage": {"apiShape": "openai.chat", "raw": {}}})),
            _ => log.push("my/own", json!({"text": "custom"})),
        };
    }
    log
}
