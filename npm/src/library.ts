// The records of a store: what is known of every session, live or not, without reading an event.
import type { JsonValue, KeyValueBackend, Session, SessionEvent, SessionRecord, SessionSummary } from "../types/index.js";
import { arrange, type SessionsOptions } from "./catalogue.js";
import { SessionLogError, toError } from "./errors.js";
import { backOff } from "./fence.js";
import { sameBytes } from "./hosts/batches.js";
import { changedLater, changeOf, decodeEntry, encodeEntry, freshEntry, isoTime, merged, reading, shortened, summaryOf, type Entry, type RecordPut } from "./records.js";
import { keys } from "./segments.js";
import type { Session as LiveSession } from "./session.js";
import { storedIds } from "./stored.js";

/** A record is not behind by more: what leaves in order brings it up to date. */
const MOST_MISSED = 1_000;

const RECORDS: [string, string] = ["r/", "r0"];

/** So often a record is changed anew because somebody else was first. */
const CHANGE_TRIES = 8;

/** At most 80 characters of what was given, for a message. */
export function quote(given: string): string {
  const chars = Array.from(given);
  return chars.length <= 80 ? given : `${chars.slice(0, 80).join("")}…`;
}

/** Work that concerns one session, one piece after the other. */
export class Turns {
  #last = new Map<string, Promise<unknown>>();

