// Killed at every point and recovered by every policy, through the built package; questions that outlive their process.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { ChatSessionController, SessionStore, VirtualFs, fileTools } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

before(() => init());

const TARGETS = ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"];
const USAGE = { apiShape: "step.usage", raw: { prompt_tokens: 5, completion_tokens: 2, cost: 0.25 } };

/** A store that finishes before it returns: after each of its batches the process may be gone. `states` are what is left then. */
function recording() {
  const inner = memoryBackend();
  const states = [];
  return {
    name: "recording", sync: true, states,
    get: (key) => inner.map.get(key)?.slice() ?? null,
    list(start, end, { limit = Infinity, reverse = false, keysOnly = false } = {}) {
      const keys = [...inner.map.keys()].filter((key) => key >= start && key < end).sort();
      if (reverse) keys.reverse();
      return keys.slice(0, limit).map((key) => [key, keysOnly ? new Uint8Array() : inner.map.get(key).slice()]);
    },
    transact({ checks = [], puts = [], deletes = [] }) {
      for (const { key, equals } of checks) {
        const held = inner.map.get(key) ?? null;
        if (String(held) !== String(equals)) throw Object.assign(new Error("changed"), { code: "conflict" });
      }
      for (const [key, value] of puts) inner.map.set(key, value.slice());
      for (const key of deletes) inner.map.delete(key);
      this.onState?.(new Map(inner.map));
    },
  };
}

const copyOf = (map) => {
  const backend = memoryBackend();
  for (const [key, value] of map) backend.map.set(key, value.slice());
  return backend;
};

/** What the model says next follows from how many whole answers stand in the log. */
function model(session, script) {
  return {
    provider: "p", model: "m", target: "openai-chat",
    async *stream() {
      const whole = session.events.filter(({ type, data }) => type === "assistant/message" && data.partial !== true).length;
      yield* script[whole];
      yield { type: "usage", usage: USAGE };
      yield { type: "finish", reason: script[whole].some(({ type }) => type === "tool-call") ? "tool-calls" : "stop" };
    },
  };
}

const call = (id, name, args = {}) => ({ type: "tool-call", id, name, args: JSON.stringify(args) });
const SCRIPT = [
  [{ type: "reasoning", text: "hm", signature: "c2ln" }, { type: "text", text: "let me see" }, call("r1", "look"), call("r2", "look"), call("w", "write", { path: "/w.txt" }), call("a", "guarded", { path: "/a.txt" })],
  [call("x", "nobody"), call("y", "write", { path: 1 }), call("z", "write", { path: "/z.txt" })],
  [{ type: "text", text: "done" }],
];

/** Tools that write down that they ran. */
function tools(ran) {
  const parameters = { type: "object", properties: { path: { type: "string" } } };
  const writes = (args, { fs, callId }) => {
    ran.push(callId);
    fs.writeFile(args.path, "x", { append: true });
    return "written";
  };
  return [
    { name: "look", description: "", parameters, parallel: true, idempotent: true, run: async (_args, { callId }) => (ran.push(callId), "seen") },
    { name: "write", description: "", parameters, mutating: true, run: writes },
    { name: "guarded", description: "", parameters, mutating: true, approval: "always", run: writes },
  ];
}

/** Everything that must be true of a log whose last turn is over, and of the requests that it yields. */
function check(session, why) {
  assert.equal(session.verify(), null, why);
  const count = (wanted) => session.events.filter(({ type }) => type === wanted).length;
  assert.equal(count("turn/start"), count("turn/end"), why);
  assert.equal(count("step/start"), count("step/end"), why);
  let owed = [];
  let used;
  for (const { type, data } of session.events) {
    if (type === "step/start") used = undefined;
    if (type === "assistant/message") {
      owed = owed.concat(data.parts.filter((part) => part.type === "tool-call").map(({ id }) => id));
      used = data.usage;
    }
    if (type === "tool/result") assert.equal(data.id, owed.shift(), why);
    if (type === "step/end") assert.deepEqual(data.usage, used, `${why}: usage`);
    if (type === "turn/end" || type === "step/end") assert.deepEqual(owed, [], why);
  }
  for (const kind of ["tool/call", "approval/requested", "approval/resolved"]) {
    const ids = session.events.filter(({ type }) => type === kind).map(({ data }) => data.id ?? data.callId);
    assert.equal(new Set(ids).size, ids.length, `${why}: ${kind}`);
  }
}

function checkRequests(session, why) {
  for (const target of TARGETS) {
    const { repairs, messages } = session.deriveRequest({ target, provider: "p", model: "m" });
    assert.deepEqual(repairs.filter(({ code }) => code === "invalid_request"), [], `${why}: ${target}`);
    assert.ok(messages.length > 0 || session.deriveMessages().length === 0, `${why}: ${target}`);
  }
}

