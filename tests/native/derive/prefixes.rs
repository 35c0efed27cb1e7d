//! Every prefix of many logs, for every target.

use serde_json::{Value, json};
use sessionlog::core::derive::{Deriver, EventSource, NoBlobs, Repair, RequestOptions, TARGETS, messages};
use sessionlog::core::json::{Surrogates, parse};

use super::{List, generate, options};

const LOGS: u64 = 420;
const EVENTS: usize = 50;

/// One caller of one target, who keeps what was sent before.
struct Caller {
    options: RequestOptions,
    cache: u64,
    sent: Vec<String>,
    repairs: Vec<Repair>,
}

/// What one more derivation brought.
struct Step {
    digest: String,
    /// The cache went on from what it knew.
    continued: bool,
    /// Nothing at all is said differently.
    same: bool,
}

impl Caller {
    fn new(given: Value) -> Caller {
        Caller { options: options(given), cache: 0, sent: vec![], repairs: vec![] }
    }

    /// Derives the request; what the cache keeps is what was sent.
    fn derive(&mut self, deriver: &mut Deriver, log: &dyn EventSource) -> Step {
        let update = deriver.request(log, &self.options, &NoBlobs);
        let continued = update.cache == self.cache;
        if !continued {
            assert_eq!((update.keep, update.keep_repairs), (0, 0));
        }
        assert!(!update.repairs.iter().any(|r| r.code == "invalid_request"), "{:?}", update.repairs);
        let same = self.sent.get(update.keep..) == Some(&update.messages);
        self.cache = update.cache;
        self.sent.truncate(update.keep);
        self.sent.extend(update.messages);
        self.repairs.truncate(update.keep_repairs);
        self.repairs.extend(update.repairs);
        Step { digest: update.digest, continued, same }
    }

    fn judge(&self, what: &str) {
        let mut judge = self.options.target.validator();
        for message in &self.sent {
            let message = parse(message, Surrogates::Refuse).expect("JSON");
            let verdict = judge.message(&message);
            assert!(verdict.is_ok(), "{what}: {verdict:?} in {:#?}", self.sent);
        }
        let verdict = judge.end(self.options.prefill);
        assert!(verdict.is_ok(), "{what}: {verdict:?} in {:#?}", self.sent);
    }
}

/// One caller per target; as many sessions' states as are needed for each to remember all that is asked of it.
fn callers(seed: u64) -> Vec<(Deriver, Vec<Caller>)> {
    let each = TARGETS.iter().enumerate().map(|(i, target)| {
        let mut given = json!({"target": target.name, "system": "be good"});
        match (seed + i as u64) % 6 {
            1 => given["prefill"] = json!(true),
            2 => given["reasoning"] = json!("drop"),
            3 => given["toolCallId"] = json!({"pattern": "^[A-Za-z0-9]{9}$"}),
            4 => given["media"] = json!({"maxCount": 2}),
            5 => {
                given["provider"] = json!("anthropic");
                given["model"] = json!("c");
            }
            _ => {}
        }
        Caller::new(given)
    });
    let mut first: Vec<Caller> = each.collect();
    let second = first.split_off(3);
    vec![(Deriver::new(), first), (Deriver::new(), second)]
}

/// In two halves, as there are two threads to run them.
#[test]
fn every_prefix_derives_to_what_its_target_takes() {
    assert!(walk(0..LOGS / 2) >= 10_000);
}

#[test]
fn every_prefix_derives_to_what_its_target_takes_second_half() {
    assert!(walk(LOGS / 2..LOGS) >= 10_000);
}

fn walk(seeds: std::ops::Range<u64>) -> usize {
    let mut prefixes = 0;
    for seed in seeds {
        let log = generate::log(seed, EVENTS);
        let mut sessions = callers(seed);
        for len in 0..=log.0.len() {
            let prefix = log.prefix(len);
            prefixes += 1;
            for (deriver, callers) in &mut sessions {
                for caller in callers {
                    let step = caller.derive(deriver, &prefix);
                    let what = || format!("seed {seed}, prefix {len}, {}", caller.options.target.name);
                    check_stable(&log, len, &step, caller, what);
                    // The judge has seen every message as it came; looking at all of them again is for a sample.
                    if (len as u64 + seed).is_multiple_of(13) {
                        check_anew(&prefix, &step, caller, &what());
                    }
                }
            }
        }
    }
    prefixes
}

