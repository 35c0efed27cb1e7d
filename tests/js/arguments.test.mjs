// Odd arguments and values: each is refused by a typed error before anything happens, or taken for what it says.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import init, { isJsonValue, SessionLogError, SessionStore, VirtualFs } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

before(() => init());

const memory = (options) => SessionStore.open({ storage: { kind: "memory" }, ...options });
const custom = (backend, options) => SessionStore.open({ storage: { kind: "custom", backend }, ...options });
const say = (session, text) => session.append("user/message", { text });
const texts = (events) => events.map((event) => event.data.text);
const decode = (bytes) => new TextDecoder().decode(bytes);
const typed = (code) => (thrown) => thrown instanceof SessionLogError && thrown.code === code;
/** Calls it, at once or later; whatever it throws must be one of ours. */
const answer = async (work) => {
  try {
    return await work();
  } catch (thrown) {
    assert.ok(thrown instanceof SessionLogError, `a raw ${thrown?.constructor?.name}: ${thrown?.message}`);
    return thrown.code;
  }
};

test("a fork is cut where a number says, and nowhere else", async () => {
  const store = await memory();
  const source = store.create("s1");
  for (const text of ["a", "b", "c"]) say(source, text);
  for (const bad of [NaN, Infinity, -Infinity, -1, 1.5, "2", 1n, [2], { toJSON: () => 2 }, { toJSON: () => { throw new Error("odd"); } }]) {
    for (const name of ["count", "throughSeq", "messageSeq"]) assert.throws(() => store.fork("s1", { [name]: bad }), typed("invalid_boundary"), name);
  }
  assert.equal(store.list().length, 1);
  assert.equal(store.fork("s1", { count: null, throughSeq: 1 }).events[1].data.text, "b", "null stands for none");
  assert.equal(store.fork("s1", { count: 0 }).seq, 1);
  await store.dispose();
});

test("a store is opened with what its options may be", async () => {
  for (const odd of [
    { scrubbers: 5 }, { scrubbers: {} }, { random: 5 }, { clock: 5 }, { clock: "x" }, { onWarning: 5 }, { lockTimeoutMs: "x" },
    { storage: 5 }, { storage: {} }, { storage: { kind: "constructor" } }, { storage: { kind: "toString" } }, { storage: { kind: "__proto__" } },
    { storage: { kind: "custom" } }, { storage: { kind: "custom", backend: null } }, { storage: { kind: "custom", backend: {} } },
  ]) {
    await assert.rejects(SessionStore.open({ storage: { kind: "memory" }, ...odd }), typed("invalid_argument"), JSON.stringify(odd));
  }
  for (const none of [{ random: null }, { clock: null }, { scrubbers: null }, { storage: null }]) {
    const store = await memory(none);
    assert.equal(say(store.create(), "kept").seq, 0);
    await store.dispose();
  }
  await assert.rejects(VirtualFs.open({ clock: 5 }), typed("invalid_argument"));
  await assert.rejects(VirtualFs.open({ storage: { kind: "constructor" } }), typed("invalid_argument"));
});

test("a clock that throws or tells no time costs no event", async () => {
  let tell = () => 1000;
  const store = await memory({ clock: () => tell() });
  const session = store.create("s1");
  for (const odd of [() => { throw new Error("no time"); }, () => 1n, () => Symbol("now"), () => NaN, () => undefined, () => ({ valueOf() { throw new Error("odd"); } })]) {
    tell = odd;
    assert.equal(say(session, "kept").at, 1000, "it stands still");
  }
  tell = () => 2000;
  assert.equal(say(session, "kept").at, 2000);
  await store.dispose();
  tell = () => { throw new Error("no time"); };
  const files = await VirtualFs.open({ clock: () => tell() });
  files.writeFile("/a", "kept");
  assert.equal(files.readText("/a"), "kept");
  await files.dispose();
});

