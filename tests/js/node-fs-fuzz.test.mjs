// The face like node:fs beside node:fs itself, at random: the same operations on a temporary folder and on the files must give
// the same results, the same errors with the same words, and in the end the same tree. `SEQUENCES` and `SEED` ask for others.
import assert from "node:assert/strict";
import nodeFs from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import init, { VirtualFs } from "sessionlog";

const BASE = "/w/x/y";
let top, umask;
before(async () => {
  await init();
  umask = process.umask(0o022);
  top = nodeFs.realpathSync(nodeFs.mkdtempSync(`${tmpdir()}/sessionlog-fuzz-`));
});
after(() => {
  process.umask(umask);
  nodeFs.rmSync(top, { recursive: true, force: true });
});

/** SplitMix32: the same sequences everywhere. */
class Dice {
  constructor(seed) { this.state = seed >>> 0; }
  next() {
    this.state = (this.state + 0x9e3779b9) >>> 0;
    let z = this.state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }
  below(n) { return this.next() % n; }
  one(list) { return list[this.below(list.length)]; }
  chance(n) { return this.below(n) === 0; }
}

const LONG = "n".repeat(255);
const NAMES = ["a", "b", "c", "a", "b", "c", "d.txt", "é", "e\u0301", "A", "a b", "\\", "%41", LONG];
/** A path below the folder; climbing ones only for calls that remove nothing. */
function path(dice, { climb = false, long = true } = {}) {
  let out = "";
  for (let depth = 1 + dice.below(3); depth > 0; depth--) out += `/${dice.chance(6) ? dice.one(["a", "l"]) : dice.one(NAMES)}`;
  if (long && dice.chance(40)) out += `/${"n".repeat(256)}`;
  if (dice.chance(12)) out += "/";
  if (dice.chance(25)) out = out.replace("/", "//");
  if (dice.chance(20)) out = out.replace("/", "/./");
  if (climb && dice.chance(10)) out += dice.one(["/..", "/../a", "/."]);
  if (climb && dice.chance(60)) out += `${"/p".repeat(2_100)}`;
  return out;
}
const DATA = ["", "x", "hello", "héllo wörld", "0123456789".repeat(30)];
const FLAGS = ["r", "r+", "w", "wx", "w+", "wx+", "a", "ax", "a+", "ax+", "rs", "rs+", "as", "xw", "q"];
const ENCODINGS = [undefined, null, "utf8", "utf-8", "hex", "base64", "base64url", "latin1", "binary", "ascii", "utf16le", "ucs2", "buffer", "klingon"];
const flag = (dice) => dice.one(FLAGS);

