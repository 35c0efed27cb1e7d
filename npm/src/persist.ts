// Carries out what the write-behind machine of a session decides: writes, timers, reloads, and word to those who wait.
import type { KeyValueBackend } from "../types/index.js";
import type { Log } from "./log.js";
import { writeComes, type Ahead } from "./backends.js";
import { SessionLogError, toError } from "./errors.js";
import { backOff, isGone, isStill, takeOverFrom, takeOverNow, type Claim, type Taken } from "./fence.js";
import { eraseLastNow, readLogNow } from "./read-now.js";
import type { RecordPut } from "./records.js";
import { call } from "./runtime.js";
import { formatRecord, keys, eraseLast, joinBytes, joinLines, mergeSmall, nextFence, replaceRun, segmentBatches, segmentPuts, SMALL, type Batch, type Put } from "./segments.js";
import { encodeCheckpoint, encodeHeader, readLog, type Header, type StoredLog } from "./stored.js";
import { WriteBehind, type WriteOutcome, type WriteStep } from "./write-behind.js";

/** This many segments of one flush each are worth merging. */
const MERGE_AFTER = 256;

/** So long a fence that was in force is taken to be so under a lock: too short a time for another writer to merge anything. */
export const PROVEN_MS = 50;

/** What is merged grows no larger than this (src/store/layout.rs decides). */
const MERGED = 1024 * 1024;

/** A record that can wait is written this often at most. */
const RECORD_MS = 500;
/** One that could not be written is tried again after longer and longer, up to this. */
const RECORD_RETRY_MS = 30_000;
/** After so many reloads that changed nothing the callers are told, and the next one waits. */
const MOST_FRUITLESS = 8;
/** So often a record is put again after somebody wrote the header anew. */
const RECORD_TRIES = 3;

export interface WriterHost {
  readonly id: string;
  readonly log: Log;
  readonly backend: KeyValueBackend;
  /** A store that finishes before it returns, and outlives the process: everything is written before the call ends. */
  readonly storeFirst: boolean;
  /** Whether a lock keeps everybody else from writing, so that the database need not be asked each time. */
  isSole(): boolean;
  /** The session's record as it is to be stored beside the log; the store answers with a conflict when another tab has changed it. */
  recordPut(): RecordPut;
  /** What stands in the store as the record; `isOwn` when that was just written here. */
  recordFound(bytes: Uint8Array | null, isOwn?: boolean): void;
  /** Events that another writer stored were put in before ours: those from `from` up to `to`, save the ones in `ours`. */
  rebased(from: number, to: number, ours: ReadonlySet<string>, visible: number): void;
  warn(code: string, message: string): void;
  /** Events reached the store. */
  stored(): void;
  /** Runs `work`; what it delivers to listeners is delivered after it. */
  hold(work: () => void): void;
}

/** An event that is to be stored before anyone sees it. */
export interface Candidate {
  /** Puts it at the end of the log; returns its id. */
  admit(): string;
  /** It may be seen. */
  reveal(): void;
  /** It is off the log again. */
  withdraw(): void;
}

interface Waiter {
  candidate?: Candidate;
  id?: string;
  /** Why it could not be put into the log. */
  refused?: SessionLogError;
  resolve(): void;
  reject(error: SessionLogError): void;
}

/** A segment that was written: its events, and how long it is. */
interface Written { from: number; to: number; bytes: number }

const now = (): number => Math.floor(performance.now());

export class Writer {
  durable: number;
  header: Header;
  lastError: SessionLogError | null = null;
  #host: WriterHost;
  #machine = new WriteBehind();
  #fence: Uint8Array | null;
  /** The fence of a session that this writer brings into the store: always the same one, so that a try whose answer was lost counts. */
  #first: Uint8Array | null = null;
  /** Fences that it tried to put there without an answer. */
  #tried: Uint8Array[] = [];
  /** The fence of the last write that was stored, and when that was. */
  #proven: Uint8Array | null = null;
  #provenAt = 0;
  #hasLooked = false;
  #isNew: boolean;
  #recordDirty: boolean;
  #record: Promise<void> | null = null;
  #steps: WriteStep[] = [];
  #carrying = false;
  #waiting = new Map<number, Waiter>();
  #admitted: Waiter | null = null;
  #tokens = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #busy: Promise<void> | null = null;
  #flushes = 0;
  #mergeDue = false;
  /** Small segments that this writer stored one behind the other since the last merge. */
  #small = { firstSeqs: [] as number[], end: 0, bytes: 0 };
  /** Whether the store may hold small segments before those. */
  #isMergeOwed: boolean;
  /** Writes in a row that another writer was faster than. */
  #conflicts = 0;
  /** Reloads in a row that found neither another writer nor anything new. */
  #fruitless = 0;
  #mergeFrom = 0;
  /** Ids of events that were taken back without the store having said that it does not hold them. */
  #doubtful = new Set<string>();
  #stopped = false;
  /** What ended the writing of this session for good. */
  #fault: SessionLogError | null = null;

