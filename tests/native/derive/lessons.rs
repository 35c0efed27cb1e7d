//! Faults that people reported of other software, and the rules of this one.

use serde_json::{Value, json};
use sessionlog::core::derive::{Deriver, NoBlobs, TARGETS, check_messages, check_request, messages as derive_messages};

use super::{List, codes, options, request, sent};

fn call(id: &str, args: Value) -> Value {
    json!({"type": "tool-call", "id": id, "name": "edit", "args": args})
}

fn user(log: &mut List, text: &str) {
    log.push("user/message", json!({"text": text}));
}

fn assistant(log: &mut List, parts: Value) {
    log.push("assistant/message", json!({"parts": parts}));
}

fn result(log: &mut List, id: &str, content: &str) {
    log.push("tool/result", json!({"id": id, "content": content}));
}

fn roles(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap_or("")).collect()
}

#[test]
fn a01_open_calls_are_answered_in_the_next_message() {
    let mut log = List::default();
    user(&mut log, "go");
    assistant(&mut log, json!([call("t1", json!({})), call("t2", json!({}))]));
    result(&mut log, "t1", "ok");
    log.push("turn/end", json!({"turn": 1, "reason": {"kind": "interrupted"}}));
    user(&mut log, "next");
    let anthropic = sent(&log, json!({"target": "anthropic"}));
    assert_eq!(roles(&anthropic), ["user", "assistant", "user"]);
    let blocks = anthropic[2]["content"].as_array().unwrap();
    assert_eq!((&blocks[0]["tool_use_id"], &blocks[0]["content"]), (&json!("t1"), &json!("ok")));
    assert_eq!((&blocks[1]["tool_use_id"], &blocks[1]["is_error"]), (&json!("t2"), &json!(true)));
    assert!(blocks[1]["content"].as_str().unwrap().to_lowercase().contains("interrupted"));
    assert_eq!(blocks[2], json!({"type": "text", "text": "next"}));
    let openai = sent(&log, json!({"target": "openai-chat"}));
    assert_eq!(roles(&openai), ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!((&openai[2]["tool_call_id"], &openai[3]["tool_call_id"]), (&json!("t1"), &json!("t2")));
    assert_eq!(request(&log, json!({"target": "anthropic"})), request(&log, json!({"target": "anthropic"})));
}

#[test]
fn three_reasons_are_given_and_a_real_result_replaces_each() {
    let mut log = List::default();
    user(&mut log, "go");
    assistant(&mut log, json!([call("a", json!({})), call("b", json!({})), call("c", json!({}))]));
    log.push("approval/resolved", json!({"callId": "a", "verdict": "denied", "reason": "not now"}));
    log.push("tool/call", json!({"id": "b", "name": "edit", "args": {}}));
    let text = |log: &List, n: usize| {
        sent(log, json!({"target": "anthropic"}))[2]["content"][n]["content"].as_str().unwrap().to_owned()
    };
    assert!(text(&log, 0).contains("did not allow") && text(&log, 0).contains("not now"));
    assert!(text(&log, 1).contains("outcome is unknown") && !text(&log, 1).contains("not executed"));
    assert!(text(&log, 2).contains("never started"));
    // A stored closer, then the conversation goes on, then the real result.
    log.push("tool/result", json!({"id": "b", "content": "closed", "isError": true, "synthetic": true}));
    user(&mut log, "next");
    assistant(&mut log, json!([{"type": "text", "text": "x"}]));
    user(&mut log, "more");
    assert_eq!(text(&log, 1), "closed");
    result(&mut log, "b", "late but real");
    result(&mut log, "c", "late too");
    assert_eq!((text(&log, 1).as_str(), text(&log, 2).as_str()), ("late but real", "late too"));
    result(&mut log, "b", "again");
    assert_eq!(text(&log, 1), "late but real");
    assert!(codes(&log, json!({"target": "anthropic"})).contains(&"duplicate_result"));
    let sdk = sent(&log, json!({"target": "ai-sdk"}));
    assert_eq!(sdk[2]["content"][0]["output"]["type"], "execution-denied");
}

#[test]
fn a03_a_result_without_its_call_is_never_sent() {
    let mut log = List::default();
    user(&mut log, "a");
    assistant(&mut log, json!([{"type": "text", "text": "done"}]));
    result(&mut log, "gone", "x");
    user(&mut log, "hi");
    for target in TARGETS {
        let given = json!({"target": target.name});
        assert!(!sent(&log, given.clone()).to_string().contains("gone"));
        assert!(sent(&log, given.clone()).to_string().contains("hi"));
        assert_eq!(codes(&log, given), ["orphan_result"], "{}", target.name);
    }
}

#[test]
fn a05_repeated_ids_are_renamed_for_call_and_result_alike() {
    let mut log = List::default();
    user(&mut log, "go");
    assistant(
        &mut log,
        json!([call("edit:22", json!({"n": 1})), call("edit:22", json!({"n": 2})), call("edit:22", json!({"n": 2}))]),
    );
    result(&mut log, "edit:22", "r1");
    result(&mut log, "edit:22", "r2");
    let early = sent(&log, json!({"target": "openai-chat"}));
    user(&mut log, "again");
    assistant(&mut log, json!([call("edit:22", json!({"n": 1}))]));
    result(&mut log, "edit:22", "r3");
    let chat = sent(&log, json!({"target": "openai-chat"}));
    let calls: Vec<&Value> =
        chat.as_array().unwrap().iter().flat_map(|m| m["tool_calls"].as_array().into_iter().flatten()).collect();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0]["id"], "edit:22");
    let answers: Vec<(String, &str)> = calls
        .iter()
        .map(|c| {
            let answer = chat.as_array().unwrap().iter().find(|m| m["tool_call_id"] == c["id"]).unwrap();
            (c["function"]["arguments"].as_str().unwrap().to_owned(), answer["content"].as_str().unwrap())
        })
        .collect();
    assert_eq!(answers, [(r#"{"n":1}"#.into(), "r1"), (r#"{"n":2}"#.into(), "r2"), (r#"{"n":1}"#.into(), "r3")]);
    assert_eq!(early.as_array().unwrap()[..], chat.as_array().unwrap()[..early.as_array().unwrap().len()]);
}

#[test]
fn a07_nothing_blank_leaves_derivation() {
    let mut log = List::default();
    user(&mut log, "go");
    assistant(&mut log, json!([{"type": "text", "text": ""}, call("t1", json!({}))]));
    result(&mut log, "t1", "");
    user(&mut log, " \n");
    for target in TARGETS {
        assert_eq!(request(&log, json!({"target": target.name, "system": ""})).system, None);
    }
    let chat = sent(&log, json!({"target": "openai-chat", "system": " "}));
    assert_eq!(roles(&chat), ["user", "assistant", "tool"]);
    assert_eq!((&chat[1]["content"], &chat[2]["content"]), (&Value::Null, &json!("(no output)")));
    let anthropic = sent(&log, json!({"target": "anthropic"}));
    assert_eq!(anthropic[1]["content"], json!([{"type": "tool_use", "id": "t1", "name": "edit", "input": {}}]));
    assert_eq!(
        anthropic[2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "t1", "content": "(no output)"}])
    );
}

