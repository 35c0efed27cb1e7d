// Requests to a host: who asks, what a refusal means, and when asking again is right.
import type { ErrorCode, JsonValue } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";

export type Json = { [member: string]: JsonValue };
type Fetch = typeof fetch;

export interface RemoteOptions {
  /** Where the host answers, for example `https://sessions.example.com`. */
  url: string | URL;
  /** The caller's token, or what gives it when it changes. */
  token: string | (() => string | Promise<string>);
  /**
   * How long a request is tried again while the host cannot be reached. Default 10,000. One try is given up when it has no answer after as
   * long, but not before 10 seconds, and later when it carries much.
   */
  retryMs?: number;
  fetch?: Fetch;
  WebSocket?: typeof WebSocket;
}

const RETRY_MS = 10_000;
/** A try that carries much may take longer: as long as a slow line takes for it. */
const BYTES_PER_MS = 32;
/** Of an answer that does not say how long it is. */
const ANSWER_BYTES = 4 * 1024 * 1024;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/** Statuses that say "not now", as opposed to "no". */
const PASSING: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);
/** Statuses that say "no" to whoever asks, whatever is asked of this path. */
const FINAL: ReadonlySet<number> = new Set([401, 403, 404]);

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** 128 random bits in hexadecimal: names a request, so that it is carried out once. */
export function requestKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Resolves as the promise does, or with null when that takes too long. */
export async function inTime<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(() => resolve(null), ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The code of a refusal that says nothing of its own. */
export function codeOf(status: number): ErrorCode {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return "missing";
  if (status === 409) return "conflict";
  if (status === 423) return "locked";
  if (status === 413 || status === 507) return "quota";
  return status >= 500 || status === 429 ? "unavailable" : "blocked";
}

/** How a request differs from others: it has a key in a header, or its answer may take as long as it takes. */
interface Manner { key?: string; waits?: boolean }
interface Answer { status: number; ok: boolean; bytes: Uint8Array<ArrayBuffer> }

export class Http {
  readonly base: string;
  /** How long an answer is waited for, what it carries apart. */
  readonly patienceMs: number;
  readonly #token: RemoteOptions["token"];
  readonly #fetch: Fetch;
  readonly #retryMs: number;

  constructor(options: RemoteOptions) {
    this.base = String(options.url).replace(/\/+$/, "");
    this.#token = options.token;
    // Called without a receiver: a browser's fetch refuses another one.
    const own = options.fetch;
    this.#fetch = own === undefined ? (input, init) => fetch(input, init) : (input, init) => own(input, init);
    this.#retryMs = options.retryMs ?? RETRY_MS;
    this.patienceMs = Math.max(this.#retryMs, RETRY_MS);
  }

  async token(): Promise<string> {
    if (typeof this.#token !== "function") return this.#token;
    try {
      return await this.#token();
    } catch (thrown) {
      const { message } = toError(thrown);
      throw thrown instanceof SessionLogError ? thrown : new SessionLogError("unavailable", `there is no token: ${message}`, {}, thrown);
    }
  }

  /** Sends a request until it is answered; only for what may be carried out twice, or has a key. */
  async send(method: string, path: string, body?: Json | Uint8Array<ArrayBuffer>, { key, waits = false }: Manner = {}): Promise<Uint8Array<ArrayBuffer>> {
    const headers: { [name: string]: string } = { authorization: `Bearer ${await this.token()}` };
    if (key !== undefined) headers["idempotency-key"] = key;
    if (body !== undefined) headers["content-type"] = body instanceof Uint8Array ? "application/octet-stream" : "application/json";
    const payload = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body);
    const end = Date.now() + this.#retryMs;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
      const answer = await this.#once(path, { method, headers, ...(payload === undefined ? {} : { body: payload }) }, waits);
      const isError = answer instanceof Error;
      if (!isError && answer.ok) return answer.bytes;
      if (!isError && !PASSING.has(answer.status)) throw refusal(answer);
      if (Date.now() + wait > end) {
        if (!isError) throw refusal(answer);
        throw new SessionLogError("unavailable", `the host cannot be reached: ${answer.message}`, {}, answer);
      }
      await pause(wait);
    }
  }

  /** One try: the answer and all of its body, or why there is none. */
  async #once(path: string, init: RequestInit & { body?: string | Uint8Array<ArrayBuffer> }, waits = false): Promise<Answer | Error> {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let giveUp: (error: Error) => void = () => {};
    // Not every fetch hears the signal: nobody waits for one that does not.
    const late = new Promise<Error>((resolve) => (giveUp = resolve));
    const watch = (bytes: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        giveUp(new Error("it gives no answer"));
        stop.abort();
      }, this.patienceMs + bytes / BYTES_PER_MS);
    };
    const ask = async (): Promise<Answer> => {
      const answer = await this.#fetch(`${this.base}${path}`, { ...init, signal: stop.signal });
      watch(Number(answer.headers.get("content-length") ?? ANSWER_BYTES));
      return { status: answer.status, ok: answer.ok, bytes: new Uint8Array(await answer.arrayBuffer()) };
    };
    if (!waits) watch(init.body?.length ?? 0);
    try {
      return await Promise.race([ask(), late]);
    } catch (thrown) {
      return thrown instanceof Error ? thrown : new Error(String(thrown));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Asks once why nothing of this path is answered: the host's refusal, or null when it has none that lasts. */
  async whyNot(path: string): Promise<SessionLogError | null> {
    const answer = await this.#once(path, { method: "GET", headers: { authorization: `Bearer ${await this.token()}` } });
    return answer instanceof Error || !FINAL.has(answer.status) ? null : refusal(answer);
  }

  async json<T = Json>(method: string, path: string, body?: Json, manner?: Manner): Promise<T> {
    const bytes = await this.send(method, path, body, manner);
    try {
      return jsonOf(bytes) as T;
    } catch (thrown) {
      throw toError(thrown, "unavailable");
    }
  }
}

const jsonOf = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));

function refusal(answer: Answer): SessionLogError {
  const fallback = `the host answered ${answer.status}`;
  try {
    const { error } = jsonOf(answer.bytes) as { error?: { code?: unknown; message?: unknown; details?: { [key: string]: JsonValue } } };
    const code = typeof error?.code === "string" ? (error.code as ErrorCode) : codeOf(answer.status);
    return new SessionLogError(code, typeof error?.message === "string" ? error.message : fallback, { ...error?.details, status: answer.status });
  } catch {
    return new SessionLogError(codeOf(answer.status), fallback, { status: answer.status });
  }
}
