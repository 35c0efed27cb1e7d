//! From the store to memory. Damage costs the record it hit: a journal that cannot be read is never used, a file whose
//! bytes are gone is missing and named, and what lost its directory stands in `/lost+found`.

use std::rc::Rc;

use super::Files;
use super::codec::{Reader, Writer, escape, unescape, unhex, unseal};
use super::history::{Run, RunState};
use super::journal::{Journal, QuickMap, is_forgotten};
use super::persist::{Blob, FORMAT};
use crate::core::error::{Error, Kind};
use crate::core::sorted::{SortedMap, sort_by};
use crate::core::time::Millis;
use crate::core::vfs::{Body, Content, Hash, NodeId, ROOT};

/// What was found damaged when a store was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Keys whose values cannot be read; they are left as they are.
    pub keys: Vec<String>,
    /// Files that are missing for it.
    pub paths: Vec<String>,
}

/// What the store holds, sorted by key; a pair that was taken leaves its key behind. A list, because a tree of the standard
/// library takes three kilobytes of the module.
struct Pairs(Vec<(String, Option<Vec<u8>>)>);

impl Pairs {
    fn new(pairs: Vec<(String, Vec<u8>)>) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().map(|(key, value)| (key, Some(value))).collect();
        sort_by(&mut pairs, |a, b| a.0 < b.0);
        Pairs(pairs)
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(found, _)| found.as_str().cmp(key))
    }

    fn get(&self, key: &str) -> Option<&Vec<u8>> {
        self.0.get(self.find(key).ok()?)?.1.as_ref()
    }

    fn take(&mut self, key: &str) -> Option<Vec<u8>> {
        let at = self.find(key).ok()?;
        self.0.get_mut(at)?.1.take()
    }

    fn set(&mut self, key: &str, value: Option<Vec<u8>>) {
        match self.find(key) {
            Ok(at) => {
                if let Some(pair) = self.0.get_mut(at) {
                    pair.1 = value;
                }
            }
            Err(at) => self.0.insert(at, (key.to_owned(), value)),
        }
    }

    fn keys_under(&self, prefix: &str) -> Vec<String> {
        let from = self.find(prefix).unwrap_or_else(|at| at);
        let under = self.0.get(from..).unwrap_or_default().iter().take_while(|(key, _)| key.starts_with(prefix));
        under.filter(|(_, value)| value.is_some()).map(|(key, _)| key.clone()).collect()
    }
}

impl Files {
    /// Returns the prefixes under which the files and the journals of a root stand.
    pub fn prefixes(root: &str) -> [String; 2] {
        let root = escape(root);
        [format!("f/{root}/"), format!("j/{root}/")]
    }

    /// Opens a root from all pairs under its two prefixes. `nonce` tells this writer from every other one.
    pub fn load(root: &str, pairs: Vec<(String, Vec<u8>)>, nonce: u64, now: Millis) -> Result<Files, Error> {
        let mut pairs = Pairs::new(pairs);
        let mut files = Files::new(now);
        let [own, journals] = Files::prefixes(root);
        files.store.on = true;
        files.tree.tracked = true;
        files.store.files = own;
        files.store.journals = journals;
        files.load_head(&pairs, nonce)?;
        files.finish_staged(&mut pairs);
        let blobs = files.load_blobs(&mut pairs);
        files.load_nodes(&mut pairs, &blobs, now);
        files.load_runs(&mut pairs, &blobs);
        files.settle_blobs(blobs);
        Ok(files)
    }

