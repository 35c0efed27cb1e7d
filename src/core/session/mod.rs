//! One session: header, log, and what is projected from it as events arrive.

mod closers;
pub mod rescrub;
mod state;

use std::borrow::Cow;
use std::cell::RefCell;

use super::error::{Error, Kind, Result};
use super::event::{self, EventView};
use super::id::IdSource;
use super::json::{self, Object, Surrogates, Tokens, Value};
use super::log::line::{self, Beside, Line};
use super::log::{Log, NewEvent, Salt, Verdict};
use super::sorted::SortedMap;
use super::time::Millis;

pub use closers::{Closer, PendingCall};
pub use state::State;

/// Where a fork cuts its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boundary {
    /// So many leading events.
    pub count: Option<u64>,
    /// Up to and including this event.
    pub through_seq: Option<u64>,
    /// Up to and including this message.
    pub message_seq: Option<u64>,
    /// Whether a turn may be cut in the middle; the child then gets closers.
    pub allow_open_turn: bool,
}

/// A line that could not be read: where it stood, and its bytes as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Line number in what was read, from 1.
    pub line: u64,
    /// The bytes, without the line feed.
    pub bytes: Vec<u8>,
}

/// So many events may be missing from what is loaded; more are a line that lies about its number, and would cost memory.
const MAX_LOST: u64 = 100_000;

/// Fewer bytes of stored lines than this are put behind the others instead of being kept as a segment of their own.
const ADOPTED_BYTES: usize = 64 * 1024;

/// More than a line has beside payload and note.
const LINE_BYTES: usize = 300;

/// One session in memory.
#[derive(Debug)]
pub struct Session {
    header: Object,
    log: Log,
    state: State,
    damaged: RefCell<Vec<Damaged>>,
    /// How many more events may turn out to be lost.
    room: u64,
}

impl Session {
    /// Makes an empty session.
    pub fn new(header: Object) -> Self {
        Session { header, log: Log::new(), state: State::default(), damaged: RefCell::default(), room: MAX_LOST }
    }

    /// Makes a session whose events before `first` are read later (see [`Session::prepend`]).
    pub fn starting_at(header: Object, first: u64) -> Self {
        Session { log: Log::starting_at(first), ..Session::new(header) }
    }

    /// Puts the events that were read later before the others. What is missing at their end was lost.
    pub fn prepend(&mut self, mut earlier: Session, salt: Salt) {
        earlier.truncate(self.log.first());
        earlier.pad(self.log.first(), salt);
        self.log.prepend(earlier.log);
        let later = self.damaged.replace(earlier.damaged.into_inner());
        self.keep_damaged(later);
        self.rebuild_state();
    }

