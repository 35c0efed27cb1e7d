// Sending a request to a provider: attempts and pauses, errors, and the way from the body to events.
import type { JsonValue } from "../../types/index.js";
import { SessionLogError } from "../errors.js";
import { call } from "../runtime.js";
import { serverEvents, type ServerEvent } from "../sse.js";
import { clean, providerError, reasonFor } from "./failure.js";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface Http {
  url: string;
  headers: { [name: string]: string };
  body: unknown;
  /** Never in an error: keys. */
  secrets: readonly string[];
  signal: AbortSignal;
  fetch: Fetch;
}

/** Sends a request, again after a pause while that may help, and yields the events of the answer. */
export async function* postForEvents(http: Http): AsyncGenerator<ServerEvent> {
  const response = await send(http);
  if (response.body === null) throw providerError("bad_stream", "the answer has no body");
  try {
    yield* serverEvents(response.body);
  } catch (thrown) {
    if (http.signal.aborted || thrown instanceof SessionLogError) throw thrown;
    throw providerError("cut_off");
  }
}

async function send(http: Http): Promise<Response> {
  const body = JSON.stringify(http.body);
  for (let attempts = 1; ; attempts++) {
    const answer = await attempt(http, body);
    if (answer instanceof Response) return answer;
    const pause = call((module) =>
      module.raw_retry_pause_ms(attempts, answer.status, answer.retryAfterMs, Math.floor(Math.random() * 0xffffffff)),
    );
    if (pause === undefined) throw answer.error;
    await sleep(pause, http.signal);
  }
}

interface Refusal {
  error: SessionLogError;
  status: number | undefined;
  retryAfterMs: number | undefined;
}

async function attempt({ url, headers, secrets, signal, fetch }: Http, body: string): Promise<Response | Refusal> {
  let response: Response;
  try {
    response = await fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body, signal });
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    // A reason of fetch may quote the address, and an address may carry a key.
    return { error: providerError("network"), status: undefined, retryAfterMs: undefined };
  }
  if (response.ok) return response;
  const text = await response.text().catch(() => "");
  const { code, message } = errorIn(text);
  const reason = reasonFor(response.status, code, message);
  const retryAfterMs = retryAfter(response.headers);
  const details: { [key: string]: JsonValue } = { status: response.status };
  if (retryAfterMs !== undefined) details["retryAfterMs"] = retryAfterMs;
  // No pause brings a quota back.
  const status = reason === "quota" ? 402 : response.status;
  return { error: providerError(reason, clean(message, secrets), details), status, retryAfterMs };
}

/** Providers agree on `error`, and on little inside it. */
function errorIn(text: string): { code: string; message: string } {
  try {
    const parsed: unknown = JSON.parse(text);
    const whole = (Array.isArray(parsed) ? parsed[0] : parsed) as { error?: unknown; message?: unknown };
    const inner = (whole?.error ?? whole) as { code?: unknown; type?: unknown; status?: unknown; message?: unknown } | string;
    if (typeof inner === "string") return { code: "", message: inner };
    const words = [inner?.code, inner?.type, inner?.status].filter((word) => typeof word === "string");
    return { code: words.join(" "), message: typeof inner?.message === "string" ? inner.message : "" };
  } catch {
    return { code: "", message: "" };
  }
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function retryAfter(headers: Headers): number | undefined {
  const ms = Number(headers.get("retry-after-ms") ?? NaN);
  if (Number.isFinite(ms) && ms >= 0) return ms;
  const text = headers.get("retry-after");
  if (text === null || text.trim() === "") return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return seconds >= 0 ? seconds * 1000 : undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    if (signal.aborted) return reject(signal.reason as Error);
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** The payload of an event as JSON; what cannot be read is the provider's fault. */
export function parsePayload(data: string): { [key: string]: unknown } {
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value === "object" && value !== null) return value as { [key: string]: unknown };
  } catch {
    // Told below.
  }
  throw providerError("bad_stream");
}

// ---------------------------------------------------------------- options every HTTP adapter takes

export interface HttpOptions {
  apiKey: string | undefined;
  baseUrl: string;
  headers: { [name: string]: string };
  body: { [key: string]: unknown };
  fetch: Fetch;
}

/** Reads `apiKey`, `baseUrl`, `headers`, `body` (more members of the request) and `fetch`. */
export function httpOptions(options: { [key: string]: unknown }, defaultUrl: string | null): HttpOptions {
  const { apiKey, baseUrl, headers, body, fetch } = options;
  const url = typeof baseUrl === "string" && baseUrl !== "" ? baseUrl : defaultUrl;
  if (url === null) throw new SessionLogError("invalid_argument", "this provider needs options.baseUrl", { path: "baseUrl" });
  if (apiKey !== undefined && typeof apiKey !== "string") {
    throw new SessionLogError("invalid_argument", "options.apiKey must be text", { path: "apiKey" });
  }
  return {
    apiKey: apiKey === "" ? undefined : apiKey,
    baseUrl: url.replace(/\/+$/, ""),
    headers: { ...(headers as { [name: string]: string } | undefined) },
    body: { ...(body as { [key: string]: unknown } | undefined) },
    // Called as a plain function: browsers refuse fetch with another `this`.
    fetch: typeof fetch === "function" ? (fetch as Fetch) : (url, init) => globalThis.fetch(url, init),
  };
}

/** What must never be stored or shown: the key, and credentials in headers. */
export function secretsOf({ apiKey, headers }: HttpOptions): string[] {
  const secret = /^(authorization|proxy-authorization|cookie|.*(key|token|secret).*)$/i;
  const values = Object.entries(headers).filter(([name]) => secret.test(name)).map(([, value]) => value.replace(/^(Bearer|Basic) /i, ""));
  return [apiKey, ...values].filter((value): value is string => value !== undefined && value.length >= 8);
}
