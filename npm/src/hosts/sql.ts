// One table of keys and values in any SQLite that answers synchronously.
import type { KeyValueBackend } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";
import { closed, conflict, isAdded, sameBytes, type Entry, type ListOptions, type RangedBatch } from "./batches.js";
import { keyBytes, keyOf } from "./key-bytes.js";

export type SqlValue = Uint8Array<ArrayBuffer> | ArrayBuffer | string | number | null;

/** The little that is asked of a database. */
export interface SqlEngine {
  rows(sql: string, values: SqlValue[]): Iterable<readonly unknown[]>;
  run(sql: string, values: SqlValue[]): void;
  /** All that `work` does, or nothing when it throws. */
  atomically(work: () => void): void;
  close(): void;
}

export interface SqlShape { name: string; table?: string; sync: boolean; maxValueBytes: number; maxBatch: number }

function bytesOf(value: unknown): Uint8Array<ArrayBuffer> {
  if (value instanceof Uint8Array) return value.slice() as Uint8Array<ArrayBuffer>;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  // Some drivers give an empty value as nothing.
  if (value === null) return new Uint8Array();
  throw new SessionLogError("corrupt", "the table holds a value that is no bytes");
}

function sqlError(thrown: unknown): SessionLogError {
  if (thrown instanceof SessionLogError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  if (/SQLITE_FULL|database or disk is full|TOOBIG|too big/i.test(text)) return new SessionLogError("quota", text, {}, thrown);
  if (/SQLITE_BUSY|database is locked|SQLITE_LOCKED/i.test(text)) return new SessionLogError("locked", text, {}, thrown);
  if (/SQLITE_CORRUPT|malformed|not a database/i.test(text)) return new SessionLogError("corrupt", text, {}, thrown);
  return toError(thrown);
}

/** A backend over one table, which is made when it is not there. */
export function sqlBackend(engine: SqlEngine, shape: SqlShape): KeyValueBackend {
  const { table = "sessionlog_kv", name, sync, maxValueBytes, maxBatch } = shape;
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(table)) throw new SessionLogError("invalid_argument", "the name of a table is 1 to 63 of [A-Za-z0-9_]");
  let isOpen = true;
  const guard = <T>(work: () => T): T => {
    if (!isOpen) throw closed();
    try {
      return work();
    } catch (thrown) {
      throw sqlError(thrown);
    }
  };
  guard(() => engine.run(`CREATE TABLE IF NOT EXISTS ${table} (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID`, []));

  const select = `SELECT v FROM ${table} WHERE k = ?`;
  // An empty value is bound as nothing by some drivers.
  const upsert = `INSERT INTO ${table} (k, v) VALUES (?, ifnull(?, zeroblob(0))) ON CONFLICT (k) DO UPDATE SET v = excluded.v`;
  const insert = `INSERT INTO ${table} (k, v) VALUES (?, ifnull(?, zeroblob(0)))`;
  const remove = `DELETE FROM ${table} WHERE k = ?`;
  const removeRange = `DELETE FROM ${table} WHERE k >= ? AND k < ?`;

  const read = (key: string): Uint8Array | null => {
    for (const [value] of engine.rows(select, [keyBytes(key)])) return bytesOf(value);
    return null;
  };
  const list = (start: string, end: string, { limit = -1, reverse = false, keysOnly = false }: ListOptions = {}): Entry[] => {
    if (!(start < end)) return [];
    const order = reverse ? "DESC" : "ASC";
    const sql = `SELECT k${keysOnly ? "" : ", v"} FROM ${table} WHERE k >= ? AND k < ? ORDER BY k ${order} LIMIT ?`;
    const out: Entry[] = [];
    for (const [key, value] of engine.rows(sql, [keyBytes(start), keyBytes(end), limit])) out.push([keyOf(bytesOf(key)), keysOnly ? new Uint8Array() : bytesOf(value)]);
    return out;
  };
  const add = (key: string, row: SqlValue[]): void => {
    try {
      engine.run(insert, row);
    } catch (thrown) {
      // Each driver says in its own words that the key is taken.
      throw read(key) === null ? thrown : conflict(key);
    }
  };
  const transact = ({ checks = [], puts = [], deletes = [], deleted }: RangedBatch): void => {
    engine.atomically(() => {
      const added = new Set<string>();
      for (const { key, equals } of checks) {
        if (equals === null && isAdded({ puts, deletes }, key)) added.add(key);
        else if (!sameBytes(read(key), equals)) throw conflict(key);
      }
      if (deleted !== undefined) engine.run(removeRange, deleted.map(keyBytes));
      else for (const key of deletes) engine.run(remove, [keyBytes(key)]);
      for (const [key, value] of puts) {
        // A view on a larger buffer would be bound with all of it by some drivers.
        const row = [keyBytes(key), value.byteLength === value.buffer.byteLength ? (value as Uint8Array<ArrayBuffer>) : value.slice()];
        if (added.has(key)) add(key, row);
        else engine.run(upsert, row);
      }
    });
  };
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    engine.close();
  };
  const settle = sync
    ? <T>(work: () => T): T => guard(work)
    : async <T>(work: () => T): Promise<T> => guard(work);
  return {
    name, maxValueBytes, maxBatch,
    ...(sync ? { sync } : {}),
    get: (key) => settle(() => read(key)),
    list: (start, end, options) => settle(() => list(start, end, options)),
    transact: (batch) => settle(() => transact(batch)),
    close,
  };
}
