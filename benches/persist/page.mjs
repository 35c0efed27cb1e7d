// The contenders, each the plain way its documentation shows. Every one starts a round empty and ends it durable.
import Dexie from "dexie";
import { createStore, set } from "idb-keyval";
import { IndexeddbPersistence } from "y-indexeddb";
import * as Y from "yjs";
import init, { SessionStore } from "/web.js";

const KIND = "user/message";
const body = (i) => `${i} `.padEnd(1000, "the quick brown fox jumps over the lazy dog, ");
const event = (i) => ({ seq: i, id: i.toString(16).padStart(16, "0"), at: 1_700_000_000_000 + i, type: KIND, data: { text: body(i) } });
const derive = (events) => events.filter((e) => e.type === KIND).map((e) => ({ role: "user", parts: [{ type: "text", text: e.data.text }], sources: [e.seq] }));
const BATCH = 1_000;

const done = (tx) => new Promise((resolve, reject) => { tx.oncomplete = resolve; tx.onabort = () => reject(tx.error); });
const openDb = (name, keyPath) => new Promise((resolve, reject) => {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore("ev", keyPath === undefined ? {} : { keyPath });
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
async function rawDb(name, keyPath) {
  const db = await openDb(name, keyPath);
  return {
    write: (durability, put) => {
      const tx = db.transaction("ev", "readwrite", { durability });
      put(tx.objectStore("ev"));
      return done(tx);
    },
    clear: () => { const tx = db.transaction("ev", "readwrite"); tx.objectStore("ev").clear(); return done(tx); },
    close: () => db.close(),
  };
}

const lists = { singles: {}, batches: {}, opening: {} };

await init();
const raw = await rawDb("bench-raw", "seq");
const values = await rawDb("bench-values");
const dexie = new Dexie("bench-dexie");
dexie.version(1).stores({ ev: "seq" });
const keyval = createStore("bench-keyval", "kv");

const worker = new Worker("/sqlite-worker.js", { type: "module" });
const asked = new Map();
let asks = 0;
worker.onmessage = ({ data: [id, value, error] }) => {
  const { resolve, reject } = asked.get(id);
  asked.delete(id);
  if (error) reject(new Error(error)); else resolve(value);
};
const sqlite = (...message) => new Promise((resolve, reject) => { asked.set(++asks, { resolve, reject }); worker.postMessage([asks, ...message]); });
const hasSqlite = await sqlite("open").then(() => true, (error) => (console.log(`sqlite-wasm: ${error.message}`), false));

const stores = {};
for (const [name, storage] of Object.entries({ relaxed: { kind: "indexeddb", name: "bench" }, strict: { kind: "indexeddb", name: "bench-strict", durability: "strict" }, opfs: { kind: "opfs", name: "bench" } })) {
  stores[name] = await SessionStore.open({ storage });
}
let sessions = 0;
/** A new session per round, deleted after it. */
async function withSession(store, work) {
  const session = store.create(`s${++sessions}`);
  await session.flush();
  const ms = await timed(() => work(session));
  await session.dispose();
  await store.delete(session.id);
  return ms;
}
async function timed(work) {
  // What goes before and after a round (a session made, a table emptied) is nobody's work.
  await globalThis.mark("start");
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  await globalThis.mark("end");
  return ms;
}
async function cleared(store, work) {
  await store.clear();
  return timed(work);
}
async function yjs(work) {
  const doc = new Y.Doc();
  const provider = new IndexeddbPersistence("bench-yjs", doc);
  await provider.whenSynced;
  // It has no word for "stored": a transaction behind its own ends after it.
  const settled = () => done(provider.db.transaction("updates", "readwrite"));
  const ms = await timed(() => work(doc, doc.getArray("ev"), settled));
  await provider.clearData();
  doc.destroy();
  return ms;
}

const each = (count, work) => async () => { for (let i = 0; i < count; i++) await work(i); };
const batches = (count, work) => async () => { for (let from = 0; from < count; from += BATCH) await work(Array.from({ length: Math.min(BATCH, count - from) }, (_, i) => event(from + i))); };

Object.assign(lists.singles, {
  "raw IndexedDB": (n) => cleared(raw, each(n, (i) => raw.write("relaxed", (store) => store.add(event(i))))),
  sessionlog: (n) => withSession(stores.relaxed, (session) => each(n, (i) => session.appendDurable(KIND, { text: body(i) }))()),
  Dexie: async (n) => (await dexie.ev.clear(), timed(each(n, (i) => dexie.ev.add(event(i))))),
  "idb-keyval, whole array": (n) => { const all = []; return timed(each(n, (i) => (all.push(event(i)), set("all", all, keyval)))); },
  "Yjs, y-indexeddb": (n) => yjs((doc, list, settled) => each(n, (i) => { list.push([event(i)]); return settled(); })()),
  ...(hasSqlite ? { "sqlite-wasm on OPFS": async (n) => (await sqlite("clear"), timed(each(n, (i) => sqlite("add", [[i, JSON.stringify(event(i))]])))) } : {}),
  "sessionlog on OPFS": (n) => withSession(stores.opfs, (session) => each(n, (i) => session.appendDurable(KIND, { text: body(i) }))()),
  "raw IndexedDB, strict": (n) => cleared(raw, each(n, (i) => raw.write("strict", (store) => store.add(event(i))))),
  "sessionlog, strict": (n) => withSession(stores.strict, (session) => each(n, (i) => session.appendDurable(KIND, { text: body(i) }))()),
});

const inBatches = (n) => async (session) => {
  for (let from = 0; from < n; from += BATCH) {
    for (let i = from; i < Math.min(n, from + BATCH); i++) session.append(KIND, { text: body(i) });
    await session.flush();
  }
};
Object.assign(lists.batches, {
  "one value per batch by hand": (n) => cleared(values, batches(n, (events) => values.write("relaxed", (store) => store.add(JSON.stringify(events), events[0].seq)))),
  sessionlog: (n) => withSession(stores.relaxed, inBatches(n)),
  "raw IndexedDB, record per event": (n) => cleared(raw, batches(n, (events) => raw.write("relaxed", (store) => events.forEach((e) => store.add(e))))),
  "Dexie bulkAdd": async (n) => (await dexie.ev.clear(), timed(batches(n, (events) => dexie.ev.bulkAdd(events)))),
  "Yjs, y-indexeddb": (n) => yjs((doc, list, settled) => batches(n, (events) => { list.push(events); return settled(); })()),
  ...(hasSqlite ? { "sqlite-wasm on OPFS": async (n) => (await sqlite("clear"), timed(batches(n, (events) => sqlite("add", events.map((e) => [e.seq, JSON.stringify(e)]))))) } : {}),
  "sessionlog on OPFS": (n) => withSession(stores.opfs, inBatches(n)),
  "one value per batch by hand, strict": (n) => cleared(values, batches(n, (events) => values.write("strict", (store) => store.add(JSON.stringify(events), events[0].seq)))),
  "sessionlog, strict": (n) => withSession(stores.strict, inBatches(n)),
});

/** Stores of their own, written once, opened anew in every round. */
async function fill(length) {
  const store = await SessionStore.open({ storage: { kind: "indexeddb", name: "bench-long" } });
  for (const [id, count, compacted] of [["plain", length, false], ["compacted", length, true], ["short", length / 10, true]]) {
    const session = store.create(id);
    await inBatches(count)(session);
    if (compacted) {
      session.append("session/compacted", { summary: "what was said", uptoSeq: count - 10 });
      await session.flush();
    }
  }
  await store.dispose();
  const long = new Dexie("bench-dexie-long");
  long.version(1).stores({ ev: "seq" });
  for (let from = 0; from < length; from += BATCH) await long.ev.bulkAdd(Array.from({ length: BATCH }, (_, i) => event(from + i)));
  long.close();
}
let kept;
const reopened = (id, expect) => async () => {
  const start = performance.now();
  const store = await SessionStore.open({ storage: { kind: "indexeddb", name: "bench-long" } });
  const session = await store.resume(id);
  kept = session.deriveMessages();
  const ms = performance.now() - start;
  if (!expect(kept.length)) throw new Error(`${id}: ${kept.length} messages`);
  await session.whole;
  await store.dispose();
  return ms;
};
Object.assign(lists.opening, {
  "Dexie toArray": async () => {
    const start = performance.now();
    const long = new Dexie("bench-dexie-long");
    long.version(1).stores({ ev: "seq" });
    kept = derive(await long.ev.toArray());
    const ms = performance.now() - start;
    long.close();
    return ms;
  },
  sessionlog: reopened("plain", (n) => n > 1000),
  "sessionlog, compacted near the end": reopened("compacted", (n) => n === 10),
  "sessionlog, compacted, a tenth as long": reopened("short", (n) => n === 10),
});

globalThis.bench = { names: (group) => Object.keys(lists[group]), run: (group, name, count) => lists[group][name](count), fill };
