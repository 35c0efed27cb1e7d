// What a session's writer must do when a write fails, its answer is lost, or somebody else writes: nothing is lost, nothing stands twice.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { SessionStore } from "sessionlog";
import { memoryBackend, syncBackend } from "./memory-backend.mjs";

before(() => init());

const open = (backend) => SessionStore.open({ storage: { kind: "custom", backend } });
const say = (session, text) => session.append("user/message", { text });
const texts = (events) => events.filter((e) => e.type === "user/message").map((e) => e.data.text);
const full = () => Object.assign(new Error("full"), { code: "quota" });

async function stored(backend, id) {
  const store = await open(backend);
  try {
    return texts(await store.read(id));
  } finally {
    await store.dispose();
  }
}

/** Waits until it is so, however long that takes here. */
async function until(isSo) {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}

// ---------------------------------------------------------------- a store that comes first

test("an append that a store-first backend refuses throws, leaves nothing behind, and the next one goes on", async () => {
  const backend = syncBackend();
  const store = await open(backend);
  const session = store.create("s1");
  const heard = [];
  session.on("event", (event) => heard.push(event.data.text));
  say(session, "one");
  for (const isReadable of [true, false]) {
    backend.fail = full();
    const { get } = backend;
    if (!isReadable) backend.get = () => { throw new Error("cannot be read either"); };
    assert.throws(() => say(session, "two"));
    assert.throws(() => say(session, "three"));
    assert.deepEqual([session.seq, texts(session.events)], [heard.length, heard]);
    Object.assign(backend, { fail: null, get });
    const event = say(session, `after ${isReadable}`);
    assert.deepEqual([event.seq, session.events.at(-1)], [session.seq - 1, event]);
  }
  assert.deepEqual(heard, ["one", "after true", "after false"]);
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), heard);
});

test("an append whose answer a store-first backend loses stands once, or not at all", async () => {
  const backend = syncBackend();
  const store = await open(backend);
  const session = store.create("s1");
  say(session, "one");
  const { transact } = backend;
  for (const lost of [1, 2]) {
    let left = lost;
    backend.transact = (batch) => {
      transact(batch);
      if (left-- > 0) throw new Error("the answer is lost");
    };
    // When the take-over is answered the event is found; when it is not, nobody knows until the next one.
    if (lost === 1) assert.equal(say(session, "found").seq, 1);
    else assert.throws(() => say(session, "unknown"));
    backend.transact = transact;
  }
  say(session, "next");
  assert.deepEqual(texts(session.events), ["one", "found", "next"]);
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["one", "found", "next"]);
});

test("what another writer of a store-first backend stored comes in before an append returns, and ours stands behind it", async () => {
  const backend = syncBackend();
  const store = await open(backend), others = await open(backend);
  const session = store.create("s1");
  say(session, "one");
  const fork = store.fork("s1", { id: "s2" });
  say(fork, "in the fork");
  for (const [id, own] of [["s1", session], ["s2", fork]]) {
    const other = await others.resume(id);
    say(other, "theirs");
    const [two, three] = [say(own, "two"), say(own, "three")];
    assert.deepEqual(own.slice(two.seq), [two, three]);
    const last = say(other, "last");
    assert.deepEqual(other.events.at(-1), last);
    assert.deepEqual((await stored(backend, id)).slice(-4), ["theirs", "two", "three", "last"]);
  }
  await store.dispose();
  await others.dispose();
});

test("a listener that appends where the store comes first gets its event, also while another writer's events come in", async () => {
  const backend = syncBackend();
  const store = await open(backend), others = await open(backend);
  const session = store.create("s1");
  const answers = [];
  session.on("event", ({ data }) => {
    if (!data.text.startsWith("re:")) answers.push(say(session, `re:${data.text}`));
  });
  say(session, "one");
  const other = await others.resume("s1");
  say(other, "theirs");
  say(session, "two");
  assert.deepEqual(answers, session.events.filter(({ data }) => data.text.startsWith("re:")));
  assert.deepEqual(texts(session.events), ["one", "re:one", "theirs", "two", "re:theirs", "re:two"]);
  await store.dispose();
  await others.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["one", "re:one", "theirs", "two", "re:theirs", "re:two"]);
});

test("a session that is gone from a store-first backend takes no more events", async () => {
  const backend = syncBackend();
  const store = await open(backend);
  const session = store.create("s1");
  say(session, "one");
  backend.map.clear();
  for (let i = 0; i < 3; i++) assert.throws(() => say(session, "two"), { code: "missing" });
  assert.deepEqual([texts(session.events), backend.map.size], [["one"], 0]);
  await store.dispose().catch(() => {});
});

// ---------------------------------------------------------------- fences

test("a record that is changed beside another writer lets no write go over what that one has merged", async () => {
  const backend = memoryBackend();
  const one = await open(backend), two = await open(backend);
  const ours = one.create("s1");
  await ours.appendDurable("user/message", { text: "a" });
  const theirs = await two.resume("s1");
  const all = ["a"];
  for (let i = 0; i < 300; i++) {
    all.push(`b${i}`);
    await theirs.appendDurable("user/message", { text: `b${i}` });
  }
  assert.ok(backend.keys().filter((key) => key.includes("/e/")).length < 200, "they are merged");
  await one.updateRecord("s1", { title: "new" });
  await ours.appendDurable("user/message", { text: "c" });
  assert.deepEqual(await stored(backend, "s1"), [...all, "c"]);
  await theirs.appendDurable("user/message", { text: "d" });
  assert.deepEqual(await stored(backend, "s1"), [...all, "c", "d"]);
  await one.dispose();
  await two.dispose();
});

