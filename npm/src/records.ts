// Records beside the logs: one small value per session, enough to list it without reading an event.
import type { JsonValue, Session, SessionEvent, SessionRecord, SessionSummary } from "../types/index.js";
import { SessionLogError } from "./errors.js";
import { insideSession } from "./internal.js";
import { payloadText } from "./lazy-event.js";
import { call } from "./runtime.js";
import type { Batch, Put } from "./segments.js";
import { memberText } from "./stored.js";
import { toText } from "./values.js";

/** What is stored under a session's record key. */
export interface Entry {
  /** The record as the module writes it: JSON text. */
  readonly record: string;
  readonly archived: boolean;
  readonly unarchivedAt: number | null;
  readonly events: number;
}

/** A record that is to be stored, and what must stand in its place for that. */
export interface RecordPut { put: Put; check: NonNullable<Batch["checks"]>[number] }

type Change = { [field: string]: JsonValue | undefined };
/** A value may be worked out when it is needed; the next one mostly takes its place before that. */
type LaterChange = { [field: string]: JsonValue | undefined | (() => JsonValue) };

/** The contract's names for two rows of the table. */
const ALIASES: ReadonlyMap<string, string> = new Map([["createdAt", "created_at"], ["updatedAt", "updated_at"]]);

/** A header of another writer may tell a time that is none. */
export const isoTime = (ms: number): string => new Date(Math.abs(ms) <= 8.64e15 ? ms : 0).toISOString();

function rows(change: Change): string {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  // A save never fails for a broken character.
  return toText(Object.fromEntries(given.map(([key, value]) => [ALIASES.get(key) ?? key, value])), true, "?");
}

function badField(key: string, expected: string): SessionLogError {
  return new SessionLogError("invalid_argument", `a record takes ${expected} as \`${key}\``, { fields: [key] });
}

/** What a caller gives: the fields of the table, and whether the session is archived, which stands beside it. */
function partsOf(given: Change): { archived: boolean | undefined; fields: Change } {
  const { archived, ...fields } = given;
  if (archived !== undefined && typeof archived !== "boolean") throw badField("archived", "true or false");
  return { archived, fields };
}

/** Lists are sorted, and sweeps decide, by these times. What is no text the table refuses. */
function checkTimes(fields: Change): void {
  for (const [key, value] of Object.entries(fields)) {
    const row = ALIASES.get(key) ?? key;
    if ((row === "created_at" || row === "updated_at") && typeof value === "string" && Number.isNaN(Date.parse(value))) throw badField(key, "a time");
  }
}

export function freshEntry(session: Session, given: Change): Entry {
  const { archived = false, fields } = partsOf(given);
  checkTimes(fields);
  const { createdAt, cwd, parentSession } = session.header;
  const start: Change = {
    id: session.id, mode: "chat", model_name: "", working_directory: typeof cwd === "string" ? cwd : "/", created_at: isoTime(createdAt), updated_at: isoTime(createdAt),
    ...(parentSession === undefined ? {} : { parent_id: parentSession }),
  };
  const record = call((module) => module.raw_record_fresh(rows({ ...start, ...fields, id: session.id })));
  return { record, archived, unarchivedAt: null, events: 0 };
}

/**
 * The same with what a caller gives. What the record reads as already is no change, so that what was read can be given back
 * whole: a row may keep what it cannot read.
 */
export function changedBy(entry: Entry, given: Change, now: number): Entry {
  const { archived, fields } = partsOf(given);
  const before = reading(entry) as Change;
  const texts = JSON.parse(toText(fields, true, "?")) as Change;
  const news = Object.fromEntries(Object.entries(texts).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key])));
  checkTimes(news);
  const next = changed(entry, { updated_at: isoTime(now), ...news });
  if (archived === undefined || archived === entry.archived) return next;
  return { ...next, archived, unarchivedAt: archived ? next.unarchivedAt : now };
}

