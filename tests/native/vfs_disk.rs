//! The file tree beside a real Linux disk: the same random operations, the same answers, the same trees.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sessionlog::core::vfs::{Errno, Remove, State, Tree, Write};

use super::undo_property::Dice;

/// A folder that goes when the test ends, however it ends.
struct Disk(PathBuf);

impl Disk {
    fn new(seed: u64) -> Disk {
        let root = std::env::temp_dir().join(format!("sessionlog-vfs-{}-{seed}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Disk(root)
    }

    /// Text, not a `PathBuf`: a slash or a dot at the end must reach the kernel.
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0.display())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug, PartialEq)]
enum Node {
    File(Vec<u8>, u32),
    Dir(u32),
    Link(String),
}

fn on_disk(root: &Path) -> BTreeMap<String, Node> {
    let mut out = BTreeMap::new();
    let mut stack = vec![root.to_path_buf()];
    while let Some(dir) = stack.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let mode = meta.mode() & 0o7777;
            let node = if meta.is_symlink() {
                Node::Link(fs::read_link(&path).unwrap().display().to_string())
            } else if meta.is_dir() {
                stack.push(path.clone());
                Node::Dir(mode)
            } else {
                Node::File(fs::read(&path).unwrap(), mode)
            };
            out.insert(format!("/{}", path.strip_prefix(root).unwrap().display()), node);
        }
    }
    out
}

fn in_tree(tree: &Tree) -> BTreeMap<String, Node> {
    let node = |state| match state {
        State::File { content, mode, .. } => Node::File(content.bytes().to_vec(), u32::from(mode)),
        State::Dir { mode, .. } => Node::Dir(u32::from(mode)),
        State::Link { target, .. } => Node::Link(target.to_string()),
        State::Absent => panic!("an absent node is listed"),
    };
    tree.tree("/").unwrap().into_iter().map(|(path, id)| (path, node(tree.state(id)))).collect()
}

/// A path with dots, double and trailing slashes now and then. `..` never stands where the disk would leave the folder.
fn path(dice: &mut Dice) -> String {
    let mut path = dice.path();
    match dice.below(12) {
        0 => path.push('/'),
        1 => path.push_str("/."),
        2 => path = format!("/.{path}"),
        3 => path = path.replacen('/', "//", 2),
        4 => path.push_str("/../a"),
        5 => path.push_str("/x/.."),
        _ => {}
    }
    path
}

fn number(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(-1)
}

type Answer = Result<Vec<u8>, i32>;

fn ours<T>(result: Result<T, Errno>, value: impl FnOnce(T) -> Vec<u8>) -> Answer {
    result.map(value).map_err(|errno| i32::from(errno.number()))
}

fn theirs<T>(result: std::io::Result<T>, value: impl FnOnce(T) -> Vec<u8>) -> Answer {
    result.map(value).map_err(|error| number(&error))
}

fn none<T>(_: T) -> Vec<u8> {
    Vec::new()
}

/// One operation on both; how it reads and both answers.
fn both(tree: &mut Tree, disk: &Disk, dice: &mut Dice) -> (String, Answer, Answer) {
    let p = path(dice);
    let real = disk.at(&p);
    match dice.below(16) {
        0..4 => {
            let (data, append, exclusive) = (vec![b'a'; dice.below(4)], dice.below(3) == 0, dice.below(5) == 0);
            let how = Write { append, exclusive, ..Write::default() };
            let mut options = fs::OpenOptions::new();
            options.append(append).write(true).truncate(!append).mode(0o644);
            let options = if exclusive { options.create_new(true) } else { options.create(true) };
            let written = options.open(&real).and_then(|mut file| file.write_all(&data));
            let text = format!("write {p} append {append} exclusive {exclusive}");
            (text, ours(tree.write(&p, data, how, 1, None), none), theirs(written, none))
        }
        4..6 => {
            let made = fs::DirBuilder::new().mode(0o755).create(&real);
            (format!("mkdir {p}"), ours(tree.mkdir(&p, 0o755, 1, None), none), theirs(made, none))
        }
        6 => {
            let how = Remove { leaf_only: true, ..Remove::default() };
            (format!("unlink {p}"), ours(tree.remove(&p, how, 1, None), none), theirs(fs::remove_file(&real), none))
        }
        7 => {
            let how = Remove { dir_only: true, ..Remove::default() };
            (format!("rmdir {p}"), ours(tree.remove(&p, how, 1, None), none), theirs(fs::remove_dir(&real), none))
        }
        8..11 => {
            let to = path(dice);
            let moved = fs::rename(&real, disk.at(&to));
            (format!("rename {p} {to}"), ours(tree.rename(&p, &to, 1, None), none), theirs(moved, none))
        }
        11..13 => {
            // Relative targets that stay inside: an absolute one, or `..` behind a link to the top, would leave the folder.
            let target = *dice.one(&["a", "b", "./c", "a/b", "c/../a", "b/"]);
            let made = symlink(target, &real);
            (format!("symlink {target} {p}"), ours(tree.symlink(target, &p, 1, None), none), theirs(made, none))
        }
        13 => {
            let mode = *dice.one(&[0o600, 0o755, 0o644]);
            let set = fs::set_permissions(&real, fs::Permissions::from_mode(u32::from(mode)));
            (format!("chmod {p} {mode:o}"), ours(tree.chmod(&p, mode, 1, None), none), theirs(set, none))
        }
        14 => {
            let stat = |follow: bool| {
                let own = tree.stat(&p, follow).map(|stat| (stat.kind as u8, u32::from(stat.mode)));
                let disk = if follow { fs::metadata(&real) } else { fs::symlink_metadata(&real) };
                let kind = |meta: &fs::Metadata| if meta.is_dir() { 2 } else { 1 + 2 * u8::from(meta.is_symlink()) };
                let disk = disk.map(|meta| (kind(&meta), meta.mode() & 0o7777));
                let show = |(kind, mode): (u8, u32)| format!("{kind} {mode:o}").into_bytes();
                (ours(own, show), theirs(disk, show))
            };
            let follow = dice.below(2) == 0;
            let (own, disk) = stat(follow);
            (format!("stat {p} follow {follow}"), own, disk)
        }
        _ => {
            let own = ours(tree.read(&p).map(<[u8]>::to_vec), |bytes| bytes);
            (format!("read {p}"), own, theirs(fs::read(&real), |bytes| bytes))
        }
    }
}

/// 400 sequences of 40 operations; `DISK_SEQUENCES` asks for others.
#[test]
fn the_tree_is_what_a_linux_disk_is() {
    let count = std::env::var("DISK_SEQUENCES").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    for seed in 0..count {
        let (mut dice, disk) = (Dice(seed ^ 0x000d_15c0), Disk::new(seed));
        let mut tree = Tree::new(0);
        let mut trace = Vec::new();
        for _ in 0..40 {
            let (text, own, real) = both(&mut tree, &disk, &mut dice);
            trace.push(text);
            assert_eq!(own, real, "seed {seed}: ours left, the disk's right, after\n  {}", trace.join("\n  "));
            assert_eq!(in_tree(&tree), on_disk(&disk.0), "seed {seed}, after\n  {}", trace.join("\n  "));
        }
    }
}
