// The store of one object over HTTP, for clients that keep their sessions here as they would in a browser.
import type { JsonValue, KeyValueBackend } from "sessionlog";
import { decodeFrame, encodeFrame } from "sessionlog/remote";
import { Refusal } from "./refusal.js";

export type Batch = Required<Parameters<KeyValueBackend["transact"]>[0]>;

export type KvRequest =
  | { op: "get"; key: string }
  | { op: "list"; start: string; end: string; limit: number | null; reverse: boolean; keysOnly: boolean }
  | { op: "transact"; request: string; batch: Batch };

/** One answer carries at most so much, and a little. */
const ANSWER_BYTES = 4 * 1024 * 1024;
const PAGE = 256;
const KEY_LENGTH = 1_024;

const bad = (message: string): Refusal => new Refusal(400, "invalid_argument", message);

function keyText(value: JsonValue | undefined): string {
  if (typeof value !== "string" || value.length > KEY_LENGTH) throw bad("a key is text of at most 1,024 characters");
  return value;
}

function keyList(value: JsonValue | undefined): string[] {
  if (!Array.isArray(value)) throw bad("keys come as a list");
  return value.map(keyText);
}

export function readRequest(bytes: Uint8Array): KvRequest {
  const { head, values } = decodeFrame(bytes);
  switch (head["op"]) {
    case "get": return { op: "get", key: keyText(head["key"]) };
    case "list": {
      const { limit = null } = head;
      if (limit !== null && (typeof limit !== "number" || limit < 0)) throw bad("limit is a number");
      return { op: "list", start: keyText(head["start"]), end: keyText(head["end"]), limit, reverse: head["reverse"] === true, keysOnly: head["keysOnly"] === true };
    }
    case "transact": {
      const rest = [...values];
      const next = (): Uint8Array => {
        const value = rest.shift();
        if (value === undefined) throw bad("values are missing");
        return value;
      };
      if (!Array.isArray(head["checks"])) throw bad("checks come as a list");
      const checks = head["checks"].map((check) => {
        const { key, absent } = (check ?? {}) as { [member: string]: JsonValue };
        return { key: keyText(key), equals: absent === true ? null : next() };
      });
      const puts = keyList(head["puts"]).map((key): [string, Uint8Array] => [key, next()]);
      const request = head["request"];
      if (typeof request !== "string" || !/^[0-9a-f]{32}$/.test(request)) throw bad("a batch has a request key of 32 hexadecimal digits");
      return { op: "transact", request, batch: { checks, puts, deletes: keyList(head["deletes"]) } };
    }
    default: throw bad("op is get, list or transact");
  }
}

const framed = (head: { [member: string]: JsonValue }, values: Uint8Array[] = []): Response =>
  new Response(encodeFrame(head, values), { headers: { "content-type": "application/octet-stream" } });

/** A request as it travels, for the next object. */
export function writeRequest(request: KvRequest): Uint8Array<ArrayBuffer> {
  if (request.op !== "transact") return encodeFrame({ ...request });
  const { checks, puts, deletes } = request.batch;
  const head = { op: "transact", request: request.request, puts: puts.map(([key]) => key), deletes, checks: checks.map(({ key, equals }) => ({ key, absent: equals === null })) };
  return encodeFrame(head, [...checks.flatMap(({ equals }) => (equals === null ? [] : [equals])), ...puts.map(([, value]) => value)]);
}

/** Answers to the parts of a listing, as one; what follows a part that was cut is left for the next request. */
export async function joinLists(request: Extract<KvRequest, { op: "list" }>, ask: (part: Extract<KvRequest, { op: "list" }>) => Promise<Response>, parts: Array<Extract<KvRequest, { op: "list" }>>): Promise<Response> {
  const keys: string[] = [];
  const all: Uint8Array[] = [];
  for (const part of parts) {
    const limit = request.limit === null ? null : request.limit - keys.length;
    if (limit === 0) break;
    const answer = await ask({ ...part, limit });
    if (!answer.ok) return answer;
    const { head, values } = decodeFrame(new Uint8Array(await answer.arrayBuffer()));
    keys.push(...(head["keys"] as string[]));
    all.push(...values);
    if (head["more"] === true) return framed({ keys, more: true }, all);
  }
  return framed({ keys, more: false }, all);
}

/** Answers a reading request from a backend that answers at once, and says how many bytes a request may have: clients cut batches by it. */
export function answerRead(request: Exclude<KvRequest, { op: "transact" }>, backend: KeyValueBackend, takes: number): Response {
  if (request.op === "get") {
    const found = backend.get(request.key) as Uint8Array | null;
    return framed({ found: found !== null, takes }, found === null ? [] : [found]);
  }
  const { reverse, keysOnly } = request;
  const wanted = request.limit ?? Infinity;
  let { start, end } = request;
  const keys: string[] = [];
  const values: Uint8Array[] = [];
  for (let size = 0; ; ) {
    const limit = Math.min(PAGE, wanted - keys.length);
    const page = limit <= 0 ? [] : (backend.list(start, end, { limit, reverse, keysOnly }) as Array<[string, Uint8Array]>);
    for (const [key, value] of page) {
      keys.push(key);
      if (!keysOnly) values.push(value);
      size += key.length + value.length;
      if (size > ANSWER_BYTES && keys.length < wanted) return framed({ keys, more: true, takes }, values);
    }
    const last = page[page.length - 1]?.[0];
    if (page.length < PAGE || last === undefined) return framed({ keys, more: false, takes }, values);
    if (reverse) end = last;
    else start = `${last}\0`;
  }
}

export const written = (): Response => framed({});
