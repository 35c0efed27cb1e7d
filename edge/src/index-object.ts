// One object per caller: which sessions there are and what a listing shows of them, and the caller's keys that belong to no
// session (runs and files of clients). Sessions report here when their records change, a moment later.
import { DurableObject } from "cloudflare:workers";
import type { KeyValueBackend, SessionSummary } from "sessionlog";
import { durableObjectBackend } from "sessionlog/durable-object";
import { limitsOf, type Env } from "./env.js";
import { answerRead, readRequest, written, type KvRequest } from "./kv.js";
import { answerOf, Refusal, refusalOf } from "./refusal.js";
import { Requests } from "./requests.js";

/** What a session's object holds of the session; a summary of null: it is not listed (any more). */
export interface Report { header: Uint8Array | null; record: Uint8Array | null; format: Uint8Array | null; summary: SessionSummary | null }
export interface IndexAnswer { value?: Uint8Array | null; entries?: Array<[string, Uint8Array]>; error?: { code: string; message: string } }
interface Row { [column: string]: SqlStorageValue; id: string; title: string; preview: string; status: string; created: number; updated: number; events: number; archived: number; parent: string | null }

const decoder = new TextDecoder();

/** The session that one was forked from, by its header; what cannot be read here (encrypted, or no header) says nothing. */
function baseOf(header: Uint8Array): string | null {
  const text = decoder.decode(header);
  // Most are no forks: those are not taken apart.
  if (!text.includes('"base":')) return null;
  try {
    const { base } = JSON.parse(text) as { base?: { id?: unknown } };
    return typeof base?.id === "string" ? base.id : null;
  } catch {
    return null;
  }
}

