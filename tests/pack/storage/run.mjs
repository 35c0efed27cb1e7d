// Holds the backends of servers against the suite for backends, in whatever runtime runs this: node, bun, deno.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import init, { SessionStore, checkBackend } from "sessionlog";
import { denoKvBackend } from "sessionlog/deno-kv";
import { openFileBackend, openSqliteBackend } from "sessionlog/node";

await init();
const dir = mkdtempSync(join(tmpdir(), "sessionlog-storage-"));
const makers = {
  files: (name) => openFileBackend(join(dir, name)),
  "files, store first": (name) => openFileBackend(join(dir, name), { storeFirst: true }),
  sqlite: (name) => openSqliteBackend(join(dir, `${name}.sqlite`)),
  "sqlite, store first": (name) => openSqliteBackend(join(dir, `${name}.sqlite`), { storeFirst: true }),
  ...(globalThis.Deno?.openKv ? { "deno-kv": async (name) => denoKvBackend(await Deno.openKv(join(dir, `${name}.kv`))) } : {}),
};

/** A session written, closed and read again: large payloads, several flushes, odd text. */
async function keeps(make) {
  const big = "ü€😀".repeat(200_000);
  const writer = await SessionStore.open({ storage: { kind: "custom", backend: await make() } });
  const session = writer.create("kept");
  for (let n = 0; n < 50; n++) session.append("user/message", { text: `${n}` });
  await session.flush();
  session.append("user/message", { text: big });
  await session.appendDurable("user/message", { text: "last" });
  const { events } = session;
  await writer.dispose();
  const reader = await SessionStore.open({ storage: { kind: "custom", backend: await make() } });
  const again = await reader.resume("kept");
  const same = JSON.stringify(again.events) === JSON.stringify(events) && again.verify() === null;
  await reader.dispose();
  return same;
}

const report = {};
for (const [name, make] of Object.entries(makers)) {
  try {
    const suite = await checkBackend(() => make(`suite ${name}`));
    report[name] = { ...suite, keeps: await keeps(() => make(`session ${name}`)) };
  } catch (error) {
    report[name] = { refused: error.code, message: error.message };
  }
}
rmSync(dir, { recursive: true, force: true });
console.log(`REPORT ${JSON.stringify(report)}`);