test("the writer of a deleted session writes nothing into a new one of the same id", async () => {
  const backend = memoryBackend();
  const one = await open(backend), two = await open(backend);
  const old = one.create("s1", { meta: { createdAt: 1 } });
  for (let i = 0; i < 5; i++) say(old, `old ${i}`);
  await old.flush();
  await two.delete("s1");
  const young = two.create("s1", { meta: { createdAt: 2 } });
  say(young, "new");
  await young.flush();
  const before = new Map(backend.map);
  say(old, "stale");
  await assert.rejects(old.flush(), { code: "missing" });
  await one.dispose().catch(() => {});
  assert.deepEqual(new Map(backend.map), before, "not so much as its fence is touched");
  await young.appendDurable("user/message", { text: "newer" });
  await two.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["new", "newer"]);
});

// ---------------------------------------------------------------- events that are stored before they are seen

for (const isFirst of [true, false]) {
  test(`an event whose write and take-over lose their answers is off the store again, ${isFirst ? "first of its session" : "behind others"}`, async () => {
    const backend = memoryBackend();
    const store = await open(backend);
    const session = store.create("s1");
    if (!isFirst) await session.appendDurable("user/message", { text: "one" });
    const { transact } = backend;
    let left = 2;
    backend.transact = async (batch) => {
      await transact(batch);
      if (batch.puts?.some(([key]) => key === "s/s1/f" || key.startsWith("s/s1/e/")) && left-- > 0) throw new Error("the answer is lost");
    };
    await assert.rejects(session.appendDurable("user/message", { text: "refused" }));
    backend.transact = transact;
    const event = await session.appendDurable("user/message", { text: "next" });
    assert.deepEqual(session.events.at(-1), event);
    const expected = isFirst ? ["next"] : ["one", "next"];
    assert.deepEqual(texts(session.events), expected);
    await store.dispose();
    assert.deepEqual(await stored(backend, "s1"), expected);
  });
}

test("a session that is disposed of gives those who append their answers first", async () => {
  const backend = memoryBackend({ delay: 2 });
  const store = await open(backend);
  const session = store.create("s1");
  await session.appendDurable("user/message", { text: "one" });
  const waiting = ["two", "three"].map((text) => session.appendDurable("user/message", { text }));
  await Promise.all([session.dispose(), ...waiting]);
  assert.deepEqual(await stored(backend, "s1"), ["one", "two", "three"]);
  await store.dispose();
});

test("a flush waits for what is in doubt: the event is off the store, or the flush says why not", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  await session.appendDurable("user/message", { text: "one" });
  const { transact } = backend;
  let left = 2;
  backend.transact = async (batch) => {
    await transact(batch);
    if (left-- > 0) throw new Error("the answer is lost");
  };
  await assert.rejects(session.appendDurable("user/message", { text: "refused" }));
  left = 1;
  await assert.rejects(session.flush());
  await session.flush();
  assert.deepEqual(await stored(backend, "s1"), ["one"]);
  await store.dispose();
});

test("what is appended while a session is disposed of is stored or refused", async () => {
  for (let turns = 0; turns < 40; turns++) {
    const backend = memoryBackend();
    const store = await open(backend);
    const session = store.create("s1");
    await session.appendDurable("user/message", { text: "one" });
    say(session, "two");
    const ending = session.dispose();
    for (let i = 0; i < turns; i++) await null;
    const acknowledged = ["one", "two"];
    try {
      acknowledged.push(say(session, "late").data.text);
    } catch (thrown) {
      assert.equal(thrown.code, "disposed");
    }
    await ending;
    await store.dispose();
    assert.deepEqual(await stored(backend, "s1"), acknowledged);
  }
});

// ---------------------------------------------------------------- after a failure

test("an error is past once everything is stored", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  await session.appendDurable("user/message", { text: "one" });
  backend.fail = full();
  await assert.rejects(store.archive("s1"), { code: "quota" });
  assert.equal((await store.status()).lastError.code, "quota");
  backend.fail = null;
  await session.flush();
  assert.equal((await store.status()).lastError, undefined);
  await store.dispose();
});

test("a session without events that was refused is tried again by itself", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  backend.fail = full();
  const session = store.create("s1");
  await assert.rejects(session.flush(), { code: "quota" });
  backend.fail = null;
  await until(() => backend.keys().includes("s/s1/h"));
  await until(async () => (await store.status()).lastError === undefined);
  await store.dispose();
});

test("a session without events whose first answer is lost is there", async () => {
  const backend = memoryBackend();
  const { transact } = backend;
  backend.transact = async (batch) => {
    backend.transact = transact;
    await transact(batch);
    throw new Error("the answer is lost");
  };
  const store = await open(backend);
  const session = store.create("s1");
  await session.flush().catch(() => {});
  await session.flush();
  await session.appendDurable("user/message", { text: "one" });
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), ["one"]);
});
