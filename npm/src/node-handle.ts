// Open files: a node of the tree that stays readable for as long as a handle is open, also after it was unlinked.
import { APPEND, EXCLUSIVE, MUST_EXIST, type FilesFace } from "./vfs.js";
import { EBADF, EINVAL, EISDIR, argumentError, nodeError } from "./node-error.js";
import { Stats, constants } from "./node-stats.js";
import type { RawFiles } from "./glue.js";
import { call } from "./runtime.js";

const { O_ACCMODE, ...O } = { O_ACCMODE: 3, ...constants };

const FLAGS: { [name: string]: number } = {
  r: O.O_RDONLY, rs: O.O_RDONLY, "r+": O.O_RDWR, "rs+": O.O_RDWR,
  w: O.O_WRONLY | O.O_CREAT | O.O_TRUNC, "w+": O.O_RDWR | O.O_CREAT | O.O_TRUNC,
  a: O.O_WRONLY | O.O_CREAT | O.O_APPEND, "a+": O.O_RDWR | O.O_CREAT | O.O_APPEND,
  as: O.O_WRONLY | O.O_CREAT | O.O_APPEND, "as+": O.O_RDWR | O.O_CREAT | O.O_APPEND,
};

/** Node's flags, as text or number, as a number. */
export function flagsOf(flags: string | number | undefined, fallback: string): number {
  const given = flags ?? fallback;
  if (typeof given === "number") return given;
  const exclusive = given.includes("x");
  const bits = FLAGS[given.replace("x", "")];
  if (bits === undefined || (exclusive && (bits & O.O_CREAT) === 0)) {
    throw argumentError("ERR_INVALID_ARG_VALUE", `The argument 'flags' is invalid. Received '${given}'`);
  }
  return bits | (exclusive ? O.O_EXCL : 0);
}

/** The module's bits for making and finding a file. */
export function openBits(flags: number): number {
  return (flags & O.O_EXCL ? EXCLUSIVE : 0) | (flags & O.O_CREAT ? 0 : MUST_EXIST) | (flags & O.O_APPEND ? APPEND : 0);
}

let lastFd = 2;

export class OpenFile {
  readonly fd: number;
  readonly path: string;
  readonly #face: FilesFace;
  readonly #flags: number;
  readonly #node: number;
  readonly #raw: RawFiles;
  #position = 0;
  #open = true;

  constructor(face: FilesFace, path: string, flags: number, mode: number) {
    const raw = face.core.live(), now = face.core.clock();
    const node = call(() => raw.open(face.run, face.callNumber, path, openBits(flags), mode, now));
    if (node < 0) throw nodeError(-node, "open", path);
    this.#face = face;
    this.#flags = flags;
    this.#node = node;
    this.#raw = raw;
    this.path = path;
    this.fd = ++lastFd;
    if (this.writable && this.stat().isDirectory()) {
      this.close();
      throw nodeError(EISDIR, "open", path);
    }
    if ((flags & O.O_TRUNC) !== 0) this.truncate(0);
    if ((flags & O.O_CREAT) !== 0) face.core.changed("change", path);
  }

  get readable(): boolean { return (this.#flags & O_ACCMODE) !== O.O_WRONLY; }
  get writable(): boolean { return (this.#flags & O_ACCMODE) !== O.O_RDONLY; }

  #live(syscall: string, allowed = true): void {
    // After a reload another file may have this number.
    if (!this.#open || !allowed || this.#raw !== this.#face.core.live()) throw nodeError(EBADF, syscall);
  }

  #done(errno: number, syscall: string): void {
    if (errno !== 0) throw nodeError(errno, syscall);
    this.#face.core.changed("change", this.path);
  }

  stat(): Stats {
    this.#live("fstat");
    const numbers = call(() => this.#face.core.live().stat_node(this.#node));
    if (numbers === undefined) throw nodeError(EBADF, "fstat");
    return new Stats(numbers);
  }

  read(length: number, position: number | null): Uint8Array {
    this.#live("read", this.readable);
    const from = position ?? this.#position;
    const raw = this.#face.core.live();
    const bytes = call(() => raw.read_at(this.#node, from, length));
    if (bytes === undefined) throw nodeError(call(() => raw.errno()), "read");
    if (position === null) this.#position += bytes.length;
    return bytes;
  }

  readAll(): Uint8Array {
    return this.read(Math.max(0, this.stat().size - this.#position), null);
  }

  write(bytes: Uint8Array, position: number | null): number {
    this.#live("write", this.writable);
    if (bytes.length === 0) return 0;
    const append = (this.#flags & O.O_APPEND) !== 0;
    const from = append ? -1 : (position ?? this.#position);
    const { core, run, callNumber } = this.#face;
    this.#done(call(() => core.live().write_at(run, callNumber, this.#node, from, bytes, core.clock())), "write");
    if (position === null) this.#position = append ? this.stat().size : this.#position + bytes.length;
    return bytes.length;
  }

  truncate(length: number): void {
    this.#live("ftruncate");
    if (!(length >= 0) || !this.writable) throw nodeError(EINVAL, "ftruncate");
    const { core, run, callNumber } = this.#face;
    this.#done(call(() => core.live().truncate_node(run, callNumber, this.#node, length, core.clock())), "ftruncate");
  }

  chmod(mode: number): void {
    this.#live("fchmod");
    const { core, run, callNumber } = this.#face;
    this.#done(call(() => core.live().chmod_node(run, callNumber, this.#node, mode, core.clock())), "fchmod");
  }

  utimes(mtimeMs: number): void {
    this.#live("futime");
    const { core, run, callNumber } = this.#face;
    this.#done(call(() => core.live().utimes_node(run, callNumber, this.#node, mtimeMs, core.clock())), "futime");
  }

  close(): void {
    this.#live("close");
    this.#open = false;
    call(() => this.#face.core.live().let_go(this.#node));
  }
}
