// Scrubbers as callers give them: registration, streams, and the built-in rules on one text.
import type { JsonValue, Scrubber, ScrubMatch } from "../types/index.js";
import * as glue from "./glue.js";
import type { RawChain, RawScrubStream } from "./glue.js";
import { SessionLogError } from "./errors.js";
import { call, callersOwn, onStart } from "./runtime.js";
import type { TextFilter } from "./stream.js";
import { toText, toWellFormed } from "./values.js";

/** One number per registered object: removal is by identity. */
const identities = new WeakMap<object, number>();
let lastIdentity = 0;

function identityOf(scrubber: object): number {
  let identity = identities.get(scrubber);
  if (identity === undefined) identities.set(scrubber, (identity = ++lastIdentity));
  return identity;
}

function refused(why: string): SessionLogError {
  return new SessionLogError("scrubber_refused", `the scrubber cannot be registered: ${why}`);
}

const listText = (list: unknown): string => JSON.stringify(Array.isArray(list) ? list.map(String) : []);

function addTo(raw: RawChain, identity: number, scrubber: Scrubber): void {
  if (typeof scrubber === "function") return call(() => raw.add_function(identity, callersOwn(scrubber) as never, scrubber.name || "function"));
  if (typeof scrubber !== "object" || scrubber === null) throw refused("it is neither a function nor an object");
  if ("builtin" in scrubber) {
    const { builtin, types, except } = scrubber;
    return call(() => raw.add_builtin(identity, String(builtin), listText(types), listText(except)));
  }
  if ("values" in scrubber) {
    const { values, name } = scrubber;
    if (!Array.isArray(values) || values.some((value) => typeof value !== "string")) throw refused("values must be a list of texts");
    return call(() => raw.add_values(identity, JSON.stringify(values.map(toWellFormed)), name));
  }
  if ("pattern" in scrubber) {
    const { pattern, replacement, name } = scrubber;
    if (typeof pattern !== "string") throw refused("a pattern must be text");
    return call(() => raw.add_pattern(identity, toWellFormed(pattern), replacement, name));
  }
  if (typeof scrubber.scrub !== "function") throw refused("it has none of scrub, builtin, pattern and values");
  const { name, maxMatchLength } = scrubber;
  const scrub = callersOwn((text: string) => scrubber.scrub(text));
  return call(() => raw.add_function(identity, scrub as never, typeof name === "string" ? name : "scrubber", maxMatchLength));
}

/** Longer texts cross as bytes: the generated way in copies character by character. */
const LONG = 512;
const encoder = new TextEncoder();
const encode = (text: string): Uint8Array => encoder.encode(text);

/** The scrubbers of one store, in the order of their registration. */
export class Chain {
  readonly raw: RawChain = call(() => new glue.RawChain());
  /** How many functions of callers there are. */
  callers = 0;
  /** Kept on this side: every event asks. */
  isEmpty = true;

  /** Returns the end of this registration: the last one of the object goes; a second call does nothing. */
  add(scrubber: Scrubber): () => void {
    const identity = (typeof scrubber === "object" && scrubber !== null) || typeof scrubber === "function" ? identityOf(scrubber as object) : 0;
    addTo(this.raw, identity, scrubber);
    this.#look();
    const calls = isCaller(scrubber) ? 1 : 0;
    this.callers += calls;
    let registered = true;
    return () => {
      if (!registered) return;
      registered = false;
      call(() => this.raw.remove(identity));
      this.#look();
      this.callers -= calls;
    };
  }

  #look(): void {
    this.isEmpty = call(() => this.raw.is_empty());
  }

  /** A payload in stored form. */
  payload(type: string, text: string): string {
    if (this.isEmpty) return text;
    return call(() => (text.length > LONG ? this.raw.scrub_payload_bytes(type, encode(text)) : this.raw.scrub_payload(type, text))) ?? text;
  }

  storedForm(value: JsonValue): JsonValue {
    const text = toText(value);
    return JSON.parse(call(() => this.raw.stored_form(text)) ?? text) as JsonValue;
  }

  text(text: string): string {
    return call(() => (text.length > LONG ? this.raw.scrub_bytes(encode(text)) : this.raw.scrub(text))) ?? text;
  }

  /** What scrubs a stream; null while nothing scrubs. */
  stream(): RawScrubStream | null {
    return this.isEmpty ? null : call(() => this.raw.stream());
  }
}

