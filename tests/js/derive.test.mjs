import { test } from "node:test";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { modelMessageSchema } from "ai";
import { convertToLanguageModelPrompt } from "ai/internal";
import init, { SessionStore } from "sessionlog";

await init();
const store = await SessionStore.open({ storage: { kind: "memory" } });
const TARGETS = ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"];
const call = (id, args = {}) => ({ type: "tool-call", id, name: "edit", args });

function sample() {
  const session = store.create();
  session.append("user/message", { text: "go" });
  session.append("assistant/message", { parts: [{ type: "text", text: "sure" }, call("t1", { n: 1.5, 10: 0, 2: "é" }), call("t2")] });
  session.append("tool/result", { id: "t1", content: "ok" });
  return session;
}

test("messages are frozen and shared, arrays fresh, the snapshot the same until something changes", () => {
  const session = sample();
  const [first, second] = [session.deriveMessages(), session.deriveMessages()];
  assert.notEqual(first, second);
  assert.deepEqual(first.map((m) => m.role), ["user", "assistant", "tool"]);
  assert.ok(first.every((m, i) => m === second[i] && Object.isFrozen(m) && Object.isFrozen(m.parts) && Object.isFrozen(m.parts[0])));
  assert.ok(Object.isFrozen(first[1].parts[1].args));
  const snapshot = session.getSnapshot();
  session.append("assistant/chunk", { turn: 1, step: 1, kind: "text", text: "x" });
  assert.equal(session.getSnapshot(), snapshot);
  session.append("user/message", { text: "more" });
  assert.notEqual(session.getSnapshot(), snapshot);
  assert.equal(session.getSnapshot()[0], first[0]);
  first.length = 0;
  assert.equal(session.deriveMessages().length, 4);
  assert.deepEqual(session.deriveMessages({ upto: 1 }), session.deriveMessages().slice(0, 1));
  session.append("session/rewound", { uptoSeq: 0 });
  assert.deepEqual(session.getSnapshot().map((m) => m.sources[0]), [0]);
  assert.equal(session.getSnapshot()[0], snapshot[0]);
});

test("the digest is that of what JSON.stringify prints, and a request given out may be changed", () => {
  const session = sample();
  for (const target of TARGETS) {
    const request = session.deriveRequest({ target, system: "be good" });
    const { system, messages } = request;
    const printed = JSON.stringify(system === undefined ? { target, messages } : { target, system, messages });
    assert.equal(request.digest, createHash("sha256").update(printed).digest("hex"), target);
    request.messages[0].role = "changed";
    request.messages.pop();
    assert.deepEqual(session.deriveRequest({ target, system: "be good" }), { ...request, messages: JSON.parse(printed).messages });
  }
});

test("one more event changes what a cached request says as deriving anew would", () => {
  const session = sample();
  const more = [
    ["user/message", { text: "next" }], ["assistant/message", { parts: [call("t1", { n: 2 })] }], ["tool/result", { id: "t2", content: "late" }],
    ["session/compacted", { summary: "S", uptoSeq: 3 }], ["session/rewound", { uptoSeq: 5 }], ["user/message", { text: "end" }],
  ];
  for (const [type, data] of more) {
    session.append(type, data);
    for (const target of TARGETS) {
      const again = store.create(undefined, { seed: session.events.map((e) => ({ ...e })) });
      assert.deepEqual(session.deriveRequest({ target }), again.deriveRequest({ target }), `${type} ${target}`);
    }
  }
});

test("the invariant lets through what the log yields, copied or not, and names the first difference", () => {
  const session = sample();
  session.assertLogInvariant(session.deriveMessages());
  session.assertLogInvariant(structuredClone(session.deriveMessages()));
  const refused = (outbound, index) => assert.throws(() => session.assertLogInvariant(outbound), (e) => e.code === "log_invariant" && e.details.index === index);
  const messages = structuredClone(session.deriveMessages());
  messages[1].parts[0].text = "other";
  refused(messages, 1);
  refused(messages.slice(0, 1), 1);
  for (const target of TARGETS) {
    const options = { target, system: "s", toolCallId: { pattern: "^[a-z0-9]{12}$" } };
    const request = session.deriveRequest(options);
    session.assertLogInvariant(request);
    session.assertLogInvariant(JSON.parse(JSON.stringify(request)));
    const changed = structuredClone(request);
    changed.messages.at(-1).extra = true;
    refused(changed, request.messages.length - 1);
  }
  const stale = session.deriveRequest({ target: "anthropic" });
  session.append("user/message", { text: "more" });
  assert.throws(() => session.assertLogInvariant(stale), { code: "log_invariant" });
  for (const bad of [{ target: "nope" }, {}, undefined, null, { target: "gemini", maxMessages: 0 }, { target: "gemini", upto: 1n }]) {
    assert.throws(() => session.deriveRequest(bad), { code: "invalid_argument", name: "SessionLogError" });
  }
});

/** A small random source: the same seed gives the same log. */
function random(seed) {
  return (n) => {
    seed = (Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return (seed >>> 3) % n;
  };
}

function randomEvent(r) {
  const id = () => ["call_1", "call_2", "a:b", "", "x".repeat(70)][r(5)];
  const text = () => ["", " \n", "hello", "bye 🔥"][r(4)];
  const png = { type: "image", mediaType: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" };
  const part = () => [
    () => ({ type: "text", text: text() }),
    () => ({ type: "tool-call", id: id(), name: ["read", "a b"][r(2)], args: [{}, { q: 1 }, "", [1]][r(4)], ...(r(5) === 0 ? { providerExecuted: true } : {}) }),
    () => ({ type: "reasoning", text: "hm", ...(r(2) ? { signature: "c2ln" } : {}) }),
    () => ({ type: "tool-result", id: id(), content: "inline" }),
  ][r(4)]();
  return [
    () => ["user/message", { text: text() }],
    () => ["user/message", { parts: [{ type: "text", text: text() }, png, { ...png, mediaType: "application/pdf", type: "file" }] }],
    () => ["assistant/message", { parts: Array.from({ length: r(5) }, part) }],
    () => ["assistant/message", { parts: Array.from({ length: r(5) }, part), provider: "anthropic", model: "m" }],
    () => ["tool/result", { id: id(), content: [text(), [{ type: "text", text: text() }, png]][r(2)], ...(r(4) ? {} : { isError: true }) }],
    () => ["tool/result", { id: id(), content: "done" }],
    () => ["approval/resolved", { callId: id(), verdict: "denied" }],
    () => ["session/rewound", { uptoSeq: r(12) }],
    () => ["session/compacted", { summary: text() || "s", uptoSeq: r(12) }],
  ][r(9)]();
}

test("the AI SDK takes every prefix of generated logs and makes a prompt of it", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const r = random(seed * 7919);
    const session = store.create();
    for (let i = 0; i <= 30; i++) {
      const { messages, system, repairs } = session.deriveRequest({ target: "ai-sdk", system: "be good" });
      assert.ok(!repairs.some((repair) => repair.code === "invalid_request"), JSON.stringify(repairs));
      for (const message of messages) {
        const verdict = modelMessageSchema.safeParse(message);
        assert.ok(verdict.success, `seed ${seed}, ${i}: ${JSON.stringify(message)} ${verdict.error}`);
      }
      const prompt = await convertToLanguageModelPrompt({ prompt: { system, instructions: system, messages }, supportedUrls: { "*/*": [/.*/] }, download: undefined });
      assert.ok(prompt.length >= messages.length, `seed ${seed}, ${i}`);
      session.append(...randomEvent(r));
    }
    await session.dispose();
  }
});