#[test]
fn a09_neighbours_of_one_role_become_one_turn() {
    let mut log = List::default();
    user(&mut log, "a");
    user(&mut log, "b");
    assistant(&mut log, json!([{"type": "reasoning", "text": "hm", "signature": "Zm9v"}]));
    assistant(&mut log, json!([call("t1", json!({}))]));
    result(&mut log, "t1", "r");
    user(&mut log, "c");
    let anthropic = sent(&log, json!({"target": "anthropic", "system": "sys"}));
    assert_eq!(
        anthropic,
        json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "Zm9v"},
                {"type": "tool_use", "id": "t1", "name": "edit", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}, {"type": "text", "text": "c"}]},
        ])
    );
    assert_eq!(roles(&sent(&log, json!({"target": "openai-chat"}))), ["user", "assistant", "tool", "user"]);
    assert_eq!(roles(&sent(&log, json!({"target": "gemini"}))), ["user", "model", "user"]);
    assert_eq!(roles(&sent(&log, json!({"target": "ai-sdk"}))), ["user", "assistant", "tool", "user"]);
}

#[test]
fn a11_thinking_goes_back_byte_for_byte_or_not_at_all() {
    let mut log = List::default();
    user(&mut log, "go");
    log.push("assistant/message", json!({"provider": "anthropic", "api": "anthropic.messages", "model": "claude-x", "parts": [
        {"type": "reasoning", "text": "ab", "signature": "Zm9-_x=="}, {"type": "reasoning", "text": "", "redacted": "QQ=="}, call("t1", json!({}))]}));
    result(&mut log, "t1", "r");
    log.push("assistant/message", json!({"provider": "anthropic", "model": "claude-x", "partial": true, "parts": [{"type": "reasoning", "text": "c"}]}));
    user(&mut log, "next");
    let same = json!({"target": "anthropic", "provider": "anthropic", "model": "claude-x"});
    for given in [same.clone(), json!({"target": "anthropic"})] {
        assert_eq!(
            sent(&log, given)[1]["content"],
            json!([{"type": "thinking", "thinking": "ab", "signature": "Zm9-_x=="},
            {"type": "redacted_thinking", "data": "QQ=="}, {"type": "tool_use", "id": "t1", "name": "edit", "input": {}}])
        );
    }
    assert!(codes(&log, same).contains(&"unsigned_reasoning"));
    let others = [
        json!({"target": "anthropic", "provider": "anthropic", "model": "claude-y"}),
        json!({"target": "anthropic", "provider": "other", "model": "claude-x"}),
        json!({"target": "anthropic", "reasoning": "drop"}),
        json!({"target": "gemini"}),
        json!({"target": "openai-responses"}),
    ];
    for given in others {
        let text = sent(&log, given.clone()).to_string();
        assert!(!text.contains("Zm9-_x==") && !text.contains("QQ==") && !text.contains("\"ab\""), "{given}");
        assert!(codes(&log, given).contains(&"reasoning_dropped"));
    }
}

