// Export and import of whole sessions. Our own format: JSON Lines, the header first, then the events as they are stored.
import type { EventType, ExportFormat } from "../types/index.js";
import type { RawSession } from "./glue.js";
import { SessionLogError } from "./errors.js";
import { splitBlobs, type ExportedBlob } from "./blobs.js";
import { decodeEntry, encodeEntry, type Entry } from "./records.js";
import { call } from "./runtime.js";
import { joinBytes } from "./segments.js";
import type { Session } from "./session.js";
import { decode, encode, linesOf, memberText } from "./stored.js";

export interface ImportReport { lost: string[]; damaged: Array<{ line: number; bytes: number }> }

/** A session on its way in. */
interface Export {
  /** JSON text. */
  header: string;
  /** The record entry as text, when the export has one. */
  record: string | null;
  body: Uint8Array;
  /** Events that are appended after the body, from a foreign format. */
  events: Array<{ type: string; data: object }>;
  blobs: ExportedBlob[];
  /** Line number of the body's first line. */
  firstLine: number;
  lost: string[];
}

const NEWLINE = 10;
const RETURN = 13;

export function exportAs(format: ExportFormat, raw: RawSession, entry: Entry, blobs: Uint8Array[]): { bytes: Uint8Array; lost: string[] } {
  if (format !== "sessionlog") {
    const { text, lost } = JSON.parse(call(() => raw.export_as(format, entry.record))) as { text: string; lost: string[] };
    return { bytes: encode(text), lost };
  }
  const header = call(() => raw.header());
  const first = encode(`{"sessionlog":1,"header":${header},"entry":${decode(encodeEntry(entry))}}\n`);
  return { bytes: joinBytes([first, ...linesOf(raw), call(() => raw.damaged_bytes()), ...blobs]), lost: [] };
}

export function readExport(format: ExportFormat, bytes: Uint8Array, fallback: ForeignDefaults): Export {
  if (format !== "sessionlog") return readForeign(format, decode(bytes), fallback);
  const end = bytes.indexOf(NEWLINE);
  const text = decode(bytes.subarray(0, end < 0 ? bytes.length : end)).trimEnd();
  let first: { sessionlog?: unknown; header?: { [key: string]: unknown } };
  try {
    first = (JSON.parse(text) ?? {}) as typeof first;
  } catch (cause) {
    throw new SessionLogError("corrupt", "an export starts with a line that holds its header", { line: 1 }, cause);
  }
  if (typeof first.sessionlog !== "number" || typeof first.header !== "object" || first.header === null) {
    throw new SessionLogError("corrupt", "this is not an export of a session", { line: 1 });
  }
  if (first.sessionlog > 1) throw new SessionLogError("newer_format", "the export was written by a newer version", { format: first.sessionlog });
  return {
    header: memberText(text, "header") as string, record: memberText(text, "entry") ?? null,
    ...splitBlobs(end < 0 ? new Uint8Array() : bytes.subarray(end + 1)), events: [], firstLine: 2,
  };
}

/** The record of a session on its way in; one that cannot be read is reported, and costs no more than itself. */
export function readEntry(text: string, lost: string[]): Entry | null {
  try {
    return decodeEntry(encode(text));
  } catch {
    lost.push("the record: it cannot be read");
    return null;
  }
}

/** How many of the `count` lines of `body` were passed over, because what they hold was there already. */
export function repeatedLines(raw: RawSession, body: Uint8Array, count: number): number {
  const [lost, damaged] = call(() => [raw.events_of("session/lost"), raw.damaged()]).map((text) => (JSON.parse(text) as unknown[]).length);
  const taken = call(() => raw.len()) - (lost as number) + (damaged as number);
  // Every line is there: no need to look at them again.
  if (count === taken) return 0;
  let blank = 0;
  for (let from = 0; from < body.length; ) {
    const end = body.indexOf(NEWLINE, from);
    const to = end < 0 ? body.length : end;
    if (to === from || (to === from + 1 && body[from] === RETURN)) blank += 1;
    from = to + 1;
  }
  return count - blank - taken;
}

export interface ForeignDefaults { id: string; now: number }

interface Foreign {
  head: { id?: string; cwd?: string; createdAt?: string };
  record: string | null;
  events: Export["events"];
  lost: string[];
}

function readForeign(format: ExportFormat, text: string, fallback: ForeignDefaults): Export {
  const { head, record, events, lost } = JSON.parse(call((module) => module.raw_import(format, text))) as Foreign;
  const createdAt = Date.parse(head.createdAt ?? "");
  const header = {
    version: 1, id: head.id ?? fallback.id, createdAt: Number.isFinite(createdAt) ? createdAt : fallback.now,
    ...(head.cwd?.startsWith("/") === true ? { cwd: head.cwd } : {}),
  };
  const entry = record === null ? null : `{"archived":false,"unarchivedAt":null,"events":0,"record":${record}}`;
  return { header: JSON.stringify(header), record: entry, body: new Uint8Array(), events, blobs: [], firstLine: 1, lost };
}

/** Appends what came from a foreign format; a compaction there counts from the first event of the import. */
export function appendForeign(session: Session, events: Export["events"]): void {
  const base = session.seq;
  for (const { type, data } of events) {
    const { uptoSeq } = data as { uptoSeq?: number };
    session.append(type as EventType, (type === "session/compacted" ? { ...data, uptoSeq: base + (uptoSeq ?? 0) } : data) as never, { repair: true });
  }
}
