// What is damaged in a store costs itself: it is kept, reported and exported, and the rest is read and written on.
import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionLogError, SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

await init();

const bytes = (text) => new TextEncoder().encode(text);
const text = (value) => Buffer.from(value).toString("latin1");
const custom = (backend) => ({ storage: { kind: "custom", backend } });
const say = (session, what) => session.append("user/message", { text: what });
const texts = (events) => events.filter((e) => e.type === "user/message").map((e) => e.data.text);
const segments = (backend, id = "s1") => backend.keys().filter((key) => key.startsWith(`s/${id}/e/`));

/** Fails instead of waiting for what never comes. */
function ends(work, what) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`no end: ${what}`)), 20_000)));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** A store with one session of one event per segment, and nobody at work. */
async function filled(words = ["a", "b", "c"], backend = memoryBackend()) {
  const store = await SessionStore.open(custom(backend));
  const session = store.create("s1");
  for (const word of words) {
    say(session, word);
    await session.flush();
  }
  await store.dispose();
  return backend;
}

async function opened(backend) {
  const warnings = [];
  const store = await SessionStore.open({ ...custom(backend), onWarning: (warning) => warnings.push(warning) });
  return { store, warnings };
}

const DAMAGE = {
  torn: (value) => value.slice(0, value.length >> 1),
  "cut before its end": (value) => value.slice(0, -2),
  nul: (value) => new Uint8Array(value.length),
  empty: () => new Uint8Array(),
  garbage: () => bytes("garbage"),
};

for (const [how, damage] of Object.entries(DAMAGE)) {
  for (const words of [["a", "b", "c"], ["a"]]) {
    test(`a session whose last segment of ${words.length} is ${how} is written on`, async () => {
      const backend = await filled(words);
      const key = segments(backend).at(-1);
      const broken = damage(backend.map.get(key));
      backend.map.set(key, broken);
      const { store, warnings } = await opened(backend);
      const session = await store.resume("s1");
      assert.equal(warnings.filter(({ code }) => code === "corrupt").length, 1);
      const before = words.slice(0, -1);
      assert.deepEqual(texts(session.events), before);
      assert.equal(say(session, "new").seq, words.length, "the number of the lost event is not given again");
      await ends(session.flush(), "flush");
      await ends(session.appendDurable("user/message", { text: "newer" }), "appendDurable");
      assert.equal(session.verify(), words.length - 1);
      assert.deepEqual(backend.map.get(key), broken, "what is damaged stays");
      const exported = text(await store.exportSession("s1"));
      if (how !== "empty") assert.ok(exported.includes(text(broken)));
      await ends(store.dispose(), "dispose");
      const again = await opened(backend);
      const back = await again.store.resume("s1");
      assert.deepEqual(texts(back.events), [...before, "new", "newer"]);
      assert.equal(back.verify(), words.length - 1);
      await again.store.dispose();
    });
  }
}

test("a writer that meets a damaged last segment when it reloads goes on behind it", async () => {
  const backend = memoryBackend();
  const { store } = await opened(backend);
  const session = store.create("s1");
  say(session, "a");
  await session.flush();
  const other = await opened(backend);
  const theirs = await other.store.resume("s1");
  say(theirs, "b");
  await theirs.flush();
  const key = segments(backend).at(-1);
  backend.map.set(key, backend.map.get(key).slice(0, 40));
  say(session, "c");
  await ends(session.flush(), "flush");
  assert.deepEqual(texts(session.events), ["a", "c"]);
  assert.equal(session.seq, 3);
  await store.dispose();
  await other.store.dispose();
  assert.deepEqual(texts(await (await opened(backend)).store.read("s1")), ["a", "c"]);
});

test("a store that says conflict whatever comes is told of, not asked for ever", async () => {
  const backend = memoryBackend();
  const { store } = await opened(backend);
  const session = store.create("s1");
  say(session, "a");
  await session.flush();
  const { transact } = backend;
  backend.transact = async (batch) => {
    if (batch.puts?.some(([key]) => key.startsWith("s/s1/e/"))) throw Object.assign(new Error("no"), { code: "conflict" });
    return transact(batch);
  };
  say(session, "b");
  await assert.rejects(ends(session.flush(), "flush"), { code: "corrupt" });
  backend.transact = transact;
  await ends(session.flush(), "flush");
  await store.dispose();
  assert.deepEqual(texts(await (await opened(backend)).store.read("s1")), ["a", "b"]);
});

test("a merge puts nothing behind a torn line", async () => {
  const words = Array.from({ length: 80 }, (_, i) => `m${i}`);
  const backend = await filled(words);
  const key = segments(backend)[10];
  backend.map.set(key, backend.map.get(key).slice(0, 60));
  const { store } = await opened(backend);
  const session = await store.resume("s1");
  for (let i = 0; i < 300; i++) await session.appendDurable("user/message", { text: `n${i}` });
  await store.dispose();
  assert.ok(segments(backend).length < 300, "segments were merged");
  const read = await (await opened(backend)).store.read("s1");
  assert.deepEqual(texts(read), [...words.filter((word) => word !== "m10"), ...Array.from({ length: 300 }, (_, i) => `n${i}`)]);
});