#[test]
fn reasoning_items_stand_and_fall_with_what_they_led_to() {
    let mut log = List::default();
    user(&mut log, "go");
    let mut call = call("t1", json!({}));
    call["itemId"] = json!("fc_1");
    log.push(
        "assistant/message",
        json!({"provider": "openai", "api": "openai.responses", "model": "g", "parts": [
        {"type": "reasoning", "text": "s", "itemId": "rs_1", "encrypted": "ZW5j"}, call]}),
    );
    result(&mut log, "t1", "r");
    let kept = sent(&log, json!({"target": "openai-responses", "provider": "openai", "model": "g"}));
    assert_eq!(
        kept[1],
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "ZW5j"})
    );
    assert_eq!(kept[2]["id"], "fc_1");
    let switched = sent(&log, json!({"target": "openai-responses", "provider": "openai", "model": "h"}));
    assert_eq!(switched[1], json!({"type": "function_call", "call_id": "t1", "name": "edit", "arguments": "{}"}));
}

#[test]
fn gemini_gets_signatures_on_the_parts_they_came_on() {
    let mut log = List::default();
    user(&mut log, "go");
    let mut signed = call("t1", json!({}));
    signed["thoughtSignature"] = json!("c2ln");
    log.push(
        "assistant/message",
        json!({"provider": "google", "model": "gemini-3", "parts": [
        {"type": "reasoning", "text": "summary"}, signed, call("t2", json!({"q": 1}))]}),
    );
    result(&mut log, "t1", "r");
    let same = sent(&log, json!({"target": "gemini", "provider": "google", "model": "gemini-3"}));
    assert_eq!(same[1]["parts"][0]["thoughtSignature"], "c2ln");
    assert!(same[1]["parts"][1].get("thoughtSignature").is_none());
    assert_eq!(same[2]["parts"][0]["functionResponse"]["response"], json!({"output": "r"}));
    let other = sent(&log, json!({"target": "gemini", "provider": "google", "model": "gemini-3.5"}));
    assert_eq!(other[1]["parts"][0]["thoughtSignature"], "skip_thought_signature_validator");
    let old = sent(&log, json!({"target": "gemini", "model": "gemini-2.5-pro"}));
    assert!(old[1]["parts"][0].get("thoughtSignature").is_none());
}

