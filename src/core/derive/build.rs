//! Builds a request round by round: what is closed never changes again, what is open is closed anew each time.

use std::collections::HashSet;

use crate::core::sorted::SortedMap;

use super::convert::{Converter, MediaUse};
use super::ids::IdMap;
use super::media::{Blobs, MediaLimits};
use super::options::RequestOptions;
use super::origin::ReasoningRule;
use super::overlays::Item;
use super::pairing::{Fate, Pairing, Slot};
use super::round::{Answer, Block, CallBlock, Round, TextBlock, join, quote};
use super::{EventSource, Interest, Repair};
use crate::core::message::{Message, Part};
use crate::core::tape::Tape;

/// What is said in the user's place where a request has to begin or end with the user.
pub(crate) const GO_ON: &str = "Continue.";

const DENIED: &str = "Denied: the user did not allow this call; it was not executed.";
const ABORTED: &str = "Interrupted: this call was aborted while it ran; its outcome is unknown.";
const NOT_STARTED: &str = "Interrupted: this call was never started; it was not executed.";
const INVALID: &str = "Invalid arguments: they are not a JSON object; this call was not executed.";

/// What a request is built from.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub log: &'a dyn EventSource,
    pub pairing: &'a Pairing,
    pub options: &'a RequestOptions,
    pub blobs: &'a dyn Blobs,
}

/// A request in the making.
#[derive(Default)]
pub(crate) struct Builder {
    ids: IdMap,
    item_ids: HashSet<String>,
    media: Vec<MediaUse>,
    /// Media that do not go because newer ones take their room.
    pub omit: SortedMap<(u64, usize), ()>,
    open: Open,
    /// Reasoning that waits for what it led to.
    held: Vec<Block>,
    begun: bool,
}

/// The round that is not closed yet.
#[derive(Default)]
struct Open {
    assistant: Vec<Block>,
    user: Vec<Block>,
    repairs: Vec<Repair>,
}

impl Open {
    fn is_answered(&self) -> bool {
        !self.user.is_empty() || self.assistant.iter().any(|b| matches!(b, Block::Call(c) if !c.provider))
    }
}

/// What comes out: wire messages as JSON text, and repairs.
#[derive(Default)]
pub(crate) struct Output {
    pub messages: Vec<String>,
    pub repairs: Vec<Repair>,
}

impl Builder {
    /// Starts a request in which these media are left out.
    pub fn new(omit: SortedMap<(u64, usize), ()>) -> Builder {
        Builder { omit, ..Builder::default() }
    }

    fn converter<'a>(&'a mut self, scope: &Scope<'a>) -> Converter<'a> {
        Converter {
            options: scope.options,
            blobs: scope.blobs,
            ids: &mut self.ids,
            item_ids: &mut self.item_ids,
            media: &mut self.media,
            omit: &self.omit,
            repairs: &mut self.open.repairs,
        }
    }

    /// Takes in what comes next; a round that this closes goes to `out`.
    pub fn feed(&mut self, item: Item, scope: &Scope<'_>, out: &mut Output) {
        let Some(event) = scope.log.event(item.seq).filter(|_| item.interest.is_message()) else { return };
        let tape = Tape::new(event.data);
        let Some(message) = Message::read(&event, &tape) else { return };
        match item.interest {
            Interest::User => {
                let blocks = self.converter(scope).user(&message);
                if !blocks.is_empty() {
                    self.drop_held();
                    self.open.user.extend(blocks);
                }
            }
            Interest::Assistant => self.assistant(&message, scope, out),
            _ => match scope.pairing.fate(item.seq) {
                Fate::Paired(assistant) => self.provided(&message, scope, assistant),
                fate => self.unpaired(&message, fate),
            },
        }
    }

    fn drop_held(&mut self) {
        if !self.held.is_empty() {
            self.open.repairs.push(held_repair());
        }
        self.held.clear();
    }

