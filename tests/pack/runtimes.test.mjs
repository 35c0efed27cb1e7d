// The packed tarball in server runtimes: as modules, through require, as one bundled file.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { expected } from "./app/src/smoke.js";
import { project, run, tarball, tool } from "./helper.mjs";

const nodes = [
  [`node ${process.versions.node} (this one)`, process.execPath],
  ["node 20", tool("node20/bin/node")],
  ["node 24", tool("node24/bin/node")],
];

for (const [name, node] of nodes) {
  const skip = node === null && "no binary package of it for this platform";
  test(`${name}: import`, { skip }, () => {
    const dir = project("node-esm");
    assert.equal(run(node, ["use.mjs"], { cwd: dir }).trim(), expected);
  });
  test(`${name}: require`, { skip }, () => {
    const dir = project("node-cjs");
    assert.equal(run(node, ["--no-warnings", "use.cjs"], { cwd: dir }).trim(), "1 function");
  });
  test(`${name}: bundled into one file, away from the package`, { skip }, async () => {
    const dir = project("node-bundle");
    await build({ absWorkingDir: dir, entryPoints: ["use.mjs"], outfile: join(dir, "one.mjs"), bundle: true, platform: "node", format: "esm", logLevel: "error" });
    rmSync(join(dir, "node_modules"), { recursive: true });
    assert.equal(run(node, ["one.mjs"], { cwd: dir }).trim(), expected);
  });
}

test("npm installs the tarball without scripts and without asking anyone", () => {
  const dir = project("npm-install");
  rmSync(join(dir, "node_modules"), { recursive: true });
  run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", tarball()], { cwd: dir });
  assert.equal(run(process.execPath, ["use.mjs"], { cwd: dir }).trim(), expected);
});

const deno = tool(".bin/deno");
for (const [name, permissions] of [["with permission to read", ["--allow-read"]], ["without any permission", []]]) {
  test(`Deno ${name}`, { skip: deno === null && "no Deno for this platform" }, () => {
    const dir = project("deno");
    assert.equal(run(deno, ["run", "--no-prompt", "--cached-only", "--node-modules-dir=manual", ...permissions, "use.mjs"], { cwd: dir }).trim(), expected);
  });
}

const bun = tool(".bin/bun");
test("Bun", { skip: bun === null && "no Bun for this platform" }, () => {
  const dir = project("bun");
  assert.equal(run(bun, ["run", "use.mjs"], { cwd: dir }).trim(), expected);
});
test("Bun: require", { skip: bun === null && "no Bun for this platform" }, () => {
  const dir = project("bun-cjs");
  assert.equal(run(bun, ["run", "use.cjs"], { cwd: dir }).trim(), "1 function");
});
test("Bun: compiled into one executable", { skip: bun === null && "no Bun for this platform" }, () => {
  const dir = project("bun-compile");
  run(bun, ["build", "--compile", "use.mjs", "--outfile", "one"], { cwd: dir });
  rmSync(join(dir, "node_modules"), { recursive: true });
  assert.equal(run(join(dir, "one"), [], { cwd: dir }).trim(), expected);
});
