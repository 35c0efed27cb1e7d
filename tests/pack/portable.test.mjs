// The portable suite under the other runtimes' own `node:test`.
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { project, root, run, tool } from "./helper.mjs";

const runtimes = [
  ["Node 24", tool("node24/bin/node"), ["--test", "--test-reporter=tap", "portable.test.mjs"], /^# pass (\d+)$/m],
  ["Deno", tool(".bin/deno"), ["test", "-A", "--no-check", "--cached-only", "--node-modules-dir=manual", "portable.test.mjs"], /\| (\d+) passed/],
  ["Bun", tool(".bin/bun"), ["test", "./portable.test.mjs"], /^\s*(\d+) pass$/m],
];
for (const [name, program, args, count] of runtimes) {
  test(`the portable suite under ${name}`, { skip: program === null && `no ${name} for this platform` }, () => {
    const dir = project(`portable-${name.replace(" ", "-").toLowerCase()}`, { sources: false });
    cpSync(join(root, "tests/js/portable.test.mjs"), join(dir, "portable.test.mjs"));
    const output = run(program, args, { cwd: dir, env: { NO_COLOR: "1" } });
    assert.ok(Number(count.exec(output)?.[1]) > 5, output);
  });
}
