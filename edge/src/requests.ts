// What was carried out already, by the key that the client gave it: the same key again gets the same answer and does nothing.
import { Refusal } from "./refusal.js";

const KEPT_MS = 24 * 3_600_000;
/** How often what is too old is thrown away. */
const EVERY = 1_000;
const KEY = /^[\x21-\x7e]{1,128}$/;

const START = 0x811c9dc5;
const PRIME = 0x01000193;

/** In the manner of FNV-1a, four bytes at a time: tells an honest mistake (one key, two requests), not an attack. */
export function fingerprint(bytes: Uint8Array): string {
  const whole = bytes.length & ~3;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let hash = START;
  for (let at = 0; at < whole; at += 4) {
    hash = Math.imul(hash ^ view.getUint32(at, true), PRIME);
    // A product carries nothing down: without this the upper bits of a word would be lost to those below.
    hash ^= hash >>> 15;
  }
  for (let at = whole; at < bytes.length; at++) hash = Math.imul(hash ^ (bytes[at] as number), PRIME);
  return `${bytes.length}.${(hash >>> 0).toString(16)}`;
}

/** One key for two calls is a mistake as well: the call stands before its body. */
export const printOf = (call: string, bytes: Uint8Array): string => `${call}:${fingerprint(bytes)}`;

/** What was stored before calls stood in prints says nothing of them: for a day it counts for each. */
const isSame = (stored: string, print: string): boolean => stored === print || stored === print.slice(print.indexOf(":") + 1);

/** What was surely never put in, in 32 KB: of 20,000 keys one in a hundred is looked for in vain. */
class Seen {
  readonly #bits = new Uint32Array(8_192);

  /** Of a key that is looked for, and put in a little later. */
  #last: { key: string; places: readonly number[] } = { key: "", places: [] };

  #places(key: string): readonly number[] {
    if (this.#last.key !== key) this.#last = { key, places: this.#placesOf(key) };
    return this.#last.places;
  }

  #placesOf(key: string): readonly number[] {
    let a = START;
    let b = 0;
    for (let at = 0; at < key.length; at++) {
      const unit = key.charCodeAt(at);
      a = Math.imul(a ^ unit, PRIME);
      b = Math.imul(b + unit, 0x9e3779b1) ^ (b >>> 13);
    }
    a ^= a >>> 15;
    b |= 1;
    const mask = this.#bits.length * 32 - 1;
    return [a & mask, (a + b) & mask, (a + 2 * b) & mask, (a + 3 * b) & mask];
  }

  add(key: string): void {
    for (const place of this.#places(key)) this.#bits[place >>> 5] = (this.#bits[place >>> 5] as number) | (1 << (place & 31));
  }

  mayHave(key: string): boolean {
    return this.#places(key).every((place) => ((this.#bits[place >>> 5] as number) & (1 << (place & 31))) !== 0);
  }
}

/** A request that is carried out, and its answer for when it is sent again. */
export interface Carried { key: string; print: string; answer: string }

const OR_LATER = "ON CONFLICT (key) DO UPDATE SET answer = excluded.answer";
const ASCII = /^[\x20-\x7e]*$/;
const encoder = new TextEncoder();

export const usedForAnother = (): Refusal => new Refusal(422, "invalid_argument", "this idempotency key was used for another request");

/** More keys than this are not read when the object wakes: each request is looked for in the table then. */
const MOST_AT_WAKING = 20_000;

export class Requests {
  readonly #sql: SqlStorage;
  #count = 0;
  #seen: Seen | null = new Seen();

  /** `store`: the table of keys and values that `addWith` writes to; it is there already. */
  constructor(sql: SqlStorage, store: string | null = null) {
    this.#sql = sql;
    sql.exec("CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, print TEXT NOT NULL, answer TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID");
    if (store !== null) {
      sql.exec(`CREATE VIEW IF NOT EXISTS carried AS SELECT k, v, key, print, answer, at FROM ${store}, requests`);
      sql.exec(`CREATE TRIGGER IF NOT EXISTS carry INSTEAD OF INSERT ON carried BEGIN
        INSERT INTO ${store} (k, v) VALUES (NEW.k, NEW.v);
        INSERT INTO requests (key, print, answer, at) VALUES (NEW.key, NEW.print, NEW.answer, NEW.at) ${OR_LATER}; END`);
    }
    let count = 0;
    for (const [key] of sql.exec("SELECT key FROM requests LIMIT ?", MOST_AT_WAKING).raw()) {
      this.#seen?.add(String(key));
      count++;
    }
    if (count >= MOST_AT_WAKING) this.#seen = null;
  }

  /** The answer that was given to this key, or null. A key that was used for something else is refused. */
  find(key: string, print: string): string | null {
    if (!KEY.test(key)) throw new Refusal(400, "invalid_argument", "an idempotency key is 1 to 128 printable ASCII characters");
    // A look that finds nothing costs a tenth of a request.
    if (this.#seen?.mayHave(key) === false) return null;
    for (const row of this.#sql.exec<{ print: string; answer: string }>("SELECT print, answer FROM requests WHERE key = ?", key)) {
      if (!isSame(row.print, print)) throw usedForAnother();
      return row.answer;
    }
    return null;
  }

  /** Belongs into the transaction that carries the request out; a later answer takes the place of an earlier one. */
  add({ key, print, answer }: Carried): void {
    this.#sql.exec(`INSERT INTO requests (key, print, answer, at) VALUES (?, ?, ?, ?) ${OR_LATER}`, key, print, answer, Date.now());
    this.#added(key);
  }

  /**
   * With the first value under a key of the store, both or neither, in one statement: around two there would be a savepoint, which
   * costs as much as they do. False when that could not be done: to store the one and the other says why.
   */
  addWith(name: string, value: Uint8Array, { key, print, answer }: Carried): boolean {
    // The store writes other keys in its own way.
    if (!ASCII.test(name)) return false;
    // A view on a larger buffer would be bound with all of it.
    const { buffer } = value.byteLength === value.buffer.byteLength ? value : value.slice();
    try {
      this.#sql.exec("INSERT INTO carried (k, v, key, print, answer, at) VALUES (?, ?, ?, ?, ?, ?)", encoder.encode(name).buffer, buffer as ArrayBuffer, key, print, answer, Date.now());
    } catch {
      return false;
    }
    this.#added(key);
    return true;
  }

  #added(key: string): void {
    this.#seen?.add(key);
    // With the first one too: an object that sleeps often may never come to so many.
    if (this.#count++ % EVERY === 0) this.#sql.exec("DELETE FROM requests WHERE at < ?", Date.now() - KEPT_MS);
  }
}
