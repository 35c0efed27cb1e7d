// The storage of a Durable Object with SQLite as a backend. Synchronous: an append is in the object's database when it
// returns, and nothing leaves the object before the database is on disk (the runtime's output gate).
import type { KeyValueBackend } from "../../types/index.js";
import { SessionLogError } from "../errors.js";
import { sqlBackend, type SqlValue } from "./sql.js";

/** What is used of `ctx.storage` of a Durable Object whose class has SQLite. */
export interface DurableObjectStorageLike {
  readonly sql: { exec(query: string, ...bindings: Array<ArrayBuffer | string | number | null>): { raw(): Iterable<readonly unknown[]> } };
  transactionSync<T>(work: () => T): T;
}

/** A row holds at most 2 MB, its key included. */
const MAX_VALUE = 1_900_000;
const MAX_BATCH = 1_000;

const bound = (value: SqlValue): ArrayBuffer | string | number | null => (value instanceof Uint8Array ? value.buffer : value);

/** The backend of one object; `table` names the table when the object keeps more than one store. */
export function durableObjectBackend(storage: DurableObjectStorageLike, options: { table?: string } = {}): KeyValueBackend {
  const { sql } = storage ?? {};
  if (typeof sql?.exec !== "function" || typeof storage.transactionSync !== "function") {
    throw new SessionLogError("invalid_argument", "durableObjectBackend takes ctx.storage of a Durable Object whose class has SQLite (new_sqlite_classes)");
  }
  return sqlBackend(
    {
      rows: (query, values) => sql.exec(query, ...values.map(bound)).raw(),
      run: (query, values) => void sql.exec(query, ...values.map(bound)),
      atomically: (work) => storage.transactionSync(work),
      close: () => {},
    },
    { name: "durable-object", sync: true, maxValueBytes: MAX_VALUE, maxBatch: MAX_BATCH, ...options },
  );
}
