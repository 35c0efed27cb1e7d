// The controller through the built package: every promise of it, on the scripted models.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { ChatSessionController, SessionLogError, SessionStore, VirtualFs, createLlmAdapter, fileTools } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";
import { openai, provider } from "./servers/provider.mjs";

before(() => init());

async function world(options = {}) {
  const { backend, ...more } = options;
  const storage = backend === undefined ? undefined : { kind: "custom", backend };
  const warned = [];
  const store = await SessionStore.open({ ...(storage === undefined ? {} : { storage }), onWarning: (warning) => warned.push(warning) });
  const fs = await VirtualFs.open(storage === undefined ? {} : { storage });
  const output = [];
  const events = [];
  const controller = new ChatSessionController({ store, fs, outputFn: (text) => output.push(text), onEvent: (event) => events.push(event), ...more });
  return { store, fs, output, events, controller, session: controller.session, warned };
}

const demo = { model: "scripted/demo" };
const types = (session, skip = /chunk/) => session.events.map(({ type }) => type).filter((type) => !skip.test(type));
const last = (session, type) => session.events.filter((event) => event.type === type).at(-1)?.data;
const say = (text) => [{ type: "text", text }];
const ask = (...calls) => calls.map(([id, name, args = {}]) => ({ type: "tool-call", id, name, args: JSON.stringify(args) }));
const script = (steps, more = {}) => ({ model: "scripted/script", providerOptions: { script: steps, ...more.providerOptions }, ...more.config });
const tick = () => new Promise((resolve) => setTimeout(resolve, 5));
async function until(met, what = "it") {
  for (let n = 0; n < 400; n++) {
    if (met()) return;
    await tick();
  }
  assert.fail(`${what} never came`);
}

// ------------------------------------------------------------------ executeTask

test("one task: real tool calls, events in order, output once, one observation, a cost that grows", async () => {
  const { controller, session, output, fs, events } = await world();
  const done = await controller.executeTask("write notes/a.txt: hello\nread notes/a.txt\nsay finished", demo);
  assert.deepEqual(types(session), [
    "turn/start", "user/message",
    "step/start", "assistant/message", "tool/call", "tool/result", "step/end",
    "step/start", "assistant/message", "tool/call", "tool/result", "step/end",
    "step/start", "assistant/message", "step/end", "turn/end",
  ]);
  assert.equal(fs.readText("/notes/a.txt"), "hello");
  assert.deepEqual(output, ["finished"]);
  const { runResult } = done;
  assert.deepEqual([runResult.status, runResult.finalAnswer, runResult.errorMessage, runResult.steps, done.warnings, done.observationsUpdated], ["completed", { content: "finished" }, null, 3, [], true]);
  const steps = session.events.filter(({ type }) => type === "step/end").map(({ data }) => data.usage.raw.cost);
  const dollars = steps.reduce((sum, cost) => sum + Math.round(cost * 1e9), 0) / 1e9;
  assert.ok(dollars > 0);
  assert.equal(Number(runResult.cost.usd), dollars);
  assert.equal(controller.sessionState.sessionCostCents, done.costCents);
  assert.deepEqual(controller.sessionState.observations, [{ task: "write notes/a.txt: hello\nread notes/a.txt\nsay finished", result: runResult, costCents: done.costCents }]);
  assert.deepEqual(events.map(({ seq }) => seq), session.events.map(({ seq }) => seq));
  assert.equal(controller.status, "idle");
  const more = await controller.executeTask("say again", demo);
  assert.equal(controller.sessionState.observations.length, 2);
  assert.ok(Math.abs(controller.sessionState.sessionCostCents - (done.costCents + more.costCents)) < 1e-9);
  assert.deepEqual(session.events.filter(({ type }) => type === "turn/start").map(({ data }) => data.turn), [1, 2]);
  assert.match(controller.getSessionCostDisplay(), /^\$0\.\d+$/);
});

test("the demo model does what it says it can", async () => {
  const { controller, session, output, fs } = await world();
  await controller.executeTask("write a.txt: one\nappend a.txt:  two\nmove a.txt to dir/b.txt\nlist", demo);
  assert.equal(fs.readText("/dir/b.txt"), "one two");
  assert.match(output.at(-1), /dir\/b\.txt/);
  await controller.executeTask("delete dir/b.txt\nthink let me see\nsay gone", demo);
  assert.equal(fs.exists("/dir/b.txt"), false);
  assert.ok(session.events.some(({ type, data }) => type === "assistant/message" && data.parts.some((part) => part.type === "reasoning" && part.text === "let me see")));
  await controller.executeTask("fail", demo);
  assert.deepEqual([last(session, "tool/result").isError, last(session, "turn/end").reason.kind], [true, "completed"]);
  const crashed = await controller.executeTask("crash", demo);
  assert.deepEqual([crashed.runResult.status, last(session, "turn/end").reason.kind, last(session, "assistant/message").partial], ["failed", "error", true]);
  assert.equal(output.at(-1), crashed.runResult.errorMessage);
  await controller.executeTask("good morning", demo);
  for (const word of ["write PATH: TEXT", "append", "read", "delete", "move A to B", "list", "say", "think", "wait", "secret", "fail", "crash"]) assert.ok(output.at(-1).includes(word), word);
  await controller.executeTask("secret", demo);
  assert.match(output.at(-1), /ghp_[A-Za-z0-9]{36}|REDACTED/);
  assert.ok(session.events.filter(({ type }) => type === "assistant/chunk").length > 10);
});

