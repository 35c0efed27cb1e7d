// Lessons from the field, part A, through the whole package: stream, log, store, reload, request.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { ChatSessionController, SessionStore, VirtualFs } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

before(() => init());

const open = (backend) => SessionStore.open({ storage: { kind: "custom", backend } });
const call = (id, args = {}) => ({ type: "tool-call", id, name: "edit", args });

test("A01: an interrupted round is answered in the next message; nothing in the log changes, twice gives the same", async () => {
  const store = await open(memoryBackend());
  const session = store.create();
  session.append("user/message", { text: "go" });
  session.append("assistant/message", { parts: [call("t1"), call("t2")] });
  session.append("tool/result", { id: "t1", content: "ok" });
  session.append("user/message", { text: "next" });
  const before = JSON.stringify(session.events);
  const [first, second] = [1, 2].map(() => JSON.stringify(session.deriveRequest({ target: "anthropic" })));
  assert.equal(first, second);
  assert.equal(JSON.stringify(session.events), before);
  const { messages, repairs } = JSON.parse(first);
  assert.deepEqual(messages[2].content.map((b) => [b.type, b.tool_use_id ?? b.text, b.is_error]), [["tool_result", "t1", undefined], ["tool_result", "t2", true], ["text", "next", undefined]]);
  assert.deepEqual(repairs.map(({ code, seq, callId }) => [code, seq, callId]), [["missing_result", 1, "t2"]]);
  await store.dispose();
});

test("A11: thinking streams in pieces, is stored, reloaded and sent back byte for byte; a cut-off thought is not sent as one", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const steps = [
    [{ type: "reasoning", text: "a" }, { type: "reasoning", text: "b", signature: "Zm9-_x==" }, { type: "reasoning", text: "", redacted: "QQ==" }, { type: "tool-call", id: "t1", name: "look", args: "{}" }, { type: "finish", reason: "tool-calls" }],
    [{ type: "reasoning", text: "c" }, new Error("the line went dead")],
  ];
  const adapter = {
    provider: "anthropic", model: "claude-x", target: "anthropic",
    async *stream() {
      for (const chunk of steps.shift()) {
        if (chunk instanceof Error) throw chunk;
        yield chunk;
      }
    },
  };
  const controller = new ChatSessionController({ store, fs: await VirtualFs.open({}), outputFn: () => {} });
  const tools = [{ name: "look", description: "looks", parameters: { type: "object" }, run: () => "seen" }];
  const done = await controller.executeTask("go", { model: "anthropic/claude-x", tools }, { adapter });
  assert.equal(done.runResult.status, "failed");
  const { id } = controller.session;
  await store.dispose();
  const again = await open(backend);
  const session = await again.resume(id);
  session.append("user/message", { text: "next" });
  const same = { target: "anthropic", provider: "anthropic", model: "claude-x" };
  const { messages, repairs } = session.deriveRequest(same);
  assert.deepEqual(messages[1].content, [
    { type: "thinking", thinking: "ab", signature: "Zm9-_x==" }, { type: "redacted_thinking", data: "QQ==" }, { type: "tool_use", id: "t1", name: "look", input: {} },
  ]);
  assert.equal(JSON.stringify(messages).split('"thinking":').length, 2);
  assert.ok(repairs.some(({ code }) => code === "unsigned_reasoning"));
  await again.dispose();
});

test("A13: what compact keeps never begins within a round", async () => {
  const store = await open(memoryBackend());
  const session = store.create();
  const say = (text) => session.append("user/message", { text });
  say("u1");
  session.append("assistant/message", { parts: ["t1", "t2", "t3"].map((id) => call(id)) });
  for (const id of ["t1", "t2", "t3"]) session.append("tool/result", { id, content: "r".repeat(200) });
  session.append("assistant/message", { parts: [{ type: "text", text: "a2" }] });
  say("u2");
  await session.compact((covered) => `summary of ${covered.length}`, { keepTokens: 120 });
  assert.deepEqual(session.deriveMessages().map(({ role }) => role), ["user", "assistant", "tool", "tool", "tool", "assistant", "user"]);
  assert.equal(session.deriveMessages()[0].parts[0].text, "summary of 1");
  const { repairs } = session.deriveRequest({ target: "openai-chat" });
  assert.deepEqual(repairs, []);
  await store.dispose();
});

test("A15: a broken half is refused or becomes U+FFFD at the boundary, and never reaches a request", async () => {
  const store = await open(memoryBackend());
  const session = store.create();
  assert.throws(() => session.append("user/message", { text: "x\ud83dy" }), { code: "not_json" });
  session.append("user/message", { text: "x\ud83dy" }, { repair: true });
  session.append("assistant/message", { parts: [call("t1")] });
  session.append("tool/result", { id: "t1", content: "x\uD83Dy" }, { repair: true });
  for (const target of ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"]) {
    const text = JSON.stringify(session.deriveRequest({ target }).messages);
    assert.ok(text.isWellFormed() && !text.includes("\\ud83d") && text.split("x\ufffdy").length === 3, target);
  }
  await store.dispose();
});

test("A17: three images of 4 MB under a total of 10 MB: the oldest gives way, and the body stays under the limit", async () => {
  const store = await open(memoryBackend());
  const session = store.create();
  const head = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
  const png = (letter) => ({ type: "image", mediaType: "image/png", data: head + letter.repeat(5_592_400 - head.length) });
  for (const letter of ["A", "B", "C"]) session.append("user/message", { parts: [{ type: "text", text: letter }, png(letter)] });
  const media = { maxBytesTotal: 10_000_000, maxBytesEach: 5_000_000 };
  for (const target of ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"]) {
    const { messages, repairs } = session.deriveRequest({ target, media });
    const body = JSON.stringify(messages);
    assert.deepEqual(repairs.map(({ code, seq }) => [code, seq]), [["media_omitted", 0]], target);
    assert.ok(body.length < 14_000_000 && body.includes("BBBB") && body.includes("CCCC") && !body.includes("AAAAAAAAAAAA"), target);
  }
  session.append("user/message", { text: "only text" });
  assert.equal(session.deriveRequest({ target: "anthropic", media }).repairs.length, 1);
  await store.dispose();
});
