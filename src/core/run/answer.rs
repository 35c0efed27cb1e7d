//! The answer of one request, assembled from its stream.

use super::object;
use crate::core::json::{self, Object, Surrogates, Value};

/// One piece of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Text of the answer.
    Text(String),
    /// Text with what the provider put on its part: that ends the part.
    SignedText {
        /// Text.
        text: String,
        /// `thoughtSignature`, `itemId`.
        opaque: Object,
    },
    /// Reasoning; the opaque fields end its part.
    Reasoning {
        /// Text.
        text: String,
        /// `signature`, `redacted`, `encrypted`, `itemId`, when given.
        opaque: Object,
    },
    /// A whole call; takes the place of what was streamed under its id.
    Call {
        /// Id.
        id: String,
        /// Tool.
        name: String,
        /// Arguments, as text.
        args: String,
        /// `thoughtSignature`, `itemId`, `providerExecuted`, when given.
        opaque: Object,
    },
    /// A piece of a call's arguments.
    Args {
        /// Id of the call.
        id: String,
        /// Tool; with the first piece.
        name: Option<String>,
        /// Piece.
        delta: String,
    },
    /// What the provider counted; later ones replace earlier ones.
    Usage(Value),
    /// The end, and why.
    Finish {
        /// `stop`, `tool-calls`, `max-tokens`, `aborted`, `error`.
        reason: String,
        /// Id of the response.
        response_id: Option<String>,
    },
}

#[derive(Debug)]
enum Part {
    Text { text: String, opaque: Object },
    Reasoning { text: String, opaque: Object },
    Call { id: String, name: String, args: String, opaque: Object },
}

/// A call that the answer asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Id, unique within the answer.
    pub id: String,
    /// Tool.
    pub name: String,
    /// Arguments; none when they are not an object.
    pub args: Option<Object>,
}

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub struct Answer {
    parts: Vec<Part>,
    usage: Option<Value>,
    finish: Option<(String, Option<String>)>,
}