test("given objects are used as they are; what belongs to the caller is left alone", async () => {
  const sessionState = { sessionCostCents: 7, observations: [], compactionCount: 3, targetedFiles: new Set(["x"]) };
  const { store, fs, controller: first } = await world();
  const output = [];
  const controller = new ChatSessionController({ store, fs, session: first.session, sessionState, outputFn: (text) => output.push(text) });
  assert.equal(controller.session, first.session);
  assert.equal(controller.sessionState, sessionState);
  const requests = [];
  const adapter = createLlmAdapter("scripted", "script", { script: [say("from the adapter")], requests });
  const audit = store.runs.auditLogger();
  const seen = [];
  audit.addSink((event) => seen.push(event.type));
  const done = await controller.executeTask("go", { model: "nobody/nothing" }, { adapter, audit, initialObservations: ["seen before", { n: 1 }], resumedFrom: "r0" });
  assert.equal(done.runResult.status, "completed");
  assert.equal(requests.length, 1);
  assert.ok(JSON.stringify(requests[0].request.messages).includes("seen before"));
  assert.deepEqual([sessionState.compactionCount, [...sessionState.targetedFiles], sessionState.sessionCostCents], [3, ["x"], 7]);
  assert.deepEqual([seen[0], seen.at(-1)], ["run/started", "run/ended"]);
  const shown = await store.runs.showRun(done.runResult.runId);
  assert.deepEqual(shown.audit.map(({ type }) => type), seen);
  assert.equal(shown.audit[0].data.resumedFrom, "r0");
});

test("a second call while one runs is busy, from any controller of the session", async () => {
  const { store, fs, controller, session } = await world();
  const other = new ChatSessionController({ store, fs, session, outputFn: () => {} });
  const running = controller.executeTask("wait 50", demo);
  assert.equal(controller.status, "running");
  await assert.rejects(controller.executeTask("say no", demo), (error) => error instanceof SessionLogError && error.code === "busy");
  await assert.rejects(other.executeTask("say no", demo), { code: "busy" });
  assert.equal(await controller.undoLastRun(), false);
  assert.equal((await running).runResult.status, "completed");
  assert.equal(session.events.filter(({ type }) => type === "turn/start").length, 1);
});

test("what cannot be run is refused before anything is appended", async () => {
  const { controller, session, output } = await world();
  for (const config of [{ model: "nothing" }, { model: "nobody/x" }, { model: "scripted/x" }, { ...demo, maxCostUsd: "a lot" }, { ...demo, tools: [{ name: "", description: "", parameters: {}, run() {} }] }, { ...demo, tools: [...fileTools(), ...fileTools()] }]) {
    await assert.rejects(controller.executeTask("say x", config), SessionLogError);
  }
  assert.deepEqual([session.seq, output, controller.sessionState.observations, controller.status], [0, [], [], "idle"]);
  assert.equal((await controller.executeTask("say x", demo)).runResult.status, "completed");
});

test("an error thrown inside the run is a failed result", async () => {
  const { controller, session, output } = await world();
  const adapter = { provider: "p", model: "m", target: "openai-chat", async *stream() { throw new Error("boom"); } };
  const done = await controller.executeTask("go", demo, { adapter });
  assert.deepEqual([done.runResult.status, done.runResult.errorMessage, output], ["failed", "boom", ["boom"]]);
  assert.equal(controller.sessionState.observations.length, 1);
  assert.equal(last(session, "turn/end").reason.kind, "error");
});

test("faults of the store after the run are warnings, never errors", async () => {
  const backend = memoryBackend();
  const { controller, output } = await world({ backend });
  const transact = backend.transact;
  backend.transact = async (batch) => {
    if (batch.puts?.some(([key]) => key.startsWith("u/"))) throw Object.assign(new Error("disk full"), { code: "quota" });
    return transact.call(backend, batch);
  };
  const done = await controller.executeTask("say fine", demo);
  assert.equal(done.runResult.status, "completed");
  assert.equal(done.warnings.length, 1);
  assert.match(done.warnings[0], /audit/);
  assert.deepEqual(output, ["fine"]);
});

