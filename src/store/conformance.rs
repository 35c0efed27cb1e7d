//! The published conformance suite: what any backend must do, run against the built-in ones and a caller's own alike.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use super::layout::range_of;
use super::{Backend, Batch, Entries, ListOptions, LocalFuture, compare_keys};
use crate::core::error::{Error, Kind};

/// What a run of the suite found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many cases passed.
    pub passed: u32,
    /// The names of the others, each with what was seen.
    pub failed: Vec<(&'static str, String)>,
}

/// Opens the backend under test, again and again.
pub trait Maker {
    /// Opens it.
    fn make(&self) -> LocalFuture<'_, Rc<dyn Backend>>;
}

type Verdict = Result<(), String>;
type Run<'a> = Pin<Box<dyn Future<Output = Verdict> + 'a>>;

/// One case: the store, opened for it alone, and a prefix below which it may do as it likes.
struct Case<'a> {
    maker: &'a dyn Maker,
    store: Rc<dyn Backend>,
    prefix: String,
}

macro_rules! cases {
    ($($name:literal $case:ident)+) => {
        /// Every case by name.
        const CASES: &[(&str, for<'a> fn(&'a Case<'a>) -> Run<'a>)] = &[$(($name, |case| Box::pin($case(case))),)+];
    };
}

cases! {
    "an absent key has no value" absent
    "an empty value is a value" empty_value
    "every byte survives" every_byte
    "a later put replaces, a delete removes" replace_and_delete
    "in one batch the last put of a key counts" last_put_wins
    "an empty batch does nothing" empty_batch
    "keys are listed by code units" order
    "ranges are half open" half_open
    "empty and inverted ranges are empty" no_range
    "limit, reverse and keysOnly" list_options
    "keys may hold any character" odd_keys
    "a failed check writes nothing" failed_check
    "checks for absent and present values" checks
    "one failed check of several fails all" one_of_several
    "checks, puts and deletes go together" together
    "a large value comes back whole" large_value
    "many keys" many_keys
    "conditional updates at once lose nothing" concurrent_updates
    "readers see whole batches" isolation
    "batches are whole after reopening" reopen
    "deleting one session leaves its neighbours" neighbours
}

/// Runs every case.
pub async fn check(maker: &dyn Maker) -> Report {
    let mut report = Report::default();
    for (index, (name, run)) in CASES.iter().enumerate() {
        match run_case(maker, index, *run).await {
            Ok(()) => report.passed += 1,
            Err(message) => report.failed.push((name, message)),
        }
    }
    report
}

async fn run_case(maker: &dyn Maker, index: usize, run: for<'a> fn(&'a Case<'a>) -> Run<'a>) -> Verdict {
    let store = maker.make().await.map_err(|error| format!("could not be opened: {error}"))?;
    let case = Case { maker, store, prefix: format!("check/{index:02}/") };
    case.clear().await?;
    let verdict = run(&case).await;
    // A case may have closed the store.
    let cleared = case.clear().await;
    let closed = case.store.close().await.map_err(said);
    verdict.and(if index == reopen_index() { Ok(()) } else { cleared.and(closed) })
}

fn reopen_index() -> usize {
    CASES.iter().position(|(name, _)| *name == "batches are whole after reopening").unwrap_or(usize::MAX)
}

