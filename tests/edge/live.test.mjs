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

test("a client that comes back over another connection has the lease again, while its old one still looks open", { skip }, async () => {
  const { id } = await store.create();
  const first = await socketOf(id, "client=one");
  first.say({ t: "lease", holds: false, again: false });
  await until(() => first.got.some(({ held }) => held === true), "the lease");
  const other = await socketOf(id, "client=two");
  other.say({ t: "lease", holds: false, again: false });
  await until(() => other.got.some(({ held }) => held === false), "the other's answer");
  const second = await socketOf(id, "client=one");
  second.say({ t: "lease", holds: true, again: true });
  await until(() => second.got.some(({ t }) => t === "lease"), "an answer");
  assert.deepEqual(second.got, [{ t: "lease", held: true }]);
  // The end of the old one takes nothing away; that of the new one does.
  first.socket.close();
  await until(() => first.socket.readyState === WebSocket.CLOSED, "the end of the old one");
  second.say({ t: "lease", holds: true, again: true });
  await until(() => second.got.length === 2, "an answer");
  assert.deepEqual([second.got[1].held, other.got.some(({ held }) => held)], [true, false]);
  second.socket.close();
  await until(() => other.got.some(({ held }) => held), "the next one");
  other.socket.close();
});

test("a message is measured in bytes", { skip }, async () => {
  const small = await startHost({ disk: freshDisk({ memory: true }), env: { MAX_BODY_BYTES: "30000" } });
  try {
    const there = new RemoteStore({ url: small.url, token: tokens.alice, WebSocket });
    await there.create({ id: "bytes" });
    const session = there.session("bytes");
    await assert.rejects(session.append("user/message", { text: "\u20ac".repeat(28_000) }), { code: "quota" });
    assert.equal((await session.append("user/message", { text: "x".repeat(28_000) })).seq, 0);
    session.close();
  } finally {
    await small.kill();
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
  const foreign = stranger.session("never-made");
  const ends = [];
  foreign.onState((state, error) => state === "closed" && ends.push(error.code));
  foreign.subscribe({ onEvent: () => {} });
  await assert.rejects(foreign.append("user/message", { text: "x" }), { code: "unauthorized" });
  assert.deepEqual(ends, ["unauthorized"]);
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

test("a lease outlasts the sleep of the object: its client writes on, and who asks meanwhile waits", { skip, timeout: 90_000 }, async () => {
  const { id } = await store.create();
  const holder = await socketOf(id, "client=holder");
  holder.say({ t: "lease", holds: false, again: false });
  await until(() => holder.got.length > 0, "the lease");
  const { awakeSince } = (await call(host, "GET", `/v1/sessions/${id}`)).json;
  const info = async () => (await call(host, "GET", `/v1/sessions/${id}`)).json;
  for (let more = 0; more < 3; more++) {
    await new Promise((resolve) => setTimeout(resolve, 14_000));
    if ((await info()).awakeSince > awakeSince) break;
  }
  const woken = await info();
  assert.ok(woken.awakeSince > awakeSince, "the object was out of memory in between");
  assert.equal(woken.writer, "client");
  const other = await socketOf(id, "client=other");
  other.say({ t: "lease", holds: false, again: false });
  await until(() => other.got.length > 0, "the other's answer");
  assert.deepEqual([holder.got, other.got], [[{ t: "lease", held: true }], [{ t: "lease", held: false }]]);
  assert.equal((await call(host, "POST", `/v1/sessions/${id}/events`, { body: { events: [message("of the host")] } })).status, 423);
  holder.socket.close();
  await until(() => other.got.some(({ held }) => held), "the other to write");
  other.socket.close();
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
