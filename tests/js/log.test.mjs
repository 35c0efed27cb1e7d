// The log and the store under hostile input: what goes in comes out unchanged, or is refused with a reason.
import { test } from "node:test";
import assert from "node:assert/strict";
import init, { SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

await init();

const open = (options = {}) => SessionStore.open({ storage: { kind: "memory" }, ...options });
const custom = (backend) => ({ storage: { kind: "custom", backend } });
const say = (session, text) => session.append("user/message", { text });
const texts = (session) => session.events.filter((e) => e.type === "user/message").map((e) => e.data.text);
const idOf = (n) => n.toString(16).padStart(16, "0");
const line = (seq, data = { text: `t${seq}` }, more = {}) => JSON.stringify({ seq, id: idOf(seq + 1), at: 1, type: "user/message", ...more, data });
const head = JSON.stringify({ sessionlog: 1, header: { version: 1, id: "x1", createdAt: 5 } });
const texted = async (store, id) => new TextDecoder().decode(await store.exportSession(id));

test("A15: a stored line with an escaped half loads, and what is derived is well formed", async () => {
  const store = await open();
  const raw = `{"seq":0,"id":"${idOf(1)}","at":1,"type":"user/message","data":{"text":"x\\ud83d…"}}`;
  const { session, report } = await store.importSession(`${head}\n${raw}\n`);
  assert.deepEqual(report.damaged, []);
  const [message] = session.deriveMessages();
  assert.equal(message.parts[0].text, "x\ufffd…");
  const request = JSON.stringify(session.deriveRequest({ target: "openai-chat", model: "m" }));
  assert.ok(!/\\ud[89a-f]/i.test(request), request);
  assert.ok((await texted(store, "x1")).includes('{"text":"x\\ud83d…"}'), "the stored bytes stay");
});

test("G09: the text of numbers and the order of members survive import, fork, store and export", async () => {
  const data = '{"b":1.50,"a":9007199254740993,"note":null,"n":{"z":1e2,"y":-0.0},"safe":9007199254740991}';
  const raw = `{"seq":0,"id":"${idOf(1)}","at":1,"type":"user/message","data":${data}}`;
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  await store.importSession(`${head}\n${raw}\n`);
  store.fork("x1", { id: "child" });
  await store.flush();
  const first = await texted(store, "x1");
  assert.ok(first.includes(`"data":${data}}`));
  assert.ok((await texted(store, "child")).includes(`"data":${data}}`));
  await store.dispose();
  const again = await SessionStore.open(custom(backend));
  const { data: seen } = (await again.resume("x1")).event(0);
  assert.deepEqual([typeof seen.safe, seen.note, "tag" in seen, Object.keys(seen).join()], ["number", null, false, "b,a,note,n,safe"]);
  const lines = (text) => text.trimEnd().split("\n").slice(1);
  assert.deepEqual(lines(await texted(again, "x1")), lines(first));
  const other = await open();
  await other.importSession(first);
  assert.deepEqual(lines(await texted(other, "x1")), lines(first));
});

test("G09: the text of numbers in a header survives import, fork, store and export", async () => {
  const header = '{"version":1,"id":"n1","createdAt":5,"future":{"b":9007199254740993,"a":1.50},"cwd":"/w"}';
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const { session } = await store.importSession(`{"sessionlog":1,"header":${header}}\n${line(0)}\n`);
  assert.deepEqual([session.id, session.header.cwd, session.seq], ["n1", "/w", 1]);
  store.fork("n1", { id: "child" });
  await store.importSession(`{"header":${header},"sessionlog":1}\n${line(0)}\n`, { id: "other" });
  await store.dispose();
  const again = await SessionStore.open(custom(backend));
  await again.resume("n1");
  for (const id of ["n1", "other"]) assert.ok((await texted(again, id)).startsWith(`{"sessionlog":1,"header":${header.replace("n1", id)},`), id);
  assert.ok((await again.resume("child")).seq > 0);
});

test("B01: damaged lines are numbered through an import of many pieces, and the rest comes out as it went in", async () => {
  const source = await open();
  const session = source.create("big");
  for (let i = 0; i < 60; i++) say(session, `${i} é ${"x".repeat(60_000)}`);
  const lines = (await texted(source, "big")).trimEnd().split("\n");
  lines.splice(50, 0, "true");
  lines.splice(20, 0, lines[30], '{"seq":');
  const bad = [[22, 7], [53, 4]];
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const { session: loaded, report } = await store.importSession(`${lines.join("\n")}\n`);
  // The line that came early stands for itself: those it overtook are lost to it, and it is no damage.
  const early = report.damaged.filter(({ bytes }) => bytes > 100);
  assert.deepEqual(report.damaged.filter(({ bytes }) => bytes <= 100), bad.map(([at, bytes]) => ({ line: at, bytes })));
  assert.equal(early.length + loaded.events.length, 60);
  const text = await texted(store, "big");
  for (const one of lines.slice(1)) assert.ok(text.includes(`${one}\n`));
  await store.dispose();
  const again = await SessionStore.open(custom(backend));
  await again.resume("big");
  assert.deepEqual((await texted(again, "big")).split("\n").sort(), text.split("\n").sort());
});

test("B01: line ends of another system, a mark before the text, and blank lines cost nothing", async () => {
  const store = await open();
  const session = store.create("s1", { meta: { cwd: "/w" } });
  for (const text of "abc") say(session, text);
  const text = await texted(store, "s1");
  const other = await open();
  const { session: same, report } = await other.importSession(`\ufeff${text.replaceAll("\n", "\r\n")}\r\n\r\n`);
  assert.deepEqual(report, { lost: [], damaged: [] });
  assert.deepEqual(same.events, session.events);
  assert.equal(same.verify(), null);
  const lines = (t) => t.split("\n").slice(1);
  assert.deepEqual(lines(await texted(other, "s1")), lines(text));
});

test("B01: two events of one number: the first stays, the other is reported and kept", async () => {
  const store = await open();
  const twice = line(1, { text: "other" }, { id: idOf(99) });
  const { session, report } = await store.importSession([head, line(0), line(1), twice, line(0), line(2), line(1)].join("\n"));
  assert.deepEqual(texts(session), ["t0", "t1", "t2"]);
  assert.deepEqual(report.damaged, [{ line: 4, bytes: twice.length }]);
  assert.ok((await texted(store, "x1")).includes(twice));
});

test("G05: no line can take the module down", async () => {
  const store = await open();
  const hostile = [
    line(9007199254740991), line(1e12), line(-1), line(1.5), '{"seq":99999999999999999999999,"id":"0000000000000001","at":0,"type":"error","data":{}}',
    line(0, { text: "x" }, { type: 5 }), line(0, [1]), `{"seq":0,"data":${"[".repeat(100_000)}`, `{"a":1,"a":2}`, "\0\0", "[]", '"x"', line(0, { a: 1 }, { bytes: 3 }),
  ];
  const bytes = Buffer.concat([Buffer.from(`${head}\n${hostile.join("\n")}\n`), Buffer.from([0xff, 0xfe, 10]), Buffer.from(`${line(0)}\n`)]);
  const { session, report } = await store.importSession(bytes);
  assert.equal(report.damaged.length, hostile.length + 1);
  assert.deepEqual(texts(session), ["t0"]);
  assert.equal(say(session, "next").seq, 1);
  for (const header of [{}, { id: 5, createdAt: 0 }, { id: "../x" }, { id: "ok", createdAt: "x" }, { id: "ok2", createdAt: 1e300 }]) {
    await store.importSession(JSON.stringify({ sessionlog: 1, header })).then(
      ({ session: made }) => assert.deepEqual(made.events, []),
      (thrown) => assert.ok(["invalid_id", "corrupt", "already_exists", "invalid_argument"].includes(thrown.code), `${thrown.code} ${thrown.message}`),
    );
  }
  assert.throws(() => session.append("user/message", JSON.parse("[".repeat(5000) + "]".repeat(5000))), { code: "not_json" });
  assert.equal(say(session, "still").seq, 2);
});

test("B07: a clock that tells no time costs no event, and a random source that fails costs its own", async () => {
  let told = 1000;
  let fails = false;
  const store = await open({ clock: () => told, random: (bytes) => { if (fails) throw new Error("dry"); crypto.getRandomValues(bytes); } });
  const session = store.create("s1");
  for (const time of [NaN, Infinity, -Infinity, 1e300, 1234.9, -5.5]) {
    told = time;
    say(session, String(time));
  }
  assert.deepEqual(session.events.map((e) => e.at), [1000, 1000, 1000, 1000, 1234, -6]);
  told = NaN;
  store.create("s2");
  assert.equal((await store.record("s2")).createdAt, new Date(-6).toISOString());
  fails = true;
  let stored = session.seq;
  assert.throws(() => { for (let i = 0; i < 1000; i++) { say(session, "x"); stored++; } }, /dry/);
  fails = false;
  assert.equal(say(session, "after").seq, stored);
  assert.deepEqual(session.events.map((e) => e.seq), Array.from({ length: stored + 1 }, (_, i) => i));
  assert.equal(session.verify(), null);
});

test("listeners may call anything: append, fork, create, unsubscribe, appendDurable, dispose", async () => {
  const warnings = [];
  const store = await open({ onWarning: (w) => warnings.push(w) });
  const session = store.create("s1");
  const seen = [];
  let pending;
  session.on("event", (event) => {
    if (event.seq !== 0) return;
    pending = session.appendDurable("user/message", { text: "durable" });
    store.fork("s1", { id: "child" });
    say(store.create("other"), "o");
    session.on("event", (e) => seen.push(["late", e.seq]));
  });
  session.on("event", (e) => seen.push(["last", e.seq]));
  say(session, "first");
  assert.equal((await pending).seq, 1);
  assert.deepEqual(seen.filter(([who]) => who === "last"), [["last", 0], ["last", 1]]);
  assert.deepEqual(store.list().map((s) => s.id), ["s1", "child", "other"]);
  let ending;
  session.on("event", () => (ending = session.dispose()));
  say(session, "end");
  await ending;
  assert.throws(() => say(session, "x"), { code: "disposed" });
  assert.deepEqual((await store.read("s1")).map((e) => e.data.text), ["first", "durable", "end"]);
  assert.deepEqual(warnings, []);
});

test("seeds are contiguous from 0 and valid, or name the index", async () => {
  const store = await open();
  const source = store.create("p");
  for (const text of "abc") say(source, text);
  const good = source.events;
  const child = store.create("c", { seed: good });
  assert.deepEqual(child.events.map((e) => [e.id, e.seq, e.at, e.sessionId]), good.map((e) => [e.id, e.seq, e.at, "c"]));
  good[0].data.text = "changed";
  assert.equal(texts(child)[0], "a");
  const bad = [[1, (s) => (s[1].seq = 5)], [0, (s) => (s[0].seq = -1)], [2, (s) => (s[2].id = "x")], [1, (s) => (s[1].type = "no/such")], [1, (s) => (s[1].data = 5)], [0, (s) => s.shift()], [2, (s) => (s[2] = null)]];
  for (const [index, spoil] of bad) {
    const seed = source.events;
    spoil(seed);
    assert.throws(() => store.create("bad", { seed }), (e) => e.code === "invalid_seed" && e.details.index === index, String(spoil));
    assert.equal(store.get("bad"), undefined);
  }
  assert.throws(() => store.create("bad", { seed: {} }), { code: "invalid_seed" });
});

test("what a session starts with is stored, also when nothing is appended after it", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const source = store.create("p");
  for (const text of "ab") say(source, text);
  store.create("seeded", { seed: source.events });
  const prepared = store.prepare("prepared");
  say(prepared, "early");
  store.announce((store.enter(prepared), prepared));
  await store.importSession(`${head}\n${line(0)}`);
  await store.dispose();
  const again = await SessionStore.open(custom(backend));
  for (const [id, held] of [["seeded", ["a", "b"]], ["prepared", ["early"]], ["x1", ["t0"]]]) assert.deepEqual(texts(await again.resume(id)), held, id);
});