    /// Returns the header.
    pub fn header(&self) -> &Object {
        &self.header
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        self.header.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns what is projected from the log.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Appends an event whose payload is already in stored form.
    pub fn append(&mut self, event: &NewEvent<'_>) -> u64 {
        let seq = self.log.append(event);
        self.state.see(seq, event.kind, event.data);
        seq
    }

    /// Takes back events that nobody has seen.
    pub fn truncate(&mut self, len: u64) {
        self.log.truncate(len);
        self.rebuild_state();
    }

    fn rebuild_state(&mut self) {
        let mut state = State::default();
        for event in self.log.iter() {
            state.see(event.seq, event.kind, event.data);
        }
        self.state = state;
    }

    /// Replaces payloads (see [`Log::rewritten`]).
    pub fn rewrite(&mut self, rewrite: impl FnMut(EventView<'_>) -> Result<Option<(String, Salt)>>) -> Result<()> {
        let digests: Vec<_> = (0..self.log.len()).map(|seq| self.log.digest(seq)).collect();
        let mut log = self.log.rewritten(rewrite)?;
        for (seq, digest) in (0u64..).zip(digests) {
            if let Some(digest) = digest {
                log.expect_digest(seq, digest);
            }
        }
        self.log = log;
        self.rebuild_state();
        Ok(())
    }

    /// Replays a seed: JSON text of an array of events, contiguous from 0.
    pub fn seed(&mut self, events: &str, mut salt: impl FnMut() -> Salt) -> Result<()> {
        let invalid = |index: usize, why: &str| {
            Error::new(Kind::InvalidSeed, format!("event {index} of the seed: {why}")).with("index", index)
        };
        let list = json::parse_tokens(events, Tokens::new(events, Surrogates::Refuse).around(2))?;
        let list = list.as_array().ok_or_else(|| invalid(0, "a seed must be a list of events"))?;
        for (index, event) in list.iter().enumerate() {
            let text = event.to_text();
            let line = line::read(&text).map_err(|e| invalid(index, e.message()))?;
            if line.seq != self.log.len() {
                return Err(invalid(index, "seqs must be contiguous from 0"));
            }
            event::check_known(&line.kind).map_err(|e| invalid(index, e.message()))?;
            self.append(&line.event(salt()));
        }
        Ok(())
    }

    /// Appends stored lines, the first of which is line `number` of the whole. Returns the number of the line after them.
    ///
    /// A damaged line costs itself alone: it is kept and listed by [`Session::damaged`]. Lines that this session already
    /// holds are passed over; another event of the same number is damage. `salt` stands in for lines that carry none.
    pub fn load(&mut self, bytes: Vec<u8>, number: u64, salt: impl FnMut() -> Salt) -> u64 {
        if bytes.len() < ADOPTED_BYTES {
            return self.load_lines(&bytes, number, salt);
        }
        let from = self.log.len();
        let refused = match String::from_utf8(bytes) {
            Ok(text) => self.log.adopt(text).err().map(String::into_bytes),
            Err(error) => Some(error.into_bytes()),
        };
        if let Some(bytes) = refused {
            return self.load_lines(&bytes, number, salt);
        }
        for event in self.log.range(from, self.log.len()) {
            self.state.see(event.seq, event.kind, event.data);
        }
        number + (self.log.len() - from)
    }

    fn load_lines(&mut self, bytes: &[u8], mut number: u64, mut salt: impl FnMut() -> Salt) -> u64 {
        // What stands behind the last line feed is a line as well, if anything does.
        for raw in bytes.split_inclusive(|b| *b == b'\n') {
            let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
            // Another system may have ended the lines its own way.
            let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
            let read = std::str::from_utf8(raw).ok().and_then(|text| line::read(text).ok());
            match read {
                _ if raw.is_empty() => {}
                Some(line) if self.log.event(line.seq).is_some_and(|held| held.id == line.id) => {}
                Some(line) if (0..=self.room).contains(&line.seq.wrapping_sub(self.log.len())) => {
                    self.room -= line.seq - self.log.len();
                    self.take(&line, salt());
                }
                // Nothing to read, a number that another event has, or one from nowhere.
                _ => self.damaged.borrow_mut().push(Damaged { line: number, bytes: raw.to_vec() }),
            }
            number += 1;
        }
        number
    }

    /// Appends stored lines of which some may have been loaded before: damaged ones among those are not listed again.
    pub fn load_again(&mut self, bytes: &[u8], salt: impl FnMut() -> Salt) {
        let known = self.damaged.take();
        self.load_lines(bytes, 1, salt);
        // They come in the order of the first time, so each is found where the last search ended.
        let mut at = 0;
        let mut fresh = self.damaged.replace(known.clone());
        fresh.retain(|line| {
            let (before, after) = known.split_at(at.min(known.len()));
            let found = after.iter().chain(before).position(|held| held.bytes == line.bytes);
            at = found.map_or(at, |skipped| (at + skipped + 1) % known.len());
            found.is_none()
        });
        self.keep_damaged(fresh);
    }

    /// Takes one stored line; a gap before it (a lost line) is filled so that later events keep their numbers.
    fn take(&mut self, line: &Line<'_>, salt: Salt) {
        self.pad(line.seq, salt);
        let seq = self.append(&line.event(salt));
        // Lines of ours have a salt and a digest; one that lost its digest fits no chain. Others' lines have neither.
        let Some(digest) = line.digest.or(line.salt.map(|_| [0; 32])) else { return };
        if let Some(before) = seq.checked_sub(1) {
            // Where others' lines came first, their links are made up for, or this digest would have no place in the chain.
            self.log.digest(before);
        }
        self.log.expect_digest(seq, digest);
    }

    /// Fills up to `len` with placeholders for lost events, so that their numbers are never given again.
    pub fn pad(&mut self, len: u64, salt: Salt) {
        if self.log.len() >= len {
            return;
        }
        while self.log.len() < len {
            self.append(&lost(salt));
        }
        // Now the digests of the events behind them are taken over again, as they are stored.
        self.log.digest(len - 1);
    }

    /// The same for a number that only the store names: one from nowhere is passed over.
    pub fn pad_lost(&mut self, len: u64, salt: Salt) {
        let count = len.saturating_sub(self.log.len());
        if count <= self.room {
            self.room -= count;
            self.pad(len, salt);
        }
    }

    /// Takes out events whose payload is not JSON after all, and lists their lines as damaged; returns how many there were.
    ///
    /// Lines of our own form are loaded without a look into the payload, so damage that keeps their length shows only when
    /// someone reads it. It costs that event alone then.
    pub fn quarantine(&mut self) -> usize {
        let mut bad = Vec::new();
        let mut log = Log::starting_at(self.log.first());
        for event in self.log.iter() {
            let seq = event.seq;
            let salt = self.log.salt(seq);
            if json::check(event.data, Surrogates::Replace).is_ok() {
                let EventView { id, at, kind, data, note, .. } = event;
                log.append(&NewEvent {
                    id,
                    at,
                    kind,
                    data,
                    note,
                    salt,
                    was: self.log.was(seq),
                    extra: self.log.extra(seq),
                });
            } else {
                let bytes = self.lines(seq, seq + 1).trim_end_matches('\n').as_bytes().to_vec();
                bad.push(Damaged { line: seq + 1, bytes });
                log.append(&lost(salt));
            }
            if let Some(digest) = self.log.digest(seq) {
                log.expect_digest(seq, digest);
            }
        }
        let count = bad.len();
        if count > 0 {
            self.log = log;
            self.keep_damaged(bad);
            self.rebuild_state();
        }
        count
    }

    /// Takes in what another writer stored from `from` on, and puts the events that stood there after it.
    ///
    /// Returns how many events the store holds, at least `end`. An event of ours that is among them is not put in again.
    pub fn rebase(&mut self, from: u64, stored: &[u8], end: u64, mut salt: impl FnMut() -> Salt) -> u64 {
        let ours: Vec<OwnedEvent> = self.log.range(from, self.log.len()).map(|e| self.own(&e)).collect();
        self.truncate(from);
        self.load_again(stored, &mut salt);
        self.pad_lost(end, salt());
        let held = self.log.len();
        let stored: SortedMap<_, ()> = self.log.range(from, self.log.len()).map(|e| (e.id, ())).collect();
        for event in ours.iter().filter(|e| !stored.contains_key(&e.id)) {
            self.append(&event.as_new());
        }
        held
    }

    fn own(&self, event: &EventView<'_>) -> OwnedEvent {
        OwnedEvent {
            id: event.id,
            at: event.at,
            kind: event.kind.to_owned(),
            data: event.data.to_owned(),
            note: event.note.map(ToOwned::to_owned),
            salt: self.log.salt(event.seq),
        }
    }

    /// Returns the lines that could not be read.
    pub fn damaged(&self) -> Vec<Damaged> {
        self.damaged.borrow().clone()
    }

    /// Remembers lines that could not be read, so that they survive into the next export.
    pub fn keep_damaged(&self, lines: Vec<Damaged>) {
        self.damaged.borrow_mut().extend(lines);
    }

    /// Returns the events from `from` up to but not including `to` as stored lines.
    pub fn lines(&self, from: u64, to: u64) -> String {
        self.pieces(from, to).concat()
    }

    /// Returns the same in pieces; those that were kept as they came are lent.
    pub fn pieces(&self, from: u64, to: u64) -> Vec<Cow<'_, str>> {
        let to = to.min(self.log.len());
        let mut out = Vec::new();
        let mut seq = from;
        while seq < to && self.log.event(seq).is_some() {
            if let Some((lines, count)) = self.log.stored_lines(seq, to) {
                out.push(lines.into());
                seq += count;
                continue;
            }
            let end = (seq..to).find(|seq| self.log.stored_lines(*seq, to).is_some()).unwrap_or(to);
            let mut made = String::new();
            self.make_lines(seq, end, &mut made);
            out.push(made.into());
            seq = end;
        }
        out
    }

    /// Tells about how many bytes each of these lines takes.
    pub fn line_sizes(&self, from: u64, to: u64) -> impl Iterator<Item = usize> + '_ {
        self.log.range(from, to).map(|event| event.data.len() + event.note.map_or(0, str::len) + LINE_BYTES)
    }

