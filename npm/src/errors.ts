// The one error class of the public surface, and the way errors of the module become it.
import type { ErrorCode, JsonValue } from "../types/index.js";

export class SessionLogError extends Error {
  readonly code: ErrorCode;
  readonly details: { [key: string]: JsonValue };
  constructor(code: ErrorCode, message: string, details: { [key: string]: JsonValue } = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "SessionLogError";
    this.code = code;
    this.details = details;
  }
}

/** Any thrown thing as a SessionLogError; what has no code of ours becomes `fallback`. */
export function toError(thrown: unknown, fallback: ErrorCode = "storage"): SessionLogError {
  if (thrown instanceof SessionLogError) return thrown;
  const { code, details, message } = (thrown ?? {}) as { code?: unknown; details?: unknown; message?: unknown };
  const text = typeof message === "string" ? message : String(thrown);
  if (typeof code === "string" && typeof details === "string") {
    return new SessionLogError(code as ErrorCode, text, JSON.parse(details) as { [key: string]: JsonValue });
  }
  return new SessionLogError(fallback, text, {}, thrown);
}