test("prepared sessions: entered once, gone with their detach", async () => {
  const store = await open();
  const one = store.prepare("s1");
  say(one, "before");
  await assert.rejects(one.appendDurable("user/message", { text: "x" }), { code: "invalid_argument" });
  const two = store.prepare("s1");
  const detach = store.enter(one);
  assert.throws(() => store.enter(one), { code: "invalid_argument" });
  assert.throws(() => store.enter(two), { code: "already_exists" });
  detach();
  detach();
  assert.throws(() => store.enter(one), { code: "invalid_argument" });
  store.enter(two);
  assert.equal(store.get("s1"), two);
  const other = await open();
  assert.throws(() => other.enter(other.create("y")), { code: "invalid_argument" });
});

test("an import that a listener vetoes leaves nothing", async () => {
  const store = await open();
  const off = store.on("session/created", () => { throw new Error("veto"); });
  await assert.rejects(store.importSession(`${head}\n${line(0)}`), /veto/);
  assert.equal(store.get("x1"), undefined);
  off();
  assert.deepEqual(texts((await store.importSession(`${head}\n${line(0)}`)).session), ["t0"]);
});

test("events of unknown types are kept byte for byte, or refused on request", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  const raw = line(1, { z: 1, a: [2] }, { type: "future/thing", extraMember: { k: 1 } });
  const { session } = await store.importSession([head, line(0), raw].join("\n"));
  assert.deepEqual(session.deriveMessages().map((m) => m.parts[0].text), ["t0"]);
  await store.dispose();
  const again = await SessionStore.open(custom(backend));
  await assert.rejects(again.resume("x1", { unknownEvents: "refuse" }), { code: "undeclared_type" });
  const kept = await again.resume("x1");
  assert.equal(kept.event(1).type, "future/thing");
  const out = await texted(again, "x1");
  assert.ok(out.includes('"data":{"z":1,"a":[2]}') && out.includes('"extraMember":{"k":1}'));
  await kept.dispose();
  SessionStore.declareEvent("future/thing", { ignorable: true });
  assert.equal((await again.resume("x1", { unknownEvents: "refuse" })).seq, 2);
});

