// Plain files and SQLite as storage: what a crash, a second process and a full disk leave behind.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import init, { SessionLogError, SessionStore } from "sessionlog";
import { openFileBackend, openSqliteBackend } from "sessionlog/node";

let root;
let count = 0;
before(async () => {
  await init();
  root = mkdtempSync(join(tmpdir(), "sessionlog-files-"));
});
after(() => rmSync(root, { recursive: true, force: true }));
const fresh = () => join(root, `store-${count++}`);
const bytes = (text) => new TextEncoder().encode(text);
const text = (value) => (value === null ? null : new TextDecoder().decode(value));

async function filled(dir, batches = 3) {
  const store = await openFileBackend(dir);
  for (let n = 0; n < batches; n++) await store.transact({ puts: [[`k${n}`, bytes(`v${n}`)], ["last", bytes(String(n))]] });
  await store.close();
  return join(dir, "data");
}

test("a batch cut off at any byte is not there, and all before it is", async () => {
  const dir = fresh();
  const data = await filled(dir);
  const whole = readFileSync(data);
  const store = await openFileBackend(dir);
  await store.transact({ puts: [["k3", bytes("v3")], ["last", bytes("3")]], deletes: ["k0"] });
  await store.close();
  const longer = readFileSync(data);
  for (let size = whole.length; size < longer.length; size++) {
    writeFileSync(data, longer.subarray(0, size));
    const again = await openFileBackend(dir);
    assert.deepEqual([text(await again.get("k0")), text(await again.get("k3")), text(await again.get("last"))], ["v0", null, "2"], `cut at ${size}`);
    await again.transact({ puts: [["next", bytes("stored")]] });
    await again.close();
    const third = await openFileBackend(dir);
    assert.deepEqual([text(await third.get("next")), text(await third.get("last"))], ["stored", "2"]);
    await third.close();
  }
});

test("a run of zeros at the end is cut off; damage in the middle is said and nothing is thrown away", async () => {
  const dir = fresh();
  const data = await filled(dir);
  const whole = readFileSync(data);
  appendFileSync(data, new Uint8Array(4096));
  const store = await openFileBackend(dir);
  assert.equal(text(await store.get("last")), "2");
  await store.close();
  assert.equal(statSync(data).size, whole.length);

  const damaged = Uint8Array.from(whole);
  damaged[whole.indexOf("v1")] ^= 1;
  writeFileSync(data, damaged);
  await assert.rejects(openFileBackend(dir), (error) => error instanceof SessionLogError && error.code === "corrupt");
  assert.deepEqual(new Uint8Array(readFileSync(data)), damaged);
  // A refused folder is free again.
  writeFileSync(data, whole);
  await (await openFileBackend(dir)).close();
});

test("a file that is none of ours is refused and kept", async () => {
  const dir = fresh();
  const data = await filled(dir);
  writeFileSync(data, "something else altogether, and long enough to be a file");
  await assert.rejects(openFileBackend(dir), { code: "newer_format" });
  assert.match(readFileSync(data, "utf8"), /^something else/);
  truncateSync(data, 5);
  await assert.rejects(openFileBackend(dir), { code: "corrupt" });
});

test("one opener at a time, in this process and in others; a lock of a process that is gone does not count", async () => {
  const dir = fresh();
  const store = await openFileBackend(dir);
  await assert.rejects(openFileBackend(dir), { code: "locked" });
  const other = spawnSync(process.execPath, ["--input-type=module", "-e", `
    import { openFileBackend } from "sessionlog/node";
    console.log(await openFileBackend(${JSON.stringify(dir)}).then(() => "open", (error) => error.code));
  `], { encoding: "utf8" });
  assert.equal(other.stdout.trim(), "locked", other.stderr);
  await store.close();
  assert.equal(existsSync(join(dir, "lock")), false);
  await assert.rejects(async () => store.get("k"), { code: "disposed" });
  const gone = spawnSync(process.execPath, ["-e", "console.log(process.pid)"], { encoding: "utf8" }).stdout.trim();
  writeFileSync(join(dir, "lock"), gone);
  await (await openFileBackend(dir)).close();
});

test("what is replaced and deleted makes room again", async () => {
  const dir = fresh();
  const store = await openFileBackend(dir);
  const big = new Uint8Array(1 << 20);
  await store.transact({ puts: [["kept", bytes("here")], ["gone", big]] });
  await store.transact({ deletes: ["gone"] });
  for (let n = 0; n < 12; n++) await store.transact({ puts: [["turned", big.fill(n)]] });
  assert.ok(statSync(join(dir, "data")).size < 6 << 20, `${statSync(join(dir, "data")).size}`);
  await store.transact({ puts: [["after", bytes("too")]] });
  await store.close();
  const again = await openFileBackend(dir);
  assert.deepEqual([text(await again.get("kept")), text(await again.get("after")), await again.get("gone"), (await again.get("turned"))[5]], ["here", "too", null, 11]);
  await again.close();
});

test("killed in the middle of writes, five times: every acknowledged event is there once, and the log verifies", async () => {
  const dir = fresh();
  const acknowledged = new Set();
  for (let round = 0; round < 5; round++) {
    const child = spawn(process.execPath, ["--input-type=module", "-e", `
      import init, { SessionStore } from "sessionlog";
      import { openFileBackend } from "sessionlog/node";
      await init();
      const store = await SessionStore.open({ storage: { kind: "custom", backend: await openFileBackend(${JSON.stringify(dir)}) } });
      const session = ${round} === 0 ? store.create("s") : await store.resume("s");
      for (let n = 0; ; n++) {
        const { id } = await session.appendDurable("user/message", { text: "event " + n + "x".repeat(n % 700) });
        process.stdout.write(id + "\\n");
      }
    `], { stdio: ["ignore", "pipe", "inherit"] });
    let seen = "";
    await new Promise((resolve) => {
      child.stdout.on("data", (data) => {
        seen += data;
        if (seen.length > 17 * (20 + 7 * round)) child.kill("SIGKILL");
      });
      child.on("close", resolve);
    });
    for (const id of seen.split("\n").slice(0, -1)) acknowledged.add(id);
    const store = await SessionStore.open({ storage: { kind: "custom", backend: await openFileBackend(dir) } });
    const session = await store.resume("s");
    const ids = session.events.map((event) => event.id);
    assert.equal(new Set(ids).size, ids.length);
    assert.deepEqual([...acknowledged].filter((id) => !ids.includes(id)), []);
    assert.deepEqual(session.events.map((event) => event.seq), ids.map((_, seq) => seq));
    assert.equal(session.verify(), null);
    await store.dispose();
  }
  assert.ok(acknowledged.size >= 100);
});

test("Node without SQLite says what to do", { skip: Number(process.versions.node.split(".")[0]) > 20 && "this Node has SQLite" }, async () => {
  await assert.rejects(openSqliteBackend(join(root, "x.sqlite")), (error) => error.code === "unavailable" && /Node 22\.5/.test(error.message));
});
