import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

await init();

const custom = (backend) => ({ storage: { kind: "custom", backend } });
const say = (session, text) => session.append("user/message", { text });
const day = 86_400_000;

test("a record has every row, and follows the events", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" }, clock: () => 0 });
  const session = store.create("s1", { meta: { cwd: "/w" }, record: { mode: "agent" } });
  let record = await store.record("s1");
  assert.equal(record.id, "s1");
  assert.equal(record.mode, "agent");
  assert.equal(record.working_directory, "/w");
  assert.equal(record.metadata_version, 3);
  assert.equal(record.createdAt, "1970-01-01T00:00:00.000Z");
  assert.equal(record.toolkit_origin, "chosen");
  say(session, "first \n question");
  session.append("turn/start", { turn: 1, trigger: { kind: "message" } });
  say(session, "second");
  record = await store.record("s1");
  assert.equal(record.first_preview, "first question");
  assert.equal(record.last_prompt, "second");
  assert.equal(record.status, "running");
  session.append("turn/end", { turn: 1, reason: { kind: "completed" } });
  session.setTitle("T");
  record = await store.updateRecord("s1", { thinking: "high" });
  assert.deepEqual([record.status, record.title, record.thinking, record.interrupted_turn], ["idle", "T", "high", null]);
  await assert.rejects(store.updateRecord("s1", { nope: 1, neither: 2 }), (e) => e.code === "invalid_argument" && /nope.*neither/.test(e.message));
  assert.equal((await store.updateRecord("s1", { last_prompt: "x\ud83dy" })).last_prompt, "x?y");
  await assert.rejects(store.record("nothing"), { code: "not_found" });
});

test("listing sorts, pages, hides archived ones and reads no event", async () => {
  const backend = memoryBackend();
  let now = 0;
  const store = await SessionStore.open({ ...custom(backend), clock: () => now });
  for (const id of ["a", "b", "c"]) {
    now += day;
    say(store.create(id), `hello ${id}`);
    await store.flush();
  }
  now += day;
  say(store.get("a"), "again");
  await store.archive("b");
  await store.dispose();
  const again = await SessionStore.open({ ...custom(backend), clock: () => now });
  const touched = [];
  const list = backend.list;
  backend.list = (start, ...rest) => (touched.push(start), list(start, ...rest));
  const ids = async (options) => (await again.sessions(options)).map((s) => s.id);
  assert.deepEqual(await ids(), ["a", "c"]);
  assert.deepEqual(await ids({ includeArchived: true, sort: "createdAt", order: "asc" }), ["a", "b", "c"]);
  assert.deepEqual(await ids({ sort: "nonsense", order: "nonsense" }), ["a", "c"]);
  assert.deepEqual(await ids({ limit: 1, offset: 1 }), ["c"]);
  assert.ok(touched.every((start) => start === "r/"), String(touched));
  const [first] = await again.sessions();
  assert.deepEqual([first.title, first.preview, first.events, first.status], ["hello a", "hello a", 2, "idle"]);
  backend.map.set("r/c", new TextEncoder().encode("{broken"));
  assert.deepEqual(await ids(), ["a"]);
});

test("ids resolve exactly or by a unique prefix", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  for (const id of ["abc", "abcd", "xyz"]) say(store.create(id), `in ${id}`);
  assert.equal(await store.resolveId("abc"), "abc");
  assert.equal(await store.resolveId("x"), "xyz");
  await assert.rejects(store.resolveId("ab"), (e) => {
    assert.equal(e.code, "ambiguous_id");
    assert.deepEqual(e.details.matches, [{ id: "abc", preview: "in abc" }, { id: "abcd", preview: "in abcd" }]);
    return true;
  });
  await assert.rejects(store.resolveId("q".repeat(200)), (e) => e.code === "not_found" && e.details.given.length === 81);
});