impl Answer {
    /// Takes one piece.
    pub fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Text(text) => self.text(&text),
            Chunk::SignedText { text, opaque } => self.signed_text(text, opaque),
            Chunk::Reasoning { text, opaque } => self.reasoning(&text, opaque),
            Chunk::Call { id, name, args, opaque } => self.call(id, name, args, opaque),
            Chunk::Args { id, name, delta } => self.args(&id, name.as_deref(), &delta),
            Chunk::Usage(usage) => self.usage = Some(usage),
            Chunk::Finish { reason, response_id } => self.finish = Some((reason, response_id)),
        }
    }

    /// Takes text.
    pub fn text(&mut self, more: &str) {
        match self.parts.last_mut() {
            _ if more.is_empty() => {}
            Some(Part::Text { text, opaque }) if opaque.is_empty() => text.push_str(more),
            _ => self.parts.push(Part::Text { text: more.to_owned(), opaque: Object::default() }),
        }
    }

    /// Takes text whose opaque fields belong to it alone; without text of its own they belong to the text before.
    fn signed_text(&mut self, more: String, fields: Object) {
        match self.parts.last_mut() {
            Some(Part::Text { opaque, .. }) if more.is_empty() && opaque.is_empty() => *opaque = fields,
            _ if more.is_empty() => {
                // No text to stand on: a signature on nothing is that of a thought which was not shown.
                if let Some(signature) = fields.get("thoughtSignature") {
                    self.reasoning("", object([("signature", signature.clone())]));
                }
            }
            _ => self.parts.push(Part::Text { text: more, opaque: fields }),
        }
    }

    /// Takes reasoning. A part whose opaque fields have come is whole: what follows starts another.
    pub fn reasoning(&mut self, more: &str, fields: Object) {
        match self.parts.last_mut() {
            Some(Part::Reasoning { text, opaque }) if opaque.is_empty() && fields.get("redacted").is_none() => {
                text.push_str(more);
                *opaque = fields;
            }
            _ if more.is_empty() && fields.is_empty() => {}
            _ => self.parts.push(Part::Reasoning { text: more.to_owned(), opaque: fields }),
        }
    }

    /// Takes a piece of a call's arguments.
    pub fn args(&mut self, of: &str, called: Option<&str>, delta: &str) {
        for part in self.parts.iter_mut().rev() {
            if let Part::Call { id, name, args, .. } = part
                && id == of
            {
                args.push_str(delta);
                if let Some(called) = called
                    && name.is_empty()
                {
                    called.clone_into(name);
                }
                return;
            }
        }
        let name = called.unwrap_or_default().to_owned();
        self.parts.push(Part::Call { id: of.to_owned(), name, args: delta.to_owned(), opaque: Object::default() });
    }

    fn call(&mut self, of: String, called: String, whole: String, fields: Object) {
        let same = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Call { id, name, args, opaque } if *id == of => Some((name, args, opaque)),
            _ => None,
        });
        match same {
            // The whole call after its pieces, or the same snapshot once more.
            Some((name, args, opaque)) if whole.starts_with(args.as_str()) && (name.is_empty() || *name == called) => {
                *name = called;
                *args = whole;
                *opaque = fields;
            }
            _ => self.parts.push(Part::Call { id: of, name: called, args: whole, opaque: fields }),
        }
    }

    /// Says whether anything has arrived that is worth keeping.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns what the provider counted.
    pub fn usage(&self) -> Option<&Value> {
        self.usage.as_ref()
    }

    /// Returns why the stream ended, when it said so.
    pub fn reason(&self) -> Option<&str> {
        self.finish.as_ref().map(|(reason, _)| reason.as_str())
    }

    /// Returns the id of the response.
    pub fn response_id(&self) -> Option<&str> {
        self.finish.as_ref().and_then(|(_, id)| id.as_deref())
    }

    /// Returns all text of the answer.
    pub fn all_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the parts as they are stored, and the calls that are to be run, in order.
    ///
    /// An id that is blank or that stands twice gets one of its own, so that each call has its own result.
    pub fn parts(&self, prefix: &str) -> (Vec<Value>, Vec<Asked>) {
        let mut ids: Vec<String> = Vec::new();
        let mut calls = Vec::new();
        let parts = self.parts.iter().map(|part| match part {
            Part::Text { text, opaque } => extended(object([("type", "text"), ("text", text.as_str())]), opaque).into(),
            Part::Reasoning { text, opaque } => {
                extended(object([("type", "reasoning"), ("text", text.as_str())]), opaque).into()
            }
            Part::Call { id, name, args, opaque } => {
                let id = own_id(&ids, id, prefix);
                ids.push(id.clone());
                let parsed = arguments(args);
                let mut part = object([("type", "tool-call"), ("id", id.as_str()), ("name", name.as_str())]);
                part.set("args", parsed.clone().unwrap_or_default());
                if parsed.is_none() {
                    part.set("rawArgs", args.as_str());
                }
                if opaque.get("providerExecuted").and_then(Value::as_bool) != Some(true) {
                    calls.push(Asked { id, name: name.clone(), args: parsed });
                }
                extended(part, opaque).into()
            }
        });
        let parts = parts.collect();
        (parts, calls)
    }
}

fn extended(mut part: Object, more: &Object) -> Object {
    more.iter().for_each(|(key, value)| part.set(key, value.clone()));
    part
}

fn own_id(taken: &[String], id: &str, prefix: &str) -> String {
    let base = if id.trim().is_empty() { format!("call_{prefix}_{}", taken.len() + 1) } else { id.to_owned() };
    let mut own = base.clone();
    let mut n = 1;
    while taken.contains(&own) {
        n += 1;
        own = format!("{base}_{n}");
    }
    own
}

