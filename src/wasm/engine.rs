//! Sessions for the shell.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::cost::RawPriceTable;
use super::env::{Shared, header};
use super::error::throw;
use super::interop::export_text;
use super::scrub::{RawChain, RawScrubStream};
use crate::core::cost::session::{Pricing, UsageState, session_usage};
use crate::core::derive::{self, Deriver, Shelf};
use crate::core::error::{Error, Kind, Result};
use crate::core::event::{self, Declaration};
use crate::core::id::{EventId, IdSource};
use crate::core::interop::{Format, Outgoing};
use crate::core::json::{self, Object, Surrogates, Value};
use crate::core::log::{NewEvent, Salt, line};
use crate::core::session::rescrub::{self, StoredEvent};
use crate::core::session::{Boundary, Closer, Session};

/// Lines of one write are made in the same place every time, up to so many bytes: to touch new memory costs more than they do.
const MAX_SCRATCH: usize = 2 * 1024 * 1024;

/// One session: its log and what is projected from it.
#[wasm_bindgen]
pub struct RawSession {
    env: Rc<Shared>,
    session: RefCell<Session>,
    deriver: RefCell<Deriver>,
    blobs: RefCell<Shelf>,
    usage: RefCell<UsageState>,
    /// Ids and salts that were drawn for events to come.
    drawn: RefCell<VecDeque<(EventId, Salt)>>,
}

impl RawSession {
    pub(super) fn wrap(env: Rc<Shared>, session: Session) -> RawSession {
        let usage = RefCell::new(UsageState::new(Pricing::Stored));
        RawSession {
            env,
            session: RefCell::new(session),
            deriver: RefCell::default(),
            blobs: RefCell::default(),
            usage,
            drawn: RefCell::default(),
        }
    }

    /// Brings the sums up to date; what was taken back or rewritten is counted anew.
    fn count(&self) {
        let session = self.session.borrow();
        let mut usage = self.usage.borrow_mut();
        let prices = self.env.prices.borrow();
        if usage.events() > session.log().len() {
            *usage = UsageState::new(Pricing::Stored);
        }
        for event in session.log().range(usage.events(), session.log().len()) {
            usage.push(event, &prices);
        }
    }

    /// Works out what stands beside a payload: the price of a step, so that later prices never rewrite history.
    fn note(&self, kind: &str, data: &str, at: i64) -> Option<String> {
        if !matches!(kind, "step/end" | "usage") {
            return None;
        }
        self.count();
        self.usage.borrow().note(kind, data, at, &self.env.prices.borrow())
    }

    /// Puts an event at the end, under the next of the ids that were drawn; returns its seq.
    fn put_next(&self, kind: &str, data: &str, at: f64) -> std::result::Result<f64, JsValue> {
        // Before anything else: a caller's random source may come back here.
        let drawn = self.drawn.borrow_mut().pop_front();
        let (id, salt) = drawn.map_or_else(|| self.draw(), Ok)?;
        let at = at as i64;
        let note = self.note(kind, data, at);
        let event = NewEvent { id, at, kind, data, note: note.as_deref(), salt, was: None, extra: None };
        Ok(self.session.borrow_mut().append(&event) as f64)
    }

    fn draw(&self) -> std::result::Result<(EventId, Salt), JsValue> {
        let id = self.env.with_ids(IdSource::next_id)?;
        Ok((id, self.env.take()?))
    }

    /// After events were taken back or put elsewhere.
    fn recount(&self) {
        *self.usage.borrow_mut() = UsageState::new(Pricing::Stored);
    }
}

#[wasm_bindgen]
impl RawSession {
    /// Returns the header as JSON text.
    pub fn header(&self) -> String {
        self.session.borrow().header().to_text()
    }

    /// Returns the number of events.
    pub fn len(&self) -> f64 {
        self.session.borrow().log().len() as f64
    }

