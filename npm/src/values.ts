// Lossless values: what may enter the log, checked on this side because the boundary would hide losses
// (it turns a lone surrogate half into U+FFFD and a Map into {}). No recursion: one quick walk that says yes or no, and for
// what it refuses a second one that finds the place.
import { SessionLogError, toError } from "./errors.js";
import { call } from "./runtime.js";
import type { JsonValue, SessionEvent } from "../types/index.js";

const MAX_DEPTH = 1000;
/** A payload stands in its event, and that in a list. */
const SEED_DEPTH = MAX_DEPTH + 2;

interface Fault {
  why: string;
  path: string;
}

interface Frame {
  value: object;
  keys: string[] | null; // null: an array
  length: number;
  next: number;
}

const plainKey = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

function pathOf(frames: Frame[]): string {
  let path = "";
  for (const frame of frames) {
    const at = frame.next - 1;
    if (frame.keys === null) path += `[${at}]`;
    else {
      const key = frame.keys[at] ?? "";
      if (plainKey.test(key)) path += path === "" ? key : `.${key}`;
      else path += `[${JSON.stringify(key.length > 80 ? key.slice(0, 80) + "…" : key)}]`;
    }
  }
  // A path is for a person: the ends of a very deep one say enough.
  return path.length > 400 ? `${path.slice(0, 200)}…${path.slice(-100)}` : path;
}

/** Newer than the library that this is compiled against. */
type Checked = String & { isWellFormed?(): boolean };

/** Whether a string has no lone surrogate half. */
export const isWellFormed: (text: string) => boolean =
  typeof (String.prototype as Checked).isWellFormed === "function"
    ? (text) => (text as unknown as Required<Checked>).isWellFormed()
    : (text) => !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(text);

/** Lone surrogate halves as U+FFFD. */
export function toWellFormed(text: string): string {
  if (isWellFormed(text)) return text;
  return text.replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, "\uFFFD");
}

function scalarFault(value: unknown, repair: boolean): string | null {
  switch (typeof value) {
    case "string":
      return repair || isWellFormed(value) ? null : "a string has a lone surrogate half";
    case "number":
      if (!Number.isFinite(value)) return "a number is not finite";
      return Object.is(value, -0) ? "-0 would become 0" : null;
    case "boolean":
      return null;
    case "undefined":
      return "undefined cannot stand in JSON";
    default:
      return `a ${typeof value} cannot stand in JSON`;
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  // Plain objects of another realm: their prototype is that realm's Object.prototype.
  return (
    Object.getPrototypeOf(prototype as object) === null &&
    Object.prototype.hasOwnProperty.call(prototype, "isPrototypeOf")
  );
}

const CHANGED = "a toJSON would change it";

/** Newer than the library that this is compiled against. */
const isRaw = (JSON as { isRawJSON?(value: unknown): boolean }).isRawJSON;

function open(value: object, repair: boolean): Frame | string {
  if (Object.getOwnPropertySymbols(value).length > 0) return "a symbol is a key of it";
  if (Array.isArray(value)) {
    const keys = Object.keys(value);
    if (keys.length !== value.length) return "an array has holes or members of its own";
    if (hasToJson(value)) return CHANGED;
    // The prototype of lists is a list itself, in every realm; that of a class is none.
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== null && !Array.isArray(prototype)) return "only plain objects and arrays survive JSON";
    return { value, keys: null, length: value.length, next: 0 };
  }
  if (!isPlain(value) || isRaw?.(value) === true) return "only plain objects and arrays survive JSON";
  const keys = Object.keys(value);
  const broken = keys.some((key) => !isWellFormed(key));
  if (broken && !repair) return "a key has a lone surrogate half";
  if (broken && new Set(keys.map(toWellFormed)).size < keys.length) return "two keys would become one";
  // A member that is a function is refused in its place.
  if (hasToJson(value) && !keys.includes("toJSON")) return CHANGED;
  return { value, keys, length: keys.length, next: 0 };
}

/** Depths at which to look whether a value contains itself: a wide one takes long to go down a thousand times. */
const isLook = (depth: number): boolean => depth >= 8 && (depth & (depth - 1)) === 0;

function deepFault(frames: Frame[]): Fault {
  const seen = new Map<object, number>();
  for (let at = 0; at < frames.length; at++) {
    const frame = frames[at] as Frame;
    if (seen.has(frame.value)) return { why: "a value contains itself", path: pathOf(frames.slice(0, at)) };
    seen.set(frame.value, at);
  }
  return { why: "nesting is deeper than 1,000", path: pathOf(frames) };
}

/** Finds the first thing that would not survive JSON text. */
export function findFault(root: unknown, repair = false, deepest = MAX_DEPTH): Fault | null {
  const frames: Frame[] = [];
  try {
    let value: unknown = root;
    for (;;) {
      if (typeof value === "object" && value !== null) {
        if (frames.length >= deepest || (isLook(frames.length) && new Set(frames.map((frame) => frame.value)).size < frames.length)) return deepFault(frames);
        const frame = open(value, repair);
        if (typeof frame === "string") return { why: frame, path: pathOf(frames) };
        frames.push(frame);
      } else if (value !== null) {
        const why = scalarFault(value, repair);
        if (why !== null) return { why, path: pathOf(frames) };
      }
      let top = frames[frames.length - 1];
      while (top !== undefined && top.next >= top.length) {
        frames.pop();
        top = frames[frames.length - 1];
      }
      if (top === undefined) return null;
      const at = top.next++;
      value = top.keys === null ? (top.value as unknown[])[at] : (top.value as Record<string, unknown>)[top.keys[at] as string];
    }
  } catch {
    return { why: "a member cannot be read", path: pathOf(frames) };
  }
}

