// The portable suite under the other runtimes' own `node:test`.
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { project, root, run, tool } from "./helper.mjs";

const runtimes = [
  ["Node 24", tool("node24/bin/node"), ["--test", "portable.test.mjs"]],
  ["Deno", tool(".bin/deno"), ["test", "-A", "--no-check", "--cached-only", "--node-modules-dir=manual", "portable.test.mjs"]],
  ["Bun", tool(".bin/bun"), ["test", "./portable.test.mjs"]],
];
for (const [name, program, args] of runtimes) {
  test(`the portable suite under ${name}`, { skip: program === null && `no ${name} for this platform` }, () => {
    const dir = project(`portable-${name.replace(" ", "-").toLowerCase()}`, { sources: false });
    cpSync(join(root, "tests/js/portable.test.mjs"), join(dir, "portable.test.mjs"));
    assert.ok(run(program, args, { cwd: dir }) !== null);
  });
}
