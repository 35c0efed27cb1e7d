// Sessions of other programs, in and out through the built package.
import assert from "node:assert/strict";
import { test } from "node:test";
import init, { SessionStore } from "sessionlog";

await init();

const text = (bytes) => new TextDecoder().decode(bytes);
const json = (lines) => lines.map((line) => JSON.stringify(line)).join("\n");

const CLAUDE = json([
  { parentUuid: null, cwd: "/home/a", sessionId: "7c3f4b1e-0000-4000-8000-000000000001", type: "user", message: { role: "user", content: "list" }, uuid: "a", timestamp: "2026-01-02T03:04:05.678Z" },
  { parentUuid: "a", type: "assistant", message: { id: "m1", model: "claude-sonnet-4-5", content: [{ type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } }], usage: { input_tokens: 1000, output_tokens: 10 } }, uuid: "b" },
  { parentUuid: "b", type: "user", message: { content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "a.txt" }] }, uuid: "c" },
  { parentUuid: "c", type: "user", isCompactSummary: true, message: { content: "one file" }, uuid: "d" },
  { parentUuid: "d", type: "user", message: { content: "thanks, my key is ghp_0123456789abcdefghijABCDEFGHIJ012345" }, uuid: "e" },
  { type: "queue-operation" },
]);

test("a Claude Code session comes in with its cost, its place and its compaction, and says what was lost", async () => {
  const store = await SessionStore.open();
  const { session, report } = await store.importSession(CLAUDE, { format: "claude-code" });
  assert.equal(session.id, "7c3f4b1e-0000-4000-8000-000000000001");
  assert.equal(session.header.cwd, "/home/a");
  assert.equal(session.header.createdAt, Date.parse("2026-01-02T03:04:05.678Z"));
  assert.deepEqual(report.lost, ['line 6 is of type "queue-operation"']);
  const messages = session.deriveMessages();
  assert.deepEqual(messages.map((m) => m.role), ["user", "user"]);
  assert.match(messages[0].parts[0].text, /one file/);
  assert.equal(session.usage().steps, 1);
  // 1,000 tokens at 3 dollars a million and 10 at 15.
  assert.equal(session.usage().cost.usd, "0.00315");
  assert.equal(session.verify(), null);
  await store.dispose();
});

test("what comes in passes the scrubbers", async () => {
  const store = await SessionStore.open({ scrubbers: [{ pattern: "my key is [a-zA-Z0-9_]+", name: "key" }] });
  const { session } = await store.importSession(CLAUDE, { format: "claude-code" });
  assert.ok(!JSON.stringify(session.events).includes("ghp_"));
  await store.dispose();
});

test("every format in, every format out, and a request from each", async () => {
  const lost = [];
  const store = await SessionStore.open({ onWarning: (warning) => lost.push(warning) });
  const list = [
    { role: "user", content: "look" },
    { role: "assistant", content: "yes", tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: '{"path":"x"}' } }] },
    { role: "tool", tool_call_id: "c1", content: "found" },
    { role: "assistant", content: "done" },
  ];
  const { session: first } = await store.importSession(JSON.stringify(list), { format: "openai-messages", id: "first" });
  const request = (session) => session.deriveRequest({ target: "anthropic" }).messages;
  const formats = ["sessionlog", "claude-code", "codex", "pi", "openai-messages", "ai-sdk-ui", "samagotchi"];
  for (const format of formats) {
    const file = await store.exportSession("first", { format });
    const { session, report } = await store.importSession(file, { format, id: `via-${format}` });
    assert.deepEqual(report.lost, [], format);
    assert.deepEqual(request(session), request(first), format);
  }
  assert.deepEqual(JSON.parse(text(await store.exportSession("first", { format: "openai-messages" }))), list);
  assert.deepEqual(lost, []);
  first.append("assistant/message", { parts: [{ type: "file", mediaType: "text/plain", blob: "ab".repeat(32) }, { type: "text", text: "see" }] });
  await store.exportSession("first", { format: "pi" });
  assert.deepEqual(lost.map(({ code }) => code), ["lost"]);
  await store.dispose();
});

test("a file of another format is refused and leaves nothing behind", async () => {
  const store = await SessionStore.open();
  for (const format of ["claude-code", "codex", "pi", "openai-messages", "ai-sdk-ui", "samagotchi"]) {
    for (const bad of ["nonsense", '{"a":1}', "[1,2]", "\u0000\u0000"]) {
      await assert.rejects(store.importSession(bad, { format, id: "bad" }), (error) => ["corrupt", "not_json"].includes(error.code), `${format} ${bad}`);
    }
  }
  await assert.rejects(store.importSession("{}", { format: "word" }), { code: "invalid_argument" });
  await assert.rejects(store.exportSession("nobody", { format: "pi" }), { code: "not_found" });
  assert.deepEqual(store.list(), []);
  await store.dispose();
});