test("an outputFn that throws costs a warning", async () => {
  const { store, fs } = await world();
  const controller = new ChatSessionController({ store, fs, outputFn: () => { throw new Error("no screen"); } });
  const done = await controller.executeTask("say x", demo);
  assert.deepEqual([done.runResult.status, done.warnings.length], ["completed", 1]);
});

// ------------------------------------------------------------------------ tools

test("parallel tools run together, others alone; results come in call order", async () => {
  const { controller, session } = await world();
  const running = new Set();
  const most = {};
  const slow = (name, parallel, ms) => ({
    name, description: "", parameters: { type: "object" }, parallel,
    async run(_args, { callId }) {
      running.add(callId);
      most[callId] = running.size;
      await new Promise((resolve) => setTimeout(resolve, ms));
      running.delete(callId);
      return callId;
    },
  });
  const tools = [slow("p1", true, 30), slow("p2", true, 5), slow("b", false, 5)];
  await controller.executeTask("go", script([ask(["1", "p1"], ["2", "p2"], ["3", "b"], ["4", "p2"]), say("ok")], { config: { tools } }));
  assert.deepEqual(most, { 1: 1, 2: 2, 3: 1, 4: 1 });
  assert.deepEqual(session.events.filter(({ type }) => type === "tool/result").map(({ data }) => data.id), ["1", "2", "3", "4"]);
});

test("arguments are held against the schema, unknown tools are told; nothing of that runs", async () => {
  const { controller, session } = await world();
  let ran = 0;
  const tools = [{ name: "t", description: "", parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false }, run: () => (ran++, "ok") }];
  const bad = [{ type: "tool-call", id: "4", name: "t", args: "[1]" }, { type: "tool-call", id: "5", name: "t", args: '{"n":' }];
  await controller.executeTask("go", script([[...ask(["1", "t", { n: "x" }], ["2", "nobody"], ["3", "t", { n: 1 }]), ...bad], say("ok")], { config: { tools } }));
  const results = session.events.filter(({ type }) => type === "tool/result").map(({ data }) => [data.id, data.error?.code ?? data.content]);
  assert.deepEqual(results, [["1", "invalid_arguments"], ["2", "unknown_tool"], ["3", "ok"], ["4", "invalid_arguments"], ["5", "invalid_arguments"]]);
  assert.equal(ran, 1);
});

test("a bad tool output never costs the conversation", async () => {
  const { controller, session } = await world();
  const gives = (name, value) => ({ name, description: "", parameters: { type: "object" }, run: () => value });
  const cycle = {};
  cycle.self = cycle;
  const tools = [gives("lone", "x\ud83dy"), gives("cycle", cycle), gives("big", 10n), gives("none", undefined), gives("data", { a: [1] }), gives("parts", [{ type: "text", text: "hi" }]), { ...gives("throws"), run() { throw "words"; } }];
  const done = await controller.executeTask("go", script([ask(...tools.map(({ name }) => [name, name])), say("ok")], { config: { tools } }));
  assert.equal(done.runResult.status, "completed");
  const content = Object.fromEntries(session.events.filter(({ type }) => type === "tool/result").map(({ data }) => [data.id, data.content]));
  assert.equal(content.lone, "x\ufffdy");
  assert.deepEqual([content.data, content.parts, content.none, content.big], ['{"a":[1]}', [{ type: "text", text: "hi" }], "", "10"]);
  assert.match(content.throws, /words/);
});

test("what a failed call did to files is taken back; the rest of the run stays", async () => {
  const { controller, fs, session } = await world();
  const tools = [{ name: "half", description: "", parameters: { type: "object" }, run(_args, { fs: files }) { files.writeFile("/half.txt", "x"); throw new Error("in the middle"); } }, ...fileTools()];
  await controller.executeTask("go", script([ask(["1", "write_file", { path: "/a.txt", content: "a" }], ["2", "half"]), say("ok")], { config: { tools } }));
  assert.deepEqual([fs.exists("/half.txt"), fs.readText("/a.txt")], [false, "a"]);
  assert.equal(last(session, "tool/result").error.message, "in the middle");
});

test("a write of text that stands for something redacted is told before it is made", async () => {
  const { controller, fs } = await world();
  fs.writeFile("/held.txt", "k=[REDACTED:key]");
  const asked = [];
  const config = script([
    ask(["1", "write_file", { path: "/held.txt", content: "k=[REDACTED:key]!" }], ["2", "write_file", { path: "/new.txt", content: "[REDACTED:key]" }]), say("ok"),
  ], { config: { approve: async (request) => (asked.push(request.callId), "denied") } });
  const done = await controller.executeTask("go", config);
  assert.deepEqual(asked, ["2"]);
  assert.deepEqual([fs.readText("/held.txt"), fs.exists("/new.txt")], ["k=[REDACTED:key]!", false]);
  assert.equal(done.warnings.length, 1);
});

