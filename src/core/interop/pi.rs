//! pi's session files: a header line, then entries that form a tree by `parentId`; the conversation is the branch of the last
//! entry. The first version of the format had neither ids nor branches.

use super::spoken::{Spoken, conversation};
use super::{Export, Import, Outgoing, branch, lines, parts, short, something, text_at};
use crate::core::error::Result;
use crate::core::json::{Object, Value};
use crate::core::time::iso;

/// Reads a session file.
pub fn read(text: &str) -> Result<Import> {
    let mut import = Import::default();
    let entries = lines(text, &mut import.lost);
    let on_branch = branch(&entries, place);
    let mut reader = Reader { import, steps: 0, starts: Vec::new() };
    for ((number, entry), on_branch) in entries.iter().zip(on_branch) {
        let kind = text_at(entry, &["type"]);
        if kind == "session" {
            reader.about(entry);
        } else if !on_branch {
            reader.lose(*number, "stands on a branch that was left");
        } else {
            reader.starts.push((text_at(entry, &["id"]).to_owned(), reader.import.events.len()));
            reader.entry(*number, kind, entry);
        }
    }
    something(reader.import)
}

/// An entry's id and its parent's; without ids every entry follows the one before it.
fn place(entry: &Value) -> Option<(&str, &str)> {
    (!parts::is(entry, "session")).then(|| (text_at(entry, &["id"]), text_at(entry, &["parentId"])))
}

struct Reader {
    import: Import,
    steps: usize,
    /// How many events there were when an entry began.
    starts: Vec<(String, usize)>,
}

impl Reader {
    fn lose(&mut self, number: usize, why: &str) {
        self.import.lost.push(format!("line {number} {why}"));
    }

    fn about(&mut self, header: &Value) {
        for (ours, theirs) in [("id", "id"), ("cwd", "cwd"), ("createdAt", "timestamp")] {
            let found = text_at(header, &[theirs]);
            if !found.is_empty() {
                self.import.head.set(ours, found);
            }
        }
    }

    fn entry(&mut self, number: usize, kind: &str, entry: &Value) {
        let of = |key: &str| text_at(entry, &[key]);
        match kind {
            "message" => match entry.get("message") {
                Some(message) => self.message(number, message),
                None => self.lose(number, "has no message"),
            },
            "compaction" => {
                // What came after the first entry that was kept is said again after the summary.
                let kept = of("firstKeptEntryId");
                let until = self.starts.iter().find(|(id, _)| id == kept).map(|(_, start)| *start);
                let until = until.unwrap_or(self.import.events.len());
                self.import.compacted(of("summary"), until);
            }
            "branch_summary" => self.injected(of("summary")),
            "custom_message" => self.injected(&parts::plain(entry.get("content"))),
            "session_info" => self.import.titled(of("name")),
            // The model of an answer stands in the answer.
            "model_change" | "thinking_level_change" => {}
            other => self.lose(number, &format!("is of type {:?}", short(other))),
        }
    }

