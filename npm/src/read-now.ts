// Reads a session again where the store finishes before it returns, and takes off what is in doubt: in one go, for whoever appends waits for it.
import type { KeyValueBackend } from "../types/index.js";
import { SessionLogError } from "./errors.js";
import { call } from "./runtime.js";
import { keys, segmentPuts, withoutLast } from "./segments.js";
import { cutLines, parseHeader, type StoredLog } from "./stored.js";

function segmentsNow(backend: KeyValueBackend, id: string): Array<[firstSeq: number, lines: Uint8Array, whole: boolean]> {
  return call((m) => m.raw_segments(backend.list(...keys.segments(id, 0)) as Array<[string, Uint8Array]>)) as ReturnType<typeof segmentsNow>;
}

/** As `readLog` does. */
export function readLogNow(backend: KeyValueBackend, id: string, upto = Infinity, forks: readonly string[] = []): StoredLog | null {
  const bytes = backend.get(keys.header(id)) as Uint8Array | null;
  if (bytes === null) return null;
  const header = parseHeader(bytes, id);
  const lines: Uint8Array[] = [];
  let end = Math.min(header.base?.count ?? 0, upto);
  if (header.base !== undefined) {
    const read = [...forks, id];
    const base = read.includes(header.base.id) ? null : readLogNow(backend, header.base.id, end, read);
    if (base === null) throw new SessionLogError("corrupt", "the first events of the session are missing from the store", { id, base: header.base.id });
    lines.push(...cutLines(base.lines, end));
  }
  for (const [firstSeq, own] of segmentsNow(backend, id)) {
    if (firstSeq >= upto) break;
    lines.push(own);
    end = firstSeq + 1;
  }
  return { header, lines, end };
}

/** As `eraseLast` does. */
export function eraseLastNow(backend: KeyValueBackend, id: string, fence: Uint8Array, ids: ReadonlySet<string>): void {
  const last = segmentsNow(backend, id).at(-1);
  if (last === undefined) return;
  const [firstSeq, lines, whole] = last;
  const kept = withoutLast({ firstSeq, lines, whole }, ids);
  if (kept === null) return;
  const checks = [{ key: keys.fence(id), equals: fence }];
  void backend.transact(kept.length === 0 ? { checks, deletes: [keys.segment(id, firstSeq)] } : { checks, puts: segmentPuts(backend, id, firstSeq, kept) });
}
