// Files for an agent: synchronous calls on a tree in the module, journaled per run, written behind to a backend.
import type { KeyValueBackend, NodeFs, RunFs as RunFsContract, Stat, StorageSpec, UndoReport } from "../types/index.js";
import type { RawFiles } from "./glue.js";
import { openBackend } from "./backends.js";
import { SessionLogError } from "./errors.js";
import { EILSEQ, fileError } from "./files-error.js";
import { FilesWriter } from "./files-writer.js";
import { UndoJournal } from "./journal.js";
import { makeNodeFs } from "./node-fs.js";
import { call } from "./runtime.js";

// Captured when the module is loaded: scripts in a sandbox run with many globals taken away.
const systemNow = Date.now;
const encoder = new TextEncoder();
const parse = JSON.parse;

const TYPES = ["file", "file", "directory", "symlink"] as const;

/** Texts up to this length go over as text; longer ones are encoded by the engine first, which is faster. */
const SHORT_TEXT = 512;

export const APPEND = 1, EXCLUSIVE = 2, MUST_EXIST = 4;
export const RECURSIVE = 1, FORCE = 2, LEAF_ONLY = 4, DIR_ONLY = 8;

export interface FilesOptions { storage?: StorageSpec; root?: string; maxBytes?: number; clock?: () => number }
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
    this.writer?.changed();
    if (this.watchers.size > 0) for (const watcher of [...this.watchers]) watcher(kind, path);
  }

  async back(at: number | null, work: (raw: RawFiles) => string): Promise<UndoReport> {
    const raw = this.live();
    let report: UndoReport | undefined;
    const change = (): void => {
      report = parse(call(() => work(raw))) as UndoReport;
      if (report.ok) this.changed("rename", "/");
    };
    const revert = (): void => {
      if (!report?.ok) return;
      const now = this.clock();
      call(() => (at === null ? raw.revert_redo(now) : raw.revert_undo(at, now)));
      this.changed("rename", "/");
    };
    if (this.writer === null) change();
    const refused = this.writer === null ? null : await this.writer.commit(change, revert);
    if (refused === null) return report as UndoReport;
    const path = report?.restored[0] ?? report?.deleted[0] ?? "";
    return {
      ok: false, restored: [], deleted: [], conflicts: [],
      errors: [{ path, code: refused.code, message: `the store refused the change: ${refused.message}` }],
    };
  }

  async undo(run: string | undefined, options: UndoOptions | undefined): Promise<UndoReport> {
    const order = call(() => this.live().undoable());
    const place = run === undefined ? 0 : order.indexOf(run);
    const at = place < 0 ? 0 : order.length - 1 - place;
    return this.back(at, (raw) => raw.undo(run, modeOf(options), this.clock()));
  }
}

/** The calls that the user's face and a run's face have in common. */
export class FilesFace {
  /** @internal */ readonly core: FilesCore;
  /** @internal */ readonly run: number;
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
    return this.core.back(null, (raw) => raw.redo(modeOf(options), this.core.clock()));
  }

  get undoable(): string[] {
    return call(() => this.core.live().undoable());
  }

  get redoable(): string[] {
    return call(() => this.core.live().redoable());
  }

  async flush(): Promise<void> {
    this.core.live();
    await this.core.writer?.flush();
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

function whole(n: number, what: string): number {
  if (!Number.isInteger(n) || n < 0) throw new SessionLogError("invalid_argument", `${what} is a whole number`);
  return n & 0o7777;
}

/** The user's face of one tree: what it changes is never journaled. */
export class VirtualFs extends FilesFace {
  readonly #closing: () => Promise<void>;
  #disposed: Promise<void> | null = null;

  /** @internal */
  constructor(core: FilesCore, closing: () => Promise<void>) {
    super(core, 0, 0);
    this.#closing = closing;
  }

  static async open(options: FilesOptions = {}): Promise<VirtualFs> {
    const { storage, root = "default", maxBytes, clock = systemNow } = options;
    if (typeof root !== "string") throw new SessionLogError("invalid_argument", "root is a string");
    if (maxBytes !== undefined && !(maxBytes >= 0)) throw new SessionLogError("invalid_argument", "maxBytes is a number of bytes");
    const opened = await openTree(storage, root, clock);
    if (maxBytes !== undefined) call(() => opened.core.live().set_max_bytes(maxBytes === Infinity ? -1 : maxBytes));
    return new VirtualFs(opened.core, opened.close);
  }

  /** Changes the limit of the bytes of all files together; null is none. */
  setMaxBytes(limit: number | null): void {
    call(() => this.core.live().set_max_bytes(limit ?? -1));
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
    const report = parse(call(() => raw.rewind(runId, modeOf(options), this.core.clock()))) as UndoReport;
    if (report.ok) this.core.changed("rename", "/");
    await this.flush();
    return report;
  }

  /** What was found damaged when the files were opened. */
  get damage(): { keys: string[]; paths: string[] } {
    return parse(call(() => this.core.live().damage())) as { keys: string[]; paths: string[] };
  }

  dispose(): Promise<void> {
    return (this.#disposed ??= this.#closing());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

/** The same calls, journaled for one run, or for one tool call of it. */
export class RunFs extends FilesFace implements RunFsContract {
  readonly runId: string;
  readonly journal: UndoJournal;
  readonly #calls = new Map<string, number>();

  /** @internal */
  constructor(core: FilesCore, runId: string, run: number, callNumber: number) {
    super(core, run, callNumber);
    this.runId = runId;
    this.journal = new UndoJournal(core, runId, this);
  }

  /** Ends the run; what it did can then be undone. Resolves when that is stored. */
  async end(): Promise<void> {
    call(() => this.core.live().end_run(this.run));
    this.core.writer?.changed();
    await this.flush();
  }

  /** The files for one tool call: what it does is taken back with `rollbackCall`, and stays with `commitCall`. */
  beginCall(callId: string): RunFs {
    if (this.#calls.has(callId)) throw new SessionLogError("already_exists", "the call is pending already", { callId });
    const number = call(() => this.core.live().begin_call(this.run, callId));
    this.#calls.set(callId, number);
    return new RunFs(this.core, this.runId, this.run, number);
  }

  #take(callId: string): number {
    const number = this.#calls.get(callId);
    if (number === undefined) throw new SessionLogError("not_found", "no such call is pending", { callId });
    this.#calls.delete(callId);
    return number;
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
    this.core.changed("rename", "/");
    return report;
  }
}

interface Opened { core: FilesCore; close: () => Promise<void> }

async function openTree(spec: StorageSpec | undefined, root: string, clock: () => number): Promise<Opened> {
  if (spec === undefined || spec.kind === "memory") {
    const core = new FilesCore(call((m) => m.RawFiles.memory(clock())), null, clock);
    return { core, close: async () => release(core) };
  }
  const backend = await openBackend(spec);
  const raw = await load(backend, root, clock);
  const writer = new FilesWriter(raw, backend);
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
  return { core, close };
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
