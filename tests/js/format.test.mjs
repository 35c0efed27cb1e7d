// Stores of every released format open with the right values; newer ones are read only; migrations can be stopped anywhere.
// The fixtures are never written again: `GOLDEN=new node --test tests/js/format.test.mjs` writes one that is not there yet.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import init, { SessionStore } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

const folder = new URL("../fixtures/store/", import.meta.url);
const root = fileURLToPath(new URL("../../", import.meta.url));
const bytes = (text) => new TextEncoder().encode(text);
const open = (backend, options = {}) => SessionStore.open({ storage: { kind: "custom", backend }, ...options });

before(() => init());

function load(name) {
  const backend = Object.assign(memoryBackend(), { maxValueBytes: 4_000 });
  for (const line of readFileSync(new URL(name, folder), "utf8").trim().split("\n")) {
    const [key, value] = JSON.parse(line);
    backend.map.set(key, new Uint8Array(Buffer.from(value, "base64")));
  }
  return backend;
}

const BIG = "0123456789".repeat(1_000);

/** What stands in the golden store: plain and cut segments, a merge, numbers as they were written, a fork of a deleted parent. */
async function write(backend) {
  let time = 1_700_000_000_000;
  let state = 1;
  const random = (out) => { for (let i = 0; i < out.length; i++) out[i] = (state = (state * 48_271) % 2_147_483_647) & 255; };
  const store = await open(backend, { clock: () => (time += 1_000), random });
  const main = store.create("main", { meta: { cwd: "/work", createdAt: 1_699_999_999_000 } });
  main.setTitle("Grüße, 世界");
  main.append("turn/start", { turn: 1, trigger: { kind: "message" } });
  main.append("user/message", { text: "line\nfeed, NUL \u0000 and 🔥" });
  main.append("assistant/message", { parts: [{ type: "tool-call", id: "c1", name: "read", args: { path: "a" } }], provider: "p", api: "a", model: "m" });
  main.append("tool/result", { id: "c1", content: BIG });
  main.append("turn/end", { turn: 1, reason: { kind: "completed" } });
  await main.flush();
  main.append("session/compacted", { summary: "so far", uptoSeq: 5 });
  main.append("user/message", { text: "after" });
  await main.flush();
  const parent = store.create("parent");
  parent.append("user/message", { text: "shared" });
  parent.append("user/message", { text: "not shared" });
  await parent.flush();
  store.fork("parent", { count: 1, id: "child" }).append("user/message", { text: "own" });
  await store.flush();
  await store.delete("parent");
  const numbers = '{"sessionlog":1,"header":{"version":1,"id":"numbers","createdAt":5}}\n{"seq":0,"id":"00000000000000aa","at":7,"type":"user/message","data":{"text":"x","n":1.50,"big":9007199254740993}}\n';
  await store.importSession(numbers);
  await store.archive("numbers");
  const small = store.create("merged");
  for (let i = 0; i < 257; i++) {
    small.append("error", { message: `${i}` });
    await small.flush();
  }
  await store.dispose();
}

test("golden fixtures are there, and stay as they were written", async () => {
  const file = new URL("format-1.jsonl", folder);
  if (process.env.GOLDEN === "new" && !existsSync(file)) {
    const backend = Object.assign(memoryBackend(), { maxValueBytes: 4_000 });
    await write(backend);
    writeFileSync(file, backend.keys().map((key) => `${JSON.stringify([key, Buffer.from(backend.map.get(key)).toString("base64")])}\n`).join(""));
  }
  assert.deepEqual(readdirSync(folder).filter((name) => name.endsWith(".jsonl")), ["format-1.jsonl"]);
});

test("a store of format 1 opens with the right values, and goes on", async () => {
  const backend = load("format-1.jsonl");
  const store = await open(backend);
  const listed = await store.sessions({ includeArchived: true, sort: "createdAt", order: "asc" });
  assert.deepEqual(listed.map((s) => [s.id, s.title, s.events, s.archived]).sort(), [
    ["child", "own", 3, false], ["main", "Grüße, 世界", 8, false], ["merged", "", 0, false], ["numbers", "", 1, true],
  ].sort());
  const main = await store.resume("main");
  assert.deepEqual(main.header, { version: 1, id: "main", createdAt: 1_699_999_999_000, cwd: "/work" });
  assert.deepEqual(main.events.map((e) => e.type), ["session/titled", "turn/start", "user/message", "assistant/message", "tool/result", "turn/end", "session/compacted", "user/message"]);
  assert.equal(main.event(2).data.text, "line\nfeed, NUL \u0000 and 🔥");
  assert.equal(main.event(4).data.content, BIG);
  assert.deepEqual(main.deriveMessages().map((m) => m.parts[0].text), ["so far", "after"]);
  assert.equal(main.verify(), null);
  const child = await store.resume("child");
  assert.deepEqual(child.events.filter((e) => e.type === "user/message").map((e) => e.data.text), ["shared", "own"]);
  await assert.rejects(store.resume("parent"), { code: "missing" });
  assert.match(new TextDecoder().decode(await store.exportSession("numbers")), /"n":1\.50,"big":9007199254740993/);
  const merged = await store.resume("merged");
  assert.deepEqual(merged.events.map((e) => e.data.message), Array.from({ length: 257 }, (_, i) => `${i}`));
  main.append("user/message", { text: "more" });
  await store.dispose();
  const again = await open(backend);
  assert.deepEqual([(await again.resume("main")).seq, (await again.resume("main")).verify()], [9, null]);
  await again.dispose();
});

