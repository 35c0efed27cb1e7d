// The store: sessions by id, their life cycle, and everything that concerns more than one of them.
import type {
  Boundary, CreateOptions, ExportFormat, JsonValue, KeyValueBackend, OpenOptions, Scrubber, SessionEvent, SessionRecord, SessionSummary, StorageStatus,
} from "../types/index.js";
import * as glue from "./glue.js";
import type { RawEnv, RawSession } from "./glue.js";
import { checkOf } from "./arguments.js";
import { openOrMemory, type OpenedBackend } from "./backends.js";
import { rawPrices } from "./cost.js";
import { SessionLogError, toError } from "./errors.js";
import { declareEvent, eventClass } from "./event-types.js";
import { exposeStore } from "./internal.js";
import { Channel, takeLease, type Lease } from "./lease.js";
import { DeliveryQueue, Listeners } from "./listeners.js";
import { steady } from "./clock.js";
import { sweepPlan, type SessionsOptions, type SweepPolicy } from "./catalogue.js";
import { Chain } from "./scrub.js";
import { BlobStore, scrubBlob, type ExportedBlob } from "./blobs.js";
import { takeOver } from "./fence.js";
import { keys, writeSegment } from "./segments.js";
import { openFormat } from "./format.js";
import { encode, eraseSession, loadLines, readEnd, readEvents, readHeader, readLog, readUpto, soundHeader, storedIds, type Header, type StoredLog } from "./stored.js";
import { PROVEN_MS } from "./persist.js";
import { Library, quote, Turns } from "./library.js";
import { changed, changedBy, freshEntry, reading, saidBy, setupOf, type Entry } from "./records.js";
import { Rescrub } from "./rescrub.js";
import { appendForeign, exportAs, readEntry, readExport, repeatedLines, type ImportReport } from "./transfer.js";
import { call, callersOwn } from "./runtime.js";
import { RunStore } from "./runs.js";
import { Session, type RestOfLog, type SessionHome } from "./session.js";
import { askToPersist, storageFacts } from "./storage-facts.js";
import { seedText, toText } from "./values.js";

type StoreEvent = "session/created" | "session/disposed" | "session/event" | "session/flush";

const MAX_RECAP = 8_000;
/** So long after a take-over that failed the next one is tried; doubled each time, up to the longest. */
const FIRST_LEAD_MS = 50;
const MAX_LEAD_MS = 5_000;

const checkOpening = checkOf("storage object?, scrubbers list?, clock function?, random function?, onWarning function?, lockTimeoutMs number?");
const checkCreation = checkOf("meta object?, record object?");
const checkMeta = checkOf("cwd text?, parentSession id?");

function missing(id: string): SessionLogError {
  return new SessionLogError("missing", `the store has no session ${quote(id)}`, { id: quote(id) });
}

/**
 * What a fork need not store: those of its first events that its source has stored. The others it stores itself, so that it
 * stands on nothing that may yet be lost, or come to stand behind the events of another writer.
 */
function baseIn({ id, writer }: Session, count: number): Header["base"] {
  const base = writer.isStored ? { id, count: writer.durable } : writer.header.base;
  // Also one of no events: media that the others name are there.
  return base === undefined ? undefined : { id: base.id, count: Math.min(base.count, count) };
}

function invalid(message: string): SessionLogError {
  return new SessionLogError("invalid_argument", message);
}

export class SessionStore {
  readonly runs: RunStore;
  #env: RawEnv;
  #storage: OpenedBackend;
  #options: OpenOptions;
  #live = new Map<string, Session>();
  #library: Library;
  #chain: Chain;
  #loading = new Map<string, Promise<Session>>();
  #queue = new DeliveryQueue();
  #created = new Listeners<[Session]>();
  #disposedListeners = new Listeners<[Session]>();
  #events = new Listeners<[SessionEvent, Session]>();
  #flushes = new Listeners<[]>();
  #home: SessionHome;
  #blobs: BlobStore;
  #closing: Promise<void> | null = null;
  #ended = false;
  #clock: () => number;
  #endings: Array<() => void> = [];
  #leases = new Map<Session, Lease>();
  /** Why the lease of a session whose writer has gone could not be made use of yet. */
  #leadFailures = new Map<Session, SessionLogError>();
  /** What is under way for sessions that were taken back. */
  #takenBack = new Set<Promise<void>>();
  #channel: Channel;
  /** Names locks and channels between tabs; null where no other tab can reach the same store. */
  #shared: string | null;

