// The store: sessions by id, their life cycle, and everything that concerns more than one of them.
import type {
  Boundary, CreateOptions, JsonValue, KeyValueBackend, OpenOptions, SessionEvent, SessionRecord, SessionSummary, StorageStatus,
} from "../types/index.js";
import * as glue from "./glue.js";
import type { RawEnv, RawSession } from "./glue.js";
import { openOrMemory, type OpenedBackend } from "./backends.js";
import { SessionLogError, toError } from "./errors.js";
import { exposeStore } from "./internal.js";
import { DeliveryQueue, Listeners } from "./listeners.js";
import { decode, headKey, readHead, readLog, recordKey, sessionRange, type Head } from "./persist.js";
import { call } from "./runtime.js";
import { joinBytes, Session, type SessionHome } from "./session.js";
import { toText } from "./values.js";

type StoreEvent = "session/created" | "session/disposed" | "session/event" | "session/flush";

const KNOWN_PREFIX = "r/";

function invalid(message: string): SessionLogError {
  return new SessionLogError("invalid_argument", message);
}

export class SessionStore {
  #env: RawEnv;
  #storage: OpenedBackend;
  #options: OpenOptions;
  #live = new Map<string, Session>();
  /** Ids that the store holds, and their records as they were last stored. */
  #records = new Map<string, SessionRecord>();
  #loading = new Map<string, Promise<Session>>();
  #queue = new DeliveryQueue();
  #created = new Listeners<[Session]>();
  #disposedListeners = new Listeners<[Session]>();
  #events = new Listeners<[SessionEvent, Session]>();
  #flushes = new Listeners<[]>();
  #home: SessionHome;
  #closing: Promise<void> | null = null;
  #ended = false;
  #endings: Array<() => void> = [];