export function changed(entry: Entry, change: Change): Entry {
  const text = rows(change);
  return text === "{}" ? entry : { ...entry, record: call((module) => module.raw_record_set(entry.record, text)) };
}

/** `ours` with what `theirs` changed since `base`, save where ours changed the same. */
export function merged(base: Entry, theirs: Entry, ours: Entry): Entry {
  const taken: string[] = [];
  for (const field of Object.keys(JSON.parse(theirs.record) as object)) {
    const [before, now, own] = [base, theirs, ours].map(({ record }) => memberText(record, field));
    if (now !== before && own === before) taken.push(`${JSON.stringify(field)}:${now}`);
  }
  const record = taken.length === 0 ? ours.record : call((module) => module.raw_record_set(ours.record, `{${taken.join()}}`));
  const isOurs = ours.archived !== base.archived || ours.unarchivedAt !== base.unarchivedAt;
  const { archived, unarchivedAt } = isOurs ? ours : theirs;
  return { record, archived, unarchivedAt, events: ours.events };
}

/** What nobody has looked at yet of entries that were changed. */
const unsettled = new WeakMap<Entry, LaterChange>();

/** The same, worked out when somebody looks at it: most changes are overtaken by the next one before that. */
export function changedLater(entry: Entry, change: LaterChange): Entry {
  const pending = unsettled.get(entry);
  if (pending !== undefined) {
    Object.assign(pending, change);
    return entry;
  }
  const all = { ...change };
  const later: Entry = {
    archived: entry.archived, unarchivedAt: entry.unarchivedAt, events: entry.events,
    get record(): string {
      const { record } = changed(entry, Object.fromEntries(Object.entries(all).map(([field, value]) => [field, typeof value === "function" ? value() : value])));
      unsettled.delete(later);
      Object.defineProperty(later, "record", { value: record, enumerable: true });
      return record;
    },
  };
  unsettled.set(later, all);
  return later;
}

export function encodeEntry(entry: Entry): Uint8Array {
  const { record, archived, unarchivedAt, events } = entry;
  return new TextEncoder().encode(`{"archived":${archived},"unarchivedAt":${unarchivedAt},"events":${events},"record":${record}}`);
}

/** What a record cannot do without. */
const REQUIRED: ReadonlySet<string> = new Set(["id", "mode", "model_name", "working_directory", "created_at", "updated_at"]);
/** Texts are cut to so many characters, one after the other, until the record is short enough. */
const CUTS = [4096, 1024, 128];

/** The same in at most `limit` bytes, as far as that can be: long texts are cut, and then the longest of what may be absent goes. */
export function shortened(entry: Entry, limit: number): Entry {
  const withRows = (rows: unknown): Entry => ({ ...entry, record: JSON.stringify(rows) });
  const fits = (rows: unknown): boolean => encodeEntry(withRows(rows)).length <= limit;
  let rows: { [field: string]: unknown } = {};
  for (const most of CUTS) {
    const cut = (_: string, value: unknown): unknown => (typeof value === "string" && value.length > most ? Array.from(value.slice(0, 2 * most)).slice(0, most).join("") : value);
    rows = JSON.parse(entry.record, cut) as typeof rows;
    if (fits(rows)) return withRows(rows);
  }
  const sizeOf = (field: string): number => JSON.stringify(rows[field]).length;
  for (const field of Object.keys(rows).sort((a, b) => sizeOf(b) - sizeOf(a))) {
    if (fits(rows)) break;
    if (!REQUIRED.has(field)) delete rows[field];
  }
  return withRows(rows);
}