  private constructor(env: RawEnv, storage: OpenedBackend, options: OpenOptions, chain: Chain) {
    this.#chain = chain;
    this.#env = env;
    this.#storage = storage;
    this.#options = options;
    this.#clock = steady(options.clock ?? (() => Date.now()));
    this.#shared = storage.shared;
    this.#channel = new Channel(this.#shared, storage.backend.peers, (id, seq) => this.#heard(id, seq));
    this.#library = new Library(storage.backend, this.#live as never, () => this.#now(), (code, message) => this.#warn(code, message));
    this.#blobs = new BlobStore(storage.backend, () => call(() => env.new_id()));
    this.#home = {
      store: this as never,
      backend: storage.backend,
      storeFirst: storage.backend.sync === true && storage.kind !== "memory",
      queue: this.#queue,
      blobs: this.#blobs,
      scrubBlob: (bytes, mediaType) => scrubBlob(this.#chain, bytes, mediaType),
      now: () => this.#now(),
      warn: (code, message) => this.#warn(code, message),
      prepare: (type, text) => this.#chain.payload(type, text),
      openFilter: () => ({ raw: this.#chain.stream(), calls: this.#chain.callers > 0 }),
      note: (event, session) => this.#library.note(event, session as never),
      deliver: (event, session) => this.#events.emit([event, session], (thrown) => this.#contained(thrown)),
      isHeard: () => this.#events.size > 0,
      flush: (write) => this.#flushWith(write),
      recordPut: (session) => this.#library.recordPut(session as never),
      recordFound: (id, bytes, isOwn) => this.#library.found(id, bytes, isOwn),
      patchRecord: (session, change) => this.#library.patch(session.id, change),
      countEvents: (session) => this.#library.countEvents(session as never),
      // Only where a look at the fence costs something, and all who can reach the store share the locks or ask one peer for them.
      isSole: (session) => (storage.kind === "indexeddb" || storage.backend.peers !== undefined) && this.#leases.get(session)?.isSole?.() === true,
      stored: (session) => this.#channel.grown(session.id, session.writer.durable),
      readOnlyReason: () => this.#tooNew,
      recordedTitle: (session) => this.#library.titleOf(session.id),
      filled: (session) => this.#reportDamage(session.raw, session.id),
      detach: (session) => this.#detach(session),
    };
    this.runs = new RunStore({
      backend: storage.backend, now: () => this.#now(), newId: () => call(() => env.new_id()),
      storedForm: (value) => this.storedForm(value),
    });
    exposeStore(this, {
      backend: storage.backend,
      shared: this.#shared,
      peers: storage.backend.peers,
      now: () => this.#now(),
      newId: () => call(() => env.new_id()),
      warn: (code, message) => this.#warn(code, message),
    });
  }

  static async open(options: OpenOptions = {}): Promise<SessionStore> {
    checkOpening(options);
    const random = (options.random ?? undefined) === undefined ? undefined : callersOwn(options.random as (bytes: Uint8Array) => void);
    const env = call(() => new glue.RawEnv(random as never));
    if (options.prices !== undefined) {
      const prices = rawPrices(options.prices as never);
      call(() => env.set_prices(prices));
    }
    const chain = new Chain();
    for (const scrubber of options.scrubbers ?? []) chain.add(scrubber);
    const opened = await openOrMemory(options.storage ?? undefined);
    const { backend, tooNew } = await openFormat(opened.backend);
    const storage = { ...opened, backend, ...(tooNew === null ? {} : { reason: tooNew }) };
    const store = new SessionStore(env, storage, options, chain);
    store.#tooNew = tooNew;
    if (storage.reason !== undefined) store.#warn(storage.reason.code, storage.reason.message);
    await store.#library.load();
    store.#watchPage();
    return store;
  }

  static declareEvent(type: string, options: { durable?: boolean; ignorable?: boolean } = {}): void {
    declareEvent(String(type), options.durable !== false, options.ignorable === true);
  }

  /** A page that is hidden may never come back: what is in memory is written now. */
  #watchPage(): void {
    const page = (globalThis as { document?: Document }).document;
    if (page === undefined || typeof page.addEventListener !== "function") return;
    const flush = () => {
      for (const session of this.#live.values()) if (!session.readOnly) session.writer.flushSoon();
    };
    const hidden = () => page.visibilityState === "hidden" && flush();
    page.addEventListener("visibilitychange", hidden);
    globalThis.addEventListener?.("pagehide", flush);
    this.#endings.push(() => {
      page.removeEventListener("visibilitychange", hidden);
      globalThis.removeEventListener?.("pagehide", flush);
    });
  }

