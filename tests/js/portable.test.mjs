// One suite of the public interface that runs unchanged under Node, Deno, Bun and inside workerd: nothing here but
// `node:test`, `node:assert` and the package.
import assert from "node:assert/strict";
import { test } from "node:test";
import init, * as sessionlog from "sessionlog";

const {
  ChatSessionController, CostTotal, PriceTable, ScrubStream, SessionLogError, SessionStore, VirtualFs, checkBackend, createLlmAdapter, encrypted, fileTools, isJsonValue,
  normalizeUsage, openBackend, scrubText, usageOfStream, version,
} = sessionlog;

const memory = { kind: "memory" };

/** A caller's own backend, as small as the contract allows. */
function mapBackend() {
  const items = new Map();
  const same = (a, b) => (a === null || b === null ? a === b : a.length === b.length && a.every((byte, at) => byte === b[at]));
  return {
    name: "map",
    get: async (key) => items.get(key)?.slice() ?? null,
    list: async (start, end, { limit = Infinity, reverse = false, keysOnly = false } = {}) => {
      const keys = [...items.keys()].filter((key) => key >= start && key < end).sort();
      if (reverse) keys.reverse();
      return keys.slice(0, limit).map((key) => [key, keysOnly ? new Uint8Array() : items.get(key).slice()]);
    },
    transact: async ({ checks = [], puts = [], deletes = [] }) => {
      for (const { key, equals } of checks) {
        if (!same(items.get(key) ?? null, equals)) throw Object.assign(new Error("changed meanwhile"), { code: "conflict" });
      }
      for (const key of deletes) items.delete(key);
      for (const [key, value] of puts) items.set(key, value.slice());
    },
  };
}

test("starts once and knows its version", async () => {
  await Promise.all([init(), init()]);
  assert.match(version(), /^\d+\.\d+\.\d+/);
});

test("says which values survive JSON", async () => {
  await init();
  for (const value of [null, true, 0, 1.5, "ü€😀", [], {}, { a: [1, { b: null }] }]) assert.equal(isJsonValue(value), true, JSON.stringify(value));
  for (const value of [undefined, NaN, Infinity, -0, 1n, Symbol("x"), () => {}, new Date(0), new Map(), { a: undefined }, "\ud800", [, 1]]) {
    assert.equal(isJsonValue(value), false, String(value));
  }
});

test("appends, tells listeners in order, owns its data", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const session = store.create("s1", { meta: { cwd: "/tmp" } });
  const seen = [];
  session.on("event", (event) => seen.push([event.seq, event.type]));
  const first = session.seq;
  const given = { text: "one" };
  session.append("user/message", given);
  given.text = "changed";
  session.append("assistant/message", { parts: [{ type: "text", text: "two" }] });
  assert.deepEqual(seen, [[first, "user/message"], [first + 1, "assistant/message"]]);
  assert.equal(session.event(first).data.text, "one");
  assert.deepEqual(session.deriveMessages().map(({ role, parts }) => [role, parts]), [
    ["user", [{ type: "text", text: "one" }]],
    ["assistant", [{ type: "text", text: "two" }]],
  ]);
  assert.throws(() => session.append("user/message", { text: 1n }), (error) => error instanceof SessionLogError && error.code === "not_json");
  assert.throws(() => session.append("no/such", {}), { code: "undeclared_type" });
  assert.equal(session.verify(), null);
  await store.dispose();
  assert.throws(() => session.append("user/message", { text: "late" }), { code: "disposed" });
});

test("a backend of the caller's passes the suite and keeps sessions", async () => {
  await init();
  const report = await checkBackend(mapBackend);
  assert.deepEqual(report.failed, []);
  assert.ok(report.passed > 0);

  const backend = mapBackend();
  const writer = await SessionStore.open({ storage: { kind: "custom", backend } });
  const session = writer.create("kept");
  session.append("user/message", { text: "still there" });
  const { seq, events } = session;
  await writer.dispose();
  const reader = await SessionStore.open({ storage: { kind: "custom", backend } });
  const again = await reader.resume("kept");
  assert.deepEqual([again.seq, again.events], [seq, events]);
  await assert.rejects(reader.resume("never"), { code: "missing" });
  await reader.dispose();
});

