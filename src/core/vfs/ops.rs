//! Operations: each checks everything first and then changes all of it or nothing.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::change::{State, Watch};
use super::content::Content;
use super::errno::{Errno, Result};
use super::path;
use super::tree::{Body, Follow, NodeId, ROOT, Tree};
use crate::core::time::Millis;

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Add at the end instead of replacing.
    pub append: bool,
    /// Make the file when it is missing.
    pub create: bool,
    /// Refuse a file that is there (and a link in its place).
    pub exclusive: bool,
    /// The mode of a file that is made.
    pub mode: u16,
}

impl Default for Write {
    fn default() -> Self {
        Write { append: false, create: true, exclusive: false, mode: 0o644 }
    }
}

/// What may be removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remove {
    /// A directory with all it holds.
    pub recursive: bool,
    /// Nothing at all: a missing path is no error.
    pub force: bool,
    /// Only files and links (`unlink`).
    pub leaf_only: bool,
    /// Only directories (`rmdir`).
    pub dir_only: bool,
}

/// Who watches an operation, if anyone.
pub type Eye<'a, 'b> = Option<&'a mut (dyn Watch + 'b)>;

impl Tree {
    /// Makes, replaces or appends to a file; an existing one keeps its mode.
    pub fn write(&mut self, path: &str, data: Vec<u8>, how: Write, now: Millis, watch: Eye) -> Result<NodeId> {
        if how.create {
            self.check_makable(path)?;
        }
        let follow = match (how.exclusive, how.create) {
            (true, _) => Follow::Never,
            (_, true) => Follow::Make,
            _ => Follow::Always,
        };
        let place = self.locate_as(path, follow)?;
        if place.slash || place.dot {
            return Err(if place.dot && how.exclusive { Errno::EEXIST } else { Errno::EISDIR });
        }
        let Some(id) = place.node else {
            if !how.create {
                return Err(Errno::ENOENT);
            }
            let (dir, name) = (place.parent, Rc::from(place.name));
            self.check_room(0, data.len())?;
            let content = Rc::new(Content::new(data));
            return self.make(dir, name, Body::File(content), how.mode, now, watch);
        };
        if how.exclusive {
            return Err(Errno::EEXIST);
        }
        let known = if !place.linked && path::is_plain(path) { Some(path) } else { None };
        let old = self.content(id)?.len();
        if how.append {
            self.splice(id, old, data, now, watch)?;
        } else {
            self.check_size(id, old, data.len())?;
            self.change_file(id, known, now, watch, |content| *content = Rc::new(Content::new(data)));
        }
        Ok(id)
    }

    /// Refuses to make a file behind a slash, before anything at the end of the path is looked at.
    pub fn check_makable(&self, path: &str) -> Result<()> {
        path::check(path)?;
        let bare = path.trim_end_matches('/');
        if bare.len() == path.len() {
            return Ok(());
        }
        let dir = bare.rfind('/').and_then(|at| path.get(..=at)).unwrap_or("/");
        self.entries(self.lookup(dir, true)?)?;
        Err(Errno::EISDIR)
    }

    /// Writes bytes into a file at an offset; a gap is filled with zeros.
    pub fn splice(&mut self, id: NodeId, offset: usize, data: Vec<u8>, now: Millis, watch: Eye) -> Result<()> {
        let old = self.content(id)?.len();
        let end = offset.checked_add(data.len()).ok_or(Errno::EFBIG)?;
        self.check_size(id, old, old.max(end))?;
        self.change_file(id, None, now, watch, |content| {
            let bytes = Content::edit(content);
            bytes.resize(old.max(end), 0);
            if let Some(slot) = bytes.get_mut(offset..end) {
                slot.copy_from_slice(&data);
            }
        });
        Ok(())
    }

    /// Cuts a file, or fills it up with zeros.
    pub fn truncate(&mut self, id: NodeId, len: usize, now: Millis, watch: Eye) -> Result<()> {
        let old = self.content(id)?.len();
        self.check_size(id, old, len)?;
        self.change_file(id, None, now, watch, |content| Content::edit(content).resize(len, 0));
        Ok(())
    }

    fn check_size(&self, id: NodeId, old: usize, new: usize) -> Result<()> {
        if self.is_orphan(id) { Ok(()) } else { self.check_room(old, new) }
    }