  /** `fence` is null for a session that is not in the store yet. */
  constructor(host: WriterHost, header: Header, fence: Uint8Array | null, stored: number) {
    this.#host = host;
    this.header = header;
    this.#fence = fence;
    this.#isNew = fence === null;
    this.#isMergeOwed = !this.#isNew;
    this.#recordDirty = this.#isNew;
    this.durable = stored;
    this.#machine.loaded(stored);
  }

  get #length(): number {
    return call(() => this.#host.log.raw.len());
  }

  /** Whether the session stands in the store. */
  get isStored(): boolean {
    return !this.#isNew;
  }

  /** Whether something of it may stand there, now or when what is under way arrives. */
  get isBegun(): boolean {
    return !this.#isNew || this.#busy !== null || this.#creating !== null || this.lastError !== null;
  }

  get unsaved(): number {
    if (this.#fault !== null) return Math.max(0, this.#length - this.durable);
    if (this.#stopped) return 0;
    this.#tell();
    return this.#machine.unsaved;
  }

  /** The fence that this writer writes under; the session is in the store once this is known. */
  get fence(): Uint8Array {
    if (this.#fence !== null) return this.#fence;
    if (this.#first === null) this.#tried.push((this.#first = nextFence(null)));
    return this.#first;
  }

  /** Whether the fence need not be looked at: nobody else could have raised it, or so much as merged a segment, since it was. */
  get #isFenceProven(): boolean {
    return this.#fence !== null && this.#proven === this.#fence && now() - this.#provenAt < PROVEN_MS && this.#host.isSole();
  }

  /** The record changed; when it can wait it does not go with every write. */
  markRecord(urgent = true): void {
    this.#recordDirty = true;
    this.#isRecordUrgent ||= urgent;
  }
  #isRecordUrgent = true;
  #recordAt = 0;
  #recordTimer: ReturnType<typeof setTimeout> | null = null;

  get #isRecordDue(): boolean {
    return this.#recordDirty && (this.#isRecordUrgent || this.#isNew || now() - this.#recordAt >= RECORD_MS);
  }

  #recordTaken(): void {
    this.#recordDirty = false;
    this.#isRecordUrgent = false;
    this.#recordAt = now();
  }

  #recordFailures = 0;

  /** The record, or a session without events, is in the store. */
  #recordStored(): void {
    this.#recordFailures = 0;
    this.#recovered();
  }