    /// Draws ids for the next `count` events and returns them in one text, in order: a text that crosses for each event costs
    /// more than the rest of its append.
    pub fn draw_ids(&self, count: u32) -> std::result::Result<String, JsValue> {
        let drawn = (0..count).map(|_| self.draw()).collect::<std::result::Result<Vec<_>, JsValue>>()?;
        self.drawn.borrow_mut().extend(&drawn);
        Ok(drawn.iter().map(|(id, _)| id.to_string()).collect())
    }

    /// Appends an event whose payload is JSON text in stored form, and returns its seq.
    pub fn append(&self, kind: &str, data: &str, at: f64) -> std::result::Result<f64, JsValue> {
        self.put_next(kind, data, at)
    }

    /// Appends events of built-in types: each line of `texts` is a payload, and `rows` has the number of its type (see
    /// `raw_event_class`) and its time.
    pub fn append_lines(&self, texts: &str, rows: &[f64]) -> std::result::Result<(), JsValue> {
        let mut lines = texts.split('\n');
        for (row, data) in rows.chunks_exact(2).zip(lines.by_ref()) {
            if let [number, at] = row {
                self.put_next(event::name_of(*number as u32), data, *at)?;
            }
        }
        // JSON text has no line feeds, so this cannot be; but payloads under each other's ids would be worse than no session.
        assert!(lines.next().is_none(), "a payload is one line");
        Ok(())
    }

    /// Takes back the events from `len` on; only ones that nobody has seen.
    pub fn truncate(&self, len: f64) {
        self.session.borrow_mut().truncate(len as u64);
        self.recount();
    }

    /// Replays a seed: JSON text of an array of events.
    pub fn seed(&self, events: &str, count: usize) -> std::result::Result<(), JsValue> {
        let mut salts = self.env.salts(count)?;
        self.session.borrow_mut().seed(events, || salts.next().unwrap_or_default()).map_err(throw)
    }

    /// Appends stored lines, the first of which is line `number` of the whole. Returns the number of the line after them.
    pub fn load(&self, lines: Vec<u8>, number: f64) -> std::result::Result<f64, JsValue> {
        // Lines of ours carry their salts; one drawn for the rest is enough, since it is shared by foreign lines only.
        let salt: Salt = self.env.take()?;
        Ok(self.session.borrow_mut().load(lines, number as u64, || salt) as f64)
    }

    /// Appends stored lines of which some may have been loaded before.
    pub fn load_again(&self, lines: &[u8]) -> std::result::Result<(), JsValue> {
        let salt: Salt = self.env.take()?;
        self.session.borrow_mut().load_again(lines, || salt);
        Ok(())
    }

    /// Puts the events that were left out at opening before the others; `earlier` is empty afterwards.
    pub fn prepend(&self, earlier: &RawSession) -> std::result::Result<(), JsValue> {
        let salt: Salt = self.env.take()?;
        let events = earlier.session.replace(Session::new(Object::default()));
        self.session.borrow_mut().prepend(events, salt);
        self.deriver.borrow_mut().reread();
        self.recount();
        Ok(())
    }

    /// Returns the seq of the newest compaction among the events `from..to` and the first seq that derivation needs with it.
    pub fn checkpoint(&self, from: f64, to: f64) -> Option<Vec<f64>> {
        let (seq, first) = self.session.borrow().checkpoint(from as u64, to as u64)?;
        Some(vec![seq as f64, first as f64])
    }

    /// Says whether a rewind goes back to before the event at `seq`.
    pub fn is_rewound_before(&self, seq: f64) -> bool {
        self.session.borrow().is_rewound_before(seq as u64)
    }

    /// Fills up to `len` with placeholders for events that were lost.
    pub fn pad(&self, len: f64) -> std::result::Result<(), JsValue> {
        let salt: Salt = self.env.take()?;
        self.session.borrow_mut().pad_lost(len as u64, salt);
        Ok(())
    }