    /// Changes the bytes of a file; `known` is its path, where that is at hand.
    fn change_file(
        &mut self,
        id: NodeId,
        known: Option<&str>,
        now: Millis,
        watch: Eye,
        change: impl FnOnce(&mut Rc<Content>),
    ) {
        let orphan = self.is_orphan(id);
        let mut watch = watch.filter(|_| !orphan);
        let ticket = watch.as_deref_mut().map(|w| match known {
            Some(path) => w.before(path, self.state(id), true),
            None => w.before(&self.path_of(id), self.state(id), true),
        });
        let node = self.node_mut(id);
        node.mtime = now;
        node.ctime = now;
        let mut sizes = (0, 0);
        if let Body::File(content) = &mut node.body {
            sizes.0 = content.len();
            change(content);
            sizes.1 = content.len();
        }
        if !orphan {
            self.count(sizes.0, sizes.1);
            self.touch(id);
        }
        if let (Some(w), Some(ticket)) = (watch, ticket) {
            w.after(ticket, self.state(id));
            w.done();
        }
    }

    /// Makes a node where nothing stands, and tells.
    fn make(&mut self, dir: NodeId, name: Rc<str>, body: Body, mode: u16, now: Millis, watch: Eye) -> Result<NodeId> {
        let Some(w) = watch else { return Ok(self.create(dir, name, body, mode, now)) };
        let ticket = w.before(&self.path_in(dir, &name), State::Absent, false);
        let id = self.create(dir, name, body, mode, now);
        w.after(ticket, self.state(id));
        w.done();
        Ok(id)
    }

    /// Makes a directory.
    pub fn mkdir(&mut self, path: &str, mode: u16, now: Millis, watch: Eye) -> Result<()> {
        path::check(path)?;
        let bare = path.trim_end_matches('/');
        let place = self.locate(if bare.is_empty() { "/" } else { bare }, false)?;
        if place.node.is_some() {
            return Err(Errno::EEXIST);
        }
        let (dir, name) = (place.parent, Rc::from(place.name));
        self.make(dir, name, Body::Dir(BTreeMap::new()), mode, now, watch)?;
        Ok(())
    }

    /// Makes a directory and those above it; returns the first one made, none when all were there.
    pub fn mkdir_all(&mut self, path: &str, mode: u16, now: Millis, watch: Eye) -> Result<Option<String>> {
        path::check(path)?;
        let mut made = Vec::new();
        if let Err(errno) = self.make_dirs(path, mode, now, &mut made) {
            for id in made.into_iter().rev() {
                self.unlink(id, now);
            }
            return Err(errno);
        }
        if let (Some(w), false) = (watch, made.is_empty()) {
            for id in &made {
                let ticket = w.before(&self.path_of(*id), State::Absent, false);
                w.after(ticket, self.state(*id));
            }
            w.done();
        }
        Ok(made.first().map(|id| self.path_of(*id)))
    }

