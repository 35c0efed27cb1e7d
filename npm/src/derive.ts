// Keeps what derivation gave, so that one more event costs one more message: arrays are fresh, messages frozen and shared.
import type { DerivedRequest, JsonValue, Message, Repair, RequestOptions, Target } from "../types/index.js";
import { SessionLogError } from "./errors.js";
import type { RawSession } from "./glue.js";
import type { Log } from "./log.js";
import { call } from "./runtime.js";

/** Freezes a value of plain data and all it holds. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  // Loops over keys: `Object.values` makes this five times as slow, and a long log has many messages.
  if (Array.isArray(value)) for (const item of value) deepFreeze(item as unknown);
  else for (const key in value) deepFreeze(value[key]);
  return Object.freeze(value);
}

/** So many messages come out of the module at a time: short texts are decoded and parsed twice as fast as one of megabytes. */
const AT_ONCE = 64;

/** Reads the messages that these events make. */
export function readMessages(raw: RawSession, seqs: Float64Array): Message[] {
  const messages: Message[] = [];
  for (let from = 0; from < seqs.length; from += AT_ONCE) {
    const part = seqs.subarray(from, from + AT_ONCE);
    for (const message of JSON.parse(call(() => raw.messages_of(part))) as Message[]) messages.push(deepFreeze(message));
  }
  return messages;
}

/** The messages of one session. */
export class DerivedMessages {
  #messages: Message[] = [];
  #snapshot: readonly Message[] | null = null;
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  #refresh(): void {
    const update = call(() => this.#log.raw.derive_update());
    if (update === undefined) return;
    const messages = readMessages(this.#log.raw, update.subarray(1));
    this.#messages.length = update[0] as number;
    if (this.#messages.length === 0) this.#messages = messages;
    else for (const message of messages) this.#messages.push(message);
    this.#snapshot = null;
  }

  /** The same frozen array until something changes: what `useSyncExternalStore` compares. */
  snapshot(): readonly Message[] {
    this.#refresh();
    // Freezing costs more than copying, so it is done for those who ask for it only.
    this.#snapshot ??= Object.freeze(this.#messages.slice());
    return this.#snapshot;
  }

  /** A fresh array of the same messages. */
  list(): Message[] {
    this.#refresh();
    return this.#messages.slice();
  }
}

/** What the module says of a request: see `RequestUpdate` in the core. */
interface RequestText {
  cache: number;
  target: Target;
  keep: number;
  messages: JsonValue[];
  keepRepairs: number;
  repairs: Repair[];
  system?: JsonValue;
  digest: string;
}

/** How many requests the module remembers. */
const REMEMBERED = 4;
/** How many requests given out are known again by their digest, once they were copied. */
const KNOWN_DIGESTS = 64;

/**
 * The requests of one session. What was derived before is kept parsed, so that one more event costs one more message;
 * what is given out is a copy that the caller may change.
 */
export class DerivedRequests {
  readonly #derive: (options: string) => string;
  readonly #check: (outbound: string, options: string | undefined) => void;
  readonly #kept = new Map<number, { messages: JsonValue[]; repairs: Repair[] }>();
  readonly #given = new WeakMap<object, RequestOptions>();
  readonly #digests = new Map<string, RequestOptions>();

  constructor(derive: (options: string) => string, check: (outbound: string, options: string | undefined) => void) {
    this.#derive = derive;
    this.#check = check;
  }

  derive(options: RequestOptions): DerivedRequest {
    const { messages, repairs, update } = this.#current(options);
    const request: DerivedRequest = {
      target: update.target,
      ...(update.system === undefined ? {} : { system: update.system }),
      messages: messages.map(copy),
      repairs: repairs.map((repair) => ({ ...repair })),
      digest: update.digest,
    };
    const known = { ...options };
    this.#given.set(request, known);
    this.#digests.delete(request.digest);
    this.#digests.set(request.digest, known);
    for (const oldest of this.#digests.keys()) {
      if (this.#digests.size <= KNOWN_DIGESTS) break;
      this.#digests.delete(oldest);
    }
    return request;
  }

  #current(options: RequestOptions): { messages: JsonValue[]; repairs: Repair[]; update: RequestText } {
    const update = JSON.parse(this.#derive(textOf(options, "options"))) as RequestText;
    const before = this.#kept.get(update.cache);
    const messages = (before?.messages ?? []).slice(0, update.keep).concat(update.messages);
    const repairs = (before?.repairs ?? []).slice(0, update.keepRepairs).concat(update.repairs);
    if (update.cache !== 0) {
      this.#kept.delete(update.cache);
      this.#kept.set(update.cache, { messages, repairs });
      for (const oldest of this.#kept.keys()) {
        if (this.#kept.size <= REMEMBERED) break;
        this.#kept.delete(oldest);
      }
    }
    return { messages, repairs, update };
  }

  /** Throws `log_invariant` when this is not what the log yields for the same options. */
  assert(outbound: DerivedRequest): void {
    const options = this.#given.get(outbound) ?? this.#digests.get(outbound.digest) ?? optionsOf(outbound);
    const { messages, update } = this.#current(options);
    const same = outbound.digest === update.digest && outbound.target === update.target
      && isEqual(outbound.system, update.system) && isEqual(outbound.messages, messages);
    // The module says where the difference is.
    if (!same) this.#check(textOf(outbound, "outbound"), textOf(options, "options"));
  }

  /** Throws `log_invariant` when these are not the messages the log yields. */
  assertMessages(outbound: Message[], derived: readonly Message[]): void {
    if (!isEqual(outbound, derived)) this.#check(textOf(outbound, "outbound"), undefined);
  }
}

/** The options a request of unknown origin was most likely derived with. */
function optionsOf(request: DerivedRequest): RequestOptions {
  const system = systemOf(request.system) ?? systemOf(request.messages?.[0], "system");
  return { target: request.target, ...(system === undefined ? {} : { system }) };
}

/** The system text inside what a target makes of it. */
function systemOf(value: unknown, role?: string): string | undefined {
  if (typeof value === "string") return role === undefined ? value : undefined;
  const held = (value ?? {}) as { role?: unknown; content?: unknown; parts?: unknown };
  if (held.role !== role) return undefined;
  if (typeof held.content === "string") return held.content;
  const first: unknown = Array.isArray(held.content) ? held.content[0] : Array.isArray(held.parts) ? held.parts[0] : undefined;
  const text = (first as { text?: unknown } | undefined)?.text;
  return typeof text === "string" ? text : undefined;
}

/** JSON text of what a caller gave; what JSON cannot hold is refused under our own code. */
function textOf(value: unknown, what: string): string {
  try {
    const text = JSON.stringify(value) as string | undefined;
    if (text !== undefined) return text;
  } catch {
    // Cycles and BigInt: said below.
  }
  throw new SessionLogError("invalid_argument", `${what} must be plain data`, { path: what });
}

/** A deep copy of plain data; texts are shared, as they cannot change. */
function copy(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  const out: { [key: string]: JsonValue } = {};
  for (const key of Object.keys(value)) {
    const item = copy(value[key] as JsonValue);
    if (key === "__proto__") Object.defineProperty(out, key, { value: item, writable: true, enumerable: true, configurable: true });
    else out[key] = item;
  }
  return out;
}

/** Whether two values of plain data are the same; the order of members does not count. */
function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i]));
  }
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length
    && keys.every((key) => Object.hasOwn(b, key) && isEqual((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]));
}