// ----------------------------------------------------------------------- limits

test("too many steps, too much money, an answer cut at its limit, an empty one", async () => {
  const { controller, session, output } = await world();
  const list = () => [...ask(["1", "list_files"]), { type: "usage", usage: { apiShape: "step.usage", raw: { prompt_tokens: 1, completion_tokens: 1, cost: 0.4 } } }];
  const steps = await controller.executeTask("go", script([list(), list(), list()], { config: { maxSteps: 2 } }));
  assert.deepEqual([steps.runResult.status, steps.runResult.steps, output.at(-1), steps.runResult.cost.usd], ["max-steps", 2, "[max-steps]", "0.8"]);
  const money = await controller.executeTask("go", script([list(), list(), list()], { config: { maxCostUsd: "1" } }));
  assert.deepEqual([money.runResult.status, money.runResult.cost.usd, output.at(-1)], ["budget-reached", "0.8", "[budget-reached]"]);
  assert.equal(last(session, "turn/end").reason.kind, "budget-reached");
  const raised = await controller.resumeTurn(script([say("now")], { config: { maxCostUsd: "2" } }));
  assert.deepEqual([raised.runResult.status, last(session, "turn/start").trigger.kind, output.at(-1)], ["completed", "continuation", "now"]);
  await assert.rejects(controller.resumeTurn(demo), { code: "invalid_argument" });
  const cut = await controller.executeTask("go", script([[...say("long"), { type: "finish", reason: "max-tokens" }]]));
  assert.deepEqual([cut.runResult.finalAnswer.content, last(session, "turn/end").reason.kind], ["long", "max-tokens"]);
  const empty = await controller.executeTask("go", script([[]]));
  assert.deepEqual([empty.runResult.status, last(session, "turn/end").reason.kind], ["failed", "empty"]);
});

// ------------------------------------------------------------------------- stop

test("stop keeps the partial answer, fires the signal once, and is no error; a reload shows the same (H01)", async () => {
  const backend = memoryBackend();
  const { controller, session, output, store } = await world({ backend });
  let fired = 0;
  const adapter = {
    provider: "p", model: "m", target: "openai-chat",
    async *stream(_request, { signal }) {
      signal.addEventListener("abort", () => fired++);
      yield { type: "text", text: "He" };
      yield { type: "text", text: "llo" };
      yield { type: "usage", usage: { apiShape: "step.usage", raw: { prompt_tokens: 2, completion_tokens: 1, cost: 0.25 } } };
      await new Promise(() => {});
    },
  };
  const running = controller.executeTask("q", demo, { adapter });
  await until(() => session.events.some(({ type, data }) => type === "assistant/chunk" && data.text.includes("llo")), "the second piece");
  await tick();
  controller.cancel("enough");
  assert.equal(controller.status, "stopping");
  controller.cancel();
  const done = await running;
  assert.deepEqual([done.runResult.status, done.runResult.errorMessage, fired, output, controller.status], ["cancelled", null, 1, ["[cancelled]"], "idle"]);
  const check = (of) => {
    assert.deepEqual(of.deriveMessages().map(({ role, parts, partial }) => [role, parts.map((part) => part.text).join(""), partial === true]), [["user", "q", false], ["assistant", "Hello", true]]);
    assert.deepEqual(of.events.at(-1).data.reason, { kind: "cancelled", reason: "enough" });
    assert.equal(of.usage().cost.usd, "0.25");
  };
  check(session);
  await store.dispose();
  const again = await SessionStore.open({ storage: { kind: "custom", backend } });
  check(await again.resume(session.id));
});

test("stop while tools run: what runs may end, the rest is cancelled before execution", async () => {
  const { controller, session } = await world();
  const seen = [];
  const tools = [
    { name: "obeys", description: "", parameters: { type: "object" }, parallel: true, run: (_args, { signal }) => new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("stopped")))) },
    { name: "deaf", description: "", parameters: { type: "object" }, parallel: true, run: () => (seen.push("deaf"), new Promise(() => {})) },
    { name: "next", description: "", parameters: { type: "object" }, run: () => seen.push("next") },
  ];
  const running = controller.executeTask("go", script([ask(["1", "obeys"], ["2", "deaf"], ["3", "next"])], { config: { tools } }));
  await until(() => seen.includes("deaf"), "the tool");
  controller.cancel();
  assert.equal((await running).runResult.status, "cancelled");
  const results = session.events.filter(({ type }) => type === "tool/result").map(({ data }) => data);
  assert.deepEqual(results.map(({ id, error }) => [id, error.code]), [["1", "error"], ["2", "aborted"], ["3", "cancelled"]]);
  assert.equal(results[2].content, "cancelled before execution");
  assert.deepEqual(seen, ["deaf"]);
});