test("a chain of 50 forks, deleted in any order, keeps what is still needed", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  say(store.create("f0"), "0");
  for (let i = 1; i <= 50; i++) say(store.fork(`f${i - 1}`, { id: `f${i}` }), String(i));
  await store.dispose();
  const again = await SessionStore.open(custom(backend));
  const order = Array.from({ length: 50 }, (_, i) => (i * 7) % 50);
  for (const i of order) await again.delete(`f${i}`);
  const last = await again.resume("f50");
  assert.deepEqual(texts(last), Array.from({ length: 51 }, (_, i) => String(i)));
  assert.equal(last.verify(), null);
  await again.delete("f50");
  assert.deepEqual(backend.keys().filter((key) => /\/[hs]|^r\//.test(key.slice(2))), []);
});

test("B09: a load that fails is an error and creates nothing; damage to one session is its own", async () => {
  const backend = memoryBackend();
  const store = await SessionStore.open(custom(backend));
  for (const id of ["a", "b", "c"]) say(store.create(id), id);
  await store.dispose();
  backend.map.set("s/a/h", new TextEncoder().encode("{no"));
  backend.map.set("r/b", new TextEncoder().encode("\0\0\0"));
  const warnings = [];
  const again = await SessionStore.open({ ...custom(backend), onWarning: (w) => warnings.push(w.code) });
  const before = backend.keys();
  await assert.rejects(again.resume("a"), { code: "corrupt" });
  assert.equal(again.get("a"), undefined);
  assert.deepEqual(backend.keys(), before);
  assert.deepEqual((await again.sessions()).map((s) => s.id).sort(), ["a", "c"]);
  assert.ok(warnings.includes("corrupt"));
  assert.deepEqual(texts(await again.resume("b")), ["b"]);
  const list = backend.list;
  backend.list = async () => { throw new Error("disk"); };
  await assert.rejects(again.resume("c"));
  assert.equal(again.get("c"), undefined);
  backend.list = list;
  assert.deepEqual(texts(await again.resume("c")), ["c"]);
});

test("a flush listener that rejects fails the flush after all have ended; getters are quiet after dispose", async () => {
  const store = await open();
  const session = store.create("s1");
  say(session, "a");
  let ended = false;
  store.on("session/flush", async () => { throw new Error("no disk"); });
  store.on("session/flush", async () => { await new Promise((r) => setTimeout(r, 5)); ended = true; });
  await assert.rejects(store.flush(), /no disk/);
  assert.equal(ended, true);
  await session.dispose();
  assert.deepEqual([session.id, session.seq, session.durableSeq, session.header.id], ["s1", 1, 1, "s1"]);
  for (const read of [() => session.events, () => session.title, () => session.slice(0), () => session.event(0), () => session.deriveMessages(), () => session.usage(), () => session.verify(), () => session.on("event", () => {}), () => session.subscribe(() => {})]) {
    assert.throws(read, { code: "disposed" });
  }
});

test("C07: of a refused payload nothing is written", async () => {
  const session = (await open()).create();
  let delivered = 0;
  session.on("event", () => delivered++);
  const cycle = {};
  cycle.self = cycle;
  for (const meta of [{ a: 1, onClick() {} }, cycle, { n: 10n }]) assert.throws(() => session.append("user/message", { text: "x", meta }), { code: "not_json" });
  assert.deepEqual([session.seq, delivered], [0, 0]);
  assert.deepEqual(session.append("user/message", { text: "x", meta: new Proxy({ a: 1 }, {}) }).data.meta, { a: 1 });
});
