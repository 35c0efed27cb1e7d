import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionLogError, SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

await init();

const open = (options = {}) => SessionStore.open({ storage: { kind: "memory" }, ...options });
const custom = (backend) => ({ storage: { kind: "custom", backend } });
const say = (session, text) => session.append("user/message", { text });
const texts = (events) => events.filter((e) => e.type === "user/message").map((e) => e.data.text);

test("append is synchronous, contiguous, and owns its data", async () => {
  const store = await open({ clock: () => 1000 });
  const session = store.create("s1", { meta: { cwd: "/w" } });
  const data = { parts: [{ type: "text", text: "a" }] };
  const event = session.append("user/message", data);
  assert.deepEqual({ ...event, id: "" }, { id: "", sessionId: "s1", seq: 0, at: 1000, type: "user/message", data: { parts: [{ type: "text", text: "a" }] } });
  assert.match(event.id, /^[0-9a-f]{16}$/);
  data.parts[0].text = "changed";
  event.data.parts.push(1);
  assert.deepEqual(session.event(0).data, { parts: [{ type: "text", text: "a" }] });
  session.events[0].data.x = 1;
  assert.equal(JSON.stringify(session.events[0]), JSON.stringify(session.slice(0, 1)[0]));
  assert.equal(session.seq, 1);
  assert.equal(session.header.cwd, "/w");
});

test("B07: order is the sequence, ids are distinct whatever the clock and random source do", async () => {
  const times = [1000, 1000, 400, 99999999];
  const store = await open({ clock: () => times.shift() ?? 5, random: (bytes) => bytes.fill(7) });
  times.unshift(0);
  const session = store.create("s1");
  for (const text of "abcd") say(session, text);
  assert.deepEqual(texts(session.events), [..."abcd"]);
  assert.equal(new Set(session.events.map((e) => e.id)).size, 4);
  assert.deepEqual(texts(store.fork("s1", { count: 2 }).events), ["a", "b"]);
});

test("B05: ids are checked before any storage call, in every method", async () => {
  const calls = [];
  const backend = memoryBackend({ onCall: (name) => calls.push(name) });
  const store = await SessionStore.open(custom(backend));
  calls.length = 0;
  const bad = ["../../x", "a/b", "a\\b", "C:x", "", ".", "..", "a\0b", "a".repeat(300), "-x"];
  for (const id of bad) {
    for (const sync of ["create", "prepare", "get", "fork"]) assert.throws(() => store[sync](id), { code: "invalid_id" }, `${sync} ${id}`);
    for (const name of ["resume", "read", "delete", "record", "archive", "unarchive"]) await assert.rejects(store[name](id), { code: "invalid_id" });
    await assert.rejects(store.updateRecord(id, {}), { code: "invalid_id" });
  }
  assert.deepEqual(calls, []);
  store.create("ok-1_A");
  assert.throws(() => store.create("ok-1_A"), { code: "already_exists" });
  assert.throws(() => store.create("x", { meta: { cwd: "rel" } }), { code: "invalid_cwd" });
});

test("undeclared types are refused, declared ones work", async () => {
  const session = (await open()).create();
  assert.throws(() => session.append("my/type", {}), { code: "undeclared_type" });
  SessionStore.declareEvent("my/type");
  assert.deepEqual(session.append("my/type", { a: 1 }).data, { a: 1 });
  assert.throws(() => session.append(5, {}), { code: "invalid_event" });
  for (const data of [1, "x", null, []]) assert.throws(() => session.append("user/message", data), { code: "invalid_event" });
  assert.throws(() => session.append("user/message"), SessionLogError);
});

test("listeners get events in order, appends inside come after, failures are contained", async () => {
  const warnings = [];
  const store = await open({ onWarning: (w) => warnings.push(w.code) });
  const session = store.create();
  const seen = [];
  const off = session.on("event", (e) => {
    seen.push(["first", e.seq]);
    if (e.seq === 0) {
      assert.equal(say(session, "inner").seq, 1);
      offLater();
    }
  });
  session.on("event", () => { throw new Error("no"); });
  const offLater = session.on("event", (e) => seen.push(["gone", e.seq]));
  session.on("event", (e) => seen.push(["last", e.seq]));
  store.on("session/event", (e, s) => seen.push(["store", e.seq, s === session]));
  say(session, "outer");
  assert.deepEqual(seen, [["first", 0], ["last", 0], ["store", 0, true], ["first", 1], ["last", 1], ["store", 1, true]]);
  assert.deepEqual(warnings, ["listener", "listener"]);
  off();
  say(session, "more");
  assert.equal(seen.filter(([who]) => who === "first").length, 2);
});

