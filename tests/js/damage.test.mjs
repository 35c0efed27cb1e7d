// What is damaged in a store costs itself: it is kept, reported and exported, and the rest is read and written on.
import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionLogError, SessionStore, checkBackend, encrypted } from "sessionlog";
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

/** Flips a bit in the middle of a stored value. */
const flip = (backend, key) => {
  const value = backend.map.get(key).slice();
  value[value.length >> 1] ^= 1;
  backend.map.set(key, value);
};

test("in an encrypted store a damaged value costs itself alone, and another key is `corrupt`", async () => {
  const secret = () => crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const key = await secret();
  const inner = memoryBackend();
  const { store } = await opened(encrypted(inner, key));
  for (const id of ["s1", "s2"]) {
    const session = store.create(id);
    for (const word of ["a", "b", "c"]) {
      say(session, word);
      await session.flush();
    }
  }
  await store.dispose();
  flip(inner, segments(inner)[1]);
  flip(inner, segments(inner, "s2")[2]);
  flip(inner, "s/s2/f");
  flip(inner, "r/s1");
  const again = await opened(encrypted(inner, key));
  assert.ok(again.warnings.some(({ code }) => code === "corrupt"), "the record is reported");
  const [one, two] = [await again.store.resume("s1"), await again.store.resume("s2")];
  assert.deepEqual([texts(one.events), texts(two.events)], [["a", "c"], ["a", "b"]]);
  for (const session of [one, two]) {
    say(session, "d");
    await ends(session.flush(), "flush");
  }
  const lost = Buffer.from(inner.map.get(segments(inner, "s2")[2])).toString("base64");
  assert.ok(text(await again.store.exportSession("s2")).includes(lost));
  assert.ok((await again.store.sessions()).some(({ id }) => id === "s2"));
  await again.store.dispose();
  // Who has no key cannot put in what is read as if it had been encrypted.
  const forged = await filled(["forged"]);
  inner.map.set(segments(inner)[2], forged.map.get(segments(forged)[0]));
  const last = await opened(encrypted(inner, key));
  assert.deepEqual(texts(await last.store.read("s1")), ["a", "d"]);
  assert.deepEqual(texts(await last.store.read("s2")), ["a", "b", "d"]);
  await last.store.dispose();
  await assert.rejects(SessionStore.open(custom(encrypted(inner, await secret()))), { code: "corrupt" });
  await assert.rejects(encrypted(inner, await secret()).list("s/", "s0"), { code: "corrupt" });
});

/** Refuses what is over its limits, as servers do. */
function strict(limits) {
  const backend = Object.assign(memoryBackend(), limits);
  const { transact } = backend;
  backend.transact = async (batch) => {
    const { puts = [], deletes = [] } = batch;
    if (puts.length + deletes.length > (limits.maxBatch ?? Infinity)) throw new Error(`a batch of ${puts.length + deletes.length}`);
    for (const [key, value] of puts) if (value.length > (limits.maxValueBytes ?? Infinity)) throw new Error(`a value of ${value.length} for ${key}`);
    return transact(batch);
  };
  return backend;
}

for (const limits of [{ maxBatch: 100 }, { maxBatch: 8 }, { maxBatch: 8, maxValueBytes: 2_000 }, { maxBatch: 5, maxValueBytes: 1_000 }]) {
  test(`a session of many segments is scrubbed anew within the limits ${JSON.stringify(limits)}, also when that is cut off`, async () => {
    const words = Array.from({ length: 130 }, (_, i) => `hunter2hunter2 ${i}${"x".repeat(i === 70 ? 9_000 : 0)}`);
    const backend = strict(limits);
    const first = await opened(backend);
    const session = first.store.create("s1");
    for (const word of words) {
      say(session, word);
      await session.flush();
    }
    const key = segments(backend).find((found) => found.endsWith("0000000000000090"));
    const kept = text(backend.map.get(key)).slice(0, 60);
    backend.map.set(key, bytes(kept));
    const holds = () => [...backend.map.values()].filter((value) => text(value).includes("hunter2hunter2"));
    const scrubbed = (events) => assert.deepEqual(texts(events).map((word) => Number(/(\d+)x*$/.exec(word)[1])), words.map((_, i) => i).filter((i) => i !== 90));
    await first.store.dispose();

    // Cut off after each of the first batches: nothing is lost, and the next try ends it.
    const { transact } = backend;
    for (let left of [3, 2, 1]) {
      const broken = await opened(backend);
      backend.transact = async (batch) => {
        if (batch.puts?.some(([key]) => key.startsWith("s/s1/e/")) && --left < 0) throw new Error("gone");
        return transact(batch);
      };
      await broken.store.rescrub({ values: ["hunter2hunter2"] }).then(() => {}, (error) => assert.equal(error.code, "storage"));
      backend.transact = transact;
      scrubbed(await (await opened(backend)).store.read("s1"));
    }
    const { store } = await opened(backend);
    await store.rescrub({ values: ["hunter2hunter2"] });
    scrubbed(await store.read("s1"));
    assert.equal(holds().length, 0);
    assert.ok(text(await store.exportSession("s1")).includes(kept), "what is damaged is still there");
    const live = await store.resume("s1");
    say(live, "later");
    await live.flush();
    await store.dispose();
  });
}