    /// Returns what was found damaged.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    fn load_head(&mut self, pairs: &Pairs, nonce: u64) -> Result<(), Error> {
        self.store.head = pairs.get(&self.store.key("head")).cloned();
        let body = self.store.head.clone().and_then(unseal).unwrap_or_default();
        let mut reader = Reader::new(&body);
        let version = reader.number().unwrap_or(FORMAT);
        if version > FORMAT {
            return Err(Error::new(Kind::NewerFormat, "the files were written by a newer version"));
        }
        self.store.epoch = reader.number().unwrap_or(0) + 1;
        self.store.own_head = Writer::default().number(FORMAT).number(self.store.epoch).number(nonce).seal();
        Ok(())
    }

    /// Carries out a large change that was laid down whole before the process died; sweeps one that was not.
    fn finish_staged(&mut self, pairs: &mut Pairs) {
        let marker = self.store.key("commit");
        let count = pairs.take(&marker).and_then(unseal).and_then(|body| Reader::new(&body).number());
        if let Some(count) = count {
            let keys = (0..count).map(|i| self.store.key(&format!("w/{i:06x}")));
            let bodies: Option<Vec<Vec<u8>>> = keys.map(|key| pairs.get(&key).cloned().and_then(unseal)).collect();
            for body in bodies.unwrap_or_default() {
                self.replay(pairs, &body);
            }
            self.store.prelude.push((marker, None));
        }
        let prefix = self.store.key("w/");
        let staged = pairs.keys_under(&prefix);
        for key in staged {
            pairs.take(&key);
            self.store.prelude.push((key, None));
        }
    }

    fn replay(&mut self, pairs: &mut Pairs, body: &[u8]) {
        let mut reader = Reader::new(body);
        while !reader.is_done() {
            let Some((kind, key)) = reader.number().zip(reader.text()) else { return };
            let value = if kind == 1 { reader.bytes().map(<[u8]>::to_vec) } else { None };
            pairs.set(key, value.clone());
            self.store.prelude.push((key.to_owned(), value));
        }
    }

    fn load_blobs(&mut self, pairs: &mut Pairs) -> Blobs {
        let prefix = self.store.key("b/");
        let keys = pairs.keys_under(&prefix);
        let mut parts: SortedMap<Hash, Vec<Option<Vec<u8>>>> = SortedMap::new();
        for key in keys {
            let name = key.get(prefix.len()..).and_then(|rest| rest.split('/').next()).and_then(unhex);
            let Some(hash) = name else { continue };
            let body = pairs.take(&key).and_then(unseal);
            if body.is_none() {
                self.damage.keys.push(key);
            }
            parts.get_or_insert_with(hash, Vec::new).push(body);
        }
        let mut blobs = Blobs::default();
        for (hash, chunks) in parts {
            let count = chunks.len();
            if let Some(bodies) = chunks.into_iter().collect::<Option<Vec<_>>>() {
                let bytes = if count == 1 { bodies.into_iter().next().unwrap_or_default() } else { bodies.concat() };
                blobs.insert(hash, (Rc::new(Content::loaded(bytes, hash)), count));
            }
        }
        blobs
    }

    /// Notes which stored contents are in use; the others are swept with the next batch.
    fn settle_blobs(&mut self, blobs: Blobs) {
        for (hash, (content, chunks)) in blobs {
            self.store.blobs.insert(hash, Blob { chunks, holders: vec![Rc::downgrade(&content)] });
        }
    }

    fn load_nodes(&mut self, pairs: &mut Pairs, blobs: &Blobs, now: Millis) {
        let prefix = self.store.key("n/");
        let keys = pairs.keys_under(&prefix);
        if keys.is_empty() {
            self.tree.touch(ROOT);
        }
        let mut links = Vec::new();
        for key in keys {
            let id = key.get(prefix.len()..).and_then(|digits| NodeId::from_str_radix(digits, 16).ok());
            let body = pairs.take(&key).and_then(unseal);
            let read = id.zip(body).and_then(|(id, body)| self.load_node(id, &body, blobs));
            match read {
                Some((id, parent, whole)) if whole => links.push((id, parent)),
                Some((id, _, _)) => {
                    let name = self.tree.node(id).name.to_string();
                    self.damage.paths.push(name);
                    self.damage.keys.push(key);
                    self.tree.node_mut(id).body = Body::Free;
                }
                None => self.damage.keys.push(key),
            }
        }
        self.link_up(links, now);
    }

    fn load_node(&mut self, id: NodeId, body: &[u8], blobs: &Blobs) -> Option<(NodeId, NodeId, bool)> {
        let mut reader = Reader::new(body);
        let kind = reader.number()?;
        let parent = NodeId::try_from(reader.number()?).ok()?;
        let name = Rc::from(reader.text()?);
        let (mode, mtime, ctime) = (reader.number()? as u16, reader.signed()?, reader.signed()?);
        let body = match kind {
            1 => Body::File(reader.content(&|hash, len| find(blobs, hash, len))?),
            2 => Body::Dir(Default::default()),
            3 => Body::Link(Rc::from(reader.text()?)),
            _ => return None,
        };
        let whole = !matches!(&body, Body::File(content) if !content.is_whole());
        self.tree.put_node(id, name, body, mode, mtime, ctime);
        Some((id, parent, whole))
    }

    /// Enters every node in its directory.
    fn link_up(&mut self, links: Vec<(NodeId, NodeId)>, now: Millis) {
        let mut lost = Vec::new();
        for (id, parent) in links.into_iter().filter(|(id, _)| *id != ROOT) {
            let name = Rc::clone(&self.tree.node(id).name);
            let is_free =
                self.tree.entries(parent).is_ok_and(|entries| !entries.contains_key(&name)) && !name.is_empty();
            if is_free && id != parent {
                self.tree.enter(parent, id);
            } else {
                lost.push(id);
            }
        }
        let reached: Vec<NodeId> = self.tree.subtree(ROOT, String::new()).into_iter().map(|(_, id)| id).collect();
        if !lost.is_empty() {
            let _ = self.tree.mkdir_all("/lost+found", 0o755, now, None);
            if let Ok(dir) = self.tree.lookup("/lost+found", true) {
                for id in lost {
                    self.tree.node_mut(id).name = Rc::from(format!("{id}"));
                    self.tree.enter(dir, id);
                    self.tree.touch(id);
                }
            }
        }
        let lost_root = self.tree.lookup("/lost+found", true).ok();
        let rescued = lost_root.map(|id| self.tree.subtree(id, String::new())).unwrap_or_default();
        let reached: Vec<NodeId> = reached.into_iter().chain(rescued.into_iter().map(|(_, id)| id)).collect();
        self.tree.settle(&reached);
    }

    fn load_runs(&mut self, pairs: &mut Pairs, blobs: &Blobs) {
        let line = pairs.take(&self.store.key("line"));
        let had_line = line.is_some();
        let line = line.and_then(unseal).and_then(|body| read_line(&body));
        let journals = self.store.journals.clone();
        let mut found: SortedMap<String, Run> = SortedMap::new();
        let keys = pairs.keys_under(&journals);
        for key in keys {
            let Some((id, kind, number)) = key.get(journals.len()..).and_then(parse_piece) else { continue };
            let run = found.get_or_insert_with(id.clone(), || Run::new(Rc::from(id), RunState::Done));
            let Run { journal, back, orphaned, .. } = run;
            let journal = if kind == 'e' { journal } else { back.get_or_insert_default() };
            let body = pairs.take(&key).and_then(unseal);
            read_piece(journal, orphaned, number, body.as_deref(), blobs);
            if body.is_none() {
                self.damage.keys.push(key);
            }
        }
        let is_known = line.is_some();
        if had_line && !is_known {
            self.damage.keys.push(self.store.key("line"));
        }
        let [undoable, redoable, open] = line.unwrap_or_else(|| {
            // Without the line, what was undone is not known to be; all runs count as ended, in the order of their ids.
            let (back, done): (Vec<_>, Vec<_>) = found.iter().partition(|(_, run)| run.back.is_some());
            let ids = |runs: Vec<(&String, &Run)>| runs.into_iter().map(|(id, _)| id.clone()).collect();
            [ids(done), ids(back), Vec::new()]
        });
        // Runs that were open are interrupted: they count as ended now.
        self.store.line_dirty = !open.is_empty() || had_line && !is_known;
        for (list, state) in [(undoable, RunState::Done), (open, RunState::Done), (redoable, RunState::Undone)] {
            for id in list {
                self.enter_run(found.remove(&id), &id, state);
            }
        }
        for run in found.into_values() {
            self.store.drop_run(&run);
        }
    }

    fn enter_run(&mut self, run: Option<Run>, id: &str, state: RunState) {
        let missing = run.is_none();
        let mut run = run.unwrap_or_else(|| Run::new(Rc::from(id), state));
        run.state = state;
        // A journal that is named and not there is damage, not an empty run.
        run.journal.damaged += u32::from(missing);
        if state == RunState::Undone && run.back.is_none() {
            run.back = Some(Journal::broken());
        }
        self.last_run += 1;
        self.runs.insert(self.last_run, run);
        match state {
            RunState::Undone => self.redoable.push(self.last_run),
            _ => self.undoable.push(self.last_run),
        }
    }
}

