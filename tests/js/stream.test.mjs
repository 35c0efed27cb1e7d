// Streams of deltas: one call into the module per delta, and nothing of what the slow way promises is lost by it.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

before(() => init());

const at = { turn: 1, step: 1 };
const TOKEN = ["gh", "p_", "Madeup0Credential0", "Of0The0Demo0", "48INJx"].join("");
const chunks = (session) => session.events.filter(({ type }) => type === "assistant/chunk");
const textOf = (session) => chunks(session).map(({ data }) => data.text).join("");

test("what a push returns, what listeners get and what stands in the log are the same events", async () => {
  for (const scrubbers of [[], [{ builtin: "secrets" }], [(text) => text]]) {
    const store = await SessionStore.open({ scrubbers });
    const session = store.create();
    const heard = [];
    session.on("event", (event) => heard.push(structuredClone({ ...event })));
    const stream = session.openStream({ ...at, kind: "tool-args", id: "call_1" });
    const returned = ["one \"", "two\n", "", "\u2028\u0007", "\ud83d", "\ude00", " x\udc00y", "\ud800"].flatMap((piece) => stream.push(piece)).concat(stream.end(), stream.end());
    assert.equal(stream.text, "one \"two\n\u2028\u0007😀 x\ufffdy\ufffd");
    assert.deepEqual(returned.map((event) => ({ ...event })), session.events);
    assert.deepEqual(heard, session.events);
    assert.deepEqual(session.events.map(({ seq }) => seq), session.events.map((_, seq) => seq));
    assert.equal(new Set(session.events.map(({ id }) => id)).size, session.seq);
    assert.ok(session.events.every(({ id, sessionId, data }) => /^[0-9a-f]{16}$/.test(id) && sessionId === session.id && data.kind === "tool-args" && data.id === "call_1"));
    assert.equal(session.verify(), null);
    assert.throws(() => stream.push("late"), { code: "invalid_argument" });
    await store.dispose();
  }
});

test("a secret at every cut of the deltas is in no event, whichever way they go", async () => {
  const text = `the key is ${TOKEN}, keep it`;
  for (const scrubbers of [[{ builtin: "secrets" }], [{ builtin: "secrets" }, (given) => given.replaceAll("keep", "hold")]]) {
    const store = await SessionStore.open({ scrubbers });
    const right = scrubbers.length === 1 ? /^the key is \[REDACTED:[^\]]+\], keep it$/ : /^the key is \[REDACTED:[^\]]+\], hold it$/;
    for (let cut = 0; cut <= text.length; cut++) {
      const session = store.create();
      const stream = session.openStream(at);
      stream.push(text.slice(0, cut));
      stream.push(text.slice(cut));
      stream.end();
      assert.match(textOf(session), right);
    }
    await store.dispose();
  }
});

test("a call's id that is no id is scrubbed as well", async () => {
  const store = await SessionStore.open({ scrubbers: [{ builtin: "secrets" }] });
  const session = store.create();
  const stream = session.openStream({ ...at, kind: "tool-args", id: `id with ${TOKEN}` });
  stream.push("{}");
  stream.end();
  assert.ok(!JSON.stringify(session.events).includes(TOKEN));
});

test("a scrubber that breaks its word stores nothing and the log goes on", async () => {
  const store = await SessionStore.open();
  const session = store.create();
  const off = store.registerScrubber({ name: "bad", scrub: () => { throw new Error("no"); }, maxMatchLength: 1 });
  const stream = session.openStream(at);
  assert.throws(() => { stream.push("abc"); stream.end(); });
  off();
  assert.equal(session.seq, 0);
  const again = session.openStream(at);
  again.push("fine");
  again.end();
  assert.equal(textOf(session), "fine");
});

test("a listener may append in the middle of a stream: every event has its own number, in order", async () => {
  const store = await SessionStore.open({ scrubbers: [{ builtin: "secrets" }] });
  const session = store.create();
  const order = [];
  session.on("event", ({ type, seq }) => {
    order.push(seq);
    if (type === "assistant/chunk" && seq < 10) session.append("context/injected", { text: `after ${seq}` });
  });
  const stream = session.openStream(at);
  for (let n = 0; n < 12; n++) stream.push("a word ");
  stream.end();
  assert.deepEqual(order, session.events.map(({ seq }) => seq));
  assert.deepEqual(order, order.map((_, seq) => seq));
});

test("deltas reach the store by themselves, also those that come while a write is due or under way", async () => {
  const backend = memoryBackend();
  let writes = 0;
  const transact = backend.transact;
  backend.transact = async (batch) => {
    writes++;
    await new Promise((resolve) => setTimeout(resolve, 30));
    return transact.call(backend, batch);
  };
  const store = await SessionStore.open({ storage: { kind: "custom", backend } });
  const session = store.create();
  await session.flush();
  const stream = session.openStream(at);
  for (let n = 0; n < 60; n++) {
    stream.push(`word ${n} `);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  stream.end();
  const upto = session.seq;
  for (let waited = 0; session.durableSeq < upto && waited < 2_000; waited++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(session.durableSeq, upto);
  assert.ok(writes < upto / 2, `${writes} writes for ${upto} deltas`);
  const other = await SessionStore.open({ storage: { kind: "custom", backend } });
  assert.deepEqual(await other.read(session.id), session.events);
});

test("an event that waits to be stored first stands before the deltas that come after it", async () => {
  const backend = memoryBackend();
  const transact = backend.transact;
  backend.transact = async (batch) => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    return transact.call(backend, batch);
  };
  const store = await SessionStore.open({ storage: { kind: "custom", backend } });
  const session = store.create();
  await session.flush();
  const stream = session.openStream(at);
  stream.push("before ");
  const durable = session.appendDurable("context/injected", { text: "first stored" });
  await new Promise((resolve) => setTimeout(resolve, 2));
  stream.push("after");
  stream.end();
  assert.equal((await durable).seq, 1);
  assert.deepEqual(session.events.map(({ type }) => type), ["assistant/chunk", "context/injected", "assistant/chunk"]);
  await store.dispose();
});
