// The undo vectors on IndexedDB in a real browser: the built package in a bare page, reload and crash rows included.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadVectors } from "../js/support/load-vectors.mjs";
import { launch } from "./helper.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const TYPES = { js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm" };
let server, browser, page;

before(async () => {
  server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    const file = path.startsWith("/dist/") ? `${root}pkg${path}` : path.startsWith("/support/") ? `${root}tests/js${path}` : null;
    if (file === null || path.includes("..")) return void response.writeHead(path === "/" ? 200 : 404, { "content-type": "text/html" }).end("<!doctype html>");
    response.writeHead(200, { "content-type": TYPES[file.split(".").pop()] ?? "text/plain" }).end(await readFile(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  browser = await launch();
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.evaluate(setUp);
});

after(async () => {
  await browser?.close();
  server?.close();
});

/** Runs in the page. */
async function setUp() {
  const { default: init, VirtualFs } = await import("/dist/web.js");
  const { Machine } = await import("/support/undo-vectors.mjs");
  await init();

  const settled = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

  /** What stands in every store of the database, by the browser's own interface. */
  async function withStores(name, mode, work) {
    const db = await settled(indexedDB.open(name));
    try {
      const names = [...db.objectStoreNames];
      const transaction = db.transaction(names, mode);
      const done = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      const out = await Promise.all(names.map((store) => work(transaction.objectStore(store), store)));
      await done;
      return out;
    } finally {
      db.close();
    }
  }
  const shot = (name) => withStores(name, "readonly", async (store) => {
    const [keys, values] = await Promise.all([settled(store.getAllKeys()), settled(store.getAll())]);
    return { keys, values, inline: store.keyPath !== null };
  });
  const restore = (name, shots) => withStores(name, "readwrite", async (store, _) => {
    const { keys, values, inline } = shots.shift();
    store.clear();
    keys.forEach((key, i) => (inline ? store.put(values[i]) : store.put(values[i], key)));
  });

  class Database {
    constructor(name, each) {
      Object.assign(this, { name, each, issued: [], base: null });
    }
    async note() {
      if (this.each) this.issued.push(await shot(this.name));
    }
    async mark() {
      this.issued = [];
      if (this.each) this.base = await shot(this.name);
    }
    /** Puts the database back to what it was after the first `count` of the operations since the mark. */
    async cut(count) {
      const kept = count === 0 ? this.base : this.issued[Math.min(count, this.issued.length) - 1];
      if (kept) await restore(this.name, structuredClone(kept));
      await this.mark();
    }
    damage(run) {
      return withStores(this.name, "readwrite", async (store) => {
        const keys = (await settled(store.getAllKeys())).filter((key) => String(key).startsWith(`j/default/${run}/`));
        for (const key of keys) {
          const value = await settled(store.get(key));
          const garbage = new TextEncoder().encode("garbage");
          store.put(value instanceof ArrayBuffer ? garbage.buffer : garbage, key);
        }
        return keys.length;
      });
    }
  }

  let count = 0;
  globalThis.playVector = async (vector, survivors) => {
    const name = `undo-${++count}`;
    const storage = new Database(name, vector.ops.some((op) => op.op === "crash"));
    const open = () => VirtualFs.open({ storage: { kind: "indexeddb", name } });
    const first = await open();
    await first.flush();
    if (storage.each) await storage.mark();
    await first.dispose();
    const seen = await new Machine(open, storage, survivors).play(vector);
    indexedDB.deleteDatabase(name);
    return seen;
  };
}

const play = (vector, survivors = null) => page.evaluate(([v, k]) => globalThis.playVector(v, k), [vector, survivors]);

for (const vector of loadVectors(`${root}tests/fixtures/vectors/undo`)) {
  test(`${vector.id} ${vector.title}`, { timeout: 60_000 }, async () => {
    const seen = await play(vector);
    if (!vector.ops.some((op) => op.lose === "each")) return;
    assert.ok(seen > 0, "nothing was written before the crash");
    for (let k = 0; k < seen; k++) await play(vector, k).catch((error) => assert.fail(`${k} of ${seen} operations survive: ${error.message}`));
  });
}
