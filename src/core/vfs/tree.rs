//! The tree: an arena of nodes, walked from one root.
//!
//! A directory maps names to nodes and a node knows its parent, so renaming a directory touches two maps whatever it holds.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::change::State;
use super::content::Content;
use super::errno::{Errno, Result};
use super::path;
use crate::core::time::Millis;

/// The index of a node; also its inode number less one.
pub type NodeId = u32;

/// The root directory.
pub const ROOT: NodeId = 0;

/// The parent of a node that has been unlinked while it was open.
const NOWHERE: NodeId = NodeId::MAX;

/// What a node is.
#[derive(Debug)]
pub(crate) enum Body {
    Free,
    File(Rc<Content>),
    Dir(BTreeMap<Rc<str>, NodeId>),
    Link(Rc<str>),
}

/// One file, directory or link.
#[derive(Debug)]
pub(crate) struct Node {
    pub body: Body,
    pub name: Rc<str>,
    pub parent: NodeId,
    pub mode: u16,
    pub opens: u16,
    /// Stands in the list of nodes to be stored.
    pub dirty: bool,
    /// Has a record in the store.
    pub saved: bool,
    pub mtime: Millis,
    pub ctime: Millis,
}

impl Node {
    fn free() -> Node {
        Node {
            body: Body::Free,
            name: Rc::from(""),
            parent: NOWHERE,
            mode: 0,
            opens: 0,
            dirty: false,
            saved: false,
            mtime: 0,
            ctime: 0,
        }
    }

    pub(crate) fn is_dir(&self) -> bool {
        matches!(self.body, Body::Dir(_))
    }
}

/// The type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A regular file.
    File = 1,
    /// A directory.
    Dir = 2,
    /// A symbolic link.
    Link = 3,
}

/// What `stat` tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stat {
    /// Its type.
    pub kind: Type,
    /// Bytes of a file or of a link's target; 0 for a directory.
    pub size: u64,
    /// Permission bits.
    pub mode: u16,
    /// When the contents changed.
    pub mtime: Millis,
    /// When anything changed.
    pub ctime: Millis,
    /// The inode number.
    pub ino: u64,
}

/// The file tree of one root.
#[derive(Debug)]
pub struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) free: Vec<NodeId>,
    /// Nodes whose records are behind, each once.
    pub(crate) dirty: Vec<NodeId>,
    /// Whether changes are noted in `dirty` at all.
    pub(crate) tracked: bool,
    bytes: u64,
    max_bytes: u64,
    nil: Node,
}

/// What to do with a link at the end of a path.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Follow {
    /// Never follow it.
    Never,
    /// Follow it, and behind a slash too.
    Always,
    /// Follow it, save behind a slash: nothing of that name can be made.
    Make,
    /// Follow it only behind a slash.
    Slash,
}

/// Where a path leads: the directory it ends in, the last name, and what stands there.
pub(crate) struct Place<'a> {
    pub parent: NodeId,
    pub name: &'a str,
    pub node: Option<NodeId>,
    /// The path ends in a slash: only a directory will do.
    pub slash: bool,
    /// The path ends in `.`, `..` or is the root: there is no name to work on.
    pub dot: bool,
    /// A link was followed on the way.
    pub linked: bool,
}

impl Default for Tree {
    fn default() -> Self {
        Tree::new(0)
    }
}

impl Tree {
    /// Makes an empty tree: only the root, made at `now`.
    pub fn new(now: Millis) -> Tree {
        let root = Node {
            body: Body::Dir(BTreeMap::new()),
            parent: ROOT,
            mode: 0o755,
            mtime: now,
            ctime: now,
            ..Node::free()
        };
        Tree {
            nodes: vec![root],
            free: Vec::new(),
            dirty: Vec::new(),
            tracked: false,
            bytes: 0,
            max_bytes: u64::MAX,
            nil: Node::free(),
        }
    }

    /// Limits the bytes of all files together.
    pub fn set_max_bytes(&mut self, limit: Option<u64>) {
        self.max_bytes = limit.unwrap_or(u64::MAX);
    }

