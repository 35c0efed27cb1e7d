// Carries out the undo vectors (shared/vectors/undo/README.md) against `VirtualFs`, on any backend.
// Free of Node, so that it runs in pages too.
/** A backend in memory that keeps every batch since the last mark apart, so that any number of the last ones can be lost. */
export class CutBackend {
  name = "cut";
  constructor(limits = {}) {
    Object.assign(this, limits);
    this.map = new Map();
    this.issued = [];
    this.base = new Map();
  }
  get(key) { return Promise.resolve(this.map.get(key)?.slice() ?? null); }
  list(start, end) {
    const rows = [...this.map].filter(([key]) => key >= start && key < end).sort(([a], [b]) => (a < b ? -1 : 1));
    return Promise.resolve(rows.map(([key, value]) => [key, value.slice()]));
  }
  async transact(batch) {
    for (const { key, equals } of batch.checks ?? []) {
      const there = this.map.get(key) ?? null;
      const same = there === null ? equals === null : equals !== null && there.length === equals.length && there.every((byte, i) => byte === equals[i]);
      if (!same) throw Object.assign(new Error(`conflict at ${key}`), { code: "conflict" });
    }
    this.issued.push(batch);
    this.apply(batch);
  }
  apply(batch) {
    for (const key of batch.deletes ?? []) this.map.delete(key);
    for (const [key, value] of batch.puts ?? []) this.map.set(key, value.slice());
  }
  mark() {
    this.base = new Map(this.map);
    this.issued = [];
  }
  /** Keeps the first `count` of the batches since the mark. */
  cut(count) {
    const kept = this.issued.slice(0, count);
    this.map = new Map(this.base);
    for (const batch of kept) this.apply(batch);
    this.mark();
  }
}

function fill(value, i) {
  if (typeof value === "string") {
    return value.replace(/\$\{i(?:([%/])(\d+))?\}/g, (_, op, n) => String(op === "%" ? i % n : op === "/" ? Math.floor(i / n) : i));
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, i));
  if (value !== null && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, i)]));
  return value;
}

const bytesOf = (node) => (node.base64 !== undefined ? Uint8Array.from(atob(node.base64), (c) => c.charCodeAt(0)) : new TextEncoder().encode(node.utf8));
const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
const sorted = (list) => [...list].sort();
const fail = (message) => { throw new Error(message); };

export class Machine {
  constructor(open, storage, survivors = null) {
    Object.assign(this, { open, storage, survivors, runs: new Map(), snaps: new Map(), seen: 0 });
  }

  async play(vector) {
    this.fs = await this.open();
    try {
      for (const [at, op] of vector.ops.entries()) {
        await this.run(op).catch((error) => fail(`op ${at} ${JSON.stringify(op).slice(0, 200)}: ${error.message}`));
      }
    } finally {
      await this.fs.dispose();
    }
    return this.seen;
  }

  face(op) {
    if (op.as === "user" || op.op.startsWith("user_")) return this.fs;
    if (op.as !== undefined) return this.runs.get(op.as);
    return this.runs.size === 1 ? [...this.runs.values()][0] : this.fs;
  }

  change(op) {
    const fs = this.face(op);
    switch (op.op) {
      case "mkdir": return fs.mkdir(op.path, { recursive: op.recursive ?? false });
      case "write": case "user_write": return fs.writeFile(op.path, op.utf8 ?? bytesOf(op), { append: op.append ?? false });
      case "rm": return fs.rm(op.path, { recursive: op.recursive ?? false, force: op.force ?? false });
      case "rename": return fs.rename(op.from, op.to);
      case "chmod": return fs.chmod(op.path, parseInt(op.mode, 8));
      case "utimes": return fs.utimes(op.path, op.mtime);
      case "symlink": return fs.symlink(op.target, op.path);
      default: return fail(`unknown op ${op.op}`);
    }
  }

  snap() {
    const out = new Map();
    for (const { path, type, mode, mtimeMs } of this.fs.walk("/")) {
      const body = type === "file" ? base64(this.fs.readFile(path)) : type === "symlink" ? this.fs.readlink(path) : "";
      out.set(path, { type, mode: type === "symlink" ? 0 : mode, mtimeMs, body });
    }
    return out;
  }

  async reopen() {
    this.runs.clear();
    this.fs = await this.open();
    if (this.quota !== undefined) this.fs.setMaxBytes(this.quota);
    if (this.imageLimit !== undefined) this.fs.setMaxImageBytes(this.imageLimit);
  }

  async run(op) {
    switch (op.op) {
      case "begin_run": return void this.runs.set(op.run, this.fs.beginRun(op.run));
      case "end_run": {
        const id = op.run ?? [...this.runs.keys()][0];
        const run = this.runs.get(id);
        this.runs.delete(id);
        return run.end();
      }
      case "undo": case "redo": return this.back(op);
      case "flush":
        await this.fs.flush();
        return this.storage.mark?.();
      case "reload":
        await this.fs.flush();
        await this.fs.dispose();
        await this.storage.mark?.();
        return this.reopen();
      case "crash": {
        // Everything is issued, then the tail is lost: the process dies before the store has it.
        await this.fs.flush();
        this.seen = this.storage.issued.length;
        await this.fs.dispose();
        const count = op.lose === "all" ? 0 : op.lose === "none" ? Infinity : (this.survivors ?? Infinity);
        await this.storage.cut(count);
        return this.reopen();
      }
      case "damage_journal": return this.storage.damage(op.run);
      case "quota":
        this.quota = op.bytes;
        return this.fs.setMaxBytes(op.bytes);
      case "image_limit":
        this.imageLimit = op.bytes;
        return this.fs.setMaxImageBytes(op.bytes);
      case "snap": return void this.snaps.set(op.label, this.snap());
      case "repeat":
        for (let i = 0; i < op.n; i++) for (const inner of op.do) await this.run(fill(inner, i));
        return;
      case "expect": return this.expect(op);
      default: return this.checked(op);
    }
  }

