// A session's log as the store has it: its header, the lines of its base when it was forked, and its own.
import type { KeyValueBackend, SessionEvent } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";
import type { RawSession } from "./glue.js";
import { call } from "./runtime.js";
import { deleteSession, keys, readSegments } from "./segments.js";

/** What stands under a session's header key. */
export interface Header {
  /** The header as it was written: its numbers keep their text. */
  text: string;
  /** Where the first events are when this session was forked. */
  base?: { id: string; count: number };
  /** Deleted, but forks still need its first events. */
  gone?: true;
}

export interface StoredLog {
  header: Header;
  lines: Uint8Array[];
  /** So many events are there at least, whether they can be read or not: the last segment has one. */
  end: number;
}

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
export const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

export function encodeHeader({ text, base, gone }: Header): Uint8Array {
  const rest = JSON.stringify({ base, gone }).slice(1);
  return encode(`{"header":${text}${rest === "}" ? "" : ","}${rest}`);
}

/** The text of one member of an object, as it is written there. */
export const memberText = (text: string, key: string): string | undefined => call((module) => module.raw_member(text, key));

export async function readHeader(backend: KeyValueBackend, id: string): Promise<Header | null> {
  const bytes = await backend.get(keys.header(id));
  return bytes === null ? null : parseHeader(bytes, id);
}

/** The same where a session whose header cannot be read is to stand in nobody's way. */
export async function soundHeader(backend: KeyValueBackend, id: string): Promise<Header | null> {
  try {
    return await readHeader(backend, id);
  } catch (thrown) {
    if (toError(thrown).code !== "corrupt") throw thrown;
    return null;
  }
}

export function parseHeader(bytes: Uint8Array, id: string): Header {
  try {
    const text = decode(bytes);
    const { header, base, gone } = JSON.parse(text) as { header: unknown } & Omit<Header, "text">;
    if (typeof header !== "object" || header === null) throw new Error("not a header");
    return { text: memberText(text, "header") as string, ...(base === undefined ? {} : { base }), ...(gone === true ? { gone } : {}) };
  } catch (cause) {
    throw new SessionLogError("corrupt", "the header of the session cannot be read; it is kept as it is", { id }, cause);
  }
}

/** The newest compaction of a session, and the first event that it takes to derive messages from there on. */
export interface Checkpoint { seq: number; from: number }

export const encodeCheckpoint = ([seq, from]: Iterable<number>): Uint8Array => encode(JSON.stringify({ seq, from }));

/** One that cannot be read is none: the whole log says the same. */
async function readCheckpoint(backend: KeyValueBackend, id: string): Promise<Checkpoint | null> {
  const bytes = await backend.get(keys.checkpoint(id));
  try {
    const { seq, from } = JSON.parse(decode(bytes ?? encode("{}"))) as Partial<Checkpoint>;
    return typeof seq === "number" && typeof from === "number" && from <= seq ? { seq, from } : null;
  } catch {
    return null;
  }
}

/** Fewer events than this before the newest compaction are read at once with the rest: that takes a moment, and all of them are there. */
const LONG = 16_384;

/** The end of a long session from its newest compaction on: enough to derive from. Null when all is to be read. */
export async function readEnd(backend: KeyValueBackend, id: string): Promise<{ stored: StoredLog; first: number; compacted: number } | null> {
  // A store that answers at once needs no second reading.
  if (backend.sync === true) return null;
  const [header, checkpoint] = await Promise.all([readHeader(backend, id), readCheckpoint(backend, id)]);
  if (header === null || checkpoint === null || checkpoint.from < LONG || checkpoint.from < (header.base?.count ?? 0)) return null;
  let first = -1;
  let end = 0;
  const lines: Uint8Array[] = [];
  for await (const segment of readSegments(backend, id, checkpoint.from)) {
    if (first < 0) first = segment.firstSeq;
    end = segment.firstSeq + 1;
    lines.push(segment.lines);
  }
  const isThere = first > 0 && first <= checkpoint.from;
  return isThere ? { stored: { header, lines, end }, first, compacted: checkpoint.seq } : null;
}

/**
 * Reads a session's lines up to `upto`, those of its base first, from the segment that holds `start`; null when there is no such
 * session. `forks` are those that are read through this one.
 */
export async function readLog(backend: KeyValueBackend, id: string, upto = Infinity, start = 0, forks: readonly string[] = []): Promise<StoredLog | null> {
  const header = await readHeader(backend, id);
  if (header === null) return null;
  const lines: Uint8Array[] = [];
  let from = start;
  let end = Math.min(header.base?.count ?? 0, upto);
  if (header.base !== undefined && start < header.base.count) {
    from = header.base.count;
    const count = Math.min(from, upto);
    const read = [...forks, id];
    const base = read.includes(header.base.id) ? null : await readLog(backend, header.base.id, count, start, read);
    if (base === null) throw new SessionLogError("corrupt", "the first events of the session are missing from the store", { id, base: header.base.id });
    lines.push(...cutLines(base.lines, count));
  }
  for await (const segment of readSegments(backend, id, from)) {
    if (segment.firstSeq >= upto) break;
    end = segment.firstSeq + 1;
    lines.push(segment.lines);
  }
  return { header, lines, end };
}

/** How many segments are taken in before others get their turn. */
const AT_ONCE = 4;