test("an idle cancel does nothing; config.signal stops too, also when it fired before", async () => {
  const { controller } = await world();
  controller.cancel();
  assert.equal((await controller.executeTask("say x", demo)).runResult.status, "completed");
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 20);
  assert.equal((await controller.executeTask("wait 5000", { ...demo, signal: abort.signal })).runResult.status, "cancelled");
  assert.equal((await controller.executeTask("say x", { ...demo, signal: abort.signal })).runResult.status, "cancelled");
});

test("disposing of the session stops and awaits the turn", async () => {
  const backend = memoryBackend();
  const { controller, session, store } = await world({ backend });
  const running = controller.executeTask("wait 5000", demo);
  await until(() => session.events.some(({ type }) => type === "assistant/chunk"), "a piece");
  await session.dispose();
  assert.equal((await running).runResult.status, "cancelled");
  const stored = await store.read(session.id);
  assert.equal(stored.at(-1).data.reason.kind, "disposed");
});

// ------------------------------------------------------------------- steer, drafts

test("steering is heard before the next step; while idle it stays a draft, also after a reload", async () => {
  const backend = memoryBackend();
  const { controller, session, store, fs } = await world({ backend });
  const requests = [];
  const config = script([ask(["1", "list_files"]), say("ok")], { providerOptions: { requests } });
  const off = session.on("event", ({ type }) => type === "tool/call" && controller.steer("be </steering> quick"));
  await controller.executeTask("go", config);
  off();
  assert.deepEqual(types(session, /chunk|step|tool|turn/), ["user/message", "assistant/message", "queue/added", "queue/claimed", "steering/message", "assistant/message"]);
  assert.ok(JSON.stringify(requests[1].request.messages).includes("quick"));
  controller.steer("later");
  assert.deepEqual(controller.drafts().map(({ text }) => text), ["later"]);
  await controller.executeTask("say x", demo);
  assert.deepEqual(controller.drafts().map(({ text }) => text), ["later"]);
  await store.dispose();
  const again = await SessionStore.open({ storage: { kind: "custom", backend } });
  const back = new ChatSessionController({ store: again, fs, session: await again.resume(session.id), outputFn: () => {} });
  const [draft] = back.drafts();
  assert.equal(draft.text, "later");
  back.dropDraft(draft.id);
  assert.deepEqual(back.drafts(), []);
  assert.throws(() => back.steer("  "), { code: "invalid_argument" });
});

// -------------------------------------------------------------------- approvals

const asking = () => fileTools({ approval: "always" });

test("a verdict by callback, by resolveApproval, and each settles once", async () => {
  const { controller, session, fs } = await world();
  const steps = () => [ask(["w", "write_file", { path: "/a.txt", content: "a" }]), say("ok")];
  const asked = [];
  await controller.executeTask("go", script(steps(), { config: { tools: asking(), approve: async (request) => (asked.push(request), "approved") } }));
  assert.deepEqual(asked, [{ callId: "w", name: "write_file", args: { path: "/a.txt", content: "a" } }]);
  assert.equal(fs.readText("/a.txt"), "a");
  fs.rm("/a.txt");
  const running = controller.executeTask("go", script(steps(), { config: { tools: asking() } }));
  await until(() => controller.status === "waiting-approval", "the question");
  assert.throws(() => controller.resolveApproval("nobody", "approved"), { code: "not_found" });
  controller.resolveApproval("w", "denied", "not now");
  controller.resolveApproval("w", "approved");
  await running;
  assert.equal(session.events.filter(({ type }) => type === "approval/resolved").length, 2);
  assert.equal(fs.exists("/a.txt"), false);
  assert.match(last(session, "tool/result").content, /not now/);
  assert.throws(() => controller.resolveApproval("w", "approved"), { code: "not_found" });
});

test("stop while a verdict is awaited leaves no question open", async () => {
  const { controller, session } = await world();
  const running = controller.executeTask("go", script([ask(["w", "write_file", { path: "/a", content: "" }])], { config: { tools: asking() } }));
  await until(() => controller.status === "waiting-approval", "the question");
  controller.cancel();
  assert.equal((await running).runResult.status, "cancelled");
  assert.equal(last(session, "approval/resolved").verdict, "denied");
});

