// One live session: a handle on its log in the module, its writer, and its listeners.
import type {
  Boundary, JsonValue, Message, PriceTable, SessionEvent, SessionHeader, KeyValueBackend, SessionStore as PublicStore, SessionUsage,
} from "../types/index.js";
import type { RawSession } from "./glue.js";
import { rawPrices } from "./cost.js";
import { DerivedMessages, parseMessages } from "./derive.js";
import { SessionLogError, toError } from "./errors.js";
import { exposeSession } from "./internal.js";
import { Listeners, type DeliveryQueue } from "./listeners.js";
import { joinBytes, readLog, Writer, type Head, type WriterHost } from "./persist.js";
import { call } from "./runtime.js";
import { toText } from "./values.js";

/** What a session needs of its store. */
export interface SessionHome {
  readonly store: PublicStore;
  readonly backend: KeyValueBackend;
  /** A store that finishes before it returns comes first; memory outlives nothing, so it can follow. */
  readonly storeFirst: boolean;
  readonly queue: DeliveryQueue;
  now(): number;
  warn(code: string, message: string): void;
  /** The payload in stored form. */
  prepare(type: string, text: string): string;
  deliver(event: SessionEvent, session: Session): void;
  flushed(): Promise<unknown>;
  /** Takes over what an event says about its session. */
  note(event: SessionEvent, session: Session): void;
  recordBytes(session: Session): Uint8Array;
  patchRecord(session: Session, change: { [field: string]: JsonValue }): void;
  detach(session: Session): void;
  stored(session: Session): void;
}

interface DurableJob {
  type: string;
  text: string;
  repair: boolean;
  resolve(event: SessionEvent): void;
  reject(error: SessionLogError): void;
}

type Options = { repair?: boolean };

/** An event as JavaScript sees it; its payload is parsed when it is first asked for. */
function lazyEvent(id: string, sessionId: string, seq: number, at: number, type: string, text: string): SessionEvent {
  let data: unknown;
  let parsed = false;
  return {
    id, sessionId, seq, at, type,
    get data() {
      if (!parsed) {
        data = JSON.parse(text);
        parsed = true;
      }
      return data;
    },
    set data(value) {
      data = value;
      parsed = true;
    },
  } as unknown as SessionEvent;
}

export class Session {
  readonly id: string;
  #raw: RawSession;
  #home: SessionHome;
  #writer: Writer;
  #listeners = new Listeners<[SessionEvent]>();
  #changes = new Listeners<[]>();
  #visible: number;
  #state: "prepared" | "live" | "disposed" = "prepared";
  #readOnly: boolean;
  #jobs: DurableJob[] = [];
  #staged: DurableJob[] = [];
  #pumping: Promise<void> | null = null;
  #disposal: Promise<void> | null = null;
  #teardown = new Set<() => Promise<void> | void>();
  #companions = new Set<() => Promise<void>>();
  #header: SessionHeader;
  #messages: DerivedMessages;

  /** @internal Sessions are made by their store. */
  constructor(raw: RawSession, home: SessionHome, head: Head, headBytes: Uint8Array | null, durable: number, readOnly: boolean) {
    this.#raw = raw;
    this.#home = home;
    this.#header = JSON.parse(call(() => raw.header())) as SessionHeader;
    this.id = this.#header.id;
    this.#visible = call(() => raw.len());
    this.#readOnly = readOnly;
    this.#messages = new DerivedMessages(() => call(() => raw.derive_update()));
    const host: WriterHost = {
      id: this.id,
      raw,
      backend: home.backend,
      recordBytes: () => home.recordBytes(this),
      rebase: () => this.#rebase(),
      settled: () => home.stored(this),
    };
    this.#writer = new Writer(host, head, headBytes, durable);
    exposeSession(this, {
      raw,
      store: home.store,
      teardown: this.#teardown,
      companions: this.#companions,
      checkpoint: () => this.#checkpoint(),
      patchRecord: (change) => home.patchRecord(this, change),
      append: (type, data, options) => this.append(type as never, data as never, options),
    });
  }

