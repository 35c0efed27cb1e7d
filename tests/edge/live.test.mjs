// Subscribers: replay then live without a gap, from any place, across broken connections and while the object sleeps.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import init from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { WebSocket } from "undici";
import { call, freshDisk, message, skip, startHost, tokens, until } from "./host.mjs";

let host;
let store;
before(async () => {
  if (skip) return;
  await init();
  host = await startHost({ disk: freshDisk({ memory: true }) });
  store = new RemoteStore({ url: host.url, token: tokens.alice, WebSocket });
});
after(async () => {
  store?.close();
  await host?.kill();
});

/** Everything a subscriber got, and a check that it is each event once and in order. */
function watch(session, from = 0) {
  const seen = [];
  let live = -1;
  const end = session.subscribe({ from, onEvent: (event) => seen.push(event), onLive: (seq) => (live = seq) });
  return { seen, end, live: () => live, seqs: () => seen.map(({ seq }) => seq), until: (count) => until(() => seen.length >= count, () => `${count} events, ${seen.length} came`) };
}
const upTo = (from, to) => Array.from({ length: to - from }, (_, n) => from + n);

test("a replay goes over into what comes live, without a gap, while many write", { skip }, async () => {
  const { id } = await store.create();
  const writers = Array.from({ length: 4 }, () => store.session(id));
  await Promise.all(writers.map(async (writer) => { for (let n = 0; n < 50; n++) await writer.append("user/message", { text: `early ${n}` }); }));
  const writing = writers.map(async (writer) => { for (let n = 0; n < 100; n++) await writer.append("user/message", { text: `late ${n}` }); });
  // They come one after another while it is written.
  const readers = [];
  for (let n = 0; n < 8; n++) {
    const reader = store.session(id);
    readers.push([reader, watch(reader, n * 40), n * 40]);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  await Promise.all(writing);
  for (const [reader, { seen, seqs, until: enough, live }, from] of readers) {
    await enough(600 - from);
    assert.deepEqual(seqs(), upTo(from, 600));
    assert.ok(live() >= 0);
    assert.deepEqual(seen, await reader.read(from));
    reader.close();
  }
  writers.forEach((writer) => writer.close());
});

test("a long log comes in pieces, and a subscriber may begin where nothing is yet", { skip }, async () => {
  const { id } = await store.create();
  const session = store.session(id);
  for (let n = 0; n < 3; n++) await session.appendAll(Array.from({ length: 500 }, (_, i) => message(`${n * 500 + i}`)));
  const all = watch(session);
  await all.until(1500);
  assert.deepEqual(all.seqs(), upTo(0, 1500));
  const ahead = store.session(id);
  const later = watch(ahead, 1502);
  await until(() => later.live() >= 0, "the end of an empty replay");
  for (const text of ["a", "b", "c", "d"]) await session.append("user/message", { text });
  await later.until(2);
  assert.deepEqual(later.seqs(), [1502, 1503]);
  session.close();
  ahead.close();
});

test("events of megabytes come one message after another: a subscriber sees all of them, and so does who reads", { skip }, async () => {
  const { id } = await store.create();
  const texts = Array.from({ length: 12 }, (_, n) => `${n} ${"h".repeat(3_500_000)}`);
  for (const text of texts) assert.equal((await call(host, "POST", `/v1/sessions/${id}/events`, { body: { events: [message(text)] } })).status, 200);
  const page = (await call(host, "GET", `/v1/sessions/${id}/events`)).json;
  assert.deepEqual([page.events.length, page.next, page.more], [1, 1, true]);
  const session = store.session(id);
  const { seen, until: enough } = watch(session);
  await enough(texts.length);
  assert.deepEqual(seen.map(({ data }) => data.text), texts);
  assert.deepEqual((await session.read()).map(({ data }) => data.text), texts);
  assert.deepEqual((await session.read(3, 2)).map(({ seq }) => seq), [3, 4]);
  session.close();
});

/** A WebSocket of one's own, and what came over it; rejects when it does not open. */
function socketOf(id, query = "", { protocols = ["sessionlog.v1", `bearer.${Buffer.from(tokens.alice).toString("base64url")}`], headers = {} } = {}) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${host.url.replace("http", "ws")}/v1/sessions/${id}/socket?${query}`, { protocols, headers });
    const got = [];
    socket.addEventListener("message", ({ data }) => got.push(JSON.parse(data)));
    socket.addEventListener("open", () => resolve({ socket, got, say: (message) => socket.send(JSON.stringify(message)) }));
    socket.addEventListener("error", () => {});
    socket.addEventListener("close", ({ code }) => reject(new Error(`closed ${code}`)));
  });
}

test("a client's name that is too long is refused, and leaves no socket that is in the way of others", { skip }, async () => {
  const { id } = await store.create();
  const reader = store.session(id);
  const { seqs, until: enough, live } = watch(reader);
  await until(() => live() >= 0, "the subscriber");
  for (const length of [129, 17_000]) await assert.rejects(socketOf(id, `client=${"c".repeat(length)}`));
  for (const text of ["a", "b"]) assert.equal((await call(host, "POST", `/v1/sessions/${id}/events`, { body: { events: [message(text)] } })).status, 200);
  await enough(2);
  assert.deepEqual(seqs(), [0, 1]);
  reader.close();
});

test("a client that says who it is in a header opens a WebSocket without a protocol, or with its own", { skip }, async () => {
  const { id } = await store.create();
  const headers = { authorization: `Bearer ${tokens.alice}` };
  for (const protocols of [[], ["sessionlog.v1"]]) {
    const { socket } = await socketOf(id, "from=0", { protocols, headers });
    assert.equal(socket.protocol, protocols[0] ?? "");
    socket.close();
  }
});

test("a session that is not there, a token that is not valid: the connection does not stay, and says why", { skip }, async () => {
  const gone = store.session("never-made");
  const states = [];
  gone.onState((state, error) => states.push([state, error?.code]));
  gone.subscribe({ onEvent: () => {} });
  gone.onState((state, error) => states.push([state, error?.code]));
  await until(() => states.some(([state, code]) => state === "closed" && code === "missing"), () => JSON.stringify(states));
  gone.close();
  const stranger = new RemoteStore({ url: host.url, token: "not a token", WebSocket, retryMs: 0 });
  await assert.rejects(stranger.list(), (error) => error.code === "unauthorized" && error.details.status === 401);
});

test("one that reads only may subscribe and not append", { skip }, async () => {
  // The reader's own session, made by nobody: what it may do is decided before what there is.
  const readOnly = new RemoteStore({ url: host.url, token: tokens.reader, WebSocket });
  const session = readOnly.session("any");
  await assert.rejects(session.append("user/message", { text: "x" }), (error) => ["blocked", "forbidden"].includes(error.code));
  session.close();
});

test("deltas of a task reach subscribers while it runs, and only what is stored", { skip }, async () => {
  const { id } = await store.create();
  const session = store.session(id);
  const { seen, until: enough } = watch(session);
  await session.run("wait 300\nsay streamed", { model: "scripted/demo", wait: true });
  const { events } = (await call(host, "GET", `/v1/sessions/${id}/events`)).json;
  await enough(events.length);
  assert.deepEqual(seen, events);
  assert.ok(seen.some(({ type }) => type === "assistant/chunk"));
  session.close();
});

test("the object sleeps while its sockets stay open, and wakes with its state", { skip, timeout: 90_000 }, async (t) => {
  const { id } = await store.create();
  const [reader, writer] = [store.session(id), store.session(id)];
  const states = [];
  reader.onState((state) => states.push(state));
  const { seqs, until: enough } = watch(reader);
  await writer.append("user/message", { text: "before" });
  await enough(1);
  const { awakeSince } = (await call(host, "GET", `/v1/sessions/${id}`)).json;
  // An idle object leaves memory about ten seconds after its last event, and when it does is workerd's to decide.
  const connections = states.length;
  for (let more = 0; more < 3; more++) {
    await new Promise((resolve) => setTimeout(resolve, 14_000));
    if ((await call(host, "GET", `/v1/sessions/${id}`)).json.awakeSince > awakeSince) break;
  }
  await writer.append("user/message", { text: "after" });
  await enough(2);
  assert.deepEqual(seqs(), [0, 1]);
  const info = (await call(host, "GET", `/v1/sessions/${id}`)).json;
  t.diagnostic(`in memory anew ${info.awakeSince - awakeSince} ms later`);
  assert.ok(info.awakeSince > awakeSince, "the object was out of memory in between");
  assert.equal(info.seq, 2);
  assert.equal(states.length, connections, "the sockets stayed open");
  reader.close();
  writer.close();
});
