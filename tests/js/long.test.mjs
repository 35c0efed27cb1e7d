// PERSIST.14: a long session opens from its newest compaction; the rest is read behind it. B09: listing reads no events.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { ChatSessionController, SessionStore, VirtualFs } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

before(() => init());

const open = (backend, options = {}) => SessionStore.open({ storage: { kind: "custom", backend }, ...options });
const text = (i) => ({ text: `event ${i}` });

/** A session of `count` messages, a compaction that covers all but the last three, and one message more. */
async function long(count, { backend = memoryBackend(), after = () => {} } = {}) {
  const store = await open(backend);
  const session = store.create("s1");
  session.setTitle("A title");
  for (let i = 0; i < count; i++) {
    session.append("user/message", text(i));
    if (i % 500 === 499) await session.flush();
  }
  await session.flush();
  session.append("session/compacted", { summary: "what was said", uptoSeq: count - 3 });
  session.append("user/message", text("last"));
  await after(session);
  await session.flush();
  const wanted = { events: session.events, messages: session.deriveMessages(), request: session.deriveRequest({ target: "anthropic" }), usage: session.usage() };
  await store.dispose();
  return { backend, wanted };
}

/** Counts what is read of events, and holds back reads of the first segments until `release`. */
function watched(backend) {
  const state = { values: 0, bytes: 0 };
  let release;
  const gate = new Promise((resolve) => (release = resolve));
  const first = "s/s1/e/0000000000000000";
  const wrapped = {
    ...backend,
    async list(start, end, options) {
      if (start <= first && end > first && options?.keysOnly !== true) await gate;
      const found = await backend.list(start, end, options);
      const events = found.filter(([key]) => key.includes("/e/"));
      if (options?.keysOnly !== true) state.values += events.length;
      state.bytes += events.reduce((sum, [, value]) => sum + value.length, 0);
      return found;
    },
  };
  return { backend: wrapped, state, release };
}

test("a long session derives at once from its newest compaction, and is whole soon after", async () => {
  const { backend, wanted } = await long(18_000);
  const gated = watched(backend);
  const store = await open(gated.backend);
  const session = await store.resume("s1");
  assert.ok(gated.state.values <= 3, `${gated.state.values} segments were read`);
  assert.deepEqual(session.deriveMessages(), wanted.messages);
  assert.deepEqual(session.deriveRequest({ target: "anthropic" }).messages, wanted.request.messages);
  assert.equal(session.seq, wanted.events.length);
  assert.equal(session.title, "A title");
  assert.equal(session.readOnly, false);
  const snapshot = session.getSnapshot();

  // What takes the earlier events is refused, not answered in part.
  for (const ask of [() => session.events, () => session.slice(0, 5), () => session.event(0), () => session.verify(), () => session.deriveMessages({ upto: 3 }), () => store.fork("s1", { count: 2 })]) {
    assert.throws(ask, { code: "unavailable" });
  }
  assert.deepEqual(session.event(session.seq - 1), wanted.events.at(-1));
  const { cost } = session.usage();
  assert.deepEqual([cost.complete, cost.flags.includes("history_pending")], [false, true]);

  // Work goes on meanwhile.
  const more = session.append("user/message", text("more"));
  assert.equal(more.seq, wanted.events.length);
  await session.flush();

  gated.release();
  await session.whole;
  assert.deepEqual(session.events.slice(0, -1), wanted.events);
  assert.deepEqual(session.event(0), wanted.events[0]);
  assert.equal(session.verify(), null);
  assert.deepEqual(session.usage(), wanted.usage);
  assert.equal(session.getSnapshot()[0], snapshot[0], "messages are shared before and after");
  assert.deepEqual(session.deriveMessages({ upto: 5 }).length, 4);
  const unchanged = session.getSnapshot();
  assert.equal(session.getSnapshot(), unchanged);
  await store.dispose();
  const again = await open(backend);
  const last = await again.resume("s1");
  await last.whole;
  assert.deepEqual([last.seq, last.verify()], [wanted.events.length + 1, null]);
  await again.dispose();
});

test("how much is read does not grow with the length", async () => {
  const read = [];
  for (const count of [17_000, 34_000]) {
    const gated = watched((await long(count)).backend);
    const store = await open(gated.backend);
    const session = await store.resume("s1");
    assert.equal(session.deriveMessages().length, 5);
    read.push(gated.state.bytes);
    gated.release();
    await session.whole;
    await store.dispose();
  }
  assert.ok(read[1] <= read[0] * 1.2, `${read}`);
});

test("a rewind to before the compaction, or an unreadable note, takes the whole log", async () => {
  const rewound = await long(17_000, { after: (session) => void session.append("session/rewound", { uptoSeq: 3 }) });
  const noted = await long(17_000);
  noted.backend.map.set("s/s1/c", new TextEncoder().encode("{"));
  for (const { backend, wanted } of [rewound, noted]) {
    const store = await open(backend);
    const session = await store.resume("s1");
    assert.deepEqual(session.events, wanted.events);
    assert.deepEqual(session.deriveMessages(), wanted.messages);
    await store.dispose();
  }
});

