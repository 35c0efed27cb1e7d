// Scrubbers at the boundary of the log: what a store keeps, shows, derives and exports.
import { test } from "node:test";
import assert from "node:assert/strict";
import init, { ChatSessionController, SessionStore, VirtualFs } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

await init();

const token = ["sk-ant-", "api03-", "Zx9".repeat(31), "AA"].join("");
const custom = (backend, more) => ({ storage: { kind: "custom", backend }, ...more });
const stored = (backend) => [...backend.map.values()].map((value) => Buffer.from(value).toString()).join("\n");
const usage = { apiShape: "openai.chat", raw: { prompt_tokens: 1 } };

test("D01: one funnel: no stored, shown, derived or exported text holds the secret", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend, { scrubbers: [{ builtin: "secrets" }] }));
  const heard = [];
  store.on("session/event", (event) => heard.push(JSON.stringify(event)));
  const session = store.create("s1", { record: { last_prompt: `key ${token}` }, seed: [
    { id: "0000000000000001", sessionId: "x", seq: 0, at: 0, type: "user/message", data: { text: `seeded ${token}` } },
  ] });
  session.append("user/message", { text: `use ${token} now` });
  session.append("assistant/message", { parts: [{ type: "text", text: token }, { type: "tool-call", id: "c1", name: "run", args: { cmd: `API_KEY=${token}`, [`k ${token}`]: 1 } }] });
  session.append("tool/call", { id: "c1", name: "run", args: { cmd: `API_KEY=${token}` } });
  session.append("tool/result", { id: "c1", content: `out ${token}` });
  session.append("session/titled", { title: `about ${token}` });
  session.append("error", { message: `failed with ${token}` });
  session.append("step/end", { turn: 1, step: 1, usage });
  await session.compact(() => `summary ${token}`);
  await store.updateRecord("s1", { first_preview: `see ${token}`, pending_question: { deep: [token] } });
  await session.appendDurable("user/message", { text: `durable ${token}` });
  await store.flush();
  const exported = Buffer.from(await store.exportSession("s1")).toString();
  const places = [stored(backend), exported, JSON.stringify(session.events), JSON.stringify(session.deriveMessages()), session.title, heard.join(), JSON.stringify(await store.record("s1")), JSON.stringify(await store.sessions())];
  for (const [at, place] of places.entries()) assert.ok(!place.includes(token), `place ${at}`);
  assert.match(session.event(1).data.text, /^use \[REDACTED:[^\]]+\] now$/);
  assert.match(exported, /out \[REDACTED:/);
  assert.equal(session.verify(), null);
  const other = await SessionStore.open(custom(memoryBackend(), { scrubbers: [{ values: ["use [REDACTED"] }] }));
  const { session: imported } = await other.importSession(exported);
  assert.ok(!JSON.stringify(imported.events).includes("use [REDACTED"));
  assert.equal(imported.verify(), null);
});

test("streams hold back what may become a secret, and nothing else", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" }, scrubbers: [{ builtin: "secrets" }] });
  const session = store.create();
  const stream = session.openStream({ turn: 1, step: 1 });
  const text = `The key is ${token}, keep it.`;
  for (const unit of text) stream.push(unit);
  stream.end();
  const joined = session.events.map((e) => e.data.text).join("");
  assert.ok(!joined.includes("Zx9Zx9"));
  assert.match(joined, /^The key is \[REDACTED:[^\]]+\], keep it\.$/);
  assert.equal(stream.text, joined);
});

