// Who writes a session when several tabs have it open: a lock per session, held by the writer; the others wait for it.
// Where there are no locks, the store's own conditional writes keep the log whole.

import type { StorePeers } from "../types/index.js";

export interface Lease {
  /** Whether this tab writes. */
  readonly held: boolean;
  /** Whether nobody else can: a lock says so, and none has taken it away. */
  isSole?(): boolean;
  release(): void;
}

interface Locks {
  request(name: string, options: { ifAvailable?: boolean; signal?: AbortSignal }, work: (lock: unknown) => Promise<unknown> | unknown): Promise<unknown>;
}

const locksOf = (): Locks | undefined => (globalThis as { navigator?: { locks?: Locks } }).navigator?.locks;

interface Held {
  isSole(): boolean;
  release(): void;
}

/** Holds a lock until `release` is called; null when it is not free (or, with a time, did not become so). */
async function hold(locks: Locks, name: string, options: { ifAvailable?: boolean; signal?: AbortSignal }): Promise<Held | null> {
  let isSole = true;
  let release: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    release = () => {
      isSole = false;
      resolve();
    };
  });
  return new Promise((resolve, reject) => {
    locks.request(name, options, (lock) => {
      resolve(lock === null ? null : { isSole: () => isSole, release });
      return lock === null ? undefined : held;
    }).catch((thrown: unknown) => {
      // Somebody stole it.
      isSole = false;
      reject(thrown);
    });
  });
}

/**
 * Asks for the lease of `name`. Waits up to `waitMs`; after that this tab follows, and `onLead` is called once when the
 * writer has gone.
 */
export async function takeLease(name: string | null, waitMs: number, onLead: () => void): Promise<Lease> {
  const locks = locksOf();
  if (name === null || locks === undefined) return { held: true, release: () => {} };
  const free = await hold(locks, name, { ifAvailable: true });
  if (free !== null) return { held: true, ...free };
  const waiting = new AbortController();
  const later = hold(locks, name, { signal: waiting.signal });
  if (waitMs > 0) {
    const won = await inTime(later, waitMs);
    if (won !== null) return { held: true, ...won };
  }
  let ended = false;
  let own: Held | null = null;
  later.then(
    (won) => {
      own = won;
      if (ended) won?.release();
      else if (won !== null) onLead();
    },
    () => {},
  );
  return {
    held: false,
    isSole: () => own?.isSole() === true,
    release: () => {
      ended = true;
      waiting.abort();
      own?.release();
    },
  };
}

async function inTime<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** So long after word of a session no other word of it is given: a message costs as much as a write. */
const REST_MS = 30;

/** Word between tabs that a session has grown. */
export class Channel {
  #channel: BroadcastChannel | null = null;
  #peers: StorePeers | undefined;
  #unhear: (() => void) | undefined;

  constructor(name: string | null, peers: StorePeers | undefined, onGrown: (id: string, seq: number) => void) {
    this.#peers = peers;
    this.#unhear = peers?.hear((id, word) => {
      const { grown } = (word ?? {}) as { grown?: unknown };
      if (typeof grown === "number") onGrown(id, grown);
    });
    if (name === null || typeof BroadcastChannel !== "function") return;
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = ({ data }: MessageEvent<unknown>) => {
      const { id, seq } = (data ?? {}) as { id?: unknown; seq?: unknown };
      if (typeof id === "string" && typeof seq === "number") onGrown(id, seq);
    };
    // Listening keeps no process alive.
    (this.#channel as unknown as { unref?: () => void }).unref?.();
  }

  /** The store holds the first `seq` events of a session. Tabs are told at once, and again at the end of a run of writes. */
  grown(id: string, seq: number): void {
    this.#peers?.tell(id, { grown: seq });
    this.#post(id, seq);
  }

  #post(id: string, seq: number): void {
    if (this.#channel === null) return;
    if (this.#resting.has(id)) return void this.#resting.set(id, seq);
    this.#channel.postMessage({ id, seq });
    this.#resting.set(id, 0);
    const timer = setTimeout(() => {
      const newer = this.#resting.get(id) ?? 0;
      this.#resting.delete(id);
      if (newer > 0) this.#post(id, newer);
    }, REST_MS);
    (timer as { unref?: () => void }).unref?.();
  }
  /** Sessions that were told of just now, and what there is to tell of them since. */
  #resting = new Map<string, number>();

  close(): void {
    this.#unhear?.();
    for (const [id, seq] of this.#resting) if (seq > 0) this.#channel?.postMessage({ id, seq });
    this.#channel?.close();
    this.#channel = null;
  }
}
