// Automatic compaction: by the provider's count or an estimate, summed up by a caller's function, the run's model, or neither.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { ChatSessionController, SessionStore, VirtualFs } from "sessionlog";

before(() => init());

const text = (text) => ({ type: "text", text });
const used = (prompt, completion = 10) => ({ type: "usage", usage: { apiShape: "openai.chat", raw: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion } } });

/** Plays its steps and keeps what it was asked. */
function adapter(steps, target = "openai-chat") {
  const requests = [];
  return {
    provider: "made-up", model: "m", target, requests,
    async *stream(request, { signal }) {
      requests.push(structuredClone(request));
      for (const chunk of steps.shift() ?? []) {
        signal.throwIfAborted();
        if (typeof chunk === "function") await chunk(signal);
        else yield chunk;
      }
      yield { type: "finish", reason: "stop" };
    },
  };
}

async function world() {
  const warned = [];
  const store = await SessionStore.open({ onWarning: (w) => warned.push(w) });
  const controller = new ChatSessionController({ store, fs: await VirtualFs.open({}), outputFn: () => {} });
  const compactions = () => controller.session.events.filter(({ type }) => type === "session/compacted").map(({ data }) => data);
  const run = (task, llm, compaction, more = {}) => controller.executeTask(task, { model: "made-up/m", compaction, tools: [], ...more }, { adapter: llm });
  return { store, controller, session: controller.session, compactions, run, warned };
}

test("the provider's count of the last step decides, to the token", async () => {
  const { run, compactions } = await world();
  await run("one", adapter([[text("a"), used(99)]]), { promptTokens: 100, summarize: () => "S" });
  assert.equal(compactions().length, 0);
  await run("two", adapter([[text("b"), used(100)]]), { promptTokens: 100, summarize: () => "S" });
  assert.deepEqual(compactions().map(({ summary }) => summary), ["S"]);
});

test("without a count the size is estimated by bytes", async () => {
  const { run, compactions } = await world();
  await run("word ".repeat(200), adapter([[text("a")]]), { promptTokens: 400, summarize: () => "S" });
  assert.equal(compactions().length, 0);
  await run("word ".repeat(200), adapter([[text("b")]]), { promptTokens: 400, summarize: () => "S" });
  assert.equal(compactions().length, 1);
});

test("an estimate starts from the last count there was", async () => {
  const { run, compactions } = await world();
  await run("hi", adapter([[text("a"), used(5000)]]), undefined);
  await run("hi", adapter([[text("b")]]), { promptTokens: 5000, summarize: () => "S" });
  assert.equal(compactions().length, 1, "5010 and a few");
  // What was counted before the compaction says nothing about what is left.
  await run("hi", adapter([[text("c")]]), { promptTokens: 5000, summarize: () => "S" });
  assert.equal(compactions().length, 1);
});

test("an image does not count by its bytes", async () => {
  const { run, session, compactions } = await world();
  session.append("user/message", { parts: [{ type: "image", mediaType: "image/png", data: "iVBORw0KGgo".padEnd(40_000, "A") }] });
  await run("what is it?", adapter([[text("a")]]), { promptTokens: 3000, summarize: () => "S" });
  assert.equal(compactions().length, 0);
});

for (const target of ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"]) {
  test(`the run's own model sums up, asked over ${target}`, async () => {
    const { run, session, compactions, controller } = await world();
    const llm = adapter([[text("the answer"), used(100)], [text(" So it "), text("was. "), used(70)]], target);
    const done = await run("the question", llm, { promptTokens: 50, summarize: "model" });
    assert.equal(done.runResult.status, "completed");
    assert.deepEqual(compactions().map(({ summary }) => summary), [" So it was. "]);
    const [, asked] = llm.requests;
    assert.deepEqual([asked.tools, asked.request.target, asked.request.repairs, asked.provider, asked.model], [[], target, [], "made-up", "m"]);
    const said = JSON.stringify(asked.request.messages);
    for (const part of ["the question", "the answer", "Write a summary of the conversation", "Do not call tools"]) assert.ok(said.includes(part), part);
    assert.ok(said.indexOf("the answer") < said.indexOf("Write a summary"));
    assert.equal(asked.request.messages.length, 1);
    // It is paid for, and no step of the turn: the turn's own prompt is not measured by it.
    const { promptTokens, steps } = session.usage();
    assert.deepEqual([promptTokens, steps, done.runResult.steps], [170, 2, 1]);
    assert.deepEqual(session.deriveMessages().map(({ role, parts }) => [role, parts[0].text]), [["user", " So it was. "]]);
    assert.equal(controller.status, "idle");
  });
}

test("a model that fails, says nothing, or is stopped leaves the session as it was", async () => {
  const failing = [
    [(() => { throw new Error("no"); })],
    [],
    [text("half"), { type: "finish", reason: "error" }],
  ];
  for (const summary of failing) {
    const { run, session, compactions } = await world();
    const done = await run("hi", adapter([[text("a"), used(100)], summary]), { promptTokens: 50, summarize: "model" });
    assert.equal(done.runResult.status, "completed");
    assert.equal(compactions().length, 0);
    assert.equal(session.deriveMessages().length, 2);
  }
});

test("what is said while the model sums up is not covered: nothing is compacted", async () => {
  const { run, session, compactions, warned } = await world();
  const late = () => session.append("user/message", { text: "wait" });
  await run("hi", adapter([[text("a"), used(100)], [text("S"), late]]), { promptTokens: 50, summarize: "model" });
  assert.equal(compactions().length, 0);
  assert.ok(warned.some(({ code }) => code === "compaction"));
  assert.equal(session.deriveMessages().length, 3);
});

test("keepTokens keeps whole rounds of the newest, at the controller too", async () => {
  const { run, session, compactions } = await world();
  for (const word of ["one", "two"]) await run(word, adapter([[text(`about ${word}`), used(10)]]), undefined);
  await run("three", adapter([[text("about three"), used(100)]]), { promptTokens: 50, keepTokens: 120, summarize: (messages) => `S of ${messages.length}` });
  assert.deepEqual(compactions().map(({ summary }) => summary), [`S of ${6 - (session.deriveMessages().length - 1)}`]);
  const left = session.deriveMessages();
  assert.equal(left[0].parts[0].text, compactions()[0].summary);
  assert.equal(left.at(-1).parts[0].text, "about three");
  assert.ok(left.length > 2 && left.length < 7);
});

test("a conversation is shown with its calls, results and media, cut where they are long", async () => {
  const { run, session } = await world();
  session.append("user/message", { parts: [{ type: "text", text: "see" }, { type: "image", mediaType: "image/png", data: "AAAA" }] });
  session.append("assistant/message", { parts: [{ type: "reasoning", text: "private thoughts" }, { type: "tool-call", id: "t", name: "read", args: { path: "a" } }] });
  session.append("tool/result", { id: "t", content: "x".repeat(3999) + "🔥" + "y".repeat(5000) });
  const llm = adapter([[text("ok"), used(100)], [text("S")]]);
  await run("go", llm, { promptTokens: 50, summarize: "model" });
  const asked = llm.requests[1].request.messages[0].content;
  for (const part of ["[image image/png]", '[calls read with {"path":"a"}]', "more characters]"]) assert.ok(asked.includes(part), part);
  assert.ok(!asked.includes("private thoughts") && !asked.includes("AAAA") && asked.isWellFormed() && asked.length < 8000);
});