    /// Takes in what another writer stored from `from` on, up to `end` at least, and puts the events that stood there after it.
    /// Returns how many events the store holds.
    pub fn rebase(&self, from: f64, lines: &[u8], end: f64) -> std::result::Result<f64, JsValue> {
        let salt: Salt = self.env.take()?;
        let stored = self.session.borrow_mut().rebase(from as u64, lines, end as u64, || salt);
        self.recount();
        Ok(stored as f64)
    }

    /// Returns the id of an event.
    pub fn event_id(&self, seq: f64) -> Option<String> {
        self.session.borrow().log().event(seq as u64).map(|e| e.id.to_string())
    }

    /// Returns the seq of an event by its id, searched from the end; infinity when there is none.
    pub fn seq_of(&self, id: &str) -> f64 {
        let session = self.session.borrow();
        let log = session.log();
        let found = (0..log.len()).rev().find(|seq| log.event(*seq).is_some_and(|e| e.id.to_string() == id));
        found.map_or(f64::INFINITY, |seq| seq as f64)
    }

    /// Scrubs everything once more and returns how many payloads changed. The digest chain still holds afterwards.
    pub fn rescrub(&self, chain: &RawChain) -> std::result::Result<f64, JsValue> {
        let events: Vec<StoredEvent> = {
            let session = self.session.borrow();
            let owned = |e: event::EventView<'_>| StoredEvent { seq: e.seq, kind: e.kind.into(), data: e.data.into() };
            session.log().iter().map(owned).collect()
        };
        // A caller's scrubber may run now: nothing is borrowed.
        let mut changes = rescrub::plan(&events, &chain.now()).map_err(|e| chain.fail(e))?;
        if changes.is_empty() {
            return Ok(0.0);
        }
        let count = changes.len();
        let mut salts = self.env.salts(count)?;
        let rewrite =
            |e: event::EventView<'_>| Ok(changes.remove(&e.seq).map(|data| (data, salts.next().unwrap_or_default())));
        self.session.borrow_mut().rewrite(rewrite).map_err(throw)?;
        *self.deriver.borrow_mut() = Deriver::new();
        self.recount();
        Ok(count as f64)
    }

    /// Takes out events whose payload is not JSON after all; returns how many there were.
    pub fn quarantine(&self) -> usize {
        let count = self.session.borrow_mut().quarantine();
        if count > 0 {
            *self.deriver.borrow_mut() = Deriver::new();
            self.recount();
        }
        count
    }

    /// Returns the damaged lines as JSON text: `[{line, bytes}]`.
    pub fn damaged(&self) -> String {
        let session = self.session.borrow();
        let rows = session
            .damaged()
            .into_iter()
            .map(|d| Object::from([("line", Value::from(d.line)), ("bytes", d.bytes.len().into())]).into());
        Value::Array(rows.collect()).to_text()
    }

