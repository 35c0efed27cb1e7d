// What was carried out already, over a table that is as old as a test says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";
import { root } from "./host.mjs";

const { outputFiles } = await build({ absWorkingDir: root, entryPoints: ["edge/src/requests.ts"], bundle: true, format: "esm", write: false, external: ["sessionlog"], logLevel: "error" });
const source = outputFiles[0].text.replace(/from "sessionlog"/g, `from ${JSON.stringify(import.meta.resolve("sessionlog"))}`);
const { Requests, fingerprint, printOf } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const DAY_MS = 24 * 3_600_000;
const bytes = (text) => new TextEncoder().encode(text);

/** The statements that are used, over rows in memory. */
function table(rows) {
  const run = (query, args) => {
    if (query.startsWith("CREATE")) return [];
    if (query.startsWith("SELECT key")) return rows.map(({ key }) => [key]);
    if (query.startsWith("SELECT print")) return rows.filter(({ key }) => key === args[0]);
    if (query.startsWith("DELETE")) return void rows.splice(0, rows.length, ...rows.filter(({ at }) => at >= args[0])) ?? [];
    const [key, print, answer, at] = args;
    const known = rows.find((row) => row.key === key);
    if (known === undefined) rows.push({ key, print, answer, at });
    else known.answer = answer;
    return [];
  };
  return { exec: (query, ...args) => Object.assign(run(query, args), { raw: () => run(query, args) }) };
}

test("an object that sleeps after every few requests throws away what is too old all the same", () => {
  const now = Date.now();
  const rows = [{ key: "old", print: "p", answer: "1", at: now - DAY_MS - 60_000 }, { key: "young", print: "p", answer: "2", at: now - DAY_MS + 600_000 }];
  const sql = table(rows);
  for (let waking = 0; waking < 3; waking++) new Requests(sql).add({ key: `new-${waking}`, print: "p", answer: "3" });
  assert.deepEqual(rows.map(({ key }) => key), ["young", "new-0", "new-1", "new-2"]);
});

test("a key belongs to a call and its body; one that was stored before calls were told apart, to its body", () => {
  const requests = new Requests(table([{ key: "before", print: fingerprint(bytes("{}")), answer: "old", at: Date.now() }]));
  for (const answer of ["first", "last"]) requests.add({ key: "key", print: printOf("undo", bytes("{}")), answer });
  assert.equal(requests.find("key", printOf("undo", bytes("{}"))), "last");
  for (const print of [printOf("redo", bytes("{}")), printOf("undo", bytes("{ }"))]) assert.throws(() => requests.find("key", print), { status: 422 });
  for (const call of ["undo", "redo"]) assert.equal(requests.find("before", printOf(call, bytes("{}"))), "old");
  assert.throws(() => requests.find("before", printOf("undo", bytes("{ }"))), { status: 422 });
});
