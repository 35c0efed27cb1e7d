// Forks and media through the host: what one session needs of another lies in the other's object, or in the caller's index.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import init, { SessionStore } from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { WebSocket } from "undici";
import { call, freshDisk, message, skip, startHost, tokens, until } from "./host.mjs";

let host;
before(async () => {
  if (skip) return;
  await init();
  host = await startHost({ disk: freshDisk({ memory: true }) });
});
after(() => host?.kill());

const remote = () => new RemoteStore({ url: host.url, token: tokens.alice, WebSocket });
const openStore = () => SessionStore.open({ storage: remote().storage });
/** As one who does not hold the session: the last client may still have it for a moment. */
const ask = (method, path, body) => until(async () => {
  const answer = await call(host, method, `/v1/sessions/${path}`, body === undefined ? {} : { body });
  return answer.status === 423 ? null : answer;
}, "the session to be free");
const texts = async (id) => (await ask("GET", `${id}/events`)).json.events.map(({ data }) => data.text ?? null);
const stored = (id, prefix = `s/${id}/`) => remote().backend().list(prefix, `${prefix.slice(0, -1)}0`, { keysOnly: true });

async function forked(store, id, child) {
  const parent = store.get(id) ?? store.create(id);
  if (parent.seq === 0) for (const text of ["one", "two", "three"]) parent.append("user/message", { text });
  await parent.flush();
  const fork = store.fork(id, { count: 2, id: child });
  fork.append("user/message", { text: "of the child" });
  await fork.flush();
  return fork;
}

test("the host reads, writes, runs and deletes a fork that a client made, and a fork of it", { skip }, async () => {
  const store = await openStore();
  await forked(store, "parent", "child");
  const grand = store.fork("child", { id: "grandchild" });
  await grand.flush();
  await store.dispose();
  assert.deepEqual(await texts("child"), ["one", "two", null, "of the child"]);
  assert.deepEqual(await texts("grandchild"), ["one", "two", null, "of the child", null]);
  const info = await ask("GET", "child");
  assert.deepEqual([info.status, info.json.seq], [200, 4]);
  assert.deepEqual((await ask("GET", "child/messages")).json.messages.map(({ parts }) => parts[0].text), ["one", "two", "of the child"]);
  assert.equal((await ask("POST", "child/events", { events: [message("of the host")] })).json.events[0].seq, 4);
  assert.equal((await ask("POST", "child/runs", { task: "say hello", model: "scripted/demo", wait: true })).json.answer, "hello");
  assert.equal((await ask("POST", "parent/events", { events: [message("later")] })).status, 200);
  assert.deepEqual((await texts("child")).slice(0, 5), ["one", "two", null, "of the child", "of the host"]);
  const next = await openStore();
  assert.equal((await next.resume("child")).verify(), null);
  await next.dispose();

  // What forks read stays until the last of them goes.
  assert.equal((await ask("DELETE", "parent")).status, 200);
  assert.equal((await ask("GET", "parent")).status, 404);
  assert.deepEqual((await ask("DELETE", "child")).json, { deleted: true });
  assert.deepEqual(await texts("grandchild"), ["one", "two", null, "of the child", null]);
  assert.deepEqual((await ask("DELETE", "grandchild")).json, { deleted: true });
  for (const id of ["parent", "child", "grandchild"]) assert.deepEqual(await stored(id), [], id);
});

test("a session that was forked just now is not deleted from under its fork, by the host or by a client", { skip }, async () => {
  for (const how of ["host", "client"]) {
    const [id, child] = [`young-${how}`, `${how}-fork`];
    // Made long enough ago that the index has heard of it.
    const first = await openStore();
    const made = first.create(id);
    for (const text of ["one", "two"]) made.append("user/message", { text });
    await made.flush();
    await first.dispose();
    await until(async () => (await stored("", "s/")).some(([key]) => key === `s/${id}/h`), "the index to know the session");
    const store = await openStore();
    await store.resume(id);
    await forked(store, id, child);
    await store.get(id).dispose();
    if (how === "host") assert.deepEqual((await ask("DELETE", id)).json, { deleted: true });
    else {
      const other = await openStore();
      await other.delete(id);
      await other.dispose();
    }
    await store.dispose();
    assert.equal((await ask("GET", id)).status, 404);
    assert.deepEqual(await texts(child), ["one", "two", null, "of the child"]);
    const next = await openStore();
    assert.equal((await next.resume(child)).verify(), null);
    await next.dispose();
  }
});

test("a fork of a session that is gone is refused, and nothing of it stays", { skip }, async () => {
  const store = await openStore();
  const source = store.create("gone");
  source.append("user/message", { text: "one" });
  await source.flush();
  const header = await remote().backend().get("s/gone/h");
  await store.dispose();
  assert.equal((await ask("DELETE", "gone")).status, 200);
  const fork = new TextEncoder().encode(JSON.stringify({ ...JSON.parse(new TextDecoder().decode(header)), base: { id: "gone", count: 1 } }));
  await assert.rejects(remote().backend().transact({ puts: [["s/orphan/h", fork]] }), { code: "missing" });
  assert.equal((await ask("GET", "orphan")).status, 404);
  assert.deepEqual([await stored("orphan"), (await call(host, "GET", "/v1/sessions")).json.sessions.filter(({ id }) => id === "orphan")], [[], []]);
});

test("a session that the host deletes takes its media along, and leaves those that others use", { skip }, async () => {
  const store = await openStore();
  const used = [];
  for (const id of ["media-a", "media-b"]) {
    const session = store.create(id);
    for (const fill of [7, ...(id === "media-a" ? [8] : [])]) {
      const blob = await session.putBlob(new Uint8Array(3_000).fill(fill), { mediaType: "image/png" });
      session.append("user/message", { parts: [{ type: "image", mediaType: "image/png", blob }] });
      used.push(blob);
    }
    await session.flush();
  }
  await store.dispose();
  const [both, alone] = used;
  const has = async (blob) => (await remote().backend().get(`b/${blob}`)) !== null;
  assert.equal((await ask("DELETE", "media-a")).status, 200);
  assert.deepEqual([await has(both), await has(alone), await stored("media-a")], [true, false, []]);
  assert.equal((await ask("DELETE", "media-b")).status, 200);
  assert.equal(await has(both), false);
});