test("a chain goes on once, carries setup and title, and is rolled back when it fails", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  store.create("s1", { meta: { cwd: "/w" }, record: { thinking: "low", toolkit: "t" } }).setTitle("T");
  await store.flush();
  const failing = new Error("disk");
  store.on("session/flush", () => { if (backend.failNext) { backend.failNext = false; throw failing; } });
  backend.failNext = true;
  await assert.rejects(store.continueSession("s1"), /disk/);
  assert.deepEqual((await store.sessions()).map((s) => s.id), ["s1"]);
  const next = await store.continueSession("s1", { recap: "r".repeat(9000) });
  const record = await store.record(next.id);
  assert.deepEqual([record.continues, record.thinking, record.toolkit, record.title, next.title], ["s1", "low", "t", "T", "T"]);
  assert.equal(next.events.find((e) => e.type === "context/message").data.text.length, 8000);
  assert.equal((await store.record("s1")).archived, true);
  await assert.rejects(store.continueSession("s1"), { code: "already_exists" });
});

test("a stop marker changes its own marker only; a loaded one is settled by the next owner", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const session = store.create("s1");
  session.append("turn/start", { turn: 1, trigger: { kind: "message" } });
  await store.flush();
  const other = await SessionStore.open(custom(backend));
  assert.equal((await other.sessions())[0].status, "idle");
  assert.equal((await other.record("s1")).status, "running");
  await other.markStopped("s1");
  const record = await other.record("s1");
  assert.deepEqual([record.status, record.interrupted_turn], ["stopped", { turn: 1, seq: 0 }]);
  const resumed = await other.resume("s1");
  assert.deepEqual(resumed.events.map((e) => e.type), ["turn/start", "turn/end"]);
  assert.equal((await other.record("s1")).interrupted_turn, null);
});

test("a sweep takes what is old, then scratch and empty ones", async () => {
  const backend = memoryBackend();
  let now = 0;
  const store = await SessionStore.open({ ...custom(backend), clock: () => now });
  const make = (id, text, record) => { const s = store.create(id, { record }); if (text) say(s, text); };
  make("old", "x");
  await store.flush();
  await store.archive("old");
  now = 20 * day;
  make("kept", "x"); make("scratch", "x", { scratch: true }); make("empty"); make("fresh", "x");
  await store.dispose();
  const again = await SessionStore.open({ ...custom(backend), clock: () => now });
  assert.deepEqual((await again.sweep({ maxAgeDays: 0, maxSessions: 0 })).deleted, []);
  assert.deepEqual((await again.sweep({ maxSessions: 3 })).deleted, ["old", "empty"]);
  assert.deepEqual((await again.sweep({ maxSessions: 2 })).deleted, ["scratch"]);
  await again.archive("kept");
  now = 30 * day;
  await again.unarchive("kept");
  now = 40 * day;
  assert.deepEqual((await again.sweep()).deleted, ["fresh"]);
});

test("export and import are lossless; a damaged line costs itself and survives", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const session = store.create("s1", { meta: { cwd: "/w" } });
  for (const text of ["a", "b", "c", "d"]) say(session, text);
  await store.updateRecord("s1", { title: "T" });
  const first = await store.exportSession("s1");
  const copy = first.slice();
  const other = await SessionStore.open({ storage: { kind: "memory" } });
  const { session: same, report } = await other.importSession(copy);
  copy.fill(0);
  assert.deepEqual(report, { lost: [], damaged: [] });
  assert.deepEqual(same.events, session.events);
  assert.equal(same.verify(), null);
  assert.deepEqual(Buffer.from(await other.exportSession("s1")).toString().split("\n").slice(1), Buffer.from(first).toString().split("\n").slice(1));
  assert.equal((await other.record("s1")).title, "T");
  await assert.rejects(other.importSession(first), { code: "already_exists" });

  const lines = Buffer.from(first).toString().trimEnd().split("\n");
  const torn = lines[2].slice(0, 40);
  const broken = [lines[0], lines[1], torn, "\0".repeat(16), "true", lines[3], lines[4]].join("\n");
  const third = await SessionStore.open(custom(memoryBackend()));
  const imported = await third.importSession(broken, { id: "s2" });
  assert.deepEqual(imported.report.damaged, [{ line: 3, bytes: 40 }, { line: 4, bytes: 16 }, { line: 5, bytes: 4 }]);
  assert.deepEqual(imported.session.events.map((e) => e.data.text), ["a", "c", "d"]);
  assert.deepEqual(imported.session.events.map((e) => e.seq), [0, 2, 3]);
  assert.equal(imported.session.verify(), 1);
  assert.equal(imported.session.append("user/message", { text: "e" }).seq, 4);
  await imported.session.flush();
  await imported.session.dispose();
  const kept = Buffer.from(await third.exportSession("s2")).toString();
  for (const raw of [torn, "\0".repeat(16), "\ntrue\n"]) assert.ok(kept.includes(raw));
  const resumed = await third.resume("s2");
  assert.deepEqual(resumed.events.map((e) => e.seq), [0, 2, 3, 4]);
  for (const bad of ["", "true", "{}", '{"sessionlog":1}', new Uint8Array([255, 0])]) await assert.rejects(third.importSession(bad), { code: "corrupt" });
  await assert.rejects(third.importSession('{"sessionlog":9,"header":{"id":"x"}}'), { code: "newer_format" });
});