    /// Writes the same into `out`, unless some of it was kept as it came; says whether it did.
    pub fn write_lines(&self, from: u64, to: u64, out: &mut String) -> bool {
        let to = to.min(self.log.len());
        let is_made = (from..to).all(|seq| self.log.stored_lines(seq, to).is_none());
        if is_made {
            self.make_lines(from, to, out);
        }
        is_made
    }

    fn make_lines(&self, from: u64, to: u64, made: &mut String) {
        // In one piece of memory: one that grows is copied again and again, and memory of the module never comes back.
        made.reserve(self.line_sizes(from, to).sum());
        for event in self.log.range(from, to) {
            let seq = event.seq;
            let beside = Beside {
                salt: self.log.salt(seq),
                digest: self.log.digest(seq).unwrap_or_default(),
                was: self.log.was(seq),
                extra: self.log.extra(seq),
            };
            if event.kind != event::LOST {
                line::write(made, &event, &beside);
            }
        }
    }

    /// Appends one event as the JSON text that JavaScript sees.
    pub fn write_event(&self, out: &mut String, event: &EventView<'_>) {
        out.push_str(&format!("{{\"id\":\"{}\",\"sessionId\":\"{}\",\"seq\":{}", event.id, self.id(), event.seq));
        out.push_str(&format!(",\"at\":{},\"type\":", event.at));
        json::write_string(out, event.kind);
        out.push_str(",\"data\":");
        out.push_str(event.data);
        out.push('}');
    }

