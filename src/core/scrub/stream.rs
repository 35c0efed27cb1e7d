//! Text in pieces: the built-in rules as a stream, functions of unknown reach, and the chain of them all.

use std::borrow::Cow;
use std::rc::Rc;

use super::super::error::Result;
use super::bytes::{Mask, is};
use super::chain::{Chain, Pieces, Scrubber};
use super::detect::{Detector, State};
use super::view::LOOK_BACK;

/// How much released text a stream keeps to look back at.
const KEPT: usize = LOOK_BACK + 32;

/// The built-in rules on text in pieces.
pub(super) struct DetectPieces {
    detector: Rc<Detector>,
    /// Released text to look back at, then what is held.
    buffer: Vec<u8>,
    /// Where what is held begins.
    held: usize,
    state: State,
}

impl DetectPieces {
    pub(super) fn new(detector: Rc<Detector>) -> Self {
        DetectPieces { detector, buffer: Vec::new(), held: 0, state: State::default() }
    }

    fn run(&mut self, eof: bool, out: &mut String) {
        let DetectPieces { detector, buffer, held, state } = self;
        let mut from = *held;
        detector.scan(buffer, eof, state, &mut |hit| {
            release(buffer, from, hit.start, out);
            out.push_str(&super::mark(hit.kind));
            from = hit.end;
        });
        let upto = if eof { buffer.len() } else { whole_characters(buffer, state.at.max(from)) };
        release(buffer, from, upto, out);
        *held = upto.max(from);
        self.forget();
    }

    /// Drops released text that no rule can look back at any more.
    fn forget(&mut self) {
        let cut = self.held.saturating_sub(KEPT);
        if cut < 256 {
            return;
        }
        self.buffer.drain(..cut);
        self.held -= cut;
        self.state.at -= cut;
        self.state.floor = self.state.floor.saturating_sub(cut);
        self.state.wake.1 = self.state.wake.1.saturating_sub(cut);
    }

    /// Whether these bytes cannot change the answer that was put off.
    fn still_waiting(&self, piece: &[u8]) -> bool {
        let (mask, until) = self.state.wake;
        self.buffer.len() + piece.len() < until && piece.iter().all(|&b| is(b, mask))
    }
}

fn release(buffer: &[u8], from: usize, to: usize, out: &mut String) {
    let bytes = buffer.get(from..to).unwrap_or_default();
    // Pieces are cut at characters and rules end at ASCII, so this borrows.
    out.push_str(&String::from_utf8_lossy(bytes));
}

/// Moves an end back so that no character is cut.
fn whole_characters(buffer: &[u8], mut at: usize) -> usize {
    while at > 0 && buffer.get(at).is_some_and(|b| b & 0xc0 == 0x80) {
        at -= 1;
    }
    at
}

/// How many bytes at the start of a piece are of a class.
fn leading(piece: &[u8], mask: Mask) -> usize {
    piece.iter().position(|&b| !is(b, mask)).unwrap_or(piece.len())
}

impl Pieces for DetectPieces {
    fn push(&mut self, piece: &str, out: &mut String) -> Result<()> {
        let mut bytes = piece.as_bytes();
        if self.state.open != 0 {
            // The mark is out already; what still belongs to the secret is dropped.
            let more = leading(bytes, self.state.open);
            bytes = bytes.get(more..).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(());
            }
            self.state.open = 0;
        }
        let waits = self.still_waiting(bytes);
        self.buffer.extend_from_slice(bytes);
        if !waits {
            self.run(false, out);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut String) -> Result<()> {
        self.run(true, out);
        Ok(())
    }
}

/// A scrubber of which only a function over whole texts is known.
struct WholePieces {
    scrubber: Rc<dyn Scrubber>,
    held: String,
    /// The longest match, in UTF-16 units; `None` holds everything to the end.
    reach: Option<usize>,
    /// The length at which to try again.
    wake: usize,
}

impl WholePieces {
    fn new(scrubber: Rc<dyn Scrubber>) -> Self {
        let reach = scrubber.max_match_length();
        WholePieces { scrubber, held: String::new(), reach, wake: 0 }
    }

    /// The character boundary that leaves at least `units` UTF-16 units behind it.
    fn boundary(&self, units: usize) -> usize {
        let mut left = units;
        for (at, c) in self.held.char_indices().rev() {
            left = left.saturating_sub(c.len_utf16());
            if left == 0 {
                return at;
            }
        }
        0
    }

    /// Releases what no match can reach any more: where the text can be cut without changing the outcome.
    fn release(&mut self, reach: usize, out: &mut String) -> Result<()> {
        let whole = self.scrubber.scrub(&self.held)?;
        for units in [reach, reach + reach / 2, reach * 2] {
            let at = self.boundary(units.max(1));
            let (Some(front), Some(back)) = (self.held.get(..at), self.held.get(at..)) else { break };
            if front.is_empty() {
                break;
            }
            let front = self.scrubber.scrub(front)?;
            let tail = self.scrubber.scrub(back)?;
            if whole.len() == front.len() + tail.len() && whole.starts_with(&*front) && whole.ends_with(&*tail) {
                out.push_str(&front);
                self.held = back.to_owned();
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Pieces for WholePieces {
    fn push(&mut self, piece: &str, out: &mut String) -> Result<()> {
        self.held.push_str(piece);
        let Some(reach) = self.reach else { return Ok(()) };
        if self.held.len() >= self.wake {
            self.release(reach, out)?;
            // Looking again only after as much new text keeps the time linear.
            self.wake = self.held.len() + reach.max(16);
        }
        Ok(())
    }

    fn end(&mut self, out: &mut String) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            out.push_str(&self.scrubber.scrub(&held)?);
        }
        Ok(())
    }
}

/// A chain over text in pieces: the joined output equals the chain over the joined text.
pub struct ScrubStream {
    stages: Vec<Box<dyn Pieces>>,
}

impl ScrubStream {
    /// Starts a stream with the scrubbers registered now.
    pub fn new(chain: &Chain) -> Self {
        let stage = |scrubber: &Rc<dyn Scrubber>| -> Box<dyn Pieces> {
            match scrubber.clone().pieces() {
                Some(pieces) => pieces,
                None => Box::new(WholePieces::new(scrubber.clone())),
            }
        };
        ScrubStream { stages: chain.scrubbers().map(stage).collect() }
    }

    /// Takes a piece and returns what is decided.
    pub fn push(&mut self, piece: &str) -> Result<String> {
        let mut text = Cow::Borrowed(piece);
        for stage in &mut self.stages {
            let mut out = String::new();
            stage.push(&text, &mut out)?;
            text = Cow::Owned(out);
        }
        Ok(text.into_owned())
    }

    /// Ends the stream and returns the rest; an aborted stream ends the same way.
    pub fn end(&mut self) -> Result<String> {
        let mut text = String::new();
        for stage in &mut self.stages {
            let mut out = String::new();
            stage.push(&text, &mut out)?;
            stage.end(&mut out)?;
            text = out;
        }
        Ok(text)
    }
}
