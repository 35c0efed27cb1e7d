// Persistence over a backend that loses answers, comes late and refuses: PERSIST, C01, C03, B03.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { SessionStore, checkBackend, encrypted, openBackend } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

before(() => init());

const open = (backend) => SessionStore.open({ storage: { kind: "custom", backend } });
const texts = (events) => events.filter((e) => e.type === "user/message").map((e) => e.data.text);
async function stored(backend, id) {
  const store = await open(backend);
  try {
    return texts(await store.read(id));
  } finally {
    await store.dispose();
  }
}
/** Runs `how(next, batch)` instead of one coming `transact` that writes a segment. */
function once(backend, how) {
  const real = backend.transact.bind(backend);
  backend.transact = (batch) => {
    if (!batch.puts?.some(([key]) => key.includes("/e/"))) return real(batch);
    backend.transact = real;
    return how(real, batch);
  };
}
const lost = () => new Error("the connection went away");

test("a backend of a caller's own is checked, and a bad one is found out", async () => {
  const backend = memoryBackend();
  const good = await checkBackend(() => backend);
  assert.deepEqual(good.failed, []);
  assert.ok(good.passed > 20);
  assert.deepEqual(backend.keys(), [], "nothing is left behind");
  const careless = memoryBackend();
  const real = careless.transact;
  careless.transact = (batch) => real({ ...batch, checks: [] });
  const bad = await checkBackend(() => careless);
  assert.ok(bad.failed.some((f) => f.name === "a failed check writes nothing"));
  await assert.rejects(checkBackend(null), { code: "invalid_argument" });
});

test("a stored write whose answer is lost is stored once", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  session.append("user/message", { text: "one" });
  await session.flush();
  once(backend, async (real, batch) => { await real(batch); throw lost(); });
  session.append("user/message", { text: "two" });
  await assert.rejects(session.flush());
  session.append("user/message", { text: "three" });
  await session.flush();
  assert.equal((await store.status()).unsaved, 0);
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["one", "two", "three"]);
});

test("appendDurable of an event that was stored after all resolves", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  await session.appendDurable("user/message", { text: "one" });
  once(backend, async (real, batch) => { await real(batch); throw lost(); });
  const event = await session.appendDurable("user/message", { text: "two" });
  assert.equal(session.durableSeq, event.seq + 1);
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["one", "two"]);
});

test("appendDurable on a new session whose first write is lost is refused, and the next one works", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  const seq = session.seq;
  once(backend, async () => { throw lost(); });
  await assert.rejects(session.appendDurable("user/message", { text: "one" }), { code: "storage" });
  assert.equal(session.seq, seq);
  await session.appendDurable("user/message", { text: "two" });
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["two"]);
});

test("a refused event whose write arrives late is not in the store", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  await session.appendDurable("user/message", { text: "one" });
  let late;
  once(backend, async (real, batch) => { late = () => real(batch); throw lost(); });
  await assert.rejects(session.appendDurable("user/message", { text: "two" }));
  await assert.rejects(late(), { code: "conflict" }, "the session was taken over in between");
  await session.appendDurable("user/message", { text: "three" });
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["one", "three"]);
});

test("a refused event that was stored while the store could not be read is taken off again", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  await session.appendDurable("user/message", { text: "one" });
  once(backend, async (real, batch) => { await real(batch); backend.fail = lost(); throw lost(); });
  await assert.rejects(session.appendDurable("user/message", { text: "two" }));
  backend.fail = null;
  await session.appendDurable("user/message", { text: "three" });
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["one", "three"]);
});

test("values over the backend's limit are cut and come back whole", async () => {
  const backend = Object.assign(memoryBackend(), { maxValueBytes: 500, maxBatch: 4 });
  const store = await open(backend);
  const session = store.create("s1");
  const text = "é".repeat(3_000);
  session.append("user/message", { text });
  session.append("user/message", { text: "next" });
  await session.flush();
  assert.ok([...backend.map].every(([key, value]) => !key.includes("/e/") || value.length <= 500));
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), [text, "next"]);
});

test("many flushes are merged and the log stays what it was", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  const wanted = [];
  for (let i = 0; i < 300; i++) {
    wanted.push(`event ${i}`);
    session.append("user/message", { text: `event ${i}` });
    await session.flush();
  }
  assert.ok(backend.keys().filter((key) => key.includes("/e/")).length < 100);
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), wanted);
});

const aesKey = () => crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);

test("the built-in memory backend and an encrypted one pass the suite", async () => {
  assert.deepEqual((await checkBackend(() => openBackend({ kind: "memory" }))).failed, []);
  const key = await aesKey();
  const inner = memoryBackend();
  assert.deepEqual((await checkBackend(() => encrypted(inner, key))).failed, []);
});

test("an encrypted session shows its id and nothing of what was said; another key is `corrupt`", async () => {
  const inner = memoryBackend();
  const key = await aesKey();
  const backend = encrypted(inner, key);
  const store = await open(backend);
  const session = store.create("visible-id");
  session.append("user/message", { text: "a plain secret" });
  await session.flush();
  await store.dispose();
  assert.ok(inner.keys().some((k) => k.includes("visible-id")));
  for (const value of inner.map.values()) assert.ok(!Buffer.from(value).toString("latin1").includes("plain secret"));
  assert.deepEqual(await stored(backend, "visible-id"), ["a plain secret"]);
  const other = encrypted(inner, await aesKey());
  await assert.rejects(open(other), { code: "corrupt" });
});

test("storage that is not there is told, and an unknown kind is refused", async () => {
  await assert.rejects(openBackend({ kind: "indexeddb" }), { code: "unavailable" });
  await assert.rejects(openBackend({ kind: "opfs" }), { code: "unavailable" });
  await assert.rejects(openBackend({ kind: "floppy" }), { code: "invalid_argument" });
  const store = await SessionStore.open({ storage: { kind: "indexeddb" } });
  const status = await store.status();
  assert.deepEqual([status.durable, status.kind, status.lastError?.code], [false, "memory", "unavailable"]);
  await store.dispose();
});