  run<T>(id: string, work: () => Promise<T>): Promise<T> {
    const own = (this.#last.get(id) ?? Promise.resolve()).then(work, work);
    this.#last.set(id, own);
    const end = () => void (this.#last.get(id) === own && this.#last.delete(id));
    own.then(end, end);
    return own;
  }
}

export class Library {
  /** What was last known of each session, by id. */
  readonly entries = new Map<string, Entry>();
  /** Ids that stand in the store, also without a record that can be read: deleted, but read by forks; or damaged. */
  readonly taken = new Set<string>();
  #backend: KeyValueBackend;
  #live: Map<string, LiveSession>;
  #now: () => number;
  #warn: (code: string, message: string) => void;

  constructor(backend: KeyValueBackend, live: Map<string, LiveSession>, now: () => number, warn: (code: string, message: string) => void) {
    this.#backend = backend;
    this.#live = live;
    this.#now = now;
    this.#warn = warn;
  }

  async load(): Promise<void> {
    // A store that answers at once is asked for each id when it matters.
    const [found, stored] = await Promise.all([this.catalogue(), this.#backend.sync === true ? [] : storedIds(this.#backend)]);
    for (const [id, entry] of found) this.entries.set(id, entry);
    for (const id of stored) this.taken.add(id);
  }

  /** Whether a new session cannot have this id, as far as that can be known without waiting: the first write knows the rest. */
  isTaken(id: string): boolean {
    if (this.entries.has(id) || this.taken.has(id)) return true;
    if (this.#backend.sync !== true) return false;
    const header = this.#backend.get(keys.header(id));
    // Even such a backend may have to ask elsewhere.
    if (header instanceof Promise) header.catch(() => {});
    return header instanceof Uint8Array;
  }

  /** Every readable record of the store; what this tab writes goes before what is stored. */
  async catalogue(): Promise<Map<string, Entry>> {
    const found = new Map<string, Entry>();
    for (const [key, value] of await this.#backend.list(...RECORDS)) {
      const id = key.slice(RECORDS[0].length);
      try {
        found.set(id, decodeEntry(value));
      } catch (thrown) {
        this.#warn("corrupt", `${toError(thrown).message} (session ${id})`);
      }
    }
    for (const [id, session] of this.#live) {
      const entry = session.readOnly ? undefined : this.entries.get(id);
      if (entry !== undefined) found.set(id, entry);
    }
    return found;
  }

  async list(options: SessionsOptions): Promise<SessionSummary[]> {
    const rows: SessionSummary[] = [];
    for (const [id, entry] of await this.catalogue()) {
      const inProject = options.projectRoot === undefined || reading(entry)["project_root"] === options.projectRoot;
      if (inProject && (options.includeArchived === true || !entry.archived)) rows.push(summaryOf(entry, this.#live.get(id) as Session | undefined));
    }
    return arrange(rows, options);
  }

  async resolve(given: string): Promise<string> {
    const found = await this.catalogue();
    if (found.has(given)) return given;
    const matches = [...found].filter(([id]) => given !== "" && id.startsWith(given)).sort(([a], [b]) => (a < b ? -1 : 1));
    if (matches.length === 0) throw notFound(given);
    if (matches.length > 1) {
      const list = matches.map(([id, entry]) => ({ id, preview: summaryOf(entry, undefined).title }));
      throw new SessionLogError("ambiguous_id", `several sessions start with ${quote(given)}: ${list.map((m) => m.id).join(", ")}`, { given: quote(given), matches: list });
    }
    return (matches[0] as [string, Entry])[0];
  }

  async entry(id: string): Promise<Entry> {
    const known = this.#writer(id) === undefined ? undefined : this.entries.get(id);
    return known ?? this.stored(id);
  }

  /** The session, if this tab writes it. */
  #writer(id: string): LiveSession | undefined {
    const live = this.#live.get(id);
    return live?.readOnly === false ? live : undefined;
  }

  async stored(id: string): Promise<Entry> {
    const bytes = await this.#backend.get(keys.record(id));
    if (bytes === null) throw notFound(id);
    return decodeEntry(bytes);
  }

  /** What a session that is about to be written has as its record: its writer goes on from there. */
  async read(id: string): Promise<Entry> {
    const bytes = await this.#backend.get(keys.record(id));
    this.#seen.set(id, bytes);
    this.#sent.delete(id);
    if (bytes === null) throw notFound(id);
    return decodeEntry(bytes);
  }

  /** Changes a record in one step: what else changes it meanwhile, here or elsewhere, is neither lost nor undone. */
  async replace(id: string, change: (entry: Entry) => Entry): Promise<Entry> {
    const live = this.#writer(id);
    const entry = this.entries.get(id);
    if (live === undefined || entry === undefined) return this.#turns.run(id, () => this.#replaceStored(id, change));
    const next = change(entry);
    this.entries.set(id, next);
    live.writer.markRecord();
    await live.writer.flush();
    return next;
  }
  readonly #turns = new Turns();

  async #replaceStored(id: string, change: (entry: Entry) => Entry): Promise<Entry> {
    const [recordKey, headerKey] = [keys.record(id), keys.header(id)];
    for (let tries = 0; ; tries++) {
      // It may have been resumed meanwhile.
      if (this.#writer(id) !== undefined) return this.replace(id, change);
      const [record, header] = await Promise.all([this.#backend.get(recordKey), this.#backend.get(headerKey)]);
      if (record === null || header === null) throw notFound(id);
      const next = change(decodeEntry(record));
      // The record of a session that is deleted meanwhile would bring it back into every list.
      const checks = [{ key: recordKey, equals: record }, { key: headerKey, equals: header }];
      try {
        await this.#backend.transact({ checks, puts: [[recordKey, this.#encoded(id, next)]] });
        if (this.#writer(id) === undefined) this.entries.set(id, next);
        return next;
      } catch (thrown) {
        if (toError(thrown).code !== "conflict" || tries >= CHANGE_TRIES) throw thrown;
        await backOff(tries);
      }
    }
  }

  /** The title that the record of a live session has. */
  titleOf(id: string): string | null {
    const entry = this.entries.get(id);
    return entry === undefined ? null : reading(entry).title;
  }

  /** What is not urgent need not go with the very next write. */
  patch(id: string, change: { [field: string]: JsonValue | undefined | (() => JsonValue) }, urgent = true): void {
    const entry = this.entries.get(id);
    if (entry === undefined) return;
    this.entries.set(id, changedLater(entry, change));
    this.#live.get(id)?.writer.markRecord(urgent);
  }

  /** Takes over what an event says about its session, before anyone hears of the event. */
  note(event: SessionEvent, session: LiveSession): void {
    const entry = this.entries.get(session.id);
    const change = entry === undefined ? null : changeOf(event, () => this.#previewed.get(session) ?? this.#preview(session, reading(entry)));
    if (change !== null) this.patch(session.id, change, event.type !== "user/message");
  }

  /**
   * What was said last is written a little later than the event itself: what the record missed when its writer was cut off is
   * made up for. Everything else went with its event.
   */
  catchUp(session: LiveSession, from: number): void {
    for (const event of session.slice(Math.max(from, session.seq - MOST_MISSED))) if (event.type === "user/message") this.note(event, session);
  }

  /** A record that has a preview keeps it: there is no need to read it for every message. */
  #preview(session: LiveSession, record: SessionRecord): SessionRecord {
    if (record["first_preview"] !== "") this.#previewed.set(session, record);
    return record;
  }
  readonly #previewed = new WeakMap<LiveSession, SessionRecord>();

  /** Says of a session that is opened here that it is idle when its record says that it runs, and no turn of it is open. */
  settle(session: LiveSession): void {
    const entry = this.entries.get(session.id);
    if (entry === undefined || session.isTurnOpen || reading(entry).status !== "running") return;
    this.patch(session.id, { status: "idle", interrupted_turn: null });
  }

  /** On their way in: each was last changed when its file says so. */
  readonly arriving = new WeakSet<LiveSession>();

  countEvents(session: LiveSession): void {
    const counted = this.entries.get(session.id)?.events;
    if (counted !== undefined && counted !== session.seq) this.patch(session.id, {});
  }

  /** What stood in the store when this tab last saw it there, of each session that this tab writes. */
  readonly #seen = new Map<string, Uint8Array | null>();
  /** What was sent since. An answer may get lost, so any of it may stand there. */
  readonly #sent = new Map<string, Uint8Array[]>();

  recordPut(session: LiveSession): RecordPut {
    const { id } = session;
    const key = keys.record(id);
    const bytes = this.#recordBytes(session);
    this.#sent.set(id, [...(this.#sent.get(id) ?? []), bytes]);
    return { put: [key, bytes], check: { key, equals: this.#seen.get(id) ?? null } };
  }

  /** What stands in the store as the record of a session that this tab writes: what another tab has changed there stays. */
  found(id: string, bytes: Uint8Array | null, isOwn: boolean): void {
    const seen = this.#seen.get(id) ?? null;
    const known = isOwn ? [bytes] : [seen, ...(this.#sent.get(id) ?? [])];
    this.#seen.set(id, bytes);
    this.#sent.delete(id);
    const entry = this.entries.get(id);
    if (bytes === null || seen === null || entry === undefined || known.some((own) => sameBytes(own, bytes))) return;
    try {
      this.entries.set(id, merged(decodeEntry(seen), decodeEntry(bytes), entry));
    } catch {
      // A record that cannot be read says nothing.
    }
  }

  /** This tab has the session no more, or has it anew. */
  forget(id: string): void {
    this.#seen.delete(id);
    this.#sent.delete(id);
  }

  #recordBytes(session: LiveSession): Uint8Array {
    const entry = this.entries.get(session.id) ?? freshEntry(session as never, {});
    const change = this.arriving.has(session) ? {} : { updated_at: isoTime(this.#now()) };
    const next = { ...changedLater(entry, change), events: session.seq };
    this.entries.set(session.id, next);
    return this.#encoded(session.id, next);
  }

  /** A record that the backend does not take would keep the events that go with it out of the store. */
  #encoded(id: string, entry: Entry): Uint8Array {
    const bytes = encodeEntry(entry);
    const { maxValueBytes: limit = Infinity } = this.#backend;
    if (bytes.length <= limit) return bytes;
    if (!this.#cut.has(id)) this.#warn("lost", `the record of session ${id} is too large for the store: what is long in it is cut`);
    this.#cut.add(id);
    return encodeEntry(shortened(entry, limit));
  }
  /** Sessions whose record was found too large. */
  readonly #cut = new Set<string>();
}

function notFound(given: string): SessionLogError {
  return new SessionLogError("not_found", `there is no session ${quote(given)}`, { given: quote(given) });
}