fn said(error: Error) -> String {
    error.to_string()
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

impl Case<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    async fn put(&self, name: &str, value: &[u8]) -> Verdict {
        self.transact(&[], &[(name, value)], &[]).await.map_err(said)
    }

    async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        self.store.get(&self.key(name)).await.map_err(said)
    }

    async fn expect(&self, name: &str, value: Option<&[u8]>) -> Verdict {
        let found = self.get(name).await?;
        ensure(found.as_deref() == value, || format!("{name}: {} instead of {}", show(found.as_deref()), show(value)))
    }

    async fn transact(
        &self,
        checks: &[(&str, Option<&[u8]>)],
        puts: &[(&str, &[u8])],
        deletes: &[&str],
    ) -> crate::core::error::Result<()> {
        let batch = Batch {
            checks: checks.iter().map(|(key, value)| (self.key(key), value.map(<[u8]>::to_vec))).collect(),
            puts: puts.iter().map(|(key, value)| (self.key(key), value.to_vec())).collect(),
            deletes: deletes.iter().map(|key| self.key(key)).collect(),
        };
        self.store.transact(batch).await
    }

    /// Lists below the case's prefix; names come back without it.
    async fn list(&self, start: &str, end: &str, options: ListOptions) -> Result<Entries, String> {
        let (start, end) = (self.key(start), self.key(end));
        let mut found = self.store.list(&start, &end, options).await.map_err(said)?;
        for (key, _) in &mut found {
            *key = key.strip_prefix(&self.prefix).ok_or_else(|| format!("{key:?} is outside the range"))?.to_owned();
        }
        Ok(found)
    }

    async fn names(&self, start: &str, end: &str, options: ListOptions) -> Result<Vec<String>, String> {
        Ok(self.list(start, end, options).await?.into_iter().map(|(key, _)| key).collect())
    }

    async fn all(&self) -> Result<Entries, String> {
        let (start, end) = range_of(&self.prefix);
        self.store.list(&start, &end, ListOptions::default()).await.map_err(said)
    }

    async fn clear(&self) -> Verdict {
        let (start, end) = range_of(&self.prefix);
        let size = self.store.limits().max_batch.max(1);
        let options = ListOptions { keys_only: true, ..ListOptions::default() };
        let keys = self.store.list(&start, &end, options).await.map_err(said)?;
        for some in keys.chunks(size) {
            let deletes = some.iter().map(|(key, _)| key.clone()).collect();
            self.store.transact(Batch { deletes, ..Batch::default() }).await.map_err(said)?;
        }
        Ok(())
    }
}

fn show(value: Option<&[u8]>) -> String {
    value.map_or_else(|| "nothing".into(), |bytes| format!("{} bytes", bytes.len()))
}

fn refused(result: crate::core::error::Result<()>) -> Verdict {
    match result {
        Ok(()) => Err("the batch went through".into()),
        Err(error) if error.kind() == Kind::Conflict => Ok(()),
        Err(error) => Err(format!("code {} instead of conflict", error.code())),
    }
}

fn expect_names(found: &[String], wanted: &[&str]) -> Verdict {
    ensure(found == wanted, || format!("{found:?} instead of {wanted:?}"))
}

async fn absent(case: &Case<'_>) -> Verdict {
    case.expect("nothing", None).await
}

async fn empty_value(case: &Case<'_>) -> Verdict {
    case.put("k", b"").await?;
    case.expect("k", Some(b"")).await?;
    let found = case.list("", "z", ListOptions::default()).await?;
    ensure(found == [("k".to_owned(), Vec::new())], || "the listing lacks it".into())?;
    refused(case.transact(&[("k", None)], &[("k", b"x")], &[]).await)
}

async fn every_byte(case: &Case<'_>) -> Verdict {
    let bytes: Vec<u8> = (0..=255).collect();
    let text = "é\u{10000}\u{0}\n\"\\".as_bytes();
    case.transact(&[], &[("a", &bytes), ("b", text), ("c", &[0, 0, 0])], &[]).await.map_err(said)?;
    case.expect("a", Some(&bytes)).await?;
    case.expect("b", Some(text)).await?;
    case.expect("c", Some(&[0, 0, 0])).await
}

async fn replace_and_delete(case: &Case<'_>) -> Verdict {
    case.put("k", b"1").await?;
    case.put("k", b"22").await?;
    case.expect("k", Some(b"22")).await?;
    case.transact(&[], &[], &["k", "never"]).await.map_err(said)?;
    case.expect("k", None).await
}

async fn last_put_wins(case: &Case<'_>) -> Verdict {
    case.transact(&[], &[("k", b"1"), ("k", b"2")], &[]).await.map_err(said)?;
    case.expect("k", Some(b"2")).await
}

