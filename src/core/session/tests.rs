use super::*;
use crate::core::id::EventId;

fn session() -> Session {
    Session::new(header("s1", 5, Some("/w"), None).unwrap())
}

fn append(session: &mut Session, kind: &str, data: &str) -> u64 {
    let id = EventId(session.log().len() + 1);
    session.append(&NewEvent { id, at: 7, kind, data, note: None, salt: [4; 16], was: None, extra: None })
}

fn open_turn() -> Session {
    let mut s = session();
    append(&mut s, "turn/start", r#"{"turn":1,"trigger":{"kind":"message"}}"#);
    append(&mut s, "user/message", r#"{"text":"go"}"#);
    append(&mut s, "step/start", r#"{"turn":1,"step":1}"#);
    append(
        &mut s,
        "assistant/message",
        r#"{"parts":[{"type":"tool-call","id":"a","name":"x","args":{}},{"type":"tool-call","id":"b","name":"y","args":{}}]}"#,
    );
    append(&mut s, "tool/call", r#"{"id":"a","name":"x","args":{}}"#);
    s
}

#[test]
fn headers_are_checked() {
    for good in ["/", "/a", "C:/x", "c:\\x", "\\\\host\\share", "https://x/y", "file:///a"] {
        check_cwd(good).unwrap();
    }
    for bad in ["", "a", "./a", "C:", "C:x", "\\a", "\\\\", "://x", "1://x", "/a\0b"] {
        assert_eq!(check_cwd(bad).unwrap_err().code(), "invalid_cwd", "{bad:?}");
    }
    assert_eq!(header("../x", 0, None, None).unwrap_err().code(), "invalid_id");
}

#[test]
fn stored_lines_load_into_the_same_session() {
    let s = open_turn();
    let lines = s.lines(0, s.log().len());
    let mut loaded = session();
    loaded.load(lines.clone().into(), 1, || [0; 16]);
    assert_eq!(loaded.events_json(0, 99), s.events_json(0, 99));
    assert_eq!(loaded.lines(0, 99), lines);
    assert_eq!((loaded.verify(), loaded.state()), (None, s.state()));
}

/// PERSIST.14: opened from a later event on, with the rest put before it, a session is the one it was.
#[test]
fn the_earlier_events_may_come_later() {
    for first in 0..=5 {
        let mut s = open_turn();
        append(&mut s, "session/titled", r#"{"title":"t"}"#);
        let all = s.lines(0, 99);
        let mut late = Session::starting_at(header("s1", 5, Some("/w"), None).unwrap(), first);
        late.load(s.lines(first, 99).into(), 1, || [0; 16]);
        assert_eq!((late.log().len(), late.log().first()), (6, first));
        assert!(late.log().range(0, first).next().is_none(), "absent until then");
        append(&mut late, "user/message", r#"{"text":"more"}"#);
        append(&mut s, "user/message", r#"{"text":"more"}"#);
        assert_eq!(late.lines(first, 99), s.lines(first, 99), "the chain goes on from what is there");
        let mut earlier = session();
        earlier.load(all.into(), 1, || [0; 16]);
        late.prepend(earlier, [0; 16]);
        assert_eq!(late.lines(0, 99), s.lines(0, 99));
        assert_eq!((late.verify(), late.state(), late.log().first()), (None, s.state(), 0));
        late.truncate(3);
        assert_eq!(late.lines(0, 99), s.lines(0, 3));
    }
}

#[test]
fn earlier_events_that_were_lost_or_damaged_stay_so() {
    let s = open_turn();
    let mut late = Session::starting_at(header("s1", 5, Some("/w"), None).unwrap(), 3);
    late.load(format!("{}no line\n", s.lines(3, 5)).into(), 1, || [0; 16]);
    let mut earlier = session();
    earlier.load(format!("{}broken\n", s.lines(0, 2)).into(), 1, || [0; 16]);
    late.prepend(earlier, [0; 16]);
    assert_eq!((late.log().len(), late.verify()), (5, Some(2)));
    let damaged: Vec<_> = late.damaged().into_iter().map(|d| d.bytes).collect();
    assert_eq!(damaged, [b"broken".to_vec(), b"no line".to_vec()]);
}

#[test]
fn a_checkpoint_names_the_newest_compaction_and_what_it_leaves() {
    let compacted = r#"{"summary":"so far","uptoSeq":1}"#;
    let mut s = session();
    for _ in 0..3 {
        append(&mut s, "user/message", r#"{"text":"x"}"#);
    }
    assert_eq!(s.checkpoint(0, 9), None);
    append(&mut s, "session/compacted", compacted);
    assert_eq!(s.checkpoint(0, 9), Some((3, 2)));
    assert_eq!(s.checkpoint(0, 3), None, "not among these");
    append(&mut s, "session/compacted", r#"{"summary":" ","uptoSeq":3}"#);
    assert_eq!(s.checkpoint(0, 9), Some((3, 2)), "a blank one covers nothing");
    append(&mut s, "session/compacted", r#"{"summary":"more","uptoSeq":99}"#);
    assert_eq!(s.checkpoint(0, 9), Some((5, 5)));
    assert!(!s.is_rewound_before(5));
    append(&mut s, "session/rewound", r#"{"uptoSeq":5}"#);
    assert!(!s.is_rewound_before(5));
    append(&mut s, "session/rewound", r#"{"uptoSeq":4}"#);
    assert!(s.is_rewound_before(5) && !s.is_rewound_before(4));
    let mut open = open_turn();
    append(&mut open, "session/compacted", r#"{"summary":"s","uptoSeq":4}"#);
    assert_eq!(open.checkpoint(0, 9), Some((5, 0)), "an open turn is needed from its start");
}

/// B01
#[test]
fn one_bad_record_costs_one_record() {
    let s = open_turn();
    let mut lines: Vec<Vec<u8>> = s.lines(0, 5).trim_end().split('\n').map(|l| l.as_bytes().to_vec()).collect();
    lines[2].truncate(16);
    lines.insert(4, vec![0; 16]);
    lines.insert(5, b"true".to_vec());
    let mut loaded = session();
    loaded.load(lines.join(&b'\n'), 1, || [0; 16]);
    let damaged = loaded.damaged();
    assert_eq!(damaged.iter().map(|d| (d.line, d.bytes.len())).collect::<Vec<_>>(), [(3, 16), (5, 16), (6, 4)]);
    assert_eq!(loaded.log().event(1).unwrap().data, r#"{"text":"go"}"#);
    assert_eq!(loaded.log().event(4).unwrap().kind, "tool/call");
    assert_eq!(loaded.verify(), Some(2));
    assert_eq!(loaded.events_json(0, 9).matches("\"seq\"").count(), 4);
    assert_eq!(append(&mut loaded, "user/message", "{}"), 5);
    let mut again = session();
    again.load(loaded.lines(0, 9).into(), 1, || [0; 16]);
    assert_eq!((again.events_json(0, 9), again.damaged().len()), (loaded.events_json(0, 9), 0));
}

#[test]
fn a_fork_inside_a_turn_is_refused_or_closed() {
    let mut s = open_turn();
    let head = || header("s2", 6, None, Some("s1")).unwrap();
    assert_eq!(s.fork(5, head(), false).unwrap_err().code(), "open_turn");
    let (_, closers) = s.fork(5, head(), true).unwrap();
    let kinds: Vec<_> = closers.iter().map(|c| c.kind).collect();
    assert_eq!(kinds, ["tool/result", "tool/result", "step/end", "turn/end"]);
    let code = |c: &Closer| c.data.get("error").and_then(|e| e.get("code")).cloned();
    assert_eq!(code(&closers[0]), Some("outcome_unknown".into()));
    assert_eq!(code(&closers[1]), Some("not_started".into()));
    let (child, closers) = s.fork(0, head(), false).unwrap();
    assert_eq!((child.log().len(), closers.len()), (0, 0));
}

#[test]
fn boundaries_are_checked() {
    let s = open_turn();
    let at = |count, through_seq, message_seq| {
        s.boundary(&Boundary { count, through_seq, message_seq, allow_open_turn: false })
    };
    assert_eq!(at(None, None, None).unwrap(), 5);
    assert_eq!(at(Some(2), None, None).unwrap(), 2);
    assert_eq!(at(None, Some(2), None).unwrap(), 3);
    assert_eq!(at(None, None, Some(1)).unwrap(), 2);
    for bad in [at(Some(1), Some(1), None), at(Some(6), None, None), at(None, Some(5), None), at(None, None, Some(0))] {
        assert_eq!(bad.unwrap_err().code(), "invalid_boundary");
    }
}

#[test]
fn seeds_are_contiguous_and_name_the_first_bad_event() {
    let event = |seq: i64| {
        format!(
            r#"{{"id":"000000000000000{seq}","sessionId":"x","seq":{seq},"at":1,"type":"user/message","data":{{}}}}"#
        )
    };
    let mut s = session();
    s.seed(&format!("[{},{}]", event(0), event(1)), || [0; 16]).unwrap();
    assert_eq!(s.log().len(), 2);
    for (bad, index) in [
        (format!("[{}]", event(1)), 0),
        (format!("[{},{}]", event(0), event(0)), 1),
        (format!("[{},true]", event(0)), 1),
        (format!("[{}]", event(0).replace("\"at\":1", "\"at\":null")), 0),
        ("{}".to_owned(), 0),
    ] {
        let error = session().seed(&bad, || [0; 16]).unwrap_err();
        assert_eq!((error.code(), error.details().get("index")), ("invalid_seed", Some(&index.into())), "{bad}");
    }
}

#[test]
fn projections_follow_the_events() {
    let mut s = session();
    append(&mut s, "session/created", r#"{"parentId":"p1"}"#);
    assert_eq!((s.parent(), s.state().title()), (Some("p1"), None));
    append(&mut s, "session/titled", r#"{"title":"A"}"#);
    append(&mut s, "session/forked", r#"{"from":"p2","boundary":2}"#);
    append(&mut s, "session/titled", r#"{"title":"B"}"#);
    assert_eq!((s.parent(), s.state().title()), (Some("p2"), Some("B")));
    s.truncate(2);
    assert_eq!((s.parent(), s.state().title()), (Some("p1"), Some("A")));
}

/// B03: an acknowledgement may be lost, so what is stored already is not put in again.
#[test]
fn a_rebase_puts_ours_after_theirs_and_nothing_twice() {
    let mut theirs = session();
    append(&mut theirs, "user/message", r#"{"text":"0"}"#);
    let mut ours = session();
    ours.load(theirs.lines(0, 1).into(), 1, || [0; 16]);
    let put = |s: &mut Session, id: u64, data: &str| {
        let event = NewEvent {
            id: EventId(id),
            at: 7,
            kind: "user/message",
            data,
            note: None,
            salt: [4; 16],
            was: None,
            extra: None,
        };
        s.append(&event)
    };
    put(&mut theirs, 50, r#"{"text":"x"}"#);
    put(&mut ours, 60, r#"{"text":"y"}"#);
    put(&mut ours, 50, r#"{"text":"x"}"#);
    ours.rebase(1, theirs.lines(1, 2).as_bytes(), 2, || [0; 16]);
    let texts: Vec<_> = ours.log().iter().map(|e| e.data.to_owned()).collect();
    assert_eq!(texts, [r#"{"text":"0"}"#, r#"{"text":"x"}"#, r#"{"text":"y"}"#]);
    assert_eq!(ours.verify(), None);
}

/// B01, damage that keeps the length of a line
#[test]
fn a_payload_that_turns_out_not_to_be_json_costs_its_event() {
    let mut session = session();
    for n in 0..5 {
        append(&mut session, "user/message", &format!("{{\"text\":\"message {n}\"}}"));
    }
    let text = session.lines(0, 5);
    let broken = text.replace("message 2\"", "message 2!");
    assert_eq!(broken.len(), text.len());
    let mut loaded = Session::new(Object::default());
    loaded.load(broken.clone().into(), 1, || [0; 16]);
    assert_eq!((loaded.log().len(), loaded.damaged().len()), (5, 0));
    assert_eq!(loaded.quarantine(), 1);
    assert_eq!(loaded.quarantine(), 0);
    assert_eq!(loaded.verify(), Some(2));
    let line = broken.lines().nth(2).unwrap();
    assert_eq!(loaded.damaged(), [Damaged { line: 3, bytes: line.as_bytes().to_vec() }]);
    let rest: Vec<&str> = text.lines().enumerate().filter(|(n, _)| *n != 2).map(|(_, line)| line).collect();
    assert_eq!(loaded.lines(0, 5).lines().collect::<Vec<_>>(), rest);
    // Loaded once more with what was damaged, nothing is listed twice; what is new is.
    loaded.load_again(broken.as_bytes(), || [0; 16]);
    assert_eq!(loaded.damaged().len(), 1);
    loaded.load_again(b"torn\n", || [0; 16]);
    assert_eq!(loaded.damaged().len(), 2);
}

/// Lines enough to be kept as they are: events with notes, unknown members and payloads of all sizes.
fn long_lines() -> (Session, String) {
    let mut session = session();
    for n in 0..700u64 {
        let data = format!("{{\"text\":\"{} é{n}\"}}", "x".repeat((n * 37 % 400) as usize));
        session.append(&NewEvent {
            id: EventId(n + 1),
            at: n as i64 - 5,
            kind: ["user/message", "assistant/message", "a/b"][n as usize % 3],
            data: &data,
            note: (n % 4 == 0).then_some("{\"cost\":{\"usd\":\"1\"}}"),
            salt: [n as u8; 16],
            was: (n % 7 == 0).then_some([3; 32]),
            extra: (n % 5 == 0).then_some("{\"x\":[1]}"),
        });
    }
    let lines = session.lines(0, 700);
    assert!(lines.len() > 2 * ADOPTED_BYTES);
    (session, lines)
}

#[test]
fn many_lines_are_kept_as_they_are_and_read_like_single_ones() {
    let (written, lines) = long_lines();
    let mut loaded = Session::new(written.header().clone());
    let half = lines.find("{\"seq\":400,").unwrap();
    assert_eq!(loaded.load(lines[..half].into(), 1, || [0; 16]), 401);
    assert_eq!(loaded.load(lines[half..].into(), 401, || [0; 16]), 701);
    assert!(loaded.events_json(0, 700) == written.events_json(0, 700) && loaded.damaged().is_empty());
    assert_eq!((loaded.log().head(), loaded.verify(), loaded.state()), (written.log().head(), None, written.state()));
    for (from, to) in [(0, 700), (0, 1), (399, 401), (400, 700), (699, 700), (5, 5), (12, 650), (0, 9999), (700, 800)] {
        assert!(loaded.lines(from, to) == written.lines(from, to), "{from}..{to}");
    }
    for seq in [0, 5, 35, 399, 400, 699] {
        let facts = |s: &Session| {
            let (log, event) = (s.log(), s.log().event(seq).unwrap());
            let note = event.note.map(str::to_owned);
            (note, log.extra(seq).map(str::to_owned), log.was(seq), log.salt(seq), log.digest(seq))
        };
        assert_eq!(facts(&loaded), facts(&written), "{seq}");
    }
    // It goes on, is cut inside what was taken over, and forks, like any other.
    append(&mut loaded, "user/message", "{}");
    assert_eq!(loaded.lines(699, 701).lines().count(), 2);
    loaded.truncate(123);
    append(&mut loaded, "user/message", "{}");
    let (child, _) = loaded.fork(50, Object::default(), false).unwrap();
    assert_eq!(child.lines(0, 99), written.lines(0, 50));
    assert_eq!(loaded.lines(0, 123), written.lines(0, 123));
    assert_eq!(loaded.lines(120, 124).lines().count(), 4);
}

#[test]
fn one_odd_line_among_many_costs_itself_alone() {
    let (written, lines) = long_lines();
    let start = lines.find("{\"seq\":350,").unwrap();
    let end = start + lines[start..].find('\n').unwrap();
    let line = &lines[start..end];
    let bytes = lines.as_bytes();
    let damaged = |with: &[u8]| [&bytes[..start], with, &bytes[end..]].concat();
    let torn = &line.as_bytes()[..line.len() - 9];
    for odd in [b"true".as_slice(), b"\xff\xfe", torn, &[0; 40]] {
        let mut loaded = session();
        assert_eq!(loaded.load(damaged(odd), 1, || [0; 16]), 701);
        assert_eq!(loaded.damaged(), [Damaged { line: 351, bytes: odd.to_vec() }]);
        assert!(loaded.lines(351, 700) == written.lines(351, 700));
        assert_eq!((loaded.log().len(), loaded.verify()), (700, Some(350)));
    }
    // Other forms of the same events are no damage.
    let loose = line.replacen("{\"seq\":350,", "{ \"seq\": 350, ", 1);
    let blank = format!("\n{line}");
    let other_ends = lines.replace('\n', "\r\n").into_bytes();
    let unended = lines.trim_end().as_bytes().to_vec();
    for form in [damaged(loose.as_bytes()), damaged(blank.as_bytes()), other_ends, unended] {
        let mut loaded = session();
        loaded.load(form, 1, || [0; 16]);
        assert_eq!(loaded.damaged(), []);
        assert!(loaded.lines(0, 700) == written.lines(0, 700));
    }
    // Loaded once more, or behind a gap.
    let mut twice = session();
    twice.load(lines.clone().into(), 1, || [0; 16]);
    twice.load(lines.clone().into(), 1, || [0; 16]);
    assert_eq!((twice.log().len(), twice.damaged()), (700, vec![]));
    let mut gap = session();
    gap.load(lines[end + 1..].into(), 1, || [0; 16]);
    assert!(gap.log().len() == 700 && gap.lines(0, 700) == written.lines(351, 700));
    assert_eq!(gap.verify(), Some(0));
}

/// A line that lies about its number costs memory for the events before it; many such lines cost it once.
#[test]
fn lost_events_are_bounded_over_all_pieces() {
    let mut loaded = session();
    for n in 1..=30 {
        let line = format!(
            "{{\"seq\":{},\"id\":\"00000000000000{n:02x}\",\"at\":1,\"type\":\"x\",\"data\":{{}}}}\n",
            n * 90_000
        );
        loaded.load(line.into(), n, || [0; 16]);
    }
    assert_eq!((loaded.log().len(), loaded.damaged().len()), (90_001, 29));
}
