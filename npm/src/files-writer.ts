// Carries what changed in the files to their backend, in order and soon, and never forgets a batch that failed.
//
// File calls schedule nothing: they resolve a promise that a loop started at `open` waits for, so they also work where
// timers and their kin are taken away.
import type { KeyValueBackend } from "../types/index.js";
import type { RawFiles } from "./glue.js";
import { SessionLogError, toError } from "./errors.js";
import { call } from "./runtime.js";

/** From the one that `counts` on, the change is in the store. */
type Batch = Parameters<KeyValueBackend["transact"]>[0] & { counts: boolean };
type Pair = [string, Uint8Array];

const later = globalThis.setTimeout;

/** How long changes gather before they are written by themselves. */
const INTERVAL_MS = 25;
const LONGEST_PAUSE_MS = 5_000;
/** The module cuts contents no smaller. */
const LEAST_VALUE = 1024;

/** Waits; a pause after a failure does not keep a process alive that has nothing else to do. */
function rest(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer: unknown = later(resolve, ms);
    if (ms > INTERVAL_MS) (timer as { unref?: () => void } | null)?.unref?.();
  });
}

export class FilesWriter {
  #raw: RawFiles;
  /** Told when the store has everything. */
  readonly #settled: () => void;
  readonly #backend: KeyValueBackend;
  /** Taken out of the module and not yet acknowledged, oldest first. */
  #queue: Batch[] = [];
  #tail: Promise<void> = Promise.resolve();
  #stopped = false;
  #woken = false;
  #wake: () => void = () => {};
  #waiting: Promise<void> = Promise.resolve();
  lastError: SessionLogError | null = null;

  constructor(raw: RawFiles, backend: KeyValueBackend, settled: () => void) {
    this.#raw = raw;
    this.#settled = settled;
    this.#backend = backend;
    this.#rearm();
    void this.#loop();
  }

  /** Says that something changed. Schedules nothing itself. */
  changed(): void {
    if (this.#woken) return;
    this.#woken = true;
    this.#wake();
  }

  get unsaved(): boolean {
    return this.#queue.length > 0 || (!this.#stopped && call(() => this.#raw.is_dirty()));
  }

  #rearm(): void {
    this.#woken = false;
    this.#waiting = new Promise((resolve) => { this.#wake = resolve; });
  }

  async #loop(): Promise<void> {
    let pause = INTERVAL_MS;
    for (;;) {
      await this.#waiting;
      if (this.#stopped) return;
      await rest(pause);
      if (this.#stopped) return;
      this.#rearm();
      try {
        await this.flush();
        pause = INTERVAL_MS;
      } catch {
        // Another writer has the store, or a newer version: trying again would not help until the files are read anew.
        if (this.lastError?.code === "conflict" || this.lastError?.code === "newer_format") continue;
        // Kept in the queue and in `lastError`; tried again, more slowly each time.
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
        this.changed();
      }
    }
  }

  #drain(): Batch[] {
    const { maxValueBytes = 1 << 20, maxBatch = 5_000, maxBatchBytes = Infinity } = this.#backend;
    // The module counts keys: values are made so small that a full batch of them is within the limit of its bytes.
    const value = Math.max(LEAST_VALUE, Math.min(maxValueBytes, Math.floor(maxBatchBytes / maxBatch)));
    const batch = Math.min(maxBatch, Math.max(1, Math.floor(maxBatchBytes / value)));
    const lists = call(() => this.#raw.drain(value, batch)) as Array<[Array<[string, Uint8Array | null]>, Pair[], string[], boolean]>;
    return lists.map(([checks, puts, deletes, counts]) => ({ checks: checks.map(([key, equals]) => ({ key, equals })), puts, deletes, counts }));
  }

  async #send({ counts: _, ...batch }: Batch): Promise<void> {
    try {
      await this.#backend.transact(batch);
    } catch (thrown) {
      const error = toError(thrown);
      if (error.code === "conflict" && (await this.#wasApplied(batch))) return;
      throw error;
    }
  }

  /** A batch that claims the store and was acknowledged too late fails its own check when it is sent again. */
  async #wasApplied(batch: Omit<Batch, "counts">): Promise<boolean> {
    const head = batch.checks?.[0]?.key;
    const claim = batch.puts?.find(([key]) => key === head)?.[1];
    if (head === undefined || claim === undefined) return false;
    const there = await this.#backend.get(head);
    return there !== null && there.length === claim.length && there.every((byte, i) => byte === claim[i]);
  }

  async #write(): Promise<void> {
    try {
      for (;;) {
        if (this.#queue.length === 0) this.#queue = this.#stopped ? [] : this.#drain();
        const batch = this.#queue[0];
        if (batch === undefined) break;
        await this.#send(batch);
        this.#queue.shift();
      }
      this.lastError = null;
      this.#settled();
    } catch (thrown) {
      this.lastError = toError(thrown);
      throw this.lastError;
    }
  }

  /** Resolves when all that was done before the call is in the store. */
  flush(): Promise<void> {
    const done = this.#tail.then(() => this.#write());
    this.#tail = done.catch(() => {});
    return done;
  }

  /**
   * Makes a change and writes it at once; when the store refuses a batch before it has the change, `undo` takes it back.
   * Resolves with the refusal, or null.
   */
  commit(change: () => void, undo: () => void): Promise<SessionLogError | null> {
    const work = async (): Promise<SessionLogError | null> => {
      try {
        // What went before is written first, so that the batches drained below hold this change alone.
        do await this.#write(); while (call(() => this.#raw.is_dirty()));
      } catch (thrown) {
        return toError(thrown);
      }
      change();
      this.#queue = this.#drain();
      let sent = 0;
      try {
        for (let batch = this.#queue[0]; batch !== undefined; batch = this.#queue[0]) {
          await this.#send(batch);
          this.#queue.shift();
          sent += 1;
          if (batch.counts) break;
        }
      } catch (thrown) {
        // Nothing of it counts in the store, as far as the store says: what the module drains next puts all of it right.
        this.#queue = [];
        call(() => this.#raw.refused(sent));
        undo();
        this.changed();
        return toError(thrown);
      }
      await this.#write().catch(() => this.changed());
      return null;
    };
    const done = this.#tail.then(work);
    this.#tail = done.then(() => {}, () => {});
    return done;
  }

  /** Reads the store anew and goes on from there; what waited to be written is dropped. */
  replace(load: () => Promise<RawFiles>, put: (raw: RawFiles) => void): Promise<void> {
    const done = this.#tail.then(async () => {
      const raw = await load();
      put(raw);
      this.#raw = raw;
      this.#queue = [];
      this.lastError = null;
      this.changed();
    });
    this.#tail = done.catch(() => {});
    return done;
  }

  /** Ends the loop; what is in the queue is lost unless `flush` came before. */
  stop(): void {
    this.#stopped = true;
    this.#wake();
  }
}