export function filterOf(raw: RawScrubStream): TextFilter {
  return { push: (piece) => call(() => raw.push(piece)), end: () => call(() => raw.end()) };
}

/** Whether a scrubber is a function of the caller's, which may do anything when it is called. */
const isCaller = (scrubber: Scrubber): boolean => typeof scrubber === "function" || "scrub" in scrubber;

const SECRETS: Scrubber = { builtin: "secrets" };

/** Chains of one whole set of built-in rules: they hold nothing of a text, so one serves all calls. */
const standing = new Map<string, Chain>();
onStart(() => standing.clear());

/** Runs `work` with a chain of one scrubber. */
function withChain<T>(scrubber: Scrubber, work: (chain: Chain) => T): T {
  const name = typeof scrubber === "object" && scrubber !== null && "builtin" in scrubber && !scrubber.types && !scrubber.except ? String(scrubber.builtin) : null;
  const kept = name === null ? undefined : standing.get(name);
  if (kept !== undefined) return work(kept);
  const chain = new Chain();
  chain.add(scrubber);
  if (name !== null) {
    standing.set(name, chain);
    return work(chain);
  }
  try {
    return work(chain);
  } finally {
    chain.raw.free();
  }
}

export function scrubText(text: string, scrubber: Scrubber = SECRETS): { text: string; matches: ScrubMatch[] } {
  const whole = toWellFormed(String(text));
  return withChain(scrubber, (chain) => {
    const out = chain.text(whole);
    if (out === whole) return { text: out, matches: [] };
    return { text: out, matches: matchesOf(whole, out, scrubber, call(() => chain.raw.spans(whole))) };
  });
}

function matchesOf(text: string, out: string, scrubber: Scrubber, spans: ArrayLike<number> | undefined): ScrubMatch[] {
  if (typeof scrubber === "object" && "builtin" in scrubber) {
    const { builtin, types, except } = scrubber;
    return JSON.parse(call((module) => module.raw_find_secrets(builtin, listText(types), listText(except), text))) as ScrubMatch[];
  }
  const named = typeof scrubber === "object" && "name" in scrubber && typeof scrubber.name === "string" ? scrubber.name : undefined;
  const name = named ?? (typeof scrubber === "object" && "values" in scrubber ? "value" : typeof scrubber === "object" && "pattern" in scrubber ? "pattern" : "match");
  if (spans !== undefined) {
    return Array.from({ length: spans.length / 2 }, (_, i) => ({ type: name, start: spans[2 * i] as number, end: spans[2 * i + 1] as number }));
  }
  // Of a function only its outcome is known: the span that it changed.
  let start = 0;
  while (start < text.length && text[start] === out[start]) start++;
  let tail = 0;
  while (tail < Math.min(text.length, out.length) - start && text[text.length - 1 - tail] === out[out.length - 1 - tail]) tail++;
  return [{ type: name, start, end: text.length - tail }];
}

const isHighHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

export class ScrubStream {
  #filter: TextFilter;
  #half = "";
  #open = true;

  constructor(scrubber: Scrubber = SECRETS) {
    this.#filter = withChain(scrubber, (chain) => filterOf(chain.stream() as RawScrubStream));
  }

  push(piece: string): string {
    if (!this.#open) throw new SessionLogError("invalid_argument", "the stream has ended");
    if (typeof piece !== "string") throw new SessionLogError("invalid_argument", "a piece must be text");
    let text = this.#half + piece;
    this.#half = "";
    if (text !== "" && isHighHalf(text.charCodeAt(text.length - 1))) {
      this.#half = text.slice(-1);
      text = text.slice(0, -1);
    }
    return this.#filter.push(toWellFormed(text));
  }

  end(): string {
    if (!this.#open) return "";
    this.#open = false;
    const rest = this.#half === "" ? "" : "\ufffd";
    return this.#filter.push(rest) + this.#filter.end();
  }
}
