// How a session's log lies in a backend (docs/format.md): segments of lines, and the fence that says who may write.
import type { KeyValueBackend } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";
import { sameBytes, type RangedBatch } from "./hosts/batches.js";
import { call } from "./runtime.js";

export type Batch = Parameters<KeyValueBackend["transact"]>[0];
type Check = NonNullable<Batch["checks"]>[number];
export type Put = NonNullable<Batch["puts"]>[number];

/** Proof that this writer took the session over last: the fence record's bytes (null: the session is new). */
export type Fence = Uint8Array | null;

export interface Segment { firstSeq: number; lines: Uint8Array; /** False when pieces of it are missing. */ whole: boolean }

/** Most puts of one batch when the backend names no limit. */
export const MAX_BATCH = 1000;
/** Segments under this are merged (src/store/layout.rs decides). */
export const SMALL = 32 * 1024;
/** How often a segment is made anew because more was stored while its pieces went. */
const REPLACE_TRIES = 10;
/** How many segments one read brings; keeps memory flat on long sessions. */
const PAGE = 64;

/**
 * Keys of segments are made for every write, and hundreds at once for a merge: the module is asked for the first of a session, which
 * ends in as many zeros as a number may have digits.
 */
const firstKeys = new Map<string, string>();
const MOST_FIRST_KEYS = 100;

function segmentKey(id: string, seq: number): string {
  let first = firstKeys.get(id);
  if (first === undefined) {
    if (firstKeys.size >= MOST_FIRST_KEYS) firstKeys.clear();
    firstKeys.set(id, (first = call((m) => m.raw_key("segment", id, 0))));
  }
  const number = String(seq);
  return first.slice(0, -number.length) + number;
}

export const keys = {
  fence: (id: string): string => call((m) => m.raw_key("fence", id)),
  header: (id: string): string => call((m) => m.raw_key("header", id)),
  record: (id: string): string => call((m) => m.raw_key("record", id)),
  /** From where a long session can be opened. */
  checkpoint: (id: string): string => call((m) => m.raw_key("checkpoint", id)),
  segment: segmentKey,
  format: (): string => call((m) => m.raw_key("format", "")),
  /** All keys of one session, none of any other. */
  session: (id: string): [string, string] => call((m) => m.raw_key_range("session", id)) as [string, string],
  segments: (id: string, fromSeq: number): [string, string] => call((m) => m.raw_key_range("segments", id, fromSeq)) as [string, string],
  /** Everything below a prefix that ends in "/". */
  below: (prefix: string): [string, string] => call((m) => m.raw_key_range(prefix, "")) as [string, string],
};

/** The value of the format record; written with the first session, checked when a store is opened. */
export function formatRecord(): Uint8Array {
  return call((m) => m.raw_format_record());
}

/** How far a fence is raised by chance: no two writers make the same one, and each knows its own again when an answer was lost. */
const STEP = 2 ** 32;
/** A session's first goes further: one that is deleted and made anew shares no fence with the old one. */
const FIRST = 2 ** 48;

/** A fence above `held`. */
export function nextFence(held: Fence): Uint8Array {
  const step = 1 + Math.floor(Math.random() * (held === null ? FIRST : STEP));
  try {
    return call((m) => m.raw_next_fence(held ?? undefined, step));
  } catch (thrown) {
    // One that cannot be read may have been any: what comes after it begins anew.
    if (toError(thrown).code !== "corrupt") throw thrown;
    return nextFence(null);
  }
}

/**
 * Batches that write a segment (its `segmentPuts`, and those of more behind it that fit into one batch with it), in order; the
 * last one commits it. Every batch checks that nobody has written at this place, and the fence, unless there is none given.
 * `extra` goes with the committing batch: the header and record of a new session, for example.
 */
export function segmentBatches(backend: KeyValueBackend, id: string, fence: Fence, [head, ...rest]: [Put, ...Put[]], extra: Batch = {}): Batch[] {
  const checks: Check[] = [{ key: head[0], equals: null }];
  let isFenceNew = false;
  if (fence !== null) {
    const fenceKey = keys.fence(id);
    isFenceNew = extra.puts?.some(([key]) => key === fenceKey) === true;
    if (!isFenceNew) checks.unshift({ key: fenceKey, equals: fence });
  }
  const own: Batch = {
    checks: [...(extra.checks ?? []), ...checks],
    puts: [...rest, head, ...(extra.puts ?? [])],
    deletes: extra.deletes ?? [],
  };
  if (fits(backend, own)) return [own];
  // Too much for one batch: the pieces go ahead and count for nothing until the first one stands.
  const ahead = cutPuts(backend, rest).map((puts): Batch => ({ checks: isFenceNew ? [] : checks, puts }));
  return [...ahead, { ...own, puts: [head, ...(extra.puts ?? [])] }];
}

const bytesOf = (puts: readonly Put[]): number => puts.reduce((sum, [, value]) => sum + value.length, 0);

