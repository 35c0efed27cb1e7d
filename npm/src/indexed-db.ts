// Batches on a live IndexedDB handle, issued from here: a call that the module makes into IndexedDB costs several times as much.
// What goes wrong, other than a check, is the module's to sort out: it opens anew, tries once more and names the fault.
import type { KeyValueBackend } from "../types/index.js";
import { SessionLogError } from "./errors.js";

type Batch = Parameters<KeyValueBackend["transact"]>[0];

/** The object store's name, as the module has it. */
const STORE = "kv";

const conflict = (key: string): SessionLogError => new SessionLogError("conflict", "another writer was first", { key });

/** Whether the key of a check for absence is put once and deleted never: then the database itself refuses a second one. */
function isAdded(batch: Batch, key: string): boolean {
  return batch.deletes?.includes(key) !== true && batch.puts?.filter(([put]) => put === key).length === 1;
}

function isSame(found: unknown, expected: Uint8Array | null): boolean {
  if (expected === null || !(found instanceof Uint8Array)) return expected === null && found === undefined;
  return found.length === expected.length && found.every((byte, at) => byte === expected[at]);
}

/** Whether a batch is of the shape of the contract; the module says what is wrong with one that is not. */
export function isPlainBatch(batch: Batch): boolean {
  const { checks = [], puts = [], deletes = [] } = batch ?? {};
  return (
    Array.isArray(checks) && checks.every((check) => typeof check?.key === "string" && (check.equals === null || check.equals instanceof Uint8Array)) &&
    Array.isArray(puts) && puts.every((put) => typeof put?.[0] === "string" && put[1] instanceof Uint8Array) &&
    Array.isArray(deletes) && deletes.every((key) => typeof key === "string")
  );
}

/**
 * Resolves with true when the transaction is complete, and with false when it came to nothing for a reason other than a
 * check; rejects with `conflict`. Everything is issued in one go, and nothing is awaited while the transaction lives.
 */
export function transactOn(db: IDBDatabase, batch: Batch, isStrict: boolean): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let verdict: SessionLogError | null = null;
    let transaction: IDBTransaction;
    try {
      transaction = db.transaction(STORE, "readwrite", { durability: isStrict ? "strict" : "relaxed" });
    } catch {
      return resolve(false);
    }
    transaction.oncomplete = () => resolve(true);
    // Quota fires only this one.
    transaction.onabort = () => (verdict === null ? resolve(false) : reject(verdict));
    const refuse = (key: string): void => {
      verdict ??= conflict(key);
      try {
        transaction.abort();
      } catch {
        // It is ending already.
      }
    };
    try {
      const store = transaction.objectStore(STORE);
      const added = new Set<string>();
      for (const { key, equals } of batch.checks ?? []) {
        if (equals === null && isAdded(batch, key)) {
          added.add(key);
          continue;
        }
        const request = store.get(key);
        request.onsuccess = () => {
          if (!isSame(request.result, equals)) refuse(key);
        };
      }
      for (const key of batch.deletes ?? []) store.delete(key);
      for (const [key, value] of batch.puts ?? []) {
        if (!added.has(key)) {
          store.put(value, key);
          continue;
        }
        store.add(value, key).onerror = (event) => {
          event.stopPropagation();
          if ((event.target as IDBRequest).error?.name === "ConstraintError") verdict ??= conflict(key);
        };
      }
    } catch {
      try {
        transaction.abort();
      } catch {
        resolve(false);
      }
    }
  });
}
