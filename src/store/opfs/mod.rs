//! The origin's private file system: an append-only log of batches with an index in memory.
//!
//! One record per batch, so that a batch is whole or torn, and a torn one at the end is cut off. Two files take turns: what is
//! alive is copied to the other one when too much is dead, and that one's header is written last. The files are
//! [`LogFile`]s, so that a native test can tear them at every byte. `docs/format.md` describes the bytes.

mod format;
#[cfg(target_family = "wasm")]
mod worker;

use std::cell::RefCell;

use super::crc::crc32;
use super::memory::list_map;
use super::{Batch, Entries, Key, Limits, ListOptions, SyncBackend, closed, conflict};
use crate::core::error::{Error, Kind, Result};
use crate::core::sorted::SortedMap;
use format::{Change, HEADER, MARK, RECORD_HEAD, Reader, encode, header, read_header, read_record_head, record};

/// What a file with synchronous access can do.
pub trait LogFile {
    /// Returns the size in bytes.
    fn size(&self) -> Result<u64>;
    /// Reads up to so many bytes at a position.
    fn read(&self, at: u64, len: usize) -> Result<Vec<u8>>;
    /// Writes all bytes at a position.
    fn write(&self, at: u64, bytes: &[u8]) -> Result<()>;
    /// Cuts or extends the file.
    fn truncate(&self, size: u64) -> Result<()>;
    /// Waits until everything written is safe.
    fn flush(&self) -> Result<()>;
    /// Gives the file back to others.
    fn close(&self);
}

/// Less dead weight than this is not worth copying.
const MIN_DEAD: u64 = 1024 * 1024;

/// Where a value lies in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    len: usize,
}

/// A stretch of the file that is no record; it is kept as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Position in the file.
    pub at: u64,
    /// Bytes.
    pub len: u64,
}

struct Log<F> {
    files: [F; 2],
    /// Which of the two is in use.
    current: usize,
    generation: u64,
    end: u64,
    index: SortedMap<Key, Place>,
    live: u64,
    damage: Vec<Damage>,
}

/// A store in two files.
pub struct Opfs<F>(RefCell<Option<Log<F>>>);

impl<F: LogFile> Opfs<F> {
    /// Opens the store from its two files. Files that hold something other than a log are refused, never emptied.
    pub fn open(files: [F; 2]) -> Result<Self> {
        match Log::open(&files) {
            Ok((current, generation)) => {
                let mut log = Log {
                    files,
                    current,
                    generation,
                    end: HEADER as u64,
                    index: SortedMap::new(),
                    live: 0,
                    damage: Vec::new(),
                };
                let scanned = if generation == 0 { log.create() } else { log.scan() };
                if let Err(error) = scanned {
                    log.files.iter().for_each(LogFile::close);
                    return Err(error);
                }
                Ok(Opfs(RefCell::new(Some(log))))
            }
            Err(error) => {
                files.iter().for_each(LogFile::close);
                Err(error)
            }
        }
    }

    /// Returns the stretches that could not be read.
    pub fn damage(&self) -> Vec<Damage> {
        self.0.borrow().as_ref().map_or(Vec::new(), |log| log.damage.clone())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Log<F>) -> Result<T>) -> Result<T> {
        self.0.borrow_mut().as_mut().ok_or_else(closed).and_then(work)
    }
}

impl<F: LogFile> Log<F> {
    /// Returns which file is in use and its generation; 0 for a store that is new.
    fn open(files: &[F; 2]) -> Result<(usize, u64)> {
        let mut best = (0, 0);
        let mut foreign = false;
        for (which, file) in files.iter().enumerate() {
            // A copy that was never finished has no header; the file it was made from has one.
            match read_header(&file.read(0, HEADER)?)? {
                Some(generation) if generation > best.1 => best = (which, generation),
                Some(_) => {}
                None => foreign |= file.size()? > HEADER as u64,
            }
        }
        if best.1 == 0 && foreign {
            return Err(Error::new(Kind::Corrupt, "the file is not a log of this library"));
        }
        Ok(best)
    }

    fn file(&self) -> &F {
        let [a, b] = &self.files;
        if self.current == 0 { a } else { b }
    }

    fn other(&self) -> &F {
        let [a, b] = &self.files;
        if self.current == 0 { b } else { a }
    }

    fn create(&mut self) -> Result<()> {
        self.generation = 1;
        self.file().truncate(0)?;
        self.file().write(0, &header(1))?;
        self.file().flush()
    }

