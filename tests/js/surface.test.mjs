// What the package exports is what its declarations say, no more and no less.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const declarations = readFileSync(new URL("../../pkg/dist/index.d.ts", import.meta.url), "utf8");
const declared = [...declarations.matchAll(/^export (?:declare )?(?:abstract )?(default )?(?:class|function|const) (\w+)/gm)].map(([, isDefault, name]) => (isDefault ? "default" : name));

test("every declared value is exported, and nothing else", async () => {
  const exported = Object.keys(await import("sessionlog"));
  assert.ok(declared.length > 15);
  assert.deepEqual({ missing: declared.filter((name) => !exported.includes(name)), undeclared: exported.filter((name) => !declared.includes(name)) }, { missing: [], undeclared: [] });
});

test("every entry exports the same", async () => {
  const main = Object.keys(await import("sessionlog"));
  for (const entry of ["sessionlog/web", "sessionlog/inline"]) assert.deepEqual(Object.keys(await import(entry)), main, entry);
});
