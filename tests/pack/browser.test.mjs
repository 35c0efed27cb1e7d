// The package's own files in Chromium, without a bundler, under the conditions that pages really have.
import assert from "node:assert/strict";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { expected } from "./app/src/smoke.js";
import { closeBrowser, openDir, project } from "./helper.mjs";

let dir;
before(() => {
  dir = project("browser");
  // No import maps in workers: the files name the package by its path.
  for (const name of ["smoke", "main", "dedicated", "shared", "service", "service-page"]) {
    const file = join(dir, "src", `${name}.js`);
    writeFileSync(file, readFileSync(file, "utf8").replace('"sessionlog"', '"../node_modules/sessionlog/dist/web.js"'));
  }
  cpSync(join(dir, "index.html"), join(dir, "service.html"));
  writeFileSync(join(dir, "service.html"), readFileSync(join(dir, "index.html"), "utf8").replace("main.js", "service-page.js"));
});
after(closeBrowser);

const everywhere = { page: expected, dedicated: expected, shared: expected };
const loadsCopy = (requests) => requests.some((path) => path.endsWith("/bytes.js"));

test("page, dedicated and shared worker; the text copy stays unloaded", async () => {
  const { result, requests } = await openDir(dir);
  assert.deepEqual(result, everywhere);
  assert.ok(!loadsCopy(requests));
});

test("a service worker", async () => {
  // Its scope is its folder.
  writeFileSync(join(dir, "service.js"), `import "./src/service.js";\n`);
  assert.deepEqual((await openDir(dir, {}, "service.html")).result, { service: expected });
});

test("cross-origin isolated pages", async () => {
  assert.deepEqual((await openDir(dir, { isolated: true })).result, everywhere);
});

test("a strict policy with 'wasm-unsafe-eval'", async () => {
  const { result } = await openDir(dir, { csp: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'" });
  assert.deepEqual(result, everywhere);
});

test("a policy without connect-src: the text copy is used", async () => {
  const { result, requests } = await openDir(dir, { csp: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'" });
  assert.deepEqual(result, everywhere);
  assert.ok(loadsCopy(requests));
});

test("a policy that forbids compiling is named", async () => {
  const { result } = await openDir(dir, { csp: "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'self'" });
  for (const where of ["page", "dedicated", "shared"]) assert.match(result[where], /^FAIL csp_blocked .*'wasm-unsafe-eval'/, where);
});

test("a wrong type of the file", async () => {
  const { result, requests } = await openDir(dir, { wasmType: "application/octet-stream" });
  assert.deepEqual(result, everywhere);
  assert.ok(!loadsCopy(requests));
});

test("a file that breaks off on its way, of the right type or not: the text copy is used", async () => {
  for (const wasmType of ["application/wasm", "application/octet-stream"]) {
    const { result, requests } = await openDir(dir, { wasmType, cut: true });
    assert.deepEqual(result, everywhere);
    assert.ok(loadsCopy(requests));
  }
});

test("a server that answers unknown paths with its page, and one that has no such file: the text copy is used", async () => {
  for (const options of [{ spa: true }, {}]) {
    const bare = project("browser-bare", { sources: false });
    cpSync(dir, bare, { recursive: true });
    rmSync(join(bare, "node_modules/sessionlog/dist/sessionlog_bg.wasm"));
    const { result, requests } = await openDir(bare, options);
    assert.deepEqual(result, everywhere);
    assert.ok(loadsCopy(requests));
  }
});
