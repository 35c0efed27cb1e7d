//! From memory to the store: only what changed, in batches that may be lost from the end and never leave half an operation.
//!
//! Everything that changed since the last call goes into one batch: the tree is then always that after some number of the
//! operations, and a change never stands without the entry of the journal that undoes it. What is too large for one batch
//! is laid down beside first and takes effect with one small record.

use std::collections::HashSet;
use std::rc::{Rc, Weak};

use super::Files;
use super::codec::{Writer, escape, hex, seal};
use super::history::{Run, RunState};
use super::journal::{Journal, QuickMap};
use crate::core::vfs::{Body, Content, Hash, Node, NodeId, State, Tree};

/// The version of the format.
pub(super) const FORMAT: u64 = 1;

/// Pieces of a journal are cut at this size.
const PIECE: usize = 48 * 1024;

/// What a backend takes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of one value.
    pub value: usize,
    /// Most puts and deletes of one batch.
    pub batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { value: 1024 * 1024, batch: 5_000 }
    }
}

/// One atomic batch of the storage port, as the core sees it: checks first, then deletes, then puts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// What must stand under a key (or not) for the batch to go through.
    pub checks: Vec<(String, Option<Vec<u8>>)>,
    /// Values to write; no key stands here and in `deletes`.
    pub puts: Vec<(String, Vec<u8>)>,
    /// Keys to remove.
    pub deletes: Vec<String>,
    /// From here on the change counts: a store that refuses this batch or one before it has none of it.
    pub counts: bool,
}

#[derive(Debug)]
pub(super) struct Blob {
    pub chunks: usize,
    pub holders: Vec<Weak<Content>>,
}

/// What is known of the store.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub on: bool,
    pub files: String,
    pub journals: String,
    pub line_dirty: bool,
    pub blobs: QuickMap<Hash, Blob>,
    /// Keys of journals that are done with.
    pub garbage: Vec<String>,
    /// What stands under the key of the head, and what this writer puts there.
    pub head: Option<Vec<u8>>,
    pub own_head: Vec<u8>,
    pub claimed: bool,
    /// Whether the first of the batches drained last claims the store.
    pub claiming: bool,
    pub epoch: u64,
    /// What finishes, or sweeps, a large change that was cut off: carried out before all else, in this order.
    pub prelude: Vec<(String, Option<Vec<u8>>)>,
    stores_since_sweep: usize,
}

impl Store {
    pub fn key(&self, rest: &str) -> String {
        format!("{}{rest}", self.files)
    }

    fn piece_key(&self, run: &str, kind: &str, number: u32) -> String {
        format!("{}{}/{kind}{number:06x}", self.journals, escape(run))
    }

    pub fn drop_run(&mut self, run: &Run) {
        self.line_dirty = true;
        self.drop_pieces(&run.id, "e", &run.journal);
        if let Some(back) = &run.back {
            self.drop_back(&run.id, back);
        }
    }

    pub fn drop_back(&mut self, run: &str, back: &Journal) {
        self.drop_pieces(run, "r", back);
    }

    fn drop_pieces(&mut self, run: &str, kind: &str, journal: &Journal) {
        for number in journal.pieces.0..journal.pieces.1 {
            let key = self.piece_key(run, kind, number);
            self.garbage.push(key);
        }
    }

    /// Sees to it that contents stand in the store, under their hash and once.
    fn keep(&mut self, content: &Rc<Content>, inline: usize, limit: usize, puts: &mut Vec<(String, Vec<u8>)>) {
        if content.len() <= inline || content.is_stored() || !content.is_whole() {
            return;
        }
        let hash = *content.hash();
        content.set_stored();
        if let Some(blob) = self.blobs.get_mut(&hash) {
            let alive = blob.holders.iter().any(|holder| holder.strong_count() > 0);
            blob.holders.push(Rc::downgrade(content));
            if alive {
                return;
            }
        }
        let name = hex(&hash);
        let mut chunks = 0;
        // The checksum takes four bytes.
        for chunk in content.bytes().chunks(limit.saturating_sub(4).max(1)) {
            puts.push((format!("{}b/{name}/{chunks:06x}", self.files), seal(chunk.to_vec())));
            chunks += 1;
        }
        self.blobs.insert(hash, Blob { chunks, holders: vec![Rc::downgrade(content)] });
    }

