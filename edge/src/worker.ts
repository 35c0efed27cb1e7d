// The door: who calls, from where, how often; then on to the object that has the session.
import { version } from "sessionlog";
import { addressOf } from "./address.js";
import { callerOf, type Caller } from "./auth.js";
import { decoded, numberFrom, parseJson, readBody } from "./body.js";
import { limitsOf, type Env } from "./env.js";
import type { IndexObject } from "./index-object.js";
import { PARTS, partsOf, targetOf } from "./keys.js";
import { joinLists, readRequest, writeRequest, type KvRequest } from "./kv.js";
import { Buckets } from "./rate.js";
import { answerOf, readsOnly, Refusal } from "./refusal.js";
import { start } from "./start.js";

export { IndexObject } from "./index-object.js";
export { SessionObject } from "./session-object.js";

const ID = /^(?!-)[A-Za-z0-9_-]{1,128}$/;
const PAGE = 500;
const buckets = new Buckets();
/** Ids of objects by name: to work one out costs more than to look at it. */
const objectIds = new Map<string, DurableObjectId>();
const MOST_IDS = 1_000;

/** The page's origin when it may call; null for what is no page. A page from elsewhere is refused. */
function originOf(request: Request, env: Env): string | null {
  const origin = request.headers.get("origin");
  if (origin === null || origin === new URL(request.url).origin) return origin;
  const allowed = (env.ORIGINS ?? "").split(",").map((name) => name.trim());
  if (allowed.includes("*") || allowed.includes(origin)) return origin;
  throw new Refusal(403, "forbidden", "pages of this origin may not call: it is not in ORIGINS");
}

function withCors(response: Response, origin: string | null): Response {
  if (origin === null || response.webSocket) return response;
  const answer = new Response(response.body, response);
  answer.headers.set("access-control-allow-origin", origin);
  answer.headers.append("vary", "origin");
  answer.headers.set("access-control-expose-headers", "retry-after");
  return answer;
}

const preflight = (): Response =>
  new Response(null, {
    status: 204,
    headers: { "access-control-allow-methods": "GET, POST, DELETE", "access-control-allow-headers": "authorization, content-type, idempotency-key", "access-control-max-age": "86400" },
  });

function sessionStub(env: Env, caller: Caller, id: string): DurableObjectStub {
  if (!ID.test(id)) throw new Refusal(400, "invalid_id", "a session's id is 1 to 128 of [A-Za-z0-9_-] and does not begin with -");
  // Names of callers have no slash: no id reaches into the sessions of another.
  const name = `${caller.name}/${id}`;
  let found = objectIds.get(name);
  if (found === undefined) {
    if (objectIds.size >= MOST_IDS) objectIds.clear();
    objectIds.set(name, (found = env.SESSIONS.idFromName(name)));
  }
  return env.SESSIONS.get(found);
}

function indexStub(env: Env, caller: Caller): DurableObjectStub<IndexObject> {
  return env.INDEXES.get(env.INDEXES.idFromName(caller.name)) as DurableObjectStub<IndexObject>;
}

/** Passes a request on: as it is, or with another body in the place of its own. */
function forward(stub: DurableObjectStub, request: Request, caller: Caller, id: string, rest: string, body?: Uint8Array<ArrayBuffer>): Promise<Response> {
  const address = addressOf({ owner: caller.name, canWrite: caller.canWrite, id, rest });
  // Copied by the runtime: to name the headers that an object needs, one by one, costs more than half of storing an event.
  if (body === undefined) return stub.fetch(address, request);
  const headers = new Headers(request.headers);
  headers.delete("content-length");
  return stub.fetch(address, { method: request.method, headers, body });
}

async function route(request: Request, env: Env): Promise<Response> {
  const url = new URL(request.url);
  const parts = url.pathname.split("/").slice(1);
  const [root, kind, id, what = ""] = parts.map(decoded);
  if (root !== "v1") throw new Refusal(404, "not_found", "there is no such path");
  if (kind === "health") {
    start();
    return Response.json({ ok: true, version: version() });
  }
  // A batch of keys may be a read: its own object decides.
  const writes = request.method !== "GET" && kind !== "kv" && what !== "kv";
  const caller = await callerOf(request, env.CALLERS, writes);
  const limits = limitsOf(env);
  buckets.take(caller.name, 4 * limits.callsPerSecond);
  if (kind === "kv" && request.method === "POST") return keyValue(request, env, caller, limits.bodyBytes);
  if (kind !== "sessions") throw new Refusal(404, "not_found", "there is no such path");
  if (id === undefined || id === "") return sessions(request, env, caller, limits.bodyBytes, url);
  const rest = parts.slice(3).map((part) => `/${part}`).join("");
  return forward(sessionStub(env, caller, id), request, caller, id, rest + url.search);
}

async function sessions(request: Request, env: Env, caller: Caller, limit: number, url: URL): Promise<Response> {
  if (request.method === "GET") {
    const query = url.searchParams;
    const asked = { limit: numberFrom(query, "limit", 100, PAGE), offset: numberFrom(query, "offset", 0), archived: query.get("archived") === "true" };
    return Response.json({ sessions: await indexStub(env, caller).sessions(asked) });
  }
  if (request.method !== "POST") throw new Refusal(404, "not_found", "there is no such path");
  if (!caller.canWrite) throw readsOnly();
  const bytes = await readBody(request, limit);
  const { id = crypto.randomUUID().replace(/-/g, "").slice(0, 16) } = parseJson(bytes);
  if (typeof id !== "string") throw new Refusal(400, "invalid_id", "a session's id is text");
  return forward(sessionStub(env, caller, id), request, caller, id, "", bytes);
}

/** The caller's whole store, taken apart by session. */
async function keyValue(request: Request, env: Env, caller: Caller, limit: number): Promise<Response> {
  const bytes = await readBody(request, limit);
  const asked = readRequest(bytes);
  if (asked.op === "transact" && !caller.canWrite) throw readsOnly();
  const send = (part: KvRequest, body = writeRequest(part)): Promise<Response> => {
    const id = targetOf(part);
    if (typeof id !== "string") return forward(indexStub(env, caller), request, caller, "", "/kv", body);
    return forward(sessionStub(env, caller, id), request, caller, id, "/kv", body);
  };
  if (targetOf(asked) !== PARTS) return send(asked, bytes);
  const parts = partsOf(asked);
  if (asked.op === "list") return joinLists(asked, send, parts as Array<typeof asked>);
  // Deletes without a condition: each object carries out its own, once per key of the request.
  let answer = await send(parts[0] as KvRequest);
  for (const part of parts.slice(1)) if (answer.ok) answer = await send(part);
  return answer;
}

export default {
  async fetch(request, env): Promise<Response> {
    let origin: string | null = null;
    try {
      origin = originOf(request, env);
      return withCors(request.method === "OPTIONS" ? preflight() : await route(request, env), origin);
    } catch (thrown) {
      return withCors(answerOf(thrown), origin);
    }
  },
} satisfies ExportedHandler<Env>;