async fn empty_batch(case: &Case<'_>) -> Verdict {
    case.transact(&[], &[], &[]).await.map_err(said)?;
    case.transact(&[("k", None)], &[], &[]).await.map_err(said)?;
    refused(case.transact(&[("k", Some(b"x"))], &[], &[]).await)
}

const ORDERED: [&str; 12] = ["", "\u{1}", "!", "-", "0", "A", "B", "_", "a", "a\u{1}", "é", "\u{10000}"];

async fn order(case: &Case<'_>) -> Verdict {
    // U+FFFD stands behind U+10000, whose first code unit is D800.
    let names: Vec<&str> = ORDERED.into_iter().chain(["\u{fffd}"]).collect();
    let mut mixed = names.clone();
    mixed.reverse();
    mixed.rotate_left(5);
    for name in mixed {
        case.put(name, name.as_bytes()).await?;
    }
    let found = case.all().await?;
    let wanted: Entries = names.iter().map(|name| (case.key(name), name.as_bytes().to_vec())).collect();
    ensure(found == wanted, || format!("{:?}", found.iter().map(|(key, _)| key).collect::<Vec<_>>()))
}

async fn three(case: &Case<'_>) -> Verdict {
    case.transact(&[], &[("a", b"1"), ("b", b"2"), ("c", b"3")], &[]).await.map_err(said)
}

async fn half_open(case: &Case<'_>) -> Verdict {
    three(case).await?;
    expect_names(&case.names("a", "c", ListOptions::default()).await?, &["a", "b"])?;
    expect_names(&case.names("a\u{0}", "c\u{0}", ListOptions::default()).await?, &["b", "c"])?;
    expect_names(&case.names("bb", "z", ListOptions::default()).await?, &["c"])
}

async fn no_range(case: &Case<'_>) -> Verdict {
    three(case).await?;
    for (start, end) in [("b", "b"), ("c", "a"), ("x", "y")] {
        for reverse in [false, true] {
            let options = ListOptions { reverse, ..ListOptions::default() };
            expect_names(&case.names(start, end, options).await?, &[])?;
        }
    }
    Ok(())
}

async fn list_options(case: &Case<'_>) -> Verdict {
    three(case).await?;
    let options = |limit, reverse, keys_only| ListOptions { limit, reverse, keys_only };
    expect_names(&case.names("a", "z", options(Some(2), false, false)).await?, &["a", "b"])?;
    expect_names(&case.names("a", "z", options(Some(2), true, false)).await?, &["c", "b"])?;
    expect_names(&case.names("a", "z", options(None, true, true)).await?, &["c", "b", "a"])?;
    expect_names(&case.names("a", "z", options(Some(9), false, true)).await?, &["a", "b", "c"])?;
    expect_names(&case.names("a", "z", options(Some(1), true, true)).await?, &["c"])?;
    let backwards = case.list("a", "c", options(None, true, false)).await?;
    ensure(backwards == [("b".into(), b"2".to_vec()), ("a".into(), b"1".to_vec())], || "values got mixed up".into())
}

async fn odd_keys(case: &Case<'_>) -> Verdict {
    let long = "x".repeat(400);
    let odd = [
        "%",
        "%2F",
        "\\",
        "//",
        "..",
        "'",
        "\"",
        "a b",
        "\u{0}",
        "\n",
        "\u{7f}",
        "\u{1f525}",
        "__proto__",
        "constructor",
        "length",
        "e\u{301}",
        "\u{e9}",
        long.as_str(),
    ];
    for name in odd {
        case.put(name, name.as_bytes()).await?;
    }
    for name in odd {
        case.expect(name, Some(name.as_bytes())).await.map_err(|said| format!("{name:?}: {said}"))?;
    }
    let found = case.all().await?;
    ensure(found.len() == odd.len(), || format!("{} keys instead of {}", found.len(), odd.len()))?;
    ensure(found.is_sorted_by(|a, b| compare_keys(&a.0, &b.0).is_lt()), || "not in order".into())
}

