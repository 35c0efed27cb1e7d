// Encryption at rest: a backend around a backend. Keys stay readable, values do not; without the CryptoKey they are noise.
import type { KeyValueBackend } from "../types/index.js";
import { sharesWith } from "./backends.js";
import { base64Of } from "./blobs.js";
import { SessionLogError } from "./errors.js";
import { sameBytes } from "./hosts/batches.js";

type Batch = Parameters<KeyValueBackend["transact"]>[0];
type Bytes = Uint8Array<ArrayBuffer>;

const VERSION = 1;
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Version, initialisation vector, authentication tag. */
const OVERHEAD = 1 + IV_BYTES + TAG_BYTES;
const encoder = new TextEncoder();

const bytes = (value: Uint8Array): Bytes => value as Bytes;

/**
 * What is read instead of a value that does not decrypt: all of its bytes, on one line. Never as they stand there, for who can write to
 * the store but has no key could then put in what is believed.
 */
const damaged = (stored: Uint8Array): Uint8Array => encoder.encode(`\0 this does not decrypt: ${base64Of(stored)}`);

/** A value belongs to its key: one that was moved to another key does not decrypt. */
const parameters = (key: string, iv: Uint8Array): AesGcmParams => ({ name: "AES-GCM", iv: bytes(iv), additionalData: encoder.encode(key) });

/**
 * Wraps `inner` so that every value is encrypted with AES-GCM under `secret` (a CryptoKey for AES-GCM with the usages
 * "encrypt" and "decrypt"). Keys, and so session ids, stay readable; sizes and times show. Dropping the key erases.
 */
export function encrypted(inner: KeyValueBackend, secret: CryptoKey): KeyValueBackend {
  const crypto = globalThis.crypto?.subtle;
  if (crypto === undefined) throw new SessionLogError("unavailable", "this environment has no Web Crypto (a page must be served over https or from localhost)");
  if (secret?.algorithm?.name !== "AES-GCM") throw new SessionLogError("invalid_argument", "encrypted takes a CryptoKey for AES-GCM");

  const seal = async (key: string, value: Uint8Array): Promise<Uint8Array> => {
    const iv = globalThis.crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const sealed = new Uint8Array(await crypto.encrypt(parameters(key, iv), secret, bytes(value)));
    const out = new Uint8Array(1 + IV_BYTES + sealed.length);
    out[0] = VERSION;
    out.set(iv, 1);
    out.set(sealed, 1 + IV_BYTES);
    return out;
  };
  /** Whether something has come out under this key: then it is the right one, and what does not is damaged. */
  let fits = false;
  const open = async (key: string, stored: Uint8Array): Promise<Uint8Array> => {
    if (stored.length < OVERHEAD || stored[0] !== VERSION) throw new SessionLogError("corrupt", "a stored value is not encrypted, or was encrypted by a newer version", { key });
    try {
      const iv = stored.subarray(1, 1 + IV_BYTES);
      const value = new Uint8Array(await crypto.decrypt(parameters(key, iv), secret, bytes(stored.subarray(1 + IV_BYTES))));
      fits = true;
      return value;
    } catch (cause) {
      throw new SessionLogError("corrupt", "a stored value does not decrypt with this key", { key }, cause);
    }
  };
  /** A damaged value costs itself alone: whoever reads it finds a line that is none of theirs, and keeps it. */
  const unseal = async (key: string, stored: Uint8Array): Promise<Uint8Array> => {
    try {
      return await open(key, stored);
    } catch (thrown) {
      if (!fits) throw thrown;
      return damaged(stored);
    }
  };
  /** Values that are read together; each of them may be the one that says whether the key fits. */
  const unsealAll = async (found: Array<[string, Uint8Array]>): Promise<Array<[string, Uint8Array]>> => {
    const tried = await Promise.allSettled(found.map(([key, stored]) => open(key, stored)));
    if (!fits) for (const result of tried) if (result.status === "rejected") throw result.reason;
    return found.map(([key, stored], i) => [key, tried[i]?.status === "fulfilled" ? tried[i].value : damaged(stored)]);
  };
  /** The same text never encrypts to the same bytes: a check is made against what stands there now. */
  const sealCheck = async ({ key, equals }: { key: string; equals: Uint8Array | null }): Promise<{ key: string; equals: Uint8Array | null }> => {
    if (equals === null) return { key, equals };
    const stored = await inner.get(key);
    if (stored === null || !sameBytes(await unseal(key, stored), equals)) throw new SessionLogError("conflict", "another writer was first", { key });
    return { key, equals: stored };
  };

  const outer: KeyValueBackend = {
    name: `encrypted ${inner.name}`,
    ...(inner.peers === undefined ? {} : { peers: inner.peers }),
    async get(key) {
      const stored = await inner.get(key);
      return stored === null ? null : unseal(key, stored);
    },
    async list(start, end, options) {
      const found = await inner.list(start, end, options);
      if (options?.keysOnly === true) return found;
      return unsealAll(found);
    },
    async transact(batch: Batch) {
      // Everything is worked out before the inner store opens a transaction.
      const puts = await Promise.all((batch.puts ?? []).map(async ([key, value]): Promise<[string, Uint8Array]> => [key, await seal(key, value)]));
      const checks = await Promise.all((batch.checks ?? []).map(sealCheck));
      await inner.transact({ checks, puts, deletes: batch.deletes ?? [] });
    },
    async close() {
      await inner.close?.();
    },
  };
  // A store elsewhere may learn its limits later.
  const limit = (name: "maxValueBytes" | "maxBatch" | "maxBatchBytes", overhead: number): void => {
    if (inner[name] !== undefined) Object.defineProperty(outer, name, { enumerable: true, get: () => (inner[name] as number) - overhead });
  };
  limit("maxValueBytes", OVERHEAD);
  limit("maxBatch", 0);
  limit("maxBatchBytes", OVERHEAD * (inner.maxBatch ?? 0));
  return sharesWith(inner, outer);
}
