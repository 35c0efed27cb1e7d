// A face like `node:fs`: one table of synchronous calls, from which the callbacks and the promises are made.
import type { NodeFs } from "../types/index.js";
import { SessionLogError } from "./errors.js";
import { type CopyOptions, copyTree } from "./node-cp.js";
import { asBuffer, decode, encode, isEncoding } from "./node-encoding.js";
import { EACCES, EBADF, EEXIST, EISDIR, EPERM, argumentError, nodeError } from "./node-error.js";
import { OpenFile, flagsOf, openBits } from "./node-handle.js";
import { DIRECTORY, Dir, Dirent, Stats, bigStats, constants } from "./node-stats.js";
import { errnoOf, fileError } from "./files-error.js";
import { dirname, join, makeDirs, realpath, resolve } from "./node-paths.js";
import { makeStreams } from "./node-streams.js";
import { watchFiles } from "./node-watch.js";
import { DIR_ONLY, FORCE, LEAF_ONLY, RECURSIVE, type FilesFace } from "./vfs.js";

type PathLike = string | Uint8Array | URL;
type Data = string | Uint8Array | DataView | ArrayBufferView;
interface Options { [name: string]: unknown; encoding?: string | null; flag?: string; mode?: number; recursive?: boolean; force?: boolean }
// The table holds calls of many shapes; Node's own types are for those who want them.
type Call = (...args: never[]) => unknown;

const random = Math.random;

function toPath(path: PathLike, name = "path"): string {
  const text = typeof path === "string" ? path
    : path instanceof Uint8Array ? decode(path, "utf8")
    : path instanceof URL && path.protocol === "file:" ? decodeURIComponent(path.pathname)
    : undefined;
  if (text === undefined) {
    throw argumentError("ERR_INVALID_ARG_TYPE", `The "${name}" argument must be of type string or an instance of Buffer or URL.`);
  }
  if (text.includes("\0")) {
    throw argumentError("ERR_INVALID_ARG_VALUE", `The argument '${name}' must be a string, Uint8Array, or URL without null bytes. Received '${text.replaceAll("\0", "\\x00")}'`);
  }
  return text;
}

function toBytes(data: Data, encoding: string | null | undefined): Uint8Array {
  if (typeof data === "string") return encode(data, encoding ?? "utf8");
  if (data instanceof Uint8Array) return data;
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw argumentError("ERR_INVALID_ARG_TYPE", 'The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView.');
}

function optionsOf(options: Options | string | null | undefined): Options {
  const given = typeof options === "string" ? { encoding: options } : (options ?? {});
  const { encoding } = given;
  if (encoding != null && encoding !== "buffer" && !isEncoding(encoding)) {
    throw argumentError("ERR_INVALID_ARG_VALUE", `The argument 'encoding' is invalid encoding. Received '${String(encoding)}'`);
  }
  return given;
}

function out(bytes: Uint8Array, encoding: string | null | undefined): Uint8Array | string {
  return encoding == null || encoding === "buffer" ? asBuffer(bytes) : decode(bytes, encoding);
}

function named(name: string, encoding: string | null | undefined): string | Uint8Array {
  return encoding === "buffer" ? asBuffer(encode(name, "utf8")) : encoding == null || /^utf-?8$/i.test(encoding) ? name : decode(encode(name, "utf8"), encoding);
}

function timeOf(time: number | string | Date): number {
  const ms = time instanceof Date ? time.getTime() : Number(time) * 1000;
  if (!Number.isFinite(ms)) throw argumentError("ERR_INVALID_ARG_TYPE", 'The "time" argument must be an instance of Date or an Time in seconds.');
  return Math.round(ms);
}

function modeOf(mode: number | string | undefined, fallback: number): number {
  if (mode == null) return fallback;
  if (typeof mode === "string") {
    if (!/^[0-7]+$/.test(mode)) throw argumentError("ERR_INVALID_ARG_VALUE", `The argument 'mode' must be a 32-bit unsigned integer or an octal string. Received '${mode}'`);
    return parseInt(mode, 8);
  }
  if (typeof mode !== "number") throw argumentError("ERR_INVALID_ARG_TYPE", `The "mode" argument must be of type number. Received type ${typeof mode}`);
  return mode;
}