    /// Finds stored contents that nobody holds any more.
    fn sweep(&mut self, deletes: &mut Vec<String>) {
        self.stores_since_sweep = 0;
        let files = &self.files;
        self.blobs.retain(|hash, blob| {
            blob.holders.retain(|holder| holder.strong_count() > 0);
            if blob.holders.is_empty() {
                let name = hex(hash);
                deletes.extend((0..blob.chunks).map(|chunk| format!("{files}b/{name}/{chunk:06x}")));
            }
            !blob.holders.is_empty()
        });
    }
}

/// One logical change of the store, before it is cut into batches.
#[derive(Default)]
struct Change {
    blobs: Vec<(String, Vec<u8>)>,
    puts: Vec<(String, Vec<u8>)>,
    deletes: Vec<String>,
    swept: Vec<String>,
}

impl Files {
    /// Says whether anything waits to be stored.
    pub fn is_dirty(&self) -> bool {
        let has_journal = |run: &Run| {
            let back_dirty = run.back.as_ref().is_some_and(|back| !back.dirty.is_empty());
            run.journal.ops > 0 && (!run.journal.dirty.is_empty() || run.journal.head_dirty) || back_dirty
        };
        self.store.on
            && (!self.tree.dirty.is_empty()
                || self.store.line_dirty
                || !self.store.garbage.is_empty()
                || !self.store.prelude.is_empty()
                || self.runs.values().any(has_journal))
    }

    /// Returns the batches that bring the store up to date, to be written in this order.
    pub fn drain(&mut self, limits: Limits) -> Vec<Batch> {
        if !self.is_dirty() {
            return Vec::new();
        }
        let mut change = Change { deletes: std::mem::take(&mut self.store.garbage), ..Change::default() };
        self.drain_nodes(limits, &mut change);
        for run in self.runs.values_mut() {
            drain_run(&mut self.store, run, limits, &mut change);
        }
        if std::mem::take(&mut self.store.line_dirty) {
            change.puts.push((self.store.key("line"), self.line()));
        }
        // A run may begin under the id of one that was forgotten: what is written now stands.
        if !change.deletes.is_empty() {
            let put: HashSet<&str> = change.puts.iter().map(|(key, _)| key.as_str()).collect();
            change.deletes.retain(|key| !put.contains(key.as_str()));
        }
        self.store.stores_since_sweep += change.puts.len() + change.deletes.len();
        if self.store.stores_since_sweep > 64.max(self.store.blobs.len() / 4) {
            self.store.sweep(&mut change.swept);
        }
        self.cut(change, limits)
    }

    /// Notes that the store took only the first `sent` of the batches drained last, and that the others are dropped: for a
    /// change that is taken back now. Before it everything must have been stored.
    pub fn refused(&mut self, sent: usize) {
        if sent == 0 && self.store.claiming {
            self.store.claimed = false;
        }
    }

    fn drain_nodes(&mut self, limits: Limits, change: &mut Change) {
        for id in std::mem::take(&mut self.tree.dirty) {
            let key = format!("{}n/{id:08x}", self.store.files);
            let is_there = is_linked(&self.tree, id);
            let node = self.tree.node_mut(id);
            node.dirty = false;
            if is_there {
                node.saved = true;
                if let Body::File(content) = &node.body {
                    self.store.keep(content, super::codec::INLINE, limits.value, &mut change.blobs);
                }
                change.puts.push((key, node_record(node)));
            } else if std::mem::take(&mut node.saved) {
                change.deletes.push(key);
            }
        }
    }

    /// Returns the order of the runs: which are open, which can be undone, which redone.
    fn line(&self) -> Vec<u8> {
        let open = self.runs.iter().filter(|(_, run)| run.state == RunState::Open && run.journal.ops > 0);
        let open: Vec<u32> = open.map(|(number, _)| *number).collect();
        let mut writer = Writer::default();
        for list in [&self.undoable, &self.redoable, &open] {
            writer.number(list.len() as u64);
            for number in list {
                writer.text(&self.id_of(*number));
            }
        }
        writer.seal()
    }

