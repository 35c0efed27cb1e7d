// Backends beside the built-in ones, each in the runtimes that have its storage.
import assert from "node:assert/strict";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { here, project, run, tool } from "./helper.mjs";
import { bundle, skip, start } from "./workerd.mjs";

const FILES = ["files", "files, store first"];
const SQLITE = ["sqlite", "sqlite, store first"];
const runtimes = [
  { name: "Node 20", program: tool("node20/bin/node"), passes: FILES, refuses: SQLITE },
  { name: "Node 24", program: tool("node24/bin/node"), args: ["--no-warnings"], passes: [...FILES, ...SQLITE], refuses: [] },
  { name: "Deno", program: tool(".bin/deno"), args: ["run", "-A", "--unstable-kv", "--no-prompt", "--cached-only", "--node-modules-dir=manual"], passes: [...FILES, ...SQLITE, "deno-kv"], refuses: [] },
  { name: "Bun", program: tool(".bin/bun"), args: ["run"], passes: [...FILES, ...SQLITE], refuses: [] },
];
for (const { name, program, args = [], passes, refuses } of runtimes) {
  test(`storage under ${name}: ${passes.join("; ")}`, { skip: program === null && `no ${name} for this platform` }, () => {
    const dir = project(`storage-${name.replace(" ", "-").toLowerCase()}`, { sources: false });
    cpSync(join(here, "storage/run.mjs"), join(dir, "run.mjs"));
    const output = run(program, [...args, "run.mjs"], { cwd: dir, env: { NO_COLOR: "1" } });
    const report = JSON.parse(/^REPORT (.*)$/m.exec(output)?.[1] ?? "null");
    assert.deepEqual(Object.keys(report).sort(), [...passes, ...refuses].sort());
    for (const storage of passes) {
      assert.deepEqual(report[storage].failed, [], `${storage}: ${report[storage].message}`);
      assert.ok(report[storage].passed >= 20, storage);
      assert.equal(report[storage].keeps, true, storage);
    }
    for (const storage of refuses) {
      assert.equal(report[storage].refused, "unavailable", storage);
      assert.match(report[storage].message, /Node 22\.5.*openFileBackend/, "names what to do");
    }
  });
}

let workerd;
let config;
let disk;
before(async () => {
  if (skip) return;
  const dir = project("storage-workerd", { sources: false });
  disk = join(dir, "disk");
  for (const file of ["worker.mjs", "config.capnp"]) cpSync(join(here, "storage", file), join(dir, file));
  config = await bundle(dir);
  rmSync(disk, { recursive: true, force: true });
  workerd = await start(config, { disk });
});
after(() => workerd?.kill());
const get = async (path) => (await fetch(workerd.url + path)).json();

test("storage of a Durable Object passes the suite", { skip }, async () => {
  const { passed, failed } = await get("/suite");
  assert.deepEqual(failed, []);
  assert.ok(passed >= 20);
});

test("a Durable Object takes the largest value and the largest batch that the backend names", { skip }, async () => {
  assert.equal(await get("/largest"), true);
  assert.equal(await get("/batch"), 1000);
});

test("a Durable Object stores first, cuts what is over the limit of a row, and has it all after a SIGKILL", { skip }, async () => {
  assert.deepEqual(await get("/write"), [true, 2]);
  await workerd.kill("SIGKILL");
  workerd = await start(config, { disk });
  assert.deepEqual(await get("/read"), [2, 5_000_000, null]);
});
