// Payloads of every size and script, events that are handed out, seeds that are none.
import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

await init();

const open = (options = {}) => SessionStore.open({ storage: { kind: "memory" }, ...options });
const custom = (backend) => ({ storage: { kind: "custom", backend } });
const say = (session, text) => session.append("user/message", { text });

/** A store that counts what is asked of it, and holds the very bytes it is given. */
function countingBackend() {
  const backend = memoryBackend();
  const calls = [];
  const { get, list } = backend;
  backend.get = (key) => (calls.push(key), get(key));
  backend.list = (start, ...rest) => (calls.push(start), list(start, ...rest));
  return { backend, calls };
}

test("B09: a tool result of 12 MB, and a list that reads no event", async () => {
  const { backend, calls } = countingBackend();
  backend.maxValueBytes = 1 << 20;
  const store = await SessionStore.open(custom(backend));
  const big = store.create("big");
  const content = "0123456789abcdef".repeat(12 << 16);
  big.append("tool/result", { id: "c1", content });
  for (let i = 0; i < 49; i++) say(store.create(`s${i}`), "x");
  await store.dispose();
  assert.ok([...backend.map.values()].every((value) => value.length <= 1 << 20));
  const again = await SessionStore.open(custom(backend));
  calls.length = 0;
  const rows = await again.sessions();
  assert.equal(rows.length, 50);
  assert.deepEqual(calls.filter((key) => key.startsWith("s/")), []);
  assert.equal((await again.resume("big")).event(0).data.content, content);
  assert.equal((await again.resume("big")).verify(), null);
});

test("a seed of what is not JSON is an invalid seed that names the event and the place", async () => {
  const store = await open();
  const source = store.create("p");
  say(source, "a");
  say(source, "b");
  for (const bad of [() => {}, undefined, 10n, NaN, "x\ud83d", new Map()]) {
    const seed = source.events;
    seed[1].data.meta = { bad };
    assert.throws(() => store.create("bad", { seed }), (thrown) => thrown.code === "invalid_seed" && thrown.details.index === 1 && /data\.meta\.bad/.test(thrown.details.path), String(bad));
  }
  const cycle = source.events;
  cycle[0].data.self = cycle;
  assert.throws(() => store.create("bad", { seed: cycle }), (thrown) => thrown.code === "invalid_seed" && thrown.details.index === 0);
  assert.equal(store.get("bad"), undefined);
});

test("an event that was handed out can be changed without effect on log or record", async () => {
  const store = await open();
  const session = store.create("s1");
  const event = say(session, "said");
  event.data.text = "changed";
  event.data = { text: "other" };
  assert.deepEqual(event.data, { text: "other" });
  assert.equal((await store.record("s1")).last_prompt, "said");
  assert.equal(session.event(0).data.text, "said");
  const plain = say(session, "again");
  assert.equal(Object.getPrototypeOf(plain), Object.prototype);
  assert.deepEqual(Object.keys(plain), ["id", "sessionId", "seq", "at", "type", "data"]);
  assert.deepEqual(structuredClone(plain), session.event(1));
  assert.equal(JSON.stringify(plain), JSON.stringify(session.event(1)));
});

test("texts of every size and script go in and come out as they are", async () => {
  const session = (await open()).create();
  const wide = ["a", "é", "漢", "🔥", "\u0000\u001f\"\\", "\u2028"];
  const sizes = [0, 1, 47, 48, 49, 1000, 21_845, 65_000, 65_535, 65_536, 70_000, 200_000];
  for (const unit of wide) {
    for (const size of sizes) {
      const text = unit.repeat(size / unit.length);
      const event = say(session, text);
      assert.equal(session.event(event.seq).data.text, text, `${unit} × ${size}`);
      assert.equal(session.event(event.seq).id, event.id);
    }
  }
  assert.equal(session.verify(), null);
  assert.equal(new Set(session.events.map((e) => e.id)).size, session.seq);
});