/** Operations: each draws its arguments first and then answers what to do with a face; `at` makes a path of that face. */
const OPERATIONS = {
  writeFile(dice) {
    const [p, data, options] = [path(dice, { climb: true }), dice.one(DATA), dice.one([undefined, "utf8", "hex", { flag: flag(dice) }, { mode: 0o600 }, { encoding: "latin1" }])];
    return ["writeFile", (at) => [at(p), dice.chance(3) ? Buffer.from(data) : data, options]];
  },
  appendFile(dice) {
    const [p, data] = [path(dice, { climb: true }), dice.one(DATA)];
    return ["appendFile", (at) => [at(p), data]];
  },
  readFile(dice) {
    const [p, encoding] = [path(dice, { climb: true }), dice.one(ENCODINGS)];
    const options = encoding === "buffer" ? undefined : dice.chance(2) ? { encoding } : encoding;
    return ["readFile", (at) => [at(p), options]];
  },
  mkdir(dice) {
    const options = dice.one([undefined, { recursive: true }, { recursive: true }, { recursive: true }, 0o700, { mode: 0o700 }]);
    // A disk keeps the directories made before one that cannot be made; here a failed call changes nothing. Only the
    // synchronous call of Node's tells of links that lead nowhere as the system does.
    const p = path(dice, { long: options?.recursive !== true });
    return ["mkdir", (at) => [at(p), options], options?.recursive ? { style: "sync" } : {}];
  },
  rmdir: (dice) => { const p = path(dice); return ["rmdir", (at) => [at(p)]]; },
  unlink: (dice) => { const p = path(dice); return ["unlink", (at) => [at(p)]]; },
  rm(dice) {
    const [p, options] = [path(dice), dice.one([undefined, { recursive: true }, { force: true }, { recursive: true, force: true }])];
    return ["rm", (at) => [at(p), options], { codeOnly: true }];
  },
  rename(dice) {
    const [from, to] = [path(dice), path(dice, { long: false })];
    return ["rename", (at) => [at(from), at(to)]];
  },
  copyFile(dice) {
    const [from, to, mode] = [path(dice), path(dice), dice.one([undefined, 0, 1])];
    // Told to copy a directory, Node removes the file that it was to replace; here a failed call changes nothing.
    return ["copyFile", (at) => [at(from), at(to), mode], { unlessDirectory: from }];
  },
  symlink(dice) {
    const [target, p] = [dice.one(["a", "b", "..", "../a", ".", "l", "a/b", "none", "ABS/a", "ABS"]), path(dice)];
    return ["symlink", (at) => [target.startsWith("ABS") ? at(target.slice(3)) : target, dice.chance(2) ? at("/l") : at(p)]];
  },
  readlink: (dice) => { const [p, o] = [path(dice), dice.one([undefined, "utf8", "buffer", { encoding: "utf8" }])]; return ["readlink", (at) => [at(p), o]]; },
  realpath: (dice) => { const p = path(dice, { climb: true }).slice(0, 600); return ["realpath", (at) => [at(p)]]; },
  stat: (dice) => { const [p, o] = [path(dice, { climb: true }), dice.one([undefined, undefined, { bigint: true }, { throwIfNoEntry: false }])]; return ["stat", (at) => [at(p), o], o?.throwIfNoEntry === false ? { style: "sync" } : {}]; },
  lstat: (dice) => { const [p, o] = [path(dice), dice.one([undefined, { bigint: true }, { throwIfNoEntry: false }])]; return ["lstat", (at) => [at(p), o], o?.throwIfNoEntry === false ? { style: "sync" } : {}]; },
  access: (dice) => { const [p, m] = [path(dice, { climb: true }), dice.one([undefined, 0, 4, 2, 1, 5])]; return ["access", (at) => [at(p), m]]; },
  exists: (dice) => { const p = path(dice, { climb: true }); return ["existsSync", (at) => [at(p)], { style: "sync" }]; },
  readdir(dice) {
    // Node's own recursion goes by the text of the path where that climbs.
    const [p, options] = [path(dice), dice.one([undefined, { withFileTypes: true }, { recursive: true }, { recursive: true, withFileTypes: true }, "utf8", "buffer", { encoding: "hex" }])];
    return ["readdir", (at) => [at(p), options]];
  },
  chmod: (dice) => { const [p, m] = [path(dice), dice.one([0o644, 0o600, 0o755, "700", 0o4755])]; return ["chmod", (at) => [at(p), m]]; },
  utimes: (dice) => { const [p, t] = [path(dice), dice.one([1, 1_500_000_000, "1400000000", 1_234.5, new Date(7_000)])]; return ["utimes", (at) => [at(p), 1, t], { times: [p] }]; },
  lutimes: (dice) => { const [p, t] = [path(dice), dice.one([1, 1_500_000_000])]; return ["lutimes", (at) => [at(p), 1, t], { times: [p] }]; },
  truncate: (dice) => { const [p, n] = [path(dice), dice.one([undefined, 0, 3, 500])]; return ["truncate", (at) => [at(p), n]]; },
  cp(dice) {
    const [from, to, options] = [path(dice), path(dice), dice.one([undefined, { recursive: true }, { recursive: true }, { recursive: true, force: false }, { recursive: true, force: false, errorOnExist: true }])];
    return ["cp", (at) => [String(at(from)), String(at(to)), options], { codeOnly: true, style: "sync", plain: true }];
  },
  opendir(dice) {
    const p = path(dice);
    // Some versions of Node leave the path out of the error.
    return ["opendirSync", (at) => [at(p)], { codeOnly: true, style: "sync", then: (dir) => { const names = []; for (let e; (e = dir.readSync()) !== null;) names.push(e.name); dir.closeSync(); return names.sort(); } }];
  },
  bad(dice) {
    const [name, args] = dice.one([
      ["readFile", () => [5.5]], ["readFile", () => [undefined]], ["readFile", (at) => [`${at("/a")}\0`]], ["stat", () => [{}]], ["mkdir", () => [null]], ["rename", (at) => [at("/a"), 7]],
      ["writeFile", (at) => [at("/a"), {}]], ["writeFile", (at) => [at("/a"), 5]], ["chmod", (at) => [at("/a"), "9x"]], ["readdir", () => [Symbol.iterator]], ["symlink", (at) => [{}, at("/a")]],
      ["stat", () => [""]], ["readFile", () => [""]], ["mkdir", () => [""]], ["rename", (at) => ["", at("/a")]], ["unlink", () => [""]], ["rmdir", () => [""]], ["symlink", (at) => ["", at("/zz")]], ["utimes", (at) => [at("/a"), 1, "x"]],
    ]);
    return [name, args];
  },
};

