// Write-behind for one session: what is in memory goes to the backend in order, one segment per flush, each batch
// conditional on the head that this writer knows. A failed write stays in the backlog and is tried again.
import type { KeyValueBackend } from "../types/index.js";
import type { RawSession } from "./glue.js";
import { call } from "./runtime.js";
import { SessionLogError, toError } from "./errors.js";

/** Deltas wait this long for company; user and tool events do not wait. */
export const FLUSH_INTERVAL_MS = 100;
const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 30_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const encode = (text: string): Uint8Array => encoder.encode(text);
export const decode = (bytes: Uint8Array): string => decoder.decode(bytes);

/** The small record that stands for a session's log in the store. */
export interface Head {
  format: 1;
  header: { [key: string]: unknown };
  /** Grows with every writer that takes over, so that a stale one can be told. */
  epoch: number;
  seq: number;
  digest: string;
  /** Where the first events are when this session was forked. */
  base?: { id: string; count: number };
  /** Deleted, but forks still need its first events. */
  gone?: true;
}

export const headKey = (id: string): string => `s/${id}/h`;
export const segmentKey = (id: string, from: number): string => `s/${id}/e/${String(from).padStart(16, "0")}`;
export const segmentRange = (id: string): [string, string] => [`s/${id}/e/`, `s/${id}/e0`];
export const sessionRange = (id: string): [string, string] => [`s/${id}/`, `s/${id}0`];
export const recordKey = (id: string): string => `r/${id}`;

export interface WriterHost {
  readonly id: string;
  readonly raw: RawSession;
  readonly backend: KeyValueBackend;
  /** The session's record as it is to be stored beside the log. */
  recordBytes(): Uint8Array;
  /** Another writer was first: take its events in, put ours after them. */
  rebase(): Promise<void>;
  /** Something is stored, or could not be. */
  settled(error: SessionLogError | null): void;
}

export class Writer {
  durable: number;
  head: Head;
  lastError: SessionLogError | null = null;
  #host: WriterHost;
  #headBytes: Uint8Array | null;
  #inflight: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #timerAt = Infinity;
  #retryMs = RETRY_MIN_MS;
  #stopped = false;
  #recordDirty = true;

  constructor(host: WriterHost, head: Head, headBytes: Uint8Array | null, durable: number) {
    this.#host = host;
    this.head = head;
    this.#headBytes = headBytes;
    this.durable = durable;
  }

  get length(): number {
    return call(() => this.#host.raw.len());
  }

  get unsaved(): number {
    return this.#stopped ? 0 : this.length - this.durable;
  }

  markRecord(): void {
    this.#recordDirty = true;
  }

  get #dirty(): boolean {
    return this.length > this.durable || this.#headBytes === null || this.#recordDirty;
  }

