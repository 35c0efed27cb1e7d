//! Where to cut a history that grows too long, and how large it is.

use super::pairing::Fate;
use super::{Deriver, EventSource};

/// What the controller asks the model for when it compacts by itself.
pub const SUMMARY_PROMPT: &str = "\
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

/// The real prompt size that a provider reported: the anchor of estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Seq of the `step/end` or `usage` event that carries it.
    pub seq: u64,
    /// Tokens of prompt and answer of that step.
    pub tokens: u64,
}

/// Bytes per token, on average, in English prose and code.
const BYTES_PER_TOKEN: u64 = 4;

/// What a message costs besides its text.
const TOKENS_PER_MESSAGE: u64 = 4;

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
    let bytes = log.event(seq).map_or(0, |e| e.data.len() as u64);
    bytes.div_ceil(BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE
}
