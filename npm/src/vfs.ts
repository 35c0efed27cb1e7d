// Files for an agent: synchronous calls on a tree in the module, journaled per run, written behind to a backend.
import type { KeyValueBackend, NodeFs, RunFs as RunFsContract, Stat, StorageSpec, UndoReport } from "../types/index.js";
import type { RawFiles } from "./glue.js";
import { checkOf } from "./arguments.js";
import { openBackend } from "./backends.js";
import { steady } from "./clock.js";
import { SessionLogError, toError } from "./errors.js";
import { EILSEQ, fileError } from "./files-error.js";
import { FilesWriter } from "./files-writer.js";
import { openFormat } from "./format.js";
import { UndoJournal } from "./journal.js";
import { makeNodeFs } from "./node-fs.js";
import { call } from "./runtime.js";

// Captured when the module is loaded: scripts in a sandbox run with many globals taken away.
const systemNow = Date.now;
const encoder = new TextEncoder();
const parse = JSON.parse;

/** The number of no run: its calls answer EBADF. */
const NO_RUN = 0xffff_ffff;

const TYPES = ["file", "file", "directory", "symlink"] as const;

/** Texts up to this length go over as text; longer ones are encoded by the engine first, which is faster. */
const SHORT_TEXT = 512;

export const APPEND = 1, EXCLUSIVE = 2, MUST_EXIST = 4;
export const RECURSIVE = 1, FORCE = 2, LEAF_ONLY = 4, DIR_ONLY = 8;

export interface FilesOptions { storage?: StorageSpec; root?: string; maxBytes?: number; maxImageBytes?: number; clock?: () => number }

const checkOpening = checkOf("storage object?, clock function?");

/** Larger files are barriers: a run may change them, and undo says that it cannot take that back. */
const MAX_IMAGE_BYTES = 64 * 1024 * 1024;
interface UndoOptions { force?: boolean; skip?: boolean }

function modeOf(options: UndoOptions | undefined): number {
  return options?.force === true ? 2 : options?.skip === true ? 1 : 0;
}

function isWellFormed(text: string): boolean {
  const own = (text as { isWellFormed?: () => boolean }).isWellFormed;
  return own === undefined ? !/\p{Surrogate}/u.test(text) : own.call(text);
}

/** What the faces of one tree share. */
export class FilesCore {
  raw: RawFiles | null;
  readonly writer: FilesWriter | null;
  readonly clock: () => number;
  /** Faces of the runs that are open, and of their calls. */
  readonly open = new Set<RunFs>();
  /** Paths that were changed since the store was last seen to be up to date. */
  readonly unsaved = new Set<string>();
  /** Names of directories as they were last read; any change empties it. */
  readonly names = new Map<string, string[]>();
  readonly watchers = new Set<(kind: "rename" | "change", path: string) => void>();
  constructor(raw: RawFiles, writer: FilesWriter | null, clock: () => number) {
    this.raw = raw;
    this.writer = writer;
    this.clock = clock;
  }

  live(): RawFiles {
    if (this.raw === null) throw new SessionLogError("disposed", "the files were disposed of");
    return this.raw;
  }

  /** A path as the module takes it: text, and every character whole. */
  path(path: string, syscall: string): string {
    if (typeof path !== "string") throw new SessionLogError("invalid_argument", `a path is a string, not ${typeof path}`, { syscall });
    if (!isWellFormed(path)) throw fileError(EILSEQ, syscall, path);
    return path;
  }

  changed(kind: "rename" | "change", path: string): void {
    if (this.names.size > 0) this.names.clear();
    if (this.writer !== null) {
      this.unsaved.add(path);
      this.writer.changed();
    }
    if (this.watchers.size > 0) for (const watcher of [...this.watchers]) watcher(kind, path);
  }

  /** Notes what going back has changed. */
  changedBack({ ok, restored, deleted }: UndoReport): void {
    if (!ok) return;
    for (const path of restored) this.changed("rename", path);
    for (const path of deleted) this.changed("rename", path);
    // Directories and times stand in no list.
    if (restored.length + deleted.length === 0) this.changed("rename", "/");
  }

