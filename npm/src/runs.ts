// What is kept of every run: one summary, and its audit trail. Keys below `u/`:
//   u/t/<start, 16 digits>-<run>   the summary; in this order the latest run is the last
//   u/r/<run>                      which of those is the run's
//   u/a/<run>/<piece>              the audit, one JSON text per line
import type { AuditEvent, AuditLogger as PublicAuditLogger, JsonValue, KeyValueBackend, RunSummary, UndoJournal } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";
import { cutPuts, fits } from "./segments.js";

/** What the run store needs of the store it belongs to. */
export interface RunStoreHome {
  readonly backend: KeyValueBackend;
  now(): number;
  newId(): string;
  /** Every text of an audit passes the scrubbers. */
  storedForm(value: JsonValue): JsonValue;
}

/** A summary as it is kept: what is needed to find a run again, too. */
export interface KeptRun extends RunSummary {
  /** Seq of the run's first event, so that a rewind finds the runs after a message. */
  fromSeq: number;
  resumedFrom?: string;
  warnings?: string[];
}

type Sink = ((event: AuditEvent) => void) | UndoJournal;

const PIECE_BYTES = 60_000;

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const timeKey = ({ startedAt, runId }: RunSummary): string => `u/t/${String(Math.max(0, Math.floor(startedAt))).padStart(16, "0")}-${runId}`;
const auditKey = (runId: string): string => `u/a/${runId}`;

export class RunStore {
  #home: RunStoreHome;

  /** @internal Made by the store. */
  constructor(home: RunStoreHome) {
    this.#home = home;
  }

  /** The latest first. */
  async listRuns(options: { limit?: number; sessionId?: string } = {}): Promise<RunSummary[]> {
    const runs = await this.kept(options);
    return runs.map(({ runId, sessionId, task, status, costCents, startedAt, endedAt, hasUndo }) => ({ runId, sessionId, task, status, costCents, startedAt, endedAt, hasUndo }));
  }

  /** @internal Summaries with what is kept beside the contract. */
  async kept({ limit, sessionId }: { limit?: number; sessionId?: string } = {}): Promise<KeptRun[]> {
    const wanted = limit === undefined ? {} : sessionId === undefined ? { limit } : {};
    const rows = await this.#home.backend.list("u/t/", "u/t0", { reverse: true, ...wanted });
    const runs: KeptRun[] = [];
    for (const [, bytes] of rows) {
      const run = readRun(bytes);
      if (run !== null && (sessionId === undefined || run.sessionId === sessionId)) runs.push(run);
    }
    return limit === undefined ? runs : runs.slice(0, limit);
  }

  async showRun(runId: string): Promise<{ summary: RunSummary; audit: AuditEvent[] }> {
    const summary = await this.#find(runId);
    if (summary === null) throw new SessionLogError("not_found", `there is no run ${String(runId).slice(0, 80)}`, { given: String(runId).slice(0, 80) });
    const audit: AuditEvent[] = [];
    for (const [, bytes] of await this.#home.backend.list(`${auditKey(runId)}/`, `${auditKey(runId)}0`)) {
      audit.push(...decode(bytes).split("\n").flatMap(readAudit));
    }
    return { summary, audit };
  }