    fn assistant(&mut self, message: &Message<'_>, scope: &Scope<'_>, out: &mut Output) {
        let before = self.open.repairs.len();
        let blocks = self.converter(scope).assistant(message, scope.pairing.slots(message.source));
        let fresh = self.open.repairs.split_off(before);
        if !blocks.iter().any(Block::is_solid) {
            self.open.repairs.extend(fresh);
            if blocks.is_empty() {
                let what = "an answer with nothing in it that can be sent is left out";
                self.open.repairs.push(Repair::at("empty_message", message.source, what));
            }
            self.held.extend(blocks);
            return;
        }
        if self.open.is_answered() {
            self.close(scope, out);
        }
        self.open.repairs.extend(fresh);
        self.open.assistant.append(&mut self.held);
        self.open.assistant.extend(blocks);
    }

    /// A result of a call that was told as text is told as text too.
    fn provided(&mut self, message: &Message<'_>, scope: &Scope<'_>, assistant: u64) {
        let mut slots = scope.pairing.slots(assistant).iter();
        let told = slots.any(|s| s.result == Some(message.source) && s.provider);
        let Some(Part::Result(outcome)) = message.parts.first() else { return };
        if !told || scope.options.target.provider_calls {
            return;
        }
        let answer = self.converter(scope).answer(outcome, message.source, String::new(), String::new(), 0);
        self.drop_held();
        self.open.user.push(Block::text(&format!("[the provider's tool gave back: {}]", answer.plain())));
        self.open.user.extend(answer.content.into_iter().filter(|b| matches!(b, Block::Media(_))));
    }

    fn unpaired(&mut self, message: &Message<'_>, fate: Fate) {
        let (code, what) = match fate {
            Fate::Duplicate => ("duplicate_result", "another result of this call counts"),
            _ => ("orphan_result", "a result without its call is left out"),
        };
        let id = message.parts.iter().find_map(|p| match p {
            Part::Result(outcome) => Some(outcome.id.plain().into_owned()),
            _ => None,
        });
        self.open.repairs.push(Repair { call_id: id, ..Repair::at(code, message.source, what) });
    }

    /// Closes the open round for good.
    fn close(&mut self, scope: &Scope<'_>, out: &mut Output) {
        let open = std::mem::take(&mut self.open);
        let mut media = std::mem::take(&mut self.media);
        let mut round = Round { assistant: open.assistant, user: open.user, ..Round::default() };
        out.repairs.extend(open.repairs);
        self.answer(&mut round, scope, &mut media, out);
        self.media = media;
        let begun = std::mem::replace(&mut self.begun, true);
        render(round, begun, scope, out);
    }

    /// Closes a copy of the open round as the end of the request, and says which media must give way.
    pub fn finish(&self, scope: &Scope<'_>, out: &mut Output) -> SortedMap<(u64, usize), ()> {
        let mut round =
            Round { assistant: self.open.assistant.clone(), user: self.open.user.clone(), ..Round::default() };
        out.repairs.extend(self.open.repairs.iter().cloned());
        if !self.held.is_empty() {
            out.repairs.push(held_repair());
        }
        let mut media = self.media.clone();
        self.answer(&mut round, scope, &mut media, out);
        end(&mut round, scope.options, out);
        render(round, self.begun, scope, out);
        evicted(media, &scope.options.media)
    }

    /// Gives every call of a round its answer.
    fn answer(&self, round: &mut Round, scope: &Scope<'_>, media: &mut Vec<MediaUse>, out: &mut Output) {
        let (mut ids, mut item_ids) = (IdMap::default(), HashSet::new());
        let mut converter = Converter {
            options: scope.options,
            blobs: scope.blobs,
            ids: &mut ids,
            item_ids: &mut item_ids,
            media,
            omit: &self.omit,
            repairs: &mut out.repairs,
        };
        let mut moved = Vec::new();
        for block in &round.assistant {
            let Block::Call(call) = block else { continue };
            let slots = scope.pairing.slots(call.place.0);
            let Some(answer) = answer_of(call, slots.get(call.place.1), scope, &mut converter) else { continue };
            round.results.push(split_media(answer, call, scope.options, converter.repairs, &mut moved));
        }
        if !moved.is_empty() {
            moved.append(&mut round.user);
            round.user = moved;
        }
    }
}