  #recordFailed(thrown: unknown): SessionLogError {
    this.#recordDirty = true;
    this.lastError = toError(thrown);
    this.#recordLater();
    this.#recordFailures++;
    return this.lastError;
  }

  /** What kept something from the store is past once there is nothing left to bring there. */
  #recovered(): void {
    if (!this.#isNew && !this.#recordDirty && this.#machine.unsaved === 0) this.lastError = null;
  }

  /** A record that did not go with a write goes by itself, a little later. */
  #recordLater(): void {
    if (!this.#recordDirty || this.#recordTimer !== null || this.#stopped) return;
    this.#recordTimer = setTimeout(() => {
      this.#recordTimer = null;
      // A session without events has nothing else that would bring it into the store.
      (this.#isNew && this.#length === 0 ? this.#create() : this.#writeRecord()).catch(() => {});
    }, Math.min(RECORD_MS * 2 ** this.#recordFailures, RECORD_RETRY_MS));
    (this.#recordTimer as { unref?: () => void }).unref?.();
  }

  /** The log has grown: it is written at once when `urgent`, else within one interval. */
  appended(urgent: boolean): void {
    this.#isUrgent ||= urgent;
    this.#isTold = false;
    // The next write, due or under way, looks for itself how long the log has become.
    const isDue = !urgent && (this.#timer !== null || this.#busy !== null);
    if (isDue || this.#isTelling) return;
    this.#isTelling = true;
    // One word for all that is appended in one go, and one write.
    queueMicrotask(() => {
      this.#isTelling = false;
      this.#behind(() => this.#tell());
    });
  }

  /** Tells the machine how long the log is, before it is asked anything else. */
  #tell(): void {
    if (this.#isTold) return;
    const urgent = this.#isUrgent;
    this.#isTold = true;
    this.#isUrgent = false;
    if (!this.#stopped) this.#carry(this.#machine.appended(now(), this.#length, urgent));
  }
  #isTold = true;
  #isTelling = false;
  #isUrgent = false;

  /** An event is about to be appended that cannot wait for those which are to be stored first. */
  makeRoom(): void {
    if (this.#stopped || this.#waiting.size === 0) return;
    this.#tell();
    this.#carry(this.#machine.makeRoom(now()));
  }

  /** Stores an event before it is seen. With a store-first backend the answer is there when this returns. */
  storeFirst(candidate: Candidate): Promise<void> {
    return this.#wait((token) => this.#machine.storeFirst(now(), token), candidate);
  }

  /** The same where the store finishes before it returns: throws instead of rejecting. */
  storeFirstSync(candidate: Candidate): void {
    let failure: SessionLogError | null = null;
    if (this.#fault !== null) throw this.#fault;
    this.#tell();
    const token = ++this.#tokens;
    this.#waiting.set(token, { candidate, resolve: () => {}, reject: (error) => (failure = error) });
    this.#carry(this.#machine.storeFirst(now(), token));
    // Asked for in the middle of another one, by the store itself: there can be no answer before that one's.
    if (this.#waiting.delete(token)) throw new SessionLogError("busy", "the session is being written: append again after this", { id: this.#host.id });
    if (failure !== null) throw failure as SessionLogError;
  }

  #wait(ask: (token: number) => WriteStep[], candidate?: Candidate): Promise<void> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    this.#tell();
    return new Promise((resolve, reject) => {
      const token = ++this.#tokens;
      this.#waiting.set(token, { ...(candidate === undefined ? {} : { candidate }), resolve, reject });
      this.#carry(ask(token));
    });
  }

  /** Resolves when everything appended so far is stored, and the record; rejects when it could not be (it is kept and tried again). */
  async flush(): Promise<void> {
    // After an internal fault nothing can be written any more, and nobody must believe that it was.
    if (this.#fault !== null) throw this.#fault;
    if (this.#stopped) return;
    this.#isRecordUrgent ||= this.#recordDirty;
    // One that fails is no reason to leave before those who append have their answers.
    if (this.#isNew && (this.#length === 0 || this.#creating !== null)) await this.#create().catch(() => {});
    await this.#wait((token) => this.#machine.flush(now(), token));
    if (this.#isNew && this.lastError !== null) throw this.lastError;
    await this.#writeRecord();
  }

  /** A page that is hidden may never come back. */
  flushSoon(): void {
    this.#tell();
    if (!this.#stopped) this.#carry(this.#machine.flush(now()));
    this.#writeRecord().catch(() => {});
  }

  // ------------------------------------------------------------------ steps

  #carry(steps: WriteStep[]): void {
    this.#steps.push(...steps);
    if (this.#carrying) return;
    // A listener that appends where the store comes first must find all of this done.
    if (this.#host.storeFirst) this.#host.hold(() => this.#carryOut());
    else this.#carryOut();
  }

  #carryOut(): void {
    this.#carrying = true;
    try {
      for (let step = this.#steps.shift(); step !== undefined; step = this.#steps.shift()) this.#do(step);
    } finally {
      this.#carrying = false;
    }
  }

  #do(step: WriteStep): void {
    switch (step.do) {
      case "admit": return this.#admit(step.token);
      case "write": return this.#write(step.from, step.to);
      case "wake": return this.#wakeAt(step.at);
      case "reload": return this.#host.storeFirst ? this.#reloadNow() : this.#start(this.#reload());
      case "durable":
        this.durable = step.seq;
        return this.#host.stored();
      case "reveal": return this.#release(step.token, "reveal");
      case "withdraw": return this.#release(step.token, "withdraw");
      case "settled": return this.#settle(step.token, step.ok);
    }
  }

  #admit(token: number): void {
    const waiter = this.#waiting.get(token);
    if (waiter?.candidate === undefined) return;
    try {
      waiter.id = waiter.candidate.admit();
      this.#admitted = waiter;
    } catch (thrown) {
      // A random source of the caller's may fail: then there is no such event, and nothing of it is written.
      waiter.refused = toError(thrown);
    }
  }

  #release(token: number, how: "reveal" | "withdraw"): void {
    const waiter = this.#waiting.get(token);
    if (waiter === undefined) return;
    if (this.#admitted === waiter) this.#admitted = null;
    if (waiter.refused !== undefined && how === "reveal") return this.#refuse(token, waiter.refused);
    if (how === "withdraw" && waiter.id !== undefined) this.#doubtful.add(waiter.id);
    waiter.candidate?.[how]();
  }

  #settle(token: number, ok: boolean): void {
    const waiter = this.#waiting.get(token);
    this.#waiting.delete(token);
    if (ok) return waiter?.resolve();
    waiter?.reject(this.lastError ?? new SessionLogError("disposed", "the session is not written any more", { id: this.#host.id }));
  }

  #wakeAt(at: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#behind(() => {
        this.#tell();
        this.#carry(this.#machine.tick(now()));
      });
    }, Math.max(0, at - now()));
    // A pending write keeps no process alive longer than its own work does.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  /** The record that went with the write that is under way. */
  #recordSent: Uint8Array | null = null;

  #recordWentAlong(): void {
    if (this.#recordSent !== null) this.#host.recordFound(this.#recordSent, true);
    this.#recordSent = null;
  }

  /** What goes with the next write: the record when it is due, which is taken then, and what makes a new session one. */
  #extra(): Batch {
    const { id } = this.#host;
    const puts: Array<[string, Uint8Array]> = [];
    const checks: Array<{ key: string; equals: Uint8Array | null }> = [];
    this.#recordSent = null;
    if (this.#isNew) {
      // There is a fence when a first write went wrong and the session was taken over before it was in the store.
      checks.push({ key: keys.fence(id), equals: this.#fence }, { key: keys.header(id), equals: null });
      if (this.#fence === null) puts.push([keys.fence(id), this.fence]);
      puts.push([keys.header(id), encodeHeader(this.header)], [keys.format(), formatRecord()]);
    }
    if (this.#isRecordDue) {
      const { put, check } = this.#host.recordPut();
      checks.push(check);
      puts.push(put);
      this.#recordSent = put[1];
      this.#recordTaken();
    }
    return { checks, puts };
  }

  /** The log has no such event; the machine is told how long it really is. */
  #refuse(token: number, error: SessionLogError): void {
    this.lastError = error;
    this.#isTold = false;
    this.#settle(token, false);
  }

  #write(from: number, to: number): void {
    if (to > this.#length) {
      // What was to be stored first could not be made.
      for (const { refused } of this.#waiting.values()) if (refused !== undefined) this.lastError = refused;
      return this.#done("refused");
    }
    if (this.#host.storeFirst) return this.#writeNow(this.#batches(from, to, null));
    this.#start(this.#writeSoon(from, to));
  }

  async #writeSoon(from: number, to: number): Promise<void> {
    let thrown: unknown = null;
    try {
      if (this.#creating !== null) await this.#creating.catch(() => {});
      // The record may go along, and is to stand on the one before it.
      if (this.#record !== null) await this.#record.catch(() => {});
      if (this.#mergeDue) await this.#merge();
      const isFirst = this.#isNew;
      const { segments, batches } = this.#batches(from, to, writeComes(this.#host.backend));
      for (const batch of batches) await this.#host.backend.transact(batch);
      // Damaged lines may ride along in the first ones, and memory has those elsewhere.
      if (!isFirst) for (const segment of segments) this.#remember(segment);
    } catch (failure) {
      thrown = failure ?? new SessionLogError("storage", "the storage failed without a reason");
    }
    this.#behind(() => (thrown === null ? this.#wrote() : this.#failed(thrown)));
  }

  /** Goes before a write, never beside one. One that fails costs nothing: what it may have done shows as a conflict. */
  async #merge(): Promise<void> {
    if (this.#fence === null) return;
    this.#mergeDue = false;
    const { backend, id, log } = this.#host;
    const { firstSeqs, end, bytes } = this.#small;
    const fits = bytes <= Math.min(MERGED, backend.maxValueBytes ?? MERGED) && firstSeqs.length + 2 <= (backend.maxBatch ?? MERGE_AFTER);
    const isAtHand = !this.#isMergeOwed && fits && firstSeqs.length > MERGE_AFTER / 2;
    this.#forgetSmall();
    try {
      if (isAtHand) {
        this.#fence = await replaceRun(backend, id, this.#fence, firstSeqs, call(() => log.raw.lines(firstSeqs[0] as number, end)));
        this.#mergeFrom = end;
        return;
      }
      const { fence, next } = await mergeSmall(backend, id, this.#fence, this.#mergeFrom);
      // One run at a time; there may be another.
      this.#mergeDue = fence !== this.#fence;
      this.#fence = fence;
      this.#mergeFrom = next;
      this.#isMergeOwed = false;
    } catch {
      // The next write says what is wrong, if anything is.
      this.#isMergeOwed = true;
    }
  }

  #forgetSmall(): void {
    this.#small = { firstSeqs: [], end: 0, bytes: 0 };
  }

  /** Remembers what was stored, for a merge. */
  #remember({ from, to, bytes }: Written): void {
    const isSmall = bytes < SMALL;
    const isNext = this.#small.firstSeqs.length === 0 || this.#small.end === from;
    if (!isSmall || !isNext) {
      // What came before has a neighbour that the store knows best.
      this.#isMergeOwed ||= this.#small.firstSeqs.length > 0;
      this.#forgetSmall();
    }
    if (!isSmall) return;
    this.#small.firstSeqs.push(from);
    this.#small.end = to;
    this.#small.bytes += bytes;
  }

  /** Nobody is there to catch what happens behind a caller's back: after an internal fault those who wait are told, and that is all. */
  #behind(work: () => void): void {
    if (this.#stopped) return;
    try {
      work();
    } catch (thrown) {
      this.#endWith(toError(thrown));
    }
  }

  /** Nothing is written any more. */
  #endWith(error: SessionLogError): void {
    this.lastError = error;
    this.#fault = error;
    this.#stopped = true;
    this.#steps = [];
    this.#clearTimers();
    for (const waiter of this.#waiting.values()) waiter.reject(error);
    this.#waiting.clear();
  }

  /** `ahead` takes what goes out in several segments while the next of them is made. */
  #batches(from: number, to: number, ahead: Ahead | null): { segments: Written[]; batches: Batch[] } {
    const { id, log, backend } = this.#host;
    const extra = this.#extra();
    const checkpoint = call(() => log.raw.checkpoint(from, to));
    if (checkpoint !== undefined) extra.puts?.push([keys.checkpoint(id), encodeCheckpoint(checkpoint)]);
    const fence = this.#isFenceProven ? null : this.fence;
    const segments: Written[] = [];
    const puts: Put[] = [];
    const ends = ahead === null || to - from === 1 ? [to] : call(() => log.raw.segment_ends(from, to));
    for (const end of ends) {
      const start = segments.at(-1)?.to ?? from;
      let lines = call(() => log.raw.lines(start, end));
      // Lines that could not be read when the session was imported ride along once, so that they are never lost.
      if (this.#isNew && end === to) lines = joinBytes([lines, call(() => log.raw.damaged_bytes())]);
      segments.push({ from: start, to: end, bytes: lines.length });
      const own = segmentPuts(backend, id, start, lines);
      if (ends.length > 1) for (const put of own) ahead?.put(...put, puts.length === 0 && put === own[0]);
      puts.push(...own);
    }
    this.#hasLooked = fence !== null;
    return { segments, batches: segmentBatches(backend, id, fence, puts as [Put, ...Put[]], extra) };
  }

  #writeNow({ batches }: { batches: Batch[] }): void {
    try {
      for (const batch of batches) void this.#host.backend.transact(batch);
    } catch (thrown) {
      return this.#failed(thrown);
    }
    this.#wrote();
  }

  /** The session is in the store, and the fence in force is known. */
  #isThere(): void {
    this.#fence ??= this.fence;
    this.#tried = [];
    this.#isNew = false;
  }

  #wrote(): void {
    this.#isThere();
    // Only a write that looked at the fence says that it is in force.
    if (this.#hasLooked) {
      this.#proven = this.#fence;
      this.#provenAt = now();
    }
    this.#conflicts = 0;
    this.#fruitless = 0;
    this.lastError = null;
    this.#recordWentAlong();
    this.#flushes++;
    this.#done("stored");
    this.#recordLater();
    if (this.#flushes % MERGE_AFTER === 0) this.#mergeDue = true;
  }

  #failed(thrown: unknown): void {
    this.#recordDirty = true;
    const error = toError(thrown);
    this.lastError = error;
    if (error.code === "conflict") this.#conflicts++;
    this.#done(error.code === "conflict" ? "conflict" : error.code === "disposed" ? "refused" : "failed");
  }

  #done(outcome: WriteOutcome): void {
    if (!this.#stopped) this.#carry(this.#machine.done(now(), outcome));
  }

  /** Another writer may have been first, or an answer was lost: what the store holds comes in, ours is put after it. */
  async #reload(): Promise<void> {
    const { id, backend } = this.#host;
    try {
      if (this.#conflicts > 1) await backOff(this.#conflicts);
      this.#checkFruitless();
      const { fence, unbroken } = this.#tookOver(await takeOverFrom(backend, id, this.#claim));
      // Whoever took over in between may have built on what is in doubt: then it stays.
      if (this.#doubtful.size > 0 && unbroken) await eraseLast(backend, id, fence, this.#doubtful, this.durable);
      this.#doubtful.clear();
      const [stored, record] = await Promise.all([readLog(backend, id), backend.get(keys.record(id))]);
      this.#host.recordFound(record);
      if (!this.#stopped) this.#reloaded(stored, unbroken);
    } catch (thrown) {
      this.#reloadFailed(thrown);
    }
  }

  /** The same where the store finishes before it returns, and so does whoever appends. */
  #reloadNow(): void {
    const { id, backend } = this.#host;
    try {
      this.#checkFruitless();
      const { fence, unbroken } = this.#tookOver(takeOverNow(backend, id, this.#claim));
      if (this.#doubtful.size > 0 && unbroken) eraseLastNow(backend, id, fence, this.#doubtful);
      this.#doubtful.clear();
      const stored = readLogNow(backend, id);
      this.#host.recordFound(backend.get(keys.record(id)) as Uint8Array | null);
      this.#reloaded(stored, unbroken);
    } catch (thrown) {
      this.#reloadFailed(thrown);
    }
  }

  #checkFruitless(): void {
    if (this.#fruitless < MOST_FRUITLESS) return;
    this.#fruitless--;
    throw new SessionLogError("corrupt", "the store refuses what comes next although nobody else has written", { id: this.#host.id });
  }

  #reloaded(stored: StoredLog | null, unbroken: boolean): void {
    const { id, log } = this.#host;
    if (stored === null && this.#isNew) return this.#reloadedNothing();
    if (stored === null) throw isGone(id);
    this.#isNew = false;
    const from = this.durable;
    const unseen = this.#admitted === null ? 0 : 1;
    const visible = this.#length - unseen;
    const idOf = (seq: number): string => call(() => log.raw.event_id(seq)) ?? "";
    const candidate = unseen === 0 ? null : idOf(visible);
    const ours = new Set<string>();
    for (let seq = from; seq < visible; seq++) ours.add(idOf(seq));
    const joined = joinLines(stored.lines);
    const to = call(() => log.raw.rebase(from, joined, stored.end));
    this.#fruitless = to > from || !unbroken ? 0 : this.#fruitless + 1;
    const isStored = candidate !== null && call(() => log.raw.seq_of(candidate)) < to;
    if (candidate !== null) ours.add(candidate);
    // An admitted event is the last of the log, stored or not.
    const length = this.#length - (isStored ? 0 : unseen);
    this.#host.rebased(from, to, ours, this.#length - unseen);
    this.#carry(this.#machine.reloaded(now(), to, length, isStored));
    this.#afterReload();
  }

  /** The first write of a new session did not arrive, and after the take-over it never will. */
  #reloadedNothing(): void {
    this.#carry(this.#machine.reloaded(now(), this.durable, this.#length - (this.#admitted === null ? 0 : 1), false));
    this.#afterReload();
  }

  #afterReload(): void {
    // What was taken back just now is known not to be there.
    this.#doubtful.clear();
    this.#recovered();
    this.#recordLater();
  }

  #reloadFailed(thrown: unknown): void {
    const error = toError(thrown);
    this.lastError = error;
    if (this.#stopped) return;
    // The events of two sessions must not become one log, and nothing else would ever change that.
    if (error.code !== "already_exists") return this.#carry(this.#machine.reloadFailed(now()));
    this.#admitted?.candidate?.withdraw();
    this.#admitted = null;
    this.#endWith(error);
  }

  #start(work: Promise<void>): void {
    const busy: Promise<void> = work.finally(() => {
      if (this.#busy === busy) this.#busy = null;
      this.#behind(() => this.#tell());
    });
    this.#busy = busy;
  }

  // ------------------------------------------------------------------ record, and the end

  #creating: Promise<void> | null = null;

  /** A session without events is a session all the same. */
  #create(): Promise<void> {
    this.#creating ??= this.#writeNew().finally(() => (this.#creating = null));
    return this.#creating;
  }

  async #writeNew(): Promise<void> {
    const extra = this.#extra();
    try {
      const written = this.#host.backend.transact(extra);
      // A store-first append may follow in the same go, and must find a session that is there.
      if (!this.#host.storeFirst) await written;
      this.#isThere();
      this.#recordWentAlong();
      this.#recordStored();
    } catch (thrown) {
      const error = this.#recordFailed(thrown);
      // A write of events that waits for this one meets the same.
      if (error.code !== "conflict" || this.#busy !== null) throw error;
      // Somebody was first with this id, or an answer was lost: as after the first write of events, which finds out itself.
      const steps = this.#machine.overtaken();
      if (steps.length === 0) throw error;
      this.#carry(steps);
      await this.#busy;
      if (this.#isNew) throw this.lastError ?? error;
    }
  }

  /** Writes the record when it changed and no event took it along. */
  async #writeRecord(): Promise<void> {
    while (this.#record !== null) await this.#record;
    // Who follows knows the record from hearsay: whoever writes the session has it.
    if (!this.#recordDirty || this.#isNew || this.#stopped || this.#fence?.length === 0) return;
    this.#recordTaken();
    this.#record = this.#putRecord().finally(() => (this.#record = null));
    try {
      await this.#record;
      this.#recordStored();
    } catch (thrown) {
      throw this.#recordFailed(thrown);
    }
  }

  /**
   * Beside the session's header: the record of one that was deleted would bring it back into every list. Not under the fence: who
   * takes that over has to read what others wrote and merged.
   */
  async #putRecord(): Promise<void> {
    const { id, backend } = this.#host;
    const key = keys.header(id);
    let equals = encodeHeader(this.header);
    for (let tries = 0; ; tries++) {
      const { put, check } = this.#host.recordPut();
      try {
        await backend.transact({ checks: [{ key, equals }, check], puts: [put] });
        return this.#host.recordFound(put[1], true);
      } catch (thrown) {
        if (toError(thrown).code !== "conflict" || tries >= RECORD_TRIES) throw thrown;
        const [found, record] = await Promise.all([backend.get(key), backend.get(keys.record(id))]);
        if (found === null || !isStill(found, id, this.header)) throw isGone(id);
        equals = found;
        this.#host.recordFound(record);
      }
    }
  }

  get #claim(): Claim {
    return { own: this.#fence, tried: this.#tried, header: this.header, isNew: this.#isNew };
  }

  /** Another writer may have had the session; what it wrote and merged is in the store. */
  #tookOver(taken: Taken): Taken {
    this.#fence = taken.fence;
    this.#tried = [];
    this.#isMergeOwed = true;
    this.#forgetSmall();
    return taken;
  }

  /** Another tab writes this session. */
  follow(): void {
    this.#carry(this.#machine.follow());
  }

  /** This tab writes from now on: the store's view counts. */
  lead(fence: Uint8Array, stored: number): void {
    this.#fence = fence;
    this.#carry(this.#machine.reloaded(now(), stored, this.#length, false));
  }

  async settle(): Promise<void> {
    await this.#creating?.catch(() => {});
    await this.#idle();
  }

  async #idle(): Promise<void> {
    while (this.#busy !== null) await this.#busy.catch(() => {});
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#clearTimers();
    this.#carry(this.#machine.close());
  }

  #clearTimers(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#recordTimer !== null) clearTimeout(this.#recordTimer);
    this.#timer = null;
  }

  free(): void {
    this.#machine.free();
  }
}
