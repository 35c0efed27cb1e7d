//! Files at their limits: many, deep, going round in circles, changed by several at once, and short of room while they come back.

use std::collections::BTreeMap;

use sessionlog::core::undo::{Actor, Files, Limits, Mode};
use sessionlog::core::vfs::{Errno, Remove, State, Write};

use super::undo::apply;

fn write(files: &mut Files, actor: Actor, path: &str, text: &str) -> Result<(), Errno> {
    files.write(actor, path, text.as_bytes().to_vec(), Write::default(), 1).map(|_| ())
}

fn text(files: &Files, path: &str) -> String {
    String::from_utf8(files.tree().read(path).unwrap().to_vec()).unwrap()
}

fn snap(files: &Files) -> BTreeMap<String, State> {
    let tree = files.tree();
    tree.tree("/").unwrap().into_iter().map(|(path, id)| (path, tree.state(id))).collect()
}

fn same(a: &BTreeMap<String, State>, b: &BTreeMap<String, State>) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((p, x), (q, y))| p == q && x.same(y))
}

#[test]
fn a_run_over_100_000_files_is_undone_also_after_a_reload() {
    let mut files = Files::load("t", Vec::new(), 1, 0).unwrap();
    for i in 0..100_000 {
        if i % 1_000 == 0 {
            files.mkdir(Actor::USER, &format!("/d{}", i / 1_000), 0o755, 1).unwrap();
        }
        write(&mut files, Actor::USER, &format!("/d{}/f{i}", i / 1_000), "old").unwrap();
    }
    let before = snap(&files);
    let run = Actor::run(files.begin_run("r").unwrap());
    for i in 0..100_000 {
        let path = format!("/d{}/f{i}", i / 1_000);
        match i % 3 {
            0 => write(&mut files, run, &path, "new").unwrap(),
            1 => files.remove(run, &path, Remove::default(), 2).unwrap(),
            _ => files.rename(run, &path, &format!("{path}.moved"), 2).unwrap(),
        }
    }
    files.end_run(run.run);
    let mut store = std::collections::HashMap::new();
    for batch in files.drain(Limits::default()) {
        assert!(apply(&mut store, &batch));
    }
    let mut files = Files::load("t", store.into_iter().collect(), 2, 3).unwrap();
    let report = files.undo(None, Mode::Strict, 4);
    assert!(report.ok && report.restored.len() == 100_000, "{} restored", report.restored.len());
    assert!(same(&snap(&files), &before));
}

/// Makes `/a/a/…`. One call takes 4,095 bytes of path; moving trees below each other goes deeper, here as on a disk.
fn deep(files: &mut Files, pieces: usize, levels: usize) {
    let deep = "/a".repeat(levels);
    files.mkdir_all(Actor::USER, &deep, 0o755, 1).unwrap();
    for _ in 1..pieces {
        files.rename(Actor::USER, "/a", "/b", 1).unwrap();
        files.mkdir_all(Actor::USER, &deep, 0o755, 1).unwrap();
        files.rename(Actor::USER, "/b", &format!("{deep}/a"), 1).unwrap();
    }
}

const ALL: Remove = Remove { recursive: true, force: false, leaf_only: false, dir_only: false };

#[test]
fn trees_of_10_000_levels_are_walked_renamed_and_removed() {
    let mut files = Files::new(0);
    deep(&mut files, 5, 2_000);
    let paths = files.tree().tree("/").unwrap();
    assert_eq!(paths.len(), 10_000);
    assert_eq!(paths.last().unwrap().0, "/a".repeat(10_000));
    files.rename(Actor::USER, "/a/a", "/c", 2).unwrap();
    files.remove(Actor::USER, "/c", ALL, 3).unwrap();
    assert_eq!(files.tree().tree("/").unwrap().len(), 1);
}

#[test]
fn what_is_deeper_than_any_path_a_call_takes_is_undone_all_the_same() {
    let mut files = Files::new(0);
    deep(&mut files, 2, 1_100);
    let before = snap(&files);
    assert!(before.keys().any(|path| path.len() > 4_095));
    let run = Actor::run(files.begin_run("r").unwrap());
    files.rename(run, "/a/a", "/c", 2).unwrap();
    files.remove(run, "/c", ALL, 3).unwrap();
    files.end_run(run.run);
    assert!(files.undo(None, Mode::Strict, 4).ok);
    assert!(same(&snap(&files), &before));
    assert!(files.redo(Mode::Strict, 5).ok);
    assert_eq!(snap(&files).len(), 1);
}

