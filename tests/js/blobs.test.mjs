// Media beside the log: attached once, resolved at derivation for every target, gone with the last session that uses them.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { before, test } from "node:test";
import init, { ChatSessionController, SessionStore, VirtualFs } from "sessionlog";
import { memoryBackend } from "./memory-backend.mjs";

before(() => init());

const PNG = Uint8Array.from(Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", "base64"));
const BASE64 = Buffer.from(PNG).toString("base64");
const TARGETS = ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"];
const image = (blob) => ({ type: "image", mediaType: "image/png", blob });
const sha = (bytes) => createHash("sha256").update(bytes).digest("hex");
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
const until = async (met) => { for (let n = 0; !met() && n < 10_000; n++) await new Promise((resolve) => setTimeout(resolve, 2)); };
const open = (backend, more = {}) => SessionStore.open({ storage: { kind: "custom", backend }, ...more });
const text = (session, target = "anthropic") => JSON.stringify(session.deriveRequest({ target }).messages);

async function attached(backend, more) {
  const store = await open(backend, more);
  const session = store.create("s1");
  const name = await session.putBlob(PNG, { mediaType: "image/png" });
  session.append("user/message", { parts: [{ type: "text", text: "look" }, image(name)] });
  return { store, session, name };
}

test("a part that only names a blob is sent with its bytes, at every target, also after a reload", async () => {
  const backend = memoryBackend();
  const { store, session, name } = await attached(backend);
  assert.equal(name, sha(PNG));
  assert.deepEqual(await session.getBlob(name), PNG);
  session.append("assistant/message", { parts: [{ type: "tool-call", id: "t", name: "shot", args: {} }] });
  session.append("tool/result", { id: "t", content: [{ type: "text", text: "here" }, image(name)] });
  const given = store.create("inline", { seed: session.events.map((e) => JSON.parse(JSON.stringify({ ...e, sessionId: "inline" }).replaceAll(`"blob":"${name}"`, `"data":"${BASE64}"`))) });
  const expected = TARGETS.map((target) => given.deriveRequest({ target }));
  assert.deepEqual(TARGETS.map((target) => session.deriveRequest({ target })), expected);
  assert.ok(expected.every(({ messages }) => JSON.stringify(messages).split(BASE64).length === 3));
  for (const target of TARGETS) session.assertLogInvariant(JSON.parse(JSON.stringify(session.deriveRequest({ target }))));
  assert.ok(!JSON.stringify(session.events).includes(BASE64), "the log names it only");
  await store.dispose();
  const again = await open(backend);
  const resumed = await again.resume("s1");
  assert.deepEqual(TARGETS.map((target) => resumed.deriveRequest({ target })), expected);
  const child = again.fork("s1", { id: "child" });
  assert.ok(text(child).includes(BASE64));
  await again.dispose();
});

test("what is not in the store is a note with a repair, and comes in as soon as it is there", async () => {
  const backend = memoryBackend({ delay: 1 });
  const store = await open(backend);
  const session = store.create();
  session.append("user/message", { parts: [image(sha(PNG)), image("no such thing")] });
  const { messages, repairs } = session.deriveRequest({ target: "anthropic" });
  assert.deepEqual(repairs.map(({ code, seq }) => [code, seq]), [["media_omitted", 0], ["media_omitted", 0]]);
  assert.equal(messages[0].content[0].text, "[image (image/png) left out: its bytes are not at hand]");
  await settled();
  await session.putBlob(PNG, { mediaType: "image/png" });
  const later = session.deriveRequest({ target: "anthropic" });
  assert.deepEqual([later.messages[0].content[0].source.data, later.repairs.length], [BASE64, 1]);
  // Another session knows the name only, and brings the bytes by itself.
  const other = store.create();
  other.append("user/message", { parts: [image(sha(PNG))] });
  await until(() => text(other).includes(BASE64));
  assert.ok(text(other).includes(BASE64));
  await store.dispose();
});

test("limits look at the bytes of a blob as at any others", async () => {
  const { session, store } = await attached(memoryBackend());
  for (const media of [{ maxBytesEach: PNG.length - 1 }, { maxCount: 0 }, { maxBytesTotal: 10 }, { mediaTypes: ["image/jpeg"] }, { maxSide: 0 }]) {
    const { messages, repairs } = session.deriveRequest({ target: "gemini", media });
    assert.deepEqual(repairs.map(({ code }) => code), ["media_omitted"], JSON.stringify(media));
    assert.ok(!JSON.stringify(messages).includes(BASE64));
  }
  await store.dispose();
});

test("a request of a run waits for the media it shows", async () => {
  const backend = memoryBackend({ delay: 2 });
  const first = await attached(backend);
  await first.store.dispose();
  const store = await open(backend);
  const requests = [];
  const config = { model: "scripted/script", providerOptions: { script: [[{ type: "text", text: "seen" }]], requests } };
  const fs = await VirtualFs.open({});
  const session = store.create("s2", { seed: [{ id: "0".repeat(16), sessionId: "s2", seq: 0, at: 0, type: "user/message", data: { parts: [image(first.name)] } }] });
  const controller = new ChatSessionController({ store, fs, session, outputFn: () => {} });
  const done = await controller.executeTask("what is it?", config);
  assert.equal(done.runResult.status, "completed");
  assert.ok(JSON.stringify(requests[0]).includes(BASE64));
  await store.dispose();
});

test("bytes are stored once, cut where the store wants it, and go with the last session that attached them", async () => {
  const backend = Object.assign(memoryBackend(), { maxValueBytes: 1000, maxBatch: 10 });
  const store = await open(backend);
  const big = Uint8Array.from({ length: 45_500 }, (_, i) => (i * 7919) % 251);
  const [a, b] = [store.create("a"), store.create("b")];
  const names = await Promise.all([a, b, a].map((session) => session.putBlob(big, { mediaType: "application/octet-stream" })));
  assert.deepEqual(names, Array(3).fill(sha(big)));
  const pieces = () => backend.keys().filter((key) => /^b\/.*\/.*\//.test(key));
  assert.equal(pieces().length, 46);
  assert.deepEqual(await b.getBlob(names[0]), big);
  await store.delete("a");
  assert.deepEqual(await b.getBlob(names[0]), big);
  await store.delete("b");
  assert.deepEqual(backend.keys().filter((key) => key.startsWith("b/")), []);
  // A piece that is lost or changed is no blob.
  const c = store.create("c");
  await c.putBlob(big, { mediaType: "application/octet-stream" });
  backend.map.set(pieces()[3], new Uint8Array(1000));
  assert.equal(await c.getBlob(names[0]), null);
  backend.map.delete(pieces()[3]);
  assert.equal(await c.getBlob(names[0]), null);
  await store.dispose();
});

test("a fork still has the media of a parent that was deleted", async () => {
  const backend = memoryBackend();
  const { store, name } = await attached(backend);
  store.fork("s1", { id: "child" });
  await store.flush();
  await store.delete("s1");
  await store.dispose();
  const again = await open(backend);
  const child = await again.resume("child");
  assert.ok(text(child).includes(BASE64));
  await again.sweep({ maxAgeDays: 0, maxSessions: 0 });
  assert.deepEqual(await child.getBlob(name), PNG);
  await again.delete("child");
  assert.deepEqual(backend.keys().filter((key) => key.startsWith("b/") || key.startsWith("s/")), []);
  await again.dispose();
});

test("an export carries its media, and an import brings them back or says what is lost", async () => {
  const { store, session, name } = await attached(memoryBackend());
  const exported = await store.exportSession("s1");
  const lines = new TextDecoder().decode(exported).trimEnd().split("\n");
  assert.equal(JSON.parse(lines.at(-1)).blob, name);
  const before = text(session);
  const other = await open(memoryBackend());
  const imported = await other.importSession(exported);
  assert.deepEqual(imported.report, { lost: [], damaged: [] });
  assert.equal(text(imported.session), before);
  const again = new TextDecoder().decode(await other.exportSession("s1")).trimEnd().split("\n");
  assert.deepEqual(again.slice(1), lines.slice(1), "events and media byte for byte");
  const bad = [...lines.slice(0, -1), JSON.stringify({ blob: "0".repeat(64), mediaType: "image/png", data: "AAAA" }), '{"blob":"cut'].join("\n");
  const { report } = await (await open(memoryBackend())).importSession(bad);
  assert.equal(report.lost.length, 2);
  assert.deepEqual(report.damaged, []);
  await store.dispose();
});

test("what only claims to be media is scrubbed as text; what proves to be media is left alone", async () => {
  const key = ["sk-ant-api03-", "A".repeat(40)].join("");
  const backend = memoryBackend();
  const store = await open(backend, { scrubbers: [{ values: [key], name: "made-up" }] });
  const session = store.create();
  const stored = () => [...backend.map.values()].map((bytes) => Buffer.from(bytes).toString("latin1")).join("\n");
  for (const bytes of [`the key is ${key}!`, `\u00e9 ${key}`, Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(key)])]) {
    const name = await session.putBlob(Uint8Array.from(Buffer.from(bytes)), { mediaType: "image/png" });
    assert.ok(!Buffer.from(await session.getBlob(name)).toString("latin1").includes(key));
  }
  await store.flush();
  assert.ok(!stored().includes(key));
  const named = await session.putBlob(PNG, { mediaType: "image/png" });
  assert.deepEqual(await session.getBlob(named), PNG);
  session.append("user/message", { parts: [image(named)] });
  assert.ok(text(session).includes(BASE64), "a name survives the scrubbers");
  await store.dispose();
});

