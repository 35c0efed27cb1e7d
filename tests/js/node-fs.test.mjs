// The face like node:fs beside node:fs itself: the same calls on a temporary folder and on the files, the same answers.
import assert from "node:assert/strict";
import nodeFs from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import init, { VirtualFs } from "sessionlog";

let real, own;
before(async () => {
  await init();
  real = nodeFs.mkdtempSync(`${tmpdir()}/sessionlog-node-`);
  own = (await VirtualFs.open()).node;
});
after(() => nodeFs.rmSync(real, { recursive: true, force: true }));

/** What a call answers, or its error, with the folder's name taken out. */
function answer(work) {
  const plain = (value) => (typeof value === "string" ? value.replaceAll(real, "") : value);
  try {
    return { value: shown(work()) };
  } catch (error) {
    return { code: error.code, errno: error.errno, syscall: error.syscall, path: plain(error.path), dest: plain(error.dest), message: plain(error.message) };
  }
}
const shown = (value) =>
  value instanceof Uint8Array ? [...value]
  : Array.isArray(value) ? value.map((item) => (typeof item?.isFile === "function" ? [item.name, item.isFile(), item.isDirectory(), item.isSymbolicLink()] : shown(item))).sort()
  : typeof value?.isFile === "function" ? [value.isFile(), value.isDirectory(), value.isSymbolicLink(), value.isDirectory() ? 0 : Number(value.size), Number(value.mode)]
  : typeof value === "string" ? value.replaceAll(real, "")
  : value;