test("what is appended is there after the store is opened again", async () => {
  const backend = memoryBackend();
  const first = await SessionStore.open(custom(backend));
  const session = first.create("s1", { meta: { cwd: "/w" } });
  for (let i = 0; i < 5; i++) say(session, `t${i}`);
  await session.flush();
  assert.equal(session.durableSeq, 5);
  say(session, "last");
  await first.dispose();
  const again = await SessionStore.open(custom(backend));
  const resumed = await again.resume("s1");
  assert.deepEqual(texts(resumed.events), ["t0", "t1", "t2", "t3", "t4", "last"]);
  assert.equal(resumed.verify(), null);
  assert.equal(await again.resume("s1"), resumed);
  assert.equal(again.get("s1"), resumed);
  assert.equal(say(resumed, "next").seq, 6);
  assert.deepEqual(texts(await again.read("s1", 5)), ["last", "next"]);
  await assert.rejects(again.resume("s2"), { code: "missing" });
});

test("a failed write is kept and written as soon as the store works", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const session = store.create("s1");
  say(session, "a");
  await session.flush();
  backend.fail = Object.assign(new Error("full"), { name: "QuotaExceededError" });
  say(session, "b");
  await assert.rejects(session.flush(), { code: "quota" });
  assert.equal((await store.status()).unsaved, 1);
  await assert.rejects(session.appendDurable("user/message", { text: "never" }));
  assert.equal(session.seq, 2);
  backend.fail = null;
  assert.equal((await session.appendDurable("user/message", { text: "c" })).seq, 2);
  assert.equal(session.durableSeq, 3);
  assert.equal((await store.status()).unsaved, 0);
  assert.deepEqual(texts(await store.read("s1")), ["a", "b", "c"]);
});

test("G01: durable and plain appends at once keep the order of the calls", async () => {
  const backend = memoryBackend({ delay: 5 });
  const store = await SessionStore.open(custom(backend));
  const session = store.create("s1");
  const [a, b, c, d] = await Promise.all([
    session.appendDurable("user/message", { text: "a" }), session.appendDurable("user/message", { text: "b" }),
    say(session, "c"), session.appendDurable("user/message", { text: "d" }),
  ]);
  assert.deepEqual([a.seq, b.seq, c.seq, d.seq], [0, 1, 2, 3]);
  await session.flush();
  assert.deepEqual(texts(await store.read("s1")), ["a", "b", "c", "d"]);
});

test("B03: two writers, nothing is lost and nothing stands twice", async () => {
  const backend = memoryBackend();
  const a = await SessionStore.open(custom(backend));
  const one = a.create("s1");
  for (let i = 0; i < 6; i++) say(one, `${i}`);
  await one.flush();
  const b = await SessionStore.open(custom(backend));
  const two = await b.resume("s1");
  await one.appendDurable("user/message", { text: "x" });
  assert.equal((await two.appendDurable("user/message", { text: "y" })).seq, 7);
  assert.equal((await one.appendDurable("user/message", { text: "z" })).seq, 8);
  await two.flush().catch(() => {});
  assert.deepEqual(texts(await a.read("s1")).slice(6), ["x", "y", "z"]);
  assert.deepEqual(texts(one.events).slice(6), ["x", "y", "z"]);
  assert.equal(one.verify(), null);
});

test("forks share what stands before and go their own ways", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const source = store.create("p");
  for (const text of "abc") say(source, text);
  const child = store.fork("p", { throughSeq: 1, id: "c" });
  assert.deepEqual(child.events.map((e) => e.type), ["user/message", "user/message", "session/forked"]);
  assert.deepEqual(child.events[2].data, { from: "p", boundary: 2 });
  assert.equal(child.events[0].id, source.events[0].id);
  assert.equal(child.events[0].sessionId, "c");
  say(child, "child");
  say(source, "source");
  await store.flush();
  await source.dispose();
  await store.delete("p");
  await store.dispose();
  const again = await SessionStore.open(custom(backend));
  assert.deepEqual(texts((await again.resume("c")).events), ["a", "b", "child"]);
  await assert.rejects(again.resume("p"), { code: "missing" });
  await again.delete("c");
  assert.deepEqual(backend.keys().filter((key) => key !== "m/format" && !key.endsWith("/f")), []);
});

test("prepare, enter and announce; a veto rolls back", async () => {
  const store = await open();
  const prepared = store.prepare("s1");
  assert.equal(store.get("s1"), undefined);
  const detach = store.enter(prepared);
  assert.equal(store.get("s1"), prepared);
  detach();
  assert.equal(store.get("s1"), undefined);
  const off = store.on("session/created", () => { throw new Error("veto"); });
  assert.throws(() => store.create("s2"), /veto/);
  assert.equal(store.get("s2"), undefined);
  off();
  store.create("s2");
});

test("dispose is idempotent and everything after it is `disposed`", async () => {
  const store = await open();
  const session = store.create("s1");
  const order = [];
  store.on("session/disposed", () => { order.push("disposed"); throw new Error("contained"); });
  await Promise.all([session.dispose(), session.dispose()]);
  await session.dispose();
  assert.deepEqual(order, ["disposed"]);
  assert.throws(() => say(session, "x"), { code: "disposed" });
  assert.throws(() => session.events, { code: "disposed" });
  await assert.rejects(session.flush(), { code: "disposed" });
  await store.dispose();
  assert.throws(() => store.create(), { code: "disposed" });
});

