//! One derived request, and what is remembered so that the next one costs only what is new.

use crate::core::sorted::SortedMap;

use sha2::{Digest, Sha256};

use super::build::{Builder, Output, Scope};
use super::media::Blobs;
use super::options::RequestOptions;
use super::overlays::Item;
use super::round::{object, write_list};
use super::{Deriver, EventSource, Prefix, Repair, Validator};
use crate::core::json::{self, Surrogates};
use crate::core::log::hex;
use crate::core::tape::is_blank;

/// How many requests (targets and options) are remembered.
const REMEMBERED: usize = 4;

/// How a request changed since the last one with the same options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestUpdate {
    /// Which remembered request it continues; 0 continues none.
    pub cache: u64,
    /// How many of its former messages stay.
    pub keep: usize,
    /// The messages that follow, each as JSON text.
    pub messages: Vec<String>,
    /// How many of its former repairs stay.
    pub keep_repairs: usize,
    /// The repairs that follow.
    pub repairs: Vec<Repair>,
    /// `system` as JSON text, where it stands beside the messages.
    pub system: Option<String>,
    /// SHA-256 of `JSON.stringify({target, system, messages})`, without `system` where there is none.
    pub digest: String,
}

impl RequestUpdate {
    /// Returns the JSON text of this update.
    pub fn to_text(&self, target: &str) -> String {
        object(|json| {
            json.raw("cache", &self.cache.to_string())
                .text("target", target)
                .raw("keep", &self.keep.to_string())
                .with("messages", |out| write_list(out, &self.messages, |out, m| out.push_str(m)))
                .raw("keepRepairs", &self.keep_repairs.to_string())
                .with("repairs", |out| write_list(out, &self.repairs, |out, r| r.write(out)))
                .maybe("system", self.system.as_deref())
                .text("digest", &self.digest)
        })
    }
}

/// What is remembered of a request: all of it that is closed.
pub(super) struct Remembered {
    id: u64,
    key: String,
    epochs: (u64, u64),
    fed: usize,
    builder: Builder,
    /// A system message that goes first.
    lead: Option<String>,
    messages: usize,
    repairs: usize,
    sha: Sha256,
    validator: Box<dyn Validator>,
}

impl Remembered {
    fn new(id: u64, epochs: (u64, u64), options: &RequestOptions, omit: SortedMap<(u64, usize), ()>) -> Remembered {
        let system = system_of(options);
        let (lead, beside) = if options.target.system_in_list { (system, None) } else { (None, system) };
        let mut sha = Sha256::new();
        let head = object(|json| json.text("target", options.target.name).maybe("system", beside.as_deref()));
        sha.update(head.strip_suffix('}').unwrap_or_default());
        sha.update(",\"messages\":[");
        Remembered {
            id,
            key: options.key.clone(),
            epochs,
            fed: 0,
            builder: Builder::new(omit),
            lead,
            messages: 0,
            repairs: 0,
            sha,
            validator: (options.target.validator)(),
        }
    }

    fn update(&self, advance: Advance, options: &RequestOptions) -> RequestUpdate {
        let Advance { keep, messages, keep_repairs, repairs, digest } = advance;
        let system = system_of(options).filter(|_| !options.target.system_in_list);
        RequestUpdate { cache: self.id, keep, messages, keep_repairs, repairs, system, digest }
    }

    /// Takes in what is new and closes a copy; `None` when media have to give way that were let in before.
    fn advance(
        &mut self,
        items: &[Item],
        scope: &Scope<'_>,
    ) -> std::result::Result<Advance, SortedMap<(u64, usize), ()>> {
        let mut closed = Output::default();
        closed.messages.extend(self.lead.take());
        for item in items.get(self.fed..).unwrap_or_default() {
            self.builder.feed(*item, scope, &mut closed);
        }
        self.fed = items.len();
        let mut tail = Output::default();
        let evicted = self.builder.finish(scope, &mut tail);
        if evicted != self.builder.omit {
            return Err(evicted);
        }
        let (keep, keep_repairs) = (self.messages, self.repairs);
        let first = self.messages == 0;
        hash(&mut self.sha, first, &closed.messages);
        closed.repairs.extend(check(self.validator.as_mut(), &closed.messages));
        self.messages += closed.messages.len();
        self.repairs += closed.repairs.len();
        let mut sha = self.sha.clone();
        hash(&mut sha, self.messages == 0, &tail.messages);
        sha.update("]}");
        let mut validator = self.validator.boxed();
        tail.repairs.extend(check(validator.as_mut(), &tail.messages));
        tail.repairs.extend(validator.end(scope.options.prefill).err().map(|what| fault(&what)));
        let mut messages = closed.messages;
        messages.append(&mut tail.messages);
        let mut repairs = closed.repairs;
        repairs.append(&mut tail.repairs);
        Ok(Advance { keep, messages, keep_repairs, repairs, digest: hex(&sha.finalize()) })
    }
}