  async checked(op) {
    if (op.fails === undefined) {
      this.change(op);
      // Every operation is a write of its own, so that a crash can fall between any two.
      if (this.storage.each) {
        await this.fs.flush();
        await this.storage.note?.();
      }
      return;
    }
    const before = this.snap();
    try {
      this.change(op);
    } catch (error) {
      const code = error.details?.errno;
      if (![op.fails].flat().includes(code)) fail(`failed with ${code}: ${error.message}`);
      if (!error.message.startsWith(code)) fail(`the message does not begin with ${code}: ${error.message}`);
      const why = differ(this.snap(), before, true);
      if (why) fail(`a failed op changed the tree: ${why}`);
      return;
    }
    fail("did not fail");
  }

  async back(op) {
    // An undo is written before it answers.
    const report = await this.goBack(op);
    await this.storage.note?.();
    return report;
  }

  async goBack(op) {
    const options = { force: op.force ?? false, skip: op.skip ?? false };
    const before = this.snap();
    const report = await (op.op === "undo" ? this.fs.undo(op.run === undefined ? options : { ...options, run: op.run }) : this.fs.redo(options));
    if (!report.ok) {
      const why = differ(this.snap(), before, true);
      if (why) fail(`a refused ${op.op} changed the tree: ${why}`);
    }
    for (const [key, want] of Object.entries(op.report ?? {})) {
      const have = report[key];
      const fits = typeof want === "number" ? have.length === want
        : key === "conflicts" ? String(sorted(have.map((c) => c.path))) === String(sorted(want))
        : key === "errors" ? have.length === want.length && want.every((e, i) => e.code === have[i].code && (e.path === undefined || e.path === have[i].path))
        : Array.isArray(want) ? String(sorted(have)) === String(sorted(want))
        : have === want;
      if (!fits) fail(`${key} is ${JSON.stringify(have)}, expected ${JSON.stringify(want)}`);
    }
  }

  expect(op) {
    const snap = this.snap();
    if (op.tree !== undefined) {
      const [have, want] = [sorted(snap.keys()), sorted(Object.keys(op.tree))];
      if (String(have) !== String(want)) fail(`paths ${JSON.stringify(have)}, expected ${JSON.stringify(want)}`);
    }
    for (const [path, want] of [...Object.entries(op.tree ?? {}), ...Object.entries(op.has ?? {})]) this.node(path, snap.get(path), want);
    for (const path of op.missing ?? []) if (snap.has(path) || this.fs.exists(path)) fail(`${path} exists`);
    const files = [...snap.values()].filter(({ type }) => type !== "directory").length;
    if (op.count !== undefined && files !== op.count) fail(`${files} files, expected ${op.count}`);
    if (op.same_as !== undefined) {
      const why = differ(snap, this.snaps.get(op.same_as), op.mtimes);
      if (why) fail(`not the same as ${op.same_as}: ${why}`);
    }
    if (op.one_of !== undefined && op.one_of.every((label) => differ(snap, this.snaps.get(label), op.mtimes))) fail(`none of ${op.one_of}`);
    for (const [run, want] of Object.entries(op.barriers ?? {})) {
      const have = this.fs.journal(run)?.barriers;
      if (String(have) !== String(want)) fail(`barriers of ${run} are ${have}, expected ${want}`);
    }
    for (const key of ["undoable", "redoable"]) {
      if (op[key] !== undefined && String(this.fs[key]) !== String(op[key])) fail(`${key} is ${this.fs[key]}, expected ${op[key]}`);
    }
  }

  node(path, have, want) {
    if (have === undefined) fail(`${path} is missing`);
    const type = want.dir ? "directory" : want.link !== undefined ? "symlink" : "file";
    if (have.type !== type) fail(`${path} is a ${have.type}`);
    const body = type === "file" ? base64(bytesOf(want)) : (want.link ?? "");
    if (have.body !== body) fail(`${path} holds ${have.body}`);
    if (want.mode !== undefined && have.mode !== parseInt(want.mode, 8)) fail(`${path} has mode ${have.mode.toString(8)}`);
    if (want.mtime !== undefined && have.mtimeMs !== want.mtime) fail(`${path} has time ${have.mtimeMs}`);
  }
}

function differ(have, want, mtimes) {
  for (const path of new Set([...have.keys(), ...want.keys()])) {
    const [a, b] = [have.get(path), want.get(path)];
    if (!a || !b) return `${path} is ${a ? "new" : "missing"}`;
    if (a.type !== b.type || a.mode !== b.mode || a.body !== b.body) return `${path} differs`;
    if (mtimes && a.type === "file" && a.mtimeMs !== b.mtimeMs) return `the time of ${path} differs`;
  }
  return null;
}
