// Every refusal has a status, a code of the package and a message that a person can act on.
import { SessionLogError, type ErrorCode, type JsonValue } from "sessionlog";

export class Refusal extends Error {
  constructor(readonly status: number, readonly code: ErrorCode, message: string, readonly headers: { [name: string]: string } = {}) {
    super(message);
  }
}

export const readsOnly = (): Refusal => new Refusal(403, "forbidden", "this token may read only");

const STATUS: { readonly [code in ErrorCode]?: number } = {
  missing: 404, not_found: 404, already_exists: 409, conflict: 409, busy: 409, open_turn: 409, undo_conflict: 409, locked: 423,
  quota: 507, unavailable: 503, poisoned: 503, timeout: 503, storage: 500, corrupt: 500, disposed: 503, blocked: 403,
  newer_format: 500, budget_reached: 402,
};

/** What was thrown, as an answer; what is not ours says nothing of the inside. */
export function refusalOf(thrown: unknown): { status: number; code: string; message: string; details?: { [key: string]: JsonValue }; headers: { [name: string]: string } } {
  if (thrown instanceof Refusal) return { status: thrown.status, code: thrown.code, message: thrown.message, headers: thrown.headers };
  if (thrown instanceof SessionLogError) {
    return { status: STATUS[thrown.code] ?? 400, code: thrown.code, message: thrown.message, details: thrown.details, headers: {} };
  }
  console.error(thrown);
  return { status: 500, code: "storage", message: "the host had an internal fault", headers: {} };
}

export function answerOf(thrown: unknown): Response {
  const { status, headers, ...error } = refusalOf(thrown);
  return Response.json({ error }, { status, headers });
}