    /// Reads every record, passes over damage and cuts off a torn end.
    fn scan(&mut self) -> Result<()> {
        let size = self.file().size()?;
        let mut at = HEADER as u64;
        while at < size {
            if let Some(payload) = self.record_at(at, size)? {
                let len = payload.len();
                self.apply(at + RECORD_HEAD as u64, &payload)?;
                at += (RECORD_HEAD + len) as u64;
                continue;
            }
            let Some(next) = self.next_record(at + 1, size)? else { break };
            self.damage.push(Damage { at, len: next - at });
            at = next;
        }
        self.end = at;
        if at < size {
            self.file().truncate(at)?;
            self.file().flush()?;
        }
        Ok(())
    }

    /// Returns the payload of the record at a position, when it is whole.
    fn record_at(&self, at: u64, size: u64) -> Result<Option<Vec<u8>>> {
        let head = self.file().read(at, RECORD_HEAD)?;
        let Some((len, sum)) = read_record_head(&head) else { return Ok(None) };
        if at + (RECORD_HEAD + len) as u64 > size {
            return Ok(None);
        }
        let payload = self.file().read(at + RECORD_HEAD as u64, len)?;
        Ok((payload.len() == len && crc32(&payload) == sum).then_some(payload))
    }

    fn next_record(&self, from: u64, size: u64) -> Result<Option<u64>> {
        const STEP: usize = 64 * 1024;
        let mut at = from;
        while at < size {
            let bytes = self.file().read(at, STEP + MARK.len() - 1)?;
            for (offset, window) in bytes.windows(MARK.len()).enumerate() {
                if window == MARK && self.record_at(at + offset as u64, size)?.is_some() {
                    return Ok(Some(at + offset as u64));
                }
            }
            at += STEP as u64;
        }
        Ok(None)
    }

    /// Takes the changes of one record into the index; `start` is where its payload lies.
    fn apply(&mut self, start: u64, payload: &[u8]) -> Result<()> {
        let mut rest = Reader { bytes: payload, at: 0 };
        while rest.at < payload.len() {
            let change = rest.change().ok_or_else(|| Error::new(Kind::NewerFormat, "a record of an unknown kind"))?;
            match change {
                Change::Put { key, at, len } => self.put(key, Place { at: start + at as u64, len }),
                Change::Delete { key } => self.forget(&key),
            }
        }
        Ok(())
    }

    fn put(&mut self, key: String, place: Place) {
        self.forget(&key);
        self.live += (key.len() + place.len) as u64;
        self.index.insert(Key(key), place);
    }

    fn forget(&mut self, key: &str) {
        if let Some(old) = self.index.remove(&Key(key.into())) {
            self.live = self.live.saturating_sub((key.len() + old.len) as u64);
        }
    }

    fn value(&self, place: Place) -> Result<Vec<u8>> {
        let bytes = self.file().read(place.at, place.len)?;
        if bytes.len() == place.len { Ok(bytes) } else { Err(Error::new(Kind::Corrupt, "a value ends early")) }
    }

    fn find(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.index.get(&Key(key.into())).map(|place| self.value(*place)).transpose()
    }

    fn check(&self, batch: &Batch) -> Result<()> {
        for (key, expected) in &batch.checks {
            if &self.find(key)? != expected {
                return Err(conflict(key));
            }
        }
        Ok(())
    }