test("whatever is thrown for an odd argument is an error of ours", async () => {
  const store = await memory();
  const session = store.create("s1");
  say(session, "a");
  const trap = new Proxy({ title: "t" }, { ownKeys() { throw new Error("trap"); } });
  assert.equal(await answer(() => store.updateRecord("s1", trap)), "not_json");
  assert.equal(await answer(() => store.create("s2", { meta: trap })), "not_json");
  assert.equal(await answer(() => store.create("s2", { record: 5 })), "invalid_argument");
  assert.equal(await answer(() => store.create("s2", { meta: 5 })), "invalid_argument");
  assert.equal(await answer(() => store.create("s2", { record: null }).seq), 0);
  for (const odd of [1n, "1", {}]) assert.equal(await answer(() => session.deriveMessages({ upto: odd })), "invalid_argument");
  assert.equal(session.deriveMessages({ upto: null }).length, 1);
  assert.equal(await answer(() => session.compact(() => "x", { keepTokens: "a" })), "invalid_argument");
  assert.equal(await answer(() => store.importSession(Object.create(Uint8Array.prototype))), "invalid_argument");
  assert.equal(await answer(() => session.putBlob(Object.create(Uint8Array.prototype), { mediaType: "image/png" })), "invalid_argument");
  for (const text of ["null", "5", "[]", '{"sessionlog":1,"header":{}}', '{"sessionlog":1,"header":{"id":5}}']) assert.equal(await answer(() => store.importSession(text)), "corrupt", text);
  assert.deepEqual(store.list().map(({ id }) => id), ["s1", "s2"]);
  await store.dispose();
});

test("a summarizer that fails leaves the session as it was, and its error is the cause of ours", async () => {
  const store = await memory();
  const session = store.create("s1");
  say(session, "a");
  const cause = new Error("no model");
  for (const fails of [() => { throw cause; }, () => Promise.reject(cause)]) {
    await assert.rejects(session.compact(fails), (thrown) => typed("unavailable")(thrown) && thrown.cause === cause);
  }
  assert.equal(session.seq, 1);
  await store.dispose();
});

test("a record that was read can be given back whole", async () => {
  const store = await memory();
  store.create("s1");
  await store.updateRecord("s1", { title: "one", verdicts: [1] });
  const record = await store.record("s1");
  assert.equal((await store.updateRecord("s1", { ...record, title: "two" })).title, "two");
  assert.deepEqual({ ...(await store.record("s1")), title: "one", updated_at: "", updatedAt: "" }, { ...record, updated_at: "", updatedAt: "" });
  assert.equal((await store.updateRecord("s1", { archived: true })).archived, true);
  assert.deepEqual(await store.sessions(), []);
  assert.equal((await store.updateRecord("s1", { archived: false })).archived, false);
  assert.equal(store.create("s2", { record }).id, "s2");
  for (const bad of [{ archived: 1 }, { created_at: "not a date" }, { updatedAt: "zzz" }, { createdAt: 7 }]) await assert.rejects(store.updateRecord("s1", bad), typed("invalid_argument"));
  assert.throws(() => store.create("s3", { record: { created_at: "not a date" } }), typed("invalid_argument"));
  for (const key of ["constructor", "__proto__", "toString"]) {
    await assert.rejects(store.updateRecord("s1", JSON.parse(`{"${key}":5}`)), (thrown) => typed("invalid_argument")(thrown) && thrown.details.fields[0] === key);
  }
  // What no row can read stays as it is when what it reads as comes back.
  const file = { metadata_version: 3, id: "d1", mode: "m", model_name: "x", working_directory: "/w", created_at: "t", updated_at: "t", thinking: [1], parent_answers: "maybe", messages: [] };
  await store.importSession(JSON.stringify(file), { format: "samagotchi" });
  await store.updateRecord("d1", { ...(await store.record("d1")), title: "T" });
  const out = JSON.parse(decode(await store.exportSession("d1", { format: "samagotchi" })));
  assert.deepEqual([out.thinking, out.parent_answers, out.title, out.created_at], [[1], "maybe", "T", "t"]);
  await store.dispose();
});

test("a session that is opened with no turn open is idle, whatever its record says", async () => {
  const backend = memoryBackend();
  let store = await custom(backend);
  for (const id of ["s1", "s2"]) say(store.create(id), "a");
  store.get("s2").append("turn/start", { turn: 1, trigger: { kind: "message" } });
  await store.updateRecord("s1", { status: "running" });
  await store.dispose();
  store = await custom(backend);
  await store.resume("s1");
  await store.resume("s2", { recover: "ask" });
  assert.equal((await store.record("s1")).status, "idle");
  assert.equal((await store.record("s2")).status, "running");
  assert.equal((await store.sessions()).find(({ id }) => id === "s1").status, "idle");
  await store.dispose();
});