test("a rewind to before the compaction after opening shows the earlier messages once they are there", async () => {
  const { backend, wanted } = await long(17_000);
  const gated = watched(backend);
  const store = await open(gated.backend);
  const session = await store.resume("s1");
  session.deriveMessages();
  gated.release();
  await session.whole;
  session.append("session/rewound", { uptoSeq: 3 });
  assert.deepEqual(session.deriveMessages().map((m) => m.parts[0].text), ["event 0", "event 1", "event 2"]);
  assert.equal(wanted.messages.length, 5);
  await store.dispose();
});

test("export, fork and read have all events, however early they are called", async () => {
  const { backend, wanted } = await long(17_000);
  const store = await open(backend);
  const session = await store.resume("s1");
  const [bytes, read] = await Promise.all([store.exportSession("s1"), store.read("s1")]);
  assert.equal(new TextDecoder().decode(bytes).trim().split("\n").length, wanted.events.length + 1);
  assert.deepEqual(read, wanted.events);
  const child = store.fork("s1", { count: 4, id: "child" });
  await store.flush();
  await store.dispose();
  const again = await open(backend);
  const found = await again.resume("child");
  assert.deepEqual(found.events.slice(0, 4).map((e) => e.id), wanted.events.slice(0, 4).map((e) => e.id));
  assert.equal(child.id, "child");
  assert.ok(session.disposed);
  await again.dispose();
});

test("rescrub of a session that is not whole yet leaves nothing behind", async () => {
  const { backend } = await long(17_000);
  const store = await open(backend);
  await store.resume("s1");
  await store.rescrub({ values: ["event 17"], name: "seventeen" });
  await store.dispose();
  for (const [key, value] of backend.map) assert.ok(!new TextDecoder().decode(value).includes("event 17\""), key);
});

test("a controller on a session that is not whole waits with a run, and its drafts come back", async () => {
  const backend = memoryBackend();
  const { wanted } = await long(17_000, { backend, after: () => {} });
  const before = await open(backend);
  const early = await before.resume("s1");
  await early.whole;
  await before.dispose();
  const gated = watched(backend);
  const store = await open(gated.backend);
  const session = await store.resume("s1");
  const fs = await VirtualFs.open();
  const controller = new ChatSessionController({ store, session, fs, outputFn: () => {} });
  const running = controller.executeTask("say hello", { model: "scripted/demo" });
  gated.release();
  const { runResult } = await running;
  assert.equal(runResult.status, "completed");
  assert.equal(session.events[0].id, wanted.events[0].id);
  await store.dispose();
});

test("when the earlier events cannot be read it is said, and tried again when they are asked for", async () => {
  const { backend, wanted } = await long(17_000);
  let broken = true;
  const flaky = {
    ...backend,
    async list(start, end, options) {
      if (broken && start <= "s/s1/e/0000000000000000" && end > "s/s1/e/1" && options?.keysOnly !== true) throw new Error("no answer");
      return backend.list(start, end, options);
    },
  };
  const warnings = [];
  const store = await open(flaky, { onWarning: (w) => warnings.push(w.code) });
  const session = await store.resume("s1");
  await assert.rejects(session.whole);
  assert.deepEqual(warnings, ["history"]);
  broken = false;
  assert.throws(() => session.events, { code: "unavailable" });
  await session.whole;
  assert.deepEqual(session.events, wanted.events);
  await store.dispose();
});

test("B09: loading is linear, listing reads no event, a large payload comes back, a failed load creates nothing", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  for (let i = 0; i < 50; i++) {
    const session = store.create(`s${i}`);
    session.append("user/message", text(i));
  }
  const big = store.create("big");
  const content = "0123456789abcdef".repeat(786_432);
  big.append("tool/result", { id: "c", content });
  await store.flush();
  await store.dispose();
  const keys = [];
  const spy = { ...backend, get: (key) => (keys.push(key), backend.get(key)), list: (start, end, options) => (keys.push(`${start}..${end}`), backend.list(start, end, options)) };
  const again = await open(spy);
  keys.length = 0;
  assert.equal((await again.sessions({ limit: 50 })).length, 50);
  assert.deepEqual(keys.filter((key) => key.startsWith("s/")), [], "no event, header or fence was read");
  assert.equal((await again.resume("big")).event(0).data.content, content);
  const real = spy.list;
  spy.list = async (start, end, options) => { if (start.startsWith("s/s1/e")) throw new Error("unreadable"); return real(start, end, options); };
  await assert.rejects(again.resume("s1"), { code: "storage" });
  assert.equal(again.get("s1"), undefined);
  spy.list = real;
  assert.deepEqual((await again.resume("s1")).events.map((e) => e.data), [text(1)]);
  await again.dispose();
});

test("B09: ten times the events are read in at most ten times the calls", async () => {
  const calls = [];
  for (const count of [2_000, 20_000]) {
    const backend = memoryBackend();
    const store = await open(backend);
    const session = store.create("s1");
    for (let i = 0; i < count; i++) {
      session.append("user/message", { text: "x".repeat(400) });
      if (i % 100 === 99) await session.flush();
    }
    await store.dispose();
    let reads = 0;
    const again = await open({ ...backend, list: (...args) => (reads++, backend.list(...args)), get: (key) => (reads++, backend.get(key)) });
    reads = 0;
    assert.equal((await again.resume("s1")).events.length, count);
    calls.push(reads);
    await again.dispose();
  }
  assert.ok(calls[1] <= calls[0] * 10, `${calls}`);
});