test("derives requests that each target takes", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const session = store.create();
  session.append("user/message", { text: "look" });
  session.append("assistant/message", { parts: [{ type: "tool-call", id: "c1", name: "read", args: { path: "/a" } }] });
  session.append("tool/call", { id: "c1", name: "read", args: { path: "/a" } });
  session.append("tool/result", { id: "c1", content: "found" });
  const chat = session.deriveRequest({ target: "openai-chat", system: "be brief" });
  assert.deepEqual(chat.messages.map((message) => message.role).filter((role) => role !== "system"), ["user", "assistant", "tool"]);
  const anthropic = session.deriveRequest({ target: "anthropic" });
  assert.deepEqual(anthropic.messages.map((message) => message.role), ["user", "assistant", "user"]);
  session.assertLogInvariant(chat);
  const changed = structuredClone(chat);
  changed.messages.at(-1).content = "something else";
  assert.throws(() => session.assertLogInvariant(changed), { code: "log_invariant" });
  await store.dispose();
});

test("redacts what is registered before it is stored", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory, scrubbers: [{ name: "own", values: ["hunter2-hunter2"] }] });
  const session = store.create();
  session.append("user/message", { text: "the word is hunter2-hunter2." });
  assert.ok(!JSON.stringify(session.events).includes("hunter2"));
  assert.ok(!JSON.stringify(session.deriveRequest({ target: "openai-chat" })).includes("hunter2"));
  await store.dispose();
});

test("counts usage and cost exactly", async () => {
  await init();
  const raw = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const { usage } = normalizeUsage("openai.chat", raw);
  assert.deepEqual([usage.inputTokens, usage.outputTokens], [10, 5]);
  const cost = PriceTable.builtin().cost({ apiShape: "openai.chat", raw, override: { usd: "0.1" } });
  assert.deepEqual([cost.usd, cost.picodollars, cost.cents, cost.source], ["0.1", "100000000000", 10, "override"]);
  assert.equal(PriceTable.builtin().cost({ apiShape: "openai.chat", raw, provider: "no-one", model: "no-such" }).usd, null);
});

test("puts files back", async () => {
  await init();
  const fs = await VirtualFs.open({ storage: memory });
  fs.writeFile("/a.txt", "before");
  const run = fs.beginRun("r1");
  run.writeFile("/a.txt", "after");
  run.mkdir("/d/e", { recursive: true });
  run.writeFile("/d/e/b.txt", "new");
  await run.end();
  assert.equal(fs.readText("/a.txt"), "after");
  const report = await fs.undo();
  assert.equal(report.ok, true);
  assert.equal(fs.readText("/a.txt"), "before");
  assert.equal(fs.exists("/d"), false);
  assert.equal((await fs.redo()).ok, true);
  assert.equal(fs.readText("/d/e/b.txt"), "new");
  await fs.dispose();
});

test("runs a task with files, events and undo", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const fs = await VirtualFs.open({ storage: memory });
  const said = [];
  const controller = new ChatSessionController({ store, fs, outputFn: (text) => said.push(text) });
  const { runResult } = await controller.executeTask("write /notes.txt: first\nsay done", { model: "scripted/demo" });
  assert.equal(runResult.status, "completed", runResult.errorMessage ?? "");
  assert.equal(fs.readText("/notes.txt"), "first");
  assert.equal(said.length, 1);
  const types = controller.session.events.map((event) => event.type);
  for (const type of ["turn/start", "tool/call", "tool/result", "turn/end"]) assert.ok(types.includes(type), type);
  assert.equal(await controller.undoLastRun(), true);
  assert.equal(fs.exists("/notes.txt"), false);
  assert.equal(createLlmAdapter("scripted", "demo").provider, "scripted");
  await store.dispose();
  await fs.dispose();
});