    /// Returns events as JSON text of an array.
    pub fn events_json(&self, from: u64, to: u64) -> String {
        self.json_of(&mut self.log.range(from, to).filter(|event| event.kind != event::LOST))
    }

    /// Returns the events of some types as JSON text of an array, without reading the payloads of the others.
    pub fn events_of(&self, kinds: &[&str]) -> String {
        self.json_of(&mut self.log.iter().filter(|event| kinds.contains(&event.kind)))
    }

    fn json_of<'a>(&'a self, events: &mut dyn Iterator<Item = EventView<'a>>) -> String {
        let mut out = String::from("[");
        for event in events {
            if out.len() > 1 {
                out.push(',');
            }
            self.write_event(&mut out, &event);
        }
        out.push(']');
        out
    }

    /// Works the digest chain out anew; returns the first seq that does not fit.
    pub fn verify(&self) -> Option<u64> {
        let lost = self.log.iter().find(|e| e.kind == event::LOST).map(|e| e.seq);
        match (self.log.verify(), lost) {
            (Verdict::BrokenAt(seq), Some(lost)) => Some(seq.min(lost)),
            (Verdict::BrokenAt(seq), None) => Some(seq),
            (Verdict::Holds, lost) => lost,
        }
    }

    /// Works out how many leading events a fork takes.
    pub fn boundary(&self, boundary: &Boundary) -> Result<u64> {
        let invalid = |what: &str| Error::new(Kind::InvalidBoundary, what).with("events", self.log.len());
        let given = [boundary.count, boundary.through_seq, boundary.message_seq];
        if given.iter().flatten().count() > 1 {
            return Err(invalid("name one of count, throughSeq and messageSeq"));
        }
        if let Some(seq) = boundary.message_seq {
            let is_message = self.log.event(seq).is_some_and(|e| event::is_message(e.kind));
            if !is_message {
                return Err(invalid("messageSeq must be the seq of a message"));
            }
        }
        let after = boundary.through_seq.or(boundary.message_seq).map(|seq| seq.saturating_add(1));
        let count = boundary.count.or(after).unwrap_or(self.log.len());
        if count > self.log.len() {
            return Err(invalid("the boundary lies beyond the end of the log"));
        }
        Ok(count)
    }

    /// Makes a child of the first `count` events (from [`Session::boundary`]), with closers when a turn is cut.
    pub fn fork(&mut self, count: u64, header: Object, allow_open_turn: bool) -> Result<(Session, Vec<Closer>)> {
        let log = self.log.fork(count);
        let mut child = Session { log, ..Session::new(header) };
        if count == self.log.len() {
            child.state = self.state.clone();
        } else {
            child.rebuild_state();
        }
        if child.state.open_turn().is_none() {
            return Ok((child, Vec::new()));
        }
        if !allow_open_turn {
            return Err(Error::new(
                Kind::OpenTurn,
                "the boundary cuts a turn; pass allowOpenTurn to close it in the child",
            )
            .with("count", count));
        }
        let closers = closers::closers(&child.log, &child.state);
        Ok((child, closers))
    }

    /// Returns the events that close what is open.
    pub fn closers(&self) -> Vec<Closer> {
        if self.state.open_turn().is_none() { Vec::new() } else { closers::closers(&self.log, &self.state) }
    }

    /// Returns the calls that have no result.
    pub fn pending_calls(&self) -> Vec<PendingCall> {
        closers::pending_calls(&self.log, &self.state)
    }

    /// Returns from where a log is enough to derive messages once the events `from..to` stand in it: the seq of the newest
    /// compaction among them, and the first seq that derivation looks at behind it.
    pub fn checkpoint(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let covers = |event: &EventView<'_>| {
            let data = json::parse(event.data, Surrogates::Replace).ok()?;
            let has_summary = data.get("summary").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
            let upto = data.get("uptoSeq").and_then(Value::as_i64).filter(|_| has_summary)?;
            u64::try_from(upto.saturating_add(1)).ok().map(|next| next.min(event.seq))
        };
        let is_compaction = |event: &EventView<'_>| event.kind == "session/compacted";
        let (seq, next) =
            self.log.range(from, to).filter(is_compaction).filter_map(|e| Some((e.seq, covers(&e)?))).last()?;
        // What closes an open turn looks back to its start.
        Some((seq, self.state.open_turn().map_or(next, |turn| turn.start.min(next))))
    }

    /// Says whether a rewind goes back to before the event at `seq`.
    pub fn is_rewound_before(&self, seq: u64) -> bool {
        self.log.iter().filter(|event| event.kind == "session/rewound").any(|event| {
            let upto = json::parse(event.data, Surrogates::Replace).ok();
            upto.and_then(|data| data.get("uptoSeq").and_then(Value::as_i64)).is_none_or(|upto| upto < seq as i64)
        })
    }

    /// Returns the parent: the last fork's source, else what the creation says, else the header's.
    pub fn parent(&self) -> Option<&str> {
        self.state.parent().or_else(|| self.header.get("parentSession").and_then(Value::as_str))
    }
}

