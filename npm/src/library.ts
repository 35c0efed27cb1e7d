// The records of a store: what is known of every session, live or not, without reading an event.
import type { JsonValue, KeyValueBackend, Session, SessionEvent, SessionRecord, SessionSummary } from "../types/index.js";
import { arrange, type SessionsOptions } from "./catalogue.js";
import { SessionLogError, toError } from "./errors.js";
import { changedLater, changeOf, decodeEntry, encodeEntry, freshEntry, isoTime, reading, shortened, summaryOf, type Entry } from "./records.js";
import { keys } from "./segments.js";
import type { Session as LiveSession } from "./session.js";

/** A record is not behind by more: what leaves in order brings it up to date. */
const MOST_MISSED = 1_000;

const RECORDS: [string, string] = ["r/", "r0"];

/** At most 80 characters of what was given, for a message. */
export function quote(given: string): string {
  const chars = Array.from(given);
  return chars.length <= 80 ? given : `${chars.slice(0, 80).join("")}…`;
}

export class Library {
  /** What was last known of each session, by id. */
  readonly entries = new Map<string, Entry>();
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
    for (const [id, entry] of await this.catalogue()) this.entries.set(id, entry);
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
    const known = this.#live.get(id)?.readOnly === false ? this.entries.get(id) : undefined;
    return known ?? this.stored(id);
  }

  async stored(id: string): Promise<Entry> {
    const bytes = await this.#backend.get(keys.record(id));
    if (bytes === null) throw notFound(id);
    return decodeEntry(bytes);
  }

  async replace(id: string, change: (entry: Entry) => Entry): Promise<Entry> {
    const next = change(await this.entry(id));
    this.entries.set(id, next);
    const live = this.#live.get(id);
    if (live !== undefined && !live.readOnly) {
      live.writer.markRecord();
      await live.writer.flush();
    } else {
      await this.#backend.transact({ puts: [[keys.record(id), this.#encoded(id, next)]] });
    }
    return next;
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

  recordBytes(session: LiveSession): Uint8Array {
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
