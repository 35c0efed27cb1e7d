//! The set of states that a pattern can be in, moved on character by character; it can be put down and taken up again.

use super::{Assert, Pattern, Step};

/// A match longer than this is not looked for: what a stream holds stays bounded, and so does what is read again.
const LONGEST: usize = 16_384;

/// Released text that is kept to look back at, beyond the replacement's length.
const KEPT: usize = 16;

#[derive(Clone, Copy)]
struct Thread {
    state: usize,
    start: usize,
}

pub(super) struct Run {
    pub(super) buffer: String,
    /// The byte that is read next.
    at: usize,
    /// States before the character at `at`, the preferred first.
    threads: Vec<Thread>,
    /// States after it.
    next: Vec<Thread>,
    /// Which states are in the set at this place, by a stamp.
    seen: Vec<u64>,
    stamp: u64,
    best: Option<(usize, usize)>,
    released: usize,
    /// Matches of a whole text, when they are asked for.
    pub(super) found: Option<Vec<(usize, usize)>>,
}

impl Run {
    pub(super) fn new(pattern: &Pattern) -> Self {
        Run {
            buffer: String::new(),
            at: 0,
            threads: Vec::new(),
            next: Vec::new(),
            seen: vec![0; pattern.program.len()],
            stamp: 0,
            best: None,
            released: 0,
            found: None,
        }
    }

    /// Goes on through the buffer; without `eof` it stops where the next character decides.
    pub(super) fn advance(&mut self, pattern: &Pattern, eof: bool, out: &mut String) {
        loop {
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            let barrier = !pattern.barrier.is_empty() && rest.starts_with(&pattern.barrier);
            if !eof && !barrier && pattern.barrier.starts_with(rest) {
                break;
            }
            let next = if barrier { None } else { rest.chars().next() };
            self.expand(pattern, next);
            if let Some(c) = next {
                self.consume(pattern, c);
                self.at += c.len_utf8();
            } else {
                self.threads.clear();
            }
            if self.threads.is_empty()
                && let Some((start, end)) = self.best.take()
            {
                self.release(start, out);
                out.push_str(&pattern.replacement);
                if let Some(found) = &mut self.found {
                    found.push((start, end));
                }
                self.released = end;
                self.at = end;
                continue;
            }
            match (next, barrier) {
                (None, true) => self.at += pattern.barrier.len(),
                (None, false) => break,
                _ => {}
            }
        }
        let first = self.threads.iter().map(|t| t.start).min().unwrap_or(self.at);
        let held = if eof { self.buffer.len() } else { self.best.map_or(first, |(s, _)| s.min(first)) };
        self.release(held, out);
        self.forget(pattern.barrier.len() + KEPT);
    }

    fn release(&mut self, to: usize, out: &mut String) {
        let to = to.max(self.released);
        out.push_str(self.buffer.get(self.released..to).unwrap_or_default());
        self.released = to;
    }

    fn forget(&mut self, kept: usize) {
        let mut cut = self.released.saturating_sub(kept);
        while !self.buffer.is_char_boundary(cut) {
            cut -= 1;
        }
        if cut < 4_096 {
            return;
        }
        self.buffer.drain(..cut);
        self.at -= cut;
        self.released -= cut;
        self.threads.iter_mut().for_each(|t| t.start -= cut);
        self.best = self.best.map(|(s, e)| (s - cut, e - cut));
    }

    /// Follows every state to those that take a character; a match cuts off what is less preferred.
    fn expand(&mut self, pattern: &Pattern, next: Option<char>) {
        self.stamp += 1;
        let mut starts = std::mem::take(&mut self.threads);
        if self.best.is_none() {
            starts.push(Thread { state: 0, start: self.at });
        }
        let before = self.buffer.get(..self.at).unwrap_or_default();
        let at_mark = !pattern.barrier.is_empty() && before.ends_with(&pattern.barrier);
        let previous = if at_mark { None } else { before.chars().next_back() };
        let mut stack = Vec::new();
        'threads: for thread in starts {
            if self.at - thread.start > LONGEST {
                continue;
            }
            stack.push(thread.state);
            while let Some(state) = stack.pop() {
                match self.seen.get_mut(state) {
                    Some(stamp) if *stamp != self.stamp => *stamp = self.stamp,
                    _ => continue,
                }
                match pattern.program.get(state) {
                    Some(Step::Jump(to)) => stack.push(*to),
                    Some(Step::Split(first, second)) => stack.extend([*second, *first]),
                    Some(Step::Assert(what)) if holds(*what, previous, next) => stack.push(state + 1),
                    Some(Step::Class(..)) => self.threads.push(Thread { state, start: thread.start }),
                    Some(Step::Match) if self.at > thread.start => {
                        self.best = Some((thread.start, self.at));
                        break 'threads;
                    }
                    _ => {}
                }
            }
        }
    }

    fn consume(&mut self, pattern: &Pattern, c: char) {
        self.next.clear();
        for thread in &self.threads {
            if let Some(Step::Class(ranges, negated)) = pattern.program.get(thread.state)
                && ranges.iter().any(|&(low, high)| low <= c && c <= high) != *negated
            {
                self.next.push(Thread { state: thread.state + 1, start: thread.start });
            }
        }
        std::mem::swap(&mut self.threads, &mut self.next);
    }
}

fn holds(what: Assert, previous: Option<char>, next: Option<char>) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    match what {
        Assert::Start => previous.is_none(),
        Assert::End => next.is_none(),
        Assert::Boundary => word(previous) != word(next),
        Assert::NotBoundary => word(previous) == word(next),
    }
}
