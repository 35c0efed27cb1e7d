// The portable suite under the other runtimes' own `node:test`.
import assert from "node:assert/strict";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { project, root, run, tool } from "./helper.mjs";

const runtimes = [
  ["Node 20", tool("node20/bin/node"), ["--test", "--test-reporter=tap", "portable.test.mjs"], /^# pass (\d+)$/m],
  ["Node 24", tool("node24/bin/node"), ["--test", "--test-reporter=tap", "portable.test.mjs"], /^# pass (\d+)$/m],
  ["Deno", tool(".bin/deno"), ["test", "-A", "--no-check", "--cached-only", "--node-modules-dir=manual", "portable.test.mjs"], /\| (\d+) passed/],
  ["Bun", tool(".bin/bun"), ["test", "./portable.test.mjs"], /^\s*(\d+) pass$/m],
];
const suite = join(root, "tests/js/portable.test.mjs");
/** Every test of the suite runs everywhere: none is skipped, none is left out. */
const all = readFileSync(suite, "utf8").match(/^test\(/gm).length;
for (const [name, program, args, count] of runtimes) {
  test(`the portable suite under ${name}: ${all} tests`, { skip: program === null && `no ${name} for this platform` }, () => {
    const dir = project(`portable-${name.replace(" ", "-").toLowerCase()}`, { sources: false });
    cpSync(suite, join(dir, "portable.test.mjs"));
    const output = run(program, args, { cwd: dir, env: { NO_COLOR: "1" } });
    assert.equal(Number(count.exec(output)?.[1]), all, output);
  });
}