const CALLS = [
  (fs, at) => fs.writeFileSync(at("/a"), "one"),
  (fs, at) => fs.readFileSync(at("/a")),
  (fs, at) => fs.readFileSync(at("/a"), "utf8"),
  (fs, at) => fs.readFileSync(at("/a"), { encoding: "base64" }),
  (fs, at) => fs.readFileSync(at("/a"), "hex"),
  (fs, at) => fs.readFileSync(at("/none")),
  (fs, at) => fs.appendFileSync(at("/a"), " two"),
  (fs, at) => fs.writeFileSync(at("/a"), "x", { flag: "wx" }),
  (fs, at) => fs.writeFileSync(at("/b"), "x", { flag: "wx", mode: 0o600 }),
  (fs, at) => fs.writeFileSync(at("/a"), "T", { flag: "r+" }),
  (fs, at) => fs.readFileSync(at("/a"), "latin1"),
  (fs, at) => fs.writeFileSync(at("/u"), "héé", "utf16le"),
  (fs, at) => fs.readFileSync(at("/u")),
  (fs, at) => fs.readFileSync(at("/u"), "ucs2"),
  (fs, at) => fs.mkdirSync(at("/d")),
  (fs, at) => fs.mkdirSync(at("/d")),
  (fs, at) => fs.mkdirSync(at("/d"), { recursive: true }),
  (fs, at) => fs.mkdirSync(at("/d/e/f"), { recursive: true }),
  (fs, at) => fs.mkdirSync(at("/a/x")),
  (fs, at) => fs.readFileSync(at("/d")),
  (fs, at) => fs.writeFileSync(at("/d"), ""),
  (fs, at) => fs.writeFileSync(at("/d/e/g"), "g"),
  (fs, at) => fs.readdirSync(at("/d")),
  (fs, at) => fs.readdirSync(at("/d"), { withFileTypes: true }),
  (fs, at) => fs.readdirSync(at("/d"), { recursive: true }),
  (fs, at) => fs.readdirSync(at("/a")),
  (fs, at) => fs.readdirSync(at("/none")),
  (fs, at) => fs.statSync(at("/a")),
  (fs, at) => fs.statSync(at("/b")),
  (fs, at) => fs.statSync(at("/d")),
  (fs, at) => fs.statSync(at("/none")),
  (fs, at) => fs.statSync(at("/none"), { throwIfNoEntry: false }),
  (fs, at) => fs.statSync(at("/a"), { bigint: true }),
  (fs, at) => fs.symlinkSync("a", at("/l")),
  (fs, at) => fs.symlinkSync("a", at("/l")),
  (fs, at) => fs.lstatSync(at("/l")),
  (fs, at) => fs.statSync(at("/l")),
  (fs, at) => fs.readlinkSync(at("/l")),
  (fs, at) => fs.readlinkSync(at("/a")),
  (fs, at) => fs.realpathSync(at("/l")),
  (fs, at) => fs.existsSync(at("/l")),
  (fs, at) => fs.existsSync(at("/none")),
  (fs, at) => fs.accessSync(at("/a")),
  (fs, at) => fs.accessSync(at("/a"), fs.constants.X_OK),
  (fs, at) => fs.accessSync(at("/none")),
  (fs, at) => fs.chmodSync(at("/a"), 0o755),
  (fs, at) => fs.accessSync(at("/a"), fs.constants.X_OK),
  (fs, at) => fs.truncateSync(at("/a"), 3),
  (fs, at) => fs.readFileSync(at("/a"), "utf8"),
  (fs, at) => fs.truncateSync(at("/a"), 5),
  (fs, at) => fs.readFileSync(at("/a")),
  (fs, at) => { fs.utimesSync(at("/a"), 1, 1_500_000_000); return fs.statSync(at("/a")).mtimeMs; },
  (fs, at) => fs.copyFileSync(at("/a"), at("/c")),
  (fs, at) => fs.copyFileSync(at("/a"), at("/c"), fs.constants.COPYFILE_EXCL),
  (fs, at) => fs.copyFileSync(at("/none"), at("/c")),
  (fs, at) => fs.renameSync(at("/c"), at("/d/c")),
  (fs, at) => fs.renameSync(at("/none"), at("/c")),
  (fs, at) => fs.renameSync(at("/d"), at("/a")),
  (fs, at) => fs.cpSync(at("/d"), at("/d2"), { recursive: true }),
  (fs, at) => fs.readdirSync(at("/d2"), { recursive: true }),
  (fs, at) => fs.unlinkSync(at("/none")),
  (fs, at) => fs.unlinkSync(at("/l")),
  (fs, at) => fs.rmdirSync(at("/d")),
  (fs, at) => fs.rmdirSync(at("/a")),
  // Node's versions name different calls in this one.
  (fs, at) => { try { fs.rmSync(at("/none")); } catch (error) { return error.code; } },
  (fs, at) => fs.rmSync(at("/none"), { force: true }),
  (fs, at) => fs.rmSync(at("/d2"), { recursive: true }),
  (fs, at) => fs.readdirSync(at("/")),
  (fs) => fs.openSync("/\0"),
  (fs, at) => fs.openSync(at("/none")),
  (fs, at) => fs.openSync(at("/a"), "wz"),
  (fs, at) => {
    const fd = fs.openSync(at("/h"), "w+");
    const out = [fs.writeSync(fd, "hello world"), fs.writeSync(fd, Buffer.from("H"), 0, 1, 0)];
    const buffer = Buffer.alloc(5);
    out.push(fs.readSync(fd, buffer, 0, 5, 0), buffer.toString(), fs.fstatSync(fd).size);
    fs.ftruncateSync(fd, 4);
    fs.unlinkSync(at("/h"));
    out.push(fs.readFileSync(at("/a")).length, fs.fstatSync(fd).size, fs.existsSync(at("/h")));
    fs.closeSync(fd);
    return out;
  },
  (fs, at) => {
    const fd = fs.openSync(at("/ap"), "a");
    fs.writeSync(fd, "1", 0);
    fs.writeSync(fd, "2", 0);
    fs.closeSync(fd);
    return fs.readFileSync(at("/ap"), "utf8");
  },
  (fs, at) => {
    const fd = fs.openSync(at("/a"), "r");
    try {
      fs.writeSync(fd, "x");
    } finally {
      fs.closeSync(fd);
    }
  },
  (fs, at) => {
    const dir = fs.opendirSync(at("/d"));
    const names = [];
    for (let entry = dir.readSync(); entry !== null; entry = dir.readSync()) names.push(entry.name);
    dir.closeSync();
    return names;
  },
];

