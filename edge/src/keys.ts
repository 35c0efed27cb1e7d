// Which object holds a key: what begins with a session's id lies in that session's object, all else in the caller's index. Media
// are content that several sessions may share: they lie in the index, and so does what says which session uses them.
import { Refusal } from "./refusal.js";
import type { KvRequest } from "./kv.js";

const OF_SESSION = /^(?:s\/([A-Za-z0-9_-]{1,128})\/|r\/([A-Za-z0-9_-]{1,128})$)/;

/** Media, and a session's use of them. */
export const isMedia = (key: string): boolean => /^(?:b\/|s\/[A-Za-z0-9_-]{1,128}\/b\/)/.test(key);

/** The session whose object holds a key; null for the index. */
export function sessionOf(key: string): string | null {
  if (isMedia(key)) return null;
  const found = OF_SESSION.exec(key);
  return found === null ? null : ((found[1] ?? found[2]) as string);
}

export const PARTS = Symbol("parts");

/** The session whose object answers a request; null for the index; `PARTS` when it must be taken apart. */
export function targetOf(request: KvRequest): string | null | typeof PARTS {
  if (request.op === "get") return sessionOf(request.key);
  if (request.op === "list") {
    if (isMedia(request.start)) return null;
    const id = /^s\/([A-Za-z0-9_-]{1,128})\//.exec(request.start)?.[1];
    // Within one session's keys, else the index has what a listing over sessions needs.
    if (id === undefined || request.end > `s/${id}0`) return null;
    return request.start < `s/${id}/b0` && request.end > `s/${id}/b/` ? PARTS : id;
  }
  const { checks, puts, deletes } = request.batch;
  // The record of the format goes with a session's first batch; it stands in every object.
  const keys = [...checks.map(({ key }) => key), ...puts.map(([key]) => key), ...deletes];
  const told = keys.filter((key) => key !== "m/format");
  const ids = new Set<string | null>((told.length > 0 ? told : keys).map(sessionOf));
  if (ids.size > 1 && checks.length === 0 && puts.length === 0) return PARTS;
  if (ids.size > 1) throw new Refusal(400, "invalid_argument", "a batch concerns one session: sessions live in objects of their own");
  return [...ids][0] ?? null;
}

/** A listing over all of a session's keys, in its two parts, in the order of the answer; or the deletes of each object. */
export function partsOf(request: KvRequest): KvRequest[] {
  if (request.op === "list") {
    const id = /^s\/([A-Za-z0-9_-]{1,128})\//.exec(request.start)?.[1] ?? "";
    const [from, to] = [`s/${id}/b/`, `s/${id}/b0`];
    const media = { ...request, start: request.start < from ? from : request.start, end: request.end < to ? request.end : to };
    // No key of a session stands before its media.
    const rest = { ...request, start: to };
    return request.reverse ? [rest, media] : [media, rest];
  }
  if (request.op === "get") return [request];
  const byTarget = new Map<string | null, string[]>();
  for (const key of request.batch.deletes) byTarget.set(sessionOf(key), [...(byTarget.get(sessionOf(key)) ?? []), key]);
  return [...byTarget.values()].map((deletes) => ({ ...request, batch: { checks: [], puts: [], deletes } }));
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
