// The host as storage of stores and controllers elsewhere: what works on local storage works on it, for several at once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import init, { ChatSessionController, SessionStore, VirtualFs, checkBackend, encrypted } from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { WebSocket } from "undici";
import { call, freshDisk, message, skip, startHost, tokens, until } from "./host.mjs";

let host;
let disk;
before(async () => {
  if (skip) return;
  await init();
  disk = freshDisk({ memory: true });
  host = await startHost({ disk });
});
after(() => host?.kill());

const remote = (token = tokens.alice, more = {}) => new RemoteStore({ url: host.url, token, WebSocket, ...more });
const openStore = (options = {}) => SessionStore.open({ storage: remote(tokens.alice, options).storage });
const texts = (session) => session.events.map(({ data }) => data.text ?? null);

test("passes the suite for backends", { skip }, async () => {
  const report = await checkBackend(() => remote(tokens.bob).backend());
  assert.deepEqual(report.failed, []);
  assert.ok(report.passed >= 20);
});

test("keeps sessions: written here, read by another, listed, renamed, archived, forked, deleted", { skip }, async () => {
  const one = await openStore();
  const session = one.create("kept", { meta: { cwd: "/work" } });
  session.append("user/message", { text: "first" });
  session.append("assistant/message", { parts: [{ type: "text", text: "x".repeat(1_500_000) }] });
  await session.flush();
  assert.equal(session.durableSeq, 2);
  assert.equal((await one.status()).kind, "custom");
  const child = one.fork("kept", { count: 1, id: "child" });
  child.append("user/message", { text: "of the child" });
  session.setTitle("Kept");
  await one.dispose();

  const two = await openStore();
  const again = await two.resume("kept");
  assert.deepEqual([again.seq, again.verify(), again.event(1).data.parts[0].text.length], [3, null, 1_500_000]);
  const fork = await two.resume("child");
  assert.deepEqual([texts(fork)[0], fork.events.at(-1).data.text, fork.verify()], ["first", "of the child", null]);
  await until(async () => (await two.sessions()).some(({ id, title }) => id === "kept" && title === "Kept"), "the listing");
  await two.archive("kept");
  await again.dispose();
  await until(async () => (await (await openStore()).sessions()).every(({ id }) => id !== "kept"), "the archived one to go from the listing");
  await two.delete("child");
  await assert.rejects((await openStore()).resume("child"), { code: "missing" });
  assert.equal((await call(host, "GET", "/v1/sessions/kept")).json.title, "Kept");
  await two.dispose();
});

test("one writes, the other follows live; when the writer goes the follower writes", { skip }, async () => {
  const [one, two] = [await openStore(), await openStore()];
  const writer = one.create("both");
  writer.append("user/message", { text: "before" });
  await writer.flush();
  const follower = await two.resume("both");
  assert.equal(follower.readOnly, true);
  assert.deepEqual(texts(follower), ["before"]);
  const seen = [];
  follower.on("event", (event) => seen.push(event.data.text));
  assert.throws(() => follower.append("user/message", { text: "no" }), { code: "locked" });
  for (let n = 0; n < 20; n++) {
    writer.append("user/message", { text: `live ${n}` });
    if (n % 5 === 0) await writer.flush();
  }
  await until(() => seen.length === 20, () => `20 events, ${seen.length} came`);
  assert.deepEqual(follower.events, writer.events);
  // Nor does the host write meanwhile.
  const { status, json } = await call(host, "POST", "/v1/sessions/both/events", { body: { events: [message("of the host")] } });
  assert.deepEqual([status, json.error.code], [423, "locked"]);
  await writer.dispose();
  await until(() => !follower.readOnly, "the follower to take over");
  follower.append("user/message", { text: "now mine" });
  await follower.flush();
  await follower.dispose();
  await until(async () => (await call(host, "POST", "/v1/sessions/both/events", { body: { events: [message("of the host")] } })).status === 200, "the host to write");
  const { events } = (await call(host, "GET", "/v1/sessions/both/events")).json;
  assert.deepEqual(events.map(({ data }) => data.text).slice(-2), ["now mine", "of the host"]);
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, at) => at));
  await one.dispose();
  await two.dispose();
});

