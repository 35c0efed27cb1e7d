//! Where to cut a history that grows too long, and how large it is.

use super::pairing::Fate;
use super::{Deriver, EventSource, NoBlobs, RequestOptions, RequestUpdate};
use crate::core::event::EventView;
use crate::core::id::EventId;
use crate::core::json::write_string;
use crate::core::message::{Message, Part};
use crate::core::tape::Tape;

/// What the controller asks the model for when it compacts by itself.
const SUMMARY_PROMPT: &str = "\
Write a summary of the conversation so far, so that the work can go on from it alone. It will replace the messages it \
covers; what it leaves out is gone. Keep to facts, in this order:
1. What the user asked for, in their own words where wording matters, with every constraint and preference they stated.
2. What was done: files read and changed, commands run, and what came of them, with exact names, paths, numbers and errors.
3. What was decided, and why; what was tried and did not work.
4. What is unfinished: the next steps, open questions, and promises made.
Do not call tools. Do not add advice or greetings. Write only the summary.";

/// Where a compaction cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// How many leading messages the summary is to cover.
    pub covered: usize,
    /// `uptoSeq` of the compaction event.
    pub upto_seq: i64,
}

/// The real size that a provider reported: the anchor of estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Seq of the answer that is counted, with all before it.
    pub seq: u64,
    /// Tokens of prompt and answer of that step.
    pub tokens: u64,
}

/// Bytes per token, on average, in English prose and code.
const BYTES_PER_TOKEN: u64 = 4;

/// What a message costs besides its text.
const TOKENS_PER_MESSAGE: u64 = 4;

/// What an image or a page costs, however many bytes it has.
const TOKENS_PER_MEDIUM: u64 = 1_600;

impl Deriver {
    /// Says where to cut so that about `keep_tokens` of the newest messages stay; without it, nothing stays.
    ///
    /// `None` when there is nothing to cover. A cut never separates a call from its results: it moves back to the start of
    /// the round. When the newest round alone is over the budget, the cut is right before that round.
    pub fn cut(&mut self, log: &dyn EventSource, keep_tokens: Option<u64>) -> Option<Cut> {
        self.read(log);
        let seqs = self.message_seqs();
        let last = log.len() as i64 - 1;
        let Some(keep_tokens) = keep_tokens else {
            return (!seqs.is_empty()).then_some(Cut { covered: seqs.len(), upto_seq: last });
        };
        let mut from = seqs.len();
        let mut kept = 0;
        for (at, seq) in seqs.iter().enumerate().rev() {
            kept += tokens_of(log, *seq);
            if kept > keep_tokens && at + 1 < seqs.len() {
                break;
            }
            from = at;
        }
        let from = self.round_start(&seqs, from);
        // The summary of an earlier compaction stands first but is newer than what follows: it is covered whenever anything is.
        let first = *seqs.get(from)?;
        (from > 0).then_some(Cut { covered: from, upto_seq: first as i64 - 1 })
    }

    /// Moves a cut back until no result after it has its call before it.
    pub(super) fn round_start(&self, seqs: &[u64], from: usize) -> usize {
        let mut from = from;
        let mut at = from;
        while let Some(seq) = seqs.get(at) {
            if let Fate::Paired(assistant) = self.pairing.fate(*seq)
                && seqs.get(from).is_some_and(|first| assistant < *first)
                && let Some(call) = seqs.iter().take(from).rposition(|s| *s == assistant)
            {
                from = call;
                at = call;
            }
            at += 1;
        }
        from
    }

    /// Estimates the tokens of everything that is seen.
    pub fn tokens(&mut self, log: &dyn EventSource, anchor: Option<Anchor>) -> u64 {
        self.read(log);
        let seqs = self.message_seqs();
        estimate_tokens(log, &seqs, anchor.filter(|a| !self.projection.changed_since(a.seq)))
    }
}

/// Estimates tokens by bytes, from the last real count on when there is one.
pub fn estimate_tokens(log: &dyn EventSource, seqs: &[u64], anchor: Option<Anchor>) -> u64 {
    let known = anchor.map_or(0, |a| a.tokens);
    let fresh = seqs.iter().filter(|seq| anchor.is_none_or(|a| **seq > a.seq));
    fresh.map(|seq| tokens_of(log, *seq)).fold(known, u64::saturating_add)
}

fn tokens_of(log: &dyn EventSource, seq: u64) -> u64 {
    let Some(event) = log.event(seq) else { return TOKENS_PER_MESSAGE };
    let (bytes, media) = if event.data.contains("\"mediaType\"") { media_aside(&event) } else { (event.data.len(), 0) };
    (bytes as u64).div_ceil(BYTES_PER_TOKEN) + media * TOKENS_PER_MEDIUM + TOKENS_PER_MESSAGE
}

/// How many bytes a message has without its media, and how many media these are.
fn media_aside(event: &EventView<'_>) -> (usize, u64) {
    let tape = Tape::new(event.data);
    let Some(message) = Message::read(event, &tape) else { return (event.data.len(), 0) };
    let mut found = (event.data.len(), 0);
    let mut take = |parts: &[Part<'_>]| {
        for part in parts {
            if let Part::Media(media) = part {
                found.0 = found.0.saturating_sub(media.stored_len());
                found.1 += 1;
            }
        }
    };
    take(&message.parts);
    for part in &message.parts {
        if let Part::Result(outcome) = part {
            take(outcome.parts());
        }
    }
    found
}

/// Finds the last answer whose real size was reported and noted beside its step's end.
pub fn last_count(log: &dyn EventSource) -> Option<Anchor> {
    let mut tokens = 0;
    for event in (0..log.len()).rev().filter_map(|seq| log.event(seq)) {
        match event.kind {
            "step/end" | "usage" if tokens == 0 => tokens = event.note.map_or(0, noted_tokens),
            "assistant/message" if tokens > 0 => return Some(Anchor { seq: event.seq, tokens }),
            _ => {}
        }
    }
    None
}

fn noted_tokens(note: &str) -> u64 {
    let tape = Tape::new(note);
    let count = |key: &str| -> i64 {
        let usage = tape.root().get("usage");
        usage.and_then(|u| u.get(key)).and_then(|n| n.as_i64()).unwrap_or(0)
    };
    let prompt = count("inputTokens");
    if prompt > 0 { prompt.saturating_add(count("outputTokens")).unsigned_abs() } else { 0 }
}

/// A log of one message: what a summary is asked for with.
struct Question(String);

impl EventSource for Question {
    fn len(&self) -> u64 {
        1
    }

    fn event(&self, seq: u64) -> Option<EventView<'_>> {
        let event = EventView { seq, id: EventId(0), at: 0, kind: "user/message", data: &self.0, note: None };
        (seq == 0).then_some(event)
    }
}

/// Derives the request that asks a model to sum a conversation up, for any target: the conversation goes as text.
pub fn summary_request(conversation: &str, options: &RequestOptions) -> RequestUpdate {
    let mut data = String::from("{\"text\":");
    write_string(&mut data, &format!("<conversation>\n{conversation}\n</conversation>\n\n{SUMMARY_PROMPT}"));
    data.push('}');
    Deriver::new().request(&Question(data), options, &NoBlobs)
}