test("lists of a class are no lists", async () => {
  class Rows extends Array {}
  const store = await memory();
  const session = store.create("s1");
  assert.equal(isJsonValue(Rows.from([1])), false);
  assert.throws(() => session.append("user/message", { text: "", rows: [Rows.from([1])] }), (thrown) => typed("not_json")(thrown) && thrown.details.path === "rows[0]");
  const { runInNewContext } = await import("node:vm");
  assert.deepEqual(session.append("user/message", { rows: runInNewContext("[[1], {}]") }).data.rows, [[1], {}], "another realm's are lists");
  await store.dispose();
});

test("what a log holds can be a seed, and each event of a seed is one of its own", async () => {
  const store = await memory();
  let deep = "leaf";
  for (let level = 0; level < 999; level++) deep = [deep];
  const session = store.create("s1");
  session.append("user/message", { source: deep });
  assert.equal(store.create("s2", { seed: session.events }).seq, 1);
  assert.throws(() => session.append("user/message", { source: [deep] }), typed("not_json"));
  const event = { ...session.events[0], data: { text: "a" } };
  assert.throws(() => store.create("s3", { seed: [event, { ...event, seq: 1 }] }), (thrown) => typed("invalid_seed")(thrown) && thrown.details.index === 1);
  for (const meta of [{ cwd: 5 }, { parentSession: 5 }, { createdAt: "x" }]) assert.throws(() => store.create("s4", { meta }), SessionLogError);
  // The same line in another order of members, as another writer puts it.
  const lines = decode(await store.exportSession("s1")).split("\n");
  const foreign = JSON.stringify({ data: { source: deep }, type: "user/message", at: 5, id: "00000000000000aa", seq: 0 });
  const { session: taken, report } = await store.importSession(`${lines[0]}\n${foreign}\n`, { id: "s5" });
  assert.deepEqual([taken.seq, report.damaged], [1, []]);
  await store.dispose();
});

test("a session is announced once", async () => {
  const store = await memory();
  const told = [];
  store.on("session/created", (session) => told.push(session.id));
  const session = store.create("s1");
  assert.throws(() => store.announce(session), typed("invalid_argument"));
  assert.deepEqual(told, ["s1"]);
  await store.dispose();
});

test("there is no event between two numbers", async () => {
  const store = await memory();
  const session = store.create("s1");
  say(session, "a");
  for (const none of [0.5, NaN, Infinity, -1, 1]) assert.equal(session.event(none), undefined);
  assert.equal(session.event(0).data.text, "a");
  await store.dispose();
});

test("an import tells of lines that it passed over, and of a record that it could not read", async () => {
  const store = await memory();
  for (const text of ["a", "b", "c"]) say(store.get("s1") ?? store.create("s1"), text);
  const lines = decode(await store.exportSession("s1")).trimEnd().split("\n");
  const { report } = await store.importSession([lines[0], lines[1], "", lines[1], ...lines.slice(2)].join("\r\n"), { id: "s2" });
  assert.deepEqual([report.lost.length, report.damaged.length, texts(store.get("s2").events)], [1, 0, ["a", "b", "c"]]);
  assert.match(report.lost[0], /: 1$/);
  const gap = await store.importSession([lines[0], lines[1], "torn", lines[3]].join("\n"), { id: "s3" });
  assert.deepEqual([gap.report.lost.length, gap.report.damaged.length], [0, 1], "a lost line and a damaged one repeat nothing");
  const { header } = JSON.parse(lines[0]);
  for (const [at, entry] of [5, null, {}, { record: {} }].entries()) {
    const head = JSON.stringify({ sessionlog: 1, header, entry });
    const taken = await store.importSession([head, ...lines.slice(1)].join("\n"), { id: `e${at}` });
    assert.deepEqual([taken.session.seq, taken.report.lost.length], [3, 1], head);
  }
  await store.dispose();
});

