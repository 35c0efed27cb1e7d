// What holds whatever is done to a controller: one invariant, one test (RUN.2, RUN.3, RUN.7, RUN.8).
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { ChatSessionController, SessionStore, VirtualFs, fileTools } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";
import { openai, provider } from "./servers/provider.mjs";

before(() => init());

async function world(options = {}) {
  const { backend, ...more } = options;
  const storage = backend === undefined ? undefined : { kind: "custom", backend };
  const store = await SessionStore.open(storage === undefined ? {} : { storage });
  const fs = await VirtualFs.open(storage === undefined ? {} : { storage });
  const output = [];
  const controller = new ChatSessionController({ store, fs, outputFn: (text) => output.push(text), ...more });
  return { store, fs, output, controller, session: controller.session };
}

const demo = { model: "scripted/demo" };
const say = (text) => [{ type: "text", text }];
const call = (id, name, args = {}) => ({ type: "tool-call", id, name, args: JSON.stringify(args) });
const script = (steps, more = {}) => ({ model: "scripted/script", providerOptions: { script: steps }, ...more });
const tool = (name, run, more = {}) => ({ name, description: "", parameters: {}, run, ...more });
const pause = (ms = 5) => new Promise((resolve) => setTimeout(resolve, ms));
const until = async (met) => { for (let n = 0; !met(); n++) { if (n > 10_000) assert.fail("it never came"); await pause(2); } };
const reason = (session) => session.events.at(-1).data.reason?.kind;
const adapter = (stream) => ({ adapter: { provider: "p", model: "m", target: "openai-chat", stream } });

test("output exactly once and one observation per call, however the call goes", async () => {
  const { controller, output } = await world();
  const tools = [tool("t", () => "ok")];
  const stop = new AbortController();
  stop.abort();
  const ways = [
    [demo, {}, "completed"], [demo, adapter(async function* () { throw new Error("boom"); }), "failed"], [demo, adapter(async function* () {}), "failed"],
    [{ ...demo, signal: stop.signal }, {}, "cancelled"], [script([[call("1", "t")], [call("2", "t")]], { tools, maxSteps: 1 }), {}, "max-steps"],
    [{ ...demo, maxCostUsd: "0" }, {}, "budget-reached"],
  ];
  for (const [at, [config, options, status]] of ways.entries()) {
    const done = await controller.executeTask("say hello", config, options);
    assert.equal(done.runResult.status, status);
    assert.equal(output.length, at + 1, status);
    assert.equal(output[at], done.runResult.finalAnswer?.content ?? done.runResult.errorMessage ?? `[${status}]`);
    assert.equal(controller.sessionState.observations.length, at + 1, status);
    assert.deepEqual(Object.keys(controller.sessionState.observations[at]).sort(), ["costCents", "result", "task"]);
    assert.equal(controller.sessionState.observations[at].result, done.runResult);
  }
});

test("cost never goes down: not by undo, redo, rewind, compaction, failure, reload", async () => {
  const backend = memoryBackend();
  const { controller, session, store } = await world({ backend });
  let last = 0n;
  const look = (of = controller) => {
    const now = BigInt(of.getSessionCost().picodollars);
    assert.ok(now >= last, `${now} after ${last}`);
    last = now;
  };
  await controller.executeTask("write a.txt: 1\nsay one", demo);
  look();
  assert.ok(last > 0n);
  await controller.executeTask("write a.txt: 2\ncrash", demo);
  look();
  const cents = controller.sessionState.sessionCostCents;
  await controller.undoLastRun();
  look();
  await controller.redoLastUndo();
  look();
  await session.compact(() => "in short");
  look();
  await controller.rewind(session.events.find(({ type }) => type === "user/message").seq);
  look();
  assert.equal(controller.sessionState.sessionCostCents, cents);
  await store.dispose();
  const again = await SessionStore.open({ storage: { kind: "custom", backend } });
  look(new ChatSessionController({ store: again, fs: await VirtualFs.open(), session: await again.resume(session.id), outputFn: () => {} }));
});

