//! One message into clean blocks: text, media, reasoning and calls as the target takes them.

use std::collections::HashSet;

use crate::core::sorted::SortedMap;

use super::ids::IdMap;
use super::media::{Blobs, Medium, note};
use super::options::RequestOptions;
use super::origin::{ReasoningRule, is_item_id, same_origin, sdk_family};
use super::pairing::Slot;
use super::round::{Answer, Block, CallBlock, TextBlock, Thought, quote};
use super::text::{arguments, tool_name};
use super::{Place, Repair};
use crate::core::message::{Call, Content, Media, Message, Outcome, Part, Reasoning, TextPart};
use crate::core::tape::Text;

/// What stands where a tool gave nothing back.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// A medium that was let in, for the limits on all of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MediaUse {
    /// Seq of its message.
    pub seq: u64,
    /// Its place among the media there.
    pub index: usize,
    /// How large it is.
    pub bytes: u64,
    /// Its longest side, where that may matter.
    pub side: u64,
}

/// Turns messages into blocks; what it remembers is what must be distinct in one request.
pub(crate) struct Converter<'a> {
    pub options: &'a RequestOptions,
    pub blobs: &'a dyn Blobs,
    pub ids: &'a mut IdMap,
    pub item_ids: &'a mut HashSet<String>,
    pub media: &'a mut Vec<MediaUse>,
    pub omit: &'a SortedMap<(u64, usize), ()>,
    pub repairs: &'a mut Vec<Repair>,
}

