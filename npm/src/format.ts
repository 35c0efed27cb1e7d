// Which format a store has: older ones are brought up to date step by step, newer ones are read and left alone.
import type { KeyValueBackend } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";
import { STEPS, type Step } from "./migrations/index.js";
import { formatRecord, keys } from "./segments.js";

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

function versionOf(record: Uint8Array): number {
  let version: unknown;
  try {
    version = (JSON.parse(text(record)) as { version?: unknown } | null)?.version;
  } catch (cause) {
    throw new SessionLogError("corrupt", "the store's format record cannot be read", {}, cause);
  }
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1) throw new SessionLogError("corrupt", "the store's format record names no version");
  return version;
}

/** The format record of a version. */
function recordOf(version: number): Uint8Array {
  const own = JSON.parse(text(formatRecord())) as { [key: string]: unknown };
  return new TextEncoder().encode(JSON.stringify({ ...own, version }));
}

/**
 * Brings a store up to `own`. Each step may be stopped anywhere and is then run again from its start, because the format
 * record is raised only when it is done; of two tabs that migrate at once, the one that comes second goes on from there.
 */
export async function migrate(backend: KeyValueBackend, own: number, steps: readonly Step[]): Promise<void> {
  for (;;) {
    const record = await backend.get(keys.format());
    if (record === null) return;
    const version = versionOf(record);
    if (version >= own) return;
    const step = steps.find(({ from }) => from === version);
    if (step === undefined) throw new SessionLogError("corrupt", `there is no way from format ${version} to ${own}`, { version });
    await step.run(backend);
    try {
      await backend.transact({ checks: [{ key: keys.format(), equals: record }], puts: [[keys.format(), recordOf(version + 1)]] });
    } catch (thrown) {
      if (toError(thrown).code !== "conflict") throw thrown;
    }
  }
}

/** The backend to work with: as it is, or one that only reads when the store was written by a newer version. */
export async function openFormat(backend: KeyValueBackend): Promise<{ backend: KeyValueBackend; tooNew: SessionLogError | null }> {
  const record = await backend.get(keys.format());
  const own = versionOf(formatRecord());
  const version = record === null ? own : versionOf(record);
  if (version < own) await migrate(backend, own, STEPS);
  if (version <= own) return { backend, tooNew: null };
  const tooNew = new SessionLogError("newer_format", `the store was written by a newer version (format ${version}): it is read only`, { version, supported: own });
  return { backend: readOnly(backend, tooNew), tooNew };
}

function readOnly(backend: KeyValueBackend, why: SessionLogError): KeyValueBackend {
  return {
    ...backend,
    get: (key) => backend.get(key),
    list: (start, end, options) => backend.list(start, end, options),
    transact: () => {
      if (backend.sync === true) throw why;
      return Promise.reject(why);
    },
    close: () => backend.close?.(),
  };
}