  /** Undoes or redoes and stores that; `revert` takes it back when the store refuses. */
  async back(work: (raw: RawFiles) => string, takeBack: (raw: RawFiles, now: number) => void): Promise<UndoReport> {
    this.live();
    let report: UndoReport | undefined;
    const change = (): void => {
      call(() => this.live().hold_line());
      report = parse(call(() => work(this.live()))) as UndoReport;
      this.changedBack(report);
    };
    const revert = (): void => {
      if (!report?.ok) return;
      call(() => takeBack(this.live(), this.clock()));
      this.changedBack(report);
    };
    if (this.writer === null) change();
    const refused = this.writer === null ? null : await this.writer.commit(change, revert);
    if (this.raw !== null) call(() => this.live().settle());
    if (refused === null) return report as UndoReport;
    const path = report?.restored[0] ?? report?.deleted[0] ?? "";
    return {
      ok: false, restored: [], deleted: [], conflicts: [],
      errors: [{ path, code: refused.code, message: `the store refused the change: ${refused.message}` }],
    };
  }

  async undo(run: string | undefined, options: UndoOptions | undefined): Promise<UndoReport> {
    let at = 0;
    const work = (raw: RawFiles): string => {
      const order = raw.undoable();
      const place = run === undefined ? 0 : order.indexOf(run);
      at = place < 0 ? 0 : order.length - 1 - place;
      return raw.undo(run, modeOf(options), this.clock());
    };
    return this.back(work, (raw, now) => raw.revert_undo(at, now));
  }

  async rewind(run: string, options: UndoOptions | undefined): Promise<UndoReport> {
    let count = 0;
    const work = (raw: RawFiles): string => {
      count = raw.undoable().indexOf(run) + 1;
      return raw.rewind(run, modeOf(options), this.clock());
    };
    return this.back(work, (raw, now) => raw.revert_rewind(count, now));
  }

  /** Puts another tree in place of this one; runs that were open here are over. */
  replace(raw: RawFiles): void {
    const old = this.live();
    for (const run of this.open) run.cutOff();
    this.open.clear();
    this.names.clear();
    this.unsaved.clear();
    this.raw = raw;
    call(() => old.free());
    for (const watcher of [...this.watchers]) watcher("rename", "/");
  }
}

/** The calls that the user's face and a run's face have in common. */
export class FilesFace {
  /** @internal */ readonly core: FilesCore;
  /** @internal */ run: number;
  /** @internal */ readonly callNumber: number;
  #node: NodeFs | null = null;

  /** @internal */
  constructor(core: FilesCore, run: number, callNumber: number) {
    this.core = core;
    this.run = run;
    this.callNumber = callNumber;
  }

  /** Ends a call of the module that answers an error number. @internal */
  done(errno: number, kind: "rename" | "change", syscall: string, path: string, dest?: string): void {
    if (errno !== 0) throw fileError(errno, syscall, path, dest);
    this.core.changed(kind, dest ?? path);
  }

  /** Ends a call of the module that answers nothing when it failed. @internal */
  got<T>(value: T | undefined, syscall: string, path: string): T {
    if (value !== undefined) return value;
    throw fileError(call(() => this.core.live().errno()), syscall, path);
  }

  readFile(path: string): Uint8Array {
    const raw = this.core.live(), p = this.core.path(path, "open");
    return this.got(call(() => raw.read(p)), "open", path);
  }

  readText(path: string): string {
    const raw = this.core.live(), p = this.core.path(path, "open");
    return this.got(call(() => raw.read_text(p)) as unknown as string | undefined, "open", path);
  }

  writeFile(path: string, content: string | Uint8Array, options?: { append?: boolean; mode?: number }): void {
    const flags = options?.append === true ? APPEND : 0;
    this.put(path, content, flags, options?.mode ?? 0o644);
  }

  /** @internal */
  put(path: string, content: string | Uint8Array, flags: number, mode: number): void {
    const raw = this.core.live(), p = this.core.path(path, "open"), now = this.core.clock();
    if (typeof content === "string" && content.length <= SHORT_TEXT) {
      const errno = call(() => raw.write_text(this.run, this.callNumber, p, content, flags, mode, now));
      return this.done(errno, "change", "open", path);
    }
    const bytes = typeof content === "string" ? encoder.encode(content) : content;
    if (!(bytes instanceof Uint8Array)) throw new SessionLogError("invalid_argument", "content is a string or a Uint8Array");
    this.done(call(() => raw.write(this.run, this.callNumber, p, bytes, flags, mode, now)), "change", "open", path);
  }