  async #find(runId: string): Promise<KeptRun | null> {
    const pointer = await this.#home.backend.get(`u/r/${runId}`);
    if (pointer === null) return null;
    const bytes = await this.#home.backend.get(decode(pointer));
    return bytes === null ? null : readRun(bytes);
  }

  /** The latest run whose file changes can be undone. */
  async latestRunWithUndo(): Promise<string | null> {
    return (await this.kept()).find((run) => run.hasUndo)?.runId ?? null;
  }

  /** Where a run's journal is kept. */
  undoPath(runId: string): string {
    return `j/${runId}`;
  }

  auditLogger(): AuditLogger {
    return new AuditLogger(auditKey(this.#home.newId()), this.#home);
  }

  /** @internal */
  auditOf(runId: string): AuditLogger {
    return new AuditLogger(auditKey(runId), this.#home);
  }

  /** @internal Writes a run's summary and, when it is over, its audit: all of it or nothing, or the audit first where that is too much for one batch. */
  async save(run: KeptRun, audit: PublicAuditLogger | null): Promise<void> {
    const key = timeKey(run);
    const stored = this.#home.storedForm({ ...run } as unknown as JsonValue);
    const puts: Array<[string, Uint8Array]> = [
      [key, encode(JSON.stringify(stored))],
      [`u/r/${run.runId}`, encode(key)],
    ];
    const events = audit instanceof AuditLogger ? audit.events : [];
    const { backend } = this.#home;
    const trail = pieces(events, backend.maxValueBytes).map((piece, at): [string, Uint8Array] => [`${auditKey(run.runId)}/${String(at).padStart(6, "0")}`, encode(piece)]);
    const isOne = fits(backend, { puts: [...puts, ...trail] });
    if (!isOne) for (const some of cutPuts(backend, trail)) await backend.transact({ puts: some });
    await backend.transact({ puts: isOne ? [...puts, ...trail] : puts });
  }

  /** @internal Says whether a run's changes can be undone (again). */
  async setUndo(runId: string, hasUndo: boolean): Promise<void> {
    const run = await this.#find(runId);
    if (run !== null && run.hasUndo !== hasUndo) await this.save({ ...run, hasUndo }, null);
  }
}

function readAudit(line: string): AuditEvent[] {
  try {
    return line === "" ? [] : [JSON.parse(line) as AuditEvent];
  } catch {
    // One that cannot be read costs itself alone.
    return [];
  }
}

function readRun(bytes: Uint8Array): KeptRun | null {
  try {
    return JSON.parse(decode(bytes)) as KeptRun;
  } catch {
    // One that cannot be read costs itself alone.
    return null;
  }
}

/** The lines of an audit, cut between lines into values of a size that every backend takes. */
function pieces(events: readonly AuditEvent[], limit = PIECE_BYTES): string[] {
  const most = Math.min(PIECE_BYTES, limit);
  const out: string[] = [];
  let piece = "";
  for (const event of events) {
    const line = `${JSON.stringify(event)}\n`;
    if (piece !== "" && piece.length + line.length > most) {
      out.push(piece);
      piece = "";
    }
    piece += line;
  }
  if (piece !== "") out.push(piece);
  return out;
}

/** What happened in a run, as it happens. */
export class AuditLogger {
  readonly path: string;
  #home: Pick<RunStoreHome, "now" | "storedForm">;
  #sinks = new Set<{ sink: Sink }>();
  #events: AuditEvent[] = [];

  /** @internal Made by `RunStore.auditLogger`. */
  constructor(path: string, home: Pick<RunStoreHome, "now" | "storedForm">) {
    this.path = path;
    this.#home = home;
  }

  /** @internal */
  get events(): readonly AuditEvent[] {
    return this.#events;
  }

  /** A sink sees every event from here on; returns its end. */
  addSink(sink: Sink): () => void {
    const entry = { sink };
    this.#sinks.add(entry);
    return () => void this.#sinks.delete(entry);
  }

  record(event: { type: string; callId?: string; tool?: string; data?: JsonValue }): void {
    const { type, callId, tool, data } = event;
    const kept: AuditEvent = {
      type, at: this.#home.now(), ...(callId === undefined ? {} : { callId }), ...(tool === undefined ? {} : { tool }),
      ...(data === undefined ? {} : { data: this.#stored(data) }),
    };
    this.#events.push(kept);
    for (const { sink } of [...this.#sinks]) tell(sink, kept);
  }

  /** Something that cannot be kept as it is costs its details, not the run. */
  #stored(data: JsonValue): JsonValue {
    try {
      return this.#home.storedForm(data);
    } catch (thrown) {
      return { unstorable: toError(thrown).code };
    }
  }
}

function tell(sink: Sink, event: AuditEvent): void {
  const watch = typeof sink === "function" ? sink : (sink as { observe?: (event: AuditEvent) => void }).observe?.bind(sink);
  try {
    watch?.(event);
  } catch {
    // A sink that fails is its owner's; the run goes on.
  }
}