type Blobs = QuickMap<Hash, (Rc<Content>, usize)>;

fn find(blobs: &Blobs, hash: &Hash, len: usize) -> Rc<Content> {
    match blobs.get(hash) {
        Some((content, _)) if content.len() == len => Rc::clone(content),
        _ => Rc::new(Content::known(len, *hash)),
    }
}

fn parse_piece(rest: &str) -> Option<(String, char, u32)> {
    let (run, piece) = rest.split_once('/')?;
    let kind = piece.chars().next().filter(|kind| matches!(kind, 'e' | 'r'))?;
    Some((unescape(run)?, kind, u32::from_str_radix(piece.get(1..)?, 16).ok()?))
}

/// Reads one piece of a journal; pieces come in the order of their numbers and may not have gaps.
fn read_piece(journal: &mut Journal, orphaned: &mut Vec<Rc<str>>, number: u32, body: Option<&[u8]>, blobs: &Blobs) {
    let is_first = journal.pieces == (0, 0);
    if is_first {
        journal.pieces.0 = number;
    } else if number != journal.pieces.1 {
        journal.damaged += 1;
    }
    journal.pieces.1 = number + 1;
    if body.and_then(|body| read_entries(journal, orphaned, body, blobs)).is_none() {
        journal.damaged += 1;
    }
}

