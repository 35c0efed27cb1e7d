// What only a page can show of persistence: every kind of storage through the package, tabs that close in the middle of
// something, tabs in turn, faults of IndexedDB as a session sees them. Killed browsers: crash.test.mjs; two tabs: tabs.test.mjs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { serveDist } from "./dist-server.mjs";
import { launch } from "./helper.mjs";

let server, browser;
before(async () => {
  server = await serveDist();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

async function tab(context, url = server.url) {
  const page = await context.newPage();
  await page.goto(url);
  await page.evaluate(async () => {
    globalThis.lib = await import("/web.js");
    await lib.default();
    globalThis.warnings = [];
    globalThis.openStore = async (storage) => (globalThis.store = await lib.SessionStore.open({ storage, onWarning: (w) => warnings.push(w) }));
    globalThis.texts = (events) => events.filter((e) => e.type === "user/message").map((e) => e.data.text);
    globalThis.say = (text) => session.append("user/message", { text });
    globalThis.codeOf = async (work) => { try { await work(); return null; } catch (error) { return error.code ?? String(error); } };
  });
  return page;
}

async function inContext(work, options) {
  const context = await browser.newContext(options);
  try {
    return await work(context);
  } finally {
    await context.close();
  }
}

const readBack = (page, storage, id = "s1") => page.evaluate(async ([storage, id]) => {
  const store = await openStore(storage);
  const events = await store.read(id);
  await store.dispose();
  return texts(events);
}, [storage, id]);

for (const storage of [{ kind: "indexeddb" }, { kind: "indexeddb", durability: "strict" }, { kind: "localstorage" }, { kind: "opfs" }, { kind: "memory" }]) {
  const title = `${storage.kind}${storage.durability ? ` (${storage.durability})` : ""}`;
  test(`${title} passes the published suite in a page`, { timeout: 120_000 }, () => inContext(async (context) => {
    const page = await tab(context);
    const report = await page.evaluate((spec) => lib.checkBackend(() => lib.openBackend({ ...spec, ...(spec.kind === "localstorage" ? { prefix: "suite" } : spec.kind === "memory" ? {} : { name: "suite" }) })), storage);
    assert.deepEqual(report.failed, []);
    assert.ok(report.passed > 20);
  }));
}

test("OPFS in a page: the worker that the package brings stores, a second tab is told that it is held, and gets it later", () => inContext(async (context) => {
  const one = await tab(context);
  const status = await one.evaluate(async () => {
    await openStore({ kind: "opfs" });
    globalThis.session = store.create("s1");
    say("a");
    await session.appendDurable("user/message", { text: "b" });
    return store.status();
  });
  assert.deepEqual([status.kind, status.durable, status.unsaved], ["opfs", true, 0]);
  const two = await tab(context);
  assert.equal(await two.evaluate(() => codeOf(() => openStore({ kind: "opfs" }))), "locked");
  await one.evaluate(() => store.dispose());
  assert.deepEqual(await readBack(two, { kind: "opfs" }), ["a", "b"]);
  // A tab that goes without a word gives the files back as well.
  await one.evaluate(() => openStore({ kind: "opfs" }));
  await one.close();
  assert.deepEqual(await readBack(two, { kind: "opfs" }), ["a", "b"]);
  assert.equal(await two.evaluate(() => codeOf(() => lib.openBackend({ kind: "opfs", name: "../x" }))), "invalid_argument");
}));

test("OPFS in a page whose worker ends: what waits is told, the next call starts another one, and closing has an end", { timeout: 60_000 }, () => inContext(async (context) => {
  const page = await tab(context);
  await page.evaluate(async () => {
    await openStore({ kind: "opfs" });
    globalThis.session = store.create("s1");
    say("a");
    await session.flush();
  });
  await page.workers()[0].evaluate(() => self.close());
  await page.evaluate(async () => {
    say("b");
    // The first try may be told of the end; what it was to write is kept.
    while ((await codeOf(() => session.flush())) !== null);
    await session.appendDurable("user/message", { text: "c" });
  });
  assert.deepEqual(await page.evaluate(async () => [texts(session.events), texts(await store.read("s1")), (await store.status()).unsaved]), [["a", "b", "c"], ["a", "b", "c"], 0]);
  // One that ends with a call under way.
  await page.workers()[0].evaluate(() => { self.onmessage = () => self.close(); });
  assert.equal(await page.evaluate(() => codeOf(() => store.sessions())), "storage");
  assert.deepEqual(await page.evaluate(async () => (await store.sessions()).map(({ id }) => id)), ["s1"]);
  await page.workers()[0].evaluate(() => self.close());
  assert.equal(await page.evaluate(() => codeOf(() => store.dispose())), null);
  assert.deepEqual(await readBack(page, { kind: "opfs" }), ["a", "b", "c"]);
  assert.deepEqual(await page.evaluate(async () => (await navigator.locks.query()).held), []);
}));

test("OPFS in a page whose worker does not answer any more can be closed", { timeout: 60_000 }, () => inContext(async (context) => {
  const page = await tab(context);
  await page.evaluate(() => openStore({ kind: "opfs" }));
  await page.workers()[0].evaluate(() => { self.onmessage = () => {}; });
  assert.equal(await page.evaluate(() => codeOf(() => store.dispose())), null);
  assert.equal(await page.evaluate(() => codeOf(() => openStore({ kind: "opfs" }))), null);
}));

test("an encrypted store in the browser's database has one writer, and a second tab follows it", () => inContext(async (context) => {
  const [one, two] = [await tab(context), await tab(context)];
  for (const page of [one, two]) {
    await page.evaluate(async () => {
      const key = await crypto.subtle.importKey("raw", new Uint8Array(32).fill(7), "AES-GCM", false, ["encrypt", "decrypt"]);
      await openStore({ kind: "custom", backend: lib.encrypted(await lib.openBackend({ kind: "indexeddb" }), key) });
    });
  }
  await one.evaluate(async () => {
    globalThis.session = store.create("s1");
    say("a");
    await session.flush();
    while ((await navigator.locks.query()).held.length === 0) await new Promise((ready) => setTimeout(ready, 5));
  });
  assert.equal(await two.evaluate(async () => (globalThis.session = await store.resume("s1")).readOnly), true);
  const heard = two.evaluate(() => new Promise((resolve) => session.on("event", (event) => resolve(event.data.text))));
  await one.evaluate(async () => { say("b"); await session.flush(); });
  assert.equal(await heard, "b");
  await one.close();
  await two.evaluate(async () => {
    while (session.readOnly) await new Promise((ready) => setTimeout(ready, 5));
    say("c");
    await session.flush();
  });
  assert.deepEqual(await two.evaluate(async () => texts(await store.read("s1"))), ["a", "b", "c"]);
}));

test("OPFS where the policy forbids workers, or the worker's file is not served, is unavailable and says so", () => inContext(async (context) => {
  await context.route("**/opfs-worker.js", (route) => route.fulfill({ status: 404, body: "" }));
  const page = await tab(context);
  assert.equal(await page.evaluate(() => codeOf(() => lib.openBackend({ kind: "opfs" }))), "unavailable");
  const status = await page.evaluate(async () => (await openStore({ kind: "opfs" })).status());
  assert.deepEqual([status.kind, status.durable, status.lastError.code], ["memory", false, "unavailable"]);
  const refused = await tab(context);
  await refused.evaluate(() => { globalThis.Worker = class { constructor() { throw new TypeError("refused"); } }; });
  assert.equal(await refused.evaluate(() => codeOf(() => lib.openBackend({ kind: "opfs" }))), "unavailable");
}));

for (const storage of [{ kind: "indexeddb" }, { kind: "opfs" }]) {
  test(`${storage.kind}: a tab that is closed while it flushes leaves a whole prefix, and all that was acknowledged`, { timeout: 60_000 }, () => inContext(async (context) => {
    for (let round = 0; round < 5; round++) {
      const id = `s${round}`;
      const page = await tab(context);
      const acked = await page.evaluate(async ([storage, id, round]) => {
        await openStore(storage);
        globalThis.session = store.create(id);
        for (let i = 0; i < 20; i++) say(`${i}`);
        await session.flush();
        for (let i = 20; i < 400; i++) say(`${i}`.padEnd(round * 2_000, "."));
        // Under way when the tab goes.
        void session.flush();
        await new Promise((resolve) => setTimeout(resolve, round));
        return session.durableSeq;
      }, [storage, id, round]);
      await page.close();
      const reader = await tab(context);
      const found = await readBack(reader, storage, id);
      await reader.close();
      assert.ok(acked >= 20 && found.length >= acked, `${found.length} of ${acked} acknowledged`);
      assert.deepEqual(found.map((text) => Number(text.replaceAll(".", ""))), found.map((_, i) => i));
    }
  }));
}

test("C13: a user event and deltas are there after the page went 10 ms later; a page that goes before it has loaded breaks nothing", () => inContext(async (context) => {
  const page = await tab(context);
  await page.evaluate(async () => {
    await openStore({ kind: "indexeddb" });
    globalThis.session = store.create("s1");
    say("question");
    const stream = session.openStream({ turn: 1, step: 1 });
    for (const delta of ["an ", "answer ", "begins"]) stream.push(delta);
    await new Promise((resolve) => setTimeout(resolve, 10));
    location.href = "/?gone";
  }).catch(() => {});
  await page.waitForURL("**/?gone");
  const reader = await tab(context);
  const found = await reader.evaluate(async () => {
    await openStore({ kind: "indexeddb" });
    return (await store.read("s1")).map((e) => e.data.text);
  });
  assert.deepEqual(found, ["question", "an ", "answer ", "begins"]);
  // Opening and going at once: nothing that was stored is touched.
  for (let i = 0; i < 3; i++) {
    await page.goto(server.url);
    await page.evaluate(async () => {
      const lib = await import("/web.js");
      await lib.default();
      void lib.SessionStore.open({ storage: { kind: "indexeddb" } }).then((store) => store.resume("s1"));
      dispatchEvent(new PageTransitionEvent("pagehide"));
      location.href = "/?gone";
    }).catch(() => {});
    await page.waitForURL("**/?gone");
  }
  assert.deepEqual(await reader.evaluate(async () => (await store.read("s1")).map((e) => e.data.text)), found);
}));

test("a page that is hidden writes its deltas at once", () => inContext(async (context) => {
  const page = await tab(context);
  const durable = await page.evaluate(async () => {
    await openStore({ kind: "indexeddb" });
    globalThis.session = store.create("s1");
    await session.flush();
    // So far away that only the flush can be what wrote them.
    const real = setTimeout;
    globalThis.setTimeout = (work, ms, ...args) => real(work, ms > 20 ? 600_000 : ms, ...args);
    session.openStream({ turn: 1, step: 1 }).push("delta");
    Object.defineProperty(document, "visibilityState", { get: () => "hidden", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
    for (let i = 0; i < 1_000 && session.durableSeq < 1; i++) await new Promise((resolve) => real(resolve, 20));
    return session.durableSeq;
  });
  assert.equal(durable, 1);
}));

test("two tabs append in turn: each takes over when the other lets go, nothing is lost or stands twice", { timeout: 60_000 }, () => inContext(async (context) => {
  const tabs = [await tab(context), await tab(context)];
  await tabs[0].evaluate(async () => { await openStore({ kind: "indexeddb" }); globalThis.session = store.create("s1"); await session.flush(); });
  await tabs[1].evaluate(() => openStore({ kind: "indexeddb" }));
  const [wanted, took] = [[], []];
  for (let turn = 0; turn < 8; turn++) {
    const [writer, other] = turn % 2 ? [tabs[1], tabs[0]] : tabs;
    const mine = [`${turn}a`, `${turn}b`];
    wanted.push(...mine);
    await other.evaluate(async () => { globalThis.session = await store.resume("s1"); });
    assert.equal(await other.evaluate(() => codeOf(async () => say("no"))), "locked");
    await writer.evaluate(async (mine) => { say(mine[0]); await session.appendDurable("user/message", { text: mine[1] }); await session.dispose(); }, mine);
    const ms = await other.evaluate(async () => {
      const start = performance.now();
      while (session.readOnly) await new Promise((resolve) => setTimeout(resolve, 5));
      return performance.now() - start;
    });
    took.push(ms);
    assert.deepEqual(await other.evaluate(() => texts(session.events)), wanted);
  }
  // What a busy machine adds is not the hand-over's.
  assert.ok(Math.min(...took) < 2_000, `hand-overs took ${took.map(Math.round)} ms`);
  const reader = await tab(context);
  assert.deepEqual(await readBack(reader, { kind: "indexeddb" }), wanted);
}));

test("hand-over within 2 seconds when the writer's process dies", () => inContext(async (context) => {
  const one = await tab(context);
  await one.evaluate(async () => { await openStore({ kind: "indexeddb" }); globalThis.session = store.create("s1"); say("a"); await session.flush(); });
  const two = await tab(context);
  await two.evaluate(async () => { await openStore({ kind: "indexeddb" }); globalThis.session = await store.resume("s1"); });
  const crashed = new Promise((resolve) => one.once("crash", resolve));
  void (await context.newCDPSession(one)).send("Page.crash").catch(() => {});
  await crashed;
  await two.waitForFunction(() => !session.readOnly, null, { timeout: 2_000 });
  await two.evaluate(async () => { say("b"); await session.flush(); });
  assert.deepEqual(await readBack(await tab(context), { kind: "indexeddb" }), ["a", "b"]);
}));

test("three tabs without locks append at once: conditional writes alone keep the log whole", { timeout: 60_000 }, () => inContext(async (context) => {
  await context.addInitScript(() => Object.defineProperty(Navigator.prototype, "locks", { get: () => undefined }));
  const tabs = [await tab(context), await tab(context), await tab(context)];
  await tabs[0].evaluate(async () => { await openStore({ kind: "indexeddb" }); globalThis.session = store.create("s1"); await session.flush(); });
  for (const page of tabs.slice(1)) await page.evaluate(async () => { await openStore({ kind: "indexeddb" }); globalThis.session = await store.resume("s1"); });
  // Store-first and memory-first appends, from all at once.
  const seqs = await Promise.all(tabs.map((page, who) => page.evaluate(async (who) => {
    const seqs = [];
    for (let i = 0; i < 15; i++) {
      if (i % 3 === 0) say(`${who}.${i}`);
      else seqs.push((await session.appendDurable("user/message", { text: `${who}.${i}` })).seq);
    }
    while ((await store.status()).unsaved > 0) await session.flush().catch(() => {});
    return seqs;
  }, who)));
  const events = await tabs[0].evaluate(async () => (await store.read("s1")).map((e) => [e.seq, e.data.text]));
  assert.deepEqual(events.map(([seq]) => seq), events.map((_, i) => i));
  assert.equal(events.length, 45);
  assert.equal(new Set(events.map(([, text]) => text)).size, 45);
  for (let who = 0; who < 3; who++) {
    const own = events.filter(([, text]) => text.startsWith(`${who}.`)).map(([, text]) => Number(text.split(".")[1]));
    assert.deepEqual(own, Array.from({ length: 15 }, (_, i) => i), "each tab's own order");
  }
  assert.equal(new Set(seqs.flat()).size, 30, "no seq was promised twice");
}));

test("C01: a full disk in IndexedDB is `quota`, the event stays unsaved, and the next write brings all", () => inContext(async (context) => {
  const page = await tab(context);
  const seen = await page.evaluate(async () => {
    await openStore({ kind: "indexeddb" });
    globalThis.session = store.create("s1");
    say("1"); say("2");
    await session.flush();
    const real = IDBObjectStore.prototype.put;
    const realAdd = IDBObjectStore.prototype.add;
    // As in a real browser, only the transaction's abort says so.
    const full = (how) => function (...args) {
      Object.defineProperty(this.transaction, "error", { value: new DOMException("full", "QuotaExceededError"), configurable: true });
      const tx = this.transaction;
      queueMicrotask(() => { try { tx.abort(); } catch {} });
      return how.apply(this, args);
    };
    IDBObjectStore.prototype.put = full(real);
    IDBObjectStore.prototype.add = full(realAdd);
    say("3");
    const code = await codeOf(() => session.flush());
    const status = await store.status();
    const durably = await codeOf(() => session.appendDurable("user/message", { text: "never" }));
    IDBObjectStore.prototype.put = real;
    IDBObjectStore.prototype.add = realAdd;
    say("4");
    await session.flush();
    return { code, durably, unsaved: status.unsaved, last: status.lastError?.code, texts: texts(await store.read("s1")), after: (await store.status()).unsaved };
  });
  assert.deepEqual(seen, { code: "quota", durably: "quota", unsaved: 1, last: "quota", texts: ["1", "2", "3", "4"], after: 0 });
}));

test("a large flush is cut into segments of one transaction: of one that fails in the middle nothing stands, and all of it comes with the next", { timeout: 60_000 }, () => inContext(async (context) => {
  const page = await tab(context);
  const seen = await page.evaluate(async () => {
    await openStore({ kind: "indexeddb" });
    globalThis.session = store.create("s1");
    let count = 0;
    const expected = [];
    const sayMany = () => {
      for (let i = 0; i < 3000; i++) { const text = `${count++} `.padEnd(1000, "é"); expected.push(text); say(text); }
    };
    const segments = () => new Promise((resolve) => {
      const open = indexedDB.open("sessionlog");
      open.onsuccess = () => {
        const request = open.result.transaction("kv").objectStore("kv").getAllKeys(IDBKeyRange.bound("s/s1/e/", "s/s1/e0"));
        request.onsuccess = () => { open.result.close(); resolve(request.result.length); };
      };
    });
    say("first"); expected.push("first");
    await session.flush();
    const out = [await segments()];
    const real = IDBObjectStore.prototype.put;
    /** The fifth segment of every write from now on, so often, goes wrong like this. */
    const breakFifth = (times, how) => {
      let nth = 0;
      IDBObjectStore.prototype.put = function (...args) {
        if (!String(args[1]).startsWith("s/s1/e/") || ++nth !== 5 || times-- <= 0) return real.apply(this, args);
        nth = 0;
        return how.call(this, args);
      };
    };
    // Ahead of the batch: the batch is asked for anew.
    breakFifth(1, () => { throw new DOMException("no", "DataCloneError"); });
    sayMany();
    out.push(await codeOf(() => session.flush()), await segments() > 20);
    const before = await segments();
    breakFifth(Infinity, function (args) {
      const request = real.apply(this, args);
      const tx = this.transaction;
      Object.defineProperty(tx, "error", { value: new DOMException("full", "QuotaExceededError"), configurable: true });
      queueMicrotask(() => { try { tx.abort(); } catch {} });
      return request;
    });
    sayMany();
    out.push(await codeOf(() => session.flush()), await segments() - before, (await store.status()).unsaved);
    IDBObjectStore.prototype.put = real;
    await session.flush();
    out.push(await segments() > before + 20);
    // Another writer takes over behind its back, while the lock says that there is none.
    await new Promise((resolve) => setTimeout(resolve, 60));
    await new Promise((resolve) => {
      const open = indexedDB.open("sessionlog");
      open.onsuccess = () => {
        const tx = open.result.transaction("kv", "readwrite");
        tx.objectStore("kv").put(new TextEncoder().encode('{"epoch":99}'), "s/s1/f");
        tx.oncomplete = () => { open.result.close(); resolve(); };
      };
    });
    sayMany();
    out.push(await codeOf(() => session.flush()));
    const stored = texts(await store.read("s1"));
    out.push(stored.length === expected.length && stored.every((text, at) => text === expected[at]), session.verify());
    return out;
  });
  assert.deepEqual(seen, [1, null, true, "quota", 0, 3000, true, null, true, null]);
}));

/** PERSIST.8, row by row: a fault while "3" is written, how often, what the flush says then, and what the store holds at the end. */
const FAULTS = [
  { name: "a connection that is closing", times: 1, code: null },
  { name: "a connection that is closing", times: Infinity, code: "storage" },
  { name: "a connection that was lost and says so", times: 1, code: null },
  { name: "a connection that was closed without a word", times: 1, code: null },
  { name: "a write that throws at once", times: 1, code: null },
  { name: "a write that throws at once", times: Infinity, code: "storage" },
  { name: "a request that fails", times: 1, code: null },
  { name: "a request that fails", times: Infinity, code: "storage" },
  { name: "an abort in the middle", times: 1, code: null },
  { name: "an abort in the middle", times: Infinity, code: "storage" },
  { name: "an abort that is told of what was stored", times: 1, code: null },
  { name: "a newer database", times: 1, code: "newer_format", stays: true },
];

for (const { name, times, code, stays } of FAULTS) {
  const often = times === 1 ? "once" : "until it is mended";
  test(`PERSIST.8: ${name}, ${often}: nothing is lost, nothing stands twice, and the status says so`, () => inContext(async (context) => {
    const page = await tab(context);
    const seen = await page.evaluate(async ([name, times]) => {
      await openStore({ kind: "indexeddb", name: "faults" });
      globalThis.session = store.create("s1");
      say("1"); say("2");
      await session.flush();
      // The fault is the writer's alone, and ends after so many times or when it is mended.
      const mends = [];
      let left = times;
      const patch = (object, key, work) => {
        const real = object[key];
        object[key] = function (...args) { return left-- > 0 ? work(this, () => real.apply(this, args), args) : real.apply(this, args); };
        mends.push(() => { object[key] = real; });
      };
      const both = (work) => { for (const key of ["put", "add"]) patch(IDBObjectStore.prototype, key, work); };
      const handles = [];
      const { transaction } = IDBDatabase.prototype;
      IDBDatabase.prototype.transaction = function (...args) { handles.push(this); return transaction.apply(this, args); };
      await store.read("s1");
      IDBDatabase.prototype.transaction = transaction;
      const handle = handles.at(-1);
      const faults = {
        "a connection that is closing": () => patch(IDBDatabase.prototype, "transaction", () => { throw new DOMException("closing", "InvalidStateError"); }),
        "a connection that was lost and says so": () => { handle.close(); handle.dispatchEvent(new Event("close")); },
        "a connection that was closed without a word": () => handle.close(),
        "a write that throws at once": () => both(() => { throw new DOMException("made up", "UnknownError"); }),
        "a request that fails": () => both((store, real) => {
          const request = real();
          // As when the disk fails: the request and then its transaction end with an error.
          queueMicrotask(() => { try { store.transaction.abort(); } catch {} });
          return request;
        }),
        "an abort in the middle": () => patch(IDBDatabase.prototype, "transaction", (db, real, [, mode]) => {
          const tx = real();
          if (mode === "readwrite") queueMicrotask(() => { try { tx.abort(); } catch {} });
          return tx;
        }),
        "an abort that is told of what was stored": () => patch(IDBDatabase.prototype, "transaction", (db, real, [, mode]) => {
          const tx = real();
          if (mode !== "readwrite") return tx;
          let told = null;
          for (const key of ["oncomplete", "onabort"]) Object.defineProperty(tx, key, { set(f) { if (key === "onabort") told = f; }, get: () => null, configurable: true });
          tx.addEventListener("complete", () => told?.call(tx, new Event("abort")));
          return tx;
        }),
        "a newer database": async () => {
          const name = (await indexedDB.databases()).map((each) => each.name).find((each) => each.includes("faults"));
          const db = await new Promise((resolve, reject) => {
            const request = indexedDB.open(name, 99);
            request.onsuccess = () => resolve(request.result);
            request.onerror = () => reject(request.error);
            request.onblocked = () => reject(new Error("our connection stays open"));
          });
          db.close();
        },
      };
      await faults[name]();
      say("3");
      const code = await codeOf(() => session.flush());
      const status = await store.status();
      for (const mend of mends) mend();
      say("4");
      const after = await codeOf(() => session.flush());
      return { code, unsaved: status.unsaved, last: status.lastError?.code ?? null, after, left: (await store.status()).unsaved, live: texts(session.events) };
    }, [name, times]);
    assert.deepEqual(seen.live, ["1", "2", "3", "4"]);
    assert.equal(seen.code, code);
    assert.equal(seen.unsaved, code === null ? 0 : 1);
    assert.equal(seen.last, code);
    if (stays) {
      // A version from elsewhere came over the store: nothing of it is touched, and nothing claims to be saved.
      assert.deepEqual([seen.after, seen.left], [code, 2]);
      return;
    }
    assert.deepEqual([seen.after, seen.left], [null, 0]);
    assert.deepEqual(await readBack(page, { kind: "indexeddb", name: "faults" }), ["1", "2", "3", "4"]);
    const fresh = await tab(context);
    assert.deepEqual(await readBack(fresh, { kind: "indexeddb", name: "faults" }), ["1", "2", "3", "4"], "in another page");
  }));
}

test("PERSIST.8: an open that never answers ends in `timeout`", () => inContext(async (context) => {
  const page = await tab(context);
  const seen = await page.evaluate(async () => {
    const { open } = IDBFactory.prototype;
    IDBFactory.prototype.open = function () { return new EventTarget(); };
    const code = await codeOf(() => openStore({ kind: "indexeddb", name: "silent", openTimeoutMs: 200 }));
    IDBFactory.prototype.open = open;
    return code;
  });
  assert.equal(seen, "timeout");
}));

for (const how of ["the first try to open it fails", "the upgrade says that all was lost"]) {
  test(`PERSIST.8: a database that the browser found broken and threw away opens, and the store says what may be gone: ${how}`, () => inContext(async (context) => {
    const page = await tab(context);
    const seen = await page.evaluate(async (fails) => {
      const { open } = IDBFactory.prototype;
      // As Chromium does after a crash.
      let faults = 1;
      IDBFactory.prototype.open = function (...args) {
        const isBroken = faults-- > 0;
        if (isBroken && fails) {
          const request = new EventTarget();
          Object.defineProperty(request, "error", { value: new DOMException("Internal error opening backing store for indexedDB.open.", "UnknownError") });
          setTimeout(() => request.onerror?.(new Event("error")));
          return request;
        }
        const request = open.apply(this, args);
        if (isBroken) request.addEventListener("upgradeneeded", (event) => Object.defineProperty(event, "dataLoss", { value: "total" }));
        return request;
      };
      const before = warnings.length;
      const store = await openStore({ kind: "indexeddb", name: "thrown-away" });
      const { kind, durable, lastError } = await store.status();
      const session = store.create("new");
      await session.appendDurable("user/message", { text: "goes on" });
      await store.dispose();
      faults = 2;
      const stillBroken = fails ? await codeOf(() => openStore({ kind: "indexeddb", name: "thrown-away" })) : "storage";
      IDBFactory.prototype.open = open;
      return { warnings: warnings.slice(before).map(({ code }) => code), kind, durable, lastError: lastError?.code, stillBroken };
    }, how.startsWith("the first"));
    assert.deepEqual(seen, { warnings: ["corrupt"], kind: "indexeddb", durable: true, lastError: "corrupt", stillBroken: "storage" });
    assert.deepEqual(await readBack(page, { kind: "indexeddb", name: "thrown-away" }, "new"), ["goes on"]);
  }));
}

test("C09: a session of a wiped store is `missing`, its export brings it back byte for byte, and the page sees whether it may stay", () => inContext(async (context) => {
  const page = await tab(context);
  const seen = await page.evaluate(async () => {
    await openStore({ kind: "indexeddb" });
    globalThis.session = store.create("s1");
    for (const text of ["1", "2", "3"]) say(text);
    const bytes = await store.exportSession("s1");
    const events = JSON.stringify(session.events);
    await store.dispose();
    await new Promise((resolve, reject) => Object.assign(indexedDB.deleteDatabase("sessionlog"), { onsuccess: resolve, onerror: reject, onblocked: reject }));
    await openStore({ kind: "indexeddb" });
    const code = await codeOf(() => store.resume("s1"));
    const { session: back } = await store.importSession(bytes);
    const status = await store.status();
    return { code, same: JSON.stringify(back.events) === events, persisted: typeof status.persisted, quota: status.quotaBytes > 0, used: status.usageBytes >= 0, answer: typeof (await store.requestPersistence()) };
  });
  assert.deepEqual(seen, { code: "missing", same: true, persisted: "boolean", quota: true, used: true, answer: "boolean" });
}));

test("encrypted IndexedDB: nothing that was said is in the clear, another key opens nothing and changes nothing", () => inContext(async (context) => {
  const page = await tab(context);
  const seen = await page.evaluate(async () => {
    const make = () => crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
    const [key, other] = [await make(), await make()];
    const inner = await lib.openBackend({ kind: "indexeddb", name: "sealed" });
    await openStore({ kind: "custom", backend: lib.encrypted(inner, key) });
    globalThis.session = store.create("s1");
    say("a plain secret");
    await session.flush();
    const raw = await inner.list("", "\uffff");
    const shown = raw.some(([, value]) => new TextDecoder("latin1").decode(value).includes("plain secret"));
    const wrong = await codeOf(() => lib.SessionStore.open({ storage: { kind: "custom", backend: lib.encrypted(inner, other) } }));
    const same = JSON.stringify((await inner.list("", "\uffff")).map(([k, v]) => [k, [...v]])) === JSON.stringify(raw.map(([k, v]) => [k, [...v]]));
    return { shown, wrong, same, texts: texts(await store.read("s1")) };
  });
  assert.deepEqual(seen, { shown: false, wrong: "corrupt", same: true, texts: ["a plain secret"] });
}));