/** A SessionLogError of a file call as Node's error. */
function translate(thrown: unknown): unknown {
  if (!(thrown instanceof SessionLogError)) return thrown;
  const { errno, syscall, path, dest } = thrown.details as { errno?: string; syscall?: string; path?: string; dest?: string };
  if (errno === undefined) return thrown;
  for (let number = 1; number < 100; number++) {
    if (errnoOf(number).name === errno && errnoOf(number).number === number && (errno !== "EIO" || number === 5)) {
      return nodeError(number, syscall ?? "open", path, dest);
    }
  }
  return thrown;
}

function isDescriptor(path: unknown): path is number {
  return Number.isInteger(path);
}

/** The synchronous calls, under their names without `Sync`. */
function makeCalls(face: FilesFace) {
  const open = new Map<number, OpenFile>();
  const handle = (fd: unknown, syscall: string): OpenFile => {
    const file = typeof fd === "number" ? open.get(fd) : undefined;
    if (file === undefined) throw nodeError(EBADF, syscall);
    return file;
  };
  const stats = (path: PathLike, follow: boolean, options: Options | undefined): unknown => {
    const syscall = follow ? "stat" : "lstat";
    try {
      const found = new Stats(face.numbers(toPath(path), follow, syscall));
      return options?.bigint === true ? bigStats(found) : found;
    } catch (thrown) {
      const errno = (thrown as SessionLogError).details?.errno;
      if (options?.throwIfNoEntry === false && errno === "ENOENT") return undefined;
      throw thrown;
    }
  };
  const put = (path: PathLike | number, data: Data, options: Options | string | undefined, flag: string): void => {
    const given = optionsOf(options);
    if (isDescriptor(path)) {
      // Of nothing to write nothing is asked, not even whether it could be written.
      const bytes = toBytes(data, given.encoding);
      return bytes.length === 0 ? undefined : void handle(path, "write").write(bytes, null);
    }
    const flags = flagsOf(given.flag, flag);
    const truncates = (flags & (constants.O_TRUNC | constants.O_APPEND)) !== 0 && (flags & constants.O_CREAT) !== 0;
    const whole = typeof data === "string" && (given.encoding == null || /^utf-?8$/i.test(given.encoding)) ? data : toBytes(data, given.encoding);
    if (truncates) return face.put(toPath(path), whole, openBits(flags), modeOf(given.mode, 0o644));
    const file = new OpenFile(face, toPath(path), flags, modeOf(given.mode, 0o644));
    try {
      const bytes = toBytes(data, given.encoding);
      if (bytes.length > 0) file.write(bytes, null);
    } finally {
      file.close();
    }
  };
  const list = (dir: string, syscall = "scandir"): Dirent[] => {
    const raw = face.core.live();
    const packed = face.got(raw.readdir_types(face.core.path(dir, syscall)), syscall, dir);
    return packed.split("/").slice(0, -1).map((entry) => new Dirent(entry.slice(1), entry.charCodeAt(0) - 48, dir));
  };
  const listAll = (top: string, recursive: boolean): Array<[string, Dirent]> => {
    const found: Array<[string, Dirent]> = [];
    const visit = (dir: string, prefix: string): void => {
      for (const entry of list(dir)) {
        found.push([prefix + String(entry.name), entry]);
        if (recursive && entry.isDirectory()) visit(dir.startsWith("/") ? resolve(dir, String(entry.name)) : join(dir, String(entry.name)), `${prefix}${String(entry.name)}/`);
      }
    };
    visit(top, "");
    return found;
  };
  const exists = (path: string): void => void face.numbers(path, true, "chown");

  const calls = {
    readFile(path: PathLike | number, options?: Options | string | null): Uint8Array | string {
      const { encoding, flag } = optionsOf(options);
      if (isDescriptor(path)) return out(handle(path, "fstat").readAll(), encoding);
      const where = toPath(path);
      if (flag !== undefined && flag !== "r") {
        const file = new OpenFile(face, where, flagsOf(flag, "r"), 0o666);
        try {
          return out(file.readAll(), encoding);
        } finally {
          file.close();
        }
      }
      try {
        if (encoding != null && /^utf-?8$/i.test(encoding)) return face.readText(where);
        return out(face.readFile(where), encoding);
      } catch (thrown) {
        throw (thrown as SessionLogError).details?.errno === "EISDIR" ? nodeError(EISDIR, "read") : thrown;
      }
    },
    writeFile(path: PathLike | number, data: Data, options?: Options | string): void { put(path, data, options, "w"); },
    appendFile(path: PathLike | number, data: Data, options?: Options | string): void { put(path, data, options, "a"); },
    stat(path: PathLike, options?: Options): unknown { return stats(path, true, options); },
    lstat(path: PathLike, options?: Options): unknown { return stats(path, false, options); },
    access(path: PathLike, mode: number = constants.F_OK): void {
      const found = new Stats(face.numbers(toPath(path), true, "access"));
      if ((mode & constants.X_OK) !== 0 && !found.isDirectory() && (found.mode & 0o111) === 0) throw nodeError(EACCES, "access", toPath(path));
    },
    readdir(path: PathLike, options?: Options | string | null): unknown {
      const { encoding, recursive, withFileTypes } = optionsOf(options);
      const dir = toPath(path);
      if (withFileTypes === true) return listAll(dir, recursive === true).map(([, entry]) => entry);
      if (recursive === true) return listAll(dir, true).map(([name]) => named(name, encoding));
      const names = face.readdir(dir);
      return encoding == null ? names : names.map((name) => named(name, encoding));
    },
    opendir(path: PathLike): Dir { return new Dir(toPath(path), list(toPath(path), "opendir")); },
    mkdir(path: PathLike, options?: Options | number | string): string | undefined {
      const given: Options = typeof options === "object" && options !== null ? options : options === undefined ? {} : { mode: options as number };
      const where = toPath(path);
      if (given.recursive === true) return makeDirs(face, where, modeOf(given.mode, 0o755));
      face.makeDir(where, false, modeOf(given.mode, 0o755));
      return undefined;
    },
    mkdtemp(prefix: PathLike, options?: Options | string): unknown {
      const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
      for (;;) {
        const tail = Array.from({ length: 6 }, () => letters[Math.floor(random() * letters.length)]).join("");
        const path = toPath(prefix, "prefix") + tail;
        if (face.core.live().stat(path, false) !== undefined) continue;
        face.makeDir(path, false, 0o700);
        return named(path, optionsOf(options).encoding);
      }
    },
    rmdir(path: PathLike): void { face.remove(toPath(path), DIR_ONLY, "rmdir"); },
    unlink(path: PathLike): void { face.remove(toPath(path), LEAF_ONLY, "unlink"); },
    rm(path: PathLike, options?: Options): void {
      const where = toPath(path);
      const recursive = options?.recursive === true;
      const there = stats(where, false, { throwIfNoEntry: options?.force !== true }) as Stats | undefined;
      if (!recursive && there?.isDirectory() === true) {
        const error = nodeError(EISDIR, "rm", where);
        error.message = `Path is a directory: rm returned EISDIR (is a directory) ${where}`;
        throw Object.assign(error, { code: "ERR_FS_EISDIR" });
      }
      face.remove(where, (recursive ? RECURSIVE : 0) | (options?.force === true ? FORCE : 0), "rm");
    },
    rename(from: PathLike, to: PathLike): void { face.rename(toPath(from, "oldPath"), toPath(to, "newPath")); },
    copyFile(from: PathLike, to: PathLike, mode = 0): void {
      const [a, b] = [toPath(from, "src"), toPath(to, "dest")];
      const raw = face.core.live(), source = raw.stat(a, true);
      if (source === undefined) throw fileError(raw.errno(), "copyfile", a, b);
      const target = raw.stat(b, true);
      if ((mode & constants.COPYFILE_EXCL) !== 0 && (target ?? raw.stat(b, false)) !== undefined) throw nodeError(EEXIST, "copyfile", a, b);
      if (target === undefined && source[0] === DIRECTORY && raw.stat(`${dirname(b)}/`, true) === undefined) throw fileError(raw.errno(), "copyfile", a, b);
      if (target !== undefined && source[5] === target[5] && source[0] !== DIRECTORY) return;
      face.copy(a, b);
    },
    cp(from: PathLike, to: PathLike, options: CopyOptions = {}): void { copyTree(face, toPath(from, "src"), toPath(to, "dest"), options); },
    symlink(target: PathLike, path: PathLike): void { face.symlink(toPath(target, "target"), toPath(path)); },
    readlink(path: PathLike, options?: Options | string | null): unknown { return named(face.readlink(toPath(path)), optionsOf(options).encoding); },
    // One name per file: undo is defined by paths.
    link(from: PathLike, to: PathLike): void { throw nodeError(EPERM, "link", toPath(from, "existingPath"), toPath(to, "newPath")); },
    realpath(path: PathLike, options?: Options | string | null): unknown { return named(realpath(face, toPath(path)), optionsOf(options).encoding); },
    chmod(path: PathLike, mode: number | string): void { face.chmod(toPath(path), modeOf(mode, 0) & 0o7777); },
    lchmod(path: PathLike, mode: number | string): void { face.chmod(toPath(path), modeOf(mode, 0) & 0o7777); },
    chown(path: PathLike): void { exists(toPath(path)); },
    lchown(path: PathLike): void { face.numbers(toPath(path), false, "lchown"); },
    utimes(path: PathLike, _atime: number | string | Date, mtime: number | string | Date): void { face.setTime(toPath(path), timeOf(mtime), true, "utime"); },
    lutimes(path: PathLike, _atime: number | string | Date, mtime: number | string | Date): void { face.setTime(toPath(path), timeOf(mtime), false, "lutime"); },
    truncate(path: PathLike | number, length = 0): void {
      if (typeof path === "number") return handle(path, "ftruncate").truncate(length);
      const file = new OpenFile(face, toPath(path), constants.O_RDWR, 0);
      try {
        file.truncate(length);
      } finally {
        file.close();
      }
    },
    open(path: PathLike, flags?: string | number, mode?: number | string): number {
      const file = new OpenFile(face, toPath(path), flagsOf(flags, "r"), modeOf(mode, 0o644));
      open.set(file.fd, file);
      return file.fd;
    },
    close(fd: number): void {
      handle(fd, "close").close();
      open.delete(fd);
    },
    read(fd: number, buffer: Uint8Array, offset?: number | Options | null, length?: number, position?: number | bigint | null): number {
      const given = typeof offset === "object" && offset !== null ? offset : { offset, length, position };
      const at = (given.offset as number | undefined) ?? 0;
      const most = (given.length as number | undefined) ?? buffer.byteLength - at;
      const from = given.position == null || Number(given.position) < 0 ? null : Number(given.position);
      if (most === 0) return 0;
      const bytes = handle(fd, "read").read(most, from);
      new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).set(bytes, at);
      return bytes.length;
    },
    write(fd: number, data: Data, offset?: number | Options | null, length?: number | string, position?: number | null): number {
      if (typeof data === "string") {
        const from = typeof offset === "number" ? offset : null;
        return handle(fd, "write").write(encode(data, typeof length === "string" ? length : "utf8"), from);
      }
      const given = typeof offset === "object" && offset !== null ? offset : { offset, length, position };
      const bytes = toBytes(data, null);
      const at = (given.offset as number | undefined) ?? 0;
      const most = (given.length as number | undefined) ?? bytes.length - at;
      return handle(fd, "write").write(bytes.subarray(at, at + most), (given.position as number | null | undefined) ?? null);
    },
    readv(fd: number, buffers: Uint8Array[], position: number | null = null): number {
      let total = 0;
      for (const buffer of buffers) {
        const count = calls.read(fd, buffer, 0, buffer.byteLength, position === null ? null : position + total);
        total += count;
        if (count < buffer.byteLength) break;
      }
      return total;
    },
    writev(fd: number, buffers: Uint8Array[], position: number | null = null): number {
      let total = 0;
      for (const buffer of buffers) total += calls.write(fd, buffer, 0, buffer.byteLength, position === null ? null : position + total);
      return total;
    },
    fstat(fd: number, options?: Options): unknown {
      const found = handle(fd, "fstat").stat();
      return options?.bigint === true ? bigStats(found) : found;
    },
    ftruncate(fd: number, length = 0): void { handle(fd, "ftruncate").truncate(length); },
    fchmod(fd: number, mode: number | string): void { handle(fd, "fchmod").chmod(modeOf(mode, 0) & 0o7777); },
    fchown(fd: number): void { handle(fd, "fchown"); },
    futimes(fd: number, _atime: number | string | Date, mtime: number | string | Date): void { handle(fd, "futime").utimes(timeOf(mtime)); },
    fsync(fd: number): void { handle(fd, "fsync"); },
    fdatasync(fd: number): void { handle(fd, "fdatasync"); },
    statfs(path: PathLike): object {
      exists(toPath(path));
      return { type: 0, bsize: 4096, blocks: 0, bfree: 0, bavail: 0, files: 0, ffree: 0 };
    },
  };
  return { calls, handle };
}

