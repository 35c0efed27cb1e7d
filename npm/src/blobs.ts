// Media beside the log, by content: `b/<name>` says what there is, `b/<name>/<tag>/<i>` are its bytes, and
// `s/<id>/b/<name>` stands for every session that attached it. See docs/format.md.
import type { KeyValueBackend } from "../types/index.js";
import type { Log } from "./log.js";
import { SessionLogError, toError } from "./errors.js";
import { call } from "./runtime.js";
import { cutPuts, joinBytes } from "./segments.js";
import type { Chain } from "./scrub.js";
import { decode, encode } from "./stored.js";

/** What stands under a blob's own key. */
interface Head {
  type: string;
  pieces: number;
  /** Whose pieces count: those of a write that was never finished have another. */
  tag: string;
  /** Another one each time a session attaches it, so that a removal that did not know of that session fails. */
  used: string;
}

/** What stands under a blob's key: null instead of a head that cannot be read. */
interface Found { bytes: Uint8Array; head: Head | null }

function readHead(bytes: Uint8Array): Head | null {
  try {
    const head = JSON.parse(decode(bytes)) as Partial<Head> | null;
    const isSound = typeof head?.type === "string" && typeof head.tag === "string" && Number.isSafeInteger(head.pieces);
    return isSound ? (head as Head) : null;
  } catch {
    return null;
  }
}

const PIECE_BYTES = 1 << 20;
const BATCH = 32;
/** Enough of a file to tell what it is. */
const HEAD_BYTES = 24;

const below = (prefix: string): [string, string] => [`${prefix}/`, `${prefix}0`];
const headKey = (name: string): string => `b/${name}`;
const refKey = (id: string, name: string): string => `s/${id}/b/${name}`;
const pieceKey = (name: string, tag: string, i: number | ""): string => `b/${name}/${tag}/${i === "" ? i : String(i).padStart(8, "0")}`;
const isConflict = (thrown: unknown): boolean => toError(thrown).code === "conflict";

export const nameOfBlob = (bytes: Uint8Array): string => call((m) => m.raw_blob_name(bytes));

export function base64Of(bytes: Uint8Array): string {
  let out = "";
  for (let at = 0; at < bytes.length; at += 0x6000) out += btoa(String.fromCharCode(...bytes.subarray(at, at + 0x6000)));
  return out;
}

/** Bytes in stored form: what proves to be media stays, all else is scrubbed as text. */
export function scrubBlob(chain: Chain, bytes: Uint8Array, mediaType: string): Uint8Array {
  if (chain.isEmpty || call((m) => m.raw_is_media(mediaType, base64Of(bytes.subarray(0, HEAD_BYTES))))) return bytes;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return scrubBinary(chain, bytes);
  }
  const out = chain.text(text);
  return out === text ? bytes : encode(out);
}

/** One character per byte: what is text among them is found. */
function scrubBinary(chain: Chain, bytes: Uint8Array): Uint8Array {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x6000) text += String.fromCharCode(...bytes.subarray(at, at + 0x6000));
  const out = chain.text(text);
  return out === text ? bytes : Uint8Array.from(out, (c) => c.charCodeAt(0));
}

export class BlobStore {
  #backend: KeyValueBackend;
  #newId: () => string;

  constructor(backend: KeyValueBackend, newId: () => string) {
    this.#backend = backend;
    this.#newId = newId;
  }

