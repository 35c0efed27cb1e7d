// The journal of one run as the controller and its host see it.
import type { UndoReport } from "../types/index.js";
import { call } from "./runtime.js";
import type { FilesCore, RunFs } from "./vfs.js";

export class UndoJournal {
  readonly #core: FilesCore;
  readonly runId: string;
  /** The face of the run while it is open in this session. */
  readonly fs: RunFs | null;

  /** @internal */
  constructor(core: FilesCore, runId: string, fs: RunFs | null = null) {
    this.#core = core;
    this.runId = runId;
    this.fs = fs;
  }

  get hasEntries(): boolean {
    return this.changedPaths.length > 0;
  }

  get changedPaths(): string[] {
    return call(() => this.#core.live().changed_paths(this.runId));
  }

  /** Paths that held more than `maxImageBytes` when the run changed them: undo cannot take them back. */
  get barriers(): string[] {
    return call(() => this.#core.live().barriers(this.runId));
  }

  preview(): UndoReport {
    return JSON.parse(call(() => this.#core.live().preview(this.runId, 0))) as UndoReport;
  }

  restore(options?: { force?: boolean; skip?: boolean }): Promise<UndoReport> {
    return this.#core.undo(this.runId, options);
  }

  checkHealth(): { totalEntries: number; corruptedEntries: number; orphanedPending: number; healthy: boolean } {
    const [totalEntries = 0, corruptedEntries = 0, orphanedPending = 0] = call(() => this.#core.live().health(this.runId));
    return { totalEntries, corruptedEntries, orphanedPending, healthy: corruptedEntries === 0 && orphanedPending === 0 };
  }
}
