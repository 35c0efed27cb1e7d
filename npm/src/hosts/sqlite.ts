// SQLite files on a server: `node:sqlite` (Node 22.5 and newer, Deno) or `bun:sqlite`.
import type { KeyValueBackend } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";
import { sqlBackend, type SqlEngine, type SqlValue } from "./sql.js";

interface Statement { all(...values: SqlValue[]): unknown[]; run(...values: SqlValue[]): unknown; values?(...values: SqlValue[]): unknown[][] }
interface Database { exec(sql: string): unknown; prepare(sql: string): Statement; close(): void }
type Open = new (path: string) => Database;

const MIB = 1024 * 1024;
const isBun = (): boolean => typeof (globalThis as { Bun?: unknown }).Bun === "object";

/** The database class of this runtime. The names are not literal so that bundlers leave them to the runtime. */
async function driver(): Promise<Open> {
  const [name, member] = isBun() ? ["bun:sqlite", "Database"] : ["node:sqlite", "DatabaseSync"];
  try {
    const found = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name as string)) as { [member: string]: Open };
    return found[member as string] as Open;
  } catch (cause) {
    const message = "this runtime has no SQLite: it takes Node 22.5 or newer, Deno or Bun. openFileBackend works everywhere, Node 20 included";
    throw new SessionLogError("unavailable", message, {}, cause);
  }
}

function engine(database: Database): SqlEngine {
  const prepared = new Map<string, Statement>();
  const statement = (sql: string): Statement => {
    let found = prepared.get(sql);
    if (found === undefined) prepared.set(sql, (found = database.prepare(sql)));
    return found;
  };
  return {
    rows: (sql, values) => statement(sql).all(...values).map((row) => Object.values(row as { [column: string]: unknown })),
    run: (sql, values) => void statement(sql).run(...values),
    atomically: (work) => {
      database.exec("BEGIN IMMEDIATE");
      try {
        work();
        database.exec("COMMIT");
      } catch (thrown) {
        database.exec("ROLLBACK");
        throw thrown;
      }
    },
    close: () => database.close(),
  };
}

export interface SqliteOptions {
  table?: string;
  /** Appends are then stored before they return, one disk write each. Default: written behind, as in a browser. */
  storeFirst?: boolean;
}

/** Opens (or makes) a SQLite file. Several processes may share it. Rejects with `unavailable` where there is no SQLite. */
export async function openSqliteBackend(path: string, options: SqliteOptions = {}): Promise<KeyValueBackend> {
  const Open = await driver();
  try {
    const database = new Open(path);
    // FULL: what is acknowledged survives power loss.
    for (const pragma of ["busy_timeout = 5000", "journal_mode = WAL", "synchronous = FULL"]) database.exec(`PRAGMA ${pragma}`);
    const { storeFirst = false, ...rest } = options;
    return sqlBackend(engine(database), { name: "sqlite", sync: storeFirst, maxValueBytes: 64 * MIB, maxBatch: 10_000, ...rest });
  } catch (thrown) {
    throw toError(thrown);
  }
}
