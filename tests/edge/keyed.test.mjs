// Keys of requests, limits and tokens where several things come together: a store that is changed from elsewhere, calls in one
// write, names that are more than a name.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { WebSocket } from "undici";
import init, { SessionStore } from "sessionlog";
import { decodeFrame, encodeFrame, RemoteStore } from "sessionlog/remote";
import { call, freshDisk, message, skip, startHost, tokens } from "./host.mjs";

let host;
before(async () => {
  if (skip) return;
  await init();
  host = await startHost({ disk: freshDisk() });
});
after(async () => host?.kill());

let made = 0;
async function session(on = host) {
  const id = `keyed-${made++}`;
  assert.equal((await call(on, "POST", "/v1/sessions", { body: { id } })).status, 201);
  return id;
}
const append = (id, events, key, on = host) => call(on, "POST", `/v1/sessions/${id}/events`, { body: { events }, headers: key === undefined ? {} : { "idempotency-key": key } });
const stored = async (id, on = host) => (await call(on, "GET", `/v1/sessions/${id}/events?limit=1000`)).json.events;

async function kv(id, head, values = []) {
  const answer = await fetch(`${host.url}/v1/sessions/${id}/kv`, { method: "POST", headers: { authorization: `Bearer ${tokens.alice}` }, body: encodeFrame(head, values) });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return { status: answer.status, ...(answer.ok ? decodeFrame(bytes) : {}) };
}
const put = (key, value) => ({ head: { op: "transact", request: randomBytes(16).toString("hex"), checks: [{ key, absent: true }], puts: [key], deletes: [] }, values: [Uint8Array.of(value)] });

/** The store of a client that works on the host's sessions. */
async function withClient(work) {
  const store = await SessionStore.open({ storage: new RemoteStore({ url: host.url, token: tokens.alice, WebSocket }).storage });
  try {
    await work(store);
  } finally {
    await store.dispose();
  }
}

test("a value is found under whatever name it was put, and is not put twice where nothing is to be", { skip }, async () => {
  const id = await session();
  for (const key of ["f/plain", "f/\u{1f600}", "f/\ud800", "f/\u00e9"]) {
    const [first, second] = [put(key, 1), put(key, 2)];
    assert.equal((await kv(id, first.head, first.values)).status, 200, key);
    assert.equal((await kv(id, { op: "get", key })).head.found, true, JSON.stringify(key));
    assert.equal((await kv(id, second.head, second.values)).status, 409, JSON.stringify(key));
  }
});

test("keys stay with their events when the first write of these comes to nothing", { skip }, async () => {
  const id = await session();
  await append(id, [message("first")], "k-0");
  // The record is written with the first events after a while: it was changed meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await withClient((store) => store.archive(id));
  const all = () => Promise.all([1, 2, 3, 4].map((n) => append(id, [message(`${n}`)], `k-${n}`)));
  const [once, again] = [await all(), await all()];
  assert.deepEqual(again.map(({ json }) => json.replayed), [true, true, true, true]);
  assert.deepEqual(again.map(({ json }) => json.events), once.map(({ json }) => json.events));
  assert.equal((await stored(id)).length, 5);
});

test("a token that only reads makes no sessions, by no path", { skip }, async () => {
  for (const token of [tokens.reader, tokens.aliceReads]) {
    for (const path of ["/v1/sessions", "/v1/sessions/", "/v1/sessions//kv", "/v1/sessions/made-by-reader", "/v1/sessions/made-by-reader/"]) {
      const { status } = await call(host, "POST", path, { token, body: { id: "made-by-reader" } });
      assert.equal(status, 403, path);
    }
    assert.equal((await call(host, "GET", "/v1/sessions/made-by-reader", { token })).status, 404);
  }
});

test("the id of a session that a client deleted is free", { skip }, async () => {
  const id = await session();
  await append(id, [message("old")]);
  await withClient((store) => store.delete(id));
  assert.equal((await call(host, "GET", `/v1/sessions/${id}`)).status, 404);
  assert.equal((await call(host, "POST", "/v1/sessions", { body: { id } })).status, 201);
  assert.deepEqual(await stored(id), []);
});

test("calls that are under way together are stored in fewer writes than there are of them", { skip }, async () => {
  const id = await session();
  await Promise.all(Array.from({ length: 48 }, (_, n) => append(id, [message(`${n}`)], `together-${n}`)));
  const { head } = await kv(id, { op: "list", start: `s/${id}/e/`, end: `s/${id}/e0`, limit: null, reverse: false, keysOnly: true });
  assert.equal((await stored(id)).length, 48);
  assert.ok(head.keys.length > 0 && head.keys.length <= 24, `${head.keys.length} writes for 48 calls`);
});

test("calls that are stored together fill a session no further than one by one; what is full can be emptied", { skip }, async () => {
  const small = await startHost({ disk: freshDisk(), env: { MAX_BYTES_PER_SESSION: "1000000", MAX_EVENTS_PER_CALL: "30000" } });
  try {
    const id = await session(small);
    const answers = await Promise.all(Array.from({ length: 20 }, () => append(id, [message("x".repeat(300_000))], undefined, small)));
    const taken = answers.filter(({ status }) => status === 200).length;
    assert.ok(taken >= 2 && taken <= 5, `${taken} of 300 KB in 1 MB`);
    assert.ok(answers.every(({ status, json }) => status === 200 || (status === 507 && json.error.code === "quota")));
    const emptied = await fetch(`${small.url}/v1/sessions/${id}/kv`, {
      method: "POST", headers: { authorization: `Bearer ${tokens.alice}` },
      body: encodeFrame({ op: "transact", request: randomBytes(16).toString("hex"), checks: [], puts: [], deletes: ["f/none"] }, []),
    });
    assert.equal(emptied.status, 200);
    const other = await session(small);
    // Its receipts could not be kept under the key.
    assert.equal((await append(other, Array.from({ length: 20_001 }, () => ({ type: "a/b", data: 0 })), "long", small)).status, 413);
  } finally {
    await small.kill();
  }
});