test("the journal stands before the run: a made one hears the audit, a given one is not attached and is used", async () => {
  const { controller, store, fs } = await world();
  const order = [];
  const audit = store.runs.auditLogger();
  const addSink = audit.addSink.bind(audit);
  const sinks = [];
  audit.addSink = (sink) => { order.push("sink"); sinks.push(sink); return addSink(sink); };
  addSink(({ type }) => order.push(type));
  const one = await controller.executeTask("write a.txt: 1", demo, { audit });
  assert.deepEqual(order.slice(0, 2), ["sink", "run/started"]);
  assert.deepEqual([sinks.length, sinks[0].hasEntries, sinks[0].changedPaths], [1, true, ["/a.txt"]]);
  assert.equal(await store.runs.latestRunWithUndo(), one.runResult.runId);
  const mine = fs.beginRun("mine");
  const other = store.runs.auditLogger();
  other.addSink = () => assert.fail("a given journal is not attached");
  const two = await controller.executeTask("write b.txt: 2", demo, { audit: other, undoJournal: mine.journal });
  assert.deepEqual([mine.journal.hasEntries, mine.journal.changedPaths, two.warnings], [true, ["/b.txt"], []]);
  assert.equal((await store.runs.showRun(two.runResult.runId)).summary.hasUndo, true);
});

test("every part of the store may fail after the run: a warning each, the result stands", async () => {
  for (const prefix of ["u/", "j/", "f/"]) {
    const backend = memoryBackend();
    const { controller, output } = await world({ backend });
    const transact = backend.transact;
    let ended = false;
    controller.session.on("event", ({ type }) => (ended ||= type === "turn/end"));
    backend.transact = async (batch) => {
      if (ended && batch.puts?.some(([key]) => key.startsWith(prefix))) throw Object.assign(new Error("disk full"), { code: "quota" });
      return transact.call(backend, batch);
    };
    const done = await controller.executeTask("write a.txt: 1\nsay fine", demo);
    assert.deepEqual([done.runResult.status, output], ["completed", ["fine"]], prefix);
    if (prefix === "u/") assert.ok(done.warnings.length > 0, prefix);
  }
});

test("what cannot be stored is not sent: the model is not asked, the tool does not run", async () => {
  const backend = memoryBackend();
  const { controller, session } = await world({ backend });
  let asked = 0;
  let ran = 0;
  const tools = [tool("t", () => ran++)];
  const model = adapter(async function* () { asked++; backend.fail = Object.assign(new Error("full"), { code: "quota" }); yield call("1", "t"); });
  const one = await controller.executeTask("go", { ...demo, tools }, model);
  assert.deepEqual([one.runResult.status, asked, ran], ["failed", 1, 0]);
  const two = await controller.executeTask("go", { ...demo, tools }, model);
  assert.deepEqual([two.runResult.status, asked, ran], ["failed", 1, 0]);
  backend.fail = null;
  assert.equal((await controller.executeTask("say on", demo)).runResult.status, "completed");
  await session.flush();
  const again = await SessionStore.open({ storage: { kind: "custom", backend } });
  assert.deepEqual(await again.read(session.id), session.events);
});

// ------------------------------------------------------------------- stopping

