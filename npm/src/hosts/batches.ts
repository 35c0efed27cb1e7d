// What backends outside the module have in common.
import type { KeyValueBackend } from "../../types/index.js";
import { SessionLogError } from "../errors.js";

export type Batch = Parameters<KeyValueBackend["transact"]>[0];
/** `deleted` is a range that holds the keys of `deletes` and no others that exist: a store of ours may take it for them. */
export type RangedBatch = Batch & { deleted?: readonly [string, string] };
export type ListOptions = NonNullable<Parameters<KeyValueBackend["list"]>[2]>;
export type Entry = [string, Uint8Array];

/** Whether a check holds for what stands there. */
export function sameBytes(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === null || b === null) return a === b;
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

/** Whether the key of a check for absence is put once and deleted never: a store that refuses a second one needs no look before. */
export function isAdded({ puts = [], deletes = [] }: Pick<Batch, "puts" | "deletes">, key: string): boolean {
  return !deletes.includes(key) && puts.filter(([put]) => put === key).length === 1;
}

export function conflict(key: string): SessionLogError {
  return new SessionLogError("conflict", "another writer was first", { key });
}

export function closed(): SessionLogError {
  return new SessionLogError("disposed", "the storage was closed");
}

/** What a batch leaves behind, one change per key: deletes come before puts, and the last put of a key counts. */
export function changes({ puts = [], deletes = [] }: Batch): Map<string, Uint8Array | null> {
  const out = new Map<string, Uint8Array | null>();
  for (const key of deletes) out.set(key, null);
  for (const [key, value] of puts) out.set(key, value);
  return out;
}
