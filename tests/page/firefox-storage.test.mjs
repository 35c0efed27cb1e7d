// What a page stores in stock Firefox: the published suite through the package, and what an explicit commit leaves of a batch
// that is refused.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launchFirefox, noFirefox } from "../support/firefox.mjs";
import { serveDist } from "./dist-server.mjs";

const skip = noFirefox();
let server, browser;
before(async () => {
  if (skip) return;
  server = await serveDist();
  browser = await launchFirefox();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

async function inPage(work) {
  const context = await browser.createBrowserContext();
  try {
    const page = await context.newPage();
    await page.goto(server.url);
    await page.evaluate(async () => {
      globalThis.lib = await import("/web.js");
      await lib.default();
    });
    return await work(page);
  } finally {
    await context.close();
  }
}

for (const storage of [{ kind: "indexeddb" }, { kind: "indexeddb", durability: "strict" }, { kind: "localstorage" }]) {
  const title = `${storage.kind}${storage.durability ? ` (${storage.durability})` : ""}`;
  test(`${title} passes the published suite in Firefox`, { skip, timeout: 180_000 }, () => inPage(async (page) => {
    const report = await page.evaluate((spec) => lib.checkBackend(() => lib.openBackend({ ...spec, ...(spec.kind === "localstorage" ? { prefix: "suite" } : { name: "suite" }) })), storage);
    assert.deepEqual(report.failed, []);
    assert.ok(report.passed > 20);
  }));
}

test("a batch that is refused at its last request leaves nothing of the others", { skip, timeout: 60_000 }, () => inPage(async (page) => {
  const found = await page.evaluate(async () => {
    const backend = await lib.openBackend({ kind: "indexeddb", name: "refused" });
    const bytes = (text) => new TextEncoder().encode(text);
    let commits = 0;
    const { commit } = IDBTransaction.prototype;
    IDBTransaction.prototype.commit = function () { commits++; return commit.call(this); };
    const write = (word) => backend.transact({ checks: [{ key: "e", equals: null }], puts: [["e", bytes(word)], ["r", bytes(word)]], deletes: ["gone"] });
    await backend.transact({ puts: [["gone", bytes("still here")]] });
    const first = await write("one").then(() => null, (error) => error.code);
    await backend.transact({ puts: [["gone", bytes("still here")]] });
    const second = await write("two").then(() => null, (error) => error.code);
    const entries = (await backend.list("a", "z")).map(([key, value]) => [key, new TextDecoder().decode(value)]);
    await backend.close();
    return { first, second, commits, entries };
  });
  assert.deepEqual(found, { first: null, second: "conflict", commits: 2, entries: [["e", "one"], ["gone", "still here"], ["r", "one"]] });
}));

test("a session is written and read again, single events and batches, across a merge of its segments", { skip, timeout: 120_000 }, () => inPage(async (page) => {
  const found = await page.evaluate(async () => {
    const storage = { kind: "indexeddb", name: "session" };
    let store = await lib.SessionStore.open({ storage });
    const session = store.create("s1");
    for (let i = 0; i < 600; i++) await session.appendDurable("user/message", { text: `${i}` });
    await store.dispose();
    const backend = await lib.openBackend(storage);
    const segments = (await backend.list("s/s1/e/", "s/s1/e0", { keysOnly: true })).length;
    await backend.close();
    store = await lib.SessionStore.open({ storage });
    const again = await store.resume("s1");
    const texts = again.events.map((event) => event.data.text);
    const holds = again.verify();
    await store.dispose();
    return { segments, count: texts.length, isInOrder: texts.every((text, i) => text === `${i}`), holds };
  });
  assert.ok(found.segments < 200, `${found.segments} segments`);
  assert.deepEqual({ ...found, segments: 0 }, { segments: 0, count: 600, isInOrder: true, holds: null });
}));