/// What stands in the place of an event that was lost.
fn lost(salt: Salt) -> NewEvent<'static> {
    let id = super::id::EventId(0);
    NewEvent { id, at: 0, kind: event::LOST, data: "{}", note: None, salt, was: None, extra: None }
}

/// An event taken out of a log to be put in again.
struct OwnedEvent {
    id: super::id::EventId,
    at: Millis,
    kind: String,
    data: String,
    note: Option<String>,
    salt: Salt,
}

impl OwnedEvent {
    fn as_new(&self) -> NewEvent<'_> {
        NewEvent {
            id: self.id,
            at: self.at,
            kind: &self.kind,
            data: &self.data,
            note: self.note.as_deref(),
            salt: self.salt,
            was: None,
            extra: None,
        }
    }
}

/// Checks a working directory: absolute on some system, or a URL.
pub fn check_cwd(cwd: &str) -> Result<()> {
    let bytes = cwd.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let share = cwd.strip_prefix("\\\\").is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric()));
    let url = cwd.split_once("://").is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
            && !rest.is_empty()
    });
    if (cwd.starts_with('/') || drive || share || url) && !cwd.contains('\0') {
        return Ok(());
    }
    Err(Error::new(Kind::InvalidCwd, "a working directory must be absolute"))
}

/// Makes the header of a new session.
pub fn header(id: &str, created_at: Millis, cwd: Option<&str>, parent: Option<&str>) -> Result<Object> {
    super::id::check_session_id(id)?;
    let mut header = Object::from([("version", Value::from(1)), ("id", id.into()), ("createdAt", created_at.into())]);
    if let Some(cwd) = cwd {
        check_cwd(cwd)?;
        header.set("cwd", cwd);
    }
    if let Some(parent) = parent {
        super::id::check_session_id(parent)?;
        header.set("parentSession", parent);
    }
    Ok(header)
}

/// Makes a session id: 16 hexadecimal digits.
pub fn new_id(ids: &mut IdSource) -> String {
    ids.next_id().to_string()
}

#[cfg(test)]
mod tests;