export class IndexObject extends DurableObject<Env> {
  readonly #backend: KeyValueBackend;
  readonly #requests: Requests;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#backend = durableObjectBackend(ctx.storage);
    this.#requests = new Requests(ctx.storage.sql);
    ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS sessions (
      id TEXT PRIMARY KEY, title TEXT NOT NULL DEFAULT '', preview TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT 'idle', created INTEGER NOT NULL,
      updated INTEGER NOT NULL, events INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0, parent TEXT) WITHOUT ROWID`);
    ctx.storage.sql.exec("CREATE INDEX IF NOT EXISTS sessions_updated ON sessions (archived, updated)");
  }

  #has(id: string): boolean {
    return this.ctx.storage.sql.exec("SELECT 1 FROM sessions WHERE id = ?", id).toArray().length > 0;
  }

  /**
   * Makes room for a session, before anything of it is stored; the same one may ask again. `header` when it is at hand: a fork is
   * known from here on, so that the session which has its first events stays.
   */
  async reserve(id: string, header: Uint8Array | null): Promise<{ refused: { code: "quota" | "missing"; message: string } | null }> {
    const { sql } = this.ctx.storage;
    const base = header === null ? null : baseOf(header);
    if (base !== null && !this.#has(base) && this.#backend.get(`s/${base}/h`) === null) return { refused: { code: "missing", message: "the session that this one was forked from is gone" } };
    if (!this.#has(id)) {
      const { count } = sql.exec<{ count: number }>("SELECT count(*) AS count FROM sessions").one();
      const { sessionsPerCaller } = limitsOf(this.env);
      if (count >= sessionsPerCaller) return { refused: { code: "quota", message: `a caller has at most ${sessionsPerCaller} sessions: delete some` } };
      sql.exec("INSERT INTO sessions (id, created, updated) VALUES (?, ?, ?)", id, Date.now(), Date.now());
    }
    if (header !== null) void this.#backend.transact({ puts: [[`s/${id}/h`, header]] });
    return { refused: null };
  }

  /** Before a session's events are deleted: false while forks read them, else there can be no fork of it from here on. */
  async letGo(id: string): Promise<boolean> {
    if (this.#hasForks(id)) return false;
    this.ctx.storage.transactionSync(() => {
      void this.#backend.transact({ deletes: [`s/${id}/h`] });
      this.ctx.storage.sql.exec("DELETE FROM sessions WHERE id = ?", id);
    });
    return true;
  }

  /** What a session is now; nothing is left of one without a header. */
  async report(id: string, { header, record, format, summary }: Report): Promise<void> {
    const { sql } = this.ctx.storage;
    this.ctx.storage.transactionSync(() => {
      const puts: Array<[string, Uint8Array]> = [];
      const deletes: string[] = [];
      for (const [key, value] of [[`s/${id}/h`, header], [`r/${id}`, record]] as const) {
        if (value === null) deletes.push(key);
        else puts.push([key, value]);
      }
      if (format !== null) puts.push(["m/format", format]);
      void this.#backend.transact({ puts, deletes });
      if (summary === null) return void sql.exec("DELETE FROM sessions WHERE id = ?", id);
      const { title, preview, status, createdAt, updatedAt, events, archived, parentId } = summary;
      sql.exec(
        `INSERT INTO sessions (id, title, preview, status, created, updated, events, archived, parent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET title = excluded.title, preview = excluded.preview, status = excluded.status, created = excluded.created,
         updated = excluded.updated, events = excluded.events, archived = excluded.archived, parent = excluded.parent`,
        id, title, preview, status, createdAt, updatedAt, events, archived ? 1 : 0, parentId ?? null,
      );
    });
  }

  /** Whether sessions were forked from this one and may still read its events. */
  #hasForks(id: string): boolean {
    return (this.#backend.list("s/", "s0") as Array<[string, Uint8Array]>).some(([, value]) => baseOf(value) === id);
  }

  /** What a session's object asks for that is not its own. Errors come as values: classes do not survive the way. */
  async ask(asked: KvRequest): Promise<IndexAnswer> {
    try {
      if (asked.op === "get") return { value: this.#backend.get(asked.key) as Uint8Array | null };
      if (asked.op === "list") {
        const { start, end, limit, reverse, keysOnly } = asked;
        return { entries: this.#backend.list(start, end, { reverse, keysOnly, ...(limit === null ? {} : { limit }) }) as Array<[string, Uint8Array]> };
      }
      this.#transact(asked);
      return {};
    } catch (thrown) {
      const { code, message } = refusalOf(thrown);
      return { error: { code, message } };
    }
  }

  #transact({ batch, request: key }: Extract<KvRequest, { op: "transact" }>): void {
    if (this.#requests.find(key, "kv") !== null) return;
    if (this.ctx.storage.sql.databaseSize > limitsOf(this.env).bytesPerSession) throw new Refusal(507, "quota", "the store of this caller is full");
    this.ctx.storage.transactionSync(() => {
      void this.#backend.transact(batch);
      this.#requests.add({ key, print: "kv", answer: "" });
    });
  }

  async sessions({ limit, offset, archived }: { limit: number; offset: number; archived: boolean }): Promise<object[]> {
    const rows = this.ctx.storage.sql.exec<Row>("SELECT * FROM sessions WHERE archived <= ? ORDER BY updated DESC, id LIMIT ? OFFSET ?", archived ? 1 : 0, limit, offset).toArray();
    return rows.map(({ id, title, preview, status, created, updated, events, archived: isArchived, parent }) => ({
      id, title, preview, status, createdAt: created, updatedAt: updated, events, archived: isArchived === 1, ...(parent === null ? {} : { parentId: parent }),
    }));
  }

  /** The caller's keys that belong to no session. */
  override async fetch(request: Request): Promise<Response> {
    try {
      const asked = readRequest(new Uint8Array(await request.arrayBuffer()));
      if (asked.op !== "transact") return answerRead(asked, this.#backend, limitsOf(this.env).bodyBytes);
      this.#transact(asked);
      return written();
    } catch (thrown) {
      return answerOf(thrown);
    }
  }
}