    /// Returns the limit of the bytes of all files together.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Returns the bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id as usize).unwrap_or(&self.nil)
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(id as usize).unwrap_or(&mut self.nil)
    }

    pub(crate) fn entries(&self, id: NodeId) -> Result<&BTreeMap<Rc<str>, NodeId>> {
        match &self.node(id).body {
            Body::Dir(entries) => Ok(entries),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(crate) fn child(&self, dir: NodeId, name: &str) -> Option<NodeId> {
        self.entries(dir).ok()?.get(name).copied()
    }

    // ------------------------------------------------------------------ looking up

    /// Follows a path; links in the middle always, one at its end only with `follow`.
    pub(crate) fn locate<'a>(&'a self, path: &'a str, follow: bool) -> Result<Place<'a>> {
        self.locate_as(path, if follow { Follow::Always } else { Follow::Slash })
    }

    pub(crate) fn locate_as<'a>(&'a self, path: &'a str, follow: Follow) -> Result<Place<'a>> {
        path::check(path)?;
        let mut hops = 0;
        let place = self.walk(ROOT, path, follow, &mut hops)?;
        Ok(Place { linked: hops > 0, ..place })
    }

    fn walk<'a>(&'a self, from: NodeId, path: &'a str, follow: Follow, hops: &mut u32) -> Result<Place<'a>> {
        let mut at = if path.starts_with('/') { ROOT } else { from };
        let slash = path.ends_with('/');
        let follows = match follow {
            Follow::Never => false,
            Follow::Always => true,
            Follow::Make => !slash,
            Follow::Slash => slash,
        };
        let mut rest = path.trim_matches('/');
        loop {
            let (name, next) = match rest.split_once('/') {
                Some((name, next)) => (name, next.trim_start_matches('/')),
                None => (rest, ""),
            };
            let last = next.is_empty();
            if name.is_empty() || name == "." || name == ".." {
                self.entries(at)?;
                if name == ".." {
                    at = self.node(at).parent;
                }
                if last {
                    return Ok(Place { parent: at, name, node: Some(at), slash, dot: true, linked: false });
                }
                rest = next;
                continue;
            }
            let entries = self.entries(at)?;
            if name.len() > path::MAX_NAME {
                return Err(Errno::ENAMETOOLONG);
            }
            let found = entries.get(name).copied();
            let link = found.and_then(|id| match &self.node(id).body {
                Body::Link(target) if !last || follows => Some(target),
                _ => None,
            });
            if let Some(target) = link {
                *hops += 1;
                if *hops > path::MAX_HOPS {
                    return Err(Errno::ELOOP);
                }
                let next_follow = if last && follow == Follow::Make { follow } else { Follow::Always };
                let place = self.walk(at, target, next_follow, hops)?;
                if last {
                    return Ok(Place { slash: slash || place.slash, ..place });
                }
                at = place.node.ok_or(Errno::ENOENT)?;
            } else if last {
                return Ok(Place { parent: at, name, node: found, slash, dot: false, linked: false });
            } else {
                at = found.ok_or(Errno::ENOENT)?;
            }
            rest = next;
        }
    }

    /// Returns the node a path leads to.
    pub fn lookup(&self, path: &str, follow: bool) -> Result<NodeId> {
        let place = self.locate(path, follow)?;
        let id = place.node.ok_or(Errno::ENOENT)?;
        if place.slash && !self.node(id).is_dir() {
            return Err(Errno::ENOTDIR);
        }
        Ok(id)
    }

    /// Returns the path of a node, without links in it.
    pub fn path_of(&self, id: NodeId) -> String {
        if id == ROOT {
            return "/".to_owned();
        }
        let mut above = Vec::with_capacity(8);
        let mut at = id;
        // The number of nodes bounds what damage in a store could do; a sound tree never gets there.
        while at != ROOT && at != NOWHERE && above.len() < self.nodes.len() {
            let node = self.node(at);
            above.push(&*node.name);
            at = node.parent;
        }
        let mut out = String::with_capacity(above.iter().map(|name| name.len() + 1).sum());
        for name in above.into_iter().rev() {
            out.push('/');
            out.push_str(name);
        }
        out
    }

    /// Returns the path of a name in a directory.
    pub(crate) fn path_in(&self, dir: NodeId, name: &str) -> String {
        let mut out = self.path_of(dir);
        path::push(&mut out, name);
        out
    }

    /// Returns what stands at a canonical path; no link is followed, so behind one there is nothing.
    pub fn peek(&self, canonical: &str) -> State {
        self.peek_node(canonical).map_or(State::Absent, |id| self.state(id))
    }

    pub(crate) fn peek_node(&self, canonical: &str) -> Option<NodeId> {
        canonical.split('/').filter(|name| !name.is_empty()).try_fold(ROOT, |dir, name| self.child(dir, name))
    }

    /// Returns what a node is, for a journal.
    pub fn state(&self, id: NodeId) -> State {
        let node = self.node(id);
        match &node.body {
            Body::Free => State::Absent,
            Body::File(content) => State::File { content: Rc::clone(content), mode: node.mode, mtime: node.mtime },
            Body::Dir(_) => State::Dir { mode: node.mode, mtime: node.mtime },
            Body::Link(target) => State::Link { target: Rc::clone(target), mtime: node.mtime },
        }
    }

    /// Returns what `stat` tells of a node.
    pub fn stat_node(&self, id: NodeId) -> Result<Stat> {
        let node = self.node(id);
        let (kind, size) = match &node.body {
            Body::Free => return Err(Errno::ENOENT),
            Body::File(content) => (Type::File, content.len()),
            Body::Dir(_) => (Type::Dir, 0),
            Body::Link(target) => (Type::Link, target.len()),
        };
        Ok(Stat {
            kind,
            size: size as u64,
            mode: node.mode,
            mtime: node.mtime,
            ctime: node.ctime,
            ino: u64::from(id) + 1,
        })
    }

    /// Tells about what a path leads to.
    pub fn stat(&self, path: &str, follow: bool) -> Result<Stat> {
        self.stat_node(self.lookup(path, follow)?)
    }

    /// Returns the bytes of a node that is a file.
    pub fn content(&self, id: NodeId) -> Result<&Rc<Content>> {
        match &self.node(id).body {
            Body::File(content) => Ok(content),
            Body::Dir(_) => Err(Errno::EISDIR),
            Body::Link(_) => Err(Errno::EINVAL),
            Body::Free => Err(Errno::EBADF),
        }
    }

    /// Returns the bytes of a file.
    pub fn read(&self, path: &str) -> Result<&[u8]> {
        Ok(self.content(self.lookup(path, true)?)?.bytes())
    }

    /// Returns the names in a directory in the order of their bytes, with their types.
    pub fn readdir(&self, path: &str) -> Result<impl Iterator<Item = (&str, Type)>> {
        let entries = self.entries(self.lookup(path, true)?)?;
        Ok(entries.iter().map(|(name, id)| (&**name, self.kind(*id))))
    }

    pub(crate) fn kind(&self, id: NodeId) -> Type {
        match self.node(id).body {
            Body::Dir(_) => Type::Dir,
            Body::Link(_) => Type::Link,
            _ => Type::File,
        }
    }

    /// Returns where a link points, as written.
    pub fn readlink(&self, path: &str) -> Result<&str> {
        match &self.node(self.lookup(path, false)?).body {
            Body::Link(target) => Ok(target),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns the path without links that a path leads to.
    pub fn realpath(&self, path: &str) -> Result<String> {
        Ok(self.path_of(self.lookup(path, true)?))
    }

    /// Returns a node and all below it with their paths, parents first, names in order.
    pub(crate) fn subtree(&self, id: NodeId, path: String) -> Vec<(String, NodeId)> {
        let mut out = Vec::new();
        let mut stack = vec![(path, id)];
        while let Some((path, id)) = stack.pop() {
            if let Body::Dir(entries) = &self.node(id).body {
                for (name, child) in entries.iter().rev() {
                    let mut below = String::with_capacity(path.len() + name.len() + 1);
                    below.push_str(&path);
                    path::push(&mut below, name);
                    stack.push((below, *child));
                }
            }
            out.push((path, id));
        }
        out
    }

    /// Returns everything below a directory, parents first, names in order; the directory itself is not listed.
    pub fn tree(&self, path: &str) -> Result<Vec<(String, NodeId)>> {
        let id = self.lookup(path, true)?;
        self.entries(id)?;
        let mut all = self.subtree(id, self.path_of(id));
        all.remove(0);
        Ok(all)
    }

    // ------------------------------------------------------------------ primitive changes

    /// Notes that a node's record is behind.
    pub(crate) fn touch(&mut self, id: NodeId) {
        if !self.tracked {
            return;
        }
        let node = self.node_mut(id);
        if !node.dirty {
            node.dirty = true;
            self.dirty.push(id);
        }
    }

    /// Stamps a directory whose entries changed.
    pub(crate) fn stamp(&mut self, dir: NodeId, now: Millis) {
        let node = self.node_mut(dir);
        node.mtime = now;
        node.ctime = now;
        self.touch(dir);
    }

    /// Refuses a change that would leave more bytes than allowed, unless it frees some.
    pub(crate) fn check_room(&self, old: usize, new: usize) -> Result<()> {
        let after = self.bytes.saturating_sub(old as u64).saturating_add(new as u64);
        if new > old && after > self.max_bytes { Err(Errno::ENOSPC) } else { Ok(()) }
    }

    pub(crate) fn count(&mut self, old: usize, new: usize) {
        self.bytes = self.bytes.saturating_sub(old as u64).saturating_add(new as u64);
    }

    /// Makes a node and enters it in a directory.
    pub(crate) fn create(&mut self, dir: NodeId, name: Rc<str>, body: Body, mode: u16, now: Millis) -> NodeId {
        if let Body::File(content) = &body {
            let size = content.len();
            self.count(0, size);
        }
        let node = Node { body, name: Rc::clone(&name), parent: dir, mode, mtime: now, ctime: now, ..Node::free() };
        let id = match self.free.pop() {
            Some(id) => {
                let slot = self.node_mut(id);
                // A record of the slot's former node is overwritten in place.
                let (dirty, saved) = (slot.dirty, slot.saved);
                *slot = Node { dirty, saved, ..node };
                id
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as NodeId
            }
        };
        self.attach(dir, name, id);
        self.touch(id);
        self.stamp(dir, now);
        id
    }

    pub(crate) fn attach(&mut self, dir: NodeId, name: Rc<str>, id: NodeId) {
        if let Body::Dir(entries) = &mut self.node_mut(dir).body {
            entries.insert(name, id);
        }
    }

    pub(crate) fn detach(&mut self, id: NodeId) -> NodeId {
        let node = self.node(id);
        let (dir, name) = (node.parent, Rc::clone(&node.name));
        if let Body::Dir(entries) = &mut self.node_mut(dir).body {
            entries.remove(&name);
        }
        dir
    }

    /// Takes a node, and all below it, out of the tree.
    pub(crate) fn unlink(&mut self, id: NodeId, now: Millis) {
        let dir = self.detach(id);
        self.stamp(dir, now);
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            self.touch(id);
            let node = self.node_mut(id);
            node.parent = NOWHERE;
            node.ctime = now;
            if let Body::Dir(entries) = &node.body {
                stack.extend(entries.values());
            }
            let size = match &node.body {
                Body::File(content) => content.len(),
                _ => 0,
            };
            if node.opens == 0 {
                self.release(id);
            }
            self.count(size, 0);
        }
    }

    fn release(&mut self, id: NodeId) {
        let nameless = Rc::clone(&self.nil.name);
        let node = self.node_mut(id);
        node.body = Body::Free;
        node.name = nameless;
        self.free.push(id);
    }

    /// Says whether a node has been taken out of the tree while it was open.
    pub(crate) fn is_orphan(&self, id: NodeId) -> bool {
        self.node(id).parent == NOWHERE
    }

    /// Keeps a node's contents for as long as a handle on it is open.
    pub fn hold(&mut self, id: NodeId) {
        let node = self.node_mut(id);
        node.opens = node.opens.saturating_add(1);
    }

    /// Ends a hold; contents that nothing names any more go.
    pub fn let_go(&mut self, id: NodeId) {
        let node = self.node_mut(id);
        node.opens = node.opens.saturating_sub(1);
        if node.opens == 0 && node.parent == NOWHERE && !matches!(node.body, Body::Free) {
            self.release(id);
        }
    }
}

/// Building a tree from records.
impl Tree {
    /// Lays a node down under its number, not yet in any directory.
    pub(crate) fn put_node(&mut self, id: NodeId, name: Rc<str>, body: Body, mode: u16, mtime: Millis, ctime: Millis) {
        while self.nodes.len() <= id as usize {
            self.nodes.push(Node::free());
        }
        let parent = if id == ROOT { ROOT } else { NOWHERE };
        *self.node_mut(id) = Node { body, name, parent, mode, opens: 0, dirty: false, saved: true, mtime, ctime };
    }

    /// Enters a node in a directory under its name.
    pub(crate) fn enter(&mut self, dir: NodeId, id: NodeId) {
        let node = self.node_mut(id);
        node.parent = dir;
        let name = Rc::clone(&node.name);
        self.attach(dir, name, id);
    }

    /// Frees the nodes that cannot be reached and counts the bytes of the others.
    pub(crate) fn settle(&mut self, reached: &[NodeId]) {
        let mut is_reached = vec![false; self.nodes.len()];
        for id in reached {
            if let Some(mark) = is_reached.get_mut(*id as usize) {
                *mark = true;
            }
        }
        self.free.clear();
        self.bytes = 0;
        for id in 0..self.nodes.len() as NodeId {
            if is_reached.get(id as usize) == Some(&true) {
                if let Body::File(content) = &self.node(id).body {
                    self.bytes += content.len() as u64;
                }
            } else {
                self.node_mut(id).body = Body::Free;
                self.free.push(id);
            }
        }
        self.free.reverse();
    }
}