#[test]
fn the_ai_sdk_gets_opaque_fields_of_texts_calls_and_reasoning_under_their_provider() {
    let said = |provider: &str, parts: Value| {
        let mut log = List::default();
        user(&mut log, "go");
        log.push("assistant/message", json!({"provider": provider, "model": "m", "parts": parts}));
        log
    };
    let options = |log: &List, provider: &str| {
        let given = json!({"target": "ai-sdk", "provider": provider, "model": "m"});
        let parts = sent(log, given)[1]["content"].clone();
        parts.as_array().unwrap().iter().map(|p| p["providerOptions"].clone()).collect::<Vec<Value>>()
    };
    let google = said(
        "google",
        json!([{"type": "text", "text": "a", "thoughtSignature": "c2ln"}, {"type": "text", "text": "b"}]),
    );
    assert_eq!(options(&google, "google"), [json!({"google": {"thoughtSignature": "c2ln"}}), Value::Null]);
    assert_eq!(options(&google, "other"), [Value::Null, Value::Null]);
    let parts = json!([{"type": "reasoning", "text": "r", "itemId": "rs_1", "encrypted": "ZW5j"}, {"type": "text", "text": "a", "itemId": "msg_1"}]);
    let openai = said("openai", parts);
    let own = json!({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "ZW5j"}});
    assert_eq!(options(&openai, "openai"), [own, json!({"openai": {"itemId": "msg_1"}})]);
    // Without its reasoning the text is a plain one.
    let dropped = json!({"target": "ai-sdk", "provider": "openai", "model": "m", "reasoning": "drop"});
    assert_eq!(sent(&openai, dropped)[1]["content"], json!([{"type": "text", "text": "a"}]));
}

#[test]
fn a13_the_newest_messages_keep_whole_rounds() {
    let mut log = List::default();
    log.push("session/compacted", json!({"summary": "so far", "uptoSeq": -1}));
    user(&mut log, "u1");
    assistant(&mut log, json!([call("t1", json!({})), call("t2", json!({})), call("t3", json!({}))]));
    for id in ["t1", "t2", "t3"] {
        result(&mut log, id, id);
    }
    assistant(&mut log, json!([{"type": "text", "text": "a2"}]));
    user(&mut log, "u2");
    let chat = sent(&log, json!({"target": "openai-chat", "maxMessages": 3}));
    assert_eq!(roles(&chat), ["user", "assistant", "tool", "tool", "tool", "assistant", "user"]);
    assert_eq!(chat[0]["content"], "so far");
    assert_eq!(codes(&log, json!({"target": "openai-chat", "maxMessages": 3})), ["max_messages"]);
}