  private constructor(env: RawEnv, storage: OpenedBackend, options: OpenOptions) {
    this.#env = env;
    this.#storage = storage;
    this.#options = options;
    this.#home = {
      store: this as never,
      backend: storage.backend,
      storeFirst: storage.backend.sync === true && storage.kind !== "memory",
      queue: this.#queue,
      now: () => this.#now(),
      warn: (code, message) => this.#warn(code, message),
      prepare: (_type, text) => ({ text, note: undefined }),
      deliver: (event, session) => this.#events.emit([event, session], (thrown) => this.#contained(thrown)),
      flushed: () => this.#flushListeners(),
      recordText: (session) => this.#recordText(session),
      patchRecord: (session, change) => this.#patch(session.id, change),
      detach: (session) => this.#detach(session),
      stored: () => {},
    };
    exposeStore(this, {
      backend: storage.backend,
      now: () => this.#now(),
      newId: () => call(() => env.new_id()),
      warn: (code, message) => this.#warn(code, message),
    });
  }

  static async open(options: OpenOptions = {}): Promise<SessionStore> {
    const env = call(() => new glue.RawEnv(options.random as never));
    const storage = await openOrMemory(options.storage);
    const store = new SessionStore(env, storage, options);
    if (storage.reason !== undefined) store.#warn(storage.reason.code, storage.reason.message);
    await store.#loadRecords();
    store.#watchPage();
    return store;
  }

  static declareEvent(type: string, options: { durable?: boolean; ignorable?: boolean } = {}): void {
    call((module) => module.raw_declare_event(String(type), options.durable !== false, options.ignorable === true));
  }

  async #loadRecords(): Promise<void> {
    for (const [key, value] of await this.#storage.backend.list(KNOWN_PREFIX, "r0")) {
      const id = key.slice(KNOWN_PREFIX.length);
      try {
        this.#records.set(id, JSON.parse(decode(value)) as SessionRecord);
      } catch {
        this.#warn("corrupt", `the record of session ${id} cannot be read; it is kept as it is`);
      }
    }
  }

  /** A page that is hidden may never come back: what is in memory is written now. */
  #watchPage(): void {
    const page = (globalThis as { document?: Document }).document;
    if (page === undefined || typeof page.addEventListener !== "function") return;
    const flush = () => {
      for (const session of this.#live.values()) if (!session.readOnly) session.writer.flush().catch(() => {});
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
    return Math.floor(this.#options.clock?.() ?? Date.now());
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
    const own = id ?? call(() => this.#env.new_id());
    this.#checkId(own);
    this.#checkFree(own);
    const meta = options.meta ?? {};
    const header = toText({ createdAt: this.#now(), ...withoutUndefined(meta) });
    const raw = call(() => this.#env.create(own, header));
    if (options.seed !== undefined) {
      const seed = toText(options.seed);
      call(() => raw.seed(seed, options.seed?.length ?? 0));
    }
    return this.#make(raw, undefined, options.record);
  }

  #checkFree(id: string): void {
    if (this.#live.has(id) || this.#records.has(id)) {
      throw new SessionLogError("already_exists", `a session of that id exists: ${id}`, { id });
    }
  }

  #make(raw: RawSession, base: Head["base"], record?: Partial<SessionRecord>): Session {
    const header = JSON.parse(call(() => raw.header())) as Head["header"];
    const head: Head = { format: 1, header, epoch: 1, seq: 0, digest: "", ...(base === undefined ? {} : { base }) };
    const session = new Session(raw, this.#home, head, null, base?.count ?? 0, false);
    this.#prepared.set(session, record ?? {});
    return session;
  }
  #prepared = new WeakMap<Session, Partial<SessionRecord>>();

  enter(session: Session): () => void {
    this.#check();
    const record = this.#prepared.get(session);
    if (record === undefined || !session.prepared) throw invalid("only a prepared session of this store can be entered");
    this.#checkFree(session.id);
    this.#live.set(session.id, session);
    this.#records.set(session.id, this.#freshRecord(session, record));
    session.goLive();
    let attached = true;
    return () => {
      if (!attached || session.disposed) return;
      attached = false;
      session.withdraw();
      this.#live.delete(session.id);
      this.#records.delete(session.id);
    };
  }

  announce(session: Session): void {
    this.#check();
    this.#created.collect([session]);
    session.writer.schedule(true);
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
    const live = this.#live.get(id);
    if (live !== undefined) return live;
    let loading = this.#loading.get(id);
    if (loading === undefined) {
      loading = this.#load(id, options).finally(() => this.#loading.delete(id));
      this.#loading.set(id, loading);
    }
    return loading;
  }

  async #load(id: string, options: { recover?: string; unknownEvents?: string }): Promise<Session> {
    const stored = await readLog(this.#storage.backend, id);
    if (stored === null || stored.head.gone === true) throw new SessionLogError("missing", `the store has no session ${id}`, { id });
    this.#check();
    const raw = call(() => this.#env.open(JSON.stringify(stored.head.header)));
    const bytes = joinBytes(stored.lines);
    call(() => raw.load(bytes));
    if (options.unknownEvents === "refuse") this.#refuseUnknown(raw);
    const head: Head = { ...stored.head, epoch: stored.head.epoch + 1 };
    const session = new Session(raw, this.#home, head, stored.headBytes, stored.head.seq, false);
    this.#reportDamage(raw, id);
    this.#live.set(id, session);
    if (!this.#records.has(id)) this.#records.set(id, this.#freshRecord(session, {}));
    session.goLive();
    if ((options.recover ?? "close") === "close") {
      for (const { type, data } of JSON.parse(call(() => raw.closers())) as Array<{ type: string; data: unknown }>) session.append(type, data);
    }
    return session;
  }

  #refuseUnknown(raw: RawSession): void {
    for (const { type, seq } of JSON.parse(call(() => raw.events(0, raw.len()))) as SessionEvent[]) {
      const known = call((module) => module.raw_event_class(type));
      if (known === 0) throw new SessionLogError("undeclared_type", `event ${seq} has an unknown type`, { seq, type: String(type).slice(0, 80) });
    }
  }

  #reportDamage(raw: RawSession, id: string): void {
    const damaged = JSON.parse(call(() => raw.damaged())) as Array<{ line: number; bytes: number }>;
    for (const { line, bytes } of damaged) this.#warn("corrupt", `session ${id}: line ${line} (${bytes} bytes) cannot be read; it is kept`);
  }

  fork(sourceId: string, options: Boundary & { id?: string } = {}): Session {
    this.#checkId(sourceId);
    const source = this.#live.get(sourceId);
    if (source === undefined) {
      const code = this.#records.has(sourceId) ? "unavailable" : "missing";
      throw new SessionLogError(code, code === "missing" ? `there is no session ${sourceId}` : `resume session ${sourceId} before it is forked`, { id: sourceId });
    }
    const id = options.id ?? call(() => this.#env.new_id());
    this.#checkId(id);
    this.#checkFree(id);
    const { raw, count } = source.forkRaw(options, id, this.#now());
    const closers = options.allowOpenTurn === true ? (JSON.parse(call(() => raw.closers())) as Array<{ type: string; data: unknown }>) : [];
    const child = this.#make(raw, { id: sourceId, count }, this.#setupOf(sourceId));
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

  #setupOf(_id: string): Partial<SessionRecord> {
    return { parent_id: _id };
  }

  async read(id: string, fromSeq = 0): Promise<SessionEvent[]> {
    this.#checkId(id);
    const live = this.#live.get(id);
    if (live !== undefined && !live.readOnly) await live.writer.flush();
    const stored = await readLog(this.#storage.backend, id);
    if (stored === null || stored.head.gone === true) throw new SessionLogError("missing", `the store has no session ${id}`, { id });
    const raw = call(() => this.#env.open(JSON.stringify(stored.head.header)));
    try {
      const bytes = joinBytes(stored.lines);
      call(() => raw.load(bytes));
      return JSON.parse(call(() => raw.events(fromSeq, raw.len()))) as SessionEvent[];
    } finally {
      raw.free();
    }
  }

  // ---------------------------------------------------------------- records

  #freshRecord(session: Session, given: Partial<SessionRecord>): SessionRecord {
    const { createdAt, cwd, parentSession } = session.header;
    const at = new Date(createdAt).toISOString();
    return {
      id: session.id, createdAt: at, updatedAt: at, status: "idle", title: null, archived: false, preview: "", events: 0,
      working_directory: cwd ?? "/", ...(parentSession === undefined ? {} : { parent_id: parentSession }), ...given,
    } as SessionRecord;
  }

  #patch(id: string, change: { [field: string]: JsonValue }): void {
    const record = this.#records.get(id);
    if (record === undefined) return;
    this.#records.set(id, { ...record, ...change });
    this.#live.get(id)?.writer.markRecord();
  }

  #recordText(session: Session): string {
    const record = this.#records.get(session.id) as SessionRecord;
    const first = call(() => session.raw.first_user());
    const preview = first === undefined ? "" : previewOf(session.event(first));
    const next: SessionRecord = {
      ...record, title: call(() => session.raw.title()) ?? record.title, preview, events: call(() => session.raw.len()),
      updatedAt: new Date(this.#now()).toISOString(),
    };
    this.#records.set(session.id, next);
    return JSON.stringify(next);
  }

  async sessions(options: { sort?: string; order?: string; includeArchived?: boolean; projectRoot?: string; limit?: number; offset?: number } = {}): Promise<SessionSummary[]> {
    this.#check();
    const sort = options.sort === "createdAt" ? "createdAt" : "updatedAt";
    const sign = options.order === "asc" ? 1 : -1;
    const rows: SessionSummary[] = [];
    for (const [key, value] of await this.#storage.backend.list(KNOWN_PREFIX, "r0")) {
      const id = key.slice(KNOWN_PREFIX.length);
      try {
        rows.push(this.#summary(this.#live.has(id) ? (this.#records.get(id) as SessionRecord) : (JSON.parse(decode(value)) as SessionRecord)));
      } catch {
        this.#warn("corrupt", `the record of session ${id} cannot be read; it is passed over`);
      }
    }
    for (const id of this.#live.keys()) if (!rows.some((row) => row.id === id)) rows.push(this.#summary(this.#records.get(id) as SessionRecord));
    const shown = rows.filter((row) => options.includeArchived === true || !row.archived);
    shown.sort((a, b) => sign * (a[sort] - b[sort]) || (a.id < b.id ? -1 : 1));
    const offset = options.offset ?? 0;
    return shown.slice(offset, options.limit === undefined ? undefined : offset + options.limit);
  }

  #summary(record: SessionRecord): SessionSummary {
    const live = this.#live.get(record.id);
    const title = live === undefined ? record.title : live.title ?? record.title;
    const preview = String(record["preview"] ?? "");
    return {
      id: record.id, title: title ?? shorten(preview), createdAt: Date.parse(record.createdAt), updatedAt: Date.parse(record.updatedAt),
      status: record.status === "running" && live === undefined ? "idle" : record.status,
      events: live?.seq ?? Number(record["events"] ?? 0), archived: record["archived"] === true, preview,
      ...(typeof record["parent_id"] === "string" ? { parentId: record["parent_id"] } : {}),
    };
  }

  async record(id: string): Promise<SessionRecord> {
    this.#checkId(id);
    const live = this.#records.get(id);
    if (this.#live.has(id) && live !== undefined) return { ...live, title: this.#live.get(id)?.title ?? live.title };
    const bytes = await this.#storage.backend.get(recordKey(id));
    if (bytes === null) throw new SessionLogError("not_found", `there is no session ${id}`, { given: id });
    return JSON.parse(decode(bytes)) as SessionRecord;
  }

  async updateRecord(id: string, change: Partial<SessionRecord>): Promise<SessionRecord> {
    const record = await this.record(id);
    const next = { ...record, ...(JSON.parse(toText(withoutUndefined(change))) as Partial<SessionRecord>), id } as SessionRecord;
    this.#records.set(id, next);
    const live = this.#live.get(id);
    if (live !== undefined) {
      live.writer.markRecord();
      await live.writer.flush();
    } else {
      await this.#storage.backend.transact({ puts: [[recordKey(id), new TextEncoder().encode(JSON.stringify(next))]] });
    }
    return this.record(id);
  }

  async archive(id: string): Promise<void> {
    await this.updateRecord(id, { archived: true });
  }

  async unarchive(id: string): Promise<void> {
    await this.updateRecord(id, { archived: false });
  }

  async delete(id: string): Promise<void> {
    this.#checkId(id);
    const { backend } = this.#storage;
    const live = this.#live.get(id);
    if (live !== undefined) await live.dispose().catch(() => {});
    const found = await readHead(backend, id);
    if (found === null && !this.#records.has(id)) throw new SessionLogError("missing", `the store has no session ${id}`, { id });
    this.#records.delete(id);
    if (found !== null && (await this.#hasChildren(id))) {
      // Forks still read their first events from here.
      const gone = new TextEncoder().encode(JSON.stringify({ ...found.head, gone: true }));
      await backend.transact({ puts: [[headKey(id), gone]], deletes: [recordKey(id)] });
      return;
    }
    await this.#erase(id);
    const base = found?.head.base?.id;
    if (base !== undefined) await this.#eraseOrphan(base);
  }

  async #erase(id: string): Promise<void> {
    const { backend } = this.#storage;
    const [start, end] = sessionRange(id);
    const keys = (await backend.list(start, end, { keysOnly: true })).map(([key]) => key);
    await backend.transact({ deletes: [...keys, recordKey(id)] });
  }

  /** A deleted session that only forks needed goes when its last fork goes. */
  async #eraseOrphan(id: string): Promise<void> {
    const found = await readHead(this.#storage.backend, id);
    if (found === null || found.head.gone !== true || (await this.#hasChildren(id))) return;
    await this.#erase(id);
    if (found.head.base !== undefined) await this.#eraseOrphan(found.head.base.id);
  }

  async #hasChildren(id: string): Promise<boolean> {
    const { backend } = this.#storage;
    for (const [key] of await backend.list("s/", "s0", { keysOnly: true })) {
      const other = /^s\/([^/]+)\/h$/.exec(key)?.[1];
      if (other === undefined || other === id) continue;
      const found = await readHead(backend, other).catch(() => null);
      if (found?.head.base?.id === id) return true;
    }
    return false;
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

  /** Every listener's promise in parallel; a failure is the caller's to see, after all have ended. */
  async #flushListeners(): Promise<void> {
    const answers = await Promise.allSettled(this.#flushes.collect([]));
    for (const answer of answers) if (answer.status === "rejected") throw toError(answer.reason);
  }

  async flush(): Promise<void> {
    this.#check();
    await this.#flushListeners();
    await Promise.all(this.list().filter((s) => !s.readOnly).map((session) => session.writer.flush()));
  }

  async status(): Promise<StorageStatus> {
    this.#check();
    const sessions = this.list();
    const failed = sessions.map((s) => s.writer.lastError).find((e) => e !== null) ?? null;
    const { kind, durable, reason } = this.#storage;
    const lastError = failed ?? reason ?? null;
    return {
      kind,
      durable,
      ...(await storageFacts()),
      unsaved: sessions.reduce((sum, s) => sum + s.writer.unsaved, 0),
      readOnly: sessions.some((s) => s.readOnly),
      ...(lastError === null ? {} : { lastError: { code: lastError.code, message: lastError.message } }),
    };
  }

  async requestPersistence(): Promise<boolean> {
    this.#check();
    return this.#storage.durable && (await within(PERSIST_ANSWER_MS, storageManager()?.persist?.(), false));
  }

  #detach(session: Session): void {
    if (this.#live.get(session.id) === session) this.#live.delete(session.id);
    this.#disposedListeners.emit([session], (thrown) => this.#contained(thrown));
  }

  dispose(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const failures = (await Promise.allSettled(this.list().map((s) => s.dispose()))).filter((r) => r.status === "rejected");
    this.#ended = true;
    for (const end of this.#endings) end();
    await this.#storage.backend.close?.();
    this.#env.free();
    if (failures[0] !== undefined) throw toError(failures[0].reason);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

/** A headless browser may never answer; a person may take their time with a prompt. */
const PERSIST_ANSWER_MS = 5_000;
const FACTS_ANSWER_MS = 1_000;

function storageManager(): StorageManager | undefined {
  return (globalThis as { navigator?: { storage?: StorageManager } }).navigator?.storage;
}

/** The answer, or `otherwise` when there is none, in time. */
async function within<T, O>(ms: number, answer: Promise<T> | undefined, otherwise: O): Promise<T | O> {
  if (answer === undefined) return otherwise;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<O>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), ms);
  });
  try {
    return await Promise.race([answer.catch(() => otherwise), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function storageFacts(): Promise<{ persisted: boolean | null; usageBytes?: number; quotaBytes?: number }> {
  const manager = storageManager();
  const persisted = await within(FACTS_ANSWER_MS, manager?.persisted?.(), null);
  const estimate = await within(FACTS_ANSWER_MS, manager?.estimate?.(), {} as StorageEstimate);
  const { usage, quota } = estimate;
  return { persisted, ...(usage === undefined ? {} : { usageBytes: usage }), ...(quota === undefined ? {} : { quotaBytes: quota }) };
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T;
}

function previewOf(event: SessionEvent | undefined): string {
  const data = event?.data as { text?: unknown; parts?: Array<{ type?: string; text?: string }> } | undefined;
  const text = typeof data?.text === "string" ? data.text : (data?.parts ?? []).map((p) => (p.type === "text" ? p.text ?? "" : "")).join(" ");
  return text.replace(/\s+/g, " ").trim().slice(0, 400);
}

/** At most 80 characters, never half a pair. */
function shorten(text: string): string {
  const chars = Array.from(text);
  return chars.length <= 80 ? text : `${chars.slice(0, 79).join("")}…`;
}

export type { KeyValueBackend };