fn held_repair() -> Repair {
    Repair {
        code: "reasoning_dropped",
        seq: None,
        call_id: None,
        message: "reasoning is left out: nothing that it led to follows it".into(),
    }
}

/// The answer to a call: its result, or why there is none.
fn answer_of(
    call: &CallBlock,
    slot: Option<&Slot>,
    scope: &Scope<'_>,
    converter: &mut Converter<'_>,
) -> Option<Answer> {
    if let Some(seq) = slot.and_then(|s| s.result)
        && let Some(answer) = stored_answer(call, seq, scope, converter)
    {
        return Some(answer);
    }
    if let Some(inline) = &call.inline {
        return (!call.provider).then(|| inline.clone());
    }
    if call.provider {
        return None;
    }
    let (text, why) = match slot {
        Some(Slot { denied: Some(_), .. }) => (DENIED, "denied"),
        _ if !call.valid => (INVALID, "invalid arguments"),
        Some(Slot { started: true, .. }) => (ABORTED, "aborted while running"),
        _ => (NOT_STARTED, "never started"),
    };
    converter.repairs.push(Repair {
        call_id: Some(call.original.clone()),
        ..Repair::at("missing_result", call.place.0, &format!("a result is put in its place: {why}"))
    });
    let mut text = text.to_owned();
    if let Some(reason) = slot.and_then(|s| s.denied).and_then(|seq| denial(scope.log, seq)) {
        text.push_str(" Reason: ");
        text.push_str(&reason);
    }
    Some(Answer { denied: why == "denied", ..Answer::text(&call.id, &call.name, &text, true) })
}

fn denial(log: &dyn EventSource, seq: u64) -> Option<String> {
    let event = log.event(seq)?;
    let tape = Tape::new(event.data);
    let reason = tape.root().string_at("reason").filter(|r| !r.is_blank())?;
    Some(reason.plain().into_owned())
}

fn stored_answer(call: &CallBlock, seq: u64, scope: &Scope<'_>, converter: &mut Converter<'_>) -> Option<Answer> {
    let event = scope.log.event(seq)?;
    let tape = Tape::new(event.data);
    let message = Message::read(&event, &tape)?;
    let Some(Part::Result(outcome)) = message.parts.first() else { return None };
    if message.unreadable > 0 {
        let what = format!("{} parts of a result could not be read and are left out", message.unreadable);
        converter
            .repairs
            .push(Repair { call_id: Some(call.original.clone()), ..Repair::at("unreadable_part", seq, &what) });
    }
    Some(converter.answer(outcome, seq, call.id.clone(), call.name.clone(), 0))
}

/// Takes media out of an answer where the target has no place for them there; they follow as the user's.
fn split_media(
    answer: Answer,
    call: &CallBlock,
    options: &RequestOptions,
    repairs: &mut Vec<Repair>,
    moved: &mut Vec<Block>,
) -> Answer {
    let has_media = answer.content.iter().any(|b| matches!(b, Block::Media(_)));
    if !has_media || (options.target.media_in_results && !answer.is_error) {
        return answer;
    }
    let (media, mut content): (Vec<Block>, Vec<Block>) =
        answer.content.into_iter().partition(|b| matches!(b, Block::Media(_)));
    content.push(Block::text("[the media of this result follow in the next message]"));
    repairs.push(Repair {
        call_id: Some(call.original.clone()),
        ..Repair::at("media_moved", call.place.0, "media of a result follow as a message of the user's")
    });
    moved.push(Block::text(&format!("[media of the result of {}]", answer.name)));
    moved.extend(media);
    Answer { content, ..answer }
}