/** Makes one synchronous call throw Node's errors. */
function nodeStyle(work: Call): (...args: unknown[]) => unknown {
  return (...args) => {
    try {
      return (work as (...args: unknown[]) => unknown)(...args);
    } catch (thrown) {
      throw translate(thrown);
    }
  };
}

/** Calls whose callbacks get more than one value. */
const PAIRS: { [name: string]: (result: unknown, args: unknown[]) => unknown[] } = {
  read: (count, args) => [count, args[1]],
  write: (count, args) => [count, args[1]],
  readv: (count, args) => [count, args[1]],
  writev: (count, args) => [count, args[1]],
};

function withCallback(name: string, work: (...args: unknown[]) => unknown): (...args: unknown[]) => void {
  return (...args) => {
    const callback = args.pop();
    if (typeof callback !== "function") throw argumentError("ERR_INVALID_ARG_TYPE", 'The "cb" argument must be of type function.');
    let answer: unknown[];
    try {
      const result = work(...args);
      answer = [null, ...(PAIRS[name]?.(result, args) ?? (result === undefined ? [] : [result]))];
    } catch (thrown) {
      // What is wrong with the arguments is thrown at once, as Node does.
      if (thrown instanceof TypeError && String((thrown as { code?: unknown }).code).startsWith("ERR_INVALID_ARG")) throw thrown;
      answer = [thrown];
    }
    void Promise.resolve().then(() => { callback(...answer); });
  };
}