/** Whether a batch is within the backend's limits. */
export function fits({ maxBatch = MAX_BATCH, maxBatchBytes = Infinity }: KeyValueBackend, { puts = [], deletes = [] }: Batch): boolean {
  return puts.length + deletes.length <= maxBatch && bytesOf(puts) <= maxBatchBytes;
}

/** Puts in their order, as many together as one batch of the backend's takes. */
export function cutPuts({ maxBatch = MAX_BATCH, maxBatchBytes = Infinity }: Pick<KeyValueBackend, "maxBatch" | "maxBatchBytes">, puts: readonly Put[]): Put[][] {
  const out: Put[][] = [];
  let room = 0;
  for (const put of puts) {
    const last = out.at(-1);
    room -= put[1].length;
    if (last !== undefined && last.length < maxBatch && room >= 0) last.push(put);
    else {
      out.push([put]);
      room = maxBatchBytes - put[1].length;
    }
  }
  return out;
}

/**
 * Puts a segment in the place of what `make` says is to go. Pieces that are too many for one batch go ahead, as above; `make` is then
 * asked again, for what was stored meanwhile may belong into the segment, and the pieces that went are worth nothing.
 */
export async function replaceSegment(backend: KeyValueBackend, checks: Check[], make: () => Promise<{ puts: [Put, ...Put[]]; deletes: string[] }>): Promise<void> {
  let ahead: Uint8Array | null = null;
  for (let tries = 0; tries < REPLACE_TRIES; tries++) {
    const { puts, deletes } = await make();
    const [head, ...rest] = puts;
    // The first piece names the others by what they are.
    const isAhead = ahead !== null && sameBytes(ahead, head[1]);
    if (isAhead || fits(backend, { puts, deletes })) return void (await backend.transact({ checks, deletes, puts: isAhead ? [head] : puts }));
    for (const pieces of cutPuts(backend, rest)) await backend.transact({ checks, puts: pieces });
    ahead = head[1];
  }
  throw new SessionLogError("busy", "the session is written too fast to be stored anew: try again later");
}