/// Sees to it that the request ends as the target wants it.
fn end(round: &mut Round, options: &RequestOptions, out: &mut Output) {
    if !round.user.is_empty() || !round.results.is_empty() {
        return;
    }
    if options.prefill && options.target.prefill && !round.assistant.is_empty() {
        if options.target.reasoning == ReasoningRule::Signed {
            prefill(round, out);
        }
        if !round.assistant.is_empty() {
            return;
        }
    }
    // Nothing is lost by it, and the next real turn takes its place.
    let what = "a short turn of the user's is put at the end";
    out.repairs.push(Repair { seq: None, ..Repair::at("user_last", 0, what) });
    round.user.push(Block::text(GO_ON));
}

/// A turn for the model to go on with holds no reasoning and does not end in white space.
fn prefill(round: &mut Round, out: &mut Output) {
    let before = round.assistant.len();
    round.assistant.retain(|b| !matches!(b, Block::Thought(_)));
    if round.assistant.len() < before {
        let what = "reasoning is left out: the model cannot go on with a turn that holds it";
        out.repairs.push(Repair { seq: None, ..Repair::at("reasoning_dropped", 0, what) });
    }
    if let Some(Block::Text(text)) = round.assistant.last_mut() {
        text.quoted = quote(crate::core::json::unescape(&text.quoted).trim_end());
    }
}

/// Orders a round as the target wants it and writes it.
fn render(mut round: Round, begun: bool, scope: &Scope<'_>, out: &mut Output) {
    let target = scope.options.target;
    if target.calls_last {
        let (calls, mut rest): (Vec<Block>, Vec<Block>) =
            round.assistant.into_iter().partition(|b| matches!(b, Block::Call(_)));
        rest.extend(calls);
        round.assistant = rest;
    }
    // No API takes reasoning that leads to nothing.
    while matches!(round.assistant.last(), Some(Block::Thought(_))) {
        round.assistant.pop();
        out.repairs.push(held_repair());
    }
    if target.first_is_user && !begun && !round.assistant.is_empty() {
        let what = "a short turn of the user's is put before the answer that opens the history";
        out.repairs.push(Repair { seq: None, ..Repair::at("user_first", 0, what) });
        let opening = Round { user: vec![Block::text(GO_ON)], ..Round::default() };
        (target.render)(&opening, scope.options, &mut out.messages);
    }
    if !round.is_empty() {
        (target.render)(&round, scope.options, &mut out.messages);
    }
}

/// Which media must give way, the oldest first, for the rest to stay within the limits on all together.
fn evicted(mut media: Vec<MediaUse>, limits: &MediaLimits) -> SortedMap<(u64, usize), ()> {
    crate::core::sorted::sort_by(&mut media, |a, b| a < b);
    let mut count = media.len() as u64;
    let mut bytes: u64 = media.iter().map(|m| m.bytes).sum();
    let mut out = SortedMap::new();
    let mut omit = |medium: &MediaUse| {
        out.insert((medium.seq, medium.index), ());
    };
    media.retain(|medium| {
        let too_many = count > limits.max_count;
        let too_large = bytes > limits.max_bytes_total && medium.bytes > 0;
        if too_many || too_large {
            count -= 1;
            bytes -= medium.bytes;
            omit(medium);
        }
        !(too_many || too_large)
    });
    for medium in &media {
        if limits.crowd.is_some_and(|(most, side)| count > most && medium.side > side) {
            count -= 1;
            omit(medium);
        }
    }
    out
}

/// The texts of blocks in one, with media and others left aside.
pub(crate) fn text_of(blocks: &[Block]) -> String {
    join(blocks.iter())
}

/// Says whether blocks are one text and nothing else.
pub(crate) fn only_text(blocks: &[Block]) -> Option<&TextBlock> {
    match blocks {
        [Block::Text(text)] => Some(text),
        _ => None,
    }
}