  /** Something was appended: write it at once, or within one interval. */
  schedule(urgent: boolean): void {
    if (this.#stopped) return;
    if (urgent && this.#inflight === null && this.lastError === null) {
      this.#start().catch(() => {});
      return;
    }
    this.#arm(urgent ? 0 : FLUSH_INTERVAL_MS);
  }

  #arm(ms: number): void {
    const at = performance.now() + ms;
    if (this.#timer !== null && this.#timerAt <= at) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#timerAt = Infinity;
      this.flush().catch(() => {});
    }, ms);
    // A pending write keeps no process alive longer than its own work does.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  /** Resolves when everything appended so far is stored; rejects when it could not be (it is kept and tried again). */
  async flush(): Promise<void> {
    const target = this.length;
    do {
      await (this.#inflight ?? this.#start());
    } while (!this.#stopped && (this.durable < target || this.#recordDirty));
  }

  /** Starts a run one microtask later, so that what is appended in one go is written in one go. */
  #start(): Promise<void> {
    const run: Promise<void> = Promise.resolve()
      .then(() => this.#run())
      .finally(() => {
        if (this.#inflight === run) this.#inflight = null;
      });
    this.#inflight = run;
    return run;
  }

  async #run(): Promise<void> {
    try {
      for (let tries = 0; this.#dirty && !this.#stopped; ) {
        const batch = this.#batch();
        try {
          await this.#host.backend.transact(batch.ops);
          this.#stored(batch);
        } catch (thrown) {
          const error = toError(thrown);
          if (error.code !== "conflict" || ++tries > 8) throw error;
          await this.#host.rebase();
        }
      }
    } catch (thrown) {
      throw this.#failed(toError(thrown));
    }
  }

  /** The same for a backend that finishes before it returns. */
  flushSync(): void {
    if (!this.#dirty || this.#stopped) return;
    const batch = this.#batch();
    try {
      void this.#host.backend.transact(batch.ops);
    } catch (thrown) {
      this.lastError = toError(thrown);
      throw this.lastError;
    }
    this.#stored(batch);
  }

  #batch() {
    const { id, raw } = this.#host;
    const from = this.durable;
    const to = this.length;
    const head: Head = { ...this.head, seq: to, digest: call(() => raw.head()) };
    const headBytes = encode(JSON.stringify(head));
    const puts: Array<[string, Uint8Array]> = [];
    if (to > from || this.#headBytes === null) {
      const lines = call(() => raw.lines(from, to));
      // Lines that could not be read when the session was imported ride along, so that they are never lost.
      const damaged = this.#headBytes === null ? call(() => raw.damaged_bytes()) : new Uint8Array();
      if (lines.length + damaged.length > 0) puts.push([segmentKey(id, from), joinBytes([lines, damaged])]);
    }
    puts.push([headKey(id), headBytes], [recordKey(id), this.#host.recordBytes()]);
    this.#recordDirty = false;
    return { ops: { checks: [{ key: headKey(id), equals: this.#headBytes }], puts }, to, head, headBytes };
  }

  #stored(batch: { to: number; head: Head; headBytes: Uint8Array }): void {
    this.durable = Math.max(this.durable, batch.to);
    this.head = batch.head;
    this.#headBytes = batch.headBytes;
    this.lastError = null;
    this.#retryMs = RETRY_MIN_MS;
    this.#host.settled(null);
  }

  #failed(error: SessionLogError): SessionLogError {
    this.lastError = error;
    this.#recordDirty = true;
    this.#host.settled(error);
    if (!this.#stopped) this.#arm(this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
    return error;
  }

  /** Takes over the store's view after a rebase. */
  reset(head: Head, headBytes: Uint8Array, durable: number): void {
    this.head = { ...head, epoch: Math.max(head.epoch, this.head.epoch) };
    this.#headBytes = headBytes;
    this.durable = durable;
  }

  /** Waits for a write that is under way, whatever becomes of it. */
  async settle(): Promise<void> {
    while (this.#inflight !== null) await this.#inflight.catch(() => {});
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

export function joinBytes(parts: Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0] as Uint8Array;
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** What the store holds of a session's log. */
export interface Stored {
  head: Head;
  headBytes: Uint8Array;
  lines: Uint8Array[];
}

export async function readHead(backend: KeyValueBackend, id: string): Promise<{ head: Head; bytes: Uint8Array } | null> {
  const bytes = await backend.get(headKey(id));
  if (bytes === null) return null;
  let head: Head;
  try {
    head = JSON.parse(decode(bytes)) as Head;
    if (typeof head.format !== "number" || typeof head.header !== "object") throw new Error("not a head record");
  } catch (cause) {
    throw new SessionLogError("corrupt", "the head record of the session cannot be read; it is kept as it is", { id }, cause);
  }
  if (head.format > 1) throw new SessionLogError("newer_format", "the session was written by a newer version", { id, format: head.format });
  return { head, bytes };
}

/** Reads a session's lines, those of its base first. */
export async function readLog(backend: KeyValueBackend, id: string, upto = Infinity): Promise<Stored | null> {
  const found = await readHead(backend, id);
  if (found === null) return null;
  const { head, bytes } = found;
  const lines: Uint8Array[] = [];
  if (head.base !== undefined) {
    const base = await readLog(backend, head.base.id, Math.min(head.base.count, upto));
    if (base === null) throw new SessionLogError("corrupt", "the session's base is missing from the store", { id, base: head.base.id });
    lines.push(...cutLines(base.lines, Math.min(head.base.count, upto)));
  }
  const [start, end] = segmentRange(id);
  for (const [key, value] of await backend.list(start, end)) {
    if (Number(key.slice(start.length)) < upto) lines.push(value);
  }
  return { head, headBytes: bytes, lines };
}

const NEWLINE = 10;

/** Drops lines whose seq is not below `count`; a segment may reach beyond a fork's boundary. */
function cutLines(segments: Uint8Array[], count: number): Uint8Array[] {
  const last = segments[segments.length - 1];
  if (last === undefined) return segments;
  let from = 0;
  for (;;) {
    const end = last.indexOf(NEWLINE, from);
    const line = decode(last.subarray(from, end < 0 ? last.length : end));
    const seq = /^\{"seq":(\d+),/.exec(line);
    if (seq !== null && Number(seq[1]) >= count) return [...segments.slice(0, -1), last.subarray(0, from)];
    if (end < 0) return segments;
    from = end + 1;
  }
}

/** Removes a session; what its forks still read stays until the last of them goes. */
export async function eraseSession(backend: KeyValueBackend, id: string, found: { head: Head } | null): Promise<void> {
  if (found !== null && (await hasForks(backend, id))) {
    const gone = encode(JSON.stringify({ ...found.head, gone: true }));
    await backend.transact({ puts: [[headKey(id), gone]], deletes: [recordKey(id)] });
    return;
  }
  const [start, end] = sessionRange(id);
  const keys = (await backend.list(start, end, { keysOnly: true })).map(([key]) => key);
  await backend.transact({ deletes: [...keys, recordKey(id)] });
  const base = found?.head.base?.id;
  const parent = base === undefined ? null : await readHead(backend, base);
  if (base !== undefined && parent?.head.gone === true) await eraseSession(backend, base, parent);
}

async function hasForks(backend: KeyValueBackend, id: string): Promise<boolean> {
  for (const [key] of await backend.list("s/", "s0", { keysOnly: true })) {
    const other = /^s\/([^/]+)\/h$/.exec(key)?.[1];
    if (other === undefined || other === id) continue;
    const found = await readHead(backend, other).catch(() => null);
    if (found?.head.base?.id === id) return true;
  }
  return false;
}
