// What a deployment sets: bindings, secrets, and limits that have sensible defaults.

export interface Env {
  readonly SESSIONS: DurableObjectNamespace;
  readonly INDEXES: DurableObjectNamespace;
  /** JSON: `{"alice":{"tokens":["<SHA-256 of the token, hex>"],"readTokens":[]}}`; see auth.ts. */
  readonly CALLERS?: string;
  /** Origins that pages may call from, separated by commas; `*` is any. */
  readonly ORIGINS?: string;
  /** Models that tasks may name, separated by commas; `*` at the end stands for anything. */
  readonly MODELS?: string;
  readonly ANTHROPIC_API_KEY?: string;
  readonly OPENAI_API_KEY?: string;
  readonly GEMINI_API_KEY?: string;
  /** Where the providers answer, when it is not their usual address. */
  readonly ANTHROPIC_BASE_URL?: string;
  readonly OPENAI_BASE_URL?: string;
  readonly GEMINI_BASE_URL?: string;
  readonly MAX_BODY_BYTES?: string;
  readonly MAX_EVENTS_PER_CALL?: string;
  readonly MAX_EVENTS_PER_SESSION?: string;
  readonly MAX_BYTES_PER_SESSION?: string;
  readonly MAX_SESSIONS_PER_CALLER?: string;
  readonly MAX_SOCKETS_PER_SESSION?: string;
  readonly CALLS_PER_SECOND?: string;
}

export interface Limits {
  readonly bodyBytes: number;
  readonly eventsPerCall: number;
  readonly eventsPerSession: number;
  readonly bytesPerSession: number;
  readonly sessionsPerCaller: number;
  readonly socketsPerSession: number;
  readonly callsPerSecond: number;
}

const MIB = 1024 * 1024;

function number(given: string | undefined, otherwise: number): number {
  const value = Number(given);
  return given === undefined || given === "" || !Number.isFinite(value) || value <= 0 ? otherwise : value;
}

export function limitsOf(env: Env): Limits {
  return {
    bodyBytes: number(env.MAX_BODY_BYTES, 4 * MIB),
    eventsPerCall: number(env.MAX_EVENTS_PER_CALL, 1_000),
    eventsPerSession: number(env.MAX_EVENTS_PER_SESSION, 1_000_000),
    bytesPerSession: number(env.MAX_BYTES_PER_SESSION, 1024 * MIB),
    sessionsPerCaller: number(env.MAX_SESSIONS_PER_CALLER, 10_000),
    socketsPerSession: number(env.MAX_SOCKETS_PER_SESSION, 100),
    callsPerSecond: number(env.CALLS_PER_SECOND, 200),
  };
}
