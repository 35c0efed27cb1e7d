//! Random operations over many sessions with random faults between them. After each step: replay equals live, seqs are
//! contiguous, the chain holds, forks and their sources leave each other alone. A failing seed prints itself.

use sessionlog::core::id::{EventId, IdSource};
use sessionlog::core::log::NewEvent;
use sessionlog::core::session::{Boundary, Session, header};

/// One session, and what it should hold.
struct Tracked {
    live: Session,
    /// Id, type and payload of each event.
    model: Vec<(EventId, &'static str, String)>,
    /// What the store holds.
    stored: String,
    durable: u64,
}

struct World {
    random: IdSource,
    ids: IdSource,
    sessions: Vec<Tracked>,
}

const KINDS: [&str; 6] =
    ["user/message", "assistant/message", "tool/result", "session/titled", "assistant/chunk", "session/compacted"];
const TEXTS: [&str; 6] = ["", "plain", "quote \" and \\ and \n", "🔥 é \u{2028}", "}{][,:", "{\"seq\":3,\"id\":\"x\"}"];

impl World {
    fn new(seed: u64) -> Self {
        World { random: IdSource::new(seed), ids: IdSource::new(!seed), sessions: Vec::new() }
    }

    fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.random.next_u64() % n as u64) as usize }
    }

    fn create(&mut self) {
        let id = self.ids.next_id().to_string();
        let live = Session::new(header(&id, 0, Some("/w"), None).expect("a header"));
        self.sessions.push(Tracked { live, model: Vec::new(), stored: String::new(), durable: 0 });
    }

    fn append(&mut self, at: usize) {
        let kind = KINDS[self.below(KINDS.len())];
        let text = TEXTS[self.below(TEXTS.len())].repeat(1 + self.below(40));
        let mut quoted = String::new();
        sessionlog::core::json::write_string(&mut quoted, &text);
        let data = format!("{{\"text\":{quoted},\"n\":{}.50,\"title\":{quoted}}}", self.below(1000));
        let id = self.ids.next_id();
        let salt = [self.below(256) as u8; 16];
        let note = (self.below(4) == 0).then_some("{\"cost\":{\"usd\":\"0.1\"}}");
        let event =
            NewEvent { id, at: self.below(99) as i64 - 50, kind, data: &data, note, salt, was: None, extra: None };
        let session = &mut self.sessions[at];
        assert_eq!(session.live.append(&event), session.model.len() as u64, "seqs are contiguous");
        session.model.push((id, kind, data));
    }

    /// Writes what is not stored yet; the acknowledgement may get lost.
    fn flush(&mut self, at: usize) {
        let is_lost = self.below(4) == 0;
        let session = &mut self.sessions[at];
        let lines = session.live.lines(session.durable, session.live.log().len());
        session.stored.push_str(&lines);
        if is_lost {
            // The writer reads the store again: what it believes unsaved is there already.
            let stored = session.stored.clone();
            let held = session.live.rebase(session.durable, stored.as_bytes(), 0, || [0; 16]);
            assert_eq!(held, session.model.len() as u64);
        }
        session.durable = session.live.log().len();
    }

    /// The process dies: what was not stored is gone, the last line may be torn.
    fn crash(&mut self, at: usize) {
        let tear = self.below(3) == 0;
        let cut = self.below(30) + 2;
        let session = &mut self.sessions[at];
        let keep = session.durable as usize;
        let torn = tear && keep > 0 && session.stored.len() > cut;
        if torn {
            let mut end = session.stored.len() - cut;
            while !session.stored.is_char_boundary(end) {
                end -= 1;
            }
            session.stored.truncate(end);
        }
        let mut again = Session::new(session.live.header().clone());
        again.load(session.stored.clone().into(), 1, || [0; 16]);
        let kept = again.log().len() as usize;
        assert!(kept == keep || (torn && kept + 1 == keep), "a torn tail costs one event at most: {kept} of {keep}");
        assert_eq!(again.damaged().len(), usize::from(torn && kept < keep));
        session.model.truncate(kept);
        session.stored = again.lines(0, again.log().len());
        session.durable = kept as u64;
        session.live = again;
    }

    /// Another writer stored something first.
    fn conflict(&mut self, at: usize) {
        let header = self.sessions[at].live.header().clone();
        let mut other = Session::new(header);
        other.load(self.sessions[at].stored.clone().into(), 1, || [0; 16]);
        let id = self.ids.next_id();
        let data = "{\"text\":\"theirs\"}".to_owned();
        let event = NewEvent {
            id,
            at: 0,
            kind: "user/message",
            data: &data,
            note: None,
            salt: [7; 16],
            was: None,
            extra: None,
        };
        other.append(&event);
        let session = &mut self.sessions[at];
        let place = session.durable as usize;
        session.stored.push_str(&other.lines(session.durable, session.durable + 1));
        let stored = session.stored.clone();
        let held = session.live.rebase(session.durable, stored.as_bytes(), 0, || [0; 16]);
        assert_eq!(held, session.durable + 1);
        session.model.insert(place, (id, "user/message", data));
        session.durable += 1;
    }

    fn fork(&mut self, at: usize) {
        let len = self.sessions[at].model.len();
        let count = self.below(len + 1) as u64;
        let id = self.ids.next_id().to_string();
        let source = &mut self.sessions[at];
        let boundary = Boundary { count: Some(count), ..Boundary::default() };
        assert_eq!(source.live.boundary(&boundary).expect("a boundary"), count);
        let header = header(&id, 1, None, Some(source.live.id())).expect("a header");
        let (live, closers) = source.live.fork(count, header, false).expect("a fork");
        assert!(closers.is_empty());
        let model = source.model[..count as usize].to_vec();
        let stored = live.lines(0, count);
        self.sessions.push(Tracked { live, model, stored, durable: count });
    }

    /// A payload is scrubbed once more.
    fn rescrub(&mut self, at: usize) {
        let session = &mut self.sessions[at];
        let head = session.live.log().head();
        session
            .live
            .rewrite(|event| Ok(event.data.contains("plain").then(|| (event.data.replace("plain", "[x]"), [3; 16]))))
            .expect("a rewrite");
        assert_eq!(session.live.log().head(), head, "the chain is the same");
        for (_, _, data) in &mut session.model {
            *data = data.replace("plain", "[x]");
        }
        session.stored = session.live.lines(0, session.durable);
    }

    fn step(&mut self) {
        if self.sessions.is_empty() || (self.sessions.len() < 6 && self.below(12) == 0) {
            return self.create();
        }
        let at = self.below(self.sessions.len());
        match self.below(20) {
            0..=9 => self.append(at),
            10..=12 => self.flush(at),
            13 | 14 => self.crash(at),
            15 => self.conflict(at),
            16 | 17 if self.sessions.len() < 12 => self.fork(at),
            18 => self.rescrub(at),
            _ => drop(self.sessions.swap_remove(at)),
        }
    }

    fn check(&self) {
        for session in &self.sessions {
            let log = session.live.log();
            assert_eq!(log.len(), session.model.len() as u64);
            for (event, (id, kind, data)) in log.iter().zip(&session.model) {
                assert_eq!((event.id, event.kind, event.data), (*id, *kind, data.as_str()), "event {}", event.seq);
            }
            assert_eq!(session.live.verify(), None);
            let mut replay = Session::new(session.live.header().clone());
            replay.load(session.live.lines(0, log.len()).into(), 1, || [9; 16]);
            assert_eq!(replay.log().head(), log.head(), "replay equals live");
            assert_eq!(replay.state(), session.live.state());
            assert_eq!(replay.verify(), None);
        }
    }
}

#[test]
fn a_seeded_world_of_sessions_stays_whole() {
    let seeds: u64 = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let first: u64 = std::env::var("SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for _ in 0..120 {
                world.step();
                world.check();
            }
        });
        assert!(run.is_ok(), "seed {seed} failed; run it alone with SEED={seed} SEEDS=1");
    }
}