test("killed after every write of a turn and recovered by every policy: a whole log, a next request for every target, no tool twice", async () => {
  const backend = recording();
  const ran = [];
  const states = [];
  backend.onState = (map) => states.push({ map, ran: [...ran] });
  const storage = { kind: "custom", backend };
  const store = await SessionStore.open({ storage });
  const controller = new ChatSessionController({ store, fs: await VirtualFs.open({ storage }), outputFn: () => {} });
  const config = { model: "p/m", tools: tools(ran), approve: async () => "approved" };
  const whole = await controller.executeTask("go", config, { adapter: model(controller.session, SCRIPT) });
  assert.deepEqual([whole.runResult.status, whole.warnings, ran], ["completed", [], ["r1", "r2", "w", "a", "z"]]);
  check(controller.session, "whole");
  const { id } = controller.session;
  assert.ok(states.length >= controller.session.seq, `${states.length} states`);
  const seen = new Set();

  for (const policy of ["close", "resume", "ask", "ask first"]) {
    for (const [at, { map, ran: before }] of states.entries()) {
      const why = `${policy}, state ${at} of ${states.length}`;
      const left = { kind: "custom", backend: copyOf(map) };
      const again = await SessionStore.open({ storage: left });
      const session = await again.resume(id, { recover: policy.split(" ")[0] }).catch((error) => {
        assert.equal(error.code, "missing", why);
        return null;
      });
      if (session === null) continue;
      const runs = [...before];
      const other = new ChatSessionController({ store: again, fs: await VirtualFs.open({ storage: left }), session, outputFn: () => {} });
      checkRequests(session, `${why}, as it was found`);
      const isOpen = session.events.some(({ type }) => type === "turn/start") && session.events.at(-1).type !== "turn/end";
      const more = { ...config, tools: tools(runs) };
      if (policy !== "close" && isOpen) {
        const owed = session.pendingCalls().slice(0, policy === "ask first" ? 1 : policy === "ask" ? Infinity : 0);
        for (const call of owed) {
          seen.add(call.state);
          session.append("tool/result", { turn: 1, id: call.id, content: "said by the host" });
        }
        const done = await other.resumeTurn(more, { adapter: model(session, SCRIPT) });
        assert.deepEqual([done.runResult.status, done.runResult.finalAnswer?.content], ["completed", "done"], why);
        for (const { id: answered } of owed) assert.equal(runs.filter((ran) => ran === answered).length, before.filter((ran) => ran === answered).length, `${why}: ${answered} ran though it was answered`);
      }
      if (session.events.length > 0) check(session, why);
      for (const ran of new Set(runs)) assert.ok(/^r/.test(ran) || runs.filter((other) => other === ran).length === 1, `${why}: ${ran} ran twice`);
      checkRequests(session, why);
      // And it goes on.
      const next = await other.executeTask("say on", { model: "scripted/demo" });
      assert.equal(next.runResult.status, "completed", why);
      check(session, why);
      await again.dispose();
    }
  }
  assert.deepEqual([...seen].sort(), ["not-started", "outcome-unknown"]);
});

test("what an answer has cost is not lost when its tool is the end of everything", async () => {
  for (const recover of ["close", "resume"]) {
    const backend = memoryBackend();
    const storage = { kind: "custom", backend };
    const store = await SessionStore.open({ storage });
    const controller = new ChatSessionController({ store, fs: await VirtualFs.open(), outputFn: () => {} });
    let running = false;
    const hang = { name: "t", description: "", parameters: {}, run: () => ((running = true), new Promise(() => {})) };
    controller.executeTask("go", { model: "p/m", tools: [hang] }, { adapter: model(controller.session, [[call("1", "t")], [{ type: "text", text: "ok" }]]) });
    while (!running) await new Promise((resolve) => setTimeout(resolve, 2));
    const again = await SessionStore.open({ storage: { kind: "custom", backend: copyOf(backend.map) } });
    const session = await again.resume(controller.session.id, { recover });
    let run = null;
    if (recover === "resume") {
      const other = new ChatSessionController({ store: again, fs: await VirtualFs.open(), session, outputFn: () => {} });
      run = await other.resumeTurn({ model: "p/m", tools: [hang] }, { adapter: model(session, [null, [{ type: "text", text: "ok" }]]) });
    }
    assert.equal(session.usage().cost.usd, recover === "close" ? "0.25" : "0.5");
    assert.equal(session.usage().steps, recover === "close" ? 1 : 2);
    if (run !== null) assert.equal(run.runResult.cost.usd, "0.5");
  }
});

// -------------------------------------------------------------------- ask

async function open(backend, recover) {
  const storage = { kind: "custom", backend };
  const store = await SessionStore.open({ storage });
  const files = await VirtualFs.open({ storage });
  const session = recover === undefined ? store.create("s") : await store.resume("s", { recover });
  const output = [];
  return { store, files, session, output, controller: new ChatSessionController({ store, fs: files, session, outputFn: (text) => output.push(text) }) };
}