test("appends several at once or none of them", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const session = store.create();
  const events = session.appendAll([{ type: "user/message", data: { text: "a" } }, { type: "user/message", data: { text: "b" } }]);
  assert.deepEqual(events.map(({ seq, data }) => [seq, data.text]), [[0, "a"], [1, "b"]]);
  assert.throws(() => session.appendAll([{ type: "user/message", data: { text: "c" } }, { type: "no/such", data: {} }]), { code: "undeclared_type" });
  assert.equal(session.seq, 2);
  await store.dispose();
});

test("forks share a history and go their own ways", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const parent = store.create("parent");
  for (const text of ["one", "two", "three"]) parent.append("user/message", { text });
  const child = store.fork("parent", { count: 2, id: "child" });
  child.append("user/message", { text: "other" });
  assert.deepEqual(child.events.map(({ type, data }) => data.text ?? type), ["one", "two", "session/forked", "other"]);
  assert.deepEqual(parent.events.map(({ data }) => data.text), ["one", "two", "three"]);
  assert.deepEqual([child.verify(), parent.verify()], [null, null]);
  await store.dispose();
});

test("exports and imports without a loss, and finds what was changed", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const session = store.create("out");
  session.append("user/message", { text: "kept ü€😀" });
  session.append("assistant/message", { parts: [{ type: "text", text: "yes" }] });
  await session.flush();
  const bytes = await store.exportSession("out");
  const { session: again, report } = await store.importSession(bytes, { id: "in" });
  assert.deepEqual(report, { lost: [], damaged: [] });
  const bare = ({ events }) => events.map(({ sessionId: _, ...rest }) => rest);
  assert.deepEqual([bare(again), again.verify()], [bare(session), null]);
  const text = new TextDecoder().decode(bytes).replace('"data":{"text":"kept', '"data":{"text":"lost');
  const changed = await store.importSession(text, { id: "changed" }).then(({ session: found, report: lost }) => found.verify() !== null || lost.damaged.length > 0, () => true);
  assert.equal(changed, true);
  await store.dispose();
});

test("records are listed, changed, archived and continued", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const session = store.create("rec");
  session.append("user/message", { text: "What is a session?" });
  session.setTitle("Sessions");
  await session.flush();
  assert.deepEqual((await store.sessions()).map(({ id, title, events }) => [id, title, events]), [["rec", "Sessions", 2]]);
  await store.updateRecord("rec", { project_root: "/work" });
  assert.equal((await store.record("rec")).project_root, "/work");
  assert.equal(await store.resolveId("re"), "rec");
  const next = await store.continueSession("rec", { recap: "so far" });
  assert.equal((await store.record(next.id)).continues, "rec");
  assert.deepEqual((await store.sessions()).map(({ id }) => id), [next.id]);
  await store.delete("rec");
  await assert.rejects(store.record("rec"), { code: "not_found" });
  await store.dispose();
});

test("compacts and rewinds without rewriting anything", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const session = store.create();
  for (const text of ["one", "two", "three"]) session.append("user/message", { text });
  await session.compact(() => "a summary");
  session.append("user/message", { text: "four" });
  const said = () => session.deriveMessages().map(({ parts }) => parts[0].text);
  assert.equal(said().length, 2);
  assert.match(said()[0], /a summary/);
  session.append("session/rewound", { uptoSeq: 1 });
  assert.deepEqual(said(), ["one", "two"]);
  assert.equal(session.seq, 6);
  await store.dispose();
});

