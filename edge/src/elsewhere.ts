// What a session's store reads and writes beyond its own object. Media of all sessions of a caller lie in the caller's index, by
// content: stored once, whoever attaches them and wherever they are read. The first events of a fork lie in the object of the
// session that it was forked from. Which sessions there are, and who uses which media, is known to the index.
import type { KeyValueBackend } from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { addressOf } from "./address.js";
import type { IndexAnswer } from "./index-object.js";
import { isMedia, PARTS, partsOf, sessionOf, targetOf } from "./keys.js";
import type { Batch, KvRequest } from "./kv.js";
import { Refusal } from "./refusal.js";

type Listed = Array<[string, Uint8Array]>;
/** Where a key lies: in this object, in the caller's index, or in the object of another session. */
type Place = "own" | "index" | { id: string };

export interface Elsewhere {
  /** The session of this object: its id is known with the first request. */
  ownId: () => string;
  index: (request: KvRequest) => Promise<IndexAnswer>;
  session: (id: string) => KeyValueBackend;
}

/** The store of another session's object, over the interface that clients use. */
export function storeAt(stub: DurableObjectStub, owner: string, id: string): KeyValueBackend {
  const url = "https://door";
  const call = (asked: RequestInfo | URL, init?: RequestInit): Promise<Response> => stub.fetch(addressOf({ owner, canWrite: true, id, rest: String(asked).slice(`${url}/v1/sessions/${id}`.length) }), init);
  // The token is for the door; objects are told who asks.
  return new RemoteStore({ url, token: "none", fetch: call as typeof fetch }).backendOf(id);
}

const requestKey = (): string => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

const NONE: ReadonlyMap<string, Uint8Array> = new Map();

/** `own` for what lies in this object, which is all but what is said above. */
export function withElsewhere(own: KeyValueBackend, { ownId, index, session }: Elsewhere): KeyValueBackend {
  /** Headers that came with the last listing over all sessions: who goes through them asks for each. Gone with the next write. */
  let headers: ReadonlyMap<string, Uint8Array> = NONE;
  const ask = async (request: KvRequest): Promise<IndexAnswer> => {
    const answer = await index(request);
    // The package knows errors of backends by their codes.
    if (answer.error !== undefined) throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
    return answer;
  };
  const placeOf = (key: string): Place => {
    if (isMedia(key)) return "index";
    const id = sessionOf(key);
    return id === null || id === ownId() ? "own" : { id };
  };
  const listAt = async (place: Place, { start, end, limit, reverse, keysOnly }: Extract<KvRequest, { op: "list" }>): Promise<Listed> => {
    if (place === "index") return (await ask({ op: "list", start, end, limit, reverse, keysOnly })).entries ?? [];
    return (place === "own" ? own : session(place.id)).list(start, end, { ...(limit === null ? {} : { limit }), reverse, keysOnly });
  };
  const listAll = async (request: Extract<KvRequest, { op: "list" }>): Promise<Listed> => {
    const found = await listAt("index", { ...request, keysOnly: false });
    headers = new Map(found);
    return request.keysOnly ? found.map(([key]) => [key, new Uint8Array()]) : found;
  };
  const send = async (place: Place, batch: Batch): Promise<void> => {
    if (place === "index") await ask({ op: "transact", request: requestKey(), batch });
    else await (place === "own" ? own : session(place.id)).transact(batch);
  };
  return {
    ...own,
    get: (key) => {
      const place = placeOf(key);
      if (place === "own") return own.get(key);
      if (place === "index") return ask({ op: "get", key }).then(({ value }) => value ?? null);
      return headers.get(key) ?? session(place.id).get(key);
    },
    list: (start, end, { limit, reverse = false, keysOnly = false } = {}) => {
      const request = { op: "list", start, end, limit: limit ?? null, reverse, keysOnly } as const;
      if (isMedia(start)) return listAt("index", request);
      if (!start.startsWith("s/")) return own.list(start, end, { ...(limit === undefined ? {} : { limit }), reverse, keysOnly });
      const target = targetOf(request);
      if (target === null) return listAll(request);
      if (target !== PARTS) return listAt(placeOf(`s/${target}/h`), request);
      return partsOf(request).reduce<Promise<Listed>>(async (before, part) => {
        const found = await before;
        const left = request.limit === null ? null : request.limit - found.length;
        if (part.op !== "list" || left === 0) return found;
        return [...found, ...(await listAt(isMedia(part.start) ? "index" : placeOf(`s/${String(targetOf(part))}/h`), { ...part, limit: left }))];
      }, Promise.resolve([]));
    },
    transact: (given) => {
      headers = NONE;
      // Nearly every batch, and all of an append: no need to take its keys apart.
      if (given.deletes === undefined || given.deletes.length === 0) {
        const [log, media] = [`s/${ownId()}/`, `s/${ownId()}/b/`];
        const isOfLog = (key: string): boolean => key.startsWith(log) && !key.startsWith(media);
        if (given.checks?.every(({ key }) => isOfLog(key)) !== false && given.puts?.every(([key]) => isOfLog(key)) !== false) return own.transact(given);
      }
      const batch: Batch = { checks: given.checks ?? [], puts: given.puts ?? [], deletes: given.deletes ?? [] };
      const places = new Map<string, Place>();
      // The record of the format stands in every object.
      for (const key of [...batch.checks.map((check) => check.key), ...batch.puts.map(([name]) => name), ...batch.deletes]) {
        const place = placeOf(key);
        if (key !== "m/format") places.set(typeof place === "string" ? place : `s/${place.id}`, place);
      }
      const [first = "own"] = places.values();
      // As it was given: a backend may know more of it than what stands here.
      if (places.size <= 1) return first === "own" ? own.transact(given) : send(first, batch);
      if (batch.checks.length > 0 || batch.puts.length > 0) throw new Refusal(400, "invalid_argument", "a batch concerns one session: sessions live in objects of their own");
      return [...places.values()].reduce<Promise<void>>(async (before, place) => {
        await before;
        const isHere = (key: string): boolean => JSON.stringify(placeOf(key)) === JSON.stringify(place);
        await send(place, { ...batch, deletes: batch.deletes.filter(isHere) });
      }, Promise.resolve());
    },
  };
}