/// What was built event by event is what is built at once, and says all that was said.
fn check_anew(prefix: &dyn EventSource, step: &Step, caller: &Caller, what: &str) {
    let fresh = Deriver::new().request(prefix, &caller.options, &NoBlobs);
    caller.judge(what);
    assert_eq!(fresh.messages, caller.sent, "{what}: anew");
    assert_eq!(fresh.digest, step.digest, "{what}: digest");
    assert_eq!(fresh.repairs, caller.repairs, "{what}: repairs");
    check_said(prefix, caller, what);
}

/// What was closed stays as it was, save for overlays, results that come late, and media that give way.
fn check_stable(log: &List, len: usize, step: &Step, caller: &Caller, what: impl Fn() -> String) {
    let Some((kind, data)) = len.checked_sub(1).and_then(|at| log.0.get(at)) else { return };
    let may_change = ["session/rewound", "session/compacted", "tool/result", "tool/call", "approval/resolved"];
    let media = caller.options.media.max_count < 10 && data.contains("mediaType");
    if !may_change.contains(&kind.as_str()) && !media {
        assert!(step.continued, "{}: {kind} changed what was closed", what());
    }
    // An event that makes no message changes nothing at all.
    if ["assistant/chunk", "turn/end", "usage", "my/own", "session/forked"].contains(&kind.as_str()) {
        assert!(step.continued && step.same, "{}: {kind}", what());
    }
}

/// The repairs that leave something out; those that only rename or move are no excuse.
const LOSSES: [&str; 6] = [
    "orphan_result",
    "duplicate_result",
    "duplicate_call",
    "reasoning_dropped",
    "unsigned_reasoning",
    "unreadable_part",
];

/// Every word that the projection shows is in the request, or a repair of its event says why not.
fn check_said(prefix: &dyn EventSource, caller: &Caller, what: &str) {
    let request = caller.sent.concat();
    let shown: Value = serde_json::from_str(&messages(prefix, None)).expect("JSON");
    for message in shown.as_array().expect("a list") {
        let seq = message["sources"][0].as_u64().expect("a source");
        let text = message.to_string();
        for word in
            text.split("<m").skip(1).filter_map(|rest| rest.split_once('>')).map(|(word, _)| format!("<m{word}>"))
        {
            let told = caller.repairs.iter().any(|r| r.seq == Some(seq) && LOSSES.contains(&r.code));
            let found = request.contains(&word) || request.contains(&word.replace('<', "&lt;"));
            assert!(found || told, "{what}: {word} is lost from {message}");
        }
    }
}

#[test]
fn equal_logs_give_equal_requests_and_any_change_another_digest() {
    let log = generate::log(7, 60);
    let given = options(json!({"target": "anthropic"}));
    let digest = |log: &List| Deriver::new().request(log, &given, &NoBlobs).digest;
    assert_eq!(digest(&log), digest(&log.clone()));
    let mut longer = log.clone();
    longer.push("user/message", json!({"text": "more"}));
    assert_ne!(digest(&log), digest(&longer));
    assert_eq!(digest(&log).len(), 64);
}

#[test]
fn the_newest_messages_alone_are_valid_too() {
    for seed in 0..40 {
        let log = generate::log(seed, 40);
        for target in TARGETS {
            for most in [1, 3, 9] {
                let mut caller = Caller::new(json!({"target": target.name, "maxMessages": most}));
                caller.derive(&mut Deriver::new(), &log);
                caller.judge(&format!("seed {seed}, {most} of {}", target.name));
            }
        }
    }
}

/// Writes generated logs and their requests where the judges in JavaScript find them; run by name.
#[test]
#[ignore = "writes a file for other tests"]
fn write_samples() {
    let Ok(path) = std::env::var("DERIVE_SAMPLES") else { return };
    let mut out: Vec<Value> = Vec::new();
    for seed in 0..60 {
        let log = generate::log(seed, EVENTS);
        for len in (0..=EVENTS).step_by(5) {
            for target in TARGETS {
                let request = super::request(&log.prefix(len), json!({"target": target.name, "system": "be good"}));
                let messages: Vec<Value> =
                    request.messages.iter().map(|m| serde_json::from_str(m).expect("JSON")).collect();
                out.push(json!({"target": target.name, "seed": seed, "len": len, "messages": messages, "digest": request.digest,
                    "system": request.system.map(|s| serde_json::from_str::<Value>(&s).expect("JSON"))}));
            }
        }
    }
    std::fs::write(path, Value::from(out).to_string()).expect("a file");
}