    /// Returns the damaged lines' bytes, each with a line feed.
    pub fn damaged_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for damaged in self.session.borrow().damaged() {
            out.extend_from_slice(&damaged.bytes);
            out.push(b'\n');
        }
        out
    }

    /// Cuts what is written in one go into segments: where each of them ends, the last one at `to`.
    pub fn segment_ends(&self, from: f64, to: f64) -> Vec<f64> {
        let sizes: Vec<usize> = self.session.borrow().line_sizes(from as u64, to as u64).collect();
        crate::store::layout::cuts(&sizes).into_iter().map(|count| from + count as f64).collect()
    }

    /// Returns stored lines from `from` up to but not including `to`.
    pub fn lines(&self, from: f64, to: f64) -> Uint8Array {
        let session = self.session.borrow();
        let mut scratch = self.env.scratch.take();
        scratch.clear();
        if session.write_lines(from as u64, to as u64, &mut scratch) {
            let out = Uint8Array::from(scratch.as_bytes());
            if scratch.capacity() <= MAX_SCRATCH {
                self.env.scratch.replace(scratch);
            }
            return out;
        }
        let pieces = session.pieces(from as u64, to as u64);
        let out = Uint8Array::new_with_length(pieces.iter().map(|piece| piece.len() as u32).sum());
        let mut at = 0;
        for piece in &pieces {
            let end = at + piece.len() as u32;
            out.subarray(at, end).copy_from(piece.as_bytes());
            at = end;
        }
        out
    }

    /// Returns events as JSON text of an array.
    pub fn events(&self, from: f64, to: f64) -> String {
        self.session.borrow().events_json(from as u64, to as u64)
    }

    /// Returns the events of some types, named with commas between them, as JSON text of an array.
    pub fn events_of(&self, kinds: &str) -> String {
        self.session.borrow().events_of(&kinds.split(',').collect::<Vec<_>>())
    }

    /// Returns the payload of an event as JSON text.
    pub fn data(&self, seq: f64) -> Option<String> {
        self.session.borrow().log().event(seq as u64).map(|e| e.data.to_owned())
    }

    /// Returns the sums of usage and cost as JSON text.
    pub fn usage(&self) -> String {
        self.count();
        self.usage.borrow().to_json()
    }

    /// Returns what the log would cost with other prices; the history stays as it is.
    pub fn reprice(&self, prices: &RawPriceTable) -> String {
        let session = self.session.borrow();
        session_usage(session.log().iter(), prices.table(), Pricing::Reprice).to_json()
    }

    /// Returns what changed among the messages since the last call: how many stay, and the events that make those behind
    /// them; nothing when nothing changed.
    pub fn derive_update(&self) -> Option<Vec<f64>> {
        super::derive::update(self.session.borrow().log(), &mut self.deriver.borrow_mut())
    }

    /// Returns which of the first `upto` events make the messages of these.
    pub fn message_seqs(&self, upto: f64) -> Vec<f64> {
        let seqs = derive::message_seqs(self.session.borrow().log(), upto as u64);
        seqs.into_iter().map(|seq| seq as f64).collect()
    }

    /// Returns the messages that these events make, as JSON text of an array.
    pub fn messages_of(&self, seqs: &[f64]) -> String {
        let seqs: Vec<u64> = seqs.iter().map(|seq| *seq as u64).collect();
        let mut out = String::new();
        derive::write_messages(self.session.borrow().log(), &seqs, &mut out);
        out
    }

    /// Returns how the request for these options (JSON text) changed since the last call.
    pub fn derive_request(&self, options: &str) -> std::result::Result<String, JsValue> {
        let (session, blobs) = (self.session.borrow(), self.blobs.borrow());
        super::derive::request_text(session.log(), &mut self.deriver.borrow_mut(), options, &blobs).map_err(throw)
    }

    /// Compares what is about to be sent with what the log yields: a request when there are options, else messages.
    pub fn check_outbound(&self, outbound: &str, options: Option<String>) -> std::result::Result<(), JsValue> {
        let (session, blobs) = (self.session.borrow(), self.blobs.borrow());
        super::derive::check(session.log(), outbound, options.as_deref(), &blobs).map_err(throw)
    }

    /// Returns the blobs that derivation needs and was not given yet.
    pub fn wanted_blobs(&self) -> Vec<String> {
        // Most logs name none: no need to read one from end to end as soon as it is loaded.
        if !self.session.borrow().log().may_name_blobs() {
            return Vec::new();
        }
        self.deriver.borrow_mut().wanted_blobs(self.session.borrow().log(), &self.blobs.borrow())
    }

    /// Gives derivation the bytes of a blob, or the word that there are none.
    pub fn put_blob(&self, name: &str, bytes: Option<Vec<u8>>) {
        self.blobs.borrow_mut().put(name, bytes.as_deref());
        self.deriver.borrow_mut().forget_requests();
    }

    /// Returns every blob that a message of the log names, seen or not.
    pub fn blob_names(&self) -> Vec<String> {
        let session = self.session.borrow();
        derive::blobs_of(session.log(), 0..session.log().len())
    }

    /// Estimates the tokens of all that is seen, from the last count of a provider on.
    pub fn tokens(&self) -> f64 {
        let session = self.session.borrow();
        let anchor = derive::last_count(session.log());
        self.deriver.borrow_mut().tokens(session.log(), anchor) as f64
    }

    /// Says where to cut: how many messages are covered, and `uptoSeq`; nothing when there is nothing to cover.
    pub fn cut(&self, keep_tokens: Option<f64>) -> Option<Vec<f64>> {
        let session = self.session.borrow();
        let cut = self.deriver.borrow_mut().cut(session.log(), keep_tokens.map(|n| n as u64))?;
        Some(vec![cut.covered as f64, cut.upto_seq as f64])
    }

    /// Writes the session in a foreign format: JSON text `{text, lost}`; `record` is its stored record.
    pub fn export_as(&self, format: &str, record: &str) -> std::result::Result<String, JsValue> {
        let session = self.session.borrow();
        let write = || {
            (Format::named(format)?.write)(&Outgoing {
                id: session.id(),
                created_at: session.header().get("createdAt").and_then(Value::as_i64).unwrap_or_default(),
                cwd: session.header().get("cwd").and_then(Value::as_str),
                title: session.state().title(),
                record,
                log: session.log(),
            })
        };
        write().map(export_text).map_err(throw)
    }

    /// Returns the chain digest of the whole log.
    pub fn head(&self) -> String {
        crate::core::log::hex(&self.session.borrow().log().head())
    }

    /// Returns the first seq that does not fit the chain.
    pub fn verify(&self) -> Option<f64> {
        self.session.borrow().verify().map(|seq| seq as f64)
    }

    /// Returns the latest title.
    pub fn title(&self) -> Option<String> {
        self.session.borrow().state().title().map(ToOwned::to_owned)
    }

    /// Returns the parent's id.
    pub fn parent(&self) -> Option<String> {
        self.session.borrow().parent().map(ToOwned::to_owned)
    }

    /// Returns the seq of the first user message.
    pub fn first_user(&self) -> Option<f64> {
        self.session.borrow().state().first_user().map(|seq| seq as f64)
    }

    /// Returns the open turn's number.
    pub fn open_turn(&self) -> Option<f64> {
        self.session.borrow().state().open_turn().map(|t| t.turn as f64)
    }

    /// Returns the calls without a result as JSON text.
    pub fn pending_calls(&self) -> String {
        let calls = self.session.borrow().pending_calls().into_iter().map(|call| {
            let state = if call.started { "outcome-unknown" } else { "not-started" };
            Object::from([("id", Value::from(call.id)), ("name", call.name.into()), ("state", state.into())]).into()
        });
        Value::Array(calls.collect()).to_text()
    }

    /// Returns the events that close what is open, as JSON text `[{type, data}]`.
    pub fn closers(&self) -> String {
        closers_json(self.session.borrow().closers())
    }

    /// Returns how many leading events a fork with these options (JSON text) takes.
    pub fn boundary(&self, options: &str) -> std::result::Result<f64, JsValue> {
        let boundary = boundary(options).map_err(throw)?;
        self.session.borrow().boundary(&boundary).map(|count| count as f64).map_err(throw)
    }

    /// Makes a child of the first `count` events; its closers are then owed (`closers`).
    pub fn fork(
        &self,
        count: f64,
        id: &str,
        options: &str,
        allow_open_turn: bool,
    ) -> std::result::Result<RawSession, JsValue> {
        let header = header(id, options).map_err(throw)?;
        let (child, _) = self.session.borrow_mut().fork(count as u64, header, allow_open_turn).map_err(throw)?;
        let child = RawSession::wrap(self.env.clone(), child);
        *child.blobs.borrow_mut() = self.blobs.borrow().clone();
        Ok(child)
    }
}