test("an import leaves the times that a file names, and its export is the file", async () => {
  let now = Date.parse("2020-01-01T00:00:00Z");
  let store = await memory({ clock: () => now });
  say(store.create("s1", { meta: { cwd: "/w" } }), "a");
  await store.archive("s1");
  const bytes = decode(await store.exportSession("s1"));
  await store.dispose();
  now = Date.parse("2026-01-01T00:00:00Z");
  const backend = memoryBackend();
  store = await custom(backend, { clock: () => now });
  await store.importSession(bytes);
  assert.equal(decode(await store.exportSession("s1")), bytes);
  const file = { metadata_version: 3, id: "d1", mode: "m", model_name: "x", working_directory: "/w", created_at: "2019-01-01T00:00:00Z", updated_at: "2019-01-02T00:00:00Z" };
  await store.importSession(JSON.stringify({ ...file, messages: [] }), { format: "samagotchi" });
  await store.importSession(JSON.stringify({ ...file, id: "d2", messages: [{ role: "user", content: "hi" }] }), { format: "samagotchi" });
  await store.dispose();
  store = await custom(backend, { clock: () => now });
  assert.equal(decode(await store.exportSession("s1")), bytes);
  for (const [id, messages] of [["d1", []], ["d2", [{ role: "user", content: "hi" }]]]) {
    const out = JSON.parse(decode(await store.exportSession(id, { format: "samagotchi" })));
    assert.deepEqual([out.updated_at, out.messages], [file.updated_at, messages]);
  }
  say(await store.resume("d1"), "later");
  await store.flush();
  assert.equal((await store.sessions())[0].id, "d1", "what is said here is new");
  await store.dispose();
});

test("files in a store of a newer version are read, and nothing is written there", async () => {
  const backend = memoryBackend();
  const store = await custom(backend);
  say(store.create("s1"), "a");
  await store.dispose();
  let files = await VirtualFs.open({ storage: { kind: "custom", backend } });
  files.writeFile("/a", "old");
  await files.dispose();
  const format = JSON.parse(decode(backend.map.get("m/format")));
  backend.map.set("m/format", new TextEncoder().encode(JSON.stringify({ ...format, version: format.version + 1 })));
  const stored = () => JSON.stringify([...backend.map].map(([key, value]) => [key, [...value]]));
  const before = stored();
  files = await VirtualFs.open({ storage: { kind: "custom", backend } });
  assert.equal(files.readText("/a"), "old");
  files.writeFile("/a", "new");
  await assert.rejects(files.flush(), typed("newer_format"));
  await assert.rejects(files.dispose(), typed("newer_format"));
  assert.equal(stored(), before);
});

test("a stored line without its digest fits no chain", async () => {
  const backend = memoryBackend();
  let store = await custom(backend);
  const session = store.create("s1");
  for (const text of ["a", "b", "c"]) {
    say(session, text);
    await session.flush();
  }
  const exported = decode(await store.exportSession("s1")).trimEnd().split("\n");
  await store.dispose();
  const key = backend.keys().filter((one) => one.includes("/e/"))[1];
  const line = decode(backend.map.get(key));
  const forge = (text) => text.replace(/"digest":"[0-9a-f]+",/, "").replace('"text":"b"', '"text":"x"');
  const bare = (text) => forge(text).replace(/"salt":"[0-9a-f]+",/, "");
  for (const changed of [forge(line), bare(line)]) {
    backend.map.set(key, new TextEncoder().encode(changed));
    store = await custom(backend);
    assert.notEqual((await store.resume("s1")).verify(), null);
    await store.dispose();
  }
  store = await memory();
  const cut = await store.importSession([...exported.slice(0, 3), forge(exported[3])].join("\n"), { id: "cut" });
  assert.equal(cut.session.verify(), 2);
  // Lines of others have no digests at all, and those that follow them are made here.
  const others = await store.importSession([exported[0], ...exported.slice(1).map(bare)].join("\n"), { id: "others" });
  assert.equal(others.session.verify(), null);
  say(others.session, "d");
  const again = await store.importSession(await store.exportSession("others"), { id: "again" });
  assert.deepEqual([again.session.verify(), again.session.seq], [null, 4]);
  await store.dispose();
});
