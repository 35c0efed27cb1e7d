// What callers pass, looked at before anything happens: a wrong kind of argument is a typed error, never a fault of ours.
import type { ErrorCode } from "../types/index.js";
import { SessionLogError } from "./errors.js";

const MAX_SHOWN = 80;

/** A text to name an argument by; never runs code of the argument's own. */
export function shown(value: unknown): string {
  if (typeof value === "string") return value.slice(0, MAX_SHOWN);
  if (value === null || ["undefined", "boolean", "number", "bigint"].includes(typeof value)) return `${value as number}`;
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}

function wrong(what: string, expected: string, given: unknown, code: ErrorCode = "invalid_argument"): SessionLogError {
  return new SessionLogError(code, `${what} must be ${expected}, not ${shown(given)}`);
}

type Check = (value: unknown, what: string) => void;

const text = (code?: ErrorCode): Check => (value, what) => {
  if (typeof value !== "string") throw wrong(what, "a text", value, code);
};
const object: Check = (value, what) => {
  if (typeof value !== "object" || value === null) throw wrong(what, "an object", value);
};

const any: Check = () => {};

/** Kinds of arguments, as a signature names them; with a `?` the argument may be left out. */
const KINDS: { [kind: string]: Check } = {
  id: text("invalid_id"),
  text: text(),
  path: text("invalid_path"),
  number: (value, what) => {
    if (typeof value !== "number") throw wrong(what, "a number", value);
  },
  any,
  object,
  options: object,
  function: (value, what) => {
    if (typeof value !== "function") throw wrong(what, "a function", value);
  },
  /** A function, or an object that stands for one. */
  callable: (value, what) => {
    if (typeof value !== "function") object(value, what);
  },
  data: (value, what) => {
    if (typeof value !== "string" && !isBytes(value)) throw wrong(what, "a text or a Uint8Array", value);
  },
  list: (value, what) => {
    if (!Array.isArray(value)) throw wrong(what, "a list", value);
  },
};

/** Bytes, and not merely an object with their prototype. */
export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && value instanceof Uint8Array;
}

/** `name kind, name kind?`; a method that returns a promise begins with `async`. */
type Signatures = { [method: string]: string };

interface Parameter { name: string; check: Check; optional: boolean }

function parameters(signature: string): Parameter[] {
  return signature.replace(/^async /, "").split(",").map((one) => {
    const [name = "", kind = ""] = one.trim().split(" ");
    const check = KINDS[kind.replace("?", "")];
    if (check === undefined) throw new Error(`no kind of argument: ${kind}`);
    return { name, check, optional: kind.endsWith("?") };
  });
}

/** A check of members of an options object, which are written down as the arguments of a method are. */
export function checkOf(signature: string): (options: object) => void {
  const expected = parameters(signature);
  return (options) => {
    for (const { name, check, optional } of expected) {
      const value = (options as { [name: string]: unknown })[name];
      if (!(optional && (value === undefined || value === null))) check(value, name);
    }
  };
}

/** A function with a check of its arguments before it. */
export function guarded<F extends (...args: never[]) => unknown>(work: F, signature: string): F {
  const expected = parameters(signature);
  const isAsync = signature.startsWith("async ");
  const checked = function (this: unknown, ...args: unknown[]): unknown {
    try {
      expected.forEach(({ name, check, optional }, at) => {
        // Null stands for "none" wherever something may be left out.
        if (optional && args[at] === null) args[at] = undefined;
        if (!(optional && args[at] === undefined)) check(args[at], name);
      });
    } catch (thrown) {
      if (isAsync) return Promise.reject(thrown as Error);
      throw thrown;
    }
    return (work as unknown as (...args: unknown[]) => unknown).apply(this, args);
  };
  Object.defineProperty(checked, "name", { value: work.name });
  return checked as unknown as F;
}

/** Puts such a check before methods of a class (or before its static ones). */
export function guard(target: object, signatures: Signatures): void {
  for (const [method, signature] of Object.entries(signatures)) {
    const work = (target as { [method: string]: unknown })[method];
    if (typeof work !== "function") throw new Error(`no method to guard: ${method}`);
    const value = guarded(work as (...args: never[]) => unknown, signature);
    Object.defineProperty(target, method, { value, writable: true, configurable: true, enumerable: false });
  }
}
