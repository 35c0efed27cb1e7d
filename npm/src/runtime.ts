// The one place that talks to the module: start-up, errors, and what happens after an internal fault.
import * as glue from "./glue.js";
import { ofModule, SessionLogError } from "./errors.js";

// Captured when the module is loaded: scripts in a sandbox run with this global taken away.
const Trap = WebAssembly.RuntimeError;

/** How the checks that the build puts into the glue begin. */
const UNEXPECTED = "sessionlog: ";

let started = false;
let poison: string | null = null;
let compiled: WebAssembly.Module | null = null;

const startListeners: Array<() => void> = [];

/** Runs `work` whenever an instance is ready: what was known of an earlier one holds no longer. */
export function onStart(work: () => void): void {
  startListeners.push(work);
}

/** Says that the module is instantiated; called by the entry that did it. */
export function markStarted(module: WebAssembly.Module | null = compiled): void {
  started = true;
  poison = null;
  compiled = module;
  for (const work of startListeners) work();
}

/** What a worker of ours is started with, so that it neither fetches nor compiles anything. */
export function compiledModule(): WebAssembly.Module | null {
  return compiled;
}

/** Whether the module is there and sound. */
export function isStarted(): boolean {
  return started && poison === null;
}

/**
 * Runs `work` against the module. A typed error of the core comes out as SessionLogError; a trap poisons the instance:
 * its first message is kept and every later call fails fast until `init` makes a new one.
 */
export function call<T>(work: (module: typeof glue) => T): T {
  if (poison !== null) throw new SessionLogError("poisoned", `the module had an internal fault: ${poison}`, { first: poison });
  if (!started) throw new SessionLogError("unavailable", "call `await init()` first");
  try {
    return work(glue);
  } catch (thrown) {
    // Objects of an instance that is gone: their memory is not there any more.
    if (thrown instanceof Error && thrown.message.startsWith("Invalid stale object")) {
      throw new SessionLogError("poisoned", "this object belongs to an instance of the module that had an internal fault: open the store again", {}, thrown);
    }
    if (thrown instanceof Error && thrown.message === "null pointer passed to rust") {
      throw new SessionLogError("disposed", "this object was disposed of", {}, thrown);
    }
    if (isFault(thrown)) {
      poison = thrown.message;
      throw new SessionLogError("poisoned", `the module had an internal fault: ${poison}`, { first: poison }, thrown);
    }
    if (thrown instanceof TypeError && thrown.message.startsWith(UNEXPECTED)) {
      throw new SessionLogError("invalid_argument", thrown.message.slice(UNEXPECTED.length));
    }
    // What a caller's own function threw inside the call (a listener, a scrubber) goes through as it is.
    throw ofModule(thrown) ?? thrown;
  }
}

const theirs = new WeakSet<object>();

/** A caller's function that the module calls: what it throws is told from faults of the module, a stack that ran out included. */
export function callersOwn<A extends unknown[], R>(work: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    try {
      return work(...args);
    } catch (thrown) {
      if (typeof thrown === "object" && thrown !== null) theirs.add(thrown);
      throw thrown;
    }
  };
}

/** A trap, or a stack that ran out: both leave frames of the module unfinished. */
function isFault(thrown: unknown): thrown is Error {
  if (typeof thrown === "object" && thrown !== null && theirs.has(thrown)) return false;
  return thrown instanceof Trap || (thrown instanceof RangeError && /call stack/i.test(thrown.message));
}
