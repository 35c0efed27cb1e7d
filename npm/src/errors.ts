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

/** Codes that a backend of the caller's own may give its errors. */
const BACKEND_CODES: ReadonlySet<unknown> = new Set<ErrorCode>([
  "conflict", "quota", "locked", "blocked", "timeout", "unavailable", "newer_format", "corrupt", "disposed", "storage", "invalid_argument",
]);

/** Any thrown thing as a SessionLogError; what has no code of ours becomes `fallback`. */
export function toError(thrown: unknown, fallback: ErrorCode = "storage"): SessionLogError {
  if (thrown instanceof SessionLogError) return thrown;
  const { code, details, message } = (thrown ?? {}) as { code?: unknown; details?: unknown; message?: unknown };
  const text = typeof message === "string" ? message : String(thrown);
  if (typeof code === "string" && typeof details === "string") {
    return new SessionLogError(code as ErrorCode, text, JSON.parse(details) as { [key: string]: JsonValue });
  }
  const { name } = (thrown ?? {}) as { name?: unknown };
  if (name === "QuotaExceededError" || name === "NS_ERROR_DOM_QUOTA_REACHED") return new SessionLogError("quota", text, {}, thrown);
  return new SessionLogError(BACKEND_CODES.has(code) ? (code as ErrorCode) : fallback, text, {}, thrown);
}