    fn make_dirs(&mut self, path: &str, mode: u16, now: Millis, made: &mut Vec<NodeId>) -> Result<()> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends.filter(|end| *end > 0).collect::<Vec<_>>() {
            let prefix = path.get(..end).unwrap_or(path);
            if prefix.ends_with('/') {
                continue;
            }
            let place = self.locate(prefix, false)?;
            if place.node.is_none() {
                let (dir, name) = (place.parent, Rc::from(place.name));
                made.push(self.create(dir, name, Body::Dir(BTreeMap::new()), mode, now));
                continue;
            }
            let found = self.lookup(prefix, true);
            if !found.is_ok_and(|id| self.node(id).is_dir()) {
                let is_last = path.get(end..).is_none_or(|rest| rest.trim_matches('/').is_empty());
                return Err(if is_last { Errno::EEXIST } else { found.err().unwrap_or(Errno::ENOTDIR) });
            }
        }
        Ok(())
    }

    /// Removes a file, a link or a directory.
    pub fn remove(&mut self, path: &str, how: Remove, now: Millis, watch: Eye) -> Result<()> {
        path::check(path)?;
        let bare = path.trim_end_matches('/');
        if bare.is_empty() {
            return Err(if how.leaf_only { Errno::EISDIR } else { Errno::EBUSY });
        }
        let place = match self.locate(bare, false) {
            Err(Errno::ENOENT | Errno::ENOTDIR) if how.force => return Ok(()),
            other => other?,
        };
        let Some(id) = place.node else { return if how.force { Ok(()) } else { Err(Errno::ENOENT) } };
        let (dot, dotdot) = (place.dot, place.name == "..");
        let node = self.node(id);
        if let Body::Dir(entries) = &node.body {
            if how.leaf_only {
                return Err(Errno::EISDIR);
            }
            if dot {
                return Err(if dotdot { Errno::ENOTEMPTY } else { Errno::EINVAL });
            }
            if !entries.is_empty() && !how.recursive {
                return Err(Errno::ENOTEMPTY);
            }
        } else if how.dir_only || bare.len() < path.len() {
            return Err(Errno::ENOTDIR);
        }
        self.take_out(id, now, watch);
        Ok(())
    }

    fn take_out(&mut self, id: NodeId, now: Millis, watch: Eye) {
        let Some(w) = watch else { return self.unlink(id, now) };
        let all = self.subtree(id, self.path_of(id));
        let tickets: Vec<u32> = all.into_iter().map(|(path, id)| w.before(&path, self.state(id), true)).collect();
        self.unlink(id, now);
        for ticket in tickets {
            w.after(ticket, State::Absent);
        }
        w.done();
    }

    /// Renames as rename(2): replaces a file, a link or an empty directory.
    pub fn rename(&mut self, from: &str, to: &str, now: Millis, watch: Eye) -> Result<()> {
        path::check(from)?;
        path::check(to)?;
        let (bare_from, bare_to) = (from.trim_end_matches('/'), to.trim_end_matches('/'));
        let source = self.locate(if bare_from.is_empty() { "/" } else { bare_from }, false)?;
        let target = self.locate(if bare_to.is_empty() { "/" } else { bare_to }, false)?;
        if source.dot || target.dot {
            return Err(Errno::EBUSY);
        }
        let id = source.node.ok_or(Errno::ENOENT)?;
        let is_dir = self.node(id).is_dir();
        if !is_dir && (bare_from.len() < from.len() || bare_to.len() < to.len()) {
            return Err(Errno::ENOTDIR);
        }
        if self.is_within(target.parent, id) {
            return Err(Errno::EINVAL);
        }
        if let Some(other) = target.node {
            if other == id {
                return Ok(());
            }
            match &self.node(other).body {
                Body::Dir(_) if self.is_within(source.parent, other) => return Err(Errno::ENOTEMPTY),
                Body::Dir(_) if !is_dir => return Err(Errno::EISDIR),
                Body::Dir(entries) if !entries.is_empty() => return Err(Errno::ENOTEMPTY),
                Body::Dir(_) => {}
                _ if is_dir => return Err(Errno::ENOTDIR),
                _ => {}
            }
        }
        let (dir, name, replaced) = (target.parent, Rc::from(target.name), target.node);
        self.do_rename(id, dir, name, replaced, now, watch);
        Ok(())
    }

    fn do_rename(&mut self, id: NodeId, dir: NodeId, name: Rc<str>, replaced: Option<NodeId>, now: Millis, watch: Eye) {
        let Some(w) = watch else { return self.relink(id, dir, name, replaced, now) };
        let old = self.subtree(id, self.path_of(id));
        let new_root = self.path_in(dir, &name);
        let mut gone: Vec<u32> = old.iter().map(|(path, id)| w.before(path, self.state(*id), false)).collect();
        let mut came = Vec::with_capacity(old.len());
        let was = replaced.map_or(State::Absent, |id| self.state(id));
        came.push(w.before(&new_root, was, true));
        self.relink(id, dir, name, replaced, now);
        let new = self.subtree(id, new_root);
        came.extend(new.iter().skip(1).map(|(path, _)| w.before(path, State::Absent, false)));
        for ticket in gone.drain(..) {
            w.after(ticket, State::Absent);
        }
        for ((_, id), ticket) in new.iter().zip(came) {
            w.after(ticket, self.state(*id));
        }
        w.done();
    }

    fn relink(&mut self, id: NodeId, dir: NodeId, name: Rc<str>, replaced: Option<NodeId>, now: Millis) {
        if let Some(other) = replaced {
            self.unlink(other, now);
        }
        let left = self.detach(id);
        let node = self.node_mut(id);
        node.parent = dir;
        node.name = Rc::clone(&name);
        node.ctime = now;
        self.attach(dir, name, id);
        self.touch(id);
        self.stamp(left, now);
        self.stamp(dir, now);
    }

    /// Says whether a directory is another one or lies below it.
    fn is_within(&self, mut dir: NodeId, top: NodeId) -> bool {
        loop {
            if dir == top {
                return true;
            }
            if dir == ROOT {
                return false;
            }
            dir = self.node(dir).parent;
            if dir as usize >= self.nodes.len() {
                return false;
            }
        }
    }

    /// Makes a symbolic link.
    pub fn symlink(&mut self, target: &str, path: &str, now: Millis, watch: Eye) -> Result<()> {
        path::check(target)?;
        path::check(path)?;
        let bare = path.trim_end_matches('/');
        let place = self.locate(if bare.is_empty() { "/" } else { bare }, false)?;
        if place.node.is_some() {
            return Err(Errno::EEXIST);
        }
        if bare.len() < path.len() {
            return Err(Errno::ENOENT);
        }
        let (dir, name) = (place.parent, Rc::from(place.name));
        self.make(dir, name, Body::Link(Rc::from(target)), 0o777, now, watch)?;
        Ok(())
    }

    /// Sets the permission bits; those a file already has change nothing.
    pub fn chmod(&mut self, path: &str, mode: u16, now: Millis, watch: Eye) -> Result<()> {
        let id = self.lookup(path, true)?;
        self.chmod_node(id, mode, now, watch);
        Ok(())
    }

    /// Sets the permission bits of a node.
    pub fn chmod_node(&mut self, id: NodeId, mode: u16, now: Millis, watch: Eye) {
        let mode = mode & 0o7777;
        if self.node(id).mode == mode {
            return;
        }
        self.change_meta(id, watch, |node| {
            node.0 = mode;
            node.2 = now;
        });
    }

    /// Sets the modification time.
    pub fn utimes(&mut self, path: &str, mtime: Millis, follow: bool, now: Millis, watch: Eye) -> Result<()> {
        let id = self.lookup(path, follow)?;
        self.utimes_node(id, mtime, now, watch);
        Ok(())
    }

    /// Sets the modification time of a node.
    pub fn utimes_node(&mut self, id: NodeId, mtime: Millis, now: Millis, watch: Eye) {
        self.change_meta(id, watch, |node| {
            node.1 = mtime;
            node.2 = now;
        });
    }

    fn change_meta(&mut self, id: NodeId, watch: Eye, change: impl FnOnce(&mut (u16, Millis, Millis))) {
        let orphan = self.is_orphan(id);
        let mut watch = watch.filter(|_| !orphan);
        let ticket = watch.as_deref_mut().map(|w| w.before(&self.path_of(id), self.state(id), false));
        let node = self.node_mut(id);
        let mut meta = (node.mode, node.mtime, node.ctime);
        change(&mut meta);
        (node.mode, node.mtime, node.ctime) = meta;
        if !orphan {
            self.touch(id);
        }
        if let (Some(w), Some(ticket)) = (watch, ticket) {
            w.after(ticket, self.state(id));
            w.done();
        }
    }

    /// Copies a file, or with `recursive` a tree (links as links), over what is there. Bytes are shared until one changes.
    pub fn copy(&mut self, from: &str, to: &str, recursive: bool, now: Millis, watch: Eye) -> Result<()> {
        let source = self.lookup(from, !recursive)?;
        if self.node(source).is_dir() && !recursive {
            return Err(Errno::EISDIR);
        }
        let place = self.locate(to, true)?;
        if !self.node(source).is_dir() && place.slash {
            return Err(Errno::EISDIR);
        }
        if place.node == Some(source) || self.is_within(place.node.unwrap_or(place.parent), source) {
            return Err(Errno::EINVAL);
        }
        let top = place.node.map_or_else(|| self.path_in(place.parent, place.name), |id| self.path_of(id));
        let plan = self.plan_copy(source, top)?;
        self.do_copy(plan, now, watch);
        Ok(())
    }

    fn plan_copy(&self, source: NodeId, top: String) -> Result<Vec<(String, NodeId)>> {
        let plan = self.subtree(source, top);
        let (mut old, mut new) = (0, 0);
        for (path, id) in &plan {
            let there = self.peek(path);
            match (&self.node(*id).body, &there) {
                (Body::Dir(_), State::File { .. } | State::Link { .. }) => return Err(Errno::ENOTDIR),
                (Body::File(_) | Body::Link(_), State::Dir { .. }) => return Err(Errno::EISDIR),
                (Body::File(content), _) => new += content.len(),
                _ => {}
            }
            if !self.node(*id).is_dir() {
                old += there.size() as usize;
            }
            let name = path.rsplit('/').next().unwrap_or_default();
            if name.len() > path::MAX_NAME {
                return Err(Errno::ENAMETOOLONG);
            }
        }
        self.check_room(old, new)?;
        Ok(plan)
    }

    fn do_copy(&mut self, plan: Vec<(String, NodeId)>, now: Millis, mut watch: Eye) {
        let mut changed = false;
        for (path, id) in plan {
            let before = self.peek(&path);
            let after = match (self.state(id), &before) {
                (State::Dir { .. }, State::Dir { .. }) => continue,
                (State::File { content, .. }, State::File { mode, .. }) => {
                    State::File { content, mode: *mode, mtime: now }
                }
                (State::File { content, mode, .. }, _) => State::File { content, mode, mtime: now },
                (State::Dir { mode, .. }, _) => State::Dir { mode, mtime: now },
                (State::Link { target, .. }, _) => State::Link { target, mtime: now },
                (State::Absent, _) => continue,
            };
            changed = true;
            let ticket = watch.as_deref_mut().map(|w| w.before(&path, before, true));
            self.place(&path, &after, now);
            if let (Some(w), Some(ticket)) = (watch.as_deref_mut(), ticket) {
                w.after(ticket, after);
            }
        }
        if let (Some(w), true) = (watch, changed) {
            w.done();
        }
    }

    // ------------------------------------------------------------------ what undo works with

    /// Puts a state at a canonical path whose parent is a directory. A directory is never replaced by something else.
    pub fn place(&mut self, canonical: &str, state: &State, now: Millis) {
        let body = || match state {
            State::Absent | State::Dir { .. } => Body::Dir(BTreeMap::new()),
            State::File { content, .. } => Body::File(Rc::clone(content)),
            State::Link { target, .. } => Body::Link(Rc::clone(target)),
        };
        let (mode, mtime) = match state {
            State::Absent => return self.clear(canonical, now),
            State::File { mode, mtime, .. } | State::Dir { mode, mtime } => (*mode, *mtime),
            State::Link { mtime, .. } => (0o777, *mtime),
        };
        let there = self.peek_node(canonical);
        if there.is_some_and(|id| self.replace(id, body(), mode, mtime, now)) {
            return;
        }
        let Some(dir) = path::parent(canonical).and_then(|parent| self.peek_node(parent)) else { return };
        let name = Rc::from(canonical.rsplit('/').next().unwrap_or_default());
        let id = self.create(dir, name, body(), mode, now);
        self.node_mut(id).mtime = mtime;
    }

    /// Gives a node of the same type another body; takes out one of another type and answers false.
    fn replace(&mut self, id: NodeId, body: Body, mode: u16, mtime: Millis, now: Millis) -> bool {
        let node = self.node_mut(id);
        let mut sizes = (0, 0);
        match (&mut node.body, body) {
            (Body::File(old), Body::File(new)) => {
                sizes = (old.len(), new.len());
                *old = new;
            }
            (Body::Dir(_), Body::Dir(_)) => {}
            (Body::Link(old), Body::Link(new)) => *old = new,
            (Body::Dir(entries), _) if !entries.is_empty() => return true,
            _ => {
                self.unlink(id, now);
                return false;
            }
        }
        node.mode = mode;
        node.mtime = mtime;
        node.ctime = now;
        self.count(sizes.0, sizes.1);
        self.touch(id);
        true
    }

    /// Sets the times of a node that undo puts back last.
    pub(crate) fn set_mtime(&mut self, canonical: &str, mtime: Millis) {
        if let Some(id) = self.peek_node(canonical) {
            self.node_mut(id).mtime = mtime;
            self.touch(id);
        }
    }

    /// Takes a file, a link or an empty directory out.
    fn clear(&mut self, canonical: &str, now: Millis) {
        if let Some(id) = self.peek_node(canonical) {
            let is_full = self.entries(id).is_ok_and(|entries| !entries.is_empty());
            if !is_full && id != ROOT {
                self.unlink(id, now);
            }
        }
    }
}