test("events that are missing from the middle are reported", async () => {
  const backend = await filled();
  backend.map.delete(segments(backend)[1]);
  const { store, warnings } = await opened(backend);
  const session = await store.resume("s1");
  assert.deepEqual(texts(session.events), ["a", "c"]);
  assert.deepEqual(warnings.map(({ code }) => code), ["corrupt"]);
  assert.match(warnings[0].message, /1 events are missing/);
  await store.dispose();
});

test("a fence that cannot be read costs nothing", async () => {
  for (const fence of ["\x01\x02", '{"epoch":18446744073709551616}', ""]) {
    const backend = await filled();
    backend.map.set("s/s1/f", bytes(fence));
    const { store } = await opened(backend);
    const session = await store.resume("s1");
    say(session, "d");
    await ends(session.flush(), "flush");
    await store.dispose();
    assert.deepEqual(texts(await (await opened(backend)).store.read("s1")), ["a", "b", "c", "d"]);
  }
});

test("what a fork needs stays when the fork's header cannot be read", async () => {
  const backend = memoryBackend();
  const { store } = await opened(backend);
  say(store.create("s1"), "a");
  await store.flush();
  say(store.fork("s1", { id: "s2" }), "b");
  await store.flush();
  await store.dispose();
  const header = backend.map.get("s/s2/h");
  backend.map.set("s/s2/h", bytes("\x01"));
  const again = await opened(backend);
  await again.store.delete("s1");
  await again.store.dispose();
  backend.map.set("s/s2/h", header);
  assert.deepEqual(texts(await (await opened(backend)).store.read("s2")), ["a", "b"]);
});

test("sessions that are said to begin with each other are corrupt", async () => {
  const backend = memoryBackend();
  const { store } = await opened(backend);
  say(store.create("s1"), "a");
  await store.flush();
  store.fork("s1", { id: "s2" });
  await store.flush();
  await store.dispose();
  backend.map.set("s/s1/h", bytes('{"header":{"version":1,"id":"s1","createdAt":1},"base":{"id":"s2","count":1}}'));
  const again = await opened(backend);
  await assert.rejects(ends(again.store.resume("s2"), "resume"), { code: "corrupt" });
  await assert.rejects(ends(again.store.read("s1"), "read"), { code: "corrupt" });
  await again.store.dispose();
});

const hostile = () => [
  null, undefined, "text", 5, Symbol("s"), Object.create(null), Object.freeze({}), new DOMException("x", "AbortError"),
  { code: "bogus" }, { message: "dup", code: "23505", details: "Key (id)=(1) already exists." },
  { message: "dup", code: "dup", details: "{not json" }, { get message() { throw new Error("x"); } }, { get code() { throw null; } },
];

test("whatever a backend throws comes out as an error of ours, and the writer goes on", async () => {
  for (const thrown of hostile()) {
    for (const later of [true, false]) {
      const fail = () => {
        if (later) return Promise.reject(thrown);
        throw thrown;
      };
      const backend = await filled(["a"]);
      const { store } = await opened(backend);
      const session = await store.resume("s1");
      const { get, list, transact } = backend;
      backend.transact = fail;
      say(session, "b");
      await assert.rejects(ends(session.flush(), "flush"), SessionLogError);
      await assert.rejects(store.updateRecord("s1", { title: "t" }), SessionLogError);
      backend.transact = transact;
      await ends(session.flush(), "flush again");
      backend.get = fail;
      await assert.rejects(store.record("other"), SessionLogError);
      await assert.rejects(store.resume("other"), SessionLogError);
      backend.get = get;
      backend.list = fail;
      await assert.rejects(store.sessions(), SessionLogError);
      await assert.rejects(store.read("s1"), SessionLogError);
      await assert.rejects(store.rescrub((given) => given), SessionLogError);
      await assert.rejects(SessionStore.open(custom(backend)), SessionLogError);
      backend.list = list;
      await store.dispose();
      assert.deepEqual(texts(await (await opened(backend)).store.read("s1")), ["a", "b"]);
    }
  }
});

test("whatever a listener throws is reported", async () => {
  for (const thrown of hostile()) {
    const { store, warnings } = await opened(memoryBackend());
    const session = store.create("s1");
    const got = [];
    session.on("event", () => { throw thrown; });
    session.on("event", (event) => got.push(event.seq));
    say(session, "a");
    say(session, "b");
    assert.deepEqual(got, [0, 1]);
    assert.equal(warnings.length, 2);
    await store.dispose();
  }
});