  mkdir(path: string, options?: { recursive?: boolean; mode?: number }): void {
    this.makeDir(path, options?.recursive === true, options?.mode ?? 0o755);
  }

  /** @internal */
  makeDir(path: string, recursive: boolean, mode: number): string | undefined {
    const raw = this.core.live(), p = this.core.path(path, "mkdir"), now = this.core.clock();
    if (!recursive) {
      this.done(call(() => raw.mkdir(this.run, this.callNumber, p, mode, now)), "rename", "mkdir", path);
      return path;
    }
    const first = call(() => raw.mkdir_all(this.run, this.callNumber, p, mode, now));
    const errno = first === undefined ? call(() => raw.errno()) : 0;
    if (errno !== 0) throw fileError(errno, "mkdir", path);
    if (first !== undefined) this.core.changed("rename", path);
    return first;
  }

  readdir(path: string): string[] {
    const raw = this.core.live(), p = this.core.path(path, "scandir");
    const known = this.core.names.get(p);
    if (known !== undefined) return known.slice();
    const names = this.got(call(() => raw.readdir(p)), "scandir", path).split("/");
    names.pop();
    if (this.core.names.size >= 256) this.core.names.clear();
    this.core.names.set(p, names);
    return names.slice();
  }

  stat(path: string): Stat {
    return statOf(this.numbers(path, true, "stat"));
  }

  lstat(path: string): Stat {
    return statOf(this.numbers(path, false, "lstat"));
  }

  /** Type, size, mode, mtime, ctime, inode number. @internal */
  numbers(path: string, follow: boolean, syscall: string): Float64Array {
    const raw = this.core.live(), p = this.core.path(path, syscall);
    return this.got(call(() => raw.stat(p, follow)), syscall, path);
  }

  exists(path: string): boolean {
    const raw = this.core.live();
    return typeof path === "string" && isWellFormed(path) && call(() => raw.exists(path));
  }

  rename(from: string, to: string): void {
    const raw = this.core.live(), a = this.core.path(from, "rename"), b = this.core.path(to, "rename"), now = this.core.clock();
    this.done(call(() => raw.rename(this.run, this.callNumber, a, b, now)), "rename", "rename", from, to);
    if (this.core.writer !== null) this.core.unsaved.add(from);
  }

  copy(from: string, to: string, options?: { recursive?: boolean }): void {
    const raw = this.core.live(), a = this.core.path(from, "copyfile"), b = this.core.path(to, "copyfile"), now = this.core.clock();
    const errno = call(() => raw.copy(this.run, this.callNumber, a, b, options?.recursive === true, now));
    this.done(errno, "rename", "copyfile", from, to);
  }

  rm(path: string, options?: { recursive?: boolean; force?: boolean }): void {
    this.remove(path, (options?.recursive === true ? RECURSIVE : 0) | (options?.force === true ? FORCE : 0), "rm");
  }

  /** @internal */
  remove(path: string, flags: number, syscall: string): void {
    const raw = this.core.live(), p = this.core.path(path, syscall), now = this.core.clock();
    this.done(call(() => raw.remove(this.run, this.callNumber, p, flags, now)), "rename", syscall, path);
  }

  symlink(target: string, path: string): void {
    const raw = this.core.live(), t = this.core.path(target, "symlink"), p = this.core.path(path, "symlink"), now = this.core.clock();
    this.done(call(() => raw.symlink(this.run, this.callNumber, t, p, now)), "rename", "symlink", target, path);
  }

  readlink(path: string): string {
    const raw = this.core.live(), p = this.core.path(path, "readlink");
    return this.got(call(() => raw.readlink(p)), "readlink", path);
  }

  /** The path without links that `path` leads to. */
  realpath(path: string): string {
    const raw = this.core.live(), p = this.core.path(path, "realpath");
    return this.got(call(() => raw.realpath(p)), "realpath", path);
  }

  chmod(path: string, mode: number): void {
    const raw = this.core.live(), p = this.core.path(path, "chmod"), now = this.core.clock();
    this.done(call(() => raw.chmod(this.run, this.callNumber, p, whole(mode, "mode"), now)), "change", "chmod", path);
  }

  utimes(path: string, mtimeMs: number): void {
    this.setTime(path, mtimeMs, true, "utime");
  }

