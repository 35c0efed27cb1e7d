// Storage on servers and in tests: Node, Bun, Deno.
import type { KeyValueBackend } from "./index.js";

export interface FileBackendOptions {
  /** Appends are then stored before they return, one disk write each. Default: written behind, as in a browser. */
  storeFirst?: boolean;
}
/**
 * A store in a folder of plain files; Node 20 and newer, Bun, Deno. Batches are on disk when they are acknowledged; one that
 * a crash cut off is not there. One process at a time: `locked` while another has the folder open.
 */
export function openFileBackend(dir: string, options?: FileBackendOptions): Promise<KeyValueBackend>;

export interface SqliteOptions {
  table?: string;
  /** As above. */
  storeFirst?: boolean;
}
/**
 * A SQLite file, through `node:sqlite` (Node 22.5 and newer, Deno) or `bun:sqlite`; several processes may share it. Rejects
 * with `unavailable` where the runtime has no SQLite, as Node 20.
 */
export function openSqliteBackend(path: string, options?: SqliteOptions): Promise<KeyValueBackend>;
