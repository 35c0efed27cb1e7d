// Which object holds a key: what begins with a session's id lies in that session's object, all else in the caller's index.
import { Refusal } from "./refusal.js";
import type { KvRequest } from "./kv.js";

const OF_SESSION = /^(?:s\/([A-Za-z0-9_-]{1,128})\/|r\/([A-Za-z0-9_-]{1,128})$)/;

function sessionOf(key: string): string | null {
  const found = OF_SESSION.exec(key);
  return found === null ? null : ((found[1] ?? found[2]) as string);
}

/** The session whose object answers a request; null for the index. */
export function targetOf(request: KvRequest): string | null {
  if (request.op === "get") return sessionOf(request.key);
  if (request.op === "list") {
    const id = /^s\/([A-Za-z0-9_-]{1,128})\//.exec(request.start)?.[1];
    // Within one session's keys, else the index has what a listing over sessions needs.
    return id !== undefined && request.end <= `s/${id}0` ? id : null;
  }
  const { checks, puts, deletes } = request.batch;
  const ids = new Set<string | null>([...checks.map(({ key }) => key), ...puts.map(([key]) => key), ...deletes].map(sessionOf));
  // The record of the format goes with a session's first batch; it stands in every object.
  if (ids.size > 1 && puts.every(([key]) => sessionOf(key) !== null || key === "m/format")) ids.delete(null);
  if (ids.size > 1) throw new Refusal(400, "invalid_argument", "a batch concerns one session: sessions live in objects of their own");
  return [...ids][0] ?? null;
}

const WITHIN = /^(?:s\/|r\/|m\/|u\/|f\/|b\/|j\/)/;

/** Refuses keys that are not this session's. */
export function checkOwn(request: KvRequest, id: string): void {
  const isOwn = (key: string): boolean => {
    if (!WITHIN.test(key)) return false;
    return !/^[sr]\//.test(key) || sessionOf(key) === id;
  };
  const keys = request.op === "get" ? [request.key] : request.op === "list" ? [] : [...request.batch.checks.map(({ key }) => key), ...request.batch.puts.map(([key]) => key), ...request.batch.deletes];
  if (!keys.every(isOwn)) throw new Refusal(400, "invalid_argument", "a key belongs to another session");
}
