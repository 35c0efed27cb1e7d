// What goes wrong with a provider, in one set of words whoever the provider is.
import type { JsonValue } from "../../types/index.js";
import { SessionLogError } from "../errors.js";

/** Why a provider refused or failed; stands in `details.reason` and as the code of `error` events. */
export type ProviderReason =
  | "auth" | "permission" | "not_found" | "invalid_request" | "context_overflow" | "rate_limit" | "quota" | "overloaded"
  | "server_error" | "network" | "cut_off" | "bad_stream" | "content_filter" | "provider_error";

const REASONS: { [reason in ProviderReason]: string } = {
  auth: "the provider did not accept the key",
  permission: "the provider does not allow this",
  not_found: "the provider knows no such model or address",
  invalid_request: "the provider did not accept the request",
  context_overflow: "the request is too long for the model",
  rate_limit: "too many requests for the provider",
  quota: "the account's quota is used up",
  overloaded: "the provider is overloaded",
  server_error: "the provider had an internal error",
  network: "the provider could not be reached",
  cut_off: "the connection broke before the answer was complete",
  bad_stream: "the provider's answer could not be read",
  content_filter: "the provider's filter stopped the answer",
  provider_error: "the provider reported an error",
};

/** Makes the error of a provider; `said` is what the provider wrote, without keys. */
export function providerError(reason: ProviderReason, said = "", details: { [key: string]: JsonValue } = {}): SessionLogError {
  const message = said === "" ? REASONS[reason] : `${REASONS[reason]}: ${said}`;
  return new SessionLogError(reason === "invalid_request" ? "invalid_argument" : "unavailable", message, { reason, ...details });
}

export function reasonOf(error: SessionLogError): string {
  const { reason } = error.details;
  return typeof reason === "string" ? reason : error.code;
}

const OVERFLOW =
  /context[ _-]?(length|window|size)|maximum context|too many tokens|prompt is too long|input is too long|exceeds? the (maximum|max)[^.]*tokens|reduce the length|token count[^.]*exceeds|request_too_large|string_above_max_length/i;

/** The reason behind an HTTP status and what the body says. */
export function reasonFor(status: number, code: string, message: string): ProviderReason {
  const words = `${code} ${message}`;
  if (status === 413 || (status < 500 && OVERFLOW.test(words))) return "context_overflow";
  if (/insufficient_quota|billing|credit balance/i.test(words) && status < 500) return "quota";
  if (status === 401 || /invalid_api_key|API key not valid|API_KEY_INVALID/i.test(words)) return "auth";
  if (status === 403) return "permission";
  if (status === 404) return "not_found";
  if (status === 429) return "rate_limit";
  if (status === 529 || status === 503 || /overloaded/i.test(words)) return "overloaded";
  if (status >= 500 || status === 408 || status === 425) return "server_error";
  return "invalid_request";
}

/** The error inside a stream that began well: providers say it in an `error` member. */
export function streamError(error: unknown, secrets: readonly string[]): SessionLogError {
  const { code, type, status, message } = (typeof error === "object" && error !== null ? error : {}) as { [key: string]: unknown };
  const name = [code, type, status].filter((word) => typeof word === "string").join(" ");
  const said = clean(typeof message === "string" ? message : typeof error === "string" ? error : "", secrets);
  const number = [code, status].find((word) => typeof word === "number" && word >= 400);
  const found = reasonFor(typeof number === "number" ? number : statusOf(name), name, said);
  return providerError(found === "invalid_request" && !/invalid/i.test(name) ? "provider_error" : found, said);
}

function statusOf(name: string): number {
  if (/overloaded|UNAVAILABLE/.test(name)) return 529;
  if (/rate_limit|RESOURCE_EXHAUSTED/.test(name)) return 429;
  if (/authentication|UNAUTHENTICATED/.test(name)) return 401;
  if (/permission|PERMISSION_DENIED/.test(name)) return 403;
  if (/api_error|server_error|INTERNAL/.test(name)) return 500;
  return 400;
}

const MAX_SAID = 300;

/** What a provider said, short and without any of our secrets (some quote the key that they refuse). */
export function clean(text: string, secrets: readonly string[]): string {
  let out = text;
  for (const secret of secrets) if (secret !== "") out = out.split(secret).join("[REDACTED:key]");
  // Some quote only the ends of the key, with stars between them.
  out = out.replace(/\b[\w-]*\*{3,}[\w-]*/g, "[REDACTED:key]").replace(/\s+/g, " ").trim();
  const chars = Array.from(out);
  return chars.length <= MAX_SAID ? out : `${chars.slice(0, MAX_SAID).join("")}…`;
}
