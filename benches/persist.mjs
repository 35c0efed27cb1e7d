// Persistence in headless Chromium beside its peers, in one run over the same events: raw IndexedDB, idb-keyval, Dexie, Yjs with
// y-indexeddb, sqlite-wasm on OPFS. `node benches/persist.mjs [quick]`; `cargo xtask bench --only persist`. Limits: issue 7.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { median } from "./harness.mjs";

const quick = process.argv.includes("quick");
const only = process.argv.find((argument) => argument.startsWith("only="))?.slice(5);
const here = new URL(".", import.meta.url).pathname;
const out = join(here, "../target/bench-persist");
mkdirSync(out, { recursive: true });

await build({ absWorkingDir: here, entryPoints: ["persist/page.mjs", "persist/sqlite-worker.mjs"], outdir: out, bundle: true, format: "esm", external: ["/web.js"], logLevel: "error" });
const sqlite = join(here, "../node_modules/@sqlite.org/sqlite-wasm/sqlite-wasm/jswasm/sqlite3.wasm");
cpSync(sqlite, join(out, "sqlite3.wasm"));
writeFileSync(join(out, "index.html"), `<!doctype html><title>bench</title><script type="module" src="page.js"></script>`);

const types = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };
const server = createServer((request, response) => {
  const name = request.url === "/" ? "index.html" : request.url.slice(1).split("?")[0];
  for (const dir of [out, join(here, "../pkg/dist")]) {
    try {
      const body = readFileSync(join(dir, name));
      const headers = { "content-type": types[name.split(".").pop()] ?? "text/plain", "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
      return void response.writeHead(200, headers).end(body);
    } catch {}
  }
  response.writeHead(404).end();
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });

const failed = [];
/** Holds a ratio against its limit and says which. */
function hold(what, value, limit, isMost) {
  const ok = isMost ? value <= limit : value >= limit;
  if (!ok) failed.push(what);
  console.log(`  ${ok ? "met " : "MISS"} ${what}: ${value.toFixed(2)} (${isMost ? "at most" : "at least"} ${limit})`);
}
const table = (title, rates, unit) => {
  console.log(`\n${title}`);
  for (const [name, rate] of Object.entries(rates)) console.log(`  ${name.padEnd(44)} ${rate.toFixed(rate < 10 ? 2 : 0).padStart(10)} ${unit}`);
};

try {
  const page = await browser.newPage();
  page.on("console", (message) => console.log(`  [page] ${message.text()}`));
  page.on("pageerror", (error) => console.log(`  [page] ${error.stack}`));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => globalThis.bench !== undefined, null, { timeout: 60_000 });
  const metrics = await page.context().newCDPSession(page);
  // Time of the thread, not of the clock: a busy machine does not count.
  await metrics.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpu = async () => (await metrics.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value * 1000;

  const marks = {};
  await page.exposeFunction("mark", async (name) => void (marks[name] = await cpu()));

  /** Runs contenders in turns; medians of milliseconds per event, by clock and by main thread. */
  async function contend(group, names, rounds, count) {
    const clock = Object.fromEntries(names.map((name) => [name, []]));
    const thread = Object.fromEntries(names.map((name) => [name, []]));
    for (let round = -1; round < rounds; round++) {
      for (const name of names) {
        const ms = await page.evaluate(([group, name, count]) => bench.run(group, name, count), [group, name, count]);
        if (round < 0) continue;
        clock[name].push(ms / count);
        thread[name].push((marks.end - marks.start) / count);
      }
    }
    const mid = (lists) => Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, median(list)]));
    return { clock: mid(clock), thread: mid(thread) };
  }
  const rates = (ms) => Object.fromEntries(Object.entries(ms).map(([name, value]) => [name, 1000 / value]));
  const want = (group) => only === undefined || only === group;

  if (want("singles")) {
    const names = await page.evaluate(() => bench.names("singles"));
    const { clock, thread } = await contend("singles", names, quick ? 3 : 9, 400);
    const rate = rates(clock);
    table("awaited singles of 1 KB, relaxed durability unless said", rate, "per second");
    table("main thread per awaited single", Object.fromEntries(Object.entries(thread).map(([n, ms]) => [n, ms * 1000])), "µs of CPU");
    hold("singles beside raw IndexedDB", rate["sessionlog"] / rate["raw IndexedDB"], 0.8, false);
    hold("singles beside Dexie", rate["sessionlog"] / rate["Dexie"], 1.5, false);
    hold("main-thread CPU per single beside raw IndexedDB", thread["sessionlog"] / thread["raw IndexedDB"], 1.3, true);
  }
  if (want("batches")) {
    const names = await page.evaluate(() => bench.names("batches"));
    const { clock } = await contend("batches", names, quick ? 3 : 7, 10_000);
    const rate = rates(clock);
    table("10,000 events of 1 KB in batches of 1,000, relaxed durability unless said", rate, "per second");
    hold("batches beside one value per batch by hand", rate["sessionlog"] / rate["one value per batch by hand"], 0.8, false);
    hold("batches beside Dexie", rate["sessionlog"] / rate["Dexie bulkAdd"], 3, false);
  }
  if (want("opening")) {
    const length = quick ? 20_000 : 100_000;
    await page.evaluate((length) => bench.fill(length), length);
    const names = await page.evaluate(() => bench.names("opening"));
    const { clock } = await contend("opening", names, quick ? 2 : 5, 1);
    table(`opening ${length} events and deriving their messages`, clock, "ms");
    hold("opening beside Dexie's toArray and the same derivation", clock["sessionlog"] / clock["Dexie toArray"], 0.5, true);
    hold("with a compaction near the end, in ms", clock[`sessionlog, compacted near the end`], 100, true);
    hold("the same at a tenth of the length, as a ratio", clock["sessionlog, compacted near the end"] / clock["sessionlog, compacted, a tenth as long"], 1.5, true);
  }
} finally {
  await browser.close();
  server.closeAllConnections();
  server.close();
}
console.log(failed.length === 0 ? "\nall limits met" : `\nnot met: ${failed.join("; ")}`);