  get header(): SessionHeader {
    return { ...this.#header };
  }

  get seq(): number {
    return this.#visible;
  }

  get durableSeq(): number {
    return Math.min(this.#writer.durable, this.#visible);
  }

  get events(): SessionEvent[] {
    return this.slice(0);
  }

  get title(): string | null {
    this.#check();
    return call(() => this.#raw.title()) ?? null;
  }

  get readOnly(): boolean {
    return this.#readOnly;
  }

  #check(): void {
    if (this.#state === "disposed") throw new SessionLogError("disposed", "the session was disposed of", { id: this.id });
  }

  #checkWritable(): void {
    this.#check();
    if (this.#readOnly) throw new SessionLogError("locked", "another tab or process writes this session", { id: this.id });
  }

  append(type: string, data: unknown, options?: Options): SessionEvent {
    this.#checkWritable();
    const text = this.#accept(type, data, options);
    this.#demote();
    const event = this.#put(type, text);
    if (this.#home.storeFirst && this.#state === "live") this.#storeFirst();
    this.#show([event]);
    this.#schedule(type);
    return event;
  }

  /** Checks a payload and returns its text. */
  #accept(type: string, data: unknown, options?: Options): string {
    if (typeof type !== "string") throw new SessionLogError("invalid_event", "the type of an event must be text");
    return toText(data, options?.repair === true);
  }

  /** Puts an event into the log in memory; nobody has seen it yet. */
  #put(type: string, text: string): SessionEvent {
    const stored = this.#home.prepare(type, text);
    const at = this.#home.now();
    const seq = call(() => this.#raw.len());
    const id = call(() => this.#raw.append(type, stored, at));
    return lazyEvent(id, this.id, seq, at, type, stored);
  }

  /** Stores before anyone sees the event; on failure its seq is free again. */
  #storeFirst(): void {
    try {
      this.#writer.flushSync();
    } catch (thrown) {
      call(() => this.#raw.truncate(this.#visible));
      throw thrown;
    }
  }

  /** Makes events visible and delivers them. */
  #show(events: SessionEvent[]): void {
    this.#visible += events.length;
    const onError = (thrown: unknown) => this.#home.warn("listener", `a listener failed: ${toError(thrown).message}`);
    for (const event of events) {
      this.#home.note(event, this);
      this.#home.queue.run(() => {
        this.#listeners.emit([event], onError);
        this.#home.deliver(event, this);
        this.#changes.emit([], onError);
      });
    }
  }

  #schedule(type: string): void {
    if (this.#state !== "live" || this.#home.storeFirst) return;
    this.#writer.schedule((call((module) => module.raw_event_class(type)) & 2) !== 0);
  }

  appendDurable(type: string, data: unknown, options?: Options): Promise<SessionEvent> {
    return new Promise((resolve, reject) => {
      this.#checkWritable();
      if (this.#home.storeFirst) return resolve(this.append(type, data, options));
      const repair = options?.repair === true;
      const text = this.#accept(type, data, options);
      // Refused now rather than after a write that cannot succeed.
      this.#checkType(type);
      this.#jobs.push({ type, text, repair, resolve, reject });
      this.#pumping ??= this.#pump().finally(() => (this.#pumping = null));
    });
  }

  #checkType(type: string): void {
    if (call((module) => module.raw_event_class(type)) === 0) {
      throw new SessionLogError("undeclared_type", `event type is not declared: ${type.slice(0, 80)}`, { type: type.slice(0, 80) });
    }
  }

  /** Stores queued durable events, all that wait in one write. */
  async #pump(): Promise<void> {
    while (this.#jobs.length > 0) {
      try {
        await this.#writer.flush();
      } catch (thrown) {
        const error = toError(thrown);
        for (const job of this.#jobs.splice(0)) job.reject(error);
        return;
      }
      // A synchronous append may have taken the waiting ones along meanwhile.
      if (this.#jobs.length > 0) await this.#storeStaged();
    }
  }

  async #storeStaged(): Promise<void> {
    const jobs = this.#jobs.splice(0);
    const events: SessionEvent[] = [];
    for (const job of jobs) {
      try {
        events.push(this.#put(job.type, job.text));
        this.#staged.push(job);
      } catch (thrown) {
        job.reject(toError(thrown));
      }
    }
    const demoted = () => this.#staged.length === 0;
    this.#stagedEvents = events;
    try {
      await this.#writer.flush();
      const done = this.#staged;
      this.#staged = [];
      const shown = this.#renumbered(this.#stagedEvents);
      this.#stagedEvents = [];
      this.#show(shown);
      done.forEach((job, at) => job.resolve(shown[at] as SessionEvent));
    } catch (thrown) {
      if (demoted()) return;
      const failed = this.#staged;
      this.#staged = [];
      this.#stagedEvents = [];
      call(() => this.#raw.truncate(this.#visible));
      for (const job of failed) job.reject(toError(thrown));
    }
  }
  #stagedEvents: SessionEvent[] = [];

  /** Staged events after a rebase: they stand behind what the other writer stored. */
  #renumbered(events: SessionEvent[]): SessionEvent[] {
    if (events[0] === undefined || events[0].seq === this.#visible) return events;
    return JSON.parse(call(() => this.#raw.events(this.#visible, this.#visible + events.length))) as SessionEvent[];
  }

  /**
   * A synchronous append cannot wait for durable ones that were asked for before it: they become ordinary events in
   * their order, and their promises follow what becomes of the write.
   */
  #demote(): void {
    if (this.#staged.length === 0 && this.#jobs.length === 0) return;
    const jobs = this.#staged.concat(this.#jobs);
    const events = this.#stagedEvents;
    this.#staged = [];
    this.#stagedEvents = [];
    for (const job of this.#jobs.splice(0)) events.push(this.#put(job.type, job.text));
    this.#show(events);
    this.#writer.flush().then(
      () => jobs.forEach((job, at) => job.resolve(events[at] as SessionEvent)),
      (thrown: unknown) => jobs.forEach((job) => job.reject(toError(thrown))),
    );
  }

  event(seq: number): SessionEvent | undefined {
    return this.slice(seq, seq + 1)[0];
  }

  slice(fromSeq: number, toSeq?: number): SessionEvent[] {
    this.#check();
    const to = Math.min(toSeq ?? this.#visible, this.#visible);
    const from = Math.max(0, Math.floor(fromSeq));
    if (!(from < to)) return [];
    return JSON.parse(call(() => this.#raw.events(from, to))) as SessionEvent[];
  }

  deriveMessages(options: { upto?: number } = {}): Message[] {
    this.#check();
    const { upto } = options;
    if (upto === undefined || upto >= this.#visible) return this.#messages.list();
    return parseMessages(call(() => this.#raw.derive_messages(Math.max(0, Math.floor(upto)))));
  }

  getSnapshot(): readonly Message[] {
    this.#check();
    return this.#messages.snapshot();
  }

  /**
   * Puts a summary in the place of what came before. Null, with a warning, when the summary is blank or when something
   * was said meanwhile: the summary would not cover it.
   */
  async compact(
    summarize: (messages: Message[]) => Promise<string | null> | string | null,
    options: { keepTokens?: number } = {},
  ): Promise<SessionEvent | null> {
    this.#checkWritable();
    const before = this.getSnapshot();
    if (before.length === 0) throw new SessionLogError("empty_history", "there is nothing to compact");
    const cut = call(() => this.#raw.cut(options.keepTokens));
    if (cut === undefined) return null;
    const [covered = 0, uptoSeq = -1] = cut;
    const summary = await summarize(before.slice(0, covered));
    this.#checkWritable();
    const why =
      typeof summary !== "string" || summary.trim() === "" ? "the summarizer gave no summary"
      : this.getSnapshot() !== before ? "something was said while the summary was made"
      : null;
    if (why !== null) {
      this.#home.warn("compaction", `nothing was compacted: ${why}`);
      return null;
    }
    const boundary = options.keepTokens === undefined ? this.#visible - 1 : uptoSeq;
    return this.append("session/compacted", { summary, uptoSeq: boundary });
  }

  pendingCalls(): Array<{ id: string; name: string; state: "not-started" | "outcome-unknown" }> {
    this.#check();
    return JSON.parse(call(() => this.#raw.pending_calls())) as ReturnType<Session["pendingCalls"]>;
  }

  usage(): SessionUsage {
    this.#check();
    return JSON.parse(call(() => this.#raw.usage())) as SessionUsage;
  }

  /** What the session would cost with other prices; the history keeps the prices of its day. */
  reprice(prices: PriceTable): SessionUsage {
    this.#check();
    const raw = rawPrices(prices as never);
    return JSON.parse(call(() => this.#raw.reprice(raw))) as SessionUsage;
  }

  setTitle(title: string): SessionEvent {
    return this.append("session/titled", { title });
  }

  verify(): number | null {
    this.#check();
    return call(() => this.#raw.verify()) ?? null;
  }

  async flush(): Promise<void> {
    this.#check();
    await Promise.all([this.#home.flushed(), this.#writer.flush()]);
  }

  async #checkpoint(): Promise<void> {
    this.#check();
    await Promise.all([...this.#companions].map((flush) => flush()));
    await this.#writer.flush();
  }

  on(event: "event", listener: (event: SessionEvent) => void): () => void {
    this.#check();
    if (event !== "event") throw new SessionLogError("invalid_argument", `a session has no ${String(event)} listeners`);
    return this.#listeners.add(listener);
  }

  subscribe(listener: () => void): () => void {
    this.#check();
    return this.#changes.add(listener);
  }

  /** @internal The session is entered: from now on it is written. */
  goLive(): void {
    this.#state = "live";
  }

  /** @internal */
  get prepared(): boolean {
    return this.#state === "prepared";
  }

  /** @internal */
  get disposed(): boolean {
    return this.#state === "disposed";
  }

  /** @internal */
  get writer(): Writer {
    return this.#writer;
  }

  /** @internal */
  get raw(): RawSession {
    return this.#raw;
  }

  /** @internal Back to before `enter`. */
  withdraw(): void {
    this.#writer.stop();
    this.#state = "disposed";
    this.#listeners.clear();
    this.#changes.clear();
  }

  /** @internal */
  forkRaw(boundary: Boundary, id: string, createdAt: number): { raw: RawSession; count: number } {
    this.#check();
    const { count, throughSeq, messageSeq, allowOpenTurn } = boundary;
    const text = JSON.stringify({ count, throughSeq, messageSeq, allowOpenTurn });
    const taken = Math.min(call(() => this.#raw.boundary(text)), this.#visible);
    const options = JSON.stringify({ createdAt, cwd: this.#header.cwd, parentSession: this.id });
    return { raw: call(() => this.#raw.fork(taken, id, options, allowOpenTurn === true)), count: taken };
  }

  /** Another writer was first: its events come in, ours are put after them. */
  async #rebase(): Promise<void> {
    const stored = await readLog(this.#home.backend, this.id);
    if (stored === null) throw new SessionLogError("missing", "the session is gone from the store", { id: this.id });
    const from = this.#writer.durable;
    const before = this.#visible;
    const joined = joinBytes(stored.lines);
    call(() => this.#raw.rebase(from, joined));
    this.#writer.reset(stored.head, stored.headBytes, stored.head.seq);
    const taken = stored.head.seq - from;
    if (taken <= 0) return;
    this.#home.warn("conflict", `another writer appended ${taken} events first; ours stand after them`);
    const theirs = JSON.parse(call(() => this.#raw.events(from, stored.head.seq))) as SessionEvent[];
    // Staged events are at the end and stay unseen.
    this.#visible = before;
    this.#show(theirs);
  }

  /** @internal Takes in what the writer in another tab has stored since. */
  async follow(): Promise<void> {
    if (this.#state !== "live" || !this.#readOnly) return;
    const stored = await readLog(this.#home.backend, this.id);
    if (stored === null || stored.head.seq <= this.#visible) return;
    const from = this.#visible;
    const joined = joinBytes(stored.lines);
    call(() => this.#raw.load(joined));
    this.#writer.reset(stored.head, stored.headBytes, stored.head.seq);
    this.#show(JSON.parse(call(() => this.#raw.events(from, stored.head.seq))) as SessionEvent[]);
  }

  /** @internal The writer has gone: this tab writes from now on. */
  async takeOver(): Promise<void> {
    await this.follow();
    this.#readOnly = false;
    this.#writer.head = { ...this.#writer.head, epoch: this.#writer.head.epoch + 1 };
  }

  dispose(): Promise<void> {
    this.#disposal ??= this.#tearDown();
    return this.#disposal;
  }

  async #tearDown(): Promise<void> {
    if (this.#state === "disposed") return;
    for (const stop of [...this.#teardown].reverse()) {
      try {
        await stop();
      } catch (thrown) {
        this.#home.warn("teardown", `a running task did not stop cleanly: ${toError(thrown).message}`);
      }
    }
    let failure: SessionLogError | null = null;
    if (this.#state === "live" && !this.#readOnly) {
      try {
        await this.#pumping;
        await this.#writer.flush();
      } catch (thrown) {
        failure = toError(thrown);
      }
    }
    this.#writer.stop();
    this.#state = "disposed";
    this.#home.detach(this);
    this.#listeners.clear();
    this.#changes.clear();
    await this.#writer.settle();
    this.#raw.free();
    if (failure !== null) throw failure;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