for (const call of CALLS) {
  const text = call.toString().replace(/^\(fs(, at)?\) => /, "").replace(/\s+/g, " ").slice(0, 90);
  test(text, () => {
    const theirs = answer(() => call(nodeFs, (path) => real + path));
    const ours = answer(() => call(own, (path) => path));
    assert.deepEqual(ours, theirs);
  });
}

test("promises, handles and callbacks answer as the calls do", async () => {
  const { promises } = own;
  await promises.writeFile("/p", (async function* () { yield "a"; yield "b"; })());
  assert.equal(await promises.readFile("/p", "utf8"), "ab");
  await assert.rejects(promises.readFile("/none"), { code: "ENOENT", message: "ENOENT: no such file or directory, open '/none'" });
  await using_(await promises.open("/p", "r+"), async (handle) => {
    assert.deepEqual((await handle.read(Buffer.alloc(2), 0, 2, 0)).bytesRead, 2);
    await handle.write("z", 0);
    assert.equal(await handle.readFile("utf8"), "zb");
    assert.equal((await handle.stat()).size, 2);
  });
  assert.equal(await promises.readFile("/p", "utf8"), "zb");
  const names = [];
  for await (const entry of await promises.opendir("/d")) names.push(entry.name);
  assert.deepEqual(names, own.readdirSync("/d"));
  const called = await new Promise((resolve) => own.readFile("/p", "utf8", (...args) => resolve(args)));
  assert.deepEqual(called, [null, "zb"]);
  const failed = await new Promise((resolve) => own.stat("/none", resolve));
  assert.equal(failed.code, "ENOENT");
  const temp = await promises.mkdtemp("/tmp-");
  assert.match(temp, /^\/tmp-[A-Za-z0-9]{6}$/);
});

test("streams read and write as Node's do", async () => {
  for (const [fs, root] of [[own, ""], [nodeFs, real]]) {
    const { pipeline } = await import("node:stream/promises");
    const collect = async (options) => {
      const parts = [];
      for await (const part of fs.createReadStream(`${root}/s`, options)) parts.push(part);
      return parts.map(String).join("");
    };
    const written = fs.createWriteStream(`${root}/s`, { mode: 0o600 });
    const events = [];
    for (const name of ["open", "ready", "finish", "close"]) written.on(name, () => events.push(name));
    await pipeline(async function* () { yield "hello "; yield Buffer.from("wörld"); }, written);
    assert.deepEqual([events, written.bytesWritten, fs.readFileSync(`${root}/s`, "utf8"), fs.statSync(`${root}/s`).mode & 0o777], [["open", "ready", "finish", "close"], 12, "hello wörld", 0o600]);
    assert.deepEqual(await collect("utf8"), "hello wörld");
    assert.deepEqual(await collect({ start: 2, end: 5, highWaterMark: 3 }), "llo ");
    await pipeline(["J"], fs.createWriteStream(`${root}/s`, { start: 0, flags: "r+" }));
    await pipeline(["!"], fs.createWriteStream(`${root}/s`, { flags: "a" }));
    assert.deepEqual(await collect(), "Jello wörld!");
    const failed = await new Promise((resolve) => fs.createReadStream(`${root}/none`).on("error", resolve));
    assert.equal(failed.message.replace(real, ""), "ENOENT: no such file or directory, open '/none'");
    await assert.rejects(pipeline(["x"], fs.createWriteStream(`${root}/none/x`)), { code: "ENOENT" });
    fs.unlinkSync(`${root}/s`);
  }
});

test("watch tells of changes below a directory", async () => {
  const heard = [];
  const watcher = own.watch("/d", (kind, name) => heard.push([kind, name]));
  own.writeFileSync("/d/w", "1");
  own.writeFileSync("/elsewhere", "1");
  await Promise.resolve();
  await Promise.resolve();
  watcher.close();
  own.writeFileSync("/d/w", "2");
  await Promise.resolve();
  assert.deepEqual(heard, [["change", "w"]]);
});

async function using_(handle, work) {
  try {
    await work(handle);
  } finally {
    await handle.close();
  }
}
