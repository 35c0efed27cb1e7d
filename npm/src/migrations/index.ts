// From each released format to the next: one file per step in this folder, one line here. Format 1 is the first.
import type { KeyValueBackend } from "../../types/index.js";

export interface Step {
  /** The format it starts from; it ends at the next one. */
  readonly from: number;
  /** Rewrites the store. Run again after it was stopped anywhere, it must come to the same end; it removes what it replaces last. */
  run(backend: KeyValueBackend): Promise<void>;
}

export const STEPS: readonly Step[] = [];