test("scrubs whole and in pieces alike", async () => {
  await init();
  const secret = `sk-ant-api03-${"aB3".repeat(31)}AA`;
  const text = `token ${secret} and more`;
  const whole = scrubText(text);
  assert.ok(!whole.text.includes(secret) && whole.matches.length === 1);
  for (const size of [1, 3, 7]) {
    const stream = new ScrubStream();
    let out = "";
    for (let at = 0; at < text.length; at += size) out += stream.push(text.slice(at, at + size));
    assert.equal(out + stream.end(), whole.text);
  }
});

test("money is exact, and the usage of a stream is its last word", async () => {
  await init();
  const total = new CostTotal();
  for (let n = 0; n < 10; n++) total.add("0.1");
  assert.deepEqual([total.usd, total.cents], ["0.01", 1]);
  assert.throws(() => total.add(-1), { code: "invalid_usage" });
  const { usage } = usageOfStream("openai.chat", [{ usage: null }, { usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }]);
  assert.equal(usage.inputTokens, 3);
});

test("encrypts at rest", async () => {
  await init();
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const inner = await openBackend(memory);
  const store = await SessionStore.open({ storage: { kind: "custom", backend: encrypted(inner, key) } });
  const session = store.create("sealed");
  session.append("user/message", { text: "nobody reads this" });
  await session.flush();
  for (const [, value] of await inner.list("", "\uffff")) assert.ok(!new TextDecoder().decode(value).includes("nobody"));
  assert.deepEqual((await store.read("sealed")).map(({ data }) => data.text), ["nobody reads this"]);
  await store.dispose();
});

test("asks before it changes something, stops when told to", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const fs = await VirtualFs.open();
  const controller = new ChatSessionController({ store, fs, outputFn: () => {} });
  const config = { model: "scripted/demo", tools: fileTools({ approval: "policy" }) };
  controller.session.on("event", ({ type, data }) => {
    if (type === "approval/requested") queueMicrotask(() => controller.resolveApproval(data.callId, "denied", "not today"));
  });
  const { runResult } = await controller.executeTask("write /a.txt: no\nsay well", config);
  assert.deepEqual([runResult.status, fs.exists("/a.txt")], ["completed", false]);
  const running = controller.executeTask("wait 60000", config);
  controller.cancel("enough");
  assert.equal((await running).runResult.status, "cancelled");
  await store.dispose();
  await fs.dispose();
});

test("a log of two thousand events derives, reads and verifies", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const session = store.create("long");
  for (let n = 0; n < 1000; n++) {
    session.append("user/message", { text: `question ${n}` });
    session.append("assistant/message", { parts: [{ type: "text", text: `answer ${n}` }] });
  }
  assert.equal(session.deriveMessages().length, 2000);
  assert.equal(session.verify(), null);
  assert.deepEqual((await store.read("long", 1999)).map(({ data }) => data.parts[0].text), ["answer 999"]);
  await store.dispose();
});

// G05: no input panics; what comes next works.
test("what is no event is refused by name, and the instance goes on", async () => {
  await init();
  const store = await SessionStore.open({ storage: memory });
  const session = store.create("tough");
  let deep = [];
  for (let n = 0; n < 100_000; n++) deep = [deep];
  const refused = [
    () => session.append("user/message", { text: "x", source: deep }), () => session.append(5, {}), () => session.append("user/message", new Uint8Array([0xff, 0xfe])),
    () => session.append("user/message", { text: "\ud800" }),
  ];
  for (const attempt of refused) assert.throws(attempt, (error) => error instanceof SessionLogError && error.code !== "poisoned");
  assert.equal(session.event(-1), undefined);
  await assert.rejects(store.importSession("[".repeat(100_000)), SessionLogError);
  await assert.rejects(store.importSession(new Uint8Array([0xff, 0xfe, 0x80, 0x00])), SessionLogError);
  session.append("user/message", { text: "x".repeat(8_000_000) });
  assert.equal(session.append("user/message", { text: "the next one" }).seq, 1);
  assert.equal(session.verify(), null);
  await store.dispose();
});