impl Converter<'_> {
    fn repair(&mut self, code: &'static str, seq: u64, call: Option<&str>, message: String) {
        self.repairs.push(Repair { code, seq: Some(seq), call_id: call.map(str::to_owned), message });
    }

    /// The blocks of a message in the user's place.
    pub fn user(&mut self, message: &Message<'_>) -> Vec<Block> {
        self.unreadable(message);
        let mut blocks = Vec::new();
        let mut index = 0;
        for (at, part) in message.parts.iter().enumerate() {
            match part {
                Part::Text(text) => blocks.extend(self.text(text, (message.source, at), false, None)),
                Part::Media(media) => {
                    blocks.push(self.media(media, message.source, index, Place::User));
                    index += 1;
                }
                _ => {}
            }
        }
        if blocks.is_empty() {
            self.repair("empty_message", message.source, None, "a user message shows nothing and is left out".into());
        }
        blocks
    }

    fn unreadable(&mut self, message: &Message<'_>) {
        if message.unreadable > 0 {
            let what = format!("{} parts could not be read and are left out", message.unreadable);
            self.repair("unreadable_part", message.source, None, what);
        }
    }

    /// `keep` is for an answer of the model's: whether opaque fields go back, and who made it.
    fn text(
        &mut self,
        part: &TextPart<'_>,
        place: (u64, usize),
        glued: bool,
        keep: Option<(bool, Option<&'static str>)>,
    ) -> Option<Block> {
        if part.text.is_blank() {
            self.repair("blank_text", place.0, None, "a blank text is left out".into());
            return None;
        }
        let (opaque, family) = keep.unwrap_or_default();
        let item_id = part.item_id.as_ref().filter(|_| opaque).map(|i| i.plain().into_owned());
        Some(Block::Text(TextBlock {
            quoted: part.text.quoted().to_owned(),
            signature: part.signature.as_ref().filter(|s| opaque && !s.is_blank()).map(|s| s.quoted().to_owned()),
            item_id: item_id.filter(|i| i.starts_with("msg_") && is_item_id(i) && self.item_ids.insert(i.clone())),
            family,
            glued,
            place,
        }))
    }

    fn media(&mut self, media: &Media<'_>, seq: u64, index: usize, place: Place) -> Block {
        let medium = Medium::resolve(media, &self.options.media, self.blobs);
        let medium = medium.and_then(|m| match (self.options.target.takes)(&m, place) {
            true => Ok(m),
            false => Err("this model's API does not take it".to_owned()),
        });
        let medium = medium.and_then(|m| {
            let side = self.options.media.crowd.and_then(|_| m.longest_side()).unwrap_or(0);
            self.media.push(MediaUse { seq, index, bytes: m.bytes(), side });
            match self.omit.contains_key(&(seq, index)) {
                true => Err("the request has no room for it beside the others".to_owned()),
                false => Ok(m),
            }
        });
        match medium {
            Ok(medium) => Block::Media(medium),
            Err(why) => {
                let text = note(media, &why);
                self.repair("media_omitted", seq, None, text.clone());
                Block::text(&text)
            }
        }
    }

    /// The blocks of an answer of the model. `slots` say what is known of its calls, in their order.
    pub fn assistant(&mut self, message: &Message<'_>, slots: &[Slot]) -> Vec<Block> {
        self.unreadable(message);
        let same = same_origin(&message.origin, self.options);
        let family = sdk_family(&message.origin, self.options);
        let thoughts = self.thoughts(message, same, family);
        // Ids of items stand and fall with the reasoning they came with; a signature on a call stands for itself.
        let opaque = same && !(self.sealed(family) && matches!(thoughts, Thoughts::Dropped));
        let mut blocks = Vec::new();
        let (mut calls, mut media) = (0, 0);
        for (at, part) in message.parts.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|b| message.parts.get(b));
            match part {
                Part::Text(text) => {
                    let glued = matches!(before, Some(Part::Text(_)));
                    blocks.extend(self.text(text, (message.source, at), glued, Some((opaque, family))));
                }
                Part::Reasoning(r) => {
                    if thoughts.takes(self.options.target.reasoning, r, family) {
                        blocks.push(Block::Thought(thought(r, family)));
                    }
                }
                Part::Call(call) => {
                    let place = (message.source, calls);
                    calls += 1;
                    if slots.get(place.1).is_some_and(|s| s.duplicate) {
                        let id = call.id.plain();
                        self.repair(
                            "duplicate_call",
                            place.0,
                            Some(&id),
                            "the same call said again is sent once".into(),
                        );
                        continue;
                    }
                    let block = self.call(call, message, place, opaque, family);
                    blocks.extend(self.settle(block));
                }
                Part::Result(outcome) => self.inline(outcome, message, &mut blocks),
                Part::Media(m) => {
                    blocks.push(self.media(m, message.source, media, Place::Assistant));
                    media += 1;
                }
            }
        }
        for (at, block) in blocks.iter_mut().enumerate() {
            if let Block::Text(text) = block {
                text.place = (message.source, at);
            }
        }
        blocks
    }

    /// Decides about all reasoning of a message at once, and reports what does not go.
    fn thoughts(&mut self, message: &Message<'_>, same: bool, family: Option<&'static str>) -> Thoughts {
        let rule = self.options.target.reasoning;
        let blocks = message.parts.iter().filter_map(|p| match p {
            Part::Reasoning(r) => Some(r),
            _ => None,
        });
        let blocks: Vec<&Reasoning<'_>> = blocks.collect();
        if blocks.is_empty() {
            return Thoughts::Kept;
        }
        let missing = blocks.iter().filter(|r| !rule.takes(r, family)).count();
        let sealed = self.sealed(family);
        let why = match () {
            () if !self.options.keep_reasoning => "the caller asked for none",
            () if rule == ReasoningRule::Never => "this API has no place for it",
            () if !same => "it came from another provider, API or model",
            () if missing == blocks.len() => "it carries no signature",
            () if sealed && missing > 0 => "one of its items is incomplete",
            () if sealed && !self.fresh_items(&blocks) => "its item was sent before",
            () if missing > 0 => {
                let what = "reasoning without a signature is left out".to_owned();
                self.repair("unsigned_reasoning", message.source, None, what);
                return Thoughts::Kept;
            }
            () => return Thoughts::Kept,
        };
        let code = if missing == blocks.len() && same { "unsigned_reasoning" } else { "reasoning_dropped" };
        self.repair(code, message.source, None, format!("reasoning is left out: {why}"));
        Thoughts::Dropped
    }

    /// Says whether reasoning goes as items that hold together with what they led to.
    fn sealed(&self, family: Option<&str>) -> bool {
        match self.options.target.reasoning {
            ReasoningRule::Sealed => true,
            ReasoningRule::Passed => family == Some("openai"),
            _ => false,
        }
    }

    /// Says whether none of these items stood in the request before, and remembers them.
    fn fresh_items(&mut self, blocks: &[&Reasoning<'_>]) -> bool {
        let ids = blocks.iter().filter_map(|r| r.item_id.as_ref()).map(|i| i.plain().into_owned());
        let ids: Vec<String> = ids.collect();
        let distinct: SortedMap<&str, ()> = ids.iter().map(|id| (id.as_str(), ())).collect();
        if distinct.len() < ids.len() || ids.iter().any(|id| self.item_ids.contains(id)) {
            return false;
        }
        self.item_ids.extend(ids);
        true
    }

    fn call(
        &mut self,
        call: &Call<'_>,
        message: &Message<'_>,
        place: (u64, usize),
        opaque: bool,
        family: Option<&'static str>,
    ) -> CallBlock {
        let original = call.id.plain().into_owned();
        let id = self.ids.assign(&self.options.ids, &original, [place.0, place.1 as u64]);
        if id != original {
            self.repair("id_renamed", place.0, Some(&original), format!("the call goes by {id} in this request"));
        }
        let given = call.name.plain();
        let name = tool_name(&given);
        if *given != name {
            self.repair("tool_name", place.0, Some(&original), format!("the tool goes by {name} in this request"));
        }
        let args = arguments(call);
        if !args.valid {
            let what = "the arguments are not a JSON object; the call is kept without any";
            self.repair("invalid_arguments", message.source, Some(&original), what.into());
        }
        let item_id = call.item_id.as_ref().filter(|_| opaque).map(|i| i.plain().into_owned());
        let item_id = item_id.filter(|i| i.starts_with("fc_") && is_item_id(i) && self.item_ids.insert(i.clone()));
        let mut block = CallBlock {
            id,
            name,
            object: String::new(),
            text: String::new(),
            valid: true,
            signature: call.signature.as_ref().filter(|s| opaque && !s.is_blank()).map(|s| s.quoted().to_owned()),
            item_id: item_id.map(|i| quote(&i)),
            provider: call.provider,
            place,
            original,
            family,
            inline: None,
        };
        block.set(args);
        block
    }

    /// A call the provider runs is a call only where the target knows such calls; elsewhere it is told as text.
    fn settle(&mut self, block: CallBlock) -> Option<Block> {
        if !block.provider || self.options.target.provider_calls {
            return Some(Block::Call(block));
        }
        let what = "a call that the provider ran itself is told as text";
        self.repair("provider_call_as_text", block.place.0, Some(&block.original), what.into());
        Some(Block::text(&format!("[{} was run by the provider with {}]", block.name, block.text)))
    }

    /// A result that stands in the model's own message.
    fn inline(&mut self, outcome: &Outcome<'_>, message: &Message<'_>, blocks: &mut Vec<Block>) {
        let id = outcome.id.plain();
        let fits = |b: &&mut Block| matches!(b, Block::Call(c) if c.original == *id && c.inline.is_none());
        if let Some(Block::Call(call)) = blocks.iter_mut().find(fits) {
            let (wire, name, provider) = (call.id.clone(), call.name.clone(), call.provider);
            let answer = self.answer(outcome, message.source, wire, name, usize::MAX / 2);
            let held = blocks.iter_mut().find(|b| matches!(b, Block::Call(c) if c.id == answer.id));
            if let Some(Block::Call(call)) = held {
                call.inline = Some(answer.clone());
                if provider {
                    blocks.push(Block::Provided(answer));
                }
            }
            return;
        }
        let told = message.parts.iter().any(|p| matches!(p, Part::Call(c) if c.provider && c.id == outcome.id));
        if told {
            let name = outcome.name.as_ref().map(|n| n.plain().into_owned()).unwrap_or_default();
            let answer = self.answer(outcome, message.source, String::new(), name, usize::MAX / 2);
            blocks.push(Block::text(&format!("[the provider's tool gave back: {}]", answer.plain())));
            blocks.extend(answer.content.into_iter().filter(|b| matches!(b, Block::Media(_))));
        } else {
            let what = "a result without its call is left out";
            self.repair("orphan_result", message.source, Some(&id), what.into());
        }
    }

    /// The answer a result makes.
    pub fn answer(&mut self, outcome: &Outcome<'_>, seq: u64, id: String, name: String, first_index: usize) -> Answer {
        let call = outcome.id.plain().into_owned();
        let mut content = Vec::new();
        match &outcome.content {
            Content::Text(text) => content.extend(plain_text(text, seq)),
            Content::Parts(parts) => {
                let mut index = first_index;
                for part in parts {
                    match part {
                        Part::Text(text) => content.extend(plain_text(&text.text, seq)),
                        Part::Media(media) => {
                            content.push(self.media(media, seq, index, Place::Result));
                            index += 1;
                        }
                        _ => {}
                    }
                }
            }
        }
        if content.is_empty() {
            self.repair("blank_result", seq, Some(&call), format!("a blank result reads {NO_OUTPUT}"));
            content.push(Block::text(NO_OUTPUT));
        }
        Answer { id, name, content, is_error: outcome.is_error, denied: false }
    }
}

/// What becomes of the reasoning of one message.
enum Thoughts {
    Kept,
    Dropped,
}

impl Thoughts {
    fn takes(&self, rule: ReasoningRule, block: &Reasoning<'_>, family: Option<&str>) -> bool {
        matches!(self, Thoughts::Kept) && rule.takes(block, family)
    }
}

fn plain_text(text: &Text<'_>, seq: u64) -> Option<Block> {
    (!text.is_blank()).then(|| {
        Block::Text(TextBlock {
            quoted: text.quoted().to_owned(),
            signature: None,
            item_id: None,
            family: None,
            glued: false,
            place: (seq, 0),
        })
    })
}

fn thought(r: &Reasoning<'_>, family: Option<&'static str>) -> Thought {
    let own = |t: &Option<Text<'_>>| t.as_ref().filter(|t| !t.is_blank()).map(|t| t.quoted().to_owned());
    Thought {
        text: r.text.quoted().to_owned(),
        signature: own(&r.signature),
        redacted: own(&r.redacted),
        item_id: own(&r.item_id),
        encrypted: own(&r.encrypted),
        family,
    }
}
