// Who may write a session: its fence names the writer's epoch, and who raises it takes the session over.
import type { KeyValueBackend } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";
import { sameBytes } from "./hosts/batches.js";
import { keys, nextFence, type Batch, type Fence } from "./segments.js";
import { parseHeader, type Header } from "./stored.js";

/** So often a take-over is tried while others raise the fence too. */
const TRIES = 8;

/** What a writer knows of the session that it takes over. */
export interface Claim {
  /** The fence that it wrote under. */
  own: Fence;
  /** Fences of its own that it tried to put there after that one, without learning whether they are; more are added. */
  tried: Uint8Array[];
  /** The session; another one may have its id meanwhile. */
  header: Header;
  /** It need not be in the store yet. */
  isNew: boolean;
}

export interface Taken {
  fence: Uint8Array;
  /** Whether the claim's fence was still in force, so that nobody else can have written or read since. */
  unbroken: boolean;
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
  return (await takeOverFrom(backend, id)).fence;
}

/** The same for who has written the session before. */
export async function takeOverFrom(backend: KeyValueBackend, id: string, claim?: Claim): Promise<Taken> {
  for (let tries = 0; ; tries++) {
    const [held, header] = await Promise.all([backend.get(keys.fence(id)), backend.get(keys.header(id))]);
    const { batch, ...taken } = raise(id, claim, held, header);
    try {
      if (batch !== null) await backend.transact(batch);
      return taken;
    } catch (thrown) {
      const error = toError(thrown);
      if (error.code !== "conflict" || tries >= TRIES) throw error;
      await backOff(tries);
    }
  }
}

/** The same where the store finishes before it returns. */
export function takeOverNow(backend: KeyValueBackend, id: string, claim: Claim): Taken {
  for (let tries = 0; ; tries++) {
    const { batch, ...taken } = raise(id, claim, backend.get(keys.fence(id)) as Fence, backend.get(keys.header(id)) as Fence);
    try {
      if (batch !== null) void backend.transact(batch);
      return taken;
    } catch (thrown) {
      const error = toError(thrown);
      if (error.code !== "conflict" || tries >= TRIES) throw error;
    }
  }
}

/** What raises the fence that is `held`: nothing when it is one of the claim's own whose answer was lost. */
function raise(id: string, claim: Claim | undefined, held: Fence, header: Fence): Taken & { batch: Batch | null } {
  // A fence that is raised for a session which is deleted meanwhile would be left behind, and its writer would go on.
  if (header === null ? claim?.isNew !== true : !isStill(header, id, claim?.header)) throw claim?.isNew === true ? isTaken(id) : isGone(id);
  const { own = null, tried = [] } = claim ?? {};
  if (held !== null && tried.some((fence) => sameBytes(fence, held))) return { fence: held, unbroken: true, batch: null };
  const fence = nextFence(held);
  const unbroken = sameBytes(held, own);
  // Only a try that followed on our own fence says, should it stand there later, that nobody came in between.
  if (unbroken) tried.push(fence);
  const checks = [{ key: keys.fence(id), equals: held }, { key: keys.header(id), equals: header }];
  return { fence, unbroken, batch: { checks, puts: [[keys.fence(id), fence]] } };
}

/** Whether there is a session under this header, and that one if it is known; a header that cannot be read is somebody's all the same. */
export function isStill(header: Uint8Array, id: string, known?: Header | null): boolean {
  try {
    const { text, gone } = parseHeader(header, id);
    return gone !== true && (known?.text ?? text) === text;
  } catch {
    return true;
  }
}

const isTaken = (id: string): SessionLogError => new SessionLogError("already_exists", "the store has another session of that id", { id });
export const isGone = (id: string): SessionLogError => new SessionLogError("missing", "the session is gone from the store", { id });