test("a store of a newer format opens read only: what can be read is, nothing is written", async () => {
  const backend = load("format-1.jsonl");
  backend.map.set("m/format", bytes('{"format":"sessionlog.store","version":9}'));
  const before = JSON.stringify([...backend.map].map(([key, value]) => [key, [...value]]));
  const warnings = [];
  const store = await open(backend, { onWarning: (w) => warnings.push(w.code) });
  assert.deepEqual(warnings, ["newer_format"]);
  const status = await store.status();
  assert.deepEqual([status.readOnly, status.lastError.code], [true, "newer_format"]);
  const main = await store.resume("main");
  assert.equal(main.readOnly, true);
  assert.equal(main.event(7).data.text, "after");
  assert.equal(main.deriveMessages().length, 2);
  assert.ok((await store.exportSession("main")).length > 1_000);
  assert.equal((await store.sessions()).length, 3);
  for (const refused of [() => main.append("user/message", { text: "no" }), () => store.create("x"), () => store.fork("main")]) assert.throws(refused, { code: "newer_format" });
  for (const refused of [main.appendDurable("user/message", { text: "no" }), store.delete("merged"), store.archive("merged"), store.updateRecord("merged", { title: "t" }), store.importSession("{}")]) {
    await assert.rejects(refused, { code: "newer_format" });
  }
  await store.dispose();
  assert.equal(JSON.stringify([...backend.map].map(([key, value]) => [key, [...value]])), before, "left alone");
});

test("a format record that cannot be read is `corrupt`, never an empty store", async () => {
  for (const text of ["", "{", "null", '{"version":"1"}', '{"version":0}', '{"version":1.5}']) {
    const backend = load("format-1.jsonl");
    backend.map.set("m/format", bytes(text));
    await assert.rejects(open(backend), { code: "corrupt" }, text);
  }
});

/** The shell's own module, for steps that no release has yet. */
async function migrations() {
  const stdin = { contents: `export { migrate } from "./format.ts"; export { markStarted } from "./runtime.ts";`, resolveDir: `${root}npm/src` };
  const { outputFiles } = await build({ stdin, bundle: true, write: false, format: "esm", external: ["./glue.js"], logLevel: "error" });
  const text = outputFiles[0].text.replace('"./glue.js"', JSON.stringify(pathToFileURL(`${root}pkg/dist/glue.js`).href));
  const format = await import(`data:text/javascript,${encodeURIComponent(text)}`);
  // It shares the module that `init` started.
  format.markStarted();
  return format;
}

test("a migration that is stopped anywhere is run again, and two at once come to one end", async () => {
  const { migrate } = await migrations();
  const key = "m/format";
  const versionOf = (backend) => JSON.parse(new TextDecoder().decode(backend.map.get(key))).version;
  const start = () => {
    const backend = memoryBackend();
    backend.map.set(key, bytes('{"format":"sessionlog.store","version":1}'));
    for (let i = 0; i < 3; i++) backend.map.set(`s/${i}`, bytes(`v1 ${i}`));
    return backend;
  };
  /** Rewrites one key per batch, as a step of a large store would. */
  const step = (from) => ({
    from,
    async run(backend) {
      for (const [name, value] of await backend.list("s/", "s0")) {
        const text = new TextDecoder().decode(value);
        if (text.startsWith(`v${from} `)) await backend.transact({ checks: [{ key: name, equals: value }], puts: [[name, bytes(text.replace(`v${from}`, `v${from + 1}`))]] });
      }
    },
  });
  const steps = [step(1), step(2)];
  const end = (backend) => [versionOf(backend), ...["s/0", "s/1", "s/2"].map((name) => new TextDecoder().decode(backend.map.get(name)))];
  const wanted = [3, "v3 0", "v3 1", "v3 2"];
  for (let stop = 0; stop <= 8; stop++) {
    const backend = start();
    let left = stop;
    const dying = { ...backend, async transact(batch) { if (left-- === 0) throw new Error("the process ends"); return backend.transact(batch); } };
    await migrate(dying, 3, steps).catch(() => {});
    await migrate(backend, 3, steps);
    assert.deepEqual(end(backend), wanted, `stopped before write ${stop}`);
  }
  const shared = start();
  await Promise.all([1, 2].map(async () => { while (versionOf(shared) < 3) await migrate(shared, 3, steps).catch((error) => assert.equal(error.code, "conflict")); }));
  assert.deepEqual(end(shared), wanted);
  await assert.rejects(migrate(start(), 4, steps), { code: "corrupt" }, "no way from 3 to 4");
  const empty = memoryBackend();
  await migrate(empty, 3, steps);
  assert.deepEqual(empty.keys(), [], "a new store needs none");
});