test("an approval survives a reload: answered there, the turn goes on and the tool runs once", async () => {
  const backend = memoryBackend();
  const { controller, session, fs, store } = await world({ backend });
  const config = (steps) => script(steps, { config: { tools: asking() } });
  const running = controller.executeTask("go", config([ask(["w", "write_file", { path: "/a.txt", content: "once" }])]));
  await until(() => controller.status === "waiting-approval", "the question");
  await store.dispose();
  assert.equal((await running).runResult.status, "suspended");
  const again = await SessionStore.open({ storage: { kind: "custom", backend } });
  const back = await again.resume(session.id, { recover: "resume" });
  assert.deepEqual(back.pendingCalls(), [{ id: "w", name: "write_file", state: "not-started" }]);
  const files = await VirtualFs.open();
  const other = new ChatSessionController({ store: again, fs: files, session: back, outputFn: () => {} });
  await assert.rejects(other.executeTask("say x", demo), { code: "open_turn" });
  other.resolveApproval("w", "approved");
  const done = await other.resumeTurn(config([say("went on")]));
  assert.deepEqual([done.runResult.status, done.runResult.finalAnswer.content, files.readText("/a.txt")], ["completed", "went on", "once"]);
  assert.equal(back.events.filter(({ type }) => type === "approval/requested").length, 1);
  assert.equal(back.events.filter(({ type }) => type === "tool/call").length, 1);
  assert.equal(fs.exists("/a.txt"), false);
});

// ---------------------------------------------------------------------- recovery

test("a session that was cut off in a tool: `close` closes it, `resume` runs again only what is harmless", async () => {
  for (const idempotent of [false, true]) {
    const backend = memoryBackend();
    const { controller, session } = await world({ backend });
    let ran = 0;
    const hang = { name: "t", description: "", parameters: { type: "object" }, idempotent, run: () => (ran++, new Promise(() => {})) };
    controller.executeTask("go", script([ask(["1", "t"])], { config: { tools: [hang] } }));
    await until(() => ran === 1, "the tool");
    // The page is gone here: what is stored is all there is.
    const closed = await SessionStore.open({ storage: { kind: "custom", backend: snapshot(backend) } });
    const shut = await closed.resume(session.id);
    assert.equal(shut.events.at(-1).data.reason.kind, "interrupted");
    const open = await SessionStore.open({ storage: { kind: "custom", backend: snapshot(backend) } });
    const back = await open.resume(session.id, { recover: "resume" });
    assert.deepEqual(back.pendingCalls(), [{ id: "1", name: "t", state: "outcome-unknown" }]);
    const other = new ChatSessionController({ store: open, fs: await VirtualFs.open(), session: back, outputFn: () => {} });
    const tool = { ...hang, run: () => (ran++, "again") };
    const done = await other.resumeTurn(script([say("went on")], { config: { tools: [tool] } }));
    assert.equal(done.runResult.status, "completed");
    const [{ data }] = back.events.filter(({ type }) => type === "tool/result");
    assert.deepEqual(idempotent ? [ran, data.content] : [ran, data.error.code], idempotent ? [2, "again"] : [1, "outcome_unknown"]);
  }
});

test("a call whose arguments or name hold a marker is never run again, however harmless", async () => {
  for (const [args, runs] of [[{ text: "plain" }, 2], [{ text: ["key is gh", "p_Zq81kTmVx0bYw3RcNe57PsDhJ2gLfUa6oQ1y"].join("") }, 1]]) {
    const backend = memoryBackend();
    const { controller, session, store } = await world({ backend });
    store.registerScrubber({ builtin: "secrets" });
    const ran = [];
    const hang = { name: "t", description: "", parameters: { type: "object" }, idempotent: true, run: (given) => (ran.push(given.text), new Promise(() => {})) };
    controller.executeTask("go", script([ask(["1", "t", args])], { config: { tools: [hang] } }));
    await until(() => ran.length === 1, "the tool");
    const open = await SessionStore.open({ storage: { kind: "custom", backend: snapshot(backend) } });
    const back = await open.resume(session.id, { recover: "resume" });
    const other = new ChatSessionController({ store: open, fs: await VirtualFs.open(), session: back, outputFn: () => {} });
    const done = await other.resumeTurn(script([say("went on")], { config: { tools: [{ ...hang, run: (given) => (ran.push(given.text), "again") }] } }));
    assert.equal(done.runResult.status, "completed");
    assert.equal(ran.length, runs, ran.join());
    const [{ data }] = back.events.filter(({ type }) => type === "tool/result");
    if (runs === 1) assert.equal(data.error.code, "outcome_unknown");
    else assert.equal(data.content, "again");
  }
});

function snapshot(backend) {
  const copy = memoryBackend();
  for (const [key, value] of backend.map) copy.map.set(key, value.slice());
  return copy;
}

// -------------------------------------------------------------------------- undo

