// The host as it is deployed, in workerd itself on a free loopback port: bundled once, started, killed and started again.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../..");
const binary = join(root, "edge/node_modules/@cloudflare/workerd-linux-64/bin/workerd");
export const skip = !existsSync(binary) && "no workerd for this platform";

export const tokens = { alice: "alice-token-for-tests", bob: "bob-token-for-tests", reader: "reader-token-for-tests", aliceReads: "a-token-of-alice-that-reads" };
const hash = (text) => createHash("sha256").update(text).digest("hex");
const CALLERS = JSON.stringify({
  alice: { tokens: [hash(tokens.alice)], readTokens: [hash(tokens.aliceReads)], access: "write" },
  bob: { tokens: [hash("an older token of bob"), hash(tokens.bob)] },
  reader: { tokens: [hash(tokens.reader)], access: "read" },
});
/** What tests set when they say nothing else: rates that no test runs into by accident. */
const DEFAULTS = { CALLERS, MODELS: "scripted/*", CALLS_PER_SECOND: "100000", ORIGINS: "*" };

let bundled;
export async function bundle(entry = join(root, "edge/src/worker.ts"), out = join(here, ".out/worker")) {
  rmSync(out, { recursive: true, force: true });
  await build({
    absWorkingDir: root, entryPoints: { worker: entry }, outdir: out, outExtension: { ".js": ".mjs" }, bundle: true, format: "esm", target: "es2022",
    conditions: ["workerd", "worker", "browser"], external: ["node:*", "cloudflare:*"], loader: { ".wasm": "copy" }, assetNames: "[name]", logLevel: "error",
  });
  // The configuration names it, whether a worker uses it or not.
  cpSync(join(root, "pkg/dist/sessionlog_bg.wasm"), join(out, "sessionlog_bg.wasm"));
  return out;
}

const disks = [];
process.on("exit", () => disks.forEach((dir) => rmSync(dir, { recursive: true, force: true })));

let count = 0;
/** A folder for the objects' databases; `memory` puts it where no disk is waited for. */
export function freshDisk({ memory = false } = {}) {
  const base = memory && existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  const dir = join(base, `sessionlog-edge-${process.pid}-${count++}`);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  disks.push(dir);
  return dir;
}

/** Starts workerd; `env` are text bindings. */
export async function startHost({ disk, env = {}, worker, port = 0 } = {}) {
  const dir = worker ?? (await (bundled ??= bundle()));
  const bindings = Object.entries({ ...DEFAULTS, ...env }).map(([name, text]) => `    (name = ${JSON.stringify(name)}, text = ${JSON.stringify(text)}),`).join("\n");
  const config = join(dir, `config-${process.pid}-${count++}.capnp`);
  writeFileSync(config, readFileSync(join(here, "config.capnp"), "utf8").replace("#BINDINGS", bindings));
  const child = spawn(binary, ["serve", config, `--socket-addr=http=127.0.0.1:${port}`, `--directory-path=do-disk=${disk}`, "--control-fd=3"], { stdio: ["ignore", "pipe", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said = (said + data).slice(-20_000)));
  const exited = once(child, "exit");
  const bound = await new Promise((ok, no) => {
    let text = "";
    child.stdio[3].on("data", (data) => {
      text += data;
      for (const line of text.split("\n")) {
        const message = line.startsWith("{") && line.endsWith("}") ? JSON.parse(line) : {};
        if (message.event === "listen" && message.socket === "http") ok(message.port);
      }
    });
    child.once("exit", (code) => no(new Error(`workerd ended with ${code}: ${said}`)));
  });
  rmSync(config);
  return {
    url: `http://127.0.0.1:${bound}`, port: bound, disk, pid: child.pid, said: () => said,
    kill: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Calls the host; the answer's JSON beside its status. */
export async function call(host, method, path, { token = tokens.alice, body, headers = {} } = {}) {
  const answer = await fetch(host.url + path, {
    method,
    headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  let json = null;
  try {
    json = JSON.parse(text);
  } catch {
    // Some answers are no JSON.
  }
  return { status: answer.status, json, text, headers: answer.headers };
}

export async function until(check, what, forMs = 20_000) {
  const end = Date.now() + forMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited in vain for ${typeof what === "function" ? what() : what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export const message = (text) => ({ type: "user/message", data: { text } });