    fn transact(&mut self, batch: &Batch) -> Result<()> {
        self.check(batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        let payload = encode(batch);
        let written = self.file().write(self.end, &record(&payload)).and_then(|()| self.file().flush());
        if let Err(error) = written {
            // What is half there would be cut off at the next opening anyway.
            let _ = self.file().truncate(self.end);
            return Err(error);
        }
        self.apply(self.end + RECORD_HEAD as u64, &payload)?;
        self.end += (RECORD_HEAD + payload.len()) as u64;
        let dead = self.end.saturating_sub(self.live);
        // A copy would drop what could not be read; it stays where it is instead.
        if dead > MIN_DEAD.max(self.live.saturating_mul(2)) && self.damage.is_empty() {
            // The batch is safe whether or not this works.
            let _ = self.compact();
        }
        Ok(())
    }

    /// Copies what is alive to the other file. Its header comes last: until then the old file counts.
    fn compact(&mut self) -> Result<()> {
        let copy = self.copy_live();
        if copy.is_err() {
            let _ = self.other().truncate(0);
        }
        let (index, end) = copy?;
        self.current = 1 - self.current;
        self.generation += 1;
        self.index = index;
        self.end = end;
        // The one that is out of use.
        self.other().truncate(0)
    }

    fn copy_live(&self) -> Result<(SortedMap<Key, Place>, u64)> {
        let to = self.other();
        to.truncate(0)?;
        to.write(0, &[0; HEADER])?;
        let mut at = HEADER as u64;
        let mut index = SortedMap::new();
        for (key, place) in self.index.iter() {
            let value = self.value(*place)?;
            let puts = vec![(key.0.clone(), value)];
            let payload = encode(&Batch { puts, ..Batch::default() });
            to.write(at, &record(&payload))?;
            at += (RECORD_HEAD + payload.len()) as u64;
            index.insert(key.clone(), Place { at: at - place.len as u64, len: place.len });
        }
        to.flush()?;
        to.write(0, &header(self.generation + 1))?;
        to.flush()?;
        Ok((index, at))
    }
}

impl<F: LogFile> SyncBackend for Opfs<F> {
    fn limits(&self) -> Limits {
        Limits { max_value_bytes: 64 * 1024 * 1024, max_batch: 10_000 }
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.with(|log| log.find(key))
    }

    fn list(&self, start: &str, end: &str, options: ListOptions) -> Result<Entries> {
        self.with(|log| {
            let mut found =
                list_map(&log.index, start, end, ListOptions { keys_only: true, ..options }, |_, _| Vec::new());
            if !options.keys_only {
                for (key, value) in &mut found {
                    *value = log.find(key)?.unwrap_or_default();
                }
            }
            Ok(found)
        })
    }

    fn transact(&self, batch: &Batch) -> Result<()> {
        self.with(|log| log.transact(batch))
    }

    fn close(&self) -> Result<()> {
        if let Some(log) = self.0.borrow_mut().take() {
            log.files.iter().for_each(LogFile::close);
        }
        Ok(())
    }
}

#[cfg(target_family = "wasm")]
pub use self::worker::{SyncFile, open_worker};

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// A file in memory that can fail.
    #[derive(Clone, Default)]
    struct Fake {
        bytes: Rc<RefCell<Vec<u8>>>,
        full: Rc<Cell<bool>>,
        closed: Rc<Cell<bool>>,
    }

    impl LogFile for Fake {
        fn size(&self) -> Result<u64> {
            Ok(self.bytes.borrow().len() as u64)
        }
        fn read(&self, at: u64, len: usize) -> Result<Vec<u8>> {
            let bytes = self.bytes.borrow();
            let from = (at as usize).min(bytes.len());
            Ok(bytes[from..from.saturating_add(len).min(bytes.len())].to_vec())
        }
        fn write(&self, at: u64, new: &[u8]) -> Result<()> {
            let at = at as usize;
            let mut bytes = self.bytes.borrow_mut();
            let new = if self.full.get() { &new[..new.len() / 2] } else { new };
            if bytes.len() < at + new.len() {
                bytes.resize(at + new.len(), 0);
            }
            bytes[at..at + new.len()].copy_from_slice(new);
            if self.full.get() { Err(Error::new(Kind::Quota, "full")) } else { Ok(()) }
        }
        fn truncate(&self, size: u64) -> Result<()> {
            self.bytes.borrow_mut().resize(size as usize, 0);
            Ok(())
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
        fn close(&self) {
            self.closed.set(true);
        }
    }

    fn put(store: &Opfs<Fake>, key: &str, value: &[u8]) -> Result<()> {
        SyncBackend::transact(store, &Batch { puts: vec![(key.into(), value.to_vec())], ..Batch::default() })
    }

    fn all<F: LogFile>(store: &Opfs<F>) -> Entries {
        SyncBackend::list(store, "", "\u{ffff}", ListOptions::default()).unwrap()
    }

    fn from_bytes(bytes: &[u8]) -> [Fake; 2] {
        let file = Fake::default();
        *file.bytes.borrow_mut() = bytes.to_vec();
        [file, Fake::default()]
    }

    fn three() -> (Vec<u8>, Vec<usize>) {
        let files = [Fake::default(), Fake::default()];
        let store = Opfs::open(files.clone()).unwrap();
        let mut ends = vec![files[0].bytes.borrow().len()];
        for (key, value) in [("a", b"one".as_slice()), ("b", b""), ("c", &[0; 40])] {
            put(&store, key, value).unwrap();
            ends.push(files[0].bytes.borrow().len());
        }
        let bytes = files[0].bytes.borrow().clone();
        (bytes, ends)
    }

