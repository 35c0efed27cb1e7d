// What was carried out already, by the key that the client gave it: the same key again gets the same answer and does nothing.
import { Refusal } from "./refusal.js";

const KEPT_MS = 24 * 3_600_000;
/** How often what is too old is thrown away. */
const EVERY = 1_000;
const KEY = /^[\x21-\x7e]{1,128}$/;

/** FNV-1a: tells an honest mistake (one key, two requests), not an attack. */
export function fingerprint(bytes: Uint8Array): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < bytes.length; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  return `${bytes.length}.${(hash >>> 0).toString(16)}`;
}

export class Requests {
  readonly #sql: SqlStorage;
  #count = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec("CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, print TEXT NOT NULL, answer TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID");
  }

  /** The answer that was given to this key, or null. A key that was used for something else is refused. */
  find(key: string, print: string): string | null {
    if (!KEY.test(key)) throw new Refusal(400, "invalid_argument", "an idempotency key is 1 to 128 printable ASCII characters");
    for (const row of this.#sql.exec<{ print: string; answer: string }>("SELECT print, answer FROM requests WHERE key = ?", key)) {
      if (row.print !== print) throw new Refusal(422, "invalid_argument", "this idempotency key was used for another request");
      return row.answer;
    }
    return null;
  }

  /** Belongs into the transaction that carries the request out. */
  add(key: string, print: string, answer: string): void {
    const now = Date.now();
    this.#sql.exec("INSERT INTO requests (key, print, answer, at) VALUES (?, ?, ?, ?)", key, print, answer, now);
    if (++this.#count % EVERY === 0) this.#sql.exec("DELETE FROM requests WHERE at < ?", now - KEPT_MS);
  }
}