const guarded = () => fileTools({ approval: "always" });
const question = [[call("w", "append_file", { path: "/log.txt", content: "once" })], [{ type: "text", text: "ok" }]];
const until = async (met) => { for (let n = 0; !met(); n++) { if (n > 10_000) assert.fail("it never came"); await new Promise((resolve) => setTimeout(resolve, 2)); } };

test("`ask`: the host sees what is owed, says what it knows, and the turn goes on; through three reloads", async () => {
  const backend = memoryBackend();
  const first = await open(backend);
  void first.controller.executeTask("go", { model: "p/m", tools: guarded() }, { adapter: model(first.session, question) });
  await until(() => first.controller.status === "waiting-approval");
  await first.session.flush();
  // Three processes that come, look, and are killed: the question stands, once, and nothing is closed.
  let state = copyOf(backend.map);
  for (let reload = 0; reload < 3; reload++) {
    const seen = await open(state, "ask");
    assert.deepEqual(seen.session.pendingCalls(), [{ id: "w", name: "append_file", state: "not-started" }]);
    assert.equal(seen.session.events.filter(({ type }) => type === "approval/requested").length, 1);
    await assert.rejects(seen.controller.executeTask("something else", { model: "scripted/demo" }), { code: "open_turn" });
    void seen.controller.resumeTurn({ model: "p/m", tools: guarded() }, { adapter: model(seen.session, question) });
    await until(() => seen.controller.status === "waiting-approval");
    await seen.session.flush();
    state = copyOf(state.map);
  }
  // The verdict: given before the turn goes on, or while it waits again.
  for (const verdict of ["approved", "denied"]) {
    for (const early of [true, false]) {
      const last = await open(copyOf(state.map), "ask");
      if (early) last.controller.resolveApproval("w", verdict, "by the host");
      const going = last.controller.resumeTurn({ model: "p/m", tools: guarded() }, { adapter: model(last.session, question) });
      if (!early) {
        await until(() => last.controller.status === "waiting-approval");
        last.controller.resolveApproval("w", verdict, "by the host");
        // A second one settles nothing.
        last.controller.resolveApproval("w", verdict === "approved" ? "denied" : "approved");
      }
      assert.equal((await going).runResult.status, "completed");
      assert.equal(last.files.exists("/log.txt"), verdict === "approved");
      if (verdict === "approved") assert.equal(last.files.readText("/log.txt"), "once");
      assert.deepEqual(last.session.events.filter(({ type }) => type === "approval/resolved").map(({ data }) => [data.callId, data.verdict]), [["w", verdict]]);
      check(last.session, `${verdict}, ${early}`);
      checkRequests(last.session, verdict);
      assert.throws(() => last.controller.resolveApproval("w", "approved"), { code: "not_found" }, "a turn that ended has no pending request");
    }
  }
  // Or the host answers the call itself; then nobody is asked any more.
  const host = await open(copyOf(state.map), "ask");
  host.session.append("tool/result", { turn: 1, id: "w", content: "the host wrote it by hand" });
  const done = await host.controller.resumeTurn({ model: "p/m", tools: guarded() }, { adapter: model(host.session, question) });
  assert.deepEqual([done.runResult.status, host.files.exists("/log.txt"), host.output], ["completed", false, ["ok"]]);
  check(host.session, "answered by the host");
});

test("a turn with an open question that is closed has none any more", async () => {
  const backend = memoryBackend();
  const first = await open(backend);
  void first.controller.executeTask("go", { model: "p/m", tools: guarded() }, { adapter: model(first.session, question) });
  await until(() => first.controller.status === "waiting-approval");
  await first.session.flush();
  const closed = await open(copyOf(backend.map), "close");
  assert.throws(() => closed.controller.resolveApproval("w", "approved"), { code: "not_found" });
  assert.deepEqual(closed.session.pendingCalls(), []);
  check(closed.session, "closed");
  assert.equal((await closed.controller.executeTask("say on", { model: "scripted/demo" })).runResult.status, "completed");
});

test("a verdict is for the call that was asked about: other arguments are not run by it", async () => {
  const backend = memoryBackend();
  const { controller, session, files } = await open(backend);
  const going = controller.executeTask("go", { model: "p/m", tools: guarded() }, { adapter: model(session, question) });
  await until(() => controller.status === "waiting-approval");
  // Somebody asks about something harmless under the same id.
  session.append("approval/requested", { callId: "w", name: "append_file", args: { path: "/harmless.txt", content: "x" } });
  controller.resolveApproval("w", "approved");
  assert.equal((await going).runResult.status, "completed");
  assert.equal(files.exists("/log.txt"), false);
  assert.match(session.events.find(({ type }) => type === "tool/result").data.content, /not the call that was asked about/);
});
