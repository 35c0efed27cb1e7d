// Batches on a live IndexedDB handle, issued from here: a call that the module makes into IndexedDB costs several times as much.
// What goes wrong, other than a check, is the module's to sort out: it opens anew, tries once more and names the fault.
import { SessionLogError } from "./errors.js";
import { isAdded, type RangedBatch } from "./hosts/batches.js";

/** The object store's name, as the module has it. */
const STORE = "kv";

const conflict = (key: string): SessionLogError => new SessionLogError("conflict", "another writer was first", { key });

function isSame(found: unknown, expected: Uint8Array | null): boolean {
  if (expected === null || !(found instanceof Uint8Array)) return expected === null && found === undefined;
  return found.length === expected.length && found.every((byte, at) => byte === expected[at]);
}

/** Whether a batch is of the shape of the contract; the module says what is wrong with one that is not. */
export function isPlainBatch(batch: RangedBatch): boolean {
  const { checks = [], puts = [], deletes = [] } = batch ?? {};
  return (
    Array.isArray(checks) && checks.every((check) => typeof check?.key === "string" && (check.equals === null || check.equals instanceof Uint8Array)) &&
    Array.isArray(puts) && puts.every((put) => typeof put?.[0] === "string" && put[1] instanceof Uint8Array) &&
    Array.isArray(deletes) && deletes.every((key) => typeof key === "string")
  );
}

/** A transaction for a batch that is still being made, in this turn; one that nothing was asked of ends by itself. */
export class Begun {
  readonly transaction: IDBTransaction;
  /** What the batch will ask for and is under way. */
  readonly asked = new Map<string, IDBRequest>();

  constructor(readonly db: IDBDatabase, isStrict: boolean) {
    this.transaction = db.transaction(STORE, "readwrite", { durability: isStrict ? "strict" : "relaxed" });
  }

  put(key: string, value: Uint8Array, isNew: boolean): void {
    const store = this.transaction.objectStore(STORE);
    this.asked.set(key, isNew ? store.add(value, key) : store.put(value, key));
  }

  /** The batch does not come: nothing of it may stand. */
  drop(): void {
    try {
      this.transaction.abort();
    } catch {
      // It has ended, with nothing in it.
    }
  }
}

function commit(transaction: IDBTransaction): void {
  try {
    transaction.commit?.();
  } catch {
    // It has ended, and says so itself.
  }
}

/**
 * Resolves with true when the transaction is complete, and with false when it came to nothing for a reason other than a
 * check; rejects with `conflict`. Everything is issued in one go, and nothing is awaited while the transaction lives.
 */
export function transactOn(db: IDBDatabase, batch: RangedBatch, isStrict: boolean, begun: Begun | null = null): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let verdict: SessionLogError | null = null;
    /** The key of the one check, when the last request makes it. */
    let last: string | null = null;
    let hasFailed = false;
    let ahead: Begun;
    try {
      ahead = begun ?? new Begun(db, isStrict);
    } catch {
      return resolve(false);
    }
    const { transaction, asked } = ahead;
    transaction.oncomplete = () => (verdict === null ? resolve(!hasFailed) : reject(verdict));
    transaction.onerror = () => {
      hasFailed = true;
    };
    // Quota fires only this one.
    transaction.onabort = () => {
      // A request that fails while its transaction is being committed has no error of its own.
      if (last !== null && transaction.error?.name === "ConstraintError") verdict ??= conflict(last);
      if (verdict === null) resolve(false);
      else reject(verdict);
    };
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
      if (batch.deleted !== undefined) store.delete(IDBKeyRange.bound(...batch.deleted, false, true));
      else for (const key of batch.deletes ?? []) store.delete(key);
      for (const [key, value] of batch.puts ?? []) if (!added.has(key) && !asked.has(key)) store.put(value, key);
      for (const [key, value] of batch.puts ?? []) {
        if (!added.has(key)) continue;
        (asked.get(key) ?? store.add(value, key)).onerror = (event) => {
          event.stopPropagation();
          hasFailed = true;
          if ((event.target as IDBRequest).error?.name === "ConstraintError") verdict ??= conflict(key);
        };
      }
      if (added.size !== 1 || batch.checks?.length !== 1 || asked.size > 0) return;
      // Saves the way there and back that the database takes to ask whether more will come: a third of the time of a write. Only
      // where the request that may be refused is the last one: Firefox writes the others when it is not.
      last = batch.checks[0]?.key ?? null;
      // Behind whatever was asked for in this turn: what ends the transaction goes first.
      queueMicrotask(() => commit(transaction));
    } catch {
      try {
        transaction.abort();
      } catch {
        resolve(false);
      }
    }
  });
}