/** What stands for a value in a comparison: without the folder's name, sizes of directories and what differs by nature. */
function shown(value, root) {
  if (typeof value === "string") return value.replaceAll(root, "").replaceAll(root.slice(0, -BASE.length) + BASE.slice(0, 4), BASE.slice(0, 4));
  if (typeof value === "bigint" || value === undefined || value === null) return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1").replaceAll(Buffer.from(root).toString("latin1"), "");
  if (Array.isArray(value)) return value.map((item) => (typeof item?.isFile === "function" ? JSON.stringify([shown(item.parentPath, root), item.name, item.isFile(), item.isDirectory(), item.isSymbolicLink()]) : shown(item, root))).sort();
  if (typeof value.isFile === "function") {
    const isDirectory = value.isDirectory();
    // The size of a link to an absolute path tells of the folder.
    return [value.isFile(), isDirectory, value.isSymbolicLink(), isDirectory || value.isSymbolicLink() ? 0 : value.size, value.mode, typeof value.mtimeMs, typeof value.ino, value.mtime instanceof Date];
  }
  return value;
}

function failure(error, root, codeOnly) {
  if (codeOnly) return { code: error.code };
  const message = shown(String(error.message), root);
  // Node shows what it was given in its own inspector's words.
  if (String(error.code).startsWith("ERR_INVALID_ARG")) return { code: error.code, name: error.constructor.name, message: message.replace(/ Received .*/s, "") };
  return { code: error.code, errno: error.errno, syscall: error.syscall, path: shown(error.path, root), dest: shown(error.dest, root), message, name: error.name };
}

async function perform(fs, root, [name, args, { codeOnly = false, then = (value) => value } = {}], style) {
  const at = style.url ? (path) => pathToFileURL(root + path) : style.buffer ? (path) => Buffer.from(root + path) : (path) => root + path;
  const given = args(at);
  try {
    const value = style.kind === "promise" ? await fs.promises[name](...given)
      : style.kind === "callback" ? await new Promise((resolve, reject) => fs[name](...given, (error, value) => (error ? reject(error) : resolve(value))))
      : fs[name.endsWith("Sync") ? name : `${name}Sync`](...given);
    return { value: shown(then(value), root) };
  } catch (error) {
    return failure(error, root, codeOnly);
  }
}

function tree(fs, root) {
  const out = {};
  const visit = (dir) => {
    for (const name of fs.readdirSync(dir).sort()) {
      const path = `${dir}/${name}`, stat = fs.lstatSync(path);
      const body = stat.isDirectory() ? "dir" : stat.isSymbolicLink() ? `-> ${shown(fs.readlinkSync(path), root)}` : fs.readFileSync(path, "latin1");
      out[path.slice(root.length)] = [stat.mode, body];
      if (stat.isDirectory()) visit(path);
    }
  };
  visit(root);
  return out;
}