test("G13: bytes that were handed out do not change", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create("s1");
  say(session, "a");
  const bytes = await store.exportSession("s1");
  const before = Buffer.from(bytes).toString();
  for (let i = 0; i < 20; i++) say(session, "x".repeat(1024 * 1024));
  assert.equal(Buffer.from(bytes).toString(), before);
});

test("a version 3 record file goes in and out with nothing lost", async () => {
  const file = {
    metadata_version: 3, written_by: "d 1.0", id: "s1", mode: "chat", model_name: "m", working_directory: "/w", created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-02T00:00:00Z", title: "T", verdicts: [{ a: 1.5 }], thinking: { odd: true }, x_new: [100], first_preview: "hi", last_prompt: "hi",
    messages: [{ role: "user", content: "hi", id: 7 }, { role: "assistant", content: "hello" }],
  };
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const { session, report } = await store.importSession(JSON.stringify(file), { format: "samagotchi" });
  assert.deepEqual(report, { lost: [], damaged: [] });
  assert.deepEqual(session.deriveMessages().map((m) => [m.role, m.parts[0].text]), [["user", "hi"], ["assistant", "hello"]]);
  assert.equal(session.header.createdAt, Date.UTC(2026, 0, 1));
  const out = JSON.parse(Buffer.from(await store.exportSession("s1", { format: "samagotchi" })).toString());
  for (const [key, value] of Object.entries(file)) if (!["written_by", "updated_at"].includes(key)) assert.deepEqual(out[key], value, key);
  say(session, "more");
  const longer = JSON.parse(Buffer.from(await store.exportSession("s1", { format: "samagotchi" })).toString());
  assert.deepEqual(longer.messages.slice(0, 2), file.messages);
  assert.deepEqual(longer.messages[2], { role: "user", content: "more" });
});

test("a list counts the events of sessions that nobody has open, also those that change nothing else in a record", async () => {
  const backend = memoryBackend();
  const options = { storage: { kind: "custom", backend } };
  const store = await SessionStore.open(options);
  const session = store.create("s1");
  session.append("user/message", { text: "go" });
  await session.flush();
  for (let step = 0; step < 5; step++) session.append("assistant/message", { parts: [{ type: "text", text: `${step}` }] });
  assert.equal((await store.sessions())[0].events, 6);
  await store.dispose();
  const again = await SessionStore.open(options);
  const [listed] = await again.sessions();
  assert.equal(listed.events, 6);
  // Who looks and leaves changes nothing.
  await (await again.resume("s1")).dispose();
  assert.deepEqual(await again.sessions(), [listed]);
});

test("a session is resumed in ways that there are", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  await store.create("s1").dispose();
  for (const options of [{ recover: "typo" }, { recover: 5 }, { unknownEvents: "drop" }]) {
    await assert.rejects(store.resume("s1", options), (error) => error.code === "invalid_argument");
  }
  for (const recover of ["close", "resume", "ask"]) await (await store.resume("s1", { recover })).dispose();
});

test("events of built-in types with payloads of another kind leave the record readable", async () => {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create("odd");
  session.append("user/message", { text: "first" });
  for (const [type, data] of [["session/titled", { title: 5 }], ["session/titled", {}], ["turn/start", {}], ["turn/start", { turn: "x" }]]) session.append(type, data);
  await session.flush();
  const record = await store.record("odd");
  assert.deepEqual([record.title, record.last_prompt, record.status], [null, "first", "idle"]);
  assert.equal((await store.sessions()).length, 1);
  await store.dispose();
});