    /// PERSIST.13
    #[test]
    fn a_file_cut_at_any_byte_opens_with_the_whole_batches_and_takes_new_ones() {
        let (bytes, ends) = three();
        for cut in HEADER..=bytes.len() {
            let store = Opfs::open(from_bytes(&bytes[..cut])).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!(all(&store).len(), whole, "cut at {cut}");
            put(&store, "z", b"new").unwrap();
            assert_eq!(SyncBackend::get(&store, "z").unwrap(), Some(b"new".to_vec()));
            assert!(store.damage().is_empty());
        }
    }

    #[test]
    fn nuls_at_the_end_are_cut_off_and_damage_in_the_middle_costs_one_batch() {
        let (bytes, ends) = three();
        let mut nuls = bytes.clone();
        nuls.extend([0; 100]);
        let files = from_bytes(&nuls);
        assert_eq!(all(&Opfs::open(files.clone()).unwrap()).len(), 3);
        assert_eq!(files[0].bytes.borrow().len(), bytes.len());
        for at in ends[1]..ends[2] {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            let store = Opfs::open(from_bytes(&broken)).unwrap();
            let keys: Vec<String> = all(&store).into_iter().map(|(key, _)| key).collect();
            assert_eq!(keys, ["a", "c"], "byte {at}");
            assert_eq!(store.damage(), [Damage { at: ends[1] as u64, len: (ends[2] - ends[1]) as u64 }]);
        }
    }

    #[test]
    fn what_is_no_log_is_refused_and_left_as_it_is() {
        let (mut bytes, _) = three();
        for at in 0..20 {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            let files = from_bytes(&broken);
            assert_eq!(Opfs::open(files.clone()).err().unwrap().code(), "corrupt");
            assert_eq!(*files[0].bytes.borrow(), broken);
            assert!(files[0].closed.get() && files[1].closed.get());
        }
        bytes.splice(..20, header(1)[..20].iter().copied());
        bytes[7] = 2;
        let sum = crc32(&bytes[..16]).to_le_bytes();
        bytes[16..20].copy_from_slice(&sum);
        assert_eq!(Opfs::open(from_bytes(&bytes)).err().unwrap().code(), "newer_format");
    }

    #[test]
    fn a_full_disk_takes_nothing_of_the_batch_and_room_later_takes_all() {
        let files = [Fake::default(), Fake::default()];
        let store = Opfs::open(files.clone()).unwrap();
        put(&store, "a", b"1").unwrap();
        files[0].full.set(true);
        assert_eq!(put(&store, "b", b"2").unwrap_err().code(), "quota");
        assert_eq!(SyncBackend::get(&store, "b").unwrap(), None);
        files[0].full.set(false);
        put(&store, "c", b"3").unwrap();
        SyncBackend::close(&store).unwrap();
        assert_eq!(put(&store, "d", b"4").unwrap_err().code(), "disposed");
        let keys: Vec<String> = all(&Opfs::open(files).unwrap()).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["a", "c"]);
    }

    #[test]
    fn dead_weight_is_left_behind_and_a_copy_cut_short_does_not_count() {
        let files = [Fake::default(), Fake::default()];
        let store = Opfs::open(files.clone()).unwrap();
        put(&store, "keep", b"me").unwrap();
        let before: Vec<Vec<u8>> = files.iter().map(|f| f.bytes.borrow().clone()).collect();
        for round in 0..30u8 {
            put(&store, "big", &vec![round; 100_000]).unwrap();
        }
        assert!(files.iter().map(|f| f.bytes.borrow().len()).sum::<usize>() < 2_000_000);
        let expected = all(&store);
        assert_eq!(all(&Opfs::open(files.clone()).unwrap()), expected);
        // The same copy, stopped before its header was written.
        let mut unfinished: Vec<u8> = files.iter().flat_map(|f| f.bytes.borrow().clone()).collect();
        unfinished[..HEADER].fill(0);
        let pair = from_bytes(&before[0]);
        *pair[1].bytes.borrow_mut() = unfinished;
        assert_eq!(all(&Opfs::open(pair).unwrap()), [("keep".to_string(), b"me".to_vec())]);
    }
}
