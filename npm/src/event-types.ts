// What the module knows of event types, asked once per type.
import { call, onStart } from "./runtime.js";

/** Events of the type are written at once. */
export const URGENT = 2;
/** What is above the flags is the number of a built-in type. */
const NUMBER = 8;

const known = new Map<string, number>();

/** 0 for a type that is neither built in nor declared; else a set of flags. */
export function eventClass(type: string): number {
  let flags = known.get(type);
  if (flags === undefined) {
    flags = call((module) => module.raw_event_class(type));
    if (flags !== 0) known.set(type, flags);
  }
  return flags;
}

/** The number of a built-in type; 0 for any other. */
export function builtinNumber(type: string): number {
  return Math.floor(eventClass(type) / NUMBER);
}

/** What was declared, for an instance that comes after this one. */
const declared = new Map<string, { durable: boolean; ignorable: boolean }>();

export function declareEvent(type: string, durable: boolean, ignorable: boolean): void {
  call((module) => module.raw_declare_event(type, durable, ignorable));
  declared.set(type, { durable, ignorable });
  known.delete(type);
}

onStart(() => {
  for (const [type, { durable, ignorable }] of declared) call((module) => module.raw_declare_event(type, durable, ignorable));
});
