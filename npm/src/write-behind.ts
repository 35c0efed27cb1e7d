// When a session's events are written: the module decides, this reads its decisions.
import { call } from "./runtime.js";
import type { RawWriteBehind } from "./glue.js";

/** In the order of their numbers in the module. */
const OUTCOMES = ["stored", "conflict", "failed", "refused"] as const;
export type WriteOutcome = (typeof OUTCOMES)[number];

/** What to do next, in order. `src/store/write_behind/protocol.rs` says what each means. */
export type WriteStep =
  | { do: "admit"; token: number }
  | { do: "write"; from: number; to: number }
  | { do: "wake"; at: number }
  | { do: "reload" }
  | { do: "durable"; seq: number }
  | { do: "reveal"; token: number }
  | { do: "withdraw"; token: number }
  | { do: "settled"; token: number; ok: boolean };

const decode: ReadonlyArray<(a: number, b: number) => WriteStep> = [
  (token) => ({ do: "admit", token }),
  (from, to) => ({ do: "write", from, to }),
  (at) => ({ do: "wake", at }),
  () => ({ do: "reload" }),
  (seq) => ({ do: "durable", seq }),
  (token) => ({ do: "reveal", token }),
  (token) => ({ do: "withdraw", token }),
  (token, ok) => ({ do: "settled", token, ok: ok === 1 }),
];

function steps(triples: Float64Array): WriteStep[] {
  const out: WriteStep[] = [];
  for (let i = 0; i + 2 < triples.length; i += 3) {
    // By index: a view for each step costs more than the step.
    const step = decode[triples[i] as number]?.(triples[i + 1] as number, triples[i + 2] as number);
    if (step !== undefined) out.push(step);
  }
  return out;
}

/** The write-behind machine of one session. It performs nothing: carry out the steps it returns, in order. */
export class WriteBehind {
  readonly #raw: RawWriteBehind;
  constructor(options: { flushIntervalMs?: number } = {}) {
    this.#raw = call((m) => new m.RawWriteBehind(options.flushIntervalMs));
  }
  /** The store holds `stored` events; until this is said nothing is written. */
  loaded(stored: number): WriteStep[] { return steps(call(() => this.#raw.loaded(stored))); }
  /** The log has `length` events; `urgent` for all but stream deltas. */
  appended(now: number, length: number, urgent: boolean): WriteStep[] { return steps(call(() => this.#raw.appended(now, length, urgent))); }
  /** Write everything now. With a token, `settled` follows. */
  flush(now: number, token?: number): WriteStep[] { return steps(call(() => this.#raw.flush(now, token))); }
  /** One event is to be stored before it is seen: `admit` asks for it when its turn comes. */
  storeFirst(now: number, token: number): WriteStep[] { return steps(call(() => this.#raw.store_first(now, token))); }
  /** An event that cannot wait is about to be appended: those queued to be stored first go before it as ordinary ones. */
  makeRoom(now: number): WriteStep[] { return steps(call(() => this.#raw.make_room(now))); }
  tick(now: number): WriteStep[] { return steps(call(() => this.#raw.tick(now))); }
  done(now: number, outcome: WriteOutcome): WriteStep[] { return steps(call(() => this.#raw.done(now, OUTCOMES.indexOf(outcome)))); }
  /** After `reload`: what the store holds, and how long the log is with our unsaved events behind that. */
  reloaded(now: number, stored: number, length: number, candidateStored = false): WriteStep[] {
    return steps(call(() => this.#raw.reloaded(now, stored, length, candidateStored)));
  }
  reloadFailed(now: number): WriteStep[] { return steps(call(() => this.#raw.reload_failed(now))); }
  /** The store is not where we believed it to be, as something else than a write found out. */
  overtaken(): WriteStep[] { return steps(call(() => this.#raw.overtaken())); }
  follow(): WriteStep[] { return steps(call(() => this.#raw.follow())); }
  close(): WriteStep[] { return steps(call(() => this.#raw.close())); }
  get stored(): number { return call(() => this.#raw.stored()); }
  get unsaved(): number { return call(() => this.#raw.unsaved()); }
  free(): void { this.#raw.free(); }
}