test("stop at every event of a turn: it ends cancelled or whole, everything is answered, the signal fires at most once", async () => {
  const tools = () => [...fileTools({ approval: "always" }), tool("slow", (_args, { signal }) => new Promise((resolve, reject) => { setTimeout(() => resolve("ok"), 5); signal.addEventListener("abort", () => reject(new Error("stopped"))); }))];
  const steps = [[{ type: "reasoning", text: "hm" }, { type: "text", text: "a b" }, call("1", "slow"), call("2", "write_file", { path: "/x", content: "x" }), call("3", "slow")], say("done")];
  const whole = await world();
  await whole.controller.executeTask("go", script(steps, { tools: tools(), approve: async () => "approved" }));
  const count = whole.session.seq;
  for (let at = 0; at < count; at++) {
    for (const how of ["now", "soon", "dispose"]) {
      const { controller, session, output } = await world();
      let fired = 0;
      const heard = new Set();
      const hear = ({ signal }) => {
        if (!heard.has(signal)) signal.addEventListener("abort", () => fired++);
        heard.add(signal);
      };
      const scripted = script(steps, { tools: tools(), approve: async () => "approved" });
      session.on("event", ({ seq }) => {
        if (seq !== at) return;
        if (how === "now") controller.cancel("enough");
        else if (how === "soon") queueMicrotask(() => controller.cancel("enough"));
        else void session.dispose();
      });
      scripted.tools = scripted.tools.map((one) => ({ ...one, run: (args, context) => { hear(context); return one.run(args, context); } }));
      const done = await controller.executeTask("go", scripted);
      const why = `${how} at ${at}: ${whole.session.event(at).type}`;
      assert.ok(["cancelled", "completed", "suspended"].includes(done.runResult.status), `${why}: ${done.runResult.status} ${done.runResult.errorMessage}`);
      assert.ok(fired <= 1 && heard.size <= 1, why);
      assert.equal(output.length, 1, why);
      assert.equal(controller.status, "idle", why);
      if (how === "dispose") continue;
      const of = (type) => session.events.filter((event) => event.type === type).length;
      assert.equal(of("turn/start"), of("turn/end"), why);
      assert.equal(of("step/start"), of("step/end"), why);
      const owed = session.events.flatMap(({ type, data }) => (type === "assistant/message" ? data.parts : [])).filter(({ type }) => type === "tool-call").map(({ id }) => id);
      assert.deepEqual(session.events.filter(({ type }) => type === "tool/result").map(({ data }) => data.id), owed, why);
      for (const target of ["openai-chat", "anthropic", "gemini"]) assert.deepEqual(session.deriveRequest({ target }).repairs.filter(({ code }) => code === "invalid_request"), [], why);
      assert.equal((await controller.executeTask("say on", demo)).runResult.status, "completed", why);
    }
  }
});

test("stop before the first token, in the pause before another attempt, and while a summary is made", async () => {
  const { controller, session } = await world();
  let fired = 0;
  const silent = adapter(async function* (_request, { signal }) { signal.addEventListener("abort", () => fired++); await new Promise(() => {}); yield; });
  const first = controller.executeTask("go", demo, silent);
  await until(() => session.events.some(({ type }) => type === "step/start"));
  await pause();
  controller.cancel();
  assert.deepEqual([(await first).runResult.status, fired, reason(session)], ["cancelled", 1, "cancelled"]);

  const busy = await provider([{ status: 429, headers: { "retry-after": "50" } }]);
  const second = controller.executeTask("go", { model: "openai-compatible/m", providerOptions: { baseUrl: busy.url } });
  await until(() => busy.requests.length === 1);
  await pause(20);
  controller.cancel();
  assert.deepEqual([(await second).runResult.status, busy.requests.length], ["cancelled", 1]);
  await busy.close();

  let summing = false;
  const compaction = { promptTokens: 1, summarize: () => ((summing = true), new Promise(() => {})) };
  const third = controller.executeTask("say long", { ...demo, compaction });
  await until(() => summing);
  controller.cancel();
  assert.equal((await third).runResult.status, "completed");
  assert.equal((await controller.executeTask("say on", demo)).runResult.status, "completed");
});

