// Several tabs on one session: one writes, the others follow, one takes over. Chromium, the built package, IndexedDB.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { serveDist } from "./dist-server.mjs";
import { launch } from "./helper.mjs";

let server, browser;

before(async () => {
  server = await serveDist();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** A tab with the package loaded and a store open. */
async function tab(context, storage = { kind: "indexeddb" }) {
  const page = await context.newPage();
  await page.goto(server.url);
  await page.evaluate(async (spec) => {
    const lib = await import("/web.js");
    await lib.default();
    globalThis.warnings = [];
    globalThis.store = await lib.SessionStore.open({ storage: spec, onWarning: (w) => warnings.push(w.code) });
    globalThis.texts = () => session.events.filter((e) => e.type === "user/message").map((e) => e.data.text);
    globalThis.say = (text) => session.append("user/message", { text });
  }, storage);
  return page;
}

for (const storage of [{ kind: "indexeddb" }, { kind: "localstorage" }]) {
  test(`${storage.kind}: a second tab follows, and takes over when the first goes`, async () => {
    const context = await browser.newContext();
    const one = await tab(context, storage);
    await one.evaluate(async () => {
      globalThis.session = store.create("s1");
      say("a");
      await session.flush();
    });
    const two = await tab(context, storage);
    const seen = await two.evaluate(async () => {
      globalThis.session = await store.resume("s1");
      globalThis.heard = [];
      session.on("event", (e) => heard.push(e.seq));
      let refused = null;
      try { say("no"); } catch (e) { refused = e.code; }
      return { readOnly: session.readOnly, texts: texts(), refused };
    });
    assert.deepEqual(seen, { readOnly: true, texts: ["a"], refused: "locked" });
    await one.evaluate(async () => { say("b"); say("c"); await session.flush(); });
    await two.waitForFunction(() => heard.length === 2);
    assert.deepEqual(await two.evaluate(() => ({ heard, texts: texts(), same: session.verify() })), { heard: [1, 2], texts: ["a", "b", "c"], same: null });
    await one.close();
    await two.waitForFunction(() => !session.readOnly);
    assert.deepEqual(await two.evaluate(async () => { say("d"); await session.flush(); return texts(); }), ["a", "b", "c", "d"]);
    const three = await tab(context, storage);
    assert.deepEqual(await three.evaluate(async () => (await store.read("s1")).map((e) => e.data.text)), ["a", "b", "c", "d"]);
    await context.close();
  });
}

test("without locks, two writers lose nothing and store nothing twice", async () => {
  const context = await browser.newContext();
  const init = () => Object.defineProperty(Navigator.prototype, "locks", { get: () => undefined });
  await context.addInitScript(init);
  const one = await tab(context);
  await one.evaluate(async () => { globalThis.session = store.create("s1"); say("start"); await session.flush(); });
  const two = await tab(context);
  await two.evaluate(async () => { globalThis.session = await store.resume("s1"); });
  const work = (who) => async (name) => {
    for (let i = 0; i < 20; i++) await session.appendDurable("user/message", { text: `${name}${i}` });
  };
  await Promise.all([one.evaluate(work(), "a"), two.evaluate(work(), "b")]);
  const stored = await one.evaluate(async () => (await store.read("s1")).map((e) => e.data.text));
  assert.equal(stored.length, 41);
  assert.equal(new Set(stored).size, 41);
  for (const who of "ab") assert.deepEqual(stored.filter((t) => t.startsWith(who)).slice(0, who === "s" ? 0 : 21).filter((t) => /\d/.test(t)), Array.from({ length: 20 }, (_, i) => `${who}${i}`));
  await context.close();
});

test("without any storage a session works in memory and says so", async () => {
  const context = await browser.newContext();
  await context.addInitScript(() => Object.defineProperty(globalThis, "indexedDB", { get: () => { throw new DOMException("no", "SecurityError"); } }));
  const page = await tab(context);
  const status = await page.evaluate(async () => {
    globalThis.session = store.create("s1");
    say("a");
    await session.flush();
    return store.status();
  });
  assert.equal(status.durable, false);
  assert.equal(status.lastError.code, "unavailable");
  await context.close();
});
