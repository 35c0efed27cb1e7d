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

test("under its lock a writer asks for one thing per event; a lock that is stolen makes it look at the fence again", async () => {
  const context = await browser.newContext();
  const one = await tab(context);
  const requests = await one.evaluate(async () => {
    globalThis.session = store.create("s1");
    await session.appendDurable("user/message", { text: "a" });
    // The lock is asked for when the session is announced.
    while ((await navigator.locks.query()).held.length === 0) await new Promise((ready) => setTimeout(ready, 5));
    globalThis.asked = [];
    for (const name of ["get", "put", "add"]) {
      const own = IDBObjectStore.prototype[name];
      IDBObjectStore.prototype[name] = function (...args) { asked.push(name); return own.apply(this, args); };
    }
    const rounds = [];
    // The record goes along now and then, and a fence that was not looked at for a while is.
    for (let i = 0; i < 20; i++) {
      asked.length = 0;
      await session.appendDurable("user/message", { text: "b" });
      rounds.push(asked.join());
    }
    return rounds;
  });
  assert.ok(requests.filter((names) => names === "add").length >= 10, `one request per event: ${requests}`);
  const two = await tab(context);
  const over = await two.evaluate(async () => {
    const [{ name }] = (await navigator.locks.query()).held;
    await navigator.locks.request(name, { steal: true }, async () => {});
    globalThis.session = await store.resume("s1");
    const { readOnly } = session;
    await session.appendDurable("user/message", { text: "c" });
    return readOnly;
  });
  assert.equal(over, false, "the thief writes");
  assert.deepEqual(await one.evaluate(async () => {
    asked.length = 0;
    await session.appendDurable("user/message", { text: "d" });
    return { last: texts().slice(-3), looked: asked.includes("get"), holds: session.verify() };
  }), { last: ["b", "c", "d"], looked: true, holds: null });
  assert.deepEqual(await two.evaluate(async () => (await session.appendDurable("user/message", { text: "e" }), texts().slice(-4))), ["b", "c", "d", "e"]);
  await context.close();
});

test("locks that keep nobody out: writers who all believe they are alone lose nothing and store nothing twice", { timeout: 120_000 }, async () => {
  const context = await browser.newContext();
  // Each tab has locks of its own, as where a browser fails to share them.
  await context.addInitScript(() => Object.defineProperty(navigator, "locks", { value: { request: async (name, options, work) => work({ name }) } }));
  const tabs = [await tab(context), await tab(context), await tab(context)];
  await tabs[0].evaluate(async () => {
    globalThis.session = store.create("s1");
    await session.appendDurable("user/message", { text: "first" });
  });
  for (const page of tabs.slice(1)) await page.evaluate(async () => { globalThis.session = await store.resume("s1"); });
  // Long enough for each to merge what it stored, in bursts with pauses, so that a writer comes back to a log that others went on with.
  await Promise.all(tabs.map((page, who) => page.evaluate(async (who) => {
    for (let i = 0; i < 900; i++) {
      await session.appendDurable("user/message", { text: `${who}.${i}` });
      if (i % 300 === 100 * who) await new Promise((ready) => setTimeout(ready, 300));
    }
  }, who)));
  const events = await tabs[0].evaluate(async () => (await store.read("s1")).map((e) => [e.seq, e.id, e.data.text]));
  assert.deepEqual(events.map(([seq]) => seq), events.map((_, index) => index));
  assert.equal(new Set(events.map(([, id]) => id)).size, events.length);
  for (const who of [0, 1, 2]) {
    const own = events.filter(([, , text]) => text.startsWith(`${who}.`)).map(([, , text]) => Number(text.split(".")[1]));
    assert.deepEqual(own, Array.from({ length: 900 }, (_, i) => i), `all of tab ${who}, in order`);
  }
  assert.equal(events.length, 2701);
  const fresh = await tab(context);
  assert.equal(await fresh.evaluate(async () => (globalThis.session = await store.resume("s1")).verify()), null);
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