test("a request that is too long is made shorter once, not for ever; with nothing to make shorter it fails at once", async () => {
  const long = { status: 400, json: { error: { code: "context_length_exceeded", message: "too long" } } };
  const server = await provider([long, long, { pieces: [openai.text(["ok"])] }]);
  const { controller, session } = await world();
  await controller.executeTask("say some history", demo);
  const done = await controller.executeTask("go", { model: "openai-compatible/m", providerOptions: { baseUrl: server.url } });
  assert.deepEqual([done.runResult.status, server.requests.length, session.events.filter(({ type }) => type === "session/compacted").length], ["failed", 2, 1]);
  assert.equal(session.events.findLast(({ type }) => type === "error").data.code, "context_overflow");
  await server.close();
});

// ------------------------------------------------------------------- from inside

test("listeners, tools, outputFn and sinks may call anything: busy where a run runs, no deadlock, no second turn", async () => {
  const codes = [];
  const trial = (of, what) => of.executeTask("say inner", demo).then(() => codes.push([what, "ran"]), ({ code }) => codes.push([what, code]));
  const { store, fs, session: given } = await world();
  let once = true;
  const controller = new ChatSessionController({
    store, fs, session: given, outputFn: () => void trial(controller, "output"),
    onEvent: ({ type }) => { if (type === "turn/end" && once) { once = false; void trial(controller, "turn/end"); } },
  });
  const audit = store.runs.auditLogger();
  audit.addSink(() => { throw new Error("a sink that fails"); });
  audit.addSink(({ type }) => type === "run/started" && void trial(controller, "sink"));
  given.on("event", () => { throw new Error("a listener that fails"); });
  given.on("event", async () => { throw new Error("one that fails later"); });
  const tools = [tool("t", async () => { await trial(controller, "tool"); await session(); return "ok"; })];
  const session = async () => { given.append("context/injected", { text: "from a tool" }); await given.flush(); assert.equal(await controller.undoLastRun(), false); };
  const done = await controller.executeTask("go", script([[call("1", "t")], say("ok")], { tools }), { audit });
  await pause();
  assert.equal(done.runResult.status, "completed");
  assert.deepEqual(codes.filter(([, code]) => code !== "busy"), []);
  assert.deepEqual(codes.map(([what]) => what).sort(), ["output", "output", "sink", "tool", "turn/end"]);
  assert.equal(given.events.filter(({ type }) => type === "turn/start").length, 1);
  assert.equal((await controller.executeTask("say after", demo)).runResult.status, "completed");
});

test("a tool may dispose of the session and of the store that it runs in", { timeout: 10_000 }, async () => {
  for (const what of ["session", "store"]) {
    const backend = memoryBackend();
    const parts = await world({ backend });
    const tools = [tool("end", () => parts[what].dispose())];
    const done = await parts.controller.executeTask("go", script([[call("1", "end")], say("ok")], { tools }));
    assert.equal(done.runResult.status, "cancelled", what);
    const again = await SessionStore.open({ storage: { kind: "custom", backend } });
    const session = await again.resume(parts.session.id);
    assert.equal(reason(session), "disposed", what);
    assert.equal(session.events.filter(({ type }) => type === "tool/result").length, 1);
    await assert.rejects(parts.controller.executeTask("say x", demo), { code: "disposed" });
  }
});

test("approve that throws, that answers nonsense, that never answers", async () => {
  const { controller, session, fs } = await world();
  const steps = () => [[call(`w${session.seq}`, "write_file", { path: "/a", content: "x" })], say("ok")];
  for (const approve of [() => { throw new Error("no screen"); }, async () => { throw "words"; }, async () => "maybe", async () => undefined]) {
    const done = await controller.executeTask("go", script(steps(), { tools: fileTools({ approval: "always" }), approve }));
    assert.equal(done.runResult.status, "completed");
    assert.deepEqual([session.events.findLast(({ type }) => type === "approval/resolved").data.verdict, fs.exists("/a")], ["denied", false]);
  }
  const silent = controller.executeTask("go", script(steps(), { tools: fileTools({ approval: "always" }), approve: () => new Promise(() => {}) }));
  await until(() => controller.status === "waiting-approval");
  controller.resolveApproval(session.events.findLast(({ type }) => type === "approval/requested").data.callId, "approved");
  assert.equal((await silent).runResult.status, "completed");
  assert.equal(fs.exists("/a"), true);
});

