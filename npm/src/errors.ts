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

/** What the module threw: its errors carry a code and, as JSON text, details. Errors of others may have members of these names too. */
export function ofModule(thrown: unknown): SessionLogError | null {
  try {
    const { code, details, message } = (thrown ?? {}) as { code?: unknown; details?: unknown; message?: unknown };
    if (typeof code !== "string" || !/^[a-z_]+$/.test(code) || typeof details !== "string" || !details.startsWith("{")) return null;
    return new SessionLogError(code as ErrorCode, String(message), JSON.parse(details) as { [key: string]: JsonValue });
  } catch {
    return null;
  }
}

/** Any thrown thing as a SessionLogError; what has no code of ours becomes `fallback`. */
export function toError(thrown: unknown, fallback: ErrorCode = "storage"): SessionLogError {
  try {
    if (thrown instanceof SessionLogError) return thrown;
    const ours = ofModule(thrown);
    if (ours !== null) return ours;
    const { code, name, message } = (thrown ?? {}) as { code?: unknown; name?: unknown; message?: unknown };
    const text = typeof message === "string" ? message : String(thrown);
    if (name === "QuotaExceededError" || name === "NS_ERROR_DOM_QUOTA_REACHED") return new SessionLogError("quota", text, {}, thrown);
    return new SessionLogError(BACKEND_CODES.has(code) ? (code as ErrorCode) : fallback, text, {}, thrown);
  } catch {
    // Somebody's code may throw what cannot so much as be looked at.
    return new SessionLogError(fallback, "something was thrown that cannot be read", {}, thrown);
  }
}