  #now(): number {
    return this.#clock();
  }

  #warn(code: string, message: string): void {
    try {
      this.#options.onWarning?.({ code, message });
    } catch {
      // A warning that cannot be delivered has nowhere else to go.
    }
  }

  #contained(thrown: unknown): void {
    this.#warn("listener", `a listener failed: ${toError(thrown).message}`);
  }

  /** Why nothing can be written: the store belongs to a newer version. */
  #tooNew: SessionLogError | null = null;

  #check(): void {
    if (this.#ended) throw new SessionLogError("disposed", "the store was disposed of");
  }

  #checkId(id: string): void {
    this.#check();
    call((module) => module.raw_check_session_id(String(id)));
  }

  create(id?: string, options?: CreateOptions): Session {
    const session = this.prepare(id, options);
    const detach = this.enter(session);
    try {
      this.announce(session);
    } catch (thrown) {
      detach();
      throw thrown;
    }
    return session;
  }

  prepare(id?: string, options: CreateOptions = {}): Session {
    this.#check();
    if (this.#tooNew !== null) throw this.#tooNew;
    const own = id ?? call(() => this.#env.new_id());
    this.#checkId(own);
    this.#checkFree(own);
    checkCreation(options);
    const meta = options.meta ?? {};
    checkMeta(meta);
    const header = toText({ createdAt: this.#now(), ...withoutUndefined(meta) });
    const raw = call(() => this.#env.create(own, header));
    if (options.seed !== undefined) {
      const seed = seedText(options.seed);
      call(() => raw.seed(seed, options.seed?.length ?? 0));
      this.#scrubAll(raw);
    }
    return this.#make(raw, undefined, this.#scrubbed(options.record ?? {}) as Partial<SessionRecord>);
  }

  /** What comes in from outside as a whole passes the scrubbers before anyone sees it. */
  #scrubAll(raw: RawSession): void {
    if (!this.#chain.isEmpty) call(() => raw.rescrub(this.#chain.raw));
  }

  #checkFree(id: string): void {
    if (this.#live.has(id) || this.#library.isTaken(id)) {
      throw new SessionLogError("already_exists", `a session of that id exists: ${id}`, { id });
    }
  }

  #make(raw: RawSession, base: Header["base"], record?: Partial<SessionRecord>): Session {
    const text = call(() => raw.header());
    const session = new Session(raw, this.#home, { text, ...(base === undefined ? {} : { base }) }, null, base?.count ?? 0, false);
    this.#prepared.set(session, record ?? {});
    return session;
  }
  #prepared = new WeakMap<Session, Partial<SessionRecord>>();
  /** Entered, and nobody was told. */
  readonly #unannounced = new WeakSet<Session>();

  /** Whoever came in now would not be written any more. */
  #checkOpen(): void {
    this.#check();
    if (this.#closing !== null) throw new SessionLogError("disposed", "the store is being disposed of");
  }

  enter(session: Session): () => void {
    this.#checkOpen();
    const record = this.#prepared.get(session);
    if (record === undefined || !session.prepared) throw invalid("only a prepared session of this store can be entered");
    this.#checkFree(session.id);
    const entry = freshEntry(session as never, { ...saidBy(session as never), ...record } as { [field: string]: JsonValue });
    this.#live.set(session.id, session);
    this.#library.forget(session.id);
    this.#library.entries.set(session.id, entry);
    this.#unannounced.add(session);
    session.goLive();
    let attached = true;
    return () => {
      if (!attached || session.disposed) return;
      attached = false;
      void this.#takeBack(session);
    };
  }

  /** Resolves when nothing of the session is left in the store, which is when its id is free again. */
  #takeBack(session: Session): Promise<void> {
    const { id, writer } = session;
    const isBegun = writer.isBegun;
    session.withdraw();
    this.#live.delete(id);
    this.#library.entries.delete(id);
    this.#leases.get(session)?.release();
    this.#leases.delete(session);
    if (!isBegun) return Promise.resolve();
    this.#library.taken.add(id);
    const work = this.#eraseBegun(session)
      .catch((thrown: unknown) => this.#warn("storage", `what was stored of session ${id} is left there: ${toError(thrown).message}`))
      .finally(() => this.#takenBack.delete(work));
    this.#takenBack.add(work);
    return work;
  }

  async #eraseBegun({ id, writer }: Session): Promise<void> {
    await writer.settle();
    const header = await readHeader(this.#storage.backend, id);
    if (header === null) this.#library.taken.delete(id);
    // Another's session of that id is none of ours.
    else if (header.text === writer.header.text) await this.#erase(id, writer.header);
  }

  /** Removes a session from the store, and what only it has used. */
  async #erase(id: string, header: Header | null): Promise<void> {
    const { taken } = this.#library;
    // A fork that is not stored yet reads its first events there all the same.
    const isBase = (base: string) => [...this.#live.values()].some(({ writer }) => writer.header.base?.id === base);
    await this.#blobs.removeUnused(await eraseSession(this.#storage.backend, id, header, { taken, isBase }));
  }

  announce(session: Session): void {
    this.#check();
    if (this.#live.get(session.id) !== session || !this.#unannounced.delete(session)) throw invalid("only a session that was entered here can be announced, and that once");
    this.#created.collect([session]);
    void this.#lease(session.id, () => {}).then((lease) => (session.disposed ? lease.release() : this.#leases.set(session, lease)), () => {});
    session.writer.flush().catch(() => {});
  }

  get(id: string): Session | undefined {
    this.#checkId(id);
    return this.#live.get(id);
  }

  list(): Session[] {
    this.#check();
    return [...this.#live.values()];
  }

  async resume(id: string, options: { recover?: "close" | "resume" | "ask"; unknownEvents?: "keep" | "refuse" } = {}): Promise<Session> {
    this.#checkId(id);
    const { recover = "close", unknownEvents = "keep" } = options;
    if (!["close", "resume", "ask"].includes(recover)) throw invalid("recover must be close, resume or ask");
    if (!["keep", "refuse"].includes(unknownEvents)) throw invalid("unknownEvents must be keep or refuse");
    this.#checkOpen();
    const live = this.#live.get(id);
    if (live?.isEnding === false) return live;
    let loading = this.#loading.get(id);
    if (loading === undefined) {
      loading = this.#load(id, options).finally(() => this.#loading.delete(id));
      this.#loading.set(id, loading);
    }
    return loading;
  }

  /** Another tab has stored events of a session. */
  #heard(id: string, seq: number): void {
    const session = this.#live.get(id);
    if (session === undefined) {
      if (this.#loading.has(id)) this.#grewMeanwhile.set(id, seq);
      return;
    }
    session.follow(seq).catch((thrown: unknown) => this.#warn("follow", toError(thrown).message));
  }
  /** Sessions that grew while they were being read. */
  readonly #grewMeanwhile = new Map<string, number>();

  async #load(id: string, options: { recover?: string; unknownEvents?: string }): Promise<Session> {
    // One that is being disposed of is of no use any more: it is read anew when it has gone.
    await this.#live.get(id)?.dispose().catch(() => {});
    await this.#checkStored(id);
    const closes = (options.recover ?? "close") === "close";
    if (this.#tooNew !== null) return this.#open(id, { held: false, release: () => {} }, false, options.unknownEvents === "refuse");
    const lease = await this.#lease(id, () => void this.#lead(id, closes));
    try {
      return await this.#open(id, lease, closes, options.unknownEvents === "refuse");
    } catch (thrown) {
      lease.release();
      throw toError(thrown);
    }
  }

  async #open(id: string, lease: Lease, closes: boolean, refuses: boolean): Promise<Session> {
    // The session is taken over before it is read: nothing an earlier writer has under way can arrive after that.
    const fence = lease.held ? await takeOver(this.#storage.backend, id) : new Uint8Array();
    const { raw, stored, rest } = (refuses ? null : await this.#loadEnd(id)) ?? { ...(await this.#loadRaw(id)), rest: null };
    this.#checkOpen();
    if (refuses) this.#refuseUnknown(raw);
    const entry = await this.#recordOf(id);
    const session = new Session(raw, this.#home, stored.header, fence, call(() => raw.len()), !lease.held, rest);
    // One that is not whole yet reports when it is.
    if (rest === null) this.#reportDamage(raw, id);
    this.#library.entries.set(id, entry ?? freshEntry(session as never, {}));
    this.#live.set(id, session);
    this.#leases.set(session, lease);
    session.goLive();
    try {
      await this.#begin(session, entry, lease.held, closes, rest?.first ?? 0);
    } catch (thrown) {
      // Whoever asks again gets a session that is opened as it was asked for, or the same error.
      // Its lease goes with the error.
      this.#leases.delete(session);
      await session.dispose().catch(() => {});
      throw thrown;
    }
    const grown = this.#grewMeanwhile.get(id);
    if (this.#grewMeanwhile.delete(id)) this.#heard(id, grown ?? 0);
    return session;
  }

  /** What a session that was read begins with. `entry`: null when its record is gone, undefined when it cannot be read. */
  async #begin(session: Session, entry: Entry | null | undefined, leads: boolean, closes: boolean, first: number): Promise<void> {
    if (entry && leads) this.#library.catchUp(session as never, Math.max(entry.events, first));
    // Whose record is gone gets one; a record that cannot be read stays as it is until something changes.
    if (entry === null && leads) session.writer.markRecord();
    if (!leads) session.writer.follow();
    else if (closes) session.closeOpenTurn();
    if (leads) this.#library.settle(session as never);
    await session.loadBlobs();
  }

  async #lease(id: string, onLead: () => void): Promise<Lease> {
    const wait = this.#options.lockTimeoutMs ?? 0;
    const { peers } = this.#storage.backend;
    const name = this.#shared === null ? null : `${this.#shared}/${id}`;
    const lease = peers === undefined ? await takeLease(name, wait, onLead) : await peers.lease(id, wait, onLead);
    if (lease.held || wait === 0) return lease;
    lease.release();
    throw new SessionLogError("locked", `another tab holds session ${quote(id)}`, { id });
  }

  /** The tab that wrote a session has gone: this one writes it from now on. */
  async #lead(id: string, closes: boolean): Promise<void> {
    // The writer may go while this tab still reads the session.
    const session = this.#live.get(id) ?? (await this.#loading.get(id)?.catch(() => undefined));
    if (session === undefined) return;
    // The lease is this tab's now, and nobody else can write: it goes on until the store lets it, or the session is gone.
    for (let tries = 0; !session.disposed; tries++) {
      try {
        await session.takeOver(async () => {
          const entry = await this.#recordOf(id);
          if (entry) this.#library.entries.set(id, entry);
        });
        this.#leadFailures.delete(session);
        if (closes) session.closeOpenTurn();
        this.#library.settle(session as never);
        return;
      } catch (thrown) {
        const error = toError(thrown);
        if (tries === 0 || !session.readOnly) this.#warn("lease", `the session could not be taken over: ${error.message}`);
        if (error.code === "missing" || !session.readOnly) return;
        this.#leadFailures.set(session, error);
        await new Promise((resolve) => {
          const timer = setTimeout(resolve, Math.min(MAX_LEAD_MS, FIRST_LEAD_MS * 2 ** tries));
          (timer as { unref?: () => void }).unref?.();
        });
      }
    }
  }

  /** Null when there is none, undefined when it cannot be read; what the store does not give out now may be there all the same. */
  async #recordOf(id: string): Promise<Entry | null | undefined> {
    try {
      return await this.#library.read(id);
    } catch (thrown) {
      const error = toError(thrown);
      if (error.code === "not_found") return null;
      if (error.code === "corrupt") return undefined;
      throw error;
    }
  }

  async #checkStored(id: string): Promise<void> {
    const header = await readHeader(this.#storage.backend, id);
    if (header === null || header.gone === true) throw missing(id);
  }

  /** A session's log from the store, in memory of its own. */
  async #loadRaw(id: string): Promise<{ raw: RawSession; stored: StoredLog }> {
    const stored = await readLog(this.#storage.backend, id);
    if (stored === null || stored.header.gone === true) throw missing(id);
    const raw = call(() => this.#env.open(stored.header.text));
    loadLines(raw, stored.lines, stored.end);
    return { raw, stored };
  }

  /** The end of a long session, from its newest compaction on, and how the rest is read; null when all is to be read at once. */
  async #loadEnd(id: string): Promise<{ raw: RawSession; stored: StoredLog; rest: RestOfLog } | null> {
    const { backend } = this.#storage;
    const end = await readEnd(backend, id);
    if (end === null || end.stored.header.gone === true) return null;
    const { stored, first, compacted } = end;
    const { text } = stored.header;
    const raw = call(() => this.#env.open(text, undefined, first));
    loadLines(raw, stored.lines, stored.end);
    // Lines that cannot be read, or a rewind to before the compaction: then it takes the whole log.
    if (call(() => raw.event_id(compacted)) === undefined || call(() => raw.is_rewound_before(compacted))) {
      raw.free();
      return null;
    }
    const read = async () => {
      const earlier = call(() => this.#env.open(text));
      await readUpto(backend, id, stored.header, first, (lines) => loadLines(earlier, [lines]));
      return earlier;
    };
    return { raw, stored, rest: { first, read } };
  }

  #refuseUnknown(raw: RawSession): void {
    for (const { type, seq } of readEvents(raw, 0, call(() => raw.len()), this.#home.warn)) {
      const known = eventClass(type);
      if (known === 0) throw new SessionLogError("undeclared_type", `event ${seq} has an unknown type`, { seq, type: String(type).slice(0, 80) });
    }
  }

  #reportDamage(raw: RawSession, id: string): void {
    const damaged = JSON.parse(call(() => raw.damaged())) as Array<{ line: number; bytes: number }>;
    for (const { line, bytes } of damaged) this.#warn("corrupt", `session ${id}: line ${line} (${bytes} bytes) cannot be read; it is kept`);
    const lost = (JSON.parse(call(() => raw.events_of("session/lost"))) as unknown[]).length - damaged.length;
    if (lost > 0) this.#warn("corrupt", `session ${id}: ${lost} events are missing from the store`);
  }

  fork(sourceId: string, options: Boundary & { id?: string } = {}): Session {
    this.#checkId(sourceId);
    if (this.#tooNew !== null) throw this.#tooNew;
    const source = this.#live.get(sourceId);
    if (source === undefined) {
      const code = this.#library.entries.has(sourceId) ? "unavailable" : "missing";
      throw new SessionLogError(code, code === "missing" ? `there is no session ${sourceId}` : `resume session ${sourceId} before it is forked`, { id: sourceId });
    }
    const id = options.id ?? call(() => this.#env.new_id());
    this.#checkId(id);
    this.#checkFree(id);
    const { raw, count } = source.forkRaw(options, id, this.#now());
    const closers = options.allowOpenTurn === true ? (JSON.parse(call(() => raw.closers())) as Array<{ type: string; data: unknown }>) : [];
    const child = this.#make(raw, baseIn(source, count), this.#setupOf(sourceId));
    const detach = this.enter(child);
    try {
      for (const { type, data } of closers) child.append(type, data);
      child.append("session/forked", { from: sourceId, boundary: count });
      this.announce(child);
    } catch (thrown) {
      detach();
      throw thrown;
    }
    return child;
  }

  /** A fork starts with its source's setup and title. */
  #setupOf(id: string): Partial<SessionRecord> {
    const entry = this.#library.entries.get(id);
    const setup = entry === undefined ? {} : setupOf(entry, false);
    return { ...setup, parent_id: id, title: this.#live.get(id)?.title ?? null } as Partial<SessionRecord>;
  }

  async read(id: string, fromSeq = 0): Promise<SessionEvent[]> {
    this.#checkId(id);
    const live = this.#live.get(id);
    if (live !== undefined && !live.readOnly) await live.writer.flush();
    const { raw } = await this.#loadRaw(id);
    try {
      return readEvents(raw, fromSeq, call(() => raw.len()), this.#home.warn);
    } finally {
      raw.free();
    }
  }

  // ---------------------------------------------------------------- records

  async sessions(options: SessionsOptions = {}): Promise<SessionSummary[]> {
    this.#check();
    return this.#library.list(options);
  }

  async resolveId(idOrPrefix: string): Promise<string> {
    this.#check();
    return this.#library.resolve(String(idOrPrefix));
  }

  async record(id: string): Promise<SessionRecord> {
    this.#checkId(id);
    return reading(await this.#library.entry(id));
  }

  async updateRecord(id: string, change: Partial<SessionRecord>): Promise<SessionRecord> {
    this.#checkId(id);
    const given = this.#scrubbed(change);
    if (given["id"] !== undefined && given["id"] !== id) throw invalid("the id of a record cannot be changed");
    return reading(await this.#library.replace(id, (entry) => changedBy(entry, given as { [field: string]: JsonValue }, this.#now())));
  }

  /** What is put into a record is scrubbed like all else. */
  #scrubbed(change: Partial<SessionRecord>): { [field: string]: JsonValue | undefined } {
    const given = withoutUndefined(change) as { [field: string]: JsonValue };
    return this.#chain.isEmpty ? given : (JSON.parse(this.#chain.payload("record", toText(given, true, "?"))) as typeof given);
  }

  async archive(id: string): Promise<void> {
    this.#checkId(id);
    await this.#library.replace(id, (entry) => ({ ...entry, archived: true }));
  }

  async unarchive(id: string): Promise<void> {
    this.#checkId(id);
    await this.#library.replace(id, (entry) => ({ ...entry, archived: false, unarchivedAt: this.#now() }));
  }

  /** Changes its own marker and nothing else. */
  async markStopped(id: string): Promise<void> {
    this.#checkId(id);
    await this.#library.replace(id, (entry) => (reading(entry).status === "running" ? changed(entry, { status: "stopped" }) : entry));
  }

  async continueSession(id: string, options: { recap?: string } = {}): Promise<Session> {
    this.#checkId(id);
    // The second of two finds what the first has made.
    return this.#continuing.run(id, () => this.#continue(id, options));
  }
  readonly #continuing = new Turns();
  /** Sessions that were to continue another one, could not, and could not be removed either; by the id of the other one. */
  readonly #halfContinued = new Map<string, string>();

  async #continue(id: string, options: { recap?: string }): Promise<Session> {
    const half = this.#halfContinued.get(id);
    if (half !== undefined) await this.#deleteHalf(id, half);
    const previous = await this.#library.entry(id);
    for (const [other, entry] of await this.#library.catalogue()) {
      if (reading(entry)["continues"] === id) throw new SessionLogError("already_exists", `session ${id} is continued already`, { id, next: other });
    }
    const before = reading(previous);
    const title = this.#live.get(id)?.title ?? before.title;
    const cwd = String(before["working_directory"]);
    const record = { ...setupOf(previous, false), continues: id, title, mode: before["mode"], model_name: before["model_name"], project_root: before["project_root"] };
    const next = this.#createIn(cwd, record as Partial<SessionRecord>);
    try {
      if (title !== null) next.append("session/titled", { title });
      const recap = Array.from(options.recap ?? "").slice(0, MAX_RECAP).join("");
      if (recap.trim() !== "") next.append("context/message", { text: recap, source: "recap" }, { repair: true });
      await next.flush();
      await this.archive(id);
    } catch (thrown) {
      await this.#deleteHalf(id, next.id).catch(() => this.#halfContinued.set(id, next.id));
      const { archived, unarchivedAt } = previous;
      await this.#library.replace(id, (entry) => ({ ...entry, archived, unarchivedAt })).catch(() => {});
      throw thrown;
    }
    return next;
  }

  async #deleteHalf(id: string, half: string): Promise<void> {
    await this.delete(half).catch((thrown: unknown) => {
      if (toError(thrown).code !== "missing") throw thrown;
    });
    this.#halfContinued.delete(id);
  }

  /** A record of another program may name a directory that no header takes. */
  #createIn(cwd: string, record: Partial<SessionRecord>): Session {
    try {
      return this.create(undefined, { meta: { cwd }, record });
    } catch (thrown) {
      if (toError(thrown).code !== "invalid_cwd") throw thrown;
      return this.create(undefined, { record: { ...record, working_directory: cwd } as Partial<SessionRecord> });
    }
  }

  async delete(id: string): Promise<void> {
    this.#checkId(id);
    const { backend } = this.#storage;
    const live = this.#live.get(id);
    if (live !== undefined) await live.dispose().catch(() => {});
    const header = await soundHeader(backend, id);
    if (header === null && !this.#library.entries.has(id)) throw missing(id);
    if (header !== null && live === undefined) await this.#stopWriter(id);
    await this.#erase(id, header ?? live?.writer.header ?? null);
    // Not before it is gone: an id whose events are still there is not free.
    this.#library.entries.delete(id);
  }

  async sweep(policy: SweepPolicy = {}): Promise<{ deleted: string[] }> {
    this.#check();
    const rows = [...(await this.#library.catalogue())].filter(([id]) => !this.#live.has(id));
    const deleted = sweepPlan(rows, this.#live.size, policy, this.#now());
    for (const id of deleted) await this.delete(id);
    // What a deletion that was cut off has left.
    await this.#blobs.removeUnused(await this.#blobs.all());
    return { deleted };
  }

  // ---------------------------------------------------------------- export and import

  async exportSession(id: string, options: { format?: ExportFormat; includeUndo?: boolean } = {}): Promise<Uint8Array> {
    this.#checkId(id);
    const live = this.#live.get(id);
    // A record that cannot be read costs nobody the log.
    const known = await this.#library.entry(id).catch((thrown: unknown) => {
      if (toError(thrown).code !== "corrupt") throw thrown;
      return null;
    });
    await live?.whole;
    const stored = live === undefined ? (await this.#loadRaw(id)).raw : null;
    const raw = (): RawSession => stored ?? (live as Session).raw;
    try {
      const format = options.format ?? "sessionlog";
      const blobs = format === "sessionlog" ? await this.#blobs.lines(call(() => raw().blob_names())) : [];
      const entry = known ?? freshEntry({ id, header: JSON.parse(call(() => raw().header())) as Session["header"] } as never, {});
      const { bytes, lost } = exportAs(format, raw(), entry, blobs);
      for (const what of lost) this.#warn("lost", `session ${id}, exported as ${format}: ${what}`);
      return bytes;
    } finally {
      stored?.free();
    }
  }

  async importSession(data: Uint8Array | string, options: { format?: ExportFormat; id?: string } = {}): Promise<{ session: Session; report: ImportReport }> {
    this.#check();
    if (this.#tooNew !== null) throw this.#tooNew;
    // All of it is read before anything is awaited, so there is no need for a copy; what threads share is no text to a decoder.
    const bytes = typeof data === "string" ? encode(data) : data.buffer instanceof ArrayBuffer ? data : data.slice();
    const fallback = { id: call(() => this.#env.new_id()), now: this.#now() };
    const { header, record, body, events, blobs, firstLine, lost } = readExport(options.format ?? "sessionlog", bytes, fallback);
    const id = options.id ?? (JSON.parse(header) as { id?: unknown }).id;
    if (typeof id !== "string") throw new SessionLogError("corrupt", "the header of the export names no session", { line: 1 });
    this.#checkId(id);
    this.#checkFree(id);
    const raw = call(() => this.#env.open(header, id));
    const repeated = repeatedLines(raw, body, loadLines(raw, [body]));
    if (repeated > 0) lost.push(`lines that repeat an event: ${repeated}`);
    this.#scrubAll(raw);
    const damaged = (JSON.parse(call(() => raw.damaged())) as Array<{ line: number; bytes: number }>).map(({ line, bytes: size }) => ({ line: line + firstLine - 1, bytes: size }));
    const session = this.#make(raw, undefined, {});
    const entry = record === null ? null : readEntry(this.#chain.payload("record", record), lost);
    if (entry !== null) this.#library.arriving.add(session as never);
    const detach = this.enter(session);
    try {
      if (entry !== null) this.#library.entries.set(id, changed({ ...entry, events: session.seq }, { id }));
      appendForeign(session, events);
      this.announce(session);
    } catch (thrown) {
      detach();
      throw thrown;
    }
    try {
      await session.writer.flush();
    } catch (thrown) {
      await this.#takeBack(session);
      this.#disposedListeners.emit([session], (failure) => this.#contained(failure));
      throw thrown;
    }
    for (const blob of blobs) await this.#importBlob(session, blob, lost);
    this.#library.arriving.delete(session as never);
    return { session, report: { lost, damaged } };
  }

  async #importBlob(session: Session, { name, type, bytes }: ExportedBlob, lost: string[]): Promise<void> {
    if (scrubBlob(this.#chain, bytes, type) !== bytes) return void lost.push(`blob ${name}: it holds what a scrubber removes`);
    await session.putBlob(bytes, { mediaType: type }).catch((thrown: unknown) => lost.push(`blob ${name}: ${toError(thrown).message}`));
  }

  // ---------------------------------------------------------------- scrubbers

  registerScrubber(scrubber: Scrubber): () => void {
    this.#check();
    return this.#chain.add(scrubber);
  }

  get scrubbing(): boolean {
    return !this.#chain.isEmpty;
  }

  storedForm(value: JsonValue): JsonValue {
    this.#check();
    return this.#chain.storedForm(value);
  }

  async rescrub(scrubber: Scrubber): Promise<{ events: number; remaining: 0 }> {
    this.#check();
    const { backend } = this.#storage;
    await this.flush();
    const work = new Rescrub(backend, scrubber);
    for (const id of await storedIds(backend)) {
      const live = this.#live.get(id);
      await live?.whole;
      await (live === undefined ? this.#rescrubStored(id, work) : work.session(live.asRescrubbed()));
    }
    for (const [id, entry] of await this.#library.catalogue()) {
      const text = work.json(entry.record);
      if (text !== null) await this.#library.replace(id, (now) => ({ ...now, record: call((module) => module.raw_record_set(text, JSON.stringify({ id }))) }));
    }
    await work.values(...keys.below("u/"));
    for (const name of await this.#blobs.rescrub(work.chain)) for (const session of this.#live.values()) session.dropBlob(name);
    await this.flush();
    work.chain.raw.free();
    return { events: work.events, remaining: 0 };
  }

  /** Takes a session over from whoever writes it, and waits until they must have seen that. */
  async #stopWriter(id: string): Promise<Uint8Array> {
    const { backend, kind } = this.#storage;
    const fence = await takeOver(backend, id);
    if (kind === "indexeddb") await new Promise((resolve) => setTimeout(resolve, 3 * PROVEN_MS));
    return fence;
  }

  /** A session that nobody has open is rewritten under a fence of its own. */
  async #rescrubStored(id: string, work: Rescrub): Promise<void> {
    const { backend } = this.#storage;
    const fence = await this.#stopWriter(id);
    const stored = await readLog(backend, id);
    if (stored === null) return;
    const raw = call(() => this.#env.open(stored.header.text));
    try {
      loadLines(raw, stored.lines, stored.end);
      const announce = async (scrubber: string, events: number) => {
        const at = call(() => raw.len());
        call(() => raw.append("session/rescrubbed", JSON.stringify({ scrubber, events }), this.#now()));
        await writeSegment(backend, id, fence, at, call(() => raw.lines(at, at + 1)));
      };
      await work.session({ id, log: { raw }, header: stored.header, announce, fence: async () => fence });
    } finally {
      raw.free();
    }
  }

  // ---------------------------------------------------------------- listeners and the whole

  on(event: StoreEvent, listener: (...args: never[]) => unknown): () => void {
    this.#check();
    if (typeof listener !== "function") throw invalid("a listener must be a function");
    switch (event) {
      case "session/created": return this.#created.add(listener as never);
      case "session/disposed": return this.#disposedListeners.add(listener as never);
      case "session/event": return this.#events.add(listener as never);
      case "session/flush": return this.#flushes.add(listener as never);
      default: throw invalid(`a store has no ${String(event)} listeners`);
    }
  }

  /** Every listener's promise in parallel, then what is to be written, with what they appended; then a failure is the caller's to see. */
  async #flushWith(write: () => Promise<unknown>): Promise<void> {
    const answers = await this.#flushes.all([]);
    await write();
    for (const answer of answers) if (answer.status === "rejected") throw toError(answer.reason);
  }

  async flush(): Promise<void> {
    this.#check();
    await this.#flushWith(() => Promise.all([...this.#live.values()].filter((s) => !s.readOnly).map((session) => session.writer.flush())));
  }

  async status(): Promise<StorageStatus> {
    this.#check();
    const sessions = this.list();
    const failed = sessions.map((s) => s.writer.lastError ?? this.#leadFailures.get(s) ?? null).find((e) => e !== null) ?? null;
    const { kind, durable, reason } = this.#storage;
    const lastError = failed ?? reason ?? null;
    return {
      kind,
      durable,
      ...(await storageFacts()),
      unsaved: sessions.reduce((sum, s) => sum + s.writer.unsaved, 0),
      readOnly: this.#tooNew !== null || sessions.some((s) => s.readOnly),
      ...(lastError === null ? {} : { lastError: { code: lastError.code, message: lastError.message } }),
    };
  }

  async requestPersistence(): Promise<boolean> {
    this.#check();
    return this.#storage.durable && (await askToPersist());
  }

  #detach(session: Session): void {
    if (this.#live.get(session.id) === session) this.#live.delete(session.id);
    this.#leases.get(session)?.release();
    this.#leases.delete(session);
    this.#leadFailures.delete(session);
    this.#disposedListeners.emit([session], (thrown) => this.#contained(thrown));
  }

  dispose(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // What listeners have for the log is written with the rest; one that fails must keep nothing open.
    for (const answer of await this.#flushes.all([])) if (answer.status === "rejected") this.#contained(answer.reason);
    const failures = (await Promise.allSettled(this.list().map((s) => s.dispose()))).filter((r) => r.status === "rejected");
    await Promise.all(this.#takenBack);
    this.#ended = true;
    for (const end of this.#endings) end();
    this.#channel.close();
    await this.#storage.backend.close?.();
    this.#env.free();
    if (failures[0] !== undefined) throw toError(failures[0].reason);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

function withoutUndefined<T extends object>(value: T): T {
  try {
    return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T;
  } catch (cause) {
    throw new SessionLogError("not_json", "not a lossless JSON value: a member cannot be read", { path: "" }, cause);
  }
}

export type { KeyValueBackend };