test("rescrubbing removes media that hold what must go", async () => {
  const backend = memoryBackend();
  const store = await open(backend);
  const session = store.create("s1");
  const secret = "made-up-secret-1234567890";
  const name = await session.putBlob(new TextEncoder().encode(`so: ${secret}`), { mediaType: "text/plain" });
  session.append("user/message", { parts: [{ type: "file", mediaType: "text/plain", blob: name }] });
  const sent = Buffer.from(`so: ${secret}`).toString("base64");
  assert.ok(text(session, "gemini").includes(sent));
  await store.rescrub({ values: [secret], name: "made-up" });
  assert.equal(await session.getBlob(name), null);
  assert.ok(!text(session, "gemini").includes(sent));
  assert.ok(![...backend.map.values()].some((bytes) => Buffer.from(bytes).includes(secret)));
  await store.dispose();
});

test("what is no blob is refused", async () => {
  const { store, session } = await attached(memoryBackend());
  for (const [bytes, options] of [["text", { mediaType: "image/png" }], [new Uint8Array(), { mediaType: "image/png" }], [PNG, {}], [PNG, { mediaType: "png" }], [PNG, undefined]]) {
    await assert.rejects(session.putBlob(bytes, options), { code: "invalid_argument" });
  }
  for (const odd of ["", "../x", "0".repeat(63)]) assert.equal(await session.getBlob(odd), null);
  for (const odd of [5, null]) await assert.rejects(session.getBlob(odd), { code: "invalid_argument" });
  await store.dispose();
  await assert.rejects(session.putBlob(PNG, { mediaType: "image/png" }), { code: "disposed" });
});

test("a store that fails costs the attachment, not the session; then the notes say so", async () => {
  const backend = memoryBackend();
  const warned = [];
  const store = await open(backend, { onWarning: ({ code }) => warned.push(code) });
  const session = store.create();
  session.append("user/message", { text: "hi" });
  await store.flush();
  backend.fail = Object.assign(new Error("full"), { code: "quota" });
  await assert.rejects(session.putBlob(PNG, { mediaType: "image/png" }), { code: "quota" });
  backend.fail = null;
  assert.equal(await session.putBlob(PNG, { mediaType: "image/png" }), sha(PNG));
  const get = backend.get;
  backend.get = () => Promise.reject(new Error("gone"));
  const other = store.create();
  other.append("user/message", { parts: [image("1".repeat(64))] });
  await until(() => warned.includes("blobs"));
  assert.ok(warned.includes("blobs"));
  assert.equal(other.deriveRequest({ target: "anthropic" }).repairs[0].code, "media_omitted");
  backend.get = get;
  await store.dispose();
});
