// One file of batches, each whole or not there: length, checksum, changes. Where the values lie is kept in memory.
import * as fs from "node:fs";
import { SessionLogError } from "../errors.js";
import { crc32 } from "./crc32.js";
import { keyBytes, keyOf } from "./key-bytes.js";

const MAGIC = new TextEncoder().encode("sessionlog.files 1\n");
/** Length and checksum of a batch. */
const HEAD = 8;
const DELETE = 0, PUT = 1;

export interface Place { at: number; length: number }
export type Change = [key: string, value: Uint8Array | null];

/** A batch as it stands in the file, and where in it each value begins. */
function encode(changes: Iterable<Change>): { bytes: Uint8Array; places: Map<string, Place | null> } {
  const parts: Array<[Uint8Array, string, Uint8Array | null]> = [];
  let size = HEAD;
  for (const [key, value] of changes) {
    const name = keyBytes(key);
    parts.push([name, key, value]);
    size += 5 + name.length + (value === null ? 0 : 4 + value.length);
  }
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  const places = new Map<string, Place | null>();
  let at = HEAD;
  for (const [name, key, value] of parts) {
    view.setUint8(at, value === null ? DELETE : PUT);
    view.setUint32(at + 1, name.length);
    bytes.set(name, at + 5);
    at += 5 + name.length;
    places.set(key, null);
    if (value === null) continue;
    view.setUint32(at, value.length);
    bytes.set(value, at + 4);
    places.set(key, { at: at + 4, length: value.length });
    at += 4 + value.length;
  }
  view.setUint32(0, size - HEAD);
  view.setUint32(4, crc32(bytes.subarray(HEAD)));
  return { bytes, places };
}

/** The changes of a batch's body, as places relative to its start. */
function decode(body: Uint8Array): Array<[string, Place | null]> {
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const out: Array<[string, Place | null]> = [];
  for (let at = 0; at < body.length; ) {
    const kind = view.getUint8(at);
    const nameLength = view.getUint32(at + 1);
    const key = keyOf(body.subarray(at + 5, at + 5 + nameLength));
    at += 5 + nameLength;
    if (kind === DELETE) {
      out.push([key, null]);
      continue;
    }
    const length = view.getUint32(at);
    out.push([key, { at: at + 4, length }]);
    at += 4 + length;
  }
  return out;
}

export class DataFile {
  readonly places = new Map<string, Place>();
  /** Bytes of values that are still valid. */
  live = 0;
  size = MAGIC.length;
  #fd: number;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  /** Opens or makes the file; a batch that was cut off at the end is taken away. */
  static open(path: string): DataFile {
    let fd: number;
    try {
      fd = fs.openSync(path, "r+");
    } catch (thrown) {
      if ((thrown as { code?: unknown }).code !== "ENOENT") throw thrown;
      fd = fs.openSync(path, "w+");
    }
    const file = new DataFile(fd);
    try {
      file.#load();
    } catch (thrown) {
      fs.closeSync(fd);
      throw thrown;
    }
    return file;
  }

  #read(at: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    let done = 0;
    while (done < length) {
      const count = fs.readSync(this.#fd, bytes, done, length - done, at + done);
      if (count === 0) break;
      done += count;
    }
    return bytes.subarray(0, done);
  }

  /** The body of the batch at `at`; null when no whole one stands there. */
  #batch(at: number, end: number): Uint8Array | null {
    if (at + HEAD > end) return null;
    const head = this.#read(at, HEAD);
    const view = new DataView(head.buffer, head.byteOffset, HEAD);
    const length = view.getUint32(0);
    // A run of zeros is no batch.
    if (length === 0 || at + HEAD + length > end) return null;
    const body = this.#read(at + HEAD, length);
    return crc32(body) === view.getUint32(4) ? body : null;
  }

  #load(): void {
    const end = fs.fstatSync(this.#fd).size;
    const magic = this.#read(0, MAGIC.length);
    if (end < MAGIC.length) {
      // Made and cut off before it held anything.
      if (magic.some((byte, at) => byte !== MAGIC[at] && byte !== 0)) throw new SessionLogError("corrupt", "the data file is not one of ours");
      this.#write(MAGIC, 0);
      return;
    }
    if (magic.some((byte, at) => byte !== MAGIC[at])) throw new SessionLogError("newer_format", "the data file is of another format");
    let at = MAGIC.length;
    for (let body = this.#batch(at, end); body !== null; body = this.#batch(at, end)) {
      for (const [key, place] of decode(body)) this.#place(key, place, at + HEAD);
      at += HEAD + body.length;
    }
    if (at < end) this.#cut(at, end);
    this.size = at;
  }

  /** What follows the last whole batch is a write that was cut off, unless whole batches stand behind it. */
  #cut(at: number, end: number): void {
    const head = this.#read(at, HEAD);
    if (head.length === HEAD) {
      const next = at + HEAD + new DataView(head.buffer, head.byteOffset, HEAD).getUint32(0);
      if (next > at + HEAD && next < end && this.#batch(next, end) !== null) {
        throw new SessionLogError("corrupt", "the data file is damaged in the middle; it is kept as it is", { at });
      }
    }
    fs.ftruncateSync(this.#fd, at);
    fs.fdatasyncSync(this.#fd);
  }

  #place(key: string, place: Place | null, base: number): void {
    this.live -= this.places.get(key)?.length ?? 0;
    if (place === null) return void this.places.delete(key);
    this.places.set(key, { at: base + place.at, length: place.length });
    this.live += place.length;
  }

  #write(bytes: Uint8Array, at: number): void {
    for (let done = 0; done < bytes.length; ) done += fs.writeSync(this.#fd, bytes, done, bytes.length - done, at + done);
    fs.fdatasyncSync(this.#fd);
  }

  value({ at, length }: Place): Uint8Array {
    const bytes = this.#read(at, length);
    if (bytes.length < length) throw new SessionLogError("corrupt", "the data file is shorter than it was");
    return bytes;
  }

  /** Writes a batch at the end; it is on disk when this returns, and not there when this throws. */
  append(changes: Iterable<Change>): void {
    const { bytes, places } = encode(changes);
    try {
      this.#write(bytes, this.size);
    } catch (thrown) {
      // What was written of it would stand between the batches.
      fs.ftruncateSync(this.#fd, this.size);
      throw thrown;
    }
    for (const [key, place] of places) this.#place(key, place, this.size);
    this.size += bytes.length;
  }

  close(): void {
    fs.closeSync(this.#fd);
  }
}