test("undo, redo, and undo with somebody else's edit in the way", async () => {
  const { controller, fs, output, session, store } = await world();
  assert.equal(await controller.undoLastRun(), false);
  assert.equal(output.at(-1), "There is nothing to undo.");
  fs.writeFile("/kept.txt", "before");
  const { runResult } = await controller.executeTask("write kept.txt: after\nwrite new.txt: n\nsay ok", demo);
  assert.equal(await store.runs.latestRunWithUndo(), runResult.runId);
  const cost = controller.getSessionCost().picodollars;
  assert.equal(await controller.undoLastRun(), true);
  assert.equal(output.at(-1), "Undone: 1 restored, 1 deleted.");
  assert.deepEqual([fs.readText("/kept.txt"), fs.exists("/new.txt")], ["before", false]);
  assert.deepEqual(last(session, "undo/applied"), { runId: runResult.runId, restored: ["/kept.txt"], deleted: ["/new.txt"] });
  assert.equal(await store.runs.latestRunWithUndo(), null);
  assert.equal(controller.getSessionCost().picodollars, cost);
  assert.equal(await controller.redoLastUndo(), true);
  assert.deepEqual([fs.readText("/kept.txt"), last(session, "undo/redone").runId], ["after", runResult.runId]);
  assert.equal(await store.runs.latestRunWithUndo(), runResult.runId);
  fs.writeFile("/kept.txt", "mine");
  fs.writeFile("/new.txt", "mine too");
  const before = output.length;
  assert.equal(await controller.undoLastRun(), false);
  assert.equal(output.length - before, 2);
  assert.deepEqual([fs.readText("/kept.txt"), await store.runs.latestRunWithUndo()], ["mine", runResult.runId]);
  assert.equal(await controller.undoLastRun({ force: true }), true);
  assert.deepEqual([fs.readText("/kept.txt"), last(session, "undo/applied").forced], ["before", true]);
});

test("rewind takes back conversation and files together, after a look ahead, and a compaction is no barrier", async () => {
  const { controller, fs, session } = await world();
  await controller.executeTask("write a.txt: 1\nsay first", demo);
  await controller.executeTask("write a.txt: 2\nwrite b.txt: 2\nsay second", demo);
  await session.compact(() => "what came so far");
  await controller.executeTask("write a.txt: 3\nsay third", demo);
  const second = session.events.filter(({ type }) => type === "user/message")[1].seq;
  const seq = session.seq;
  const ahead = await controller.rewind(second, { preview: true });
  assert.deepEqual([ahead.ok, ahead.restored, ahead.deleted, session.seq, fs.readText("/a.txt")], [true, ["/a.txt"], ["/b.txt"], seq, "3"]);
  const report = await controller.rewind(second);
  assert.deepEqual([report.ok, fs.readText("/a.txt"), fs.exists("/b.txt")], [true, "1", false]);
  const texts = session.deriveMessages().flatMap(({ parts }) => parts.map((part) => part.text ?? ""));
  assert.ok(texts.includes("first") && !texts.some((text) => /second|third|what came/.test(text)), texts.join("|"));
  assert.equal((await controller.executeTask("say fourth", demo)).runResult.status, "completed");
  await assert.rejects(controller.rewind(0), { code: "invalid_boundary" });
});

test("files go back to before any user message, and forward again; others' sessions on the same files stay", async () => {
  const { controller, fs, store, session } = await world();
  const states = [];
  const state = () => Object.fromEntries(fs.walk("/").filter(({ type }) => type === "file").map(({ path }) => [path, fs.readText(path)]));
  for (const [at, task] of ["write a.txt: 1", "append a.txt: 2\nwrite d/b.txt: b", "say nothing to files", "delete d\nwrite a.txt: 3", "move a.txt: c.txt"].entries()) {
    states.push(state());
    await controller.executeTask(`${task}\nsay ok`, demo);
    if (at === 2) await session.compact(() => "so far");
  }
  states.push(state());
  // Another session on the same files.
  const other = new ChatSessionController({ store, fs, outputFn: () => {} });
  await other.executeTask("write other.txt: theirs\nsay ok", demo);
  const messages = session.events.filter(({ type }) => type === "user/message").map(({ seq }) => seq);
  for (let at = messages.length - 1; at >= 0; at--) {
    const report = await controller.rewind(messages[at], { conversation: false });
    assert.equal(report.ok, true, JSON.stringify(report));
    assert.deepEqual(state(), { ...states[at], "/other.txt": "theirs" }, `before message ${at}`);
    while (fs.redoable.length > 0) assert.equal(await controller.redoLastUndo(), true);
    assert.deepEqual(state(), { ...states.at(-1), "/other.txt": "theirs" }, `forward again from ${at}`);
  }
});

