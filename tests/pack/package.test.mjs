// The tarball as registries and TypeScript see it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { root, run, tarball } from "./helper.mjs";

test("publint has nothing to say", async () => {
  const { publint } = await import("publint");
  const { messages } = await publint({ pkgDir: join(root, "pkg"), strict: true, level: "warning" });
  assert.deepEqual(messages, []);
});

test("are-the-types-wrong has nothing to say", () => {
  // The package is an ES module; `require` of it is tried for real in runtimes.test.mjs.
  run(join(root, "node_modules/.bin/attw"), [tarball(), "--no-color", "--ignore-rules", "cjs-resolves-to-esm"], { cwd: root });
});

test("the tarball holds what is meant for users and nothing else", () => {
  const files = execFileSync("tar", ["-tzf", tarball()], { encoding: "utf8" }).trim().split("\n");
  for (const wanted of ["dist/web.js", "dist/node.js", "dist/workerd.js", "dist/sessionlog_bg.wasm", "dist/index.d.ts", "package.json"]) {
    assert.ok(files.includes(`package/${wanted}`), wanted);
  }
  assert.deepEqual(files.filter((name) => !/^package\/(dist\/[\w.-]+\.(js|d\.ts|wasm)|package\.json|README\.md|LICENSE[\w-]*)$/.test(name)), []);
});