async fn failed_check(case: &Case<'_>) -> Verdict {
    case.put("held", b"1").await?;
    case.put("old", b"stays").await?;
    for (key, wanted) in [("held", Some(b"2".as_slice())), ("held", None), ("absent", Some(b"")), ("held", Some(b"1 "))]
    {
        refused(case.transact(&[(key, wanted)], &[("new", b"x"), ("held", b"x")], &["old"]).await)?;
    }
    case.expect("new", None).await?;
    case.expect("held", Some(b"1")).await?;
    case.expect("old", Some(b"stays")).await
}

async fn checks(case: &Case<'_>) -> Verdict {
    case.transact(&[("k", None)], &[("k", b"1")], &[]).await.map_err(said)?;
    refused(case.transact(&[("k", None)], &[("k", b"2")], &[]).await)?;
    case.transact(&[("k", Some(b"1"))], &[("k", b"2")], &[]).await.map_err(said)?;
    refused(case.transact(&[("k", Some(b"1"))], &[("k", b"3")], &[]).await)?;
    case.transact(&[("k", Some(b"2"))], &[], &["k"]).await.map_err(said)?;
    case.transact(&[("k", None), ("l", None)], &[("l", b"x"), ("k", b"y")], &[]).await.map_err(said)?;
    case.expect("k", Some(b"y")).await
}

async fn one_of_several(case: &Case<'_>) -> Verdict {
    three(case).await?;
    let good: [(&str, Option<&[u8]>); 3] = [("a", Some(b"1")), ("x", None), ("c", Some(b"3"))];
    // The wrong one stands at every place: a store may look at the first or the last only.
    for bad in 0..good.len() {
        let mut checks = good;
        if let Some(check) = checks.get_mut(bad) {
            check.1 = Some(b"wrong");
        }
        refused(case.transact(&checks, &[("x", b"x")], &["a"]).await)?;
    }
    case.expect("x", None).await?;
    case.transact(&good, &[("x", b"x")], &["a"]).await.map_err(said)?;
    case.expect("a", None).await
}

async fn together(case: &Case<'_>) -> Verdict {
    three(case).await?;
    case.transact(&[("b", Some(b"2"))], &[("d", b"4"), ("b", b"5")], &["a", "c"]).await.map_err(said)?;
    let found = case.list("", "z", ListOptions::default()).await?;
    ensure(found == [("b".into(), b"5".to_vec()), ("d".into(), b"4".to_vec())], || format!("{found:?}"))
}

async fn large_value(case: &Case<'_>) -> Verdict {
    let len = case.store.limits().max_value_bytes.min(1024 * 1024);
    let bytes: Vec<u8> = (0..len).map(|n| (n * 31 % 251) as u8).collect();
    case.put("big", &bytes).await?;
    case.put("small", b"s").await?;
    case.expect("big", Some(&bytes)).await?;
    let found = case.list("", "z", ListOptions { limit: Some(1), ..ListOptions::default() }).await?;
    ensure(found.first().is_some_and(|(_, value)| *value == bytes), || "the listing differs".into())
}

async fn many_keys(case: &Case<'_>) -> Verdict {
    const COUNT: usize = 600;
    let names: Vec<String> = (0..COUNT).map(|n| format!("{:04}", n * 7 % COUNT)).collect();
    for some in names.chunks(case.store.limits().max_batch.clamp(1, 100)) {
        let puts: Vec<(&str, &[u8])> = some.iter().map(|name| (name.as_str(), name.as_bytes())).collect();
        case.transact(&[], &puts, &[]).await.map_err(said)?;
    }
    let found = case.list("", "z", ListOptions::default()).await?;
    let right = found.iter().enumerate().all(|(n, (key, value))| *key == format!("{n:04}") && value == key.as_bytes());
    ensure(right && found.len() == COUNT, || format!("{} keys, or in disorder", found.len()))?;
    let page = case.names("0300", "0310", ListOptions { limit: Some(3), ..ListOptions::default() }).await?;
    expect_names(&page, &["0300", "0301", "0302"])
}

