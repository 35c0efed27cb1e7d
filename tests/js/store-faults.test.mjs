// What a store must not lose when ids are used again, records change side by side, forks run ahead, or a step in the middle fails.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

before(() => init());

const open = (backend, options) => SessionStore.open({ storage: { kind: "custom", backend }, ...options });
const say = (session, text) => session.append("user/message", { text });
const texts = (events) => events.filter((e) => e.type === "user/message").map((e) => e.data.text);

test("a sweep with a limit that is none deletes nothing", async () => {
  const backend = memoryBackend();
  let store = await open(backend);
  for (const id of ["a", "b"]) say(store.create(id), "kept");
  await store.dispose();
  store = await open(backend);
  for (const bad of [-1, NaN, Infinity, "1", {}]) {
    await assert.rejects(store.sweep({ maxAgeDays: bad }), { code: "invalid_argument" });
    await assert.rejects(store.sweep({ maxSessions: bad }), { code: "invalid_argument" });
  }
  assert.deepEqual(await store.sweep({ maxAgeDays: null, maxSessions: null }), { deleted: [] }, "null stands for the default");
  assert.equal((await store.sessions()).length, 2);
  await store.dispose();
});