test("G03: memory stays flat over open and close", async () => {
  const store = await open();
  const round = async (i) => {
    const session = store.create(`s${i}`);
    for (let n = 0; n < 5; n++) session.append("user/message", { text: "x".repeat(200) });
    await session.dispose();
    await store.delete(`s${i}`).catch(() => {});
  };
  for (let i = 0; i < 300; i++) await round(i);
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 300; i < 3000; i++) await round(i);
  assert.ok(process.memoryUsage().arrayBuffers - before < 4 * 1024 * 1024);
});

test("messages are derived incrementally, frozen and shared", async () => {
  const session = (await open()).create();
  assert.deepEqual(session.deriveMessages(), []);
  say(session, "a");
  const first = session.deriveMessages();
  const snapshot = session.getSnapshot();
  assert.equal(session.getSnapshot(), snapshot);
  session.append("error", { message: "not a message" });
  assert.equal(session.getSnapshot(), snapshot);
  session.append("assistant/message", { parts: [{ type: "text", text: "b" }] });
  const second = session.deriveMessages();
  assert.notEqual(session.getSnapshot(), snapshot);
  assert.equal(second[0], first[0]);
  assert.deepEqual(second.map((m) => m.role), ["user", "assistant"]);
  assert.ok(Object.isFrozen(second[0].parts));
  assert.deepEqual(session.deriveMessages({ upto: 1 }), first);
});

test("compaction puts a summary in place, guards against a race, and can be rewound", async () => {
  const warnings = [];
  const session = (await open({ onWarning: (w) => warnings.push(w.code) })).create();
  await assert.rejects(session.compact(() => "s"), { code: "empty_history" });
  say(session, "a");
  say(session, "b");
  assert.equal(await session.compact(() => "  "), null);
  assert.equal(await session.compact(() => { say(session, "meanwhile"); return "s"; }), null);
  assert.deepEqual(warnings, ["compaction", "compaction"]);
  const event = await session.compact((messages) => `summary of ${messages.length}`);
  assert.deepEqual(event.data, { summary: "summary of 3", uptoSeq: 2 });
  assert.deepEqual(session.deriveMessages().map((m) => m.parts[0].text), ["summary of 3"]);
  session.append("session/rewound", { uptoSeq: 0 });
  assert.deepEqual(session.deriveMessages().map((m) => m.parts[0].text), ["a"]);
});

test("usage is priced when it is stored, and stays so", async () => {
  const { PriceTable } = await import("sessionlog");
  const table = (rate) => PriceTable.fromJson({
    schema: "sessionlog.prices/1", currency: "USD", rate_unit: "USD per 1,000,000 tokens", fee_unit: "USD per 1,000 (calls or requests)", as_of: "2026-01-01",
    tier_aliases: {}, tier_equal: {}, providers: [{ id: "p", aliases: [], models: [{ id: "m", match: ["m"], prices: [{ rates: { input: rate, output: "0" } }] }] }],
  });
  const backend = memoryBackend();
  const store = await SessionStore.open({ ...custom(backend), prices: table("1") });
  const session = store.create("s1");
  const usage = { apiShape: "openai.chat", provider: "p", model: "m", raw: { prompt_tokens: 1000000, completion_tokens: 5 } };
  const event = session.append("step/end", { turn: 1, step: 1, usage });
  assert.deepEqual(event.data, { turn: 1, step: 1, usage });
  assert.equal(session.usage().cost.usd, "1");
  await store.dispose();
  const again = await SessionStore.open({ ...custom(backend), prices: table("2") });
  const resumed = await again.resume("s1");
  assert.equal(resumed.usage().cost.usd, "1");
  assert.equal(resumed.reprice(table("3")).cost.usd, "3");
  resumed.append("step/end", { turn: 1, step: 2, usage });
  assert.equal(resumed.usage().cost.usd, "3");
  const child = again.fork("s1");
  assert.deepEqual([child.usage().cost.usd, child.usage().own.cost.usd, child.usage().own.steps], ["3", "0", 0]);
});

test("a stream stores deltas, rejoins halves of a pair, and flushes on abort", async () => {
  const session = (await open()).create();
  const stream = session.openStream({ turn: 1, step: 1 });
  assert.deepEqual(stream.push("He").map((e) => e.data), [{ turn: 1, step: 1, kind: "text", text: "He" }]);
  assert.deepEqual(stream.push("\ud83d"), []);
  assert.equal(stream.push("\udd25!")[0].data.text, "🔥!");
  assert.deepEqual(stream.push(""), []);
  stream.push("\ud83d");
  assert.equal(stream.abort("stop")[0].data.text, "\ufffd");
  assert.equal(stream.text, "He🔥!\ufffd");
  assert.deepEqual(stream.end(), []);
  assert.throws(() => stream.push("x"), { code: "invalid_argument" });
  assert.equal(session.seq, 3);
});
