// Arguments held against a tool's JSON Schema, which may come from a stranger: nothing in it can make the check hang.
//
// @cfworker/json-schema interprets schemas (drafts 4 to 2020-12) instead of compiling them: it works where `eval` is
// forbidden (edge runtimes, pages with a strict policy), is small, and is kept by people who run it there. It is given a
// copy of the schema in which every use of a subschema is counted, and every `pattern` is matched in linear time.
import { Validator, format, type Schema } from "@cfworker/json-schema";
import type { JsonValue } from "../types/index.js";
import { Chain } from "./scrub.js";

/** More subschemas than this are not copied, and not more uses of them are made for one call. */
const MAX_SCHEMAS = 20_000;
const MAX_USES = 50_000;
const MAX_DEPTH = 200;

type Members = { [key: string]: JsonValue };

const ONE = new Set(["additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contains", "items", "not", "if", "then", "else"]);
const LISTS = new Set(["allOf", "anyOf", "oneOf", "prefixItems", "items"]);
const MAPS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"]);

/** A group that is repeated, or three repetitions without an end: what may take long in an engine that tries again. */
const RISKY = /\)[*+?{]|(?:[*+]|\{\d+,\}).*(?:[*+]|\{\d+,\}).*(?:[*+]|\{\d+,\})/;

const isObject = (value: JsonValue | undefined): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);

const tooMuch = (): Error => new Error("it takes too long to check");

class Copy {
  readonly patterns = new Map<string, string>();
  #schemas = 0;
  #uses = 0;

  of(schema: JsonValue | undefined, depth = 0): JsonValue {
    if (!isObject(schema)) return schema ?? true;
    if (++this.#schemas > MAX_SCHEMAS || depth > MAX_DEPTH) throw tooMuch();
    const out: Members = {};
    for (const [key, value] of Object.entries(schema)) {
      if (key === "pattern" || key === "type" || key === "__proto__") continue;
      if (LISTS.has(key) && Array.isArray(value)) out[key] = value.map((one) => this.of(one, depth + 1));
      else if (ONE.has(key)) out[key] = this.of(value, depth + 1);
      else if (MAPS.has(key) && isObject(value)) out[key] = this.#map(key, value, depth);
      else out[key] = value;
    }
    if (typeof schema["pattern"] === "string") out["allOf"] = [...((out["allOf"] as JsonValue[] | undefined) ?? []), { format: this.#format(schema["pattern"]) }];
    // Read once whenever the schema is used.
    Object.defineProperty(out, "type", { enumerable: true, get: () => this.#used(schema["type"]) });
    return out;
  }

  #map(key: string, schemas: Members, depth: number): Members {
    const out = Object.create(null) as Members;
    for (const [name, schema] of Object.entries(schemas)) {
      if (key === "patternProperties" && RISKY.test(name)) throw new Error("it has a pattern for names that could take too long to match");
      // Old drafts name other members here.
      out[name] = Array.isArray(schema) ? schema : this.of(schema, depth + 1);
    }
    return out;
  }

  #used(type: JsonValue | undefined): JsonValue | undefined {
    if (++this.#uses > MAX_USES) throw tooMuch();
    return type;
  }

  #format(pattern: string): string {
    const name = `pattern ${pattern}`;
    this.patterns.set(name, pattern);
    return name;
  }
}

/** Whether a pattern matches, in time linear in the text. One that looks around or refers back cannot be matched so, and is let pass. */
export function matches(pattern: string, text: string): boolean {
  // Nothing takes long on nothing.
  if (text === "") return new RegExp(pattern, "u").test(text);
  const chain = new Chain();
  try {
    chain.add({ pattern: `^(?:[\\s\\S]*?(?:${pattern})[\\s\\S]*)$` });
    return (chain.raw.spans(text)?.length ?? 0) > 0;
  } catch {
    return true;
  } finally {
    chain.raw.free();
  }
}

/** Checks arguments against a tool's schema; the first few faults as one sentence, null when there are none. */
export function argumentFault(schemaOf: JsonValue, args: JsonValue): string | null {
  const copy = new Copy();
  const schema = copy.of(schemaOf);
  const formats = format as { [name: string]: ((text: string) => boolean) | undefined };
  for (const [name, pattern] of copy.patterns) formats[name] = (text) => matches(pattern, text);
  try {
    const checked = new Validator(schema as Schema, "2020-12", false).validate(args);
    if (checked.valid) return null;
    // Errors of the inner keywords say more than "does not match the schema" of the outer ones.
    const inner = checked.errors.filter(({ keyword }) => !["properties", "items", "allOf", "$ref", "$defs"].includes(keyword));
    const shown = (inner.length > 0 ? inner : checked.errors).slice(0, 5);
    return `the arguments do not fit the tool's parameters: ${shown.map(({ instanceLocation, error }) => `${instanceLocation}: ${error.replace(/does not match format "pattern/, 'does not match pattern "')}`).join(" ")}`;
  } finally {
    for (const name of copy.patterns.keys()) delete formats[name];
  }
}