test("a scrubber that breaks its word in the middle of an answer, of a result, or at a stop: an honest end, and the session goes on", { timeout: 10_000 }, async () => {
  for (const [name, bad] of [["throws", () => { throw new Error("cannot"); }], ["no text", () => 5]]) {
    for (const where of ["answer", "result", "stop"]) {
      const { controller, store, session, output } = await world();
      store.registerScrubber({ name: "bad", scrub: (text) => (text.includes("boom") ? bad() : text), maxMatchLength: 8 });
      const why = `${name} in the ${where}`;
      if (where === "stop") {
        const running = controller.executeTask("go", demo, adapter(async function* () { yield { type: "text", text: "a boom" }; await new Promise(() => {}); }));
        await pause(10);
        controller.cancel();
        assert.notEqual((await running).runResult.status, "completed", why);
      } else {
        const steps = where === "answer" ? [say("a boom b")] : [[call("1", "t")], say("ok")];
        const done = await controller.executeTask("go", script(steps, { tools: [tool("t", () => "boom")] }));
        assert.equal(done.runResult.status, where === "answer" ? "failed" : "completed", why);
      }
      assert.equal(output.length, 1, why);
      const of = (type) => session.events.filter((event) => event.type === type).length;
      assert.deepEqual([of("turn/start") - of("turn/end"), of("step/start") - of("step/end")], [0, 0], why);
      assert.ok(!JSON.stringify(session.events).includes("boom"), why);
      assert.equal((await controller.executeTask("say on", demo)).runResult.status, "completed", why);
    }
  }
});

// ------------------------------------------------------------------- runs and audit

test("the audit tells a run from its start to its end, survives a reload, and its sinks come and go", async () => {
  const backend = memoryBackend();
  const { controller, store } = await world({ backend });
  const audit = store.runs.auditLogger();
  const [one, two] = [[], []];
  const end = audit.addSink((event) => one.push(event));
  audit.addSink((event) => { two.push(event); if (event.type === "tool/started") end(); });
  const steps = [[call("1", "write_file", { path: "/a", content: "x" }), call("2", "read_file", { path: "/none" }), call("3", "nobody")], say("ok")];
  const done = await controller.executeTask("go", script(steps), { audit });
  assert.equal(two.at(-1).type, "run/ended");
  assert.ok(one.length < two.length);
  assert.deepEqual(two.map(({ type, callId, tool }) => [type, callId, tool].filter((word) => word !== undefined).join(" ")), [
    "run/started", "request/sent", "tool/started 1 write_file", "tool/completed 1 write_file", "tool/started 2 read_file", "tool/failed 2 read_file", "request/sent", "run/ended",
  ]);
  assert.deepEqual(two.at(-1).data, { status: "completed", costCents: done.costCents });
  for (let at = 1; at < two.length; at++) assert.ok(two[at].at >= two[at - 1].at);
  await store.dispose();
  const again = await SessionStore.open({ storage: { kind: "custom", backend } });
  const { summary, audit: kept } = await again.runs.showRun(done.runResult.runId);
  assert.deepEqual(kept, two);
  assert.deepEqual([summary.status, summary.hasUndo, summary.sessionId, summary.costCents, summary.endedAt >= summary.startedAt], ["completed", true, controller.session.id, done.costCents, true]);
  assert.equal(await again.runs.latestRunWithUndo(), done.runResult.runId);
});

