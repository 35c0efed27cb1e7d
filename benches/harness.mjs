// Measures and compares; for `*.bench.mjs`, which export `default async (bench) => …` and run in Node and in Chromium.
// `node benches/harness.mjs node|chromium [name…]`; `cargo xtask bench` runs all.

/** Median of numbers. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The tool that a bench gets. Contenders of one comparison run in turns, so that a busy machine slows all of them alike. */
export function makeBench(print) {
  const shown = (ms) => (ms >= 1 ? `${ms.toFixed(2)} ms` : `${(ms * 1000).toFixed(2)} µs`);
  return {
    /** Times each of `contenders` (name → work for one round of `ops` operations); the first is what the others are compared with. */
    async compare(title, contenders, { rounds = 15, warmup = 3, ops = 1 } = {}) {
      const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
      for (let round = -warmup; round < rounds; round++) {
        for (const [name, work] of Object.entries(contenders)) {
          const start = performance.now();
          const answer = work();
          if (answer instanceof Promise) await answer;
          const spent = performance.now() - start;
          // What a synchronous call has left for later (a write) is not its own cost: compare that in an asynchronous contender.
          await new Promise((ready) => setTimeout(ready));
          if (round >= 0) times[name].push(spent / ops);
        }
      }
      const medians = Object.fromEntries(Object.entries(times).map(([name, list]) => [name, median(list)]));
      const [base] = Object.values(medians);
      print(title);
      for (const [name, ms] of Object.entries(medians)) print(`  ${name.padEnd(34)} ${shown(ms).padStart(12)}  ×${(ms / base).toFixed(2)}`);
      return medians;
    },
    /** Times one thing. */
    measure(title, work, options) {
      return this.compare(title, { median: work }, options);
    },
    print,
  };
}

const isMain = typeof process === "object" && process.argv?.[1]?.endsWith("harness.mjs");
if (isMain) {
  const [where, ...names] = process.argv.slice(2);
  const { readdirSync } = await import("node:fs");
  const files = readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".bench.mjs") && (names.length === 0 || names.some((part) => name.includes(part))));
  for (const file of files.sort()) {
    console.log(`\n${file} in ${where}`);
    // Not a pattern in the call itself: the bundler would take in every bench that fits it, and what these import.
    const path = `./${file}`;
    if (where === "node") await (await import(path)).default(makeBench((line) => console.log(line)));
    else await inChromium(file);
  }
}

async function inChromium(file) {
  const { build } = await import("esbuild");
  const { mkdirSync, writeFileSync, readFileSync, cpSync } = await import("node:fs");
  const { createServer } = await import("node:http");
  const { chromium } = await import("playwright-core");
  const out = new URL("../target/bench/", import.meta.url);
  mkdirSync(out, { recursive: true });
  await build({
    stdin: {
      contents: `import run from "./${file}"; import { makeBench } from "./harness.mjs";
        run(makeBench((line) => console.log(line))).then(() => { document.title = "done"; }, (error) => { console.log("FAIL " + error.stack); document.title = "failed"; });`,
      resolveDir: new URL(".", import.meta.url).pathname,
    },
    outfile: new URL("main.js", out).pathname, bundle: true, format: "esm", external: ["node:*", "esbuild", "playwright-core"], logLevel: "error",
  });
  cpSync(new URL("../pkg/dist/sessionlog_bg.wasm", import.meta.url), new URL("sessionlog_bg.wasm", out));
  writeFileSync(new URL("index.html", out), `<!doctype html><title>wait</title><script type="module" src="main.js"></script>`);
  const types = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };
  const server = createServer((request, response) => {
    const name = request.url === "/" ? "index.html" : request.url.slice(1);
    if (!/^(index\.html|main\.js|sessionlog_bg\.wasm)$/.test(name)) return void response.writeHead(404).end();
    // Isolated pages have the finer clock.
    const headers = { "content-type": types[name.split(".").pop()], "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
    response.writeHead(200, headers).end(readFileSync(new URL(name, out)));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage();
    page.on("console", (message) => console.log(message.text()));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForFunction(() => document.title !== "wait", null, { timeout: 300_000 });
    if ((await page.title()) === "failed") process.exitCode = 1;
  } finally {
    await browser.close();
    server.closeAllConnections();
    server.close();
  }
}
