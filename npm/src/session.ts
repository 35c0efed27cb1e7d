// One live session: a handle on its log in the module, its writer, and its listeners.
import type {
  Boundary, DerivedRequest, EventStream, EventType, JsonValue, Message, PriceTable, RequestOptions, SessionEvent, SessionEventMap, SessionHeader, KeyValueBackend, SessionStore as PublicStore, SessionUsage,
} from "../types/index.js";
import type { RawScrubStream, RawSession } from "./glue.js";
import { rawPrices } from "./cost.js";
import { SessionBlobs, type BlobStore } from "./blobs.js";
import { DerivedMessages, DerivedRequests, readMessages } from "./derive.js";
import { checkOf, isBytes, shown } from "./arguments.js";
import { SessionLogError, toError } from "./errors.js";
import { exposeSession } from "./internal.js";
import { Log } from "./log.js";
import { Listeners, type DeliveryQueue } from "./listeners.js";
import { Writer, type Candidate, type WriterHost } from "./persist.js";
import { takeOver } from "./fence.js";
import { joinLines } from "./segments.js";
import { padTo, readEvents, readLog, readSound, type Header } from "./stored.js";
import { eventClass, URGENT } from "./event-types.js";
import type { RecordPut } from "./records.js";
import type { Rescrubbed } from "./rescrub.js";
import { call } from "./runtime.js";
import { filterOf } from "./scrub.js";
import { ChunkStream, placeOf, type ChunkSink, type Place, type StreamAt } from "./stream.js";
import { toText } from "./values.js";

/** What a session needs of its store. */
export interface SessionHome {
  readonly store: PublicStore;
  readonly backend: KeyValueBackend;
  /** A store that finishes before it returns comes first; memory outlives nothing, so it can follow. */
  readonly storeFirst: boolean;
  readonly blobs: BlobStore;
  /** The bytes of a medium in stored form. */
  scrubBlob(bytes: Uint8Array, mediaType: string): Uint8Array;
  readonly queue: DeliveryQueue;
  now(): number;
  warn(code: string, message: string): void;
  /** The payload in stored form. */
  prepare(type: string, text: string): string;
  /** What scrubs a stream (null while nothing scrubs), and whether it calls functions of the caller. */
  openFilter(): { raw: RawScrubStream | null; calls: boolean };
  deliver(event: SessionEvent, session: Session): void;
  /** Whether anyone listens to the events of all sessions. */
  isHeard(): boolean;
  /** Asks those who have something for the log before `write`. */
  flush(write: () => Promise<void>): Promise<void>;
  /** Takes over what an event says about its session. */
  note(event: SessionEvent, session: Session): void;
  recordPut(session: Session): RecordPut;
  recordFound(id: string, bytes: Uint8Array | null, isOwn: boolean): void;
  patchRecord(session: Session, change: { [field: string]: JsonValue }): void;
  /** The record's count of events is written with what else changes in it; who leaves brings it up to date. */
  countEvents(session: Session): void;
  detach(session: Session): void;
  /** Whether a lock keeps everybody else from writing it. */
  isSole(session: Session): boolean;
  /** Events reached the store. */
  stored(session: Session): void;
  /** Why nobody can write here; null when another writer is the only reason. */
  readOnlyReason(): SessionLogError | null;
  /** The title that the record has. */
  recordedTitle(session: Session): string | null;
  /** Every event is in memory now. */
  filled(session: Session): void;
}

