// The packed package installed in fresh folders, a static server and a browser to open what was built from it.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { launchChromium } from "../support/chromium.mjs";

export const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../..");
const out = join(here, ".out");

let packed;
/** Packs pkg/ as `npm publish` would, once, and returns the tarball. */
export function tarball() {
  return (packed ??= pack());
}
function pack() {
  const dir = join(out, "tarball");
  mkdirSync(dir, { recursive: true });
  const name = execFileSync("npm", ["pack", "--silent", "--pack-destination", dir, join(root, "pkg")], { encoding: "utf8", cwd: dir });
  return join(dir, name.trim().split("\n").pop());
}

/** A fresh folder with the tarball in node_modules, as npm unpacks it, and the app's sources. */
export function project(name, { sources = true } = {}) {
  const dir = join(out, name);
  rmSync(dir, { recursive: true, force: true });
  const installed = join(dir, "node_modules", "sessionlog");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", tarball(), "--strip-components=1", "-C", installed]);
  const dependencies = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")).dependencies ?? {};
  for (const dependency of Object.keys(dependencies)) cpSync(join(root, "node_modules", dependency), join(dir, "node_modules", dependency), { recursive: true });
  writeFileSync(join(dir, "package.json"), JSON.stringify({ name: `app-${name}`, private: true, type: "module" }));
  if (sources) cpSync(join(here, "app"), dir, { recursive: true });
  return dir;
}

/** Runs a program in a folder; all of its output, or an error with all of it. */
export function run(program, args, { cwd, env = {}, timeout = 180_000 } = {}) {
  // With the context of the test that starts it, an inner `node --test` would run nothing and succeed.
  const { NODE_TEST_CONTEXT, ...outer } = process.env;
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8", timeout, env: { ...outer, ...env }, maxBuffer: 1 << 26 });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${status ?? error}\n${stdout}\n${stderr}`);
  return stdout + stderr;
}

/** The file of an installed tool, or null. */
export function tool(path) {
  const file = join(here, "node_modules", path);
  return existsSync(file) ? file : null;
}

const types = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };

/** Serves a folder on loopback: `csp`, `isolated` (COOP/COEP), `wasmType`, `spa` (unknown paths answer with the page), `cut` (the module breaks off). */
export async function serve(dir, { csp, isolated = false, wasmType, spa = false, cut = false } = {}) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://x").pathname);
    let file = resolve(dir, "." + path);
    if (file !== dir && !file.startsWith(dir + sep)) return void response.writeHead(403).end();
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
    if (!existsSync(file)) {
      if (!spa) return void response.writeHead(404, { "content-type": "text/plain" }).end("not found");
      file = join(dir, "index.html");
    }
    const isWasm = extname(file) === ".wasm";
    const headers = { "content-type": (isWasm && wasmType) || types[extname(file)] || "application/octet-stream", "cache-control": "no-store" };
    if (csp) headers["content-security-policy"] = csp;
    if (isolated) Object.assign(headers, { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" });
    response.writeHead(200, headers);
    if (!isWasm || !cut) return void response.end(readFileSync(file));
    response.write(readFileSync(file).subarray(0, 50_000), () => response.destroy());
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => new Promise((done) => (server.closeAllConnections(), server.close(done))) };
}

let browser;
/** The system's Chromium, started once. */
export async function chromium() {
  return (browser ??= await launchChromium());
}
export async function closeBrowser() {
  await browser?.close();
  browser = undefined;
}

/** Opens a page of the app and returns what it found, with the requests it made. */
export async function open(url) {
  const context = await (await chromium()).newContext();
  const page = await context.newPage();
  const log = [];
  const requests = [];
  page.on("console", (message) => message.type() === "error" && log.push(message.text()));
  page.on("pageerror", (error) => log.push(error.message));
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  try {
    await page.goto(url);
    await page.waitForFunction(() => document.title === "done", null, { timeout: 60_000 });
    return { result: await page.evaluate(() => globalThis.RESULT), requests, log };
  } catch (error) {
    throw new Error(`${error.message}\n${log.join("\n")}`);
  } finally {
    await context.close();
  }
}

/** Serves a folder, opens it and closes the server. */
export async function openDir(dir, options, path = "") {
  const server = await serve(dir, options);
  try {
    return await open(server.url + path);
  } finally {
    await server.close();
  }
}

/** Files below a folder whose names match. */
export function filesBelow(dir, pattern) {
  return readdirSync(dir, { recursive: true }).map(String).filter((name) => pattern.test(name)).sort();
}