#[test]
fn links_that_go_round_in_circles_end_every_call() {
    let mut files = Files::new(0);
    let user = Actor::USER;
    files.symlink(user, "/b", "/a", 1).unwrap();
    files.symlink(user, "a", "/b", 1).unwrap();
    files.symlink(user, ".", "/dot", 1).unwrap();
    files.symlink(user, "self/self", "/self", 1).unwrap();
    let run = Actor::run(files.begin_run("r").unwrap());
    for path in ["/a", "/b/x", "/self", "/self/x", "/a/"] {
        assert_eq!(
            write(&mut files, run, path, "x"),
            Err(if path == "/a/" { Errno::EISDIR } else { Errno::ELOOP }),
            "{path}"
        );
        assert_eq!(files.tree().read(path).err(), Some(Errno::ELOOP));
        assert_eq!(files.tree().stat(path, true).err(), Some(Errno::ELOOP));
        assert_eq!(files.tree().realpath(path).err(), Some(Errno::ELOOP));
        assert_eq!(files.chmod(run, path, 0o600, 1), Err(Errno::ELOOP));
        assert_eq!(files.copy(run, path, "/copy", false, 1), Err(Errno::ELOOP));
    }
    assert_eq!(files.mkdir_all(run, "/self/x/y", 0o755, 1), Err(Errno::ELOOP));
    // A link that goes in a circle is a thing to move and remove like any other; one to its own directory leads on.
    write(&mut files, run, &format!("{}/f", "/dot".repeat(40)), "through").unwrap();
    assert_eq!(text(&files, "/f"), "through");
    assert_eq!(write(&mut files, run, &format!("{}/f", "/dot".repeat(41)), "x"), Err(Errno::ELOOP));
    files.rename(run, "/a", "/c", 1).unwrap();
    files.remove(run, "/b", Remove::default(), 1).unwrap();
    files.end_run(run.run);
    assert!(files.undo(None, Mode::Strict, 2).ok);
    assert_eq!(snap(&files).into_keys().collect::<Vec<_>>(), ["/a", "/b", "/dot", "/self"]);
}

#[test]
fn several_runs_and_calls_on_one_file_each_take_back_their_own() {
    let mut files = Files::new(0);
    write(&mut files, Actor::USER, "/f", "0").unwrap();
    let (one, two) = (files.begin_run("one").unwrap(), files.begin_run("two").unwrap());
    write(&mut files, Actor::run(one), "/f", "1").unwrap();
    write(&mut files, Actor::run(two), "/f", "2").unwrap();
    write(&mut files, Actor::run(one), "/f", "3").unwrap();
    files.end_run(two);
    files.end_run(one);
    // What stands there is the first run's; what the second did is taken back only after it.
    assert!(!files.undo(Some("two"), Mode::Strict, 1).ok);
    assert!(files.undo(Some("one"), Mode::Strict, 1).ok);
    assert_eq!(text(&files, "/f"), "2");
    assert!(files.undo(Some("two"), Mode::Strict, 1).ok);
    assert_eq!(text(&files, "/f"), "1");

    // Two calls of one run at once: the first fails after the second has changed the same file.
    let run = files.begin_run("r").unwrap();
    let calls = [files.begin_call(run, "a").unwrap(), files.begin_call(run, "b").unwrap()];
    let call = |at: usize| Actor { run, call: calls[at] };
    write(&mut files, call(0), "/f", "a").unwrap();
    write(&mut files, call(0), "/g", "a").unwrap();
    write(&mut files, call(1), "/f", "b").unwrap();
    let report = files.rollback_call(call(0), 1);
    assert_eq!(report.conflicts.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["/f"]);
    assert_eq!((text(&files, "/f").as_str(), files.tree().read("/g").is_ok()), ("b", false));
    files.commit_call(call(1));
    files.end_run(run);
    assert!(files.undo(None, Mode::Strict, 1).ok);
    assert_eq!(text(&files, "/f"), "1");
}

#[test]
fn no_room_for_what_would_come_back_changes_nothing() {
    let mut files = Files::new(0);
    for (name, size) in [("/a", 600), ("/b", 600)] {
        write(&mut files, Actor::USER, name, &"x".repeat(size)).unwrap();
    }
    let run = Actor::run(files.begin_run("r").unwrap());
    for name in ["/a", "/b"] {
        write(&mut files, run, name, "").unwrap();
    }
    files.end_run(run.run);
    write(&mut files, Actor::USER, "/mine", &"y".repeat(500)).unwrap();
    files.set_max_bytes(Some(1_500));
    for mode in [Mode::Strict, Mode::Skip, Mode::Force] {
        let report = files.undo(None, mode, 1);
        assert!(!report.ok && report.restored.is_empty());
        assert_eq!(
            report.errors.iter().map(|problem| (problem.code, problem.path.as_str())).collect::<Vec<_>>(),
            [("ENOSPC", "/b")]
        );
        assert_eq!((text(&files, "/a").as_str(), text(&files, "/b").as_str()), ("", ""));
    }
    files.set_max_bytes(Some(1_700));
    assert!(files.undo(None, Mode::Strict, 1).ok);
    assert_eq!(text(&files, "/b").len(), 600);
}