/// Deltas of one stream on their way into a log: one call per delta scrubs it, and stores what is decided.
#[wasm_bindgen]
pub struct RawDeltas {
    /// The payload up to its text.
    head: String,
    stream: Option<RawScrubStream>,
}

#[wasm_bindgen]
impl RawDeltas {
    /// Opens a stream; `head` is the payload (JSON text) up to its text, `stream` what scrubs it.
    #[wasm_bindgen(constructor)]
    pub fn new(head: String, stream: Option<RawScrubStream>) -> RawDeltas {
        RawDeltas { head, stream }
    }

    /// Takes a piece (with `last`: what is left as well) and appends what is decided. Returns its text, empty when that is the
    /// piece; nothing when nothing is decided.
    pub fn push(
        &self,
        session: &RawSession,
        piece: &str,
        at: f64,
        last: bool,
    ) -> std::result::Result<Option<String>, JsValue> {
        // A caller's scrubber may run now: nothing is borrowed but the stream.
        let scrubbed = self.stream.as_ref().map(|stream| stream.take(piece, last)).transpose()?;
        let text = scrubbed.as_deref().unwrap_or(piece);
        if text.is_empty() {
            return Ok(None);
        }
        let mut data = String::with_capacity(self.head.len() + text.len() + 16);
        data.push_str(&self.head);
        json::write_string(&mut data, text);
        data.push('}');
        session.put_next("assistant/chunk", &data, at)?;
        Ok(Some(scrubbed.filter(|text| text != piece).unwrap_or_default()))
    }
}