  /** @internal */
  setTime(path: string, mtimeMs: number, follow: boolean, syscall: string): void {
    const raw = this.core.live(), p = this.core.path(path, syscall), now = this.core.clock();
    if (!Number.isFinite(mtimeMs)) throw new SessionLogError("invalid_argument", "a time is a finite number of milliseconds");
    const errno = call(() => raw.utimes(this.run, this.callNumber, p, Math.round(mtimeMs), follow, now));
    this.done(errno, "change", syscall, path);
  }

  walk(path = "/"): Array<{ path: string } & Stat> {
    const raw = this.core.live(), p = this.core.path(path, "scandir");
    const rows = parse(this.got(call(() => raw.walk(p)), "scandir", path)) as Array<[string, number, number, number, number]>;
    return rows.map(([where, type, size, mode, mtimeMs]) => ({ path: where, type: TYPES[type] ?? "file", size, mode, mtimeMs }));
  }

  async undo(options?: UndoOptions & { run?: string }): Promise<UndoReport> {
    return this.core.undo(options?.run, options);
  }

  async redo(options?: UndoOptions): Promise<UndoReport> {
    return this.core.back((raw) => raw.redo(modeOf(options), this.core.clock()), (raw, now) => raw.revert_redo(now));
  }

  get undoable(): string[] {
    return call(() => this.core.live().undoable());
  }

  get redoable(): string[] {
    return call(() => this.core.live().redoable());
  }

  async flush(): Promise<void> {
    this.core.live();
    const { writer, unsaved } = this.core;
    if (writer === null) return;
    try {
      await writer.flush();
    } catch (thrown) {
      throw toError(thrown).code === "conflict" ? stale(unsaved) : thrown;
    }
  }

  /** The bytes of all files together. */
  get bytes(): number {
    return call(() => this.core.live().bytes());
  }

  get node(): NodeFs {
    return (this.#node ??= makeNodeFs(this));
  }
}

function statOf(numbers: Float64Array): Stat {
  const [type = 1, size = 0, mode = 0, mtimeMs = 0] = numbers;
  return { type: TYPES[type] ?? "file", size, mode, mtimeMs };
}

/** What a writer gets that was overtaken; the paths are those whose changes the store does not have. */
function stale(unsaved: Set<string>): SessionLogError {
  const paths = [...unsaved].sort();
  return new SessionLogError("conflict", "another writer has changed these files: reload() reads them anew", { unsaved: paths.slice(0, 100), count: paths.length });
}

function whole(n: number, what: string): number {
  if (!Number.isInteger(n) || n < 0) throw new SessionLogError("invalid_argument", `${what} is a whole number`);
  return n & 0o7777;
}

/** The user's face of one tree: what it changes is never journaled. */
export class VirtualFs extends FilesFace {
  readonly #opened: Opened;
  #disposed: Promise<void> | null = null;
  #limits: Limits;

  /** @internal */
  constructor(opened: Opened, limits: Limits) {
    super(opened.core, 0, 0);
    this.#opened = opened;
    this.#limits = limits;
    this.#limit(opened.core.live());
  }

  #limit(raw: RawFiles): void {
    const { bytes, image } = this.#limits;
    call(() => raw.set_max_bytes(bytes));
    call(() => raw.set_image_limit(image));
  }

  static async open(options: FilesOptions = {}): Promise<VirtualFs> {
    checkOpening(options);
    const { root = "default", maxBytes = Infinity, maxImageBytes = MAX_IMAGE_BYTES } = options;
    const storage = options.storage ?? undefined;
    const clock = (options.clock ?? undefined) === undefined ? systemNow : steady(options.clock as () => number);
    if (typeof root !== "string") throw new SessionLogError("invalid_argument", "root is a string");
    const limits = { bytes: limitOf(maxBytes, "maxBytes"), image: limitOf(maxImageBytes, "maxImageBytes") };
    return new VirtualFs(await openTree(storage, root, clock), limits);
  }

  /** Changes the limit of the bytes of all files together; null is none. */
  setMaxBytes(limit: number | null): void {
    this.#limits.bytes = limitOf(limit ?? Infinity, "limit");
    this.#limit(this.core.live());
  }

  /** Changes the limit of the bytes of one file that journals keep; null is none. */
  setMaxImageBytes(limit: number | null): void {
    this.#limits.image = limitOf(limit ?? Infinity, "limit");
    this.#limit(this.core.live());
  }

