// The measure for the load test: a worker that does nothing but store the bytes that ours stores, with sql.exec: a row per event
// as long as a line of the log, the session's record, and what is remembered under the idempotency key.
import { DurableObject } from "cloudflare:workers";

const RECORD = "r".repeat(900);

export class SessionObject extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, line TEXT NOT NULL)");
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS record (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID");
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID");
  }

  async fetch(request) {
    const { events } = await request.json();
    const { sql } = this.ctx.storage;
    const answer = events.map(({ type, data }) => {
      const line = JSON.stringify({ seq: 0, id: "0123456789abcdef", at: Date.now(), type, salt: "0".repeat(32), digest: "0".repeat(64), bytes: 400, data });
      return { seq: sql.exec("INSERT INTO log (line) VALUES (?) RETURNING seq", line).one().seq, id: "0123456789abcdef", at: Date.now() };
    });
    sql.exec("INSERT OR REPLACE INTO record (id, text) VALUES ('r', ?)", RECORD);
    sql.exec("INSERT OR REPLACE INTO requests (key, answer) VALUES (?, ?)", request.headers.get("idempotency-key"), JSON.stringify(answer));
    return Response.json({ events: answer });
  }
}
export class IndexObject extends DurableObject {}

export default {
  fetch: (request, env) => env.SESSIONS.get(env.SESSIONS.idFromName(new URL(request.url).pathname)).fetch(request),
};