export function decodeEntry(bytes: Uint8Array): Entry {
  const text = new TextDecoder().decode(bytes);
  const start = text.indexOf('"record":');
  try {
    const meta = JSON.parse(text) as { archived?: unknown; unarchivedAt?: unknown; events?: unknown };
    const record = text.slice(start + '"record":'.length, -1);
    call((module) => module.raw_record_reading(record));
    return {
      record,
      archived: meta.archived === true,
      unarchivedAt: typeof meta.unarchivedAt === "number" ? meta.unarchivedAt : null,
      events: typeof meta.events === "number" ? meta.events : 0,
    };
  } catch (cause) {
    throw new SessionLogError("corrupt", "a session's record cannot be read; it is kept as it is", {}, cause);
  }
}

/** Every row as it reads, with the contract's names beside the table's. */
export function reading(entry: Entry): SessionRecord {
  const record = JSON.parse(call((module) => module.raw_record_reading(entry.record))) as { [field: string]: JsonValue };
  return { ...record, createdAt: record["created_at"], updatedAt: record["updated_at"], archived: entry.archived } as unknown as SessionRecord;
}

export function setupOf(entry: Entry, delegate: boolean): Change {
  return JSON.parse(call((module) => module.raw_record_setup(entry.record, delegate))) as Change;
}

export function summaryOf(entry: Entry, live: Session | undefined): SessionSummary {
  const record = reading(entry);
  const preview = String(record["first_preview"] ?? "");
  const title = live?.title ?? record.title;
  const parent = record["parent_id"];
  return {
    id: record.id,
    title: call((module) => module.raw_display_title(title ?? undefined, preview)),
    createdAt: Date.parse(record.createdAt),
    updatedAt: Date.parse(record.updatedAt),
    status: record.status === "running" && live === undefined ? "idle" : record.status,
    events: live?.seq ?? entry.events,
    archived: entry.archived,
    ...(typeof parent === "string" ? { parentId: parent } : {}),
    preview,
  };
}

/** What an event changes in the record of its session. */
export function changeOf(event: SessionEvent, record: () => SessionRecord): LaterChange | null {
  switch (event.type) {
    case "user/message": {
      const stored = payloadText(event);
      // Most prompts are followed by another one before anybody asks for the last.
      if (stored !== null && record()["first_preview"] !== "") return { last_prompt: () => textOf(JSON.parse(stored) as SessionEvent<"user/message">["data"]) };
      const folded = textOf(event.data);
      return { last_prompt: folded, ...(record()["first_preview"] === "" ? { first_preview: folded.slice(0, 400) } : {}) };
    }
    case "session/titled":
      // An event of another writer may say anything.
      return typeof event.data.title === "string" ? { title: event.data.title } : null;
    case "turn/start":
      if (!Number.isSafeInteger(event.data.turn)) return null;
      return { status: "running", interrupted_turn: { turn: event.data.turn, seq: event.seq } };
    case "turn/end":
      return { status: "idle", interrupted_turn: null };
    default:
      return null;
  }
}

/** What a session that comes in with events says of itself: nothing of them passes by as an event of a live one does. */
export function saidBy(session: Session): Change {
  if (session.seq === 0) return {};
  const { title } = session;
  const said = insideSession(session).eventsOf("user/message") as SessionEvent<"user/message">[];
  const [first, last] = [said[0], said.at(-1)].map((event) => (event === undefined ? undefined : textOf(event.data)));
  return { ...(title === null ? {} : { title }), first_preview: first?.slice(0, 400), last_prompt: last };
}

function textOf(data: { text?: unknown; parts?: unknown }): string {
  if (typeof data.text === "string") return fold(data.text);
  const parts = Array.isArray(data.parts) ? (data.parts as Array<{ type?: unknown; text?: unknown }>) : [];
  return fold(parts.map((part) => (part?.type === "text" && typeof part.text === "string" ? part.text : "")).join(" "));
}

const LONGEST = 2000;

function fold(text: string): string {
  const folded = text.replace(/\s+/g, " ").trim();
  // Characters are at most as many as code units.
  return folded.length <= LONGEST ? folded : Array.from(folded.slice(0, 2 * LONGEST)).slice(0, LONGEST).join("");
}
