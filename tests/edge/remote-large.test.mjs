// What is larger than one request: events, flushes, files and media go to the host in as many as it takes, whatever its limit is.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import init, { SessionStore, VirtualFs, encrypted } from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { WebSocket } from "undici";
import { freshDisk, skip, startHost, tokens } from "./host.mjs";

const MB = 1_000_000;
const bytes = (length) => new Uint8Array(length).map((_, at) => (at * 31 + (at >> 9)) % 251);

let host;
let small;
before(async () => {
  if (skip) return;
  await init();
  host = await startHost({ disk: freshDisk({ memory: true }) });
  small = await startHost({ disk: freshDisk({ memory: true }), env: { MAX_BODY_BYTES: "30000" } });
});
after(() => Promise.all([host?.kill(), small?.kill()]));

const backend = (at = host, token = tokens.alice) => new RemoteStore({ url: at.url, token, WebSocket }).backend();
const custom = (own) => ({ storage: { kind: "custom", backend: own } });

/** A session with a large event, then a flush of many, then a small one; read again by another. */
async function keeps(id, open, large, many, each) {
  const store = await SessionStore.open(custom(await open()));
  const session = store.create(id);
  session.append("user/message", { text: "start" });
  await session.flush();
  session.append("user/message", { text: "x".repeat(large) });
  await session.flush();
  for (let n = 0; n < many; n++) session.append("user/message", { text: `${n}`.padEnd(each, "y") });
  await session.flush();
  await session.appendDurable("user/message", { text: "z".repeat(large / 2) });
  session.append("user/message", { text: "small" });
  await session.flush();
  assert.equal(session.durableSeq, many + 4);
  const { events } = session;
  await store.dispose();
  const next = await SessionStore.open(custom(await open()));
  const again = await next.resume(id);
  assert.deepEqual([again.verify(), again.events], [null, events]);
  await next.dispose();
}

test("an event of 12 MB, and 20 of 450 KB in one flush", { skip }, () => keeps("large", backend, 12 * MB, 20, 450_000));

test("a session whose first event is large", { skip }, async () => {
  const store = await SessionStore.open(custom(backend()));
  const session = store.create("large-first");
  await session.appendDurable("user/message", { text: "z".repeat(5 * MB) });
  await store.dispose();
});

test("the same, encrypted", { skip }, async () => {
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  await keeps("large-sealed", () => encrypted(backend(host, tokens.bob), key), 6 * MB, 20, 450_000);
  await keeps("large-sealed", () => encrypted(backend(small, tokens.bob), key), 100_000, 50, 2_000);
});

test("a host that takes less says so, and gets less at a time", { skip }, () => keeps("less", () => backend(small), 100_000, 50, 2_000));

for (const [name, at, size] of [["10 MB", () => host, 10 * MB], ["200 KB where a request has 30 KB", () => small, 200_000]]) {
  test(`files of ${name}`, { skip }, async () => {
    const files = await VirtualFs.open(custom(backend(at())));
    files.writeFile("/large.bin", bytes(size));
    await files.flush();
    for (let n = 0; n < 40; n++) files.writeFile(`/part-${n}`, bytes(size / 20 + n));
    await files.flush();
    await files.dispose();
    const again = await VirtualFs.open(custom(backend(at())));
    assert.deepEqual(again.readFile("/large.bin"), bytes(size));
    for (let n = 0; n < 40; n++) assert.equal(again.stat(`/part-${n}`).size, size / 20 + n);
    await again.dispose();
  });

  test(`media of ${name}`, { skip }, async () => {
    const store = await SessionStore.open(custom(backend(at())));
    const session = store.create("media");
    const blob = await session.putBlob(bytes(size), { mediaType: "image/png" });
    session.append("user/message", { parts: [{ type: "image", mediaType: "image/png", blob }] });
    await session.flush();
    await store.dispose();
    const next = await SessionStore.open(custom(backend(at())));
    const found = await (await next.resume("media")).getBlob(blob);
    assert.deepEqual(found?.bytes ?? found, bytes(size));
    await next.dispose();
  });
}
