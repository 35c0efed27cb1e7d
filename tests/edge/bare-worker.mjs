// The measure for the load test: a worker that does nothing but store the same bytes with sql.exec.
import { DurableObject } from "cloudflare:workers";

export class SessionObject extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, line TEXT NOT NULL)");
  }

  async fetch(request) {
    const { events } = await request.json();
    let seq = 0;
    for (const { type, data } of events) {
      // An event with its envelope, as long as a line of ours.
      const line = JSON.stringify({ id: "0123456789abcdef", at: Date.now(), type, salt: "0".repeat(32), digest: "0".repeat(64), bytes: 0, data });
      seq = this.ctx.storage.sql.exec("INSERT INTO log (line) VALUES (?) RETURNING seq", line).one().seq;
    }
    return Response.json({ seq });
  }
}
export class IndexObject extends DurableObject {}

export default {
  fetch: (request, env) => env.SESSIONS.get(env.SESSIONS.idFromName(new URL(request.url).pathname)).fetch(request),
};