export function joinBytes(all: Uint8Array[]): Uint8Array {
  const parts = all.filter((part) => part.length > 0);
  if (parts.length === 1) return parts[0] as Uint8Array;
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** The first piece of a segment, and the others when it is over the backend's limit. */
export function segmentPuts(backend: KeyValueBackend, id: string, firstSeq: number, lines: Uint8Array): [Put, ...Put[]] {
  const limit = backend.maxValueBytes ?? 2 ** 31;
  if (lines.length <= limit) return [[keys.segment(id, firstSeq), lines]];
  return call((m) => m.raw_segment_puts(id, firstSeq, lines, limit)) as [Put, ...Put[]];
}

/** Writes one segment; `conflict` when another writer took over or was first. */
export async function writeSegment(backend: KeyValueBackend, id: string, fence: Uint8Array, firstSeq: number, lines: Uint8Array, extra?: Batch): Promise<void> {
  for (const batch of segmentBatches(backend, id, fence, segmentPuts(backend, id, firstSeq, lines), extra)) await backend.transact(batch);
}

/**
 * Takes the last stored event off again when it is one of `ids`: its caller was told that it is not stored, and the store
 * said only later that it is. Only for whoever has held the fence without a break, so that nobody has built on it.
 */
export async function eraseLast(backend: KeyValueBackend, id: string, fence: Uint8Array, ids: ReadonlySet<string>, fromSeq: number): Promise<void> {
  let last: Segment | null = null;
  for await (const segment of readSegments(backend, id, fromSeq)) last = segment;
  const kept = last === null ? null : withoutLast(last, ids);
  if (last === null || kept === null) return;
  const checks = [{ key: keys.fence(id), equals: fence }];
  if (kept.length === 0) return void (await backend.transact({ checks, deletes: [keys.segment(id, last.firstSeq)] }));
  // Shorter than what stood there, but perhaps still longer than one value.
  const puts = segmentPuts(backend, id, last.firstSeq, kept);
  await replaceSegment(backend, checks, async () => ({ puts, deletes: [] }));
}

/** The lines of a segment without its last event when that is one of `ids`; null when it is not. */
export function withoutLast({ lines, whole }: Segment, ids: ReadonlySet<string>): Uint8Array | null {
  const start = lines.lastIndexOf(10, lines.length - 2) + 1;
  const found = /^\{"seq":\d+,"id":"([0-9a-f]{16})"/.exec(new TextDecoder().decode(lines.subarray(start, start + 64)));
  return whole && found !== null && ids.has(found[1] as string) ? lines.slice(0, start) : null;
}

/** The segment that holds `seq`, or the last one before it. */
async function startKey(backend: KeyValueBackend, id: string, seq: number): Promise<string> {
  const [first] = keys.segments(id, 0);
  const [after] = keys.segments(id, seq + 1);
  const found = await backend.list(first, after, { limit: 1, reverse: true, keysOnly: true });
  const key = found[0]?.[0];
  if (key === undefined) return keys.segments(id, seq)[0];
  // A piece stands behind the first of its segment.
  const piece = key.indexOf("/", first.length - 1);
  return piece < 0 ? key : key.slice(0, piece);
}

/** Reads segments in order, from the one that holds `fromSeq` on; the first may begin before it. */
export async function* readSegments(backend: KeyValueBackend, id: string, fromSeq = 0): AsyncGenerator<Segment> {
  const end = keys.segments(id, fromSeq)[1];
  let start = fromSeq === 0 ? keys.segments(id, 0)[0] : await startKey(backend, id, fromSeq);
  let open: Array<[string, Uint8Array]> = [];
  for (;;) {
    const page = await backend.list(start, end, { limit: PAGE });
    open.push(...page);
    const isLast = page.length < PAGE;
    const found = call((m) => m.raw_segments(open)) as Array<[number, Uint8Array, boolean]>;
    // The last segment of a page may go on in the next one.
    const ready = isLast ? found : found.slice(0, -1);
    for (const [firstSeq, lines, whole] of ready) yield { firstSeq, lines, whole };
    if (isLast) return;
    const held = found.at(-1);
    const headKey = held === undefined ? "" : keys.segment(id, held[0]);
    const from = open.findIndex(([key]) => key === headKey);
    open = from < 0 ? [] : open.slice(from);
    start = `${page[page.length - 1]?.[0] ?? start}\0`;
  }
}

/** The lines of a segment, the last one ended too: what is put behind a torn one would be torn with it. */
function ended(lines: Uint8Array): Uint8Array {
  if (lines.length === 0 || lines[lines.length - 1] === 10) return lines;
  const out = new Uint8Array(lines.length + 1);
  out.set(lines);
  out[lines.length] = 10;
  return out;
}

/** The lines of several segments, one behind the other. */
export const joinLines = (segments: readonly Uint8Array[]): Uint8Array => joinBytes(segments.map(ended));

/**
 * Merges one long run of small segments, if there is one; what the log says does not change. The epoch is raised with it, so
 * that no write or merge that was sent before can arrive after it: returns the new fence, or the old one when there was
 * nothing to do, and where to look the next time. Nothing else of this writer may be under way.
 */
export async function mergeSmall(backend: KeyValueBackend, id: string, fence: Uint8Array, fromSeq = 0): Promise<{ fence: Uint8Array; next: number }> {
  const found: Segment[] = [];
  for await (const segment of readSegments(backend, id, fromSeq)) found.push({ ...segment, lines: ended(segment.lines) });
  // Where a run may begin that grows with what is written from now on: there is no need to read what lies before it again.
  let tail = found.length;
  while (tail > 0 && (found[tail - 1] as Segment).lines.length < SMALL) tail--;
  const next = found[tail]?.firstSeq ?? found.at(-1)?.firstSeq ?? fromSeq;
  if (found.some((segment) => !segment.whole)) return { fence, next };
  const limit = backend.maxValueBytes ?? 2 ** 31;
  const [from, to] = call((m) => m.raw_merge_plan(new Float64Array(found.map((s) => s.firstSeq)), new Float64Array(found.map((s) => s.lines.length)), limit));
  if (from === undefined || to === undefined) return { fence, next };
  const run = found.slice(from, Math.min(to, from + (backend.maxBatch ?? MAX_BATCH) - 2));
  const lines = joinBytes(run.map((segment) => segment.lines));
  const raised = await replaceRun(backend, id, fence, run.map((segment) => segment.firstSeq), lines);
  // There may be another run behind this one.
  return { fence: raised, next: (run[0] as Segment).firstSeq };
}

/** The same for neighbouring segments whose lines are at hand, none of which is in pieces. Returns the new fence. */
export async function replaceRun(backend: KeyValueBackend, id: string, fence: Uint8Array, firstSeqs: number[], lines: Uint8Array): Promise<Uint8Array> {
  const segmentKeys = firstSeqs.map((firstSeq) => keys.segment(id, firstSeq));
  const [head, second] = segmentKeys as [string, string];
  const raised = nextFence(fence);
  const batch: RangedBatch = {
    checks: [{ key: keys.fence(id), equals: fence }],
    deletes: segmentKeys.slice(1),
    deleted: [second, `${segmentKeys.at(-1)}\0`],
    puts: [[keys.fence(id), raised], [head, lines]],
  };
  await backend.transact(batch);
  return raised;
}

/**
 * Deletes everything of one session, in batches. The header (and what `also` names, its record) goes first, so that a half
 * deleted session is no session; the fence goes last, so that a stale writer conflicts.
 */
export async function deleteSession(backend: KeyValueBackend, id: string, also: string[] = []): Promise<void> {
  const [start, end] = keys.session(id);
  const fence = keys.fence(id);
  const limit = backend.maxBatch ?? MAX_BATCH;
  await backend.transact({ deletes: [keys.header(id), ...also] });
  for (;;) {
    const found = await backend.list(start, end, { limit, keysOnly: true });
    const rest = found.map(([key]) => key).filter((key) => key !== fence);
    if (rest.length === 0) break;
    await backend.transact({ deletes: rest });
  }
  await backend.transact({ deletes: [fence] });
}