test("what a client writes reaches those who subscribe to the host's events", { skip }, async () => {
  const store = await openStore();
  const session = store.create("heard");
  session.append("user/message", { text: "one" });
  await session.flush();
  const listener = remote().session("heard");
  const seen = [];
  listener.subscribe({ onEvent: ({ data }) => seen.push(data.text) });
  for (const text of ["two", "three", "four"]) {
    session.append("user/message", { text });
    await session.flush();
  }
  await until(() => seen.length === 4, () => `four events: ${seen}`);
  assert.deepEqual(seen, ["one", "two", "three", "four"]);
  listener.close();
  await store.dispose();
});

test("a controller with its files works on it; undo works for the next one who opens them", { skip }, async () => {
  const storage = () => remote().storage;
  const store = await SessionStore.open({ storage: storage() });
  const fs = await VirtualFs.open({ storage: storage() });
  const controller = new ChatSessionController({ store, fs, outputFn: () => {} });
  const { runResult } = await controller.executeTask("write /notes.txt: kept afar\nsay done", { model: "scripted/demo" });
  assert.equal(runResult.status, "completed", runResult.errorMessage ?? "");
  const { id } = controller.session;
  await store.dispose();
  await fs.dispose();

  const nextStore = await SessionStore.open({ storage: storage() });
  const nextFs = await VirtualFs.open({ storage: storage() });
  assert.equal(nextFs.readText("/notes.txt"), "kept afar");
  const next = new ChatSessionController({ store: nextStore, session: await nextStore.resume(id), fs: nextFs, outputFn: () => {} });
  assert.equal(await next.undoLastRun(), true);
  assert.equal(nextFs.exists("/notes.txt"), false);
  await nextStore.dispose();
  await nextFs.dispose();
});

test("the host's files of a session are what a client wrote last, while it holds the session too", { skip }, async () => {
  const store = await openStore();
  const session = store.create("files");
  session.append("user/message", { text: "held by a client" });
  await session.flush();
  const fs = await VirtualFs.open({ storage: { kind: "custom", backend: remote().backendOf("files") } });
  const file = async () => (await call(host, "GET", "/v1/sessions/files/files?path=/a.txt")).json.text;
  for (const text of ["one", "two", "three"]) {
    fs.writeFile("/a.txt", text);
    await fs.flush();
    assert.equal(await file(), text);
  }
  await fs.dispose();
  await store.dispose();
});

test("the most events of a session hold for a client too", { skip }, async () => {
  const small = await startHost({ disk: freshDisk({ memory: true }), env: { MAX_EVENTS_PER_SESSION: "10" } });
  try {
    const open = () => SessionStore.open({ storage: new RemoteStore({ url: small.url, token: tokens.alice, WebSocket }).storage });
    const [store, other] = [await open(), await open()];
    const [much, full] = [store.create("much"), other.create("full")];
    for (let n = 0; n < 30; n++) much.append("user/message", { text: String(n) });
    await assert.rejects(much.flush(), { code: "quota" });
    for (let n = 0; n < 10; n++) {
      full.append("user/message", { text: String(n) });
      await full.flush();
    }
    full.append("user/message", { text: "one too many" });
    await assert.rejects(full.flush(), { code: "quota" });
    await Promise.all([store, other].map((each) => each.dispose().catch(() => {})));
    const next = await open();
    assert.deepEqual(texts(await next.resume("full")), Array.from({ length: 10 }, (_, n) => String(n)));
    await next.dispose();
  } finally {
    await small.kill();
  }
});

test("media are kept once for all sessions of a caller, reach the host's own requests, and go with the last session", { skip }, async () => {
  const store = await openStore();
  const bytes = new Uint8Array(700_000).map((_, at) => (at * 7) % 251);
  const names = [];
  for (const id of ["with-media", "with-it-too"]) {
    const session = store.create(id);
    const blob = await session.putBlob(bytes, { mediaType: "image/png" });
    session.append("user/message", { parts: [{ type: "image", mediaType: "image/png", blob }] });
    await session.flush();
    names.push(blob);
  }
  assert.equal(names[0], names[1]);
  const backend = remote().backend();
  assert.equal((await backend.list("b/", "b0", { keysOnly: true })).filter(([key]) => /^b\/[0-9a-f]{64}$/.test(key)).length, 1);
  assert.deepEqual((await backend.list("s/with-media/", "s/with-media0", { keysOnly: true })).map(([key]) => key.split("/")[2]).sort(), ["b", "e", "f", "h"]);
  assert.deepEqual((await backend.list("s/with-media/", "s/with-media0", { keysOnly: true, reverse: true, limit: 3 })).map(([key]) => key.split("/")[2]), ["h", "f", "e"]);
  await store.delete("with-media");
  const next = await openStore();
  const left = await next.resume("with-it-too");
  assert.deepEqual(left.events[0].data.parts[0].blob, names[0]);
  assert.ok((await backend.list("b/", "b0", { keysOnly: true })).length > 0);
  await left.dispose();
  await next.delete("with-it-too");
  assert.deepEqual(await backend.list("b/", "b0", { keysOnly: true }), []);
  await store.dispose();
  await next.dispose();
});