  /**
   * Reads the files anew from the store, after a `conflict`: another writer has changed them. What was changed here and is
   * not stored is gone, save with `keep`: then the changed paths are put over what the other writer left. Runs that were
   * open here are over; what the store has of them can be undone.
   */
  async reload(options?: { keep?: boolean }): Promise<void> {
    const { core } = this;
    core.live();
    if (this.#opened.load === null || core.writer === null) return;
    await core.writer.replace(this.#opened.load, (raw) => {
      this.#limit(raw);
      const old = core.live(), kept = options?.keep === true ? [...core.unsaved].filter((path) => path !== "/") : [];
      for (const path of kept) carryOver(old, raw, path, core.clock());
      core.replace(raw);
      for (const path of kept) core.changed("rename", path);
    });
  }

  beginRun(runId: string): RunFs {
    if (typeof runId !== "string") throw new SessionLogError("invalid_argument", "a run id is a string");
    const number = call(() => this.core.live().begin_run(runId));
    return new RunFs(this.core, runId, number, 0);
  }

  /** The journal of a run that ended or was undone, also in an earlier session; null when it is not known. */
  journal(runId: string): UndoJournal | null {
    return call(() => this.core.live().run_state(runId)) === undefined ? null : new UndoJournal(this.core, runId);
  }

  /** What an undo would do. */
  preview(options?: UndoOptions & { run?: string }): UndoReport {
    return parse(call(() => this.core.live().preview(options?.run, modeOf(options)))) as UndoReport;
  }

  /** Undoes all runs from the latest back to `runId`, which is undone too: all of them or none. */
  async rewind(runId: string, options?: UndoOptions & { preview?: boolean }): Promise<UndoReport> {
    const raw = this.core.live();
    if (options?.preview === true) return parse(call(() => raw.preview_rewind(runId, modeOf(options)))) as UndoReport;
    return this.core.rewind(runId, options);
  }

  /** What was found damaged when the files were opened. */
  get damage(): { keys: string[]; paths: string[] } {
    return parse(call(() => this.core.live().damage())) as { keys: string[]; paths: string[] };
  }