#[test]
fn a15_broken_text_becomes_well_formed() {
    let log = List(vec![
        ("user/message".into(), r#"{"text":"x\ud83dy \ud83d…"}"#.into()),
        ("assistant/message".into(), r#"{"parts":[{"type":"tool-call","id":"t","name":"n","args":{"\udc00":"\ud83d"},"rawArgs":"{\"a\":\"\\ud83d\"}"}]}"#.into()),
        ("tool/result".into(), r#"{"id":"t","content":"x\uD83Dy"}"#.into()),
    ]);
    for target in TARGETS {
        let messages = sent(&log, json!({"target": target.name}));
        assert!(messages.to_string().contains("x\u{fffd}y"), "{}", target.name);
    }
    let chat = sent(&log, json!({"target": "openai-chat"}));
    serde_json::from_str::<Value>(chat[1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap()).unwrap();
}

/// A PNG head of that size, padded.
fn png(width: u32, height: u32, bytes: usize) -> String {
    let mut data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    data.extend(width.to_be_bytes());
    data.extend(height.to_be_bytes());
    data.resize(bytes.max(33), 0);
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    data.truncate(data.len() / 3 * 3);
    let quad = |c: &[u8]| {
        let n = u32::from(c[0]) << 16 | u32::from(c[1]) << 8 | u32::from(c[2]);
        [18, 12, 6, 0].map(|s| LETTERS[(n >> s & 63) as usize] as char)
    };
    data.chunks(3).flat_map(quad).collect()
}

#[test]
fn a17_media_over_the_limits_become_notes_the_oldest_first() {
    let image = |data: &str| json!({"type": "image", "mediaType": "image/png", "data": data});
    let mut log = List::default();
    for n in 0..3 {
        log.push(
            "user/message",
            json!({"parts": [{"type": "text", "text": format!("image {n}")}, image(&png(10, 10, 40_000))]}),
        );
    }
    let given = json!({"target": "anthropic", "media": {"maxBytesTotal": 100_000, "maxSide": 8000}});
    let kinds = |log: &List| -> Vec<String> {
        let messages = sent(log, given.clone());
        let blocks = messages.as_array().unwrap().iter().flat_map(|m| m["content"].as_array().unwrap());
        blocks.map(|b| b["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&log), ["text", "text", "text", "image", "text", "image"]);
    log.push(
        "user/message",
        json!({"parts": [image(&png(2984, 8340, 100)), {"type": "image", "mediaType": "image/tiff", "data": "QUJD"}]}),
    );
    assert_eq!(kinds(&log), ["text", "text", "text", "image", "text", "image", "text", "text"]);
    user(&mut log, "only text");
    let messages = sent(&log, given.clone()).to_string();
    assert!(messages.contains("8340 pixels") && messages.contains("image/tiff") && messages.contains("only text"));
    assert!(messages.len() < 120_000);
    let codes = codes(&log, given);
    assert_eq!(codes.iter().filter(|c| **c == "media_omitted").count(), 3);
    // A count of none at all.
    let none = sent(&log, json!({"target": "ai-sdk", "media": {"maxCount": 0}}));
    assert!(!none.to_string().contains("\"file\""));
}

#[test]
fn media_in_results_go_where_the_target_has_a_place() {
    let mut log = List::default();
    user(&mut log, "go");
    assistant(&mut log, json!([call("t1", json!({}))]));
    log.push("tool/result", json!({"id": "t1", "content": [{"type": "text", "text": "shot"}, {"type": "image", "mediaType": "image/png", "data": png(1, 1, 40)}]}));
    let chat = sent(&log, json!({"target": "openai-chat"}));
    assert_eq!(roles(&chat), ["user", "assistant", "tool", "user"]);
    assert_eq!(chat[3]["content"][1]["type"], "image_url");
    let anthropic = sent(&log, json!({"target": "anthropic"}));
    assert_eq!(anthropic[2]["content"][0]["content"][1]["type"], "image");
    let gemini = sent(&log, json!({"target": "gemini"}));
    assert!(
        gemini[2]["parts"][0].get("functionResponse").is_some() && gemini[2]["parts"][2].get("inlineData").is_some()
    );
}

/// More than 20 images in one request: then none may be longer than 2,000 pixels, which a few may be.
#[test]
fn large_images_give_way_when_there_are_many() {
    let mut log = List::default();
    let image = |side: u32| json!({"parts": [{"type": "image", "mediaType": "image/png", "data": png(side, 10, 100)}]});
    for n in 0..20 {
        log.push("user/message", image(if n < 3 { 3_000 } else { 100 }));
    }
    let count = |log: &List, target: &str| {
        let codes = codes(log, json!({"target": target}));
        assert!(codes.iter().all(|code| *code == "media_omitted"));
        codes.len()
    };
    assert_eq!(count(&log, "anthropic"), 0);
    log.push("user/message", image(100));
    assert_eq!(count(&log, "anthropic"), 1, "the oldest is enough");
    for _ in 0..5 {
        log.push("user/message", image(100));
    }
    assert_eq!(count(&log, "anthropic"), 3);
    assert_eq!(count(&log, "gemini"), 0);
}

#[test]
fn arguments_that_cannot_be_read_are_not_executed() {
    let mut log = List::default();
    user(&mut log, "go");
    assistant(
        &mut log,
        json!([
            {"type": "tool-call", "id": "a", "name": "n", "args": ""},
            {"type": "tool-call", "id": "b", "name": "n", "args": [1]},
            {"type": "tool-call", "id": "c", "name": "n", "args": {}, "rawArgs": "{\"cut\":"},
            {"type": "tool-call", "id": "d", "name": "n", "args": {"x": 1.50}, "rawArgs": "{ \"x\": 1.50 }"},
        ]),
    );
    let chat = sent(&log, json!({"target": "openai-chat"}));
    let args: Vec<&Value> =
        chat[1]["tool_calls"].as_array().unwrap().iter().map(|c| &c["function"]["arguments"]).collect();
    assert_eq!(args, ["{}", "{}", "{}", "{ \"x\": 1.50 }"]);
    let anthropic = sent(&log, json!({"target": "anthropic"}));
    let texts: Vec<&str> =
        anthropic[2]["content"].as_array().unwrap().iter().map(|b| b["content"].as_str().unwrap()).collect();
    assert!(
        texts[0].contains("never started")
            && texts[1].contains("Invalid arguments")
            && texts[2].contains("Invalid arguments")
    );
    result(&mut log, "b", "it ran after all");
    assert!(sent(&log, json!({"target": "anthropic"})).to_string().contains("it ran after all"));
}

#[test]
fn requests_begin_and_end_as_the_target_wants() {
    let mut log = List::default();
    for target in TARGETS {
        assert_eq!(codes(&log, json!({"target": target.name})), ["user_last"], "an empty history is one short turn");
    }
    assistant(&mut log, json!([{"type": "text", "text": "hello \n"}]));
    assert_eq!(roles(&sent(&log, json!({"target": "anthropic"}))), ["user", "assistant", "user"]);
    assert_eq!(roles(&sent(&log, json!({"target": "openai-chat"}))), ["assistant", "user"]);
    let prefill = sent(&log, json!({"target": "anthropic", "prefill": true}));
    assert_eq!((roles(&prefill), &prefill[1]["content"][0]["text"]), (vec!["user", "assistant"], &json!("hello")));
    assert_eq!(roles(&sent(&log, json!({"target": "gemini", "prefill": true}))), ["user", "model", "user"]);
}

#[test]
fn calls_of_the_provider_are_no_calls_of_ours() {
    let mut log = List::default();
    user(&mut log, "go");
    assistant(
        &mut log,
        json!([
        {"type": "tool-call", "id": "s1", "name": "web_search", "args": {"q": "x"}, "providerExecuted": true},
        {"type": "tool-result", "id": "s1", "content": "found it"}, {"type": "text", "text": "so"}]),
    );
    user(&mut log, "ok");
    for target in ["anthropic", "openai-chat", "openai-responses", "gemini"] {
        let text = sent(&log, json!({"target": target})).to_string();
        assert!(
            !text.contains("tool_use")
                && !text.contains("tool_calls")
                && !text.contains("functionCall")
                && text.contains("found it")
        );
    }
    let sdk = sent(&log, json!({"target": "ai-sdk"}));
    assert_eq!(
        (&sdk[1]["content"][0]["providerExecuted"], &sdk[1]["content"][1]["type"]),
        (&json!(true), &json!("tool-result"))
    );
}

#[test]
fn options_are_checked() {
    let mut log = List::default();
    user(&mut log, "x");
    for bad in [
        json!({}),
        json!({"target": "openai"}),
        json!({"target": "gemini", "maxMessages": 0}),
        json!({"target": "gemini", "upto": -1}),
        json!({"target": "gemini", "reasoning": "some"}),
        json!({"target": "gemini", "toolCallId": {"pattern": "(a|b)"}}),
        json!({"target": "gemini", "media": {"maxCount": "3"}}),
        json!({"target": "gemini", "system": 5}),
        json!([]),
    ] {
        let error = sessionlog::core::derive::RequestOptions::parse(&bad.to_string()).unwrap_err();
        assert_eq!(error.code(), "invalid_argument", "{bad}");
    }
    let mistral = json!({"target": "openai-chat", "toolCallId": {"pattern": "^[A-Za-z0-9]{9}$"}});
    assistant(&mut log, json!([call("call_1", json!({})), call("abcdefgh1", json!({}))]));
    let chat = sent(&log, mistral);
    let id = chat[1]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()) && chat[2]["tool_call_id"] == id);
    assert_eq!(chat[1]["tool_calls"][1]["id"], "abcdefgh1");
}

#[test]
fn the_invariant_names_the_first_difference() {
    let mut log = List::default();
    user(&mut log, "a");
    assistant(&mut log, json!([call("t", json!({"n": 1.50, "2": 0}))]));
    result(&mut log, "t", "r");
    let given = options(json!({"target": "anthropic", "system": "s"}));
    let update = Deriver::new().request(&log, &given, &NoBlobs);
    let good: Value = serde_json::from_str(&update.to_text("anthropic")).unwrap();
    check_request(&log, &given, &good.to_string(), &NoBlobs).unwrap();
    let index = |change: fn(&mut Value)| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = check_request(&log, &given, &bad.to_string(), &NoBlobs).unwrap_err();
        assert_eq!(error.code(), "log_invariant");
        error.details().get("index").and_then(|i| i.as_i64()).unwrap()
    };
    assert_eq!(index(|r| r["messages"][1]["content"][0]["input"]["n"] = json!(2)), 1);
    assert_eq!(index(|r| r["messages"].as_array_mut().unwrap().push(json!({}))), 3);
    assert_eq!(index(|r| drop(r["messages"].as_array_mut().unwrap().pop())), 2);
    assert_eq!(index(|r| r["system"] = json!("t")), 0);
    let messages = derive_messages(&log, None);
    check_messages(&log, &messages).unwrap();
    assert_eq!(
        check_messages(&log, &messages.replace("\"r\"", "\"q\"")).unwrap_err().details().get("index").unwrap().as_i64(),
        Some(2)
    );
    check_messages(&log, "{}").unwrap_err();
}