test("encrypted before it leaves: the host has keys and no contents, and who follows reads it", { skip }, async () => {
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const open = () => SessionStore.open({ storage: { kind: "custom", backend: encrypted(remote(tokens.bob).backend(), key) } });
  const one = await open();
  const session = one.create("sealed");
  session.append("user/message", { text: "nobody's business" });
  await session.flush();
  const two = await open();
  const follower = await two.resume("sealed");
  assert.deepEqual([texts(follower), follower.readOnly], [["nobody's business"], true]);
  const raw = remote(tokens.bob).backendOf("sealed");
  for (const [, value] of await raw.list("s/", "s0")) assert.ok(!new TextDecoder().decode(value).includes("business"));
  await one.dispose();
  await two.dispose();
});

test("a key of another session is refused", { skip }, async () => {
  const backend = remote().backendOf("mine");
  await assert.rejects(backend.get("s/other/h"), { code: "invalid_argument" });
  await assert.rejects(remote().backend().transact({ puts: [["s/a/h", new Uint8Array()], ["s/b/h", new Uint8Array()]] }), { code: "invalid_argument" });
  await assert.rejects(remote(tokens.reader).backend().transact({ puts: [["u/x", new Uint8Array()]] }), (error) => error.details.status === 403);
});

test("the host dies and comes back under a client that writes: it goes on, everything is there once", { skip, timeout: 60_000 }, async (t) => {
  const store = await SessionStore.open({ storage: remote(tokens.alice, { retryMs: 15_000 }).storage });
  const follower = await SessionStore.open({ storage: remote(tokens.alice, { retryMs: 15_000 }).storage });
  // What fails ends all the same: clients that go on trying keep the process alive.
  t.after(() => Promise.all([store.dispose(), follower.dispose()]));
  const session = store.create("survives");
  session.append("user/message", { text: "0" });
  await session.flush();
  const watching = await follower.resume("survives");
  const { port } = host;
  let n = 1;
  for (let kill = 0; kill < 3; kill++) {
    const writing = (async () => { for (let i = 0; i < 15; i++) await session.appendDurable("user/message", { text: String(n++) }); })();
    await new Promise((resolve) => setTimeout(resolve, 60 + 40 * kill));
    await host.kill();
    host = await startHost({ disk, port });
    await writing;
  }
  const wanted = Array.from({ length: n }, (_, i) => String(i));
  assert.deepEqual(texts(session), wanted);
  await until(() => watching.seq >= n || !watching.readOnly, () => `the follower to see ${n} events, it has ${watching.seq}`);
  assert.deepEqual(texts(watching).slice(0, n), wanted);
  await store.dispose();
  await follower.dispose();
  const { events } = (await call(host, "GET", "/v1/sessions/survives/events")).json;
  assert.deepEqual(events.map(({ data }) => data.text), wanted);
});

test("appends of the host's own interface: what was not acknowledged when the connection broke is sent once more and stored once", { skip, timeout: 60_000 }, async () => {
  const store = remote();
  await store.create({ id: "lines" });
  const session = store.session("lines");
  await session.append("user/message", { text: "first" });
  const { port } = host;
  const pending = Array.from({ length: 200 }, (_, n) => session.append("user/message", { text: `p${n}` }));
  await host.kill();
  assert.ok(session.unacknowledged > 0, "some were under way");
  host = await startHost({ disk, port });
  const receipts = await Promise.all(pending);
  assert.equal(session.unacknowledged, 0);
  const events = await session.read();
  assert.deepEqual(events.map(({ data }) => data.text), ["first", ...Array.from({ length: 200 }, (_, n) => `p${n}`)]);
  receipts.forEach(({ seq, id }, n) => assert.deepEqual([events[seq].id, events[seq].data.text], [id, `p${n}`]));
  session.close();
});
