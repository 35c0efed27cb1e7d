// What the rest of the log's tests leave open: sizes, many rounds, damage inside payloads, random sources that come back.
import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionStore } from "sessionlog";
import { initSync as exportsOf } from "../../pkg/dist/glue.js";
import { memoryBackend } from "./memory-backend.mjs";

await init();

const open = (options = {}) => SessionStore.open({ storage: { kind: "memory" }, ...options });
const custom = (backend) => ({ storage: { kind: "custom", backend } });
const say = (session, text) => session.append("user/message", { text });
const idOf = (n) => n.toString(16).padStart(16, "0");
const line = (seq) => JSON.stringify({ seq, id: idOf(seq + 1), at: 1, type: "user/message", data: { text: `t${seq}` } });
const texted = async (store, id, format) => new TextDecoder().decode(await store.exportSession(id, { format }));

test("B01: damaged lines of an import are in the store, listed once, also after another writer", async () => {
  const backend = memoryBackend();
  const warnings = [];
  const options = { ...custom(backend), onWarning: ({ code }) => warnings.push(code) };
  const store = await SessionStore.open(options);
  const damaged = ['{"seq":1,"te', "\0".repeat(16), "true", "true"];
  const text = [JSON.stringify({ sessionlog: 1, header: { version: 1, id: "d1", createdAt: 5 } }), line(0), ...damaged, line(2)].join("\n");
  const { session, report } = await store.importSession(`${text}\n`);
  assert.deepEqual(report.damaged, damaged.map((d, i) => ({ line: i + 3, bytes: d.length })));
  const count = async (from) => (await texted(from, "d1")).split("\n").filter((l) => damaged.includes(l)).length;
  assert.equal(await count(store), 4);
  // A second writer, of whom the first learns by a conflict: everything is read again.
  const other = await SessionStore.open(options);
  say(await other.resume("d1"), "theirs");
  await other.flush();
  say(session, "ours");
  await store.flush();
  assert.deepEqual(session.events.slice(-2).map((e) => e.data.text), ["theirs", "ours"]);
  assert.equal(await count(store), 4);
  assert.deepEqual(JSON.parse(JSON.stringify(session.verify())), 1);
  const again = await SessionStore.open(options);
  warnings.length = 0;
  await again.resume("d1");
  assert.equal(warnings.filter((code) => code === "corrupt").length, 4);
  assert.equal(await count(again), 4);
});

test("B01: damage inside a payload that keeps the line's length costs that event, wherever it is noticed", async () => {
  const backend = memoryBackend();
  const warnings = [];
  const options = { ...custom(backend), onWarning: ({ code }) => warnings.push(code) };
  const store = await SessionStore.open(options);
  const session = store.create("s1");
  for (let i = 0; i < 6; i++) say(session, `message ${i}`);
  await store.dispose();
  for (const [key, value] of backend.map) {
    const text = new TextDecoder().decode(value);
    if (key.startsWith("s/s1/")) backend.map.set(key, new TextEncoder().encode(text.replace('message 3"', "message 3!")));
  }
  const texts = (events) => events.map((e) => e.data.text);
  const rest = [0, 1, 2, 4, 5].map((i) => `message ${i}`);
  const again = await SessionStore.open(options);
  assert.deepEqual(texts(await again.read("s1")), rest);
  const loaded = await again.resume("s1");
  assert.deepEqual(texts(loaded.events), rest);
  assert.deepEqual(loaded.deriveMessages().map((m) => m.parts[0].text), rest);
  assert.equal(loaded.verify(), 3);
  assert.equal(say(loaded, "next").seq, 6);
  assert.ok((await texted(again, "s1")).includes("message 3!"));
  assert.ok(warnings.includes("corrupt"));
});

