// One suite of the public interface that runs unchanged under Node, Deno, Bun and inside workerd: nothing here but
// `node:test`, `node:assert` and the package.
import assert from "node:assert/strict";
import { test } from "node:test";
import init, * as sessionlog from "sessionlog";

const { ChatSessionController, SessionLogError, SessionStore, PriceTable, VirtualFs, checkBackend, createLlmAdapter, isJsonValue, normalizeUsage, version } = sessionlog;

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