/** Node's FileHandle over a descriptor. */
class FileHandle {
  readonly #sync: { [name: string]: (...args: unknown[]) => unknown };
  readonly fd: number;
  constructor(sync: { [name: string]: (...args: unknown[]) => unknown }, fd: number) {
    this.#sync = sync;
    this.fd = fd;
  }
  async #do(name: string, ...args: unknown[]): Promise<unknown> {
    return (this.#sync[name] as (...args: unknown[]) => unknown)(this.fd, ...args);
  }
  async read(buffer?: unknown, ...rest: unknown[]): Promise<object> {
    const isView = ArrayBuffer.isView(buffer);
    const options = isView ? undefined : (buffer as { buffer?: Uint8Array } | undefined);
    const into = isView ? buffer : (options?.buffer ?? asBuffer(new Uint8Array(16_384)));
    const bytesRead = await (isView ? this.#do("read", into, ...rest) : this.#do("read", into, options));
    return { bytesRead, buffer: into };
  }
  async write(data: unknown, ...rest: unknown[]): Promise<object> {
    return { bytesWritten: await this.#do("write", data, ...rest), buffer: data };
  }
  async readv(buffers: unknown, position?: unknown): Promise<object> { return { bytesRead: await this.#do("readv", buffers, position), buffers }; }
  async writev(buffers: unknown, position?: unknown): Promise<object> { return { bytesWritten: await this.#do("writev", buffers, position), buffers }; }
  readFile(options?: unknown): Promise<unknown> { return this.#do("readFile", options); }
  writeFile(data: unknown, options?: unknown): Promise<unknown> { return this.#do("writeFile", data, options); }
  appendFile(data: unknown, options?: unknown): Promise<unknown> { return this.#do("appendFile", data, options); }
  stat(options?: unknown): Promise<unknown> { return this.#do("fstat", options); }
  truncate(length?: unknown): Promise<unknown> { return this.#do("ftruncate", length); }
  chmod(mode: unknown): Promise<unknown> { return this.#do("fchmod", mode); }
  chown(): Promise<unknown> { return this.#do("fchown"); }
  utimes(atime: unknown, mtime: unknown): Promise<unknown> { return this.#do("futimes", atime, mtime); }
  sync(): Promise<unknown> { return this.#do("fsync"); }
  datasync(): Promise<unknown> { return this.#do("fdatasync"); }
  close(): Promise<unknown> { return this.#do("close"); }
  [Symbol.asyncDispose](): Promise<unknown> { return this.close(); }
}

/** Data that comes in pieces, as `promises.writeFile` takes it. */
async function gather(data: unknown): Promise<unknown> {
  const source = data as { [Symbol.asyncIterator]?: unknown; [Symbol.iterator]?: unknown } | null;
  const isStream = typeof source === "object" && source !== null && !ArrayBuffer.isView(data) && (Symbol.asyncIterator in source || Symbol.iterator in source);
  if (!isStream) return data;
  const parts: Uint8Array[] = [];
  for await (const part of data as AsyncIterable<Data>) parts.push(toBytes(part, null));
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function makeNodeFs(face: FilesFace): NodeFs {
  const { calls } = makeCalls(face);
  const sync: { [name: string]: (...args: unknown[]) => unknown } = {};
  const node: { [name: string]: unknown } = {};
  const promises: { [name: string]: unknown } = {};
  for (const [name, work] of Object.entries(calls)) {
    const call = nodeStyle(work as Call);
    sync[name] = call;
    node[`${name}Sync`] = call;
    node[name] = withCallback(name, call);
    if (!/^(f[a-z]|close|read$|write$|readv|writev)/.test(name)) promises[name] = async (...args: unknown[]) => call(...args);
  }
  node.existsSync = (path: PathLike) => {
    try {
      return face.exists(toPath(path));
    } catch {
      return false;
    }
  };
  node.exists = (path: PathLike, callback: (there: boolean) => void) => {
    const there = (node.existsSync as (path: PathLike) => boolean)(path);
    void Promise.resolve().then(() => { callback(there); });
  };
  const native = nodeStyle(((path: PathLike, options?: Options | string | null) => named(face.realpath(toPath(path)), optionsOf(options).encoding)) as Call);
  (node.realpathSync as { native?: unknown }).native = native;
  (node.realpath as { native?: unknown }).native = withCallback("realpath", native);
  promises.realpath = async (...args: unknown[]) => native(...args);
  promises.open = async (...args: unknown[]) => new FileHandle(sync, (sync.open as Call as (...args: unknown[]) => number)(...args));
  for (const name of ["writeFile", "appendFile", "readFile"]) {
    const call = sync[name] as (...args: unknown[]) => unknown;
    promises[name] = async (path: unknown, data: unknown, ...rest: unknown[]) =>
      call(path instanceof FileHandle ? path.fd : toPath(path as PathLike), name === "readFile" ? data : await gather(data), ...rest);
  }
  node.watch = watchFiles(face);
  Object.assign(node, makeStreams(sync));
  promises.constants = constants;
  return Object.assign(node, {
    promises, constants, Stats, Dirent, Dir,
    F_OK: constants.F_OK, R_OK: constants.R_OK, W_OK: constants.W_OK, X_OK: constants.X_OK,
  }) as unknown as NodeFs;
}