fn closers_json(closers: Vec<Closer>) -> String {
    let rows =
        closers.into_iter().map(|c| Object::from([("type", Value::from(c.kind)), ("data", c.data.into())]).into());
    Value::Array(rows.collect()).to_text()
}

fn boundary(options: &str) -> Result<Boundary> {
    let options = json::parse(options, Surrogates::Refuse)?;
    let count = |key: &str| -> Result<Option<u64>> {
        match options.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_i64().and_then(|n| u64::try_from(n).ok()) {
                Some(n) => Ok(Some(n)),
                None => Err(Error::new(Kind::InvalidBoundary, format!("{key} must be a whole number from 0"))),
            },
        }
    };
    Ok(Boundary {
        count: count("count")?,
        through_seq: count("throughSeq")?,
        message_seq: count("messageSeq")?,
        allow_open_turn: options.get("allowOpenTurn").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// A payload is one object; the shell has checked that it is lossless.
fn check_payload(kind: &str, data: &str) -> Result<()> {
    event::check_known(kind)?;
    if !data.starts_with('{') {
        return Err(Error::new(Kind::InvalidEvent, "the data of an event must be an object"));
    }
    Ok(())
}

/// Checks the type and payload (JSON text) of an event.
#[wasm_bindgen]
pub fn raw_check_event(kind: &str, data: &str) -> std::result::Result<(), JsValue> {
    check_payload(kind, data).map_err(throw)
}

/// Declares an event type.
#[wasm_bindgen]
pub fn raw_declare_event(kind: &str, durable: bool, ignorable: bool) -> std::result::Result<(), JsValue> {
    event::declare(kind, Declaration { durable, ignorable }).map_err(throw)
}

/// Says how a type is handled: 0 unknown, 1 batched, 2 written at once; plus 4 when it may be ignored; plus 8 times the number
/// of a built-in type, from 1.
#[wasm_bindgen]
pub fn raw_event_class(kind: &str) -> u32 {
    let number = event::number_of(kind).unwrap_or(0);
    let flags = |d: Declaration| if d.durable { 2 } else { 1 } + if d.ignorable { 4 } else { 0 };
    event::declaration(kind).map_or(0, |d| flags(d) + 8 * number)
}

/// Returns the text of one member of an object (JSON text), as it is written there.
#[wasm_bindgen]
pub fn raw_member(text: &str, key: &str) -> std::result::Result<Option<String>, JsValue> {
    let members = line::members(text).map_err(throw)?;
    Ok(members.into_iter().find(|(name, _)| name == key).map(|(_, text)| text.to_owned()))
}

/// Checks a session id.
#[wasm_bindgen]
pub fn raw_check_session_id(id: &str) -> std::result::Result<(), JsValue> {
    crate::core::id::check_session_id(id).map_err(throw)
}

/// Returns the version of this package.
#[wasm_bindgen]
pub fn raw_version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