test("B01: damage that keeps the length is no obstacle to derivation, requests, or a controller", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const session = store.create("s1");
  for (let i = 0; i < 5; i++) session.append("user/message", { parts: [{ type: "text", text: `message ${i}` }] });
  await store.dispose();
  const sound = new Map(backend.map);
  const ways = {
    deriveMessages: (s) => s.deriveMessages().map((m) => m.parts[0].text),
    upto: (s) => s.deriveMessages({ upto: 4 }).map((m) => m.parts[0].text),
    getSnapshot: (s) => s.getSnapshot().map((m) => m.parts[0].text),
    // What of the payload can be read may be in a request still, the rest of the log must be.
    deriveRequest: (s) => JSON.stringify(s.deriveRequest({ target: "openai-chat", model: "m" }).messages).match(/message [^2]/g),
  };
  for (const [name, read] of Object.entries(ways)) {
    backend.map.clear();
    for (const [key, value] of sound) {
      const text = new TextDecoder().decode(value);
      backend.map.set(key, key.startsWith("s/s1/") ? new TextEncoder().encode(text.replace('message 2"}', 'message 2"]')) : value);
    }
    const warnings = [];
    const again = await SessionStore.open({ ...custom(backend), onWarning: ({ code }) => warnings.push(code) });
    const loaded = await again.resume("s1");
    assert.deepEqual(read(loaded), [0, 1, 3, 4].filter((i) => name !== "upto" || i < 4).map((i) => `message ${i}`), name);
    say(loaded, "on");
    assert.equal(loaded.deriveMessages().at(-1).parts[0].text, "on");
    assert.equal(loaded.getSnapshot().length, 5);
    assert.ok(warnings.includes("corrupt"), name);
    await again.dispose();
  }
});

/** A store that counts what is asked of it, and holds the very bytes it is given. */
function countingBackend() {
  const backend = memoryBackend();
  const calls = [];
  const { get, list } = backend;
  backend.get = (key) => (calls.push(key), get(key));
  backend.list = (start, ...rest) => (calls.push(start), list(start, ...rest));
  return { backend, calls };
}

test("B09: loading asks the store for each event once: ten times the log is at most eleven times the work", async () => {
  const data = `"data":{"text":"${"x".repeat(480)}"}}`;
  const log = (count) => {
    const lines = [JSON.stringify({ sessionlog: 1, header: { version: 1, id: `n${count}`, createdAt: 5 } })];
    for (let seq = 0; seq < count; seq++) lines.push(`{"seq":${seq},"id":"${idOf(seq + 1)}","at":1,"type":"user/message",${data}`);
    return `${lines.join("\n")}\n`;
  };
  const { backend, calls } = countingBackend();
  // Small values, so that the number of calls says how much was read.
  backend.maxValueBytes = 1 << 16;
  const store = await SessionStore.open(custom(backend));
  for (const count of [10_000, 100_000]) await store.importSession(log(count));
  await store.dispose();
  const { list } = backend;
  let bytes = 0;
  backend.list = async (...range) => {
    const found = await list(...range);
    for (const [, value] of found) bytes += value.length;
    return found;
  };
  const work = {};
  for (const count of [10_000, 100_000]) {
    const again = await SessionStore.open(custom(backend));
    [calls.length, bytes] = [0, 0];
    const session = await again.resume(`n${count}`);
    work[count] = { calls: calls.length, bytes };
    assert.equal(session.seq, count);
    assert.equal(session.event(count - 1).seq, count - 1);
    await again.dispose();
  }
  assert.ok(work[10_000].bytes > 10_000 * 480, `${work[10_000].bytes} bytes were seen`);
  assert.ok(work[100_000].bytes <= 11 * work[10_000].bytes, JSON.stringify(work));
  assert.ok(work[100_000].calls <= 11 * work[10_000].calls, JSON.stringify(work));
});

test("B09: a tool result of 12 MB, and a list that reads no event", async () => {
  const { backend, calls } = countingBackend();
  backend.maxValueBytes = 1 << 20;
  const store = await SessionStore.open(custom(backend));
  const big = store.create("big");
  const content = "0123456789abcdef".repeat(12 << 16);
  big.append("tool/result", { id: "c1", content });
  for (let i = 0; i < 49; i++) say(store.create(`s${i}`), "x");
  await store.dispose();
  assert.ok([...backend.map.values()].every((value) => value.length <= 1 << 20));
  const again = await SessionStore.open(custom(backend));
  calls.length = 0;
  const rows = await again.sessions();
  assert.equal(rows.length, 50);
  assert.deepEqual(calls.filter((key) => key.startsWith("s/")), []);
  assert.equal((await again.resume("big")).event(0).data.content, content);
  assert.equal((await again.resume("big")).verify(), null);
});

test("G03: 10,000 rounds of open, append, read and dispose leave the module's memory as it was", async () => {
  const { memory } = exportsOf();
  const store = await open();
  const round = async (i) => {
    const session = store.create(`s${i}`);
    say(session, `round ${i}`);
    assert.equal(session.deriveMessages().length, 1);
    await session.dispose();
    await session.dispose();
    await store.delete(`s${i}`);
    return session;
  };
  for (let i = 0; i < 500; i++) await round(i);
  const before = memory.buffer.byteLength;
  let last;
  for (let i = 500; i < 10_500; i++) last = await round(i);
  assert.equal(memory.buffer.byteLength, before);
  for (let i = 0; i < 500; i++) await (await open()).dispose();
  assert.ok(memory.buffer.byteLength - before < 2 * 65_536);
  assert.throws(() => say(last, "x"), (thrown) => thrown.code === "disposed" && !/null|pointer/i.test(thrown.message));
});

