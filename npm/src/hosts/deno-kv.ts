// Deno KV as a backend. Its limits: 64 KiB a value, 100 checks, 1,000 changes and 800 KiB an atomic operation.
import type { KeyValueBackend } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";
import { changes, closed, conflict, sameBytes, type Batch, type Entry, type ListOptions } from "./batches.js";
import { keyBytes, keyOf } from "./key-bytes.js";

type KvKey = readonly [string, Uint8Array];
interface KvEntry { readonly key: readonly unknown[]; readonly value: unknown; readonly versionstamp: string | null }
interface KvAtomic {
  check(check: { key: KvKey; versionstamp: string | null }): unknown;
  set(key: KvKey, value: Uint8Array): unknown;
  delete(key: KvKey): unknown;
  commit(): Promise<{ ok: boolean }>;
}
/** What is used of the result of `Deno.openKv()`. */
export interface DenoKvLike {
  get(key: KvKey): Promise<KvEntry>;
  list(selector: { start: KvKey; end: KvKey }, options: { limit?: number; reverse?: boolean; batchSize?: number }): AsyncIterable<KvEntry>;
  atomic(): KvAtomic;
  close(): void;
}

/** Sixteen of these fit into one atomic operation, whatever they are. */
const MAX_VALUE = 48 * 1024;
const MAX_BATCH = 16;
const MAX_CHANGES = 1_000;
const MAX_CHECKS = 100;
const PAGE = 500;
/** A check is of bytes, the store's of versions: an equal value written again meanwhile is looked at anew. */
const TRIES = 16;

function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new SessionLogError("corrupt", "Deno KV holds a value that is no bytes");
}

/** The backend over an open Deno KV; `prefix` is the first part of every key. */
export function denoKvBackend(kv: DenoKvLike, options: { prefix?: string } = {}): KeyValueBackend {
  if (typeof kv?.atomic !== "function") throw new SessionLogError("invalid_argument", "denoKvBackend takes what Deno.openKv() gives");
  const prefix = options.prefix ?? "sessionlog";
  const at = (key: string): KvKey => [prefix, keyBytes(key)];
  let isOpen = true;
  const guard = async <T>(work: () => Promise<T>): Promise<T> => {
    if (!isOpen) throw closed();
    try {
      return await work();
    } catch (thrown) {
      throw toError(thrown);
    }
  };
  const attempt = async (batch: Batch): Promise<boolean> => {
    const { checks = [] } = batch;
    const found = await Promise.all(checks.map(({ key }) => kv.get(at(key))));
    const operation = kv.atomic();
    for (const [index, { key, equals }] of checks.entries()) {
      const { value, versionstamp } = found[index] as KvEntry;
      if (!sameBytes(versionstamp === null ? null : bytesOf(value), equals)) throw conflict(key);
      operation.check({ key: at(key), versionstamp });
    }
    for (const [key, value] of changes(batch)) {
      if (value === null) operation.delete(at(key));
      else operation.set(at(key), value);
    }
    return (await operation.commit()).ok;
  };
  return {
    name: "deno-kv",
    maxValueBytes: MAX_VALUE,
    maxBatch: MAX_BATCH,
    get: (key) => guard(async () => {
      const { value, versionstamp } = await kv.get(at(key));
      return versionstamp === null ? null : bytesOf(value);
    }),
    list: (start, end, { limit, reverse = false, keysOnly = false }: ListOptions = {}) => guard(async () => {
      const out: Entry[] = [];
      if (!(start < end)) return out;
      const batchSize = Math.min(limit ?? PAGE, PAGE);
      for await (const { key, value } of kv.list({ start: at(start), end: at(end) }, { reverse, batchSize, ...(limit === undefined ? {} : { limit }) })) {
        out.push([keyOf(bytesOf(key[1])), keysOnly ? new Uint8Array() : bytesOf(value)]);
      }
      return out;
    }),
    transact: (batch) => guard(async () => {
      const { checks = [], puts = [], deletes = [] } = batch;
      if (checks.length > MAX_CHECKS || puts.length + deletes.length > MAX_CHANGES) {
        throw new SessionLogError("invalid_argument", `a batch of Deno KV has at most ${MAX_CHECKS} checks and ${MAX_CHANGES} changes`);
      }
      for (let tries = 1; !(await attempt(batch)); tries++) {
        if (tries >= TRIES) throw conflict(checks[0]?.key ?? "");
      }
    }),
    close: () => {
      if (isOpen) kv.close();
      isOpen = false;
    },
  };
}