    /// Cuts a change into batches.
    fn cut(&mut self, change: Change, limits: Limits) -> Vec<Batch> {
        let Change { blobs, mut puts, deletes, swept } = change;
        let head_key = self.store.key("head");
        let mut out = Vec::new();
        let check = (
            head_key.clone(),
            if self.store.claimed { Some(self.store.own_head.clone()) } else { self.store.head.clone() },
        );
        let mut checks = vec![check];
        self.store.claiming = !self.store.claimed;
        if !self.store.claimed {
            self.store.claimed = true;
            let head = self.store.own_head.clone();
            puts.insert(0, (head_key.clone(), head.clone()));
            let total = blobs.len() + puts.len() + deletes.len() + swept.len();
            if total > limits.batch || !self.store.prelude.is_empty() {
                // The first of several batches claims the store; the others check that it is still claimed.
                puts.remove(0);
                out.push(Batch { checks, puts: vec![(head_key.clone(), head.clone())], ..Batch::default() });
                checks = vec![(head_key, Some(head))];
            }
        }
        for part in std::mem::take(&mut self.store.prelude).chunks(limits.batch.max(1)) {
            out.push(replay_batch(part, &checks));
        }
        let total = blobs.len() + puts.len() + deletes.len() + swept.len();
        if total <= limits.batch {
            let puts = blobs.into_iter().chain(puts).collect();
            out.push(Batch { checks, puts, deletes: deletes.into_iter().chain(swept).collect(), counts: true });
            return out;
        }
        // Contents that nothing names yet do no harm if it ends here.
        push_puts(&mut out, blobs, &checks, limits);
        if puts.len() + deletes.len() <= limits.batch {
            out.push(Batch { checks: checks.clone(), puts, deletes, counts: true });
        } else {
            self.stage(&mut out, puts, deletes, &checks, limits);
        }
        push_deletes(&mut out, swept, &checks, limits);
        out
    }

    /// Lays a large change down beside, makes it count with one record, then carries it out.
    fn stage(
        &self,
        out: &mut Vec<Batch>,
        puts: Vec<(String, Vec<u8>)>,
        deletes: Vec<String>,
        checks: &[(String, Option<Vec<u8>>)],
        limits: Limits,
    ) {
        let mut staged = Vec::new();
        let mut writer = Writer::default();
        let most = limits.value.saturating_sub(64);
        for (key, value) in &puts {
            if writer.len() > 0 && writer.len() + key.len() + value.len() + 16 > most {
                staged.push(writer.seal());
            }
            writer.number(1).text(key).bytes(value);
        }
        for key in &deletes {
            if writer.len() > 0 && writer.len() + key.len() + 16 > most {
                staged.push(writer.seal());
            }
            writer.number(0).text(key);
        }
        staged.push(writer.seal());
        let count = staged.len();
        let keyed = staged.into_iter().enumerate().map(|(i, bytes)| (self.store.key(&format!("w/{i:06x}")), bytes));
        let keyed: Vec<_> = keyed.collect();
        let stage_keys: Vec<String> = keyed.iter().map(|(key, _)| key.clone()).collect();
        push_puts(out, keyed, checks, limits);
        let marker = self.store.key("commit");
        let record = Writer::default().number(count as u64).seal();
        out.push(Batch {
            checks: checks.to_vec(),
            puts: vec![(marker.clone(), record)],
            deletes: Vec::new(),
            counts: true,
        });
        push_puts(out, puts, checks, limits);
        push_deletes(out, deletes, checks, limits);
        out.push(Batch { checks: checks.to_vec(), deletes: vec![marker], ..Batch::default() });
        push_deletes(out, stage_keys, checks, limits);
    }
}

