// Back in time: the files of runs, the conversation, or both. Nothing is deleted; the log says what was done.
import type { Session, UndoReport } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";
import type { RunStore } from "./runs.js";
import type { VirtualFs as Files } from "./vfs.js";

interface Options { files?: boolean; conversation?: boolean; force?: boolean; preview?: boolean }

export class Rewinder {
  constructor(
    readonly session: Session,
    readonly fs: Files,
    readonly runs: RunStore,
    readonly append: (type: string, data: unknown) => void,
    readonly warn: (message: string) => void,
  ) {}

  /** Undoes the latest run; null when there is none. */
  async undo(options: { force?: boolean; skip?: boolean; run?: string }): Promise<UndoReport | null> {
    const runId = options.run ?? this.fs.undoable[0];
    if (runId === undefined) return null;
    const report = await this.fs.undo({ ...options, run: runId });
    if (!report.ok) return report;
    const { restored, deleted } = report;
    this.append("undo/applied", { runId, restored, deleted, ...(options.force === true ? { forced: true } : {}) });
    await this.#mark(runId, false);
    return report;
  }

  /** Reverses the last undo; null when there is none. */
  async redo(options: { force?: boolean } = {}): Promise<UndoReport | null> {
    const runId = this.fs.redoable[0];
    if (runId === undefined) return null;
    const report = await this.fs.redo(options);
    if (!report.ok) return report;
    this.append("undo/redone", { runId, restored: report.restored, deleted: report.deleted });
    await this.#mark(runId, true);
    return report;
  }

  /** The journal decides what can be undone; the list of runs only tells. */
  async #mark(runId: string, hasUndo: boolean): Promise<void> {
    await this.runs.setUndo(runId, hasUndo).catch((thrown: unknown) => this.warn(`the run's record could not be changed: ${toError(thrown).message}`));
  }

  async rewind(toSeq: number, options: Options): Promise<UndoReport> {
    const event = this.session.event(toSeq);
    if (event?.type !== "user/message") throw new SessionLogError("invalid_boundary", "a rewind goes to a user message", { seq: Number(toSeq) });
    const runs = options.files === false ? [] : await this.#runsFrom(this.#startOf(toSeq));
    if (options.preview === true) return this.#preview(runs, options);
    const report = await this.#undoAll(runs, options);
    if (report.ok && options.conversation !== false) this.append("session/rewound", { uptoSeq: this.#startOf(toSeq) - 1, reason: "rewind" });
    return report;
  }

  /** Where the turn of a user message begins: that goes with the message. */
  #startOf(seq: number): number {
    for (let at = seq - 1; at >= 0; at--) {
      const type = this.session.event(at)?.type;
      if (type === "turn/start") return at;
      if (type !== "context/message" && type !== "queue/claimed") break;
    }
    return seq;
  }

  /** The runs of this session since then that can be undone, the latest first. */
  async #runsFrom(seq: number): Promise<string[]> {
    const since = new Set((await this.runs.kept({ sessionId: this.session.id })).filter((run) => run.fromSeq >= seq).map((run) => run.runId));
    return this.fs.undoable.filter((run) => since.has(run));
  }

  /** The run to go back to when nothing but these runs has to be undone on the way. */
  #oldest(runs: string[]): string | null {
    const straight = runs.every((run, at) => this.fs.undoable[at] === run);
    return straight ? runs.at(-1) ?? null : null;
  }

  async #preview(runs: string[], options: Options): Promise<UndoReport> {
    const how = options.force === true ? { force: true } : {};
    const oldest = this.#oldest(runs);
    if (oldest !== null) return this.fs.rewind(oldest, { ...how, preview: true });
    const total = empty();
    for (const run of runs) merge(total, this.fs.preview({ ...how, run }));
    return total;
  }

  async #undoBackTo(oldest: string, runs: string[], options: Options): Promise<UndoReport> {
    const forced = options.force === true ? { force: true } : {};
    const report = await this.fs.rewind(oldest, forced);
    if (!report.ok) return without(report);
    for (const runId of runs) {
      // The paths are told once, with the oldest run.
      const paths = runId === oldest ? { restored: report.restored, deleted: report.deleted } : { restored: [], deleted: [] };
      this.append("undo/applied", { runId, ...paths, ...(options.force === true ? { forced: true } : {}) });
      await this.#mark(runId, false);
    }
    return report;
  }

  /** All of them or none: one that cannot be undone takes the others back. */
  async #undoAll(runs: string[], options: Options): Promise<UndoReport> {
    const oldest = this.#oldest(runs);
    if (oldest !== null && runs.length > 1) return this.#undoBackTo(oldest, runs, options);
    const total = empty();
    let undone = 0;
    for (const run of runs) {
      const report = await this.undo({ run, ...(options.force === true ? { force: true } : {}) });
      if (report === null) continue;
      if (!report.ok) {
        for (; undone > 0; undone--) await this.redo();
        return report;
      }
      undone += 1;
      merge(total, report);
    }
    return total;
  }
}

function without(report: UndoReport): UndoReport {
  return { ...report, restored: [], deleted: [] };
}

function empty(): UndoReport {
  return { ok: true, restored: [], deleted: [], conflicts: [], errors: [] };
}

/** What an older run's undo did to a path stands over what a later one's did. */
function merge(total: UndoReport, report: UndoReport): void {
  total.restored = [...total.restored.filter((path) => !report.deleted.includes(path)), ...report.restored.filter((path) => !total.restored.includes(path))];
  total.deleted = [...total.deleted.filter((path) => !report.restored.includes(path)), ...report.deleted.filter((path) => !total.deleted.includes(path))];
  total.ok &&= report.ok;
  total.conflicts.push(...report.conflicts);
  total.errors.push(...report.errors);
}