const OPEN_BRACE = 123;
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,60}\/[a-z0-9!#$&^_.+-]{1,80}$/i;

type Options = { repair?: boolean };

const checkDerivation = checkOf("upto number?");
const checkCompaction = checkOf("keepTokens number?");

/** The events before those that a long session was opened with. */
export interface RestOfLog {
  /** The first event that was read at opening. */
  first: number;
  read(): Promise<RawSession>;
}

/** Sums that lack what is still being read are lower bounds, and say so. */
function partOf(usage: SessionUsage): SessionUsage {
  const part = (cost: SessionUsage["cost"]): SessionUsage["cost"] => ({ ...cost, complete: false, flags: [...cost.flags, "history_pending"] });
  return { ...usage, cost: part(usage.cost), own: { ...usage.own, cost: part(usage.own.cost) } };
}

type Summarize = (messages: Message[]) => Promise<string | null> | string | null;

/** What a summarizer throws may be anything; it comes out typed, with that as its cause. */
async function summaryOf(summarize: Summarize, messages: Message[]): Promise<string | null> {
  try {
    return await summarize(messages);
  } catch (thrown) {
    if (thrown instanceof SessionLogError) throw thrown;
    throw new SessionLogError("unavailable", `the summarizer failed: ${toError(thrown).message}`, {}, thrown);
  }
}

/** The numbers of a boundary. JSON text has no other for NaN than null, which would mean all of the events. */
function placeOfCut(boundary: Boundary): { [name: string]: number } {
  const place: { [name: string]: number } = {};
  for (const name of ["count", "throughSeq", "messageSeq"] as const) {
    const given: unknown = boundary[name] ?? undefined;
    if (given === undefined) continue;
    if (typeof given !== "number" || !Number.isSafeInteger(given) || given < 0) throw new SessionLogError("invalid_boundary", `${name} must be a whole number from 0, not ${shown(given)}`);
    place[name] = given;
  }
  return place;
}

export class Session {
  readonly id: string;
  #log: Log;
  #home: SessionHome;
  #writer: Writer;
  #listeners = new Listeners<[SessionEvent]>();
  #changes = new Listeners<[]>();
  #visible: number;
  #state: "prepared" | "live" | "disposed" = "prepared";
  #readOnly: boolean;
  #disposal: Promise<void> | null = null;
  /** The last flush has begun: what came now would not be part of it. */
  #leaving = false;
  #teardown = new Set<() => Promise<void> | void>();
  #companions = new Set<() => Promise<void>>();
  #header: SessionHeader;
  #messages: DerivedMessages;
  #requests: DerivedRequests;
  #blobs: SessionBlobs;

  /** @internal Sessions are made by their store. */
  constructor(raw: RawSession, home: SessionHome, header: Header, fence: Uint8Array | null, durable: number, readOnly: boolean, rest: RestOfLog | null = null) {
    this.#first = rest?.first ?? 0;
    if (rest !== null) this.#startFilling(rest);
    this.#home = home;
    this.#header = JSON.parse(call(() => raw.header())) as SessionHeader;
    this.id = this.#header.id;
    this.#log = new Log(raw, this.id);
    this.#visible = call(() => raw.len());
    this.#readOnly = readOnly;
    this.#messages = new DerivedMessages(this.#log);
    this.#requests = new DerivedRequests(
      (options) => call(() => this.#log.raw.derive_request(options)),
      (outbound, options) => call(() => this.#log.raw.check_outbound(outbound, options)),
    );
    this.#blobs = new SessionBlobs(this.#log, home.blobs, () => this.#state !== "disposed", home.warn);
    const host: WriterHost = {
      id: this.id,
      log: this.#log,
      backend: home.backend,
      storeFirst: home.storeFirst,
      isSole: () => home.isSole(this),
      recordPut: () => home.recordPut(this),
      recordFound: (bytes, isOwn = false) => home.recordFound(this.id, bytes, isOwn),
      rebased: (from, to, ours, visible) => this.#rebased(from, to, ours, visible),
      warn: home.warn,
      stored: () => home.stored(this),
      hold: (work) => home.queue.hold(work),
    };
    this.#writer = new Writer(host, header, fence, durable);
    exposeSession(this, {
      log: this.#log,
      store: home.store,
      teardown: this.#teardown,
      companions: this.#companions,
      checkpoint: () => this.#checkpoint(),
      loadBlobs: () => this.loadBlobs(),
      whole: () => this.#filling,
      patchRecord: (change) => home.patchRecord(this, change),
      append: (type, data, options) => this.append(type as never, data as never, options),
      eventsOf: (...types) => this.#sound(() => JSON.parse(call(() => this.#log.raw.events_of(types.join(",")))) as SessionEvent[]),
    });
  }

  // ------------------------------------------------------------------ the events before the newest compaction

  /** The first event that is in memory. */
  #first: number;
  #filling: Promise<void> | null = null;

  /** Resolves when every event is in memory; a long session opens from its newest compaction and reads the rest behind it. */
  get whole(): Promise<void> {
    return this.#filling ?? Promise.resolve();
  }

  #startFilling(rest: RestOfLog): void {
    const filling = this.#fill(rest);
    this.#filling = filling;
    // Who asks for an early event, or awaits `whole`, is told; that nobody does is no fault.
    filling.catch((thrown: unknown) => {
      if (this.#state !== "disposed") this.#home.warn("history", `the earlier events of session ${this.id} could not be read: ${toError(thrown).message}`);
      if (this.#filling === filling) this.#refill = () => this.#startFilling(rest);
    });
  }
  #refill: (() => void) | null = null;

  async #fill(rest: RestOfLog): Promise<void> {
    const earlier = await rest.read();
    try {
      if (this.#state === "disposed") return;
      call(() => this.#log.raw.prepend(earlier));
      this.#first = 0;
      this.#filling = null;
      this.#home.filled(this);
    } finally {
      earlier.free();
    }
  }

  /** Refuses what takes events that are still on their way. */
  #need(seq: number): void {
    if (seq >= this.#first) return;
    this.#refill?.();
    this.#refill = null;
    throw new SessionLogError("unavailable", `the first ${this.#first} events are still being read: await session.whole`, { first: this.#first });
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
    return call(() => this.#log.raw.title()) ?? (this.#first > 0 ? this.#home.recordedTitle(this) : null);
  }

  get readOnly(): boolean {
    return this.#readOnly;
  }

  #check(): void {
    if (this.#state === "disposed") throw new SessionLogError("disposed", "the session was disposed of", { id: this.id });
  }

  #checkWritable(): void {
    this.#check();
    if (this.#leaving) throw new SessionLogError("disposed", "the session is being disposed of", { id: this.id });
    if (this.#readOnly) throw this.#home.readOnlyReason() ?? new SessionLogError("locked", "another tab or process writes this session", { id: this.id });
  }

  append<T extends EventType>(type: T, data: SessionEventMap[T], options?: Options): SessionEvent<T>;
  append(type: string, data: unknown, options?: Options): SessionEvent;
  append(type: string, data: unknown, options?: Options): SessionEvent {
    this.#checkWritable();
    return this.#appendText(type, this.#accept(type, data, options));
  }

  /** All are checked before the first is appended. */
  appendAll(events: ReadonlyArray<{ type: string; data: unknown }>, options?: Options): SessionEvent[] {
    this.#checkWritable();
    if (!Array.isArray(events)) throw new SessionLogError("invalid_argument", "appendAll takes a list of events");
    const texts = events.map((event: { type: string; data: unknown }, index) => {
      try {
        return this.#accept(event?.type, event?.data, options);
      } catch (thrown) {
        const { code, message, details } = toError(thrown);
        throw new SessionLogError(code, message, { ...details, index }, thrown);
      }
    });
    return texts.map((text, index) => this.#appendText((events[index] as { type: string }).type, text));
  }

  /** Appends an event whose payload is in stored form. */
  #appendText(type: string, text: string): SessionEvent {
    this.#checkWritable();
    if (this.#home.storeFirst && this.#state === "live") {
      const candidate = this.#candidate(type, text);
      this.#writer.storeFirstSync(candidate);
      return candidate.event;
    }
    this.#writer.makeRoom();
    const event = this.#put(type, text);
    if (this.#state === "live") this.#writer.appended((eventClass(type) & URGENT) !== 0);
    this.#show([event]);
    return event;
  }

  /** Resolves once stored; on failure nobody has seen the event and its seq is free again. */
  appendDurable<T extends EventType>(type: T, data: SessionEventMap[T], options?: Options): Promise<SessionEvent<T>>;
  appendDurable(type: string, data: unknown, options?: Options): Promise<SessionEvent>;
  async appendDurable(type: string, data: unknown, options?: Options): Promise<SessionEvent> {
    this.#checkWritable();
    const text = this.#accept(type, data, options);
    if (this.#state !== "live") throw new SessionLogError("invalid_argument", "enter the session before events are stored", { id: this.id });
    const candidate = this.#candidate(type, text);
    await this.#writer.storeFirst(candidate);
    return candidate.event;
  }

  /** Checks an event and returns its payload in stored form. */
  #accept(type: string, data: unknown, options?: Options): string {
    if (typeof type !== "string") throw new SessionLogError("invalid_event", "the type of an event must be text");
    const text = toText(data, options?.repair === true);
    if (eventClass(type) === 0 || text.charCodeAt(0) !== OPEN_BRACE) call((module) => module.raw_check_event(type, text));
    return this.#home.prepare(type, text);
  }

  /** Puts an event into the log in memory; nobody has seen it yet. */
  #put(type: string, text: string): SessionEvent {
    const event = this.#log.append(type, text, this.#home.now());
    // Rare letters first, so that the search is quick; what else has these costs no more than a look.
    if (text.includes('blob"')) void this.loadBlobs();
    return event;
  }

  #candidate(type: string, text: string): Candidate & { event: SessionEvent } {
    const candidate = {
      event: undefined as unknown as SessionEvent,
      admit: () => {
        candidate.event = this.#put(type, text);
        return candidate.event.id;
      },
      reveal: () => {
        // After a reload the event may stand behind those of another writer.
        if (candidate.event.seq !== this.#visible) candidate.event = { ...this.#read(this.#visible, this.#visible + 1)[0] } as SessionEvent;
        this.#show([candidate.event]);
      },
      withdraw: () => call(() => this.#log.raw.truncate(this.#visible)),
    };
    return candidate;
  }

  /** Makes events visible and delivers them. */
  #show(events: SessionEvent[]): void {
    this.#visible += events.length;
    this.#deliver(events);
  }

  #deliver(events: SessionEvent[]): void {
    const onError = (thrown: unknown) => this.#home.warn("listener", `a listener failed: ${toError(thrown).message}`);
    for (const event of events) {
      this.#home.note(event, this);
      // Nobody listens, and nobody can begin to before this event's turn.
      if (this.#listeners.size === 0 && this.#changes.size === 0 && !this.#home.isHeard() && this.#home.queue.isIdle) continue;
      this.#home.queue.run(() => {
        this.#listeners.emit([event], onError);
        this.#home.deliver(event, this);
        this.#changes.emit([], onError);
      });
    }
  }

  openStream(at: StreamAt): EventStream {
    this.#checkWritable();
    // The text is scrubbed by the stream as a whole; piece by piece a secret could slip through.
    const place = placeOf(at);
    if (place.id !== undefined) Object.assign(place, JSON.parse(this.#accept("assistant/chunk", { id: place.id })));
    const empty = toText({ ...place, text: "" });
    const { raw, calls } = this.#home.openFilter();
    return new ChunkStream(this.#home.storeFirst || calls ? this.#chunksOneByOne(empty, raw) : this.#chunksFast(empty, raw));
  }

  /** What may call a function of the caller, or must be stored first, goes the way of every event. */
  #chunksOneByOne(empty: string, raw: RawScrubStream | null): ChunkSink {
    const place = JSON.parse(empty) as Place;
    const filter = raw === null ? null : filterOf(raw);
    return (piece, last) => {
      const text = filter === null ? piece : filter.push(piece) + (last ? filter.end() : "");
      return text === "" ? null : { event: this.#appendText("assistant/chunk", JSON.stringify({ ...place, text })), text };
    };
  }

  /** One call into the module per delta. */
  #chunksFast(empty: string, scrubs: RawScrubStream | null): ChunkSink {
    const place = JSON.parse(empty) as Place;
    const raw = call((module) => new module.RawDeltas(empty.slice(0, -'""}'.length), scrubs ?? undefined));
    return (piece, last) => {
      this.#checkWritable();
      this.#writer.makeRoom();
      const at = this.#home.now();
      const put = this.#log.appendDelta(raw, piece, at, last);
      if (last) raw.free();
      if (put === null) return null;
      const { id, seq, text } = put;
      const event = { id, sessionId: this.id, seq, at, type: "assistant/chunk", data: { ...place, text } } as SessionEvent;
      if (this.#state === "live") this.#writer.appended(false);
      this.#show([event]);
      return { event, text };
    };
  }

  event(seq: number): SessionEvent | undefined {
    return Number.isInteger(seq) ? this.slice(seq, seq + 1)[0] : undefined;
  }

  slice(fromSeq: number, toSeq?: number): SessionEvent[] {
    this.#check();
    const to = Math.min(toSeq ?? this.#visible, this.#visible);
    const from = Math.max(0, Math.floor(fromSeq));
    if (!(from < to)) return [];
    this.#need(from);
    return this.#read(from, to);
  }

  #read(from: number, to: number): SessionEvent[] {
    return readEvents(this.#log.raw, from, to, this.#home.warn);
  }

  deriveMessages(options: { upto?: number } = {}): Message[] {
    this.#check();
    checkDerivation(options);
    const upto = options.upto ?? undefined;
    if (upto === undefined || upto >= this.#visible) return this.#sound(() => this.#messages.list());
    this.#need(0);
    return this.#sound(() => readMessages(this.#log.raw, call(() => this.#log.raw.message_seqs(Math.max(0, Math.floor(upto))))));
  }

  #sound<T>(read: () => T): T {
    return readSound(this.#log.raw, this.#home.warn, read);
  }

  deriveRequest(options: RequestOptions): DerivedRequest {
    this.#check();
    if (options?.upto !== undefined && options.upto < this.#visible) this.#need(0);
    return this.#sound(() => this.#requests.derive(options));
  }

  assertLogInvariant(outbound: Message[] | DerivedRequest): void {
    this.#check();
    if (Array.isArray(outbound)) this.#requests.assertMessages(outbound, this.getSnapshot());
    else this.#requests.assert(outbound);
  }

  async putBlob(bytes: Uint8Array, options: { mediaType: string }): Promise<string> {
    this.#checkWritable();
    const { mediaType } = options ?? {};
    if (!isBytes(bytes) || bytes.length === 0) throw new SessionLogError("invalid_argument", "a blob must be some bytes", { path: "bytes" });
    if (typeof mediaType !== "string" || !MEDIA_TYPE.test(mediaType)) throw new SessionLogError("invalid_argument", "a blob needs a media type such as image/png", { path: "mediaType" });
    if (this.#state !== "live") throw new SessionLogError("invalid_argument", "enter the session before media are stored", { id: this.id });
    const stored = this.#home.scrubBlob(bytes.slice(), mediaType);
    // The session stands in the store before anything refers to it.
    await this.#writer.flush();
    const name = await this.#home.blobs.put(this.id, stored, mediaType);
    if (!this.disposed) this.#blobs.put(name, stored);
    return name;
  }

  async getBlob(name: string): Promise<Uint8Array | null> {
    this.#check();
    return (await this.#home.blobs.get(String(name)))?.bytes ?? null;
  }

  /** @internal Brings the media that the log names; null when all that can be had is at hand. */
  loadBlobs(): Promise<void> | null {
    return this.disposed ? null : this.#blobs.load();
  }

  /** @internal A scrubber removed it. */
  dropBlob(name: string): void {
    if (!this.disposed) this.#blobs.put(name, undefined);
  }

  getSnapshot(): readonly Message[] {
    this.#check();
    return this.#sound(() => this.#messages.snapshot());
  }

  /**
   * Puts a summary in the place of what came before. Null, with a warning, when the summary is blank or when something
   * was said meanwhile: the summary would not cover it.
   */
  async compact(
    summarize: Summarize,
    options: { keepTokens?: number } = {},
  ): Promise<SessionEvent | null> {
    this.#checkWritable();
    checkCompaction(options);
    const before = this.getSnapshot();
    if (before.length === 0) throw new SessionLogError("empty_history", "there is nothing to compact");
    const cut = call(() => this.#log.raw.cut(options.keepTokens ?? undefined));
    if (cut === undefined) return null;
    const [covered = 0, uptoSeq = -1] = cut;
    const summary = await summaryOf(summarize, before.slice(0, covered));
    this.#checkWritable();
    const why =
      typeof summary !== "string" || summary.trim() === "" ? "the summarizer gave no summary"
      : this.getSnapshot() !== before ? "something was said while the summary was made"
      : null;
    if (why !== null) {
      this.#home.warn("compaction", `nothing was compacted: ${why}`);
      return null;
    }
    const boundary = (options.keepTokens ?? undefined) === undefined ? this.#visible - 1 : uptoSeq;
    return this.append("session/compacted", { summary, uptoSeq: boundary });
  }

  pendingCalls(): Array<{ id: string; name: string; state: "not-started" | "outcome-unknown" }> {
    this.#check();
    return JSON.parse(call(() => this.#log.raw.pending_calls())) as ReturnType<Session["pendingCalls"]>;
  }

  usage(): SessionUsage {
    this.#check();
    const usage = JSON.parse(call(() => this.#log.raw.usage())) as SessionUsage;
    return this.#first > 0 ? partOf(usage) : usage;
  }

  /** What the session would cost with other prices; the history keeps the prices of its day. */
  reprice(prices: PriceTable): SessionUsage {
    this.#check();
    this.#need(0);
    const raw = rawPrices(prices as never);
    return JSON.parse(call(() => this.#log.raw.reprice(raw))) as SessionUsage;
  }

  setTitle(title: string): SessionEvent {
    return this.append("session/titled", { title });
  }

  verify(): number | null {
    this.#check();
    this.#need(0);
    return call(() => this.#log.raw.verify()) ?? null;
  }

  async flush(): Promise<void> {
    this.#check();
    await this.#home.flush(() => this.#writer.flush());
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
    // What came in before (a seed, an import, a prepared session's events) is to be written too.
    if (!this.#readOnly && this.#visible > this.#writer.durable) this.#writer.appended(false);
    void this.loadBlobs();
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
  get isEnding(): boolean {
    return this.#disposal !== null;
  }

  /** @internal */
  get writer(): Writer {
    return this.#writer;
  }

  /** @internal */
  get raw(): RawSession {
    return this.#log.raw;
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
    this.#need(0);
    const { allowOpenTurn } = boundary;
    const text = JSON.stringify({ ...placeOfCut(boundary), allowOpenTurn: allowOpenTurn === true });
    const taken = Math.min(call(() => this.#log.raw.boundary(text)), this.#visible);
    const options = JSON.stringify({ createdAt, cwd: this.#header.cwd, parentSession: this.id });
    return { raw: call(() => this.#log.raw.fork(taken, id, options, allowOpenTurn === true)), count: taken };
  }

  /** Another writer was first: its events came in, ours are put after them. */
  #rebased(from: number, to: number, ours: ReadonlySet<string>, visible: number): void {
    const theirs = this.#read(from, to).filter((event) => !ours.has(event.id));
    if (theirs.length > 0) this.#home.warn("conflict", `another writer appended ${theirs.length} events first; ours stand after them`);
    this.#visible = visible;
    void this.loadBlobs();
    this.#deliver(theirs);
  }

  /** @internal Takes in what the writer in another tab has stored: up to `seq` at least, as soon as this tab can see it. 0: whatever there is now. */
  async follow(seq = 0): Promise<void> {
    this.#followed = Math.max(this.#followed, seq);
    this.#looksAgain ||= seq === 0;
    this.#following ??= this.#followOn().finally(() => (this.#following = null));
    return this.#following;
  }
  #followed = 0;
  /** A reading that is under way may have begun before what this word is about. */
  #looksAgain = false;
  #following: Promise<void> | null = null;

  async #followOn(): Promise<void> {
    // One browser process learns later than another what localStorage holds.
    for (let wait = 0; wait <= 1600; ) {
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      if (this.#state !== "live" || !this.#readOnly) return;
      this.#looksAgain = false;
      await this.#takeIn();
      if (this.#looksAgain) wait = 0;
      else if (this.#visible >= this.#followed) return;
      else wait = wait * 2 || 25;
    }
  }

  async #takeIn(): Promise<void> {
    const stored = await readLog(this.#home.backend, this.id, Infinity, this.#visible);
    if (stored === null || this.disposed) return;
    const joined = joinLines(stored.lines);
    call(() => this.#log.raw.load_again(joined));
    padTo(this.#log.raw, stored.end);
    const from = this.#visible;
    const to = call(() => this.#log.raw.len());
    this.#writer.durable = to;
    this.#visible = to;
    void this.loadBlobs();
    if (to > from) this.#deliver(this.#read(from, to));
  }

  /** @internal The writer has gone: this tab writes from now on, when it has taken in what there is, its record by `readRecord`. */
  async takeOver(readRecord: () => Promise<void>): Promise<void> {
    if (this.#state !== "live" || !this.#readOnly) return;
    const fence = await takeOver(this.#home.backend, this.id);
    await this.follow();
    await readRecord();
    if (this.#state !== "live") return;
    this.#readOnly = false;
    this.#writer.lead(fence, this.#visible);
  }

  /** @internal */
  asRescrubbed(): Rescrubbed {
    this.#checkWritable();
    return {
      id: this.id,
      log: this.#log,
      header: this.#writer.header,
      fence: async () => {
        await this.#writer.flush();
        return this.#writer.fence;
      },
      announce: async (scrubber, events) => {
        this.#changes.emit([], () => {});
        this.append("session/rescrubbed", { scrubber, events });
        await this.#writer.flush();
      },
    };
  }

  /** @internal Whether a turn has begun and not ended. */
  get isTurnOpen(): boolean {
    return call(() => this.#log.raw.open_turn()) !== undefined;
  }

  /** @internal Appends what closes a turn that was cut off. */
  closeOpenTurn(): void {
    const closers = JSON.parse(call(() => this.#log.raw.closers())) as Array<{ type: string; data: unknown }>;
    for (const { type, data } of closers) this.append(type, data);
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
    this.#leaving = true;
    if (this.#state === "live" && !this.#readOnly) {
      try {
        this.#home.countEvents(this);
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
    this.#writer.free();
    this.#log.free();
    if (failure !== null) throw failure;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