  dispose(): Promise<void> {
    return (this.#disposed ??= this.#opened.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

/** The same calls, journaled for one run, or for one tool call of it. */
export class RunFs extends FilesFace implements RunFsContract {
  readonly runId: string;
  readonly journal: UndoJournal;
  readonly #calls = new Map<string, RunFs>();

  /** @internal */
  constructor(core: FilesCore, runId: string, run: number, callNumber: number) {
    super(core, run, callNumber);
    this.runId = runId;
    this.journal = new UndoJournal(core, runId, this);
    core.open.add(this);
  }

  /** The tree that the run was begun on is not there any more. @internal */
  cutOff(): void {
    this.run = NO_RUN;
    this.#calls.clear();
  }

  /** Ends the run; what it did can then be undone. Resolves when that is stored. */
  async end(): Promise<void> {
    call(() => this.core.live().end_run(this.run));
    for (const face of [this, ...this.#calls.values()]) this.core.open.delete(face);
    this.core.writer?.changed();
    await this.flush();
  }

  /** The files for one tool call: what it does is taken back with `rollbackCall`, and stays with `commitCall`. */
  beginCall(callId: string): RunFs {
    if (this.#calls.has(callId)) throw new SessionLogError("already_exists", "the call is pending already", { callId });
    const number = call(() => this.core.live().begin_call(this.run, callId));
    const face = new RunFs(this.core, this.runId, this.run, number);
    this.#calls.set(callId, face);
    return face;
  }

  #take(callId: string): number {
    const face = this.#calls.get(callId);
    if (face === undefined) throw new SessionLogError("not_found", "no such call is pending", { callId });
    this.#calls.delete(callId);
    this.core.open.delete(face);
    return face.callNumber;
  }

  commitCall(callId: string): void {
    const number = this.#take(callId);
    call(() => this.core.live().commit_call(this.run, number));
    this.core.writer?.changed();
  }

  /** Takes back what the call did, save what others changed since; those are the report's conflicts. */
  rollbackCall(callId: string): UndoReport {
    const number = this.#take(callId), now = this.core.clock();
    const report = parse(call(() => this.core.live().rollback_call(this.run, number, now))) as UndoReport;
    this.core.changedBack(report);
    return report;
  }
}

interface Limits { bytes: number; image: number }
/** A tree with the way to read it again; `load` is null where there is nothing to read. */
interface Opened { core: FilesCore; load: (() => Promise<RawFiles>) | null; close: () => Promise<void> }

async function openTree(spec: StorageSpec | undefined, root: string, clock: () => number): Promise<Opened> {
  if (spec === undefined || spec.kind === "memory") {
    const core = new FilesCore(call((m) => m.RawFiles.memory(clock())), null, clock);
    return { core, load: null, close: async () => release(core) };
  }
  // A store of a newer version is read, and refuses what is written.
  const { backend } = await openFormat(await openBackend(spec));
  const reading = (): Promise<RawFiles> => load(backend, root, clock);
  const raw = await reading();
  const writer = new FilesWriter(raw, backend, () => core.unsaved.clear());
  const core = new FilesCore(raw, writer, clock);
  const stopListening = flushWhenHidden(writer);
  const close = async (): Promise<void> => {
    stopListening();
    try {
      if (core.raw !== null) await writer.flush();
    } finally {
      writer.stop();
      release(core);
      // A caller's own backend stays the caller's.
      if (spec.kind !== "custom") await backend.close?.();
    }
  };
  return { core, load: reading, close };
}

async function load(backend: KeyValueBackend, root: string, clock: () => number): Promise<RawFiles> {
  const pairs: Array<[string, Uint8Array]> = [];
  for (const prefix of call((m) => m.raw_files_prefixes(root))) {
    // "0" is the character after "/".
    const listed = await backend.list(prefix, `${prefix.slice(0, -1)}0`);
    for (const pair of listed) pairs.push(pair);
  }
  const [nonce = 0] = crypto.getRandomValues(new Uint32Array(1));
  return call((m) => m.RawFiles.load(root, pairs, nonce, clock()));
}

/** Bytes as the module takes a limit: a negative number is none. */
function limitOf(limit: number, what: string): number {
  if (!(limit >= 0)) throw new SessionLogError("invalid_argument", `${what} is a number of bytes`);
  return limit === Infinity ? -1 : limit;
}

/** Puts what stands at a path, with all below it, over what stands there in another tree; what cannot be put stays. */
function carryOver(from: RawFiles, to: RawFiles, path: string, now: number): void {
  const [type, , mode = 0, mtime = 0] = call(() => from.stat(path, false)) ?? [];
  const there = call(() => to.stat(path, false))?.[0];
  if (there !== undefined && there !== type && path !== "/") call(() => to.remove(0, 0, path, RECURSIVE, now));
  if (type === undefined) return;
  const above = path.slice(0, path.replace(/\/+$/, "").lastIndexOf("/"));
  if (above !== "") call(() => to.mkdir_all(0, 0, above, 0o755, now));
  if (type === 3) {
    if (there === 3) call(() => to.remove(0, 0, path, 0, now));
    call(() => to.symlink(0, 0, from.readlink(path) ?? "", path, now));
  } else if (type === 2) {
    call(() => to.mkdir_all(0, 0, path, mode, now));
    const [ours, theirs] = [from, to].map((raw) => (call(() => raw.readdir(path)) ?? "").split("/").slice(0, -1));
    for (const name of new Set([...(ours ?? []), ...(theirs ?? [])])) carryOver(from, to, path.endsWith("/") ? path + name : `${path}/${name}`, now);
  } else {
    call(() => to.write(0, 0, path, from.read(path) ?? new Uint8Array(), 0, mode, now));
  }
  // The mode of a link is that of what it leads to.
  if (type !== 3) call(() => to.chmod(0, 0, path, mode, now));
  call(() => to.utimes(0, 0, path, mtime, false, now));
}

function release(core: FilesCore): void {
  const raw = core.raw;
  core.raw = null;
  if (raw !== null) call(() => raw.free());
}

/** A page that goes away writes at once what it still has. */
function flushWhenHidden(writer: FilesWriter): () => void {
  if (typeof document === "undefined" || typeof globalThis.addEventListener !== "function") return () => {};
  const flush = (): void => { void writer.flush().catch(() => {}); };
  globalThis.addEventListener("pagehide", flush);
  document.addEventListener("visibilitychange", flush);
  return () => {
    globalThis.removeEventListener("pagehide", flush);
    document.removeEventListener("visibilitychange", flush);
  };
}
