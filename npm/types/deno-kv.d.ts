// Deno KV as a backend: `denoKvBackend(await Deno.openKv())`.
import type { KeyValueBackend } from "./index.js";

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
/**
 * Values over 48 KiB are cut by the module, and at most sixteen go into one atomic operation. A list of more than 500
 * keys is read in several steps, so it may see batches that are written meanwhile in part. Closing it closes `kv`.
 */
export function denoKvBackend(kv: DenoKvLike, options?: { prefix?: string }): KeyValueBackend;