    fn injected(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.import.push("context/injected", Object::from([("text", Value::from(text))]));
        }
    }

    fn message(&mut self, number: usize, message: &Value) {
        let of = |key: &str| text_at(message, &[key]);
        match of("role") {
            "user" => {
                let said = self.content(number, message.get("content"));
                self.import.push("user/message", parts::user(said));
            }
            "assistant" => self.assistant(number, message),
            "toolResult" => {
                let content = self.content(number, message.get("content"));
                let failed = message.get("isError").and_then(Value::as_bool) == Some(true);
                self.import.push("tool/result", parts::result(of("toolCallId"), content, failed));
            }
            "bashExecution" => self.injected(&format!("$ {}\n{}", of("command"), of("output"))),
            "custom" | "hookMessage" => self.injected(&parts::plain(message.get("content"))),
            "compactionSummary" | "branchSummary" => self.injected(of("summary")),
            other => {
                self.lose(number, &format!("is of role {:?}", short(other)));
            }
        }
    }

    fn content(&mut self, number: usize, content: Option<&Value>) -> Vec<Value> {
        let Some(Value::Array(list)) = content else { return vec![parts::text(&parts::plain(content))] };
        list.iter().filter_map(|part| self.part(number, part)).collect()
    }

    fn part(&mut self, number: usize, part: &Value) -> Option<Value> {
        let of = |key: &str| text_at(part, &[key]);
        match of("type") {
            "text" => Some(parts::text(of("text"))),
            "image" => Some(parts::media(of("mimeType"), of("data"))),
            "thinking" if part.get("redacted").and_then(Value::as_bool) == Some(true) => {
                Some(parts::reasoning("", &[("redacted", of("thinkingSignature"))]))
            }
            "thinking" => Some(parts::reasoning(of("thinking"), &[("signature", of("thinkingSignature"))])),
            "toolCall" => {
                let mut call = parts::call(of("id"), of("name"), part.get("arguments"));
                if let Some(call) = call.as_object_mut().filter(|_| !of("thoughtSignature").is_empty()) {
                    call.set("thoughtSignature", of("thoughtSignature"));
                }
                Some(call)
            }
            kind => {
                self.lose(number, &format!("holds a part of type {:?}", short(kind)));
                None
            }
        }
    }

    fn assistant(&mut self, number: usize, message: &Value) {
        let of = |key: &str| text_at(message, &[key]);
        let said = self.content(number, message.get("content"));
        let about = ["provider", "api", "model"].map(|key| (key, of(key)));
        if !said.is_empty() {
            let mut data = Object::from([("parts", Value::Array(said))]);
            for (key, value) in
                about.into_iter().chain([("stopReason", of("stopReason")), ("responseId", of("responseId"))])
            {
                if !value.is_empty() {
                    data.set(key, value);
                }
            }
            if of("stopReason") == "aborted" {
                data.set("partial", true);
            }
            self.import.push("assistant/message", data);
        }
        if !of("errorMessage").is_empty() {
            self.import.push("error", Object::from([("message", Value::from(of("errorMessage")))]));
        }
        self.usage(message, &about);
    }

    /// Its counts are those of Anthropic's API, whatever the provider: what was read from or written to a cache is on top.
    fn usage(&mut self, message: &Value, about: &[(&str, &str)]) {
        let count = |key: &str| message.at(&["usage", key]).filter(|value| value.as_number().is_some()).cloned();
        if count("input").is_none() && count("output").is_none() {
            return;
        }
        let raw: Object = [
            ("input_tokens", "input"),
            ("cache_read_input_tokens", "cacheRead"),
            ("cache_creation_input_tokens", "cacheWrite"),
            ("output_tokens", "output"),
        ]
        .into_iter()
        .map(|(ours, theirs)| (ours.to_owned(), count(theirs).unwrap_or(0.into())))
        .collect();
        self.steps += 1;
        let about: Vec<_> = about.iter().copied().filter(|(key, _)| *key != "api").collect();
        self.import.push("usage", parts::usage(self.steps, "anthropic.messages", raw.into(), &about));
    }
}

/// Writes a session file.
pub fn write(session: &Outgoing<'_>) -> Result<Export> {
    let mut out = Export::default();
    let header = [
        ("type", Value::from("session")),
        ("version", 3.into()),
        ("id", session.id.into()),
        ("timestamp", iso(session.created_at).into()),
        ("cwd", session.cwd.unwrap_or("/").into()),
    ];
    Object::from(header).write(&mut out.text);
    out.text.push('\n');
    let mut chain = Chain { parent: Value::Null };
    for spoken in conversation(session)? {
        if spoken.is("session/compacted") {
            // What the summary stands for is not written: nothing before it is kept.
            let own = chain.own(&spoken);
            let members = [
                ("summary", Value::from(parts::plain(Some(&Value::Array(spoken.parts().to_vec()))))),
                ("firstKeptEntryId", own.into()),
                ("tokensBefore", 0.into()),
            ];
            chain.entry(&mut out.text, &spoken, "compaction", members);
            continue;
        }
        for message in messages(&spoken, &mut out.lost) {
            chain.entry(&mut out.text, &spoken, "message", [("message", message.into())]);
        }
    }
    if let Some(title) = session.title {
        let members = [("name", Value::from(title))];
        chain.line(&mut out.text, "ffffffff", &iso(session.created_at), "session_info", members);
    }
    Ok(out)
}

struct Chain {
    parent: Value,
}

impl Chain {
    fn own(&self, spoken: &Spoken<'_>) -> String {
        format!("{:08x}", spoken.seq())
    }

