// Persistence over a backend that loses answers, comes late and refuses: PERSIST, C01, C03, B03.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { SessionStore, VirtualFs, checkBackend, encrypted, openBackend } from "sessionlog";
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

/** A backend with one fault; each is what a careless author might write. */
const FAULTS = {
  "ignores checks": [(b, real) => { b.transact = (batch) => real.transact({ ...batch, checks: [] }); }, "a failed check writes nothing"],
  "writes before it checks": [(b, real) => {
    b.transact = async (batch) => { await real.transact({ puts: batch.puts.slice(0, 1) }); await real.transact(batch); };
  }, "a failed check writes nothing"],
  "looks at the first check only": [(b, real) => { b.transact = (batch) => real.transact({ ...batch, checks: batch.checks.slice(0, 1) }); }, "one failed check of several fails all"],
  "looks at the last check only": [(b, real) => { b.transact = (batch) => real.transact({ ...batch, checks: batch.checks.slice(-1) }); }, "one failed check of several fails all"],
  "rejects without a code": [(b, real) => {
    b.transact = (batch) => real.transact(batch).catch(() => { throw new Error("no"); });
  }, "checks for absent and present values"],
  "includes the end of a range": [(b, real) => { b.list = (start, end, options) => real.list(start, `${end}\0`, options); }, "ranges are half open"],
  "orders by code points": [(b, real) => {
    b.list = async (...args) => (await real.list(...args)).sort(([x], [y]) => Buffer.compare(Buffer.from(x), Buffer.from(y)) * (args[2]?.reverse ? -1 : 1));
  }, "keys are listed by code units"],
  "takes an empty value for none": [(b, real) => {
    b.get = async (key) => { const found = await real.get(key); return found?.length === 0 ? null : found; };
  }, "an empty value is a value"],
  "answers undefined for none": [(b, real) => { b.get = async (key) => (await real.get(key)) ?? undefined; }, "an absent key has no value"],
  "forgets deletes": [(b, real) => { b.transact = (batch) => real.transact({ ...batch, deletes: [] }); }, "a later put replaces, a delete removes"],
  "ignores the limit": [(b, real) => { b.list = (start, end, options) => real.list(start, end, { ...options, limit: undefined }); }, "limit, reverse and keysOnly"],
  "ignores reverse": [(b, real) => { b.list = (start, end, options) => real.list(start, end, { ...options, reverse: false }); }, "limit, reverse and keysOnly"],
  "lets the first put of a key win": [(b, real) => { b.transact = (batch) => real.transact({ ...batch, puts: batch.puts.toReversed() }); }, "in one batch the last put of a key counts"],
  "keeps text, not bytes": [(b, real) => {
    b.get = async (key) => { const found = await real.get(key); return found === null ? null : new TextEncoder().encode(new TextDecoder().decode(found)); };
  }, "every byte survives"],
  "cuts large values": [(b, real) => { b.get = async (key) => (await real.get(key))?.subarray(0, 65_536) ?? null; }, "a large value comes back whole"],
  "folds equivalent keys": [(b, real) => {
    b.get = (key) => real.get(key.normalize("NFC"));
    b.transact = ({ checks, puts, deletes }) => real.transact({
      checks: checks.map(({ key, equals }) => ({ key: key.normalize("NFC"), equals })),
      puts: puts.map(([key, value]) => [key.normalize("NFC"), value]),
      deletes: deletes.map((key) => key.normalize("NFC")),
    });
  }, "keys may hold any character"],
  "lists one page only": [(b, real) => { b.list = async (...args) => (await real.list(...args)).slice(0, 500); }, "many keys"],
  "writes a batch in two steps": [(b, real) => {
    b.transact = async (batch) => {
      await real.transact({ ...batch, puts: batch.puts.slice(0, 1) });
      await new Promise((resolve) => setTimeout(resolve));
      await real.transact({ puts: batch.puts.slice(1) });
    };
  }, "readers see whole batches"],
  "checks, then writes later": [(b, real) => {
    b.transact = async (batch) => {
      await real.transact({ checks: batch.checks });
      await new Promise((resolve) => setTimeout(resolve));
      await real.transact({ ...batch, checks: [] });
    };
  }, "conditional updates at once lose nothing"],
  "loses half of what it holds when closed": [(b, real) => {
    b.close = async () => { const [first] = real.keys(); if (first !== undefined) real.map.delete(first); };
  }, "batches are whole after reopening"],
  "deletes by prefix": [(b, real) => {
    b.transact = async (batch) => {
      const stems = batch.deletes.map((key) => key.split("/").slice(0, 3).join("/"));
      await real.transact({ ...batch, deletes: real.keys().filter((key) => stems.some((stem) => key.startsWith(stem))) });
    };
  }, "deleting one session leaves its neighbours"],
  "says that it is sync and answers with promises": [(b) => { b.sync = true; }, "a store that is `sync` answers at once"],
};
for (const [fault, [plant, name]] of Object.entries(FAULTS)) {
  test(`the suite finds a backend that ${fault}`, async () => {
    const real = memoryBackend();
    const faulty = { ...real };
    plant(faulty, real);
    const report = await checkBackend(() => faulty);
    assert.ok(report.failed.some((f) => f.name === name && f.message !== ""), JSON.stringify(report.failed));
    assert.equal(report.passed + report.failed.length, 22);
  });
}