/** Gives `take` the lines before `upto`, a few segments at a time. */
export async function readUpto(backend: KeyValueBackend, id: string, header: Header, upto: number, take: (lines: Uint8Array) => void): Promise<void> {
  if (header.base !== undefined) {
    const base = await readLog(backend, id, upto);
    for (const lines of base?.lines ?? []) take(lines);
    return;
  }
  let taken = 0;
  for await (const segment of readSegments(backend, id)) {
    if (segment.firstSeq >= upto) return;
    take(segment.lines);
    if (++taken % AT_ONCE === 0) await new Promise((resolve) => setTimeout(resolve));
  }
}

/** Lines enter the module in pieces of about this size: its memory never shrinks again. */
const PIECE_BYTES = 1 << 20;

/**
 * Takes stored lines into the log of `raw`, part by part; each begins with a line of its own. Events up to `end` that cannot be read
 * keep their numbers. Returns how many lines there were.
 */
export function loadLines(raw: RawSession, parts: readonly Uint8Array[], end = 0): number {
  let number = 1;
  for (const part of parts) {
    for (let from = 0; from < part.length; ) {
      let to = Math.min(from + PIECE_BYTES, part.length);
      // A piece ends with a line; one that is longer than a piece comes whole.
      if (to < part.length) to = part.lastIndexOf(NEWLINE, to - 1) + 1;
      if (to <= from) to = part.indexOf(NEWLINE, from) + 1 || part.length;
      const piece = part.subarray(from, to);
      number = call(() => raw.load(piece, number));
      from = to;
    }
  }
  padTo(raw, end);
  return number - 1;
}

/** Gives the events up to `end` that could not be read a place each, so that nothing is written where they stand. */
export function padTo(raw: RawSession, end: number): void {
  call(() => {
    if (raw.len() < end) raw.pad(end);
  });
}

/** All lines of a log as bytes, taken out of the module in pieces for the same reason. */
export function linesOf(raw: RawSession): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  const length = call(() => raw.len());
  for (let from = 0; from < length; from += PIECE_EVENTS) pieces.push(call(() => raw.lines(from, Math.min(from + PIECE_EVENTS, length))));
  return pieces;
}
const PIECE_EVENTS = 1024;

type Warn = (code: string, message: string) => void;

export const readEvents = (raw: RawSession, from: number, to: number, warn: Warn): SessionEvent[] =>
  readSound(raw, warn, () => JSON.parse(call(() => raw.events(from, to))) as SessionEvent[]);

/**
 * Reads something that stands on the payloads of a log. One that turns out to be damaged costs its event alone: `warn` hears of
 * it, and it is read again without.
 */
export function readSound<T>(raw: RawSession, warn: Warn, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    const count = thrown instanceof SyntaxError ? call(() => raw.quarantine()) : 0;
    if (count === 0) throw thrown;
    warn("corrupt", `${count} events cannot be read; their lines are kept`);
    return read();
  }
}

const NEWLINE = 10;

/** Drops lines from seq `count` on; a segment may reach beyond a fork's boundary. */
export function cutLines(segments: Uint8Array[], count: number): Uint8Array[] {
  const last = segments[segments.length - 1];
  if (last === undefined) return segments;
  for (let from = 0; ; ) {
    const end = last.indexOf(NEWLINE, from);
    const start = decode(last.subarray(from, Math.min(end < 0 ? last.length : end, from + 32)));
    const seq = /^\{"seq":(\d+),/.exec(start);
    if (seq !== null && Number(seq[1]) >= count) return [...segments.slice(0, -1), last.subarray(0, from)];
    if (end < 0) return segments;
    from = end + 1;
  }
}

/** The blobs that a session has attached. */
export async function attachedTo(backend: KeyValueBackend, id: string): Promise<string[]> {
  const start = `s/${id}/b/`;
  return (await backend.list(start, `s/${id}/b0`, { keysOnly: true })).map(([key]) => key.slice(start.length));
}

/** What a store knows of its ids: which stand in the backend, and whose events a session reads that need not be stored yet. */
export interface KnownIds { taken: Set<string>; isBase(id: string): boolean }

/**
 * Removes a session; what its forks still read stays until the last of them goes. Returns the blobs that may be used by nobody
 * any more.
 */
export async function eraseSession(backend: KeyValueBackend, id: string, header: Header | null, known: KnownIds): Promise<string[]> {
  known.taken.add(id);
  if (header !== null && (known.isBase(id) || (await hasForks(backend, id)))) {
    await backend.transact({ puts: [[keys.header(id), encodeHeader({ ...header, gone: true })]], deletes: [keys.record(id)] });
    return [];
  }
  const attached = await attachedTo(backend, id);
  await deleteSession(backend, id, [keys.record(id)]);
  known.taken.delete(id);
  const base = header?.base?.id;
  const parent = base === undefined ? null : await soundHeader(backend, base);
  return base !== undefined && parent?.gone === true ? [...attached, ...(await eraseSession(backend, base, parent, known))] : attached;
}

/** The ids of all sessions whose header is in the store. */
export async function storedIds(backend: KeyValueBackend): Promise<string[]> {
  const found = await backend.list(...keys.below("s/"), { keysOnly: true });
  return found.flatMap(([key]) => /^s\/([^/]+)\/h$/.exec(key)?.[1] ?? []);
}

async function hasForks(backend: KeyValueBackend, id: string): Promise<boolean> {
  for (const other of await storedIds(backend)) {
    if (other === id) continue;
    const found = await readHeader(backend, other).catch((thrown: unknown) => toError(thrown));
    if (found instanceof SessionLogError && found.code !== "corrupt") throw found;
    // Whose header cannot be read may be a fork of any.
    if (found instanceof SessionLogError || found?.base?.id === id) return true;
  }
  return false;
}