async fn concurrent_updates(case: &Case<'_>) -> Verdict {
    const WRITERS: usize = 6;
    const ROUNDS: usize = 4;
    case.put("n", b"0").await?;
    let writers = (0..WRITERS).map(|_| Box::pin(count_up(case, ROUNDS)) as Run<'_>).collect();
    for verdict in join_all(writers).await {
        verdict?;
    }
    case.expect("n", Some((WRITERS * ROUNDS).to_string().as_bytes())).await
}

async fn count_up(case: &Case<'_>, rounds: usize) -> Verdict {
    for _ in 0..rounds {
        // Somebody gets through in every round; a store where nobody does must not hold the suite up for ever.
        let mut tries = 0;
        loop {
            tries += 1;
            ensure(tries < 1000, || "no conditional update goes through".into())?;
            let old = case.get("n").await?.unwrap_or_default();
            let number: usize = String::from_utf8_lossy(&old).parse().map_err(|_| "a torn value".to_owned())?;
            let new = (number + 1).to_string();
            match case.transact(&[("n", Some(&old))], &[("n", new.as_bytes())], &[]).await {
                Ok(()) => break,
                Err(error) if error.kind() == Kind::Conflict => {}
                Err(error) => return Err(said(error)),
            }
        }
    }
    Ok(())
}

async fn isolation(case: &Case<'_>) -> Verdict {
    let write = async {
        for round in 0..8 {
            let value = [round];
            case.transact(&[], &[("a", &value), ("b", &value), ("c", &value)], &[]).await.map_err(said)?;
        }
        Ok(())
    };
    let read = async {
        for _ in 0..8 {
            let found = case.list("", "z", ListOptions::default()).await?;
            let whole =
                found.is_empty() || found.len() == 3 && found.windows(2).all(|w| matches!(w, [x, y] if x.1 == y.1));
            ensure(whole, || "half a batch was seen".into())?;
        }
        Ok(())
    };
    for verdict in join_all(vec![Box::pin(write) as Run<'_>, Box::pin(read)]).await {
        verdict?;
    }
    Ok(())
}

async fn reopen(case: &Case<'_>) -> Verdict {
    case.transact(&[], &[("a", b"1"), ("b", b"2"), ("gone", b"3")], &[]).await.map_err(said)?;
    case.transact(&[], &[], &["gone"]).await.map_err(said)?;
    case.store.close().await.map_err(said)?;
    let store = case.maker.make().await.map_err(|error| format!("could not be opened again: {error}"))?;
    let again = Case { maker: case.maker, store, prefix: case.prefix.clone() };
    let found = again.list("", "z", ListOptions::default()).await?;
    let whole: Entries = vec![("a".into(), b"1".to_vec()), ("b".into(), b"2".to_vec())];
    // A store in memory begins anew; anything in between is a torn one.
    ensure(found.is_empty() || found == whole, || format!("{found:?}"))?;
    again.clear().await?;
    again.store.close().await.map_err(said)
}

async fn neighbours(case: &Case<'_>) -> Verdict {
    let ids = ["s1", "s10", "S1", "s1__p2", "s1-", "s0"];
    for id in ids {
        case.put(&format!("{id}/e/1"), id.as_bytes()).await?;
        case.put(&format!("{id}/f"), b"").await?;
    }
    let (start, end) = range_of("s1/");
    let own = case.names(&start, &end, ListOptions::default()).await?;
    expect_names(&own, &["s1/e/1", "s1/f"])?;
    case.transact(&[], &[], &["s1/e/1", "s1/f"]).await.map_err(said)?;
    ensure(case.all().await?.len() == 2 * (ids.len() - 1), || "a neighbour went with it".into())
}

/// Polls futures side by side until all are done.
async fn join_all(mut runs: Vec<Run<'_>>) -> Vec<Verdict> {
    let mut done: Vec<Option<Verdict>> = runs.iter().map(|_| None).collect();
    poll_fn(move |context| {
        for (run, slot) in runs.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let Poll::Ready(verdict) = run.as_mut().poll(context)
            {
                *slot = Some(verdict);
            }
        }
        if done.iter().any(Option::is_none) {
            return Poll::Pending;
        }
        Poll::Ready(done.iter_mut().filter_map(Option::take).collect())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::task::{Context, Waker};

    use super::*;
    use crate::core::error::Result;
    use crate::store::SyncBackend;
    use crate::store::memory::Memory;

    /// Runs a future whose parts never wait.
    fn now<T>(future: impl Future<Output = T>) -> T {
        let mut future = Box::pin(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    struct Fresh;
    impl Maker for Fresh {
        fn make(&self) -> LocalFuture<'_, Rc<dyn Backend>> {
            Box::pin(async { Ok(Rc::new(Memory::new()) as Rc<dyn Backend>) })
        }
    }

    #[test]
    fn memory_passes() {
        let report = now(check(&Fresh));
        assert_eq!(report, Report { passed: CASES.len() as u32, failed: vec![] });
    }

    /// A store with one fault, to show that the suite can fail.
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        IgnoresChecks,
        FirstCheckOnly,
        WritesBeforeChecking,
        ClosedRange,
        CodePointOrder,
        EmptyIsAbsent,
        ForgetsDeletes,
        IgnoresLimit,
        TornBatch,
    }

    struct Faulty {
        inner: Memory,
        fault: Fault,
        written: RefCell<u32>,
    }

    impl SyncBackend for Faulty {
        fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
            let found = SyncBackend::get(&self.inner, key)?;
            Ok(found.filter(|value| self.fault != Fault::EmptyIsAbsent || !value.is_empty()))
        }
        fn list(&self, start: &str, end: &str, mut options: ListOptions) -> Result<Entries> {
            let end = if self.fault == Fault::ClosedRange { format!("{end}\0") } else { end.to_owned() };
            if self.fault == Fault::IgnoresLimit {
                options.limit = None;
            }
            let mut found = SyncBackend::list(&self.inner, start, &end, options)?;
            if self.fault == Fault::CodePointOrder && !options.reverse {
                crate::core::sorted::sort_by(&mut found, |a, b| a < b);
            }
            Ok(found)
        }
        fn transact(&self, batch: &Batch) -> Result<()> {
            let mut batch = batch.clone();
            match self.fault {
                Fault::IgnoresChecks => batch.checks.clear(),
                Fault::FirstCheckOnly => batch.checks.truncate(1),
                Fault::ForgetsDeletes => batch.deletes.clear(),
                Fault::WritesBeforeChecking => {
                    let puts = batch.puts.iter().take(1).cloned().collect();
                    SyncBackend::transact(&self.inner, &Batch { puts, ..Batch::default() })?;
                }
                Fault::TornBatch if batch.puts.len() > 2 => {
                    *self.written.borrow_mut() += 1;
                    batch.puts.pop();
                }
                _ => {}
            }
            SyncBackend::transact(&self.inner, &batch)
        }
        fn close(&self) -> Result<()> {
            SyncBackend::close(&self.inner)
        }
    }

    impl Maker for Fault {
        fn make(&self) -> LocalFuture<'_, Rc<dyn Backend>> {
            let store = Faulty { inner: Memory::new(), fault: *self, written: RefCell::new(0) };
            Box::pin(async { Ok(Rc::new(store) as Rc<dyn Backend>) })
        }
    }

    #[test]
    fn every_kind_of_fault_is_found() {
        use Fault::*;
        let faults = [
            IgnoresChecks,
            FirstCheckOnly,
            WritesBeforeChecking,
            ClosedRange,
            CodePointOrder,
            EmptyIsAbsent,
            ForgetsDeletes,
            IgnoresLimit,
            TornBatch,
        ];
        for fault in faults {
            let report = now(check(&fault));
            assert!(!report.failed.is_empty());
        }
    }
}