fn read_entries(journal: &mut Journal, orphaned: &mut Vec<Rc<str>>, body: &[u8], blobs: &Blobs) -> Option<()> {
    let find = |hash: &Hash, len: usize| find(blobs, hash, len);
    let mut reader = Reader::new(body);
    journal.ops = reader.number()?;
    orphaned.clear();
    for _ in 0..reader.number()? {
        orphaned.push(Rc::from(reader.text()?));
    }
    while !reader.is_done() {
        let flags = reader.number()?;
        let (dead, barrier) = (flags & 1 != 0, flags & 2 != 0);
        let path = Rc::from(reader.text()?);
        // What was declared as not kept stays so, also while the store still has it.
        let forgotten = |hash: &Hash, len: usize| Rc::new(Content::known(len, *hash));
        let image = if barrier { reader.state(&forgotten)? } else { reader.state(&find)? };
        let left = reader.state(&find)?;
        // The bytes of an image must be here, unless it was declared that they are not: without them nothing can be put back.
        if !barrier && is_forgotten(&image) {
            journal.damaged += 1;
        }
        let at = journal.set(path, image, left);
        if let Some(entry) = journal.get_mut(at) {
            entry.dead = dead;
            entry.dirty = false;
        }
        journal.written += 1;
    }
    journal.dirty.clear();
    Some(())
}

fn read_line(body: &[u8]) -> Option<[Vec<String>; 3]> {
    let mut reader = Reader::new(body);
    let mut out: [Vec<String>; 3] = Default::default();
    for list in &mut out {
        for _ in 0..reader.number()? {
            list.push(reader.text()?.to_owned());
        }
    }
    Some(out)
}