test("undo and redo after a reload, from another session", async () => {
  const backend = memoryBackend();
  const first = await world({ backend });
  await first.controller.executeTask("write kept.txt: 1\nsay ok", demo);
  await first.controller.executeTask("write kept.txt: 2\nwrite new.txt: n\nsay ok", demo);
  await first.store.dispose();
  await first.fs.dispose();
  const second = await world({ backend });
  assert.equal(await second.controller.undoLastRun(), true);
  assert.deepEqual([second.fs.readText("/kept.txt"), second.fs.exists("/new.txt")], ["1", false]);
  assert.deepEqual(last(second.session, "undo/applied").deleted, ["/new.txt"]);
  await second.store.dispose();
  await second.fs.dispose();
  const third = await world({ backend });
  assert.equal(await third.controller.redoLastUndo(), true);
  assert.deepEqual([third.fs.readText("/kept.txt"), last(third.session, "undo/redone").restored], ["2", ["/kept.txt", "/new.txt"]]);
});

test("a run that changed what is too large to be kept says so; its undo leaves that alone when asked to", async () => {
  const { controller, fs, output } = await world();
  fs.setMaxImageBytes(10);
  fs.writeFile("/large.txt", "x".repeat(11));
  fs.writeFile("/small.txt", "x");
  const done = await controller.executeTask("write large.txt: new\nwrite small.txt: new\nsay ok", demo);
  assert.equal(done.warnings.length, 1);
  assert.match(done.warnings[0], /undo cannot take it back: \/large\.txt$/);
  assert.equal(await controller.undoLastRun(), false);
  assert.match(output.slice(1).join("\n"), /\/large\.txt/);
  assert.deepEqual([fs.readText("/large.txt"), fs.readText("/small.txt")], ["new", "new"]);
  assert.equal(await controller.undoLastRun({ skip: true }), true);
  assert.deepEqual([fs.readText("/large.txt"), fs.readText("/small.txt")], ["new", "x"]);
});

// ------------------------------------------------------------ the log, compaction, runs

test("an overflow is compacted away once; a long session is compacted at the end of the turn", async () => {
  const server = await provider([{ status: 400, json: { error: { code: "context_length_exceeded", message: "too long" } } }, { pieces: [openai.text(["fits now"])] }]);
  const { controller, session } = await world();
  await controller.executeTask("say some history", demo);
  const done = await controller.executeTask("go", { model: "openai-compatible/m", providerOptions: { baseUrl: server.url } });
  assert.deepEqual([done.runResult.status, done.runResult.finalAnswer?.content, server.requests.length], ["completed", "fits now", 2]);
  assert.equal(session.events.filter(({ type }) => type === "session/compacted").length, 1);
  const compaction = { promptTokens: 1, summarize: () => "in short" };
  await controller.executeTask("say more", { ...demo, compaction });
  assert.deepEqual([last(session, "session/compacted").summary, types(session).at(-1)], ["in short", "session/compacted"]);
  const failing = { promptTokens: 1, summarize: () => { throw new Error("no"); } };
  const kept = await controller.executeTask("say more", { ...demo, compaction: failing });
  assert.deepEqual([kept.runResult.status, types(session).at(-1)], ["completed", "turn/end"]);
  await server.close();
});

test("keys of an adapter are in no stored byte, event, audit or output", async () => {
  const key = ["sk", "made-up-key-9876543210"].join("-");
  const server = await provider([{ pieces: [openai.text([`the key is ${key.slice(0, 9)}`, `${key.slice(9)}!`])] }]);
  const backend = memoryBackend();
  const { controller, store, events, output } = await world({ backend });
  const done = await controller.executeTask("go", { model: "openai-compatible/m", providerOptions: { baseUrl: server.url, apiKey: key } });
  await store.flush();
  const stored = [...backend.map.values()].map((bytes) => new TextDecoder().decode(bytes)).join("\n");
  assert.ok(!stored.includes(key), "the key is stored");
  assert.ok(!JSON.stringify([events, output, done, controller.sessionState.observations]).includes(key), "the key is told");
  assert.equal(server.requests[0].headers.authorization, `Bearer ${key}`);
  await server.close();
});

test("runs: the latest first, by session, with their audit", async () => {
  const { controller, store, session } = await world();
  const first = await controller.executeTask("say 1", demo);
  await tick();
  const second = await controller.executeTask("write a: b", demo);
  const runs = await store.runs.listRuns();
  assert.deepEqual(runs.map(({ runId }) => runId), [second.runResult.runId, first.runResult.runId]);
  assert.deepEqual([runs[0].task, runs[0].status, runs[0].hasUndo, runs[1].hasUndo, runs[0].sessionId], ["write a: b", "completed", true, false, session.id]);
  assert.deepEqual((await store.runs.listRuns({ limit: 1 })).length, 1);
  assert.deepEqual(await store.runs.listRuns({ sessionId: "other" }), []);
  const { audit } = await store.runs.showRun(second.runResult.runId);
  assert.deepEqual(audit.map(({ type }) => type), ["run/started", "request/sent", "tool/started", "tool/completed", "request/sent", "run/ended"]);
  await assert.rejects(store.runs.showRun("nobody"), { code: "not_found" });
});