fn replay_batch(part: &[(String, Option<Vec<u8>>)], checks: &[(String, Option<Vec<u8>>)]) -> Batch {
    let mut batch = Batch { checks: checks.to_vec(), ..Batch::default() };
    for (key, value) in part {
        match value {
            Some(value) => batch.puts.push((key.clone(), value.clone())),
            None => batch.deletes.push(key.clone()),
        }
    }
    batch
}

fn push_puts(out: &mut Vec<Batch>, puts: Vec<(String, Vec<u8>)>, checks: &[(String, Option<Vec<u8>>)], limits: Limits) {
    let mut rest = puts.into_iter().peekable();
    while rest.peek().is_some() {
        let puts = rest.by_ref().take(limits.batch.max(1)).collect();
        out.push(Batch { checks: checks.to_vec(), puts, ..Batch::default() });
    }
}

fn push_deletes(out: &mut Vec<Batch>, deletes: Vec<String>, checks: &[(String, Option<Vec<u8>>)], limits: Limits) {
    for keys in deletes.chunks(limits.batch.max(1)) {
        out.push(Batch { checks: checks.to_vec(), deletes: keys.to_vec(), ..Batch::default() });
    }
}

/// Says whether a node stands in the tree.
fn is_linked(tree: &Tree, id: NodeId) -> bool {
    !matches!(tree.node(id).body, Body::Free) && !tree.is_orphan(id)
}

fn node_record(node: &Node) -> Vec<u8> {
    let mut writer = Writer::default();
    let kind = match &node.body {
        Body::Dir(_) | Body::Free => 2,
        Body::File(_) => 1,
        Body::Link(_) => 3,
    };
    writer.number(kind).number(u64::from(node.parent)).text(&node.name);
    writer.number(u64::from(node.mode)).signed(node.mtime).signed(node.ctime);
    match &node.body {
        Body::File(content) => writer.content(content, false),
        Body::Link(target) => writer.text(target),
        Body::Dir(_) | Body::Free => &mut writer,
    };
    writer.seal()
}

fn drain_run(store: &mut Store, run: &mut Run, limits: Limits, change: &mut Change) {
    let pending: Vec<Rc<str>> =
        run.calls.values().map(|call| Rc::clone(&call.id)).chain(run.orphaned.iter().cloned()).collect();
    let id = Rc::clone(&run.id);
    if run.journal.ops > 0 || run.journal.pieces.1 > 0 {
        drain_journal(store, &id, "e", &pending, &mut run.journal, limits, change);
    }
    if let Some(back) = &mut run.back {
        drain_journal(store, &id, "r", &[], back, limits, change);
    }
}

fn drain_journal(
    store: &mut Store,
    run: &str,
    kind: &str,
    pending: &[Rc<str>],
    journal: &mut Journal,
    limits: Limits,
    change: &mut Change,
) {
    if journal.dirty.is_empty() && !journal.head_dirty {
        return;
    }
    if journal.pieces.1 - journal.pieces.0 > 64 && journal.written > 4 * journal.entries.len() {
        // Many small pieces say the same paths over and over: all entries are written anew.
        for number in journal.pieces.0..journal.pieces.1 {
            change.deletes.push(store.piece_key(run, kind, number));
        }
        journal.mark_all();
    }
    journal.head_dirty = false;
    let mut dirty = std::mem::take(&mut journal.dirty).into_iter().peekable();
    let most = PIECE.min(limits.value / 2);
    loop {
        let mut writer = Writer::default();
        writer.number(journal.ops).number(pending.len() as u64);
        for call in pending {
            writer.text(call);
        }
        while writer.len() < most {
            let Some(entry) = dirty.next().and_then(|at| journal.get_mut(at)) else { break };
            entry.dirty = false;
            writer.number(u64::from(entry.dead) | u64::from(entry.is_barrier()) << 1).text(&entry.path);
            writer.state(&entry.image, false).state(&entry.left, true);
            if let State::File { content, .. } = &entry.image {
                store.keep(content, super::codec::INLINE, limits.value, &mut change.blobs);
            }
            journal.written += 1;
        }
        change.puts.push((store.piece_key(run, kind, journal.pieces.1), writer.seal()));
        journal.pieces.1 += 1;
        if dirty.peek().is_none() {
            return;
        }
    }
}