test("a seed of what is not JSON is an invalid seed that names the event and the place", async () => {
  const store = await open();
  const source = store.create("p");
  say(source, "a");
  say(source, "b");
  for (const bad of [() => {}, undefined, 10n, NaN, "x\ud83d", new Map()]) {
    const seed = source.events;
    seed[1].data.meta = { bad };
    assert.throws(() => store.create("bad", { seed }), (thrown) => thrown.code === "invalid_seed" && thrown.details.index === 1 && /data\.meta\.bad/.test(thrown.details.path), String(bad));
  }
  const cycle = source.events;
  cycle[0].data.self = cycle;
  assert.throws(() => store.create("bad", { seed: cycle }), (thrown) => thrown.code === "invalid_seed" && thrown.details.index === 0);
  assert.equal(store.get("bad"), undefined);
});

test("G13: an import comes out as it came, however its lines end, and the bytes are the caller's again at once", async () => {
  const source = await open();
  const session = source.create("v1", { meta: { cwd: "/w" } });
  for (let i = 0; i < 9000; i++) session.append("user/message", { text: `${i} é ${"y".repeat(i % 300)}` });
  const bytes = await source.exportSession("v1");
  const lines = (text) => text.slice(text.indexOf("\n") + 1);
  const text = new TextDecoder().decode(bytes);
  for (const given of [bytes, text.replaceAll("\n", "\r\n"), text.slice(0, -1)]) {
    const backend = memoryBackend();
    const store = await SessionStore.open(custom(backend));
    const copy = typeof given === "string" ? given : given.slice();
    const importing = store.importSession(copy);
    // G13: the bytes are the caller's again as soon as the call has returned.
    if (typeof copy !== "string") copy.fill(0);
    const { session: loaded, report } = await importing;
    assert.deepEqual(report.damaged, []);
    say(loaded, "more");
    await store.dispose();
    const again = await SessionStore.open(custom(backend));
    const resumed = await again.resume("v1");
    assert.equal(resumed.seq, 9001);
    assert.equal(resumed.verify(), null);
    assert.ok(lines(await texted(again, "v1")).startsWith(lines(text)));
  }
});

test("an event that was handed out can be changed without effect on log or record", async () => {
  const store = await open();
  const session = store.create("s1");
  const event = say(session, "said");
  event.data.text = "changed";
  event.data = { text: "other" };
  assert.deepEqual(event.data, { text: "other" });
  assert.equal((await store.record("s1")).last_prompt, "said");
  assert.equal(session.event(0).data.text, "said");
  const plain = say(session, "again");
  assert.equal(Object.getPrototypeOf(plain), Object.prototype);
  assert.deepEqual(Object.keys(plain), ["id", "sessionId", "seq", "at", "type", "data"]);
  assert.deepEqual(structuredClone(plain), session.event(1));
  assert.equal(JSON.stringify(plain), JSON.stringify(session.event(1)));
});

test("texts of every size and script go in and come out as they are", async () => {
  const session = (await open()).create();
  const wide = ["a", "é", "漢", "🔥", "\u0000\u001f\"\\", "\u2028"];
  const sizes = [0, 1, 47, 48, 49, 1000, 21_845, 65_000, 65_535, 65_536, 70_000, 200_000];
  for (const unit of wide) {
    for (const size of sizes) {
      const text = unit.repeat(size / unit.length);
      const event = say(session, text);
      assert.equal(session.event(event.seq).data.text, text, `${unit} × ${size}`);
      assert.equal(session.event(event.seq).id, event.id);
    }
  }
  assert.equal(session.verify(), null);
  assert.equal(new Set(session.events.map((e) => e.id)).size, session.seq);
});

test("a random source that comes back to the session never mixes events up", async () => {
  let session;
  let depth = 0;
  const store = await open({
    random: (bytes) => {
      crypto.getRandomValues(bytes);
      if (session !== undefined && depth++ === 0) say(session, "from inside");
    },
  });
  session = store.create();
  for (let i = 0; i < 600; i++) {
    depth = i === 300 ? 0 : depth;
    const event = say(session, `outer ${i}`);
    assert.equal(session.event(event.seq).data.text, `outer ${i}`);
  }
  assert.ok(session.events.some((e) => e.data.text === "from inside"));
});