// The stack of the quick walk: kept from call to call, emptied of what it held.
const waiting: Array<object | null> = [];
const depths: number[] = [];
const MAX_WAITING = 1_000_000;
/** Room for so many stays. */
const KEPT_WAITING = 10_000;
/** A member that is an accessor may come back here. */
let isWalking = false;

/**
 * Whether a value is surely lossless, the well-formedness of its strings aside; what this is not sure of (a fault, another
 * realm's object) `findFault` looks at again.
 */
function isSurelyLossless(root: unknown, deepest: number): boolean {
  if (isWalking || typeof root !== "object" || root === null) return false;
  let count = 1;
  isWalking = true;
  waiting[0] = root;
  depths[0] = 1;
  try {
    while (count > 0) {
      const value = waiting[--count] as object;
      const depth = depths[count] as number;
      waiting[count] = null;
      // What contains itself gets here as well, and what is wide and contains itself gets many at every depth.
      if (depth > deepest || count > MAX_WAITING) return false;
      const isList = Array.isArray(value);
      if (isList ? Object.getPrototypeOf(value) !== Array.prototype || Object.keys(value).length !== value.length : Object.getPrototypeOf(value) !== Object.prototype) return false;
      if (Object.getOwnPropertySymbols(value).length > 0 || hasToJson(value)) return false;
      if (isList) {
        for (let at = 0; at < value.length; at++) {
          const member: unknown = value[at];
          if (typeof member === "string") continue;
          if (typeof member === "object" && member !== null) {
            waiting[count] = member;
            depths[count++] = depth + 1;
          } else if (!isScalar(member)) return false;
        }
        continue;
      }
      // An engine has the keys of an object at hand for this loop, and makes a list of them for any other. What it finds that
      // is inherited is looked at in vain.
      for (const key in value) {
        const member = (value as Record<string, unknown>)[key];
        if (typeof member === "string") continue;
        if (typeof member === "object" && member !== null) {
          waiting[count] = member;
          depths[count++] = depth + 1;
        } else if (!isScalar(member)) return false;
      }
    }
    return true;
  } catch {
    return false;
  } finally {
    isWalking = false;
    while (count > 0) waiting[--count] = null;
    if (waiting.length > KEPT_WAITING) waiting.length = depths.length = 0;
  }
}

/** Whether a value without members, other than a string, is lossless. */
function isScalar(value: unknown): boolean {
  switch (typeof value) {
    case "boolean":
      return true;
    case "number":
      // Finite, and not -0.
      return value - value === 0 && (value !== 0 || 1 / value > 0);
    default:
      return value === null;
  }
}

/** Whether `JSON.stringify` would ask it for something else to write; a script may have given that to all objects or lists. */
function hasToJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

export function isJsonValue(value: unknown): value is JsonValue {
  return findFault(value) === null;
}

// JSON.stringify writes lone halves (and only them) as \ud… escapes; every other escape is passed over.
const escapes = /\\(?:u(d[89a-f][0-9a-f]{2})|[^])/gi;

/** The JSON text of a lossless value; `not_json` naming the path for any other. */
export function toText(value: unknown, repair = false, replacement = "\uFFFD", deepest = MAX_DEPTH): string {
  if (!isSurelyLossless(value, deepest)) refuseFault(value, repair, deepest);
  let text: string;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new SessionLogError("not_json", "the value is too large for one text", { path: "" }, cause);
  }
  // One search in the text is quicker than one in each string before; a backslash that was there looks the same.
  if (!text.includes("\\ud")) return text;
  refuseFault(value, repair, deepest);
  return repair ? text.replace(escapes, (all, half?: string) => (half === undefined ? all : replacement)) : text;
}

function refuseFault(value: unknown, repair: boolean, deepest: number): void {
  const fault = findFault(value, repair, deepest);
  if (fault === null) return;
  const where = fault.path === "" ? "" : ` at ${fault.path}`;
  throw new SessionLogError("not_json", `not a lossless JSON value${where}: ${fault.why}`, { path: fault.path });
}

/** A seed as JSON text; one that is none is a bad seed, and its path names the event. */
export function seedText(seed: SessionEvent[]): string {
  try {
    const text = toText(seed, false, "", SEED_DEPTH);
    const seen = new Set<unknown>();
    for (const [index, event] of Array.isArray(seed) ? seed.entries() : []) {
      const id: unknown = (event as SessionEvent | null)?.id;
      if (seen.has(id)) throw new SessionLogError("invalid_seed", "an earlier event has its id", { path: `[${index}].id` });
      if (typeof id === "string") seen.add(id);
    }
    return text;
  } catch (thrown) {
    const error = toError(thrown);
    const index = Number(/^\[(\d+)\]/.exec(String(error.details["path"] ?? ""))?.[1] ?? 0);
    throw new SessionLogError("invalid_seed", `event ${index} of the seed: ${error.message}`, { ...error.details, index }, thrown);
  }
}

export function version(): string {
  return call((module) => module.raw_version());
}