function isDirectory(fs, path) {
  try {
    return fs.statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Open files: what Node and the files answer to the same descriptors' calls. */
function handleStep(dice, fds) {
  const roll = dice.below(8);
  if (fds.length === 0 || roll === 0) {
    const [p, f] = [path(dice), flag(dice)];
    return ["openSync", (at) => [at(p), f], { open: true }];
  }
  const index = dice.below(fds.length);
  const [n, position, data] = [dice.below(9), dice.one([null, null, 0, 2, 400]), dice.one(DATA)];
  const buffered = (fs, fd, work) => { const buffer = Buffer.alloc(n); return [work(fs, fd, buffer), buffer.toString("latin1")]; };
  return [
    null,
    [
      (fs, fd) => buffered(fs, fd, (fs, fd, buffer) => fs.readSync(fd, buffer, 0, n, position)),
      (fs, fd) => fs.writeSync(fd, data, position),
      (fs, fd) => fs.writeSync(fd, Buffer.from("0123456789"), 2, n, position),
      (fs, fd) => shown(fs.fstatSync(fd), "\0"),
      (fs, fd) => fs.ftruncateSync(fd, n * 10),
      (fs, fd) => fs.readFileSync(fd, "latin1"),
      (fs, fd) => fs.appendFileSync(fd, data),
      (fs, fd) => buffered(fs, fd, (fs, fd, buffer) => fs.readvSync(fd, [buffer, Buffer.alloc(3)], position)),
      (fs, fd) => fs.writevSync(fd, [Buffer.from("ab"), Buffer.from("cde")], position),
      (fs, fd) => fs.closeSync(fd),
    ][dice.below(10)],
    { index },
  ];
}

async function sequence(seed) {
  const dice = new Dice(seed);
  const own = (await VirtualFs.open()).node;
  const roots = { ours: BASE, theirs: `${top}/${seed}${BASE}` };
  own.mkdirSync(roots.ours, { recursive: true });
  nodeFs.mkdirSync(roots.theirs, { recursive: true });
  const fds = [], trace = [];
  try {
    for (let step = 0; step < 40; step++) {
      if (dice.chance(5)) {
        const [name, work, { open = false, index = 0 }] = handleStep(dice, fds);
        const answers = ["ours", "theirs"].map((who) => {
          const fs = who === "ours" ? own : nodeFs;
          try {
            return { value: open ? fs[name](...work((path) => roots[who] + path)) : work(fs, fds[index][who]) };
          } catch (error) {
            return { error: failure(error, roots[who], false) };
          }
        });
        trace.push(open ? `${name} ${JSON.stringify(work((path) => path))}` : `fd ${index}: ${work}`);
        if (name === null && String(work).includes("closeSync") && answers[1].error === undefined) fds.splice(index, 1);
        if (open && answers.every((answer) => answer.value !== undefined)) fds.push({ ours: answers[0].value, theirs: answers[1].value });
        else assert.deepEqual(answers[0], answers[1]);
        continue;
      }
      const seedOfArgs = dice.next();
      const operation = dice.one(Object.keys(OPERATIONS));
      const drawn = () => OPERATIONS[operation](new Dice(seedOfArgs));
      const kind = dice.one(["sync", "sync", "promise", "callback"]);
      const style = { kind: drawn()[2]?.style ?? kind, url: dice.chance(12), buffer: dice.chance(12) };
      if (drawn()[2]?.plain) style.url = style.buffer = false;
      trace.push(`${drawn()[0]} ${JSON.stringify(drawn()[1]((p) => p), (_, v) => (typeof v === "symbol" ? "symbol" : v)).slice(0, 300)} ${JSON.stringify(style)}`);
      const { unlessDirectory } = drawn()[2] ?? {};
      if (unlessDirectory !== undefined && isDirectory(nodeFs, roots.theirs + unlessDirectory)) continue;
      const ours = await perform(own, roots.ours, drawn(), style);
      const theirs = await perform(nodeFs, roots.theirs, drawn(), style);
      assert.deepEqual(ours, theirs);
      for (const p of drawn()[2]?.times ?? []) {
        const time = (fs, root) => { try { return fs.lstatSync(root + p).mtimeMs; } catch { return null; } };
        if (theirs.code === undefined && !p.endsWith("/") && time(nodeFs, roots.theirs) < 1e12) assert.equal(time(own, roots.ours), time(nodeFs, roots.theirs));
      }
    }
    assert.deepEqual(tree(own, roots.ours), tree(nodeFs, roots.theirs));
  } catch (error) {
    error.message = `seed ${seed}:\n  ${trace.join("\n  ")}\n${error.message}`;
    throw error;
  } finally {
    for (const { theirs } of fds) {
      try { nodeFs.closeSync(theirs); } catch { /* closed in the sequence */ }
    }
    nodeFs.rmSync(`${top}/${seed}`, { recursive: true, force: true });
  }
}

test("random calls answer as Node's on a disk do", async () => {
  const number = (name) => (process.env[name] === undefined ? undefined : Number(process.env[name]));
  const seed = number("SEED");
  if (seed !== undefined) return sequence(seed);
  for (let at = number("FROM") ?? 0; at < (number("SEQUENCES") ?? 400); at++) await sequence(at);
});