struct Advance {
    keep: usize,
    messages: Vec<String>,
    keep_repairs: usize,
    repairs: Vec<Repair>,
    digest: String,
}

fn hash(sha: &mut Sha256, first: bool, messages: &[String]) {
    for (i, message) in messages.iter().enumerate() {
        if !(first && i == 0) {
            sha.update(",");
        }
        sha.update(message);
    }
}

fn fault(what: &str) -> Repair {
    Repair { code: "invalid_request", seq: None, call_id: None, message: format!("the target may refuse this: {what}") }
}

fn check(validator: &mut dyn Validator, messages: &[String]) -> Vec<Repair> {
    let parsed = messages.iter().map(|m| json::parse(m, Surrogates::Refuse));
    let faults = parsed.filter_map(|m| m.map_err(|e| e.to_string()).and_then(|m| validator.message(&m)).err());
    faults.map(|what| fault(&what)).collect()
}

impl Deriver {
    /// Derives the request for a target.
    pub fn request(&mut self, log: &dyn EventSource, options: &RequestOptions, blobs: &dyn Blobs) -> RequestUpdate {
        if let Some(upto) = options.upto.filter(|upto| *upto < log.len()) {
            let prefix = Prefix { log, len: upto };
            let all = RequestOptions { upto: None, ..options.clone() };
            return RequestUpdate { cache: 0, ..Deriver::new().request(&prefix, &all, blobs) };
        }
        self.read(log);
        if let Some(most) = options.max_messages {
            return self.windowed(log, options, blobs, most);
        }
        let at = self.requests.iter().position(|r| r.key == options.key);
        let known = at.map(|at| self.requests.remove(at));
        let (known, update) = self.build(log, &self.projection.items, options, blobs, known);
        self.next_request = self.next_request.max(known.id);
        self.requests.insert(0, known);
        self.requests.truncate(REMEMBERED);
        update
    }

    /// Forgets what was rendered, for when blobs are at hand that were not.
    pub fn forget_requests(&mut self) {
        self.requests.clear();
    }

    /// A request of the newest messages only. The window moves, so nothing of it is remembered.
    fn windowed(
        &self,
        log: &dyn EventSource,
        options: &RequestOptions,
        blobs: &dyn Blobs,
        most: usize,
    ) -> RequestUpdate {
        let seqs = self.message_seqs();
        let from = self.round_start(&seqs, seqs.len().saturating_sub(most));
        // A summary stands for all before it: it stays.
        let summary = seqs.first().filter(|s| log.event(**s).is_some_and(|e| e.kind == "session/compacted")).copied();
        let first = seqs.get(from).copied().filter(|_| from > 0).unwrap_or(0);
        let kept = self.projection.items.iter().filter(|i| i.seq >= first || Some(i.seq) == summary);
        let items: Vec<Item> = kept.copied().collect();
        let (_, mut update) = self.build(log, &items, options, blobs, None);
        let left_out = from - usize::from(from > 0 && summary.is_some());
        if left_out > 0 {
            let message = format!("{left_out} older messages are left out, as the caller asked");
            update.repairs.push(Repair { code: "max_messages", seq: None, call_id: None, message });
        }
        RequestUpdate { cache: 0, ..update }
    }

    fn build(
        &self,
        log: &dyn EventSource,
        items: &[Item],
        options: &RequestOptions,
        blobs: &dyn Blobs,
        known: Option<Remembered>,
    ) -> (Remembered, RequestUpdate) {
        let epochs = (self.projection.epoch, self.pairing.epoch);
        let scope = Scope { log, pairing: &self.pairing, options, blobs };
        let mut known = known.filter(|k| k.epochs == epochs);
        let mut omit = SortedMap::new();
        let mut id = self.next_request + 1;
        // Twice at most: which media give way depends on the media alone, not on what gave way before.
        loop {
            let mut current =
                known.take().unwrap_or_else(|| Remembered::new(id, epochs, options, std::mem::take(&mut omit)));
            match current.advance(items, &scope) {
                Ok(advance) => {
                    let update = current.update(advance, options);
                    return (current, update);
                }
                Err(evicted) => {
                    id += 1;
                    omit = evicted;
                }
            }
        }
    }
}

/// The system text as JSON, when it says anything.
fn system_of(options: &RequestOptions) -> Option<String> {
    options.system.as_ref().filter(|s| !is_blank(s)).map(|s| (options.target.system)(s))
}
