// Plain files on a server (Node 20 and newer, Bun, Deno): one folder, one process at a time.
import * as fs from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { KeyValueBackend } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";
import { changes, closed, conflict, sameBytes, type Batch, type Entry, type ListOptions } from "./batches.js";
import { DataFile, type Change, type Place } from "./data-file.js";

const MIB = 1024 * 1024;
/** Below this a file is not worth rewriting. */
const SMALL = 4 * MIB;
const PIECE = MIB;

const opened = new Set<string>();

function fileError(thrown: unknown): SessionLogError {
  const code = (thrown as { code?: unknown } | null)?.code;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  if (code === "ENOSPC" || code === "EDQUOT") return new SessionLogError("quota", text, {}, thrown);
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") return new SessionLogError("unavailable", text, {}, thrown);
  return toError(thrown);
}

/** Takes the folder for this process, or from one that is gone. */
function lock(dir: string): () => void {
  const path = join(dir, "lock");
  const held = () => new SessionLogError("locked", "another process has this folder open", { dir });
  if (opened.has(dir)) throw held();
  for (let tries = 0; ; tries++) {
    try {
      fs.writeFileSync(path, String(process.pid), { flag: "wx" });
      break;
    } catch (thrown) {
      if ((thrown as { code?: unknown }).code !== "EEXIST") throw thrown;
      if (tries > 3 || isAlive(path)) throw held();
      fs.rmSync(path, { force: true });
    }
  }
  opened.add(dir);
  return () => {
    opened.delete(dir);
    fs.rmSync(path, { force: true });
  };
}

function isAlive(path: string): boolean {
  let pid: number;
  try {
    pid = Number(fs.readFileSync(path, "utf8"));
  } catch {
    return false;
  }
  // A number of ours is from an earlier life: this process knows what it has open.
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    return (thrown as { code?: unknown }).code === "EPERM";
  }
}

class Folder {
  readonly #path: string;
  readonly #dir: string;
  readonly #unlock: () => void;
  #file: DataFile;
  /** Keys in order; made anew after keys came or went. */
  #sorted: string[] | null = null;
  #open = true;

  constructor(dir: string) {
    fs.mkdirSync(dir, { recursive: true });
    this.#dir = fs.realpathSync(dir);
    this.#path = join(this.#dir, "data");
    this.#unlock = lock(this.#dir);
    try {
      fs.rmSync(`${this.#path}.new`, { force: true });
      this.#file = DataFile.open(this.#path);
      this.#syncDir();
    } catch (thrown) {
      this.#unlock();
      throw thrown;
    }
  }

  /** A file's name is on disk only when its folder is; some systems cannot do that for folders. */
  #syncDir(): void {
    try {
      const fd = fs.openSync(this.#dir, "r");
      try {
        fs.fsyncSync(fd);
      } finally {
        fs.closeSync(fd);
      }
    } catch {
      // See above.
    }
  }

  live(): DataFile {
    if (!this.#open) throw closed();
    return this.#file;
  }

  get(key: string): Uint8Array | null {
    const file = this.live();
    const place = file.places.get(key);
    return place === undefined ? null : file.value(place);
  }

  list(start: string, end: string, { limit = Infinity, reverse = false, keysOnly = false }: ListOptions = {}): Entry[] {
    const file = this.live();
    if (!(start < end)) return [];
    // Arrays of texts sort by code units.
    const keys = (this.#sorted ??= [...file.places.keys()].sort());
    const from = lowerBound(keys, start);
    const to = lowerBound(keys, end);
    const count = Math.min(limit, to - from);
    const found = reverse ? keys.slice(to - count, to).reverse() : keys.slice(from, from + count);
    return found.map((key) => [key, keysOnly ? new Uint8Array() : file.value(file.places.get(key) as Place)]);
  }

  transact(batch: Batch): void {
    const file = this.live();
    for (const { key, equals } of batch.checks ?? []) if (!sameBytes(this.get(key), equals)) throw conflict(key);
    const wanted = changes(batch);
    for (const [key, value] of wanted) if (value === null && !file.places.has(key)) wanted.delete(key);
    if (wanted.size === 0) return;
    const moved = [...wanted].some(([key, value]) => (value !== null) !== file.places.has(key));
    file.append(wanted);
    if (moved) this.#sorted = null;
    if (file.size > SMALL && file.size > 3 * file.live) this.#rewrite();
  }

  /** Leaves out what was replaced and deleted: a new file takes the place of the old one. */
  #rewrite(): void {
    const path = `${this.#path}.new`;
    const old = this.#file;
    let next: DataFile | null = null;
    try {
      next = DataFile.open(path);
      for (const piece of pieces(old)) next.append(piece);
      fs.renameSync(path, this.#path);
    } catch {
      // The batch is stored and the old file is whole; the next batch tries again.
      next?.close();
      fs.rmSync(path, { force: true });
      return;
    }
    this.#syncDir();
    this.#file = next;
    old.close();
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#file.close();
    this.#unlock();
  }
}

/** What is valid in a file, in pieces of moderate size. */
function* pieces(file: DataFile): Generator<Change[]> {
  let piece: Change[] = [];
  let size = 0;
  for (const [key, place] of file.places) {
    piece.push([key, file.value(place)]);
    size += place.length;
    if (size < PIECE) continue;
    yield piece;
    piece = [];
    size = 0;
  }
  if (piece.length > 0) yield piece;
}

function lowerBound(keys: readonly string[], key: string): number {
  let from = 0, to = keys.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((keys[middle] as string) < key) from = middle + 1;
    else to = middle;
  }
  return from;
}

export interface FileBackendOptions {
  /** Appends are then stored before they return, one disk write each. Default: written behind, as in a browser. */
  storeFirst?: boolean;
}

/**
 * Opens (or makes) a store in a folder. Batches go to the end of one file and are on disk when they are acknowledged; one
 * that was cut off by a crash is not there. `locked` when another process has it open.
 */
export async function openFileBackend(dir: string, options: FileBackendOptions = {}): Promise<KeyValueBackend> {
  const guard = <T>(work: () => T): T => {
    try {
      return work();
    } catch (thrown) {
      throw fileError(thrown);
    }
  };
  const sync = options.storeFirst === true;
  const folder = guard(() => new Folder(dir));
  const settle = sync ? <T>(work: () => T): T => guard(work) : async <T>(work: () => T): Promise<T> => guard(work);
  return {
    name: "files", maxValueBytes: 64 * MIB, maxBatch: 10_000,
    ...(sync ? { sync } : {}),
    get: (key) => settle(() => folder.get(key)),
    list: (start, end, wanted) => settle(() => folder.list(start, end, wanted)),
    transact: (batch) => settle(() => folder.transact(batch)),
    close: () => guard(() => folder.close()),
  };
}
