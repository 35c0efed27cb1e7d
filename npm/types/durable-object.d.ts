// The storage of a Cloudflare Durable Object (or a host that speaks its interface) as a backend.
import type { KeyValueBackend } from "./index.js";

/** What is used of `ctx.storage` of a Durable Object whose class has SQLite. */
export interface DurableObjectStorageLike {
  readonly sql: { exec(query: string, ...bindings: Array<ArrayBuffer | string | number | null>): { raw(): Iterable<readonly unknown[]> } };
  transactionSync<T>(work: () => T): T;
}
/**
 * Synchronous, so appends are store-first: in the object's database when they return. Values over 1.9 MB are cut by the
 * module. `table` names the table (`sessionlog_kv`) when an object keeps more than one store.
 */
export function durableObjectBackend(storage: DurableObjectStorageLike, options?: { table?: string }): KeyValueBackend;
