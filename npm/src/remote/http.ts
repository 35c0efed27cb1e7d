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
  /** How long a request is tried again while the host cannot be reached. Default 10,000. */
  retryMs?: number;
  fetch?: Fetch;
  WebSocket?: typeof WebSocket;
}

const RETRY_MS = 10_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/** Statuses that say "not now", as opposed to "no". */
const PASSING: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** 128 random bits in hexadecimal: names a request, so that it is carried out once. */
export function requestKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function codeOf(status: number): ErrorCode {
  if (status === 404) return "missing";
  if (status === 409) return "conflict";
  if (status === 423) return "locked";
  if (status === 413 || status === 507) return "quota";
  return status >= 500 || status === 429 ? "unavailable" : "blocked";
}

export class Http {
  readonly base: string;
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
  }

  async token(): Promise<string> {
    return typeof this.#token === "function" ? this.#token() : this.#token;
  }

  /** Sends a request until it is answered; only for what may be carried out twice, or has a key. */
  async send(method: string, path: string, body?: Json | Uint8Array<ArrayBuffer>): Promise<Response> {
    const headers: { [name: string]: string } = { authorization: `Bearer ${await this.token()}` };
    if (body !== undefined) headers["content-type"] = body instanceof Uint8Array ? "application/octet-stream" : "application/json";
    const payload = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body);
    const end = Date.now() + this.#retryMs;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
      const answer = await this.#once(path, { method, headers, ...(payload === undefined ? {} : { body: payload }) });
      if (answer instanceof Response && !PASSING.has(answer.status)) {
        if (answer.ok) return answer;
        throw await refusal(answer);
      }
      if (Date.now() + wait > end) {
        if (answer instanceof Response) throw await refusal(answer);
        throw new SessionLogError("unavailable", `the host cannot be reached: ${answer.message}`, {}, answer);
      }
      await pause(wait);
    }
  }

  async #once(path: string, init: RequestInit): Promise<Response | Error> {
    try {
      return await this.#fetch(`${this.base}${path}`, init);
    } catch (thrown) {
      return thrown instanceof Error ? thrown : new Error(String(thrown));
    }
  }

  async json<T = Json>(method: string, path: string, body?: Json): Promise<T> {
    const answer = await this.send(method, path, body);
    try {
      return (await answer.json()) as T;
    } catch (thrown) {
      throw toError(thrown, "unavailable");
    }
  }
}

async function refusal(answer: Response): Promise<SessionLogError> {
  const fallback = `the host answered ${answer.status}`;
  try {
    const { error } = (await answer.json()) as { error?: { code?: unknown; message?: unknown; details?: { [key: string]: JsonValue } } };
    const code = typeof error?.code === "string" ? (error.code as ErrorCode) : codeOf(answer.status);
    return new SessionLogError(code, typeof error?.message === "string" ? error.message : fallback, { ...error?.details, status: answer.status });
  } catch {
    return new SessionLogError(codeOf(answer.status), fallback, { status: answer.status });
  }
}
