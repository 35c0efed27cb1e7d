// Who may write a session: its fence names the writer's epoch, and who raises it takes the session over.
import type { KeyValueBackend } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";
import { call } from "./runtime.js";
import { keys, sameBytes, type Fence } from "./segments.js";
import { parseHeader } from "./stored.js";

/** The fence of a session's first writer. */
export function firstFence(): Uint8Array {
  return call((m) => m.raw_next_fence(undefined));
}

/** Waits a while of chance, longer each time: writers that got into each other's way do not do so again. */
export function backOff(tries: number): Promise<void> {
  const ms = Math.random() * Math.min(400, 5 * 2 ** tries);
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Takes a session over: raises its epoch, so that no write of an earlier holder can arrive any more. Read the session after
 * this, not before. Loses a race with `conflict` only after several tries; `missing` when the session is gone.
 */
export async function takeOver(backend: KeyValueBackend, id: string): Promise<Uint8Array> {
  return (await takeOverFrom(backend, id, null)).fence;
}

/**
 * The same, and says whether `own` was still in force, so that nobody else can have written or read since. A session that is
 * `isNew` need not be in the store yet.
 */
export async function takeOverFrom(backend: KeyValueBackend, id: string, own: Fence, isNew = false): Promise<{ fence: Uint8Array; unbroken: boolean }> {
  const key = keys.fence(id);
  const headerKey = keys.header(id);
  for (let tries = 0; ; tries++) {
    const [held, header] = await Promise.all([backend.get(key), backend.get(headerKey)]);
    // A fence that is raised for a session which is deleted meanwhile would be left behind, and its writer would go on.
    if (isGone(header, id) && !isNew) throw new SessionLogError("missing", "the session is gone from the store", { id });
    const next = call((m) => m.raw_next_fence(held ?? undefined));
    try {
      await backend.transact({ checks: [{ key, equals: held }, { key: headerKey, equals: header }], puts: [[key, next]] });
      return { fence: next, unbroken: sameBytes(held, own) };
    } catch (thrown) {
      const error = toError(thrown);
      if (error.code !== "conflict" || tries >= 8) throw error;
      await backOff(tries);
      // An acknowledgement that got lost looks like a conflict; an epoch that is ours alone cannot be told from it, so
      // the next one is taken.
    }
  }
}

/** Whether there is no session under this header; one that cannot be read is somebody's all the same. */
function isGone(header: Uint8Array | null, id: string): boolean {
  if (header === null) return true;
  try {
    return parseHeader(header, id).gone === true;
  } catch {
    return false;
  }
}