test("registration: order, identity, disposers, contract", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create();
  const say = (text) => session.append("user/message", { text }).data.text;
  assert.equal(store.scrubbing, false);
  const a = (text) => text.replaceAll("a", "b");
  const b = { name: "bc", scrub: (text) => text.replaceAll("b", "c") };
  const offA = store.registerScrubber(a);
  const offB = store.registerScrubber(b);
  const offA2 = store.registerScrubber(a);
  assert.equal(store.scrubbing, true);
  assert.equal(say("a"), "c");
  offA();
  offA();
  // The last matching registration went, the first still stands before b.
  assert.equal(say("a"), "c");
  offB();
  assert.equal(say("a"), "b");
  offA2();
  assert.equal(store.scrubbing, false);
  assert.equal(say("a"), "a");
  const seq = session.seq;
  for (const bad of [() => 5, () => undefined, () => "x\ud83d"]) {
    const off = store.registerScrubber({ name: "bad", scrub: bad });
    assert.throws(() => say("x"), (e) => e.code === "scrubber_contract" && /bad/.test(e.message));
    off();
  }
  const boom = new Error("mine");
  const off = store.registerScrubber(() => { throw boom; });
  assert.throws(() => say("x"), (e) => e === boom);
  await assert.rejects(session.appendDurable("user/message", { text: "x" }), (e) => e === boom);
  off();
  assert.equal(session.seq, seq);
  assert.throws(() => store.registerScrubber({ values: ["short"] }), { code: "scrubber_refused" });
  assert.throws(() => store.registerScrubber({ pattern: "(a)\\1" }), { code: "scrubber_refused" });
  assert.throws(() => store.registerScrubber({ builtin: "nothing" }), { code: "scrubber_refused" });
  // A scrubber may use the session it scrubs for.
  let depth = 0;
  const offInner = store.registerScrubber((text) => {
    if (depth++ === 0) session.append("user/message", { text: "inner" });
    return text;
  });
  assert.equal(say("outer"), "outer");
  offInner();
  assert.deepEqual(session.events.slice(-2).map((e) => e.data.text), ["inner", "outer"]);
});

test("approvals compare in stored form", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" }, scrubbers: [{ values: ["correct-horse"] }] });
  const form = store.storedForm({ id: "correct-horse", n: 1.5, list: ["a correct-horse b"] });
  assert.ok(!JSON.stringify(form).includes("correct-horse"));
  assert.equal(form.n, 1.5);
});

test("rescrub: everything stored is rewritten in place, the chain holds, a second scan finds nothing", async () => {
  const backend = memoryBackend();
  const secret = "blue-elephant-7";
  const store = await SessionStore.open(custom(backend));
  const session = store.create("live");
  session.append("user/message", { text: `it is ${secret}` });
  const stream = session.openStream({ turn: 1, step: 1 });
  stream.push("so blue-ele");
  stream.push("phant-7 then");
  stream.end();
  session.append("assistant/message", { parts: [{ type: "text", text: "fine" }] });
  session.deriveMessages();
  const child = store.fork("live", { id: "child" });
  child.append("user/message", { text: `${secret} again` });
  const idle = store.create("idle");
  idle.append("queue/added", { id: "q1", text: secret });
  await store.updateRecord("idle", { prompt_notes: [secret] });
  const runner = new ChatSessionController({ store, fs: await VirtualFs.open(), outputFn: () => {} });
  await runner.executeTask(`say ${secret}`, { model: "scripted/demo" });
  store.runs.auditLogger().record({ type: "note", data: { said: secret } });
  await idle.dispose();
  await store.flush();
  const ids = session.events.map((e) => e.id);
  for (const prefix of ["s/", "r/", "u/"]) {
    const told = [...backend.map].some(([key, value]) => key.startsWith(prefix) && new TextDecoder().decode(value).includes(secret));
    assert.ok(told, `nothing to scrub under ${prefix}`);
  }
  const report = await store.rescrub({ values: [secret], name: "elephants" });
  assert.equal(report.remaining, 0);
  assert.ok(report.events >= 4);
  for (const place of [stored(backend), JSON.stringify(session.events), JSON.stringify(child.events), JSON.stringify(session.deriveMessages()), JSON.stringify(await store.record("idle"))]) {
    assert.ok(!place.includes("elephant-7") && !place.includes("blue-ele"));
  }
  assert.deepEqual(session.events.slice(0, ids.length).map((e) => e.id), ids);
  assert.deepEqual([session.verify(), child.verify()], [null, null]);
  assert.equal(session.events.at(-1).type, "session/rescrubbed");
  session.append("user/message", { text: "goes on" });
  await store.dispose();
  const again = await SessionStore.open(custom(backend));
  for (const id of ["live", "child", "idle"]) {
    const resumed = await again.resume(id);
    assert.equal(resumed.verify(), null, id);
    assert.ok(resumed.events.some((e) => e.type === "session/rescrubbed"), id);
  }
  assert.equal(again.get("live").events.at(-1).data.text, "goes on");
  assert.deepEqual(await again.rescrub({ values: [secret] }), { events: 0, remaining: 0 });
});
