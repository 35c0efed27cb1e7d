// Bodies up to the limit, and their members.
import type { JsonValue } from "sessionlog";
import { Refusal } from "./refusal.js";

export type Json = { [member: string]: JsonValue };

function tooLarge(limit: number): Refusal {
  return new Refusal(413, "quota", `a request has at most ${limit} bytes`);
}

/** The whole body; a longer one is refused while it comes, whatever it says of its length. */
export async function readBody(request: Request, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const told = Number(request.headers.get("content-length") ?? Number.NaN);
  if (told > limit) throw tooLarge(limit);
  // The runtime reads no more than a request says it has.
  if (told >= 0) return new Uint8Array(await request.arrayBuffer());
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of request.body ?? []) {
    size += part.length;
    if (size > limit) throw tooLarge(limit);
    parts.push(part);
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

export function parseJson(bytes: Uint8Array): Json {
  if (bytes.length === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    throw new Refusal(400, "invalid_argument", "the body is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Refusal(400, "invalid_argument", "the body must be a JSON object");
  return value as Json;
}

const wrong = (name: string, what: string): Refusal => new Refusal(400, "invalid_argument", `${name} must be ${what}`);

export function textOf(json: Json, name: string): string {
  const value = json[name];
  if (typeof value !== "string") throw wrong(name, "text");
  return value;
}

export function optionalText(json: Json, name: string): string | undefined {
  return json[name] === undefined ? undefined : textOf(json, name);
}

export function optionalNumber(json: Json, name: string): number | undefined {
  const value = json[name];
  if (value !== undefined && typeof value !== "number") throw wrong(name, "a number");
  return value;
}

export function eventsOf(json: Json, limit: number): Array<{ type: string; data: JsonValue }> {
  const { events } = json;
  if (!Array.isArray(events) || events.length === 0) throw wrong("events", "a list of {type, data}, not empty");
  if (events.length > limit) throw new Refusal(413, "quota", `a call has at most ${limit} events`);
  return events.map((event) => {
    const { type, data } = (typeof event === "object" && event !== null && !Array.isArray(event) ? event : {}) as Json;
    if (typeof type !== "string" || data === undefined) throw wrong("each of events", "{type, data}");
    return { type, data };
  });
}

/** A part of a path, as it was before it was escaped. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong("the path", "escaped as UTF-8");
  }
}

/** A number from the query, within bounds. */
export function numberFrom(query: URLSearchParams, name: string, otherwise: number, max = Number.MAX_SAFE_INTEGER): number {
  const given = query.get(name);
  if (given === null) return otherwise;
  const value = Number(given);
  if (!Number.isInteger(value) || value < 0) throw wrong(name, "a whole number");
  return Math.min(value, max);
}
