// Who calls. Tokens are kept as SHA-256: what leaks from the configuration opens nothing.
import { readsOnly, Refusal } from "./refusal.js";

export interface Caller { readonly name: string; readonly canWrite: boolean }
interface Known { readonly caller: Caller; readonly hash: Uint8Array }

const NAME = /^[A-Za-z0-9_.@-]{1,64}$/;
const HASH = /^[0-9a-f]{64}$/i;
const BEARER = "bearer.";
export const PROTOCOL = "sessionlog.v1";

let parsed: { text: string; known: readonly Known[] } | null = null;

const bytesOfHex = (hex: string): Uint8Array => Uint8Array.from({ length: 32 }, (_, at) => Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16));

function parse(text: string): Known[] {
  const known: Known[] = [];
  for (const [name, value] of Object.entries(JSON.parse(text) as { [name: string]: { tokens?: unknown; readTokens?: unknown; access?: unknown } })) {
    const { readTokens = [], access } = value;
    // Who only reads needs no others.
    const tokens = value.tokens ?? (value.readTokens === undefined ? undefined : []);
    if (!NAME.test(name) || !Array.isArray(tokens) || !Array.isArray(readTokens) || (access !== undefined && access !== "read" && access !== "write")) throw new Error(`caller ${name}`);
    // Those that may only read come last: a token that stands in both lists may only read.
    for (const [hashes, canWrite] of [[tokens as unknown[], access !== "read"], [readTokens as unknown[], false]] as const) {
      for (const hash of hashes) {
        if (typeof hash !== "string" || !HASH.test(hash)) throw new Error(`tokens of ${name}`);
        known.push({ caller: { name, canWrite }, hash: bytesOfHex(hash) });
      }
    }
  }
  return known;
}

function callers(text: string | undefined): readonly Known[] {
  if (text === undefined || text === "") throw new Refusal(503, "unavailable", "the host has no callers yet: set the secret CALLERS");
  if (parsed?.text !== text) {
    try {
      parsed = { text, known: parse(text) };
      recent.clear();
    } catch {
      throw new Refusal(503, "unavailable", "the secret CALLERS cannot be read");
    }
  }
  return parsed.known;
}

/** The same time for every token: all bytes are looked at, whatever they are. */
function equal(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let at = 0; at < a.length; at++) difference |= (a[at] ?? 0) ^ (b[at] ?? 0);
  return difference === 0;
}

/** A page's WebSocket cannot send headers: the token comes as a protocol. */
function tokenOf(request: Request): string | null {
  const header = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  if (header !== undefined) return header;
  const protocols = (request.headers.get("sec-websocket-protocol") ?? "").split(",").map((name) => name.trim());
  const given = protocols.find((name) => name.startsWith(BEARER))?.slice(BEARER.length);
  if (given === undefined) return null;
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(given.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0)));
  } catch {
    return null;
  }
}

const unauthorized = (message: string): Refusal => new Refusal(401, "unauthorized", message, { "www-authenticate": 'Bearer realm="sessionlog"' });

/** Callers whose token was looked up a while ago; to hash it costs as much as to store an event. */
const recent = new Map<string, Caller>();
const RECENT = 100;

async function lookUp(token: string, known: readonly Known[]): Promise<Caller | null> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)));
  let found: Caller | null = null;
  // No early end: the time says nothing about which token it was.
  for (const { caller, hash: own } of known) if (equal(hash, own)) found = caller;
  // Not when the callers were changed meanwhile.
  if (found !== null && parsed?.known === known) {
    if (recent.size >= RECENT) recent.clear();
    recent.set(token, found);
  }
  return found;
}

/** The caller of a request: 401 without a valid token, 403 when the token may not do what is asked. */
export async function callerOf(request: Request, text: string | undefined, writes: boolean): Promise<Caller> {
  const known = callers(text);
  const token = tokenOf(request);
  if (token === null) throw unauthorized("a token is needed: Authorization: Bearer TOKEN");
  const found = recent.get(token) ?? (await lookUp(token, known));
  if (found === null) throw unauthorized("the token is not valid");
  if (writes && !found.canWrite) throw readsOnly();
  return found;
}