  async #head(name: string): Promise<Found | null> {
    const bytes = await this.#backend.get(headKey(name));
    return bytes === null ? null : { bytes, head: readHead(bytes) };
  }

  /** Stores bytes for a session, once however many attach them. */
  async put(id: string, bytes: Uint8Array, type: string): Promise<string> {
    const name = nameOfBlob(bytes);
    for (let tries = 0; ; tries++) {
      try {
        const found = await this.#head(name);
        const head = found?.head ?? null;
        // One that has lost something has all of it again when the same bytes are put.
        if (found === null || head === null || (await this.#read(name, head)) === null) await this.#write(id, name, bytes, type, found?.bytes ?? null);
        else await this.#use(id, name, found.bytes, head);
        return name;
      } catch (thrown) {
        // Another session attached or removed it at the same time.
        if (!isConflict(thrown) || tries >= 8) throw thrown;
      }
    }
  }

  async #use(id: string, name: string, bytes: Uint8Array, head: Head): Promise<void> {
    const next = encode(JSON.stringify({ ...head, used: this.#newId() }));
    await this.#backend.transact({ checks: [{ key: headKey(name), equals: bytes }], puts: [[headKey(name), next], [refKey(id, name), encode("{}")]] });
  }

  /** `before` is the head that it takes the place of. */
  async #write(id: string, name: string, bytes: Uint8Array, type: string, before: Uint8Array | null): Promise<void> {
    const tag = this.#newId();
    const size = Math.min(this.#backend.maxValueBytes ?? PIECE_BYTES, PIECE_BYTES);
    const puts: Array<[string, Uint8Array]> = [];
    for (let at = 0; at < bytes.length; at += size) puts.push([pieceKey(name, tag, puts.length), bytes.slice(at, at + size)]);
    const { maxBatch = BATCH, maxBatchBytes = Infinity } = this.#backend;
    for (const some of cutPuts({ maxBatch: Math.min(maxBatch, BATCH), maxBatchBytes }, puts)) await this.#backend.transact({ puts: some });
    const head: Head = { type, pieces: puts.length, tag, used: tag };
    try {
      await this.#backend.transact({ checks: [{ key: headKey(name), equals: before }], puts: [[headKey(name), encode(JSON.stringify(head))], [refKey(id, name), encode("{}")]] });
    } catch (thrown) {
      if (isConflict(thrown)) await this.#removePieces(name, (key) => key.startsWith(pieceKey(name, tag, "")));
      throw thrown;
    }
    if (before !== null) await this.#removePieces(name, (key) => !key.startsWith(pieceKey(name, tag, "")));
  }

  async #removePieces(name: string, goes: (key: string) => boolean): Promise<void> {
    const limit = Math.min(this.#backend.maxBatch ?? BATCH, BATCH);
    const found = (await this.#backend.list(...below(headKey(name)), { keysOnly: true })).map(([key]) => key).filter(goes);
    for (let at = 0; at < found.length; at += limit) await this.#backend.transact({ deletes: found.slice(at, at + limit) });
  }

  /** The bytes of a blob and its type; null when the store does not have all of them, or has others. */
  async get(name: string): Promise<{ bytes: Uint8Array; type: string } | null> {
    if (!/^[0-9a-f]{64}$/.test(name)) return null;
    const head = (await this.#head(name))?.head ?? null;
    return head === null ? null : this.#read(name, head);
  }

  async #read(name: string, { type, pieces, tag }: Head): Promise<{ bytes: Uint8Array; type: string } | null> {
    const parts: Uint8Array[] = [];
    for (let i = 0; i < pieces; i++) {
      const part = await this.#backend.get(pieceKey(name, tag, i));
      if (part === null) return null;
      parts.push(part);
    }
    const bytes = joinBytes(parts);
    return nameOfBlob(bytes) === name ? { bytes, type } : null;
  }

  /** Every blob of the store. */
  async all(): Promise<string[]> {
    const found = await this.#backend.list("b/", "b0", { keysOnly: true });
    return found.flatMap(([key]) => /^b\/([0-9a-f]{64})$/.exec(key)?.slice(1) ?? []);
  }

  /** Removes those of these blobs that no session has attached. */
  async removeUnused(names: string[]): Promise<void> {
    if (names.length === 0) return;
    const heads = new Map<string, Found>();
    for (const name of names) {
      const found = await this.#head(name);
      if (found !== null) heads.set(name, found);
    }
    // Listed after the heads were read: whoever attaches one from now on changes its head.
    for (const [key] of await this.#backend.list("s/", "s0", { keysOnly: true })) {
      const used = /^s\/[^/]+\/b\/([0-9a-f]{64})$/.exec(key)?.[1];
      if (used !== undefined) heads.delete(used);
    }
    for (const [name, { bytes, head }] of heads) await this.#remove(name, bytes, head);
  }

  async #remove(name: string, known: Uint8Array, head: Head | null): Promise<void> {
    try {
      await this.#backend.transact({ checks: [{ key: headKey(name), equals: known }], deletes: [headKey(name)] });
    } catch (thrown) {
      if (isConflict(thrown)) return;
      throw thrown;
    }
    // Where the head named none that can be read, no piece is worth anything.
    await this.#removePieces(name, (key) => head === null || key.startsWith(pieceKey(name, head.tag, "")));
  }

  /** Removes what a scrubber finds something in: under its name there can be no other bytes. Returns the names. */
  async rescrub(chain: Chain): Promise<string[]> {
    const removed: string[] = [];
    for (const name of await this.all()) {
      const [found, blob] = [await this.#head(name), await this.get(name)];
      if (blob === null || found === null || scrubBlob(chain, blob.bytes, blob.type) === blob.bytes) continue;
      await this.#remove(name, found.bytes, found.head);
      removed.push(name);
    }
    return removed;
  }

  /** The lines of an export that hold these blobs. */
  async lines(names: string[]): Promise<Uint8Array[]> {
    const out: Uint8Array[] = [];
    for (const name of names) {
      const blob = await this.get(name);
      if (blob !== null) out.push(encode(`${JSON.stringify({ blob: name, mediaType: blob.type, data: base64Of(blob.bytes) })}\n`));
    }
    return out;
  }
}

/** The blobs that one session's derivation needs: brought from the store before they are asked for. */
export class SessionBlobs {
  #log: Log;
  #store: BlobStore;
  #isOpen: () => boolean;
  #warn: (code: string, message: string) => void;
  #loading: Promise<void> | null = null;

  constructor(log: Log, store: BlobStore, isOpen: () => boolean, warn: (code: string, message: string) => void) {
    this.#log = log;
    this.#store = store;
    this.#isOpen = isOpen;
    this.#warn = warn;
  }

  /** Brings what the log names and is not at hand; null when there is nothing to wait for. */
  load(): Promise<void> | null {
    if (this.#loading === null && call(() => this.#log.raw.wanted_blobs()).length > 0) {
      this.#loading = this.#bring()
        .catch((thrown: unknown) => this.#warn("blobs", `media could not be read: ${toError(thrown).message}`))
        .finally(() => (this.#loading = null));
    }
    return this.#loading;
  }

  async #bring(): Promise<void> {
    for (;;) {
      const names = call(() => this.#log.raw.wanted_blobs());
      if (names.length === 0) return;
      for (const name of names) {
        const blob = await this.#store.get(name);
        if (!this.#isOpen()) return;
        // Not there; unless it was attached while the store was asked.
        if (blob !== null || call(() => this.#log.raw.wanted_blobs()).includes(name)) this.put(name, blob?.bytes);
      }
    }
  }

  put(name: string, bytes: Uint8Array | undefined): void {
    call(() => this.#log.raw.put_blob(name, bytes));
  }
}

export interface ExportedBlob { name: string; type: string; bytes: Uint8Array }

const START = encode('{"blob":"');
const NEWLINE = 10;

/** Takes the lines that hold blobs off the end of an export. */
export function splitBlobs(body: Uint8Array): { body: Uint8Array; blobs: ExportedBlob[]; lost: string[] } {
  const blobs: ExportedBlob[] = [];
  const lost: string[] = [];
  let end = body.length;
  for (;;) {
    const last = body[end - 1] === NEWLINE ? end - 1 : end;
    const start = last === 0 ? 0 : body.lastIndexOf(NEWLINE, last - 1) + 1;
    if (last <= start || !START.every((byte, i) => body[start + i] === byte)) break;
    const blob = readBlob(decode(body.subarray(start, last)));
    if (typeof blob === "string") lost.push(blob);
    else blobs.push(blob);
    end = start;
  }
  return { body: body.subarray(0, end), blobs, lost };
}

function readBlob(line: string): ExportedBlob | string {
  try {
    const { blob, mediaType, data } = JSON.parse(line) as { [key: string]: unknown };
    const bytes = Uint8Array.from(atob(String(data)), (c) => c.charCodeAt(0));
    if (nameOfBlob(bytes) !== blob) return `a blob whose bytes are not those of its name: ${String(blob).slice(0, 80)}`;
    return { name: blob as string, type: String(mediaType), bytes };
  } catch (thrown) {
    if (thrown instanceof SessionLogError) throw thrown;
    return "a blob that cannot be read";
  }
}