test("the latest run with a journal is found behind runs without one, and its journal is sound", async () => {
  const { controller, store, fs } = await world();
  const first = await controller.executeTask("write a.txt: 1", demo);
  await pause();
  const second = await controller.executeTask("write a.txt: 2", demo);
  await pause();
  await controller.executeTask("say nothing changed", demo);
  assert.equal(await store.runs.latestRunWithUndo(), second.runResult.runId);
  assert.equal(await controller.undoLastRun(), true);
  assert.deepEqual([fs.readText("/a.txt"), await store.runs.latestRunWithUndo()], ["1", first.runResult.runId]);
  assert.equal(await controller.undoLastRun(), true);
  assert.deepEqual([fs.exists("/a.txt"), await store.runs.latestRunWithUndo()], [false, null]);
  const run = fs.beginRun("health");
  run.writeFile("/b.txt", "b");
  assert.deepEqual(run.journal.checkHealth(), { totalEntries: 1, corruptedEntries: 0, orphanedPending: 0, healthy: true });
  await run.end();
});

// ------------------------------------------------------------------- lessons, through the controller

test("A01: interrupted with one of two results, killed, reloaded: the next request answers both in the next message, and the log stands as it was", async () => {
  const backend = memoryBackend();
  const { controller, session } = await world({ backend });
  let running = false;
  const tools = [tool("quick", () => "ok"), tool("hangs", () => ((running = true), new Promise(() => {})))];
  void controller.executeTask("go", script([[call("t1", "quick"), call("t2", "hangs")]], { tools }));
  await until(() => running);
  await session.flush();
  const copy = memoryBackend();
  for (const [key, value] of backend.map) copy.map.set(key, value.slice());
  const again = await SessionStore.open({ storage: { kind: "custom", backend: copy } });
  const stored = await again.read(session.id);
  const back = await again.resume(session.id);
  assert.deepEqual(back.events.slice(0, stored.length), stored);
  const other = new ChatSessionController({ store: again, fs: await VirtualFs.open(), session: back, outputFn: () => {} });
  const requests = [];
  const asked = (target) => ({ provider: "p", model: "m", target, async *stream({ request }) { requests.push(request.messages); yield { type: "text", text: "ok" }; } });
  await other.executeTask("next", demo, { adapter: asked("anthropic") });
  const [, assistant, results] = requests[0];
  assert.deepEqual(assistant.content.map(({ type, id }) => [type, id]), [["tool_use", "t1"], ["tool_use", "t2"]]);
  assert.deepEqual(results.content.map(({ type, tool_use_id, is_error }) => [type, tool_use_id, is_error === true]), [["tool_result", "t1", false], ["tool_result", "t2", true], ["text", undefined, false]]);
  assert.match(JSON.stringify(results.content[1]), /outcome is unknown/);
  await other.executeTask("more", demo, { adapter: asked("openai-chat") });
  assert.deepEqual(requests[1].slice(1, 5).map(({ role, tool_call_id }) => [role, tool_call_id]), [["assistant", undefined], ["tool", "t1"], ["tool", "t2"], ["user", undefined]]);
  const derive = () => JSON.stringify(back.deriveRequest({ target: "anthropic" }));
  assert.equal(derive(), derive());
});

test("G01: calls on a session that a run is writing to, all at once, on a slow store: all resolve, in order, none is lost", async () => {
  const backend = memoryBackend({ delay: 5 });
  const { controller, session } = await world({ backend });
  const running = controller.executeTask("say one two three\nwait 100", demo);
  await until(() => session.seq > 3);
  const [a, b, messages, c] = await Promise.all([
    session.appendDurable("context/injected", { text: "a" }), session.append("context/injected", { text: "b" }), session.deriveMessages(), session.appendDurable("context/injected", { text: "c" }),
    session.flush(),
  ]);
  assert.ok(messages.length >= 1);
  assert.equal((await running).runResult.status, "completed");
  assert.ok(a.seq < b.seq && b.seq < c.seq);
  await session.flush();
  const again = await SessionStore.open({ storage: { kind: "custom", backend } });
  assert.deepEqual(await again.read(session.id), session.events);
  assert.deepEqual(session.events.map(({ seq }) => seq), session.events.map((_, seq) => seq));
});