for (const [how, damage] of Object.entries({
  "an unreadable head": (backend, name) => backend.map.set(`b/${name}`, new Uint8Array([1, 2, 3])),
  "a head that says nothing": (backend, name) => backend.map.set(`b/${name}`, bytes("null")),
  "a missing piece": (backend, name) => backend.map.delete(backend.keys().find((key) => key.startsWith(`b/${name}/`))),
  "a damaged piece": (backend, name) => flip(backend, backend.keys().find((key) => key.startsWith(`b/${name}/`))),
})) {
  test(`a blob with ${how} is absent, stands in nobody's way, and is whole again when it is put again`, async () => {
    const backend = memoryBackend();
    const { store } = await opened(backend);
    const session = store.create("s1");
    const media = new Uint8Array(2_500_000).fill(7);
    const name = await session.putBlob(media, { mediaType: "image/png" });
    await session.flush();
    damage(backend, name);
    assert.equal(await session.getBlob(name), null);
    assert.ok((await store.exportSession("s1")).length > 0);
    await store.rescrub({ values: ["hunter2hunter2"] });
    await store.sweep({});
    assert.equal(await session.putBlob(media, { mediaType: "image/png" }), name);
    assert.deepEqual(await session.getBlob(name), media);
    assert.equal(backend.keys().filter((key) => key.startsWith(`b/${name}/`)).length, 3, "nothing is left of the damaged one");
    damage(backend, name);
    await store.delete("s1");
    assert.deepEqual(backend.keys().filter((key) => key.startsWith("b/")), []);
    await store.dispose();
  });
}

test("a backend that says it is sync and answers with promises does not pass", async () => {
  const { failed } = await checkBackend(() => Object.assign(memoryBackend(), { sync: true }));
  assert.deepEqual(failed.map(({ name }) => name).filter((name) => /at once/.test(name)), ["a store that is `sync` answers at once"]);
  assert.deepEqual((await checkBackend(() => memoryBackend())).failed.filter(({ name }) => /at once/.test(name)), []);
});

test("a record that is too large for the store keeps no event out of it", async () => {
  for (const limit of [1_000, 65_536]) {
    const backend = strict({ maxValueBytes: limit });
    const { store, warnings } = await opened(backend);
    const session = store.create("s1");
    say(session, "a");
    await session.flush();
    session.setTitle("T".repeat(70_000));
    say(session, "\u{1f600}".repeat(30_000));
    await ends(session.flush(), "flush");
    await store.updateRecord("s1", { working_set_pins: Array.from({ length: 20_000 }, (_, i) => `pin ${i}`), project_root: "/p" });
    say(session, "b");
    await ends(session.flush(), "flush");
    assert.equal(warnings.filter(({ code }) => code === "lost").length, 1);
    await store.dispose();
    const again = await opened(backend);
    assert.deepEqual(texts(await again.store.read("s1")), ["a", "\u{1f600}".repeat(30_000), "b"]);
    const [found] = await again.store.sessions();
    assert.match(found.title, /^T/);
    assert.equal((await again.store.record("s1")).project_root, "/p");
    await again.store.updateRecord("s1", { title: "U".repeat(70_000) });
    assert.equal((await again.store.resume("s1")).title, "T".repeat(70_000), "the log has all of it");
    await again.store.dispose();
  }
});

test("a session whose header cannot be read is `corrupt`, and can be deleted", async () => {
  const backend = await filled();
  backend.map.set("s/s1/h", bytes("\x01"));
  const { store } = await opened(backend);
  await assert.rejects(store.resume("s1"), { code: "corrupt" });
  await store.delete("s1");
  assert.deepEqual(backend.keys().filter((key) => /^(s|r)\/s1/.test(key)), []);
  await store.dispose();
});

test("a session whose record cannot be read is exported all the same", async () => {
  const backend = await filled();
  backend.map.set("r/s1", bytes("\x01"));
  const { store } = await opened(backend);
  const { session } = await store.importSession(await store.exportSession("s1"), { id: "s2" });
  assert.deepEqual(texts(session.events), ["a", "b", "c"]);
  await store.dispose();
});

test("a line of an audit that cannot be read costs itself alone", async () => {
  const backend = memoryBackend();
  const { store } = await opened(backend);
  backend.map.set("u/r/r1", bytes("u/t/1"));
  backend.map.set("u/t/1", bytes('{"runId":"r1"}'));
  backend.map.set("u/a/r1/000000", bytes('{"type":"a","at":1}\n{"type":"b",\n{"type":"c","at":3}\n'));
  assert.deepEqual((await store.runs.showRun("r1")).audit.map(({ type }) => type), ["a", "c"]);
  await store.dispose();
});