    fn entry<const N: usize>(
        &mut self,
        out: &mut String,
        spoken: &Spoken<'_>,
        kind: &str,
        members: [(&str, Value); N],
    ) {
        let own = self.own(spoken);
        self.line(out, &own, &iso(spoken.at()), kind, members);
    }

    fn line<const N: usize>(&mut self, out: &mut String, own: &str, at: &str, kind: &str, members: [(&str, Value); N]) {
        let mut line = Object::from([("type", Value::from(kind)), ("id", own.into())]);
        line.set("parentId", std::mem::replace(&mut self.parent, own.into()));
        line.set("timestamp", at);
        for (key, value) in members {
            line.set(key, value);
        }
        line.write(out);
        out.push('\n');
    }
}

fn messages(spoken: &Spoken<'_>, lost: &mut Vec<String>) -> Vec<Object> {
    let at = Value::from(spoken.at());
    if spoken.role() == "tool" {
        let results = spoken.parts().iter().filter(|part| parts::is(part, "tool-result"));
        return results
            .map(|result| {
                let content = match result.get("content") {
                    Some(Value::Array(inner)) => inner.iter().filter_map(|part| piece(part, spoken, lost)).collect(),
                    other => vec![parts::text(&parts::plain(other))],
                };
                Object::from([
                    ("role", Value::from("toolResult")),
                    ("toolCallId", text_at(result, &["id"]).into()),
                    ("toolName", text_at(result, &["name"]).into()),
                    ("content", content.into()),
                    ("isError", result.get("isError").cloned().unwrap_or(false.into())),
                    ("timestamp", at.clone()),
                ])
            })
            .collect();
    }
    let content: Vec<Value> = spoken.parts().iter().filter_map(|part| piece(part, spoken, lost)).collect();
    if content.is_empty() {
        return Vec::new();
    }
    let calls = content.iter().any(|part| parts::is(part, "toolCall"));
    let mut message = Object::from([("role", Value::from(spoken.role())), ("content", content.into())]);
    if spoken.role() == "assistant" {
        let data = spoken.data();
        for key in ["api", "provider", "model"] {
            let value = text_at(&data, &[key]);
            message.set(key, if value.is_empty() { "unknown" } else { value });
        }
        let nothing = ["input", "output", "cacheRead", "cacheWrite", "totalTokens"].map(|key| (key, Value::from(0)));
        let mut usage = Object::from(nothing);
        usage.set(
            "cost",
            Object::from(["input", "output", "cacheRead", "cacheWrite", "total"].map(|key| (key, Value::from(0)))),
        );
        message.set("usage", usage);
        message.set("stopReason", if calls { "toolUse" } else { "stop" });
    }
    message.set("timestamp", at);
    vec![message]
}

fn piece(part: &Value, spoken: &Spoken<'_>, lost: &mut Vec<String>) -> Option<Value> {
    let of = |key: &str| text_at(part, &[key]);
    let typed = |kind: &str, members: &[(&str, &str)]| {
        let mut piece = Object::from([("type", Value::from(kind))]);
        for (key, value) in members {
            piece.set(key, *value);
        }
        piece
    };
    let piece = match of("type") {
        "text" => typed("text", &[("text", of("text"))]),
        "image" if part.get("data").is_some() => typed("image", &[("data", of("data")), ("mimeType", of("mediaType"))]),
        "reasoning" if !of("redacted").is_empty() => {
            let mut piece = typed("thinking", &[("thinking", ""), ("thinkingSignature", of("redacted"))]);
            piece.set("redacted", true);
            piece
        }
        "reasoning" if of("encrypted").is_empty() => {
            let mut piece = typed("thinking", &[("thinking", of("text"))]);
            if !of("signature").is_empty() {
                piece.set("thinkingSignature", of("signature"));
            }
            piece
        }
        "tool-call" => {
            let mut piece = typed("toolCall", &[("id", of("id")), ("name", of("name"))]);
            piece.set("arguments", part.get("args").cloned().unwrap_or_default());
            if !of("thoughtSignature").is_empty() {
                piece.set("thoughtSignature", of("thoughtSignature"));
            }
            piece
        }
        kind => {
            lost.push(format!("a part of type {kind} in event {} has no place", spoken.seq()));
            return None;
        }
    };
    Some(piece.into())
}
