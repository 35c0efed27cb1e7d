// The packed tarball inside workerd, as Cloudflare's bundler would take it: the `workerd` entry, no compiling from bytes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { expected } from "./app/src/smoke.js";
import { here, project, root, tool } from "./helper.mjs";

const binary = tool("@cloudflare/workerd-linux-64/bin/workerd");
const skip = binary === null && "no workerd for this platform";
let process_;
let url;

before(async () => {
  if (skip) return;
  const dir = project("workerd");
  cpSync(join(here, "workerd"), dir, { recursive: true });
  cpSync(join(root, "tests/js/portable.test.mjs"), join(dir, "portable.test.mjs"));
  await build({
    absWorkingDir: dir,
    entryPoints: ["worker.mjs"],
    outdir: join(dir, "out"),
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    conditions: ["workerd", "worker", "browser"],
    alias: { "node:test": join(dir, "node-test.mjs") },
    external: ["node:*"],
    loader: { ".wasm": "copy" },
    assetNames: "[name]",
    logLevel: "error",
  });
  cpSync(join(dir, "config.capnp"), join(dir, "out/config.capnp"));
  process_ = spawn(binary, ["serve", join(dir, "out/config.capnp"), "--socket-addr=http=127.0.0.1:0", "--control-fd=3"], { stdio: ["ignore", "inherit", "inherit", "pipe"] });
  url = await new Promise((ok, no) => {
    process_.stdio[3].on("data", (data) => {
      for (const line of String(data).split("\n").filter(Boolean)) {
        const message = JSON.parse(line);
        if (message.event === "listen") ok(`http://127.0.0.1:${message.port}`);
      }
    });
    process_.once("exit", (code) => no(new Error(`workerd ended with ${code}`)));
  });
});
after(() => process_?.kill("SIGKILL"));

test("given bytes are refused by name", { skip }, async () => {
  assert.equal(await (await fetch(`${url}/bytes`)).text(), "true csp_blocked");
});

test("starts synchronously with the imported module", { skip }, async () => {
  assert.equal(await (await fetch(`${url}/sync`)).text(), expected);
});

test("the portable suite", { skip }, async (t) => {
  const results = await (await fetch(url)).json();
  assert.equal(results.length, readFileSync(join(root, "tests/js/portable.test.mjs"), "utf8").match(/^test\(/gm).length);
  for (const { name, ok, message } of results) await t.test(name, () => assert.ok(ok, message));
});
