// What the rest of the log's tests leave open: damage inside payloads, damaged lines read twice.
import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

await init();

const custom = (backend) => ({ storage: { kind: "custom", backend } });
const say = (session, text) => session.append("user/message", { text });
const idOf = (n) => n.toString(16).padStart(16, "0");
const line = (seq) => JSON.stringify({ seq, id: idOf(seq + 1), at: 1, type: "user/message", data: { text: `t${seq}` } });
const texted = async (store, id, format) => new TextDecoder().decode(await store.exportSession(id, { format }));

test("B01: damaged lines of an import are in the store, listed once, also after another writer", async () => {
  const backend = memoryBackend();
  const warnings = [];
  const options = { ...custom(backend), onWarning: ({ code }) => warnings.push(code) };
  const store = await SessionStore.open(options);
  const damaged = ['{"seq":1,"te', "\0".repeat(16), "true", "true"];
  const text = [JSON.stringify({ sessionlog: 1, header: { version: 1, id: "d1", createdAt: 5 } }), line(0), ...damaged, line(2)].join("\n");
  const { session, report } = await store.importSession(`${text}\n`);
  assert.deepEqual(report.damaged, damaged.map((d, i) => ({ line: i + 3, bytes: d.length })));
  const count = async (from) => (await texted(from, "d1")).split("\n").filter((l) => damaged.includes(l)).length;
  assert.equal(await count(store), 4);
  // A second writer, of whom the first learns by a conflict: everything is read again.
  const other = await SessionStore.open(options);
  say(await other.resume("d1"), "theirs");
  await other.flush();
  say(session, "ours");
  await store.flush();
  assert.deepEqual(session.events.slice(-2).map((e) => e.data.text), ["theirs", "ours"]);
  assert.equal(await count(store), 4);
  assert.deepEqual(JSON.parse(JSON.stringify(session.verify())), 1);
  const again = await SessionStore.open(options);
  warnings.length = 0;
  await again.resume("d1");
  assert.equal(warnings.filter((code) => code === "corrupt").length, 4);
  assert.equal(await count(again), 4);
});

test("B01: damage inside a payload that keeps the line's length costs that event, wherever it is noticed", async () => {
  const backend = memoryBackend();
  const warnings = [];
  const options = { ...custom(backend), onWarning: ({ code }) => warnings.push(code) };
  const store = await SessionStore.open(options);
  const session = store.create("s1");
  for (let i = 0; i < 6; i++) say(session, `message ${i}`);
  await store.dispose();
  for (const [key, value] of backend.map) {
    const text = new TextDecoder().decode(value);
    if (key.startsWith("s/s1/")) backend.map.set(key, new TextEncoder().encode(text.replace('message 3"', "message 3!")));
  }
  const texts = (events) => events.map((e) => e.data.text);
  const rest = [0, 1, 2, 4, 5].map((i) => `message ${i}`);
  const again = await SessionStore.open(options);
  assert.deepEqual(texts(await again.read("s1")), rest);
  const loaded = await again.resume("s1");
  assert.deepEqual(texts(loaded.events), rest);
  assert.deepEqual(loaded.deriveMessages().map((m) => m.parts[0].text), rest);
  assert.equal(loaded.verify(), 3);
  assert.equal(say(loaded, "next").seq, 6);
  assert.ok((await texted(again, "s1")).includes("message 3!"));
  assert.ok(warnings.includes("corrupt"));
});