/// Reads arguments: nothing is `{}`, what is not an object is none.
pub fn arguments(text: &str) -> Option<Object> {
    if text.trim().is_empty() {
        return Some(Object::default());
    }
    match json::parse(text, Surrogates::Replace) {
        Ok(Value::Object(args)) => Some(args),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(answer: &Answer) -> String {
        Value::from(answer.parts("1_1").0).to_text()
    }

    fn call(id: &str, args: &str) -> Chunk {
        Chunk::Call { id: id.into(), name: "edit".into(), args: args.into(), opaque: Object::default() }
    }

    #[test]
    fn reasoning_keeps_its_opaque_fields_and_its_place() {
        let mut answer = Answer::default();
        answer.reasoning("a", Object::default());
        answer.reasoning("b", Object::default());
        answer.reasoning("", object([("signature", "Zm9-_x==")]));
        answer.reasoning("", object([("redacted", "QQ==")]));
        answer.args("t1", Some("f"), "");
        assert_eq!(
            text(&answer),
            r#"[{"type":"reasoning","text":"ab","signature":"Zm9-_x=="},{"type":"reasoning","text":"","redacted":"QQ=="},{"type":"tool-call","id":"t1","name":"f","args":{}}]"#
        );
    }

    #[test]
    fn a_signature_stays_on_the_text_it_came_on() {
        let signed = |text: &str, signature: &str| Chunk::SignedText {
            text: text.into(),
            opaque: object([("thoughtSignature", signature)]),
        };
        let mut answer = Answer::default();
        answer.take(signed("", "AA=="));
        answer.text("a");
        answer.text("b");
        answer.take(signed("", "BB=="));
        answer.text("c");
        answer.take(signed("d", "CC=="));
        answer.text("e");
        assert_eq!(
            text(&answer),
            r#"[{"type":"reasoning","text":"","signature":"AA=="},{"type":"text","text":"ab","thoughtSignature":"BB=="},{"type":"text","text":"c"},{"type":"text","text":"d","thoughtSignature":"CC=="},{"type":"text","text":"e"}]"#
        );
        assert_eq!(answer.all_text(), "abcde");
    }

    #[test]
    fn pieces_of_several_calls_are_kept_apart() {
        let mut answer = Answer::default();
        answer.args("a", Some("f"), "{\"x\":");
        answer.args("b", Some("g"), "{}");
        answer.args("a", None, "1.50}");
        assert_eq!(
            text(&answer),
            r#"[{"type":"tool-call","id":"a","name":"f","args":{"x":1.50}},{"type":"tool-call","id":"b","name":"g","args":{}}]"#
        );
    }

    #[test]
    fn one_snapshot_twice_is_one_call_and_one_id_twice_is_two() {
        let mut answer = Answer::default();
        answer.take(call("edit:22", r#"{"n":1}"#));
        answer.take(call("edit:22", r#"{"n":1}"#));
        answer.take(call("edit:22", r#"{"n":2}"#));
        answer.take(call("", "{}"));
        let ids: Vec<_> = answer.parts("1_1").1.into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["edit:22", "edit:22_2", "call_1_1_3"]);
    }

    #[test]
    fn arguments_that_are_no_object_are_kept_as_text() {
        for (args, stored) in [("[1]", true), ("{\"a\":", true), ("nonsense", true), ("", false), (" ", false)] {
            let mut answer = Answer::default();
            answer.take(call("t", args));
            let (parts, calls) = answer.parts("1_1");
            assert_eq!(calls.first().map(|c| c.args.is_none()), Some(stored), "{args}");
            let raw = parts.first().and_then(|p| p.get("rawArgs")).and_then(Value::as_str);
            assert_eq!(raw, stored.then_some(args));
        }
    }

    #[test]
    fn what_the_provider_runs_itself_is_not_ours_to_run() {
        let mut answer = Answer::default();
        let opaque = object([("providerExecuted", Value::from(true))]);
        answer.take(Chunk::Call { id: "w".into(), name: "search".into(), args: "{}".into(), opaque });
        let (parts, calls) = answer.parts("1_1");
        assert_eq!((parts.len(), calls.len()), (1, 0));
    }
}