test("what is no backend fails every case and throws nothing", async () => {
  for (const make of [() => null, () => ({ get() {}, list() {} }), () => { throw new Error("no"); }, async () => { throw new Error("no"); }]) {
    const report = await checkBackend(make);
    assert.equal(report.passed, 0);
    assert.ok(report.failed.every((f) => f.message.startsWith("could not be opened")));
  }
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

test("what is over the backend's bytes of a batch goes in several: events, a rescrub, also while it is written, the audit of a run, files", async () => {
  const backend = Object.assign(memoryBackend({ delay: 1 }), { maxValueBytes: 500, maxBatch: 50, maxBatchBytes: 1_500 });
  const { transact } = backend;
  backend.transact = (batch) => {
    const sizes = (batch.puts ?? []).map(([, value]) => value.length);
    if (sizes.length > 50 || sizes.reduce((sum, size) => sum + size, 0) > 3_000) throw Object.assign(new Error("too much for one batch"), { code: "quota" });
    return transact.call(backend, batch);
  };
  const store = await open(backend);
  const session = store.create("s1");
  const secret = `sk-${"abcdefghij0123456789".repeat(2)}`;
  for (let n = 0; n < 40; n++) session.append("user/message", { text: `${n} ${secret} ${"x".repeat(200)}` });
  await session.flush();
  const rescrubbing = store.rescrub({ builtin: "secrets" });
  for (let n = 0; n < 3; n++) await session.appendDurable("user/message", { text: `meanwhile ${n}` });
  await rescrubbing;
  await session.flush();
  const wanted = texts(session.events);
  assert.ok(wanted.length === 43 && !wanted.some((text) => text.includes(secret)));
  const audit = store.runs.auditLogger();
  for (let n = 0; n < 50; n++) audit.record({ type: "note", data: `${n}`.padEnd(100) });
  await store.runs.save({ runId: "r1", sessionId: "s1", startedAt: 1, status: "completed", task: "t" }, audit);
  assert.equal((await store.runs.showRun("r1")).audit.length, 50);
  const files = await VirtualFs.open({ storage: { kind: "custom", backend } });
  files.writeFile("/large.bin", new Uint8Array(20_000).fill(7));
  await files.flush();
  await files.dispose();
  await store.dispose();
  assert.deepEqual(await stored(backend, "s1"), wanted);
  assert.ok(![...backend.map.values()].some((value) => Buffer.from(value).includes(secret)));
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

test("a record that was behind its log when the writer was cut off is made up for by whoever opens the session", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  await session.appendDurable("user/message", { text: "the first" });
  await session.flush();
  for (const text of ["the second", "the third"]) await session.appendDurable("user/message", { text });
  // What a process leaves that ends here: the store as it is.
  const left = memoryBackend();
  for (const [key, value] of backend.map) left.map.set(key, value.slice());
  await store.dispose();
  const behind = JSON.parse(new TextDecoder().decode(left.map.get("r/s1")));
  assert.deepEqual([behind.events, behind.record.last_prompt], [1, "the first"], "the record waits for a better time");
  const next = await open(left);
  const resumed = await next.resume("s1");
  assert.deepEqual([resumed.seq, (await next.record("s1")).last_prompt], [3, "the third"]);
  await resumed.flush();
  const mended = JSON.parse(new TextDecoder().decode(left.map.get("r/s1")));
  assert.deepEqual([mended.events, mended.record.last_prompt, mended.record.first_preview], [3, "the third", "the first"]);
  await next.dispose();
});

test("many single events are merged into few segments, from memory and after a reload, and say the same", { timeout: 60_000 }, async () => {
  const backend = memoryBackend();
  const said = [];
  for (const rounds of [700, 300, 300]) {
    const store = await open(backend);
    const session = said.length === 0 ? store.create("s1") : await store.resume("s1");
    for (let i = 0; i < rounds; i++) {
      const text = `${said.length} ${i % 100 === 50 ? "long ".repeat(8_000) : "short"}`;
      await session.appendDurable("user/message", { text });
      said.push(text);
    }
    await store.dispose();
    assert.deepEqual(await stored(backend, "s1"), said);
  }
  assert.ok(backend.keys().filter((key) => key.startsWith("s/s1/e/")).length < 600, "long ones stay, and what is not many yet");
  const store = await open(backend);
  assert.equal((await store.resume("s1")).verify(), null);
  await store.dispose();
});

test("a random source that fails while an event waits to be stored costs that event alone, whatever else fails", { timeout: 60_000 }, async () => {
  for (const failing of [false, true]) {
    const backend = memoryBackend();
    let broken = false;
    const random = (bytes) => {
      if (broken) {
        broken = false;
        throw new Error("no entropy");
      }
      return crypto.getRandomValues(bytes);
    };
    const store = await SessionStore.open({ storage: { kind: "custom", backend }, random });
    const session = store.create("s1");
    await session.flush();
    const refused = [];
    for (let i = 0; i < 700; i++) {
      broken ||= i === 300;
      if (failing && i % 97 === 5) once(backend, async () => { throw lost(); });
      await session.appendDurable("user/message", { text: `${i}` }).catch(() => refused.push(`${i}`));
      if (i % 10 === 0) try { session.append("user/message", { text: `also ${i}` }); } catch { refused.push(`also ${i}`); }
    }
    await session.flush();
    const said = texts(session.events);
    assert.deepEqual([session.durableSeq, (await store.status()).unsaved], [said.length, 0]);
    assert.equal(said.length + refused.length, 770);
    await store.dispose();
    assert.deepEqual(await stored(backend, "s1"), said, "what is said to be stored is");
  }
});

test("rescrubbing a session that is written at the same time loses nothing that was acknowledged", { timeout: 60_000 }, async () => {
  for (let round = 0; round < 5; round++) {
    const backend = memoryBackend({ delay: 1 });
    const store = await open(backend);
    const session = store.create("s1");
    const secret = `sk-${"abcdefghij0123456789".repeat(2)}`;
    for (let i = 0; i < 20; i++) session.append("user/message", { text: `key ${i}: ${secret}` });
    await session.flush();
    let isOver = false;
    const writing = (async () => {
      const acknowledged = [];
      for (let i = 0; !isOver || i < 20; i++) acknowledged.push((await session.appendDurable("user/message", { text: `meanwhile ${i}` })).id);
      return acknowledged;
    })();
    await store.rescrub({ builtin: "secrets" });
    isOver = true;
    const acknowledged = await writing;
    await store.dispose();
    const again = await open(backend);
    const resumed = await again.resume("s1");
    const ids = new Set(resumed.events.map((event) => event.id));
    assert.deepEqual(acknowledged.filter((id) => !ids.has(id)), []);
    assert.equal(resumed.verify(), null);
    assert.ok(!JSON.stringify(resumed.events).includes(secret));
    await again.dispose();
  }
});

test("a session that another program deletes stays deleted, whatever its writer still has", async () => {
  for (const forked of [false, true]) {
    const backend = memoryBackend();
    const writers = await open(backend), others = await open(backend);
    const session = writers.create("s1");
    await session.appendDurable("user/message", { text: "one" });
    if (forked) await writers.fork("s1", { id: "child" }).dispose();
    await others.delete("s1");
    const kept = forked ? backend.keys() : backend.keys().filter((key) => key.startsWith("m/"));
    // A record that changed, one that can wait, an event, and the end of the session.
    session.setTitle("brought back");
    await assert.rejects(session.flush(), { code: "missing" });
    await assert.rejects(session.appendDurable("user/message", { text: "two" }));
    await session.dispose().catch(() => {});
    await writers.dispose();
    assert.deepEqual(backend.keys(), kept);
    assert.deepEqual((await others.sessions()).map(({ id }) => id), forked ? ["child"] : []);
    if (forked) assert.equal((await others.resume("child")).events[0].data.text, "one");
    await others.dispose();
  }
});

test("the record of a session that was taken over is not lost", async () => {
  const backend = memoryBackend();
  const one = await open(backend);
  const session = one.create("s1");
  await session.appendDurable("user/message", { text: "one" });
  const two = await open(backend);
  await (await two.resume("s1")).appendDurable("user/message", { text: "two" });
  await one.updateRecord("s1", { thinking: "high" });
  await session.flush();
  const three = await open(backend);
  assert.equal((await three.record("s1")).thinking, "high");
  for (const store of [one, two, three]) await store.dispose().catch(() => {});
  assert.deepEqual(await stored(backend, "s1"), ["one", "two"]);
});
