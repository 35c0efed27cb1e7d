//! Every format beside files in its own shape, and every format beside every other.

use super::*;

const CLAUDE: &str = r#"{"type":"summary","summary":"Greeting","leafUuid":"u4"}
{"type":"file-history-snapshot","messageId":"x","snapshot":{}}
{"parentUuid":null,"isSidechain":false,"cwd":"/home/a","sessionId":"s-1","type":"user","message":{"role":"user","content":"old wording"},"uuid":"u0","timestamp":"2026-01-02T03:04:05.678Z"}
{"parentUuid":null,"isSidechain":false,"cwd":"/home/a","sessionId":"s-1","type":"user","message":{"role":"user","content":"list files"},"uuid":"u1","timestamp":"2026-01-02T03:04:06.000Z"}
{"parentUuid":"u1","isSidechain":false,"type":"assistant","message":{"id":"msg_1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"}],"usage":{"input_tokens":3,"output_tokens":1}},"uuid":"u2"}
{"parentUuid":"u2","isSidechain":false,"type":"assistant","message":{"id":"msg_1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"n":1.50}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":9}},"uuid":"u3"}
{"parentUuid":"u3","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"a.txt"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}],"is_error":true}]},"uuid":"u4"}
{"parentUuid":"u9","isSidechain":true,"type":"user","message":{"role":"user","content":"sub-agent"},"uuid":"u10"}
not json
{"parentUuid":"u4","isSidechain":false,"type":"assistant","message":{"id":"msg_2","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"One file."}],"stop_reason":"end_turn"},"uuid":"u5"}
"#;

fn kinds(import: &Import) -> Vec<&str> {
    import.events.iter().map(|event| event.kind).collect()
}

fn data(import: &Import, at: usize) -> String {
    import.events[at].data.to_text()
}

#[test]
fn claude_code_merges_the_lines_of_an_answer_and_follows_the_last_branch() {
    let import = claude_code::read(CLAUDE).unwrap();
    let expected = ["session/titled", "user/message", "assistant/message", "usage", "tool/result", "assistant/message"];
    assert_eq!(kinds(&import), expected);
    assert_eq!(import.head.to_text(), r#"{"id":"s-1","cwd":"/home/a","createdAt":"2026-01-02T03:04:06.000Z"}"#);
    assert_eq!(
        data(&import, 2),
        r#"{"parts":[{"type":"reasoning","text":"hm","signature":"c2ln"},{"type":"tool-call","id":"toolu_1","name":"Bash","args":{"n":1.50}}],"provider":"anthropic","api":"anthropic.messages","model":"claude-sonnet-4-5","responseId":"msg_1","stopReason":"tool_use"}"#
    );
    assert_eq!(
        data(&import, 3),
        r#"{"turn":0,"step":1,"usage":{"apiShape":"anthropic.messages","raw":{"input_tokens":3,"output_tokens":9},"provider":"anthropic","model":"claude-sonnet-4-5","responseId":"msg_1"}}"#
    );
    assert_eq!(
        data(&import, 4),
        r#"{"id":"toolu_1","content":[{"type":"text","text":"a.txt"},{"type":"image","mediaType":"image/png","data":"iVBORw0KGgo="}],"isError":true}"#
    );
    assert_eq!(
        import.lost,
        [
            "line 9 is not a JSON object (8 bytes)",
            "line 2 is of type \"file-history-snapshot\"",
            "line 3 stands on a branch that was left",
            "line 8 belongs to a sub-agent",
        ]
    );
}

#[test]
fn claude_code_compactions_stand_for_what_came_before_them() {
    let text = r#"{"parentUuid":null,"type":"user","message":{"content":"one"},"uuid":"a"}
{"parentUuid":"a","type":"assistant","message":{"id":"m","content":[{"type":"text","text":"1"}]},"uuid":"b"}
{"parentUuid":null,"logicalParentUuid":"b","type":"system","subtype":"compact_boundary","uuid":"c"}
{"parentUuid":"c","type":"user","isCompactSummary":true,"message":{"content":"so far: one"},"uuid":"d"}
{"parentUuid":"d","type":"user","message":{"content":"two"},"uuid":"e"}
"#;
    let import = claude_code::read(text).unwrap();
    assert_eq!(kinds(&import), ["user/message", "assistant/message", "session/compacted", "user/message"]);
    assert_eq!(data(&import, 2), r#"{"summary":"so far: one","uptoSeq":1}"#);
}

const CODEX: &str = r#"{"timestamp":"2025-10-29T00:59:38.317Z","type":"session_meta","payload":{"id":"019a","timestamp":"2025-10-29T00:59:38.308Z","cwd":"/w","instructions":null}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"what is in it?"}]}}
{"timestamp":"t","type":"event_msg","payload":{"type":"user_message","message":"what is in it?"}}
{"timestamp":"t","type":"turn_context","payload":{"model":"gpt-5-codex"}}
{"timestamp":"t","type":"response_item","payload":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Look"}],"content":null,"encrypted_content":"gAAA"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"}}
{"timestamp":"t","type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":100,"cached_input_tokens":40,"output_tokens":7,"reasoning_output_tokens":5,"total_tokens":107}}}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":{"content":"no such file","success":false}}}
{"timestamp":"t","type":"response_item","payload":{"type":"web_search_call","status":"completed"}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Nothing."}]}}
"#;

#[test]
fn codex_items_become_answers_results_and_counts() {
    let import = codex::read(CODEX).unwrap();
    let expected =
        ["context/injected", "user/message", "assistant/message", "usage", "tool/result", "assistant/message"];
    assert_eq!(kinds(&import), expected);
    assert_eq!(
        data(&import, 2),
        r#"{"parts":[{"type":"reasoning","text":"Look","itemId":"rs_1","encrypted":"gAAA"},{"type":"tool-call","id":"call_1","name":"shell","args":{"command":["ls"]}}],"provider":"openai","api":"openai.responses","model":"gpt-5-codex"}"#
    );
    assert_eq!(
        data(&import, 3),
        r#"{"turn":0,"step":1,"usage":{"apiShape":"openai.responses","raw":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":107},"provider":"openai","model":"gpt-5-codex"}}"#
    );
    assert_eq!(data(&import, 4), r#"{"id":"call_1","content":"no such file","isError":true}"#);
    assert_eq!(import.lost, ["line 10 holds \"web_search_call\""]);
    assert_eq!(import.head.to_text(), r#"{"id":"019a","cwd":"/w","createdAt":"2025-10-29T00:59:38.308Z"}"#);
}

#[test]
fn codex_files_of_the_first_form_have_their_items_bare() {
    let text = r#"{"id":"old","timestamp":"2025-05-01T00:00:00Z","instructions":null}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}
{"type":"local_shell_call","id":"l1","call_id":null,"action":{"type":"exec","command":["ls"]}}
{"type":"custom_tool_call","call_id":"p1","name":"apply_patch","input":"*** Begin Patch"}
"#;
    let import = codex::read(text).unwrap();
    assert_eq!(kinds(&import), ["user/message", "assistant/message"]);
    assert_eq!(
        data(&import, 1),
        r#"{"parts":[{"type":"tool-call","id":"l1","name":"local_shell","args":{"type":"exec","command":["ls"]}},{"type":"tool-call","id":"p1","name":"apply_patch","args":{"input":"*** Begin Patch"}}],"provider":"openai","api":"openai.responses"}"#
    );
    assert_eq!(import.lost, Vec::<String>::new());
}

const PI: &str = r#"{"type":"session","version":3,"id":"p-1","timestamp":"2026-02-05T12:00:00.000Z","cwd":"/w"}
{"type":"model_change","id":"0","parentId":null,"provider":"anthropic","modelId":"claude"}
{"type":"message","id":"1","parentId":"0","message":{"role":"user","content":"first","timestamp":1}}
{"type":"message","id":"2","parentId":"1","message":{"role":"user","content":"left","timestamp":1}}
{"type":"message","id":"3","parentId":"1","message":{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s"},{"type":"toolCall","id":"c","name":"read","arguments":{"path":"x"},"thoughtSignature":"g"}],"api":"anthropic-messages","provider":"anthropic","model":"claude-sonnet-4-5","usage":{"input":10,"output":2,"cacheRead":5,"cacheWrite":1,"totalTokens":18},"stopReason":"toolUse","timestamp":2}}
{"type":"message","id":"4","parentId":"3","message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"ok"}],"isError":false}}
{"type":"compaction","id":"5","parentId":"4","summary":"read x","firstKeptEntryId":"4","tokensBefore":9}
{"type":"session_info","id":"6","parentId":"5","name":"Reading"}
"#;

#[test]
fn pi_follows_its_last_branch_and_keeps_what_its_compaction_kept() {
    let import = pi::read(PI).unwrap();
    let expected = ["user/message", "assistant/message", "usage", "tool/result", "session/compacted", "session/titled"];
    assert_eq!(kinds(&import), expected);
    assert_eq!(
        data(&import, 1),
        r#"{"parts":[{"type":"reasoning","text":"t","signature":"s"},{"type":"tool-call","id":"c","name":"read","args":{"path":"x"},"thoughtSignature":"g"}],"provider":"anthropic","api":"anthropic-messages","model":"claude-sonnet-4-5","stopReason":"toolUse"}"#
    );
    assert_eq!(
        data(&import, 2),
        r#"{"turn":0,"step":1,"usage":{"apiShape":"anthropic.messages","raw":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":1,"output_tokens":2},"provider":"anthropic","model":"claude-sonnet-4-5"}}"#
    );
    // Event 3 is the first that was kept.
    assert_eq!(data(&import, 4), r#"{"summary":"read x","uptoSeq":2}"#);
    assert_eq!(import.lost, ["line 4 stands on a branch that was left"]);
}

#[test]
fn ui_messages_have_their_steps_taken_apart() {
    let text = r#"[{"id":"a","role":"user","parts":[{"type":"text","text":"hi"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}]},
{"id":"b","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"r","providerMetadata":{"anthropic":{"signature":"sig"}}},{"type":"tool-weather","toolCallId":"c1","state":"output-available","input":{"at":"x"},"output":{"t":1.50}},{"type":"dynamic-tool","toolName":"dyn","toolCallId":"c2","state":"output-error","input":{},"errorText":"boom"},{"type":"step-start"},{"type":"text","text":"done","state":"done"},{"type":"data-chart","data":1}]},
{"id":"c","role":"assistant","content":"old","toolInvocations":[{"state":"result","toolCallId":"c3","toolName":"f","args":{},"result":"r"}]},
{"role":"critic"}]"#;
    let import = ui_messages::read(text).unwrap();
    let expected = [
        "user/message",
        "assistant/message",
        "tool/result",
        "tool/result",
        "assistant/message",
        "assistant/message",
        "tool/result",
        "assistant/message",
    ];
    assert_eq!(kinds(&import), expected);
    assert_eq!(data(&import, 2), r#"{"id":"c1","content":"{\"t\":1.50}"}"#);
    assert_eq!(data(&import, 3), r#"{"id":"c2","content":"boom","isError":true}"#);
    assert_eq!(import.lost, ["message 1 holds \"data-chart\"", "message 3 has no role that is known"]);
}

/// What a conversation says, whoever writes it down.
fn said(import: &Import) -> String {
    let log = testing::log(&import.events);
    let Value::Array(messages) = json::parse(&crate::core::derive::messages(&log, None), Surrogates::Refuse).unwrap()
    else {
        panic!("a list")
    };
    let mut out = String::new();
    for message in &messages {
        out.push_str(text_at(message, &["role"]));
        for part in message.get("parts").and_then(Value::as_array).unwrap_or_default() {
            out.push('|');
            match text_at(part, &["type"]) {
                "tool-call" => out.push_str(&format!("{}({})", text_at(part, &["name"]), parts::args_text(part))),
                "tool-result" => out.push_str(&format!("={}", parts::plain(part.get("content")))),
                "reasoning" => out.push('~'),
                _ => out.push_str(text_at(part, &["text"])),
            }
        }
        out.push('\n');
    }
    out
}

#[test]
fn a_conversation_survives_every_format() {
    let text = r#"[{"role":"user","content":"hi \"there\"\n"},{"role":"assistant","content":"let me look","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"n\":1.50}"}},{"id":"c2","type":"function","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":"two"},{"role":"assistant","content":"done \u00e9\ud83d\ude00"},{"role":"user","content":"thanks"}]"#;
    let first = chat_messages::read_file(text).unwrap();
    let expected = said(&first);
    assert_eq!(expected.lines().count(), 7, "{expected}");
    let record = r#"{"metadata_version":3,"id":"s1","mode":"chat","model_name":"m","working_directory":"/","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}"#;
    for from in &FORMATS {
        let log = testing::log(&first.events);
        let out = |log: &testing::Log, format: &Format| {
            let session = Outgoing { id: "s1", created_at: 0, cwd: Some("/w"), title: None, record, log };
            let export = (format.write)(&session).unwrap();
            assert_eq!(export.lost, Vec::<String>::new(), "{}", format.name);
            let import = (format.read)(&export.text).unwrap();
            assert_eq!(import.lost, Vec::<String>::new(), "{}", format.name);
            assert_eq!(said(&import), expected, "{}", format.name);
            import
        };
        let second = out(&log, from);
        for to in &FORMATS {
            out(&testing::log(&second.events), to);
        }
    }
}

#[test]
fn what_was_rewound_is_not_exported() {
    let mut import = Import::default();
    for text in ["one", "two"] {
        import.push("user/message", Object::from([("text", Value::from(text))]));
    }
    import.push("session/rewound", Object::from([("uptoSeq", Value::from(0))]));
    let log = testing::log(&import.events);
    let session = Outgoing { id: "s", created_at: 0, cwd: None, title: Some("T"), record: "{}", log: &log };
    for format in FORMATS.iter().filter(|format| format.name != "samagotchi") {
        let export = (format.write)(&session).unwrap();
        assert!(export.text.contains("one") && !export.text.contains("two"), "{}", format.name);
    }
}

#[test]
fn a_summary_stays_a_summary() {
    let mut import = Import::default();
    import.push("user/message", Object::from([("text", Value::from("one"))]));
    import.compacted("so far", 1);
    import.push("user/message", Object::from([("text", Value::from("two"))]));
    let log = testing::log(&import.events);
    let session = Outgoing { id: "s", created_at: 0, cwd: None, title: None, record: "{}", log: &log };
    for write in [claude_code::write, codex::write, pi::write] {
        let text = write(&session).unwrap().text;
        assert!(text.contains("so far") && text.contains("two") && !text.contains("one"), "{text}");
    }
}

#[test]
fn what_is_of_another_format_is_refused_not_empty() {
    for format in &FORMATS {
        for bad in ["", "5", "nonsense", "[1,2]", "{\"a\":1}", "{", "\u{0}\u{0}"] {
            match (format.read)(bad) {
                Ok(import) => assert!(bad.is_empty() && import.events.is_empty(), "{} {bad:?}", format.name),
                Err(error) => assert!(matches!(error.code(), "corrupt" | "not_json"), "{} {bad:?}", format.name),
            }
        }
    }
    // Deep and hostile trees end.
    let looped = r#"{"type":"user","uuid":"a","parentUuid":"b","message":{"content":"x"}}
{"type":"user","uuid":"b","parentUuid":"a","message":{"content":"y"}}"#;
    assert_eq!(claude_code::read(looped).unwrap().events.len(), 2);
}
