// What `wrangler deploy` would send, and the types of the worker.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { here, root } from "./host.mjs";

const edge = join(root, "edge");
function tool(name, args) {
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false", CI: "1", CLOUDFLARE_CF_FETCH_ENABLED: "false", NO_COLOR: "1" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(edge, "node_modules", name), ...args], { cwd: edge, encoding: "utf8", env, timeout: 120_000 });
  return { status, output: stdout + stderr };
}

test("wrangler deploy --dry-run takes the worker as it is, without a plug-in or a rule", (t) => {
  const out = join(here, ".out/dry-run");
  rmSync(out, { recursive: true, force: true });
  const { status, output } = tool("wrangler/bin/wrangler.js", ["deploy", "--dry-run", "--outdir", out]);
  assert.equal(status, 0, output);
  for (const name of ["SESSIONS", "INDEXES", "SessionObject", "IndexObject"]) assert.match(output, new RegExp(name));
  const files = readdirSync(out);
  assert.ok(files.includes("worker.js"), files.join());
  assert.ok(files.some((name) => name.endsWith(".wasm")), files.join());
  const size = files.filter((name) => /\.(js|wasm)$/.test(name)).reduce((sum, name) => sum + gzipSync(readFileSync(join(out, name))).length, 0);
  t.diagnostic(`${Math.round(size / 1024)} KiB gzip`);
  // The free plan's limit is 3 MiB; the text copy of the module is not in it.
  assert.ok(size < 1024 * 1024, `${size} bytes`);
});

test("the worker is strict TypeScript without any", () => {
  const { status, output } = tool("typescript/bin/tsc", ["--noEmit", "--project", "tsconfig.json"]);
  assert.equal(status, 0, output);
  assert.equal(JSON.parse(readFileSync(join(edge, "tsconfig.json"), "utf8")).compilerOptions.strict, true);
  for (const name of readdirSync(join(edge, "src"))) {
    const code = readFileSync(join(edge, "src", name), "utf8").replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/.*$/gm, "").replace(/"(?:[^"\\]|\\.)*"|`[^`]*`/g, '""');
    assert.ok(!/\bany\b/.test(code), name);
    assert.ok(!/@ts-(ignore|nocheck|expect-error)/.test(code), name);
  }
});

test("the worker stands on the public package alone", () => {
  for (const name of readdirSync(join(edge, "src"))) {
    for (const [, from] of readFileSync(join(edge, "src", name), "utf8").matchAll(/from "([^"]+)"/g)) {
      assert.match(from, /^(\.\/[\w-]+\.js|cloudflare:workers|sessionlog(\/(durable-object|remote|sessionlog\.wasm))?)$/, `${name} imports ${from}`);
    }
  }
});
