// A session's log in the module, and the end of it that is still on this side: to bring a text across costs more than the rest
// of its append, and many at a time cross for the price of one.
import type { SessionEvent } from "../types/index.js";
import { builtinNumber } from "./event-types.js";
import type { RawDeltas, RawSession } from "./glue.js";
import { lazyEvent } from "./lazy-event.js";
import { call } from "./runtime.js";

const ID_LENGTH = 16;
/** So many ids are drawn in one go, and so many events cross in one. */
const AT_ONCE = 64;
/** A longer text gains nothing from company. */
const SHORT = 16 * 1024;

export class Log {
  readonly #raw: RawSession;
  readonly #id: string;
  /** Payloads that are to cross, and of each the number of its type and its time. */
  #texts: string[] = [];
  #rows: number[] = [];
  /** How many events the module holds, while any wait. */
  #held = 0;
  /** Ids of events to come, as the module has them. */
  #ids = "";
  #idsUsed = 0;

  constructor(raw: RawSession, id: string) {
    this.#raw = raw;
    this.#id = id;
  }

  /** The log in the module, with everything in it. Not to be kept: what is appended later may not be there yet. */
  get raw(): RawSession {
    if (this.#texts.length > 0) this.#bring();
    return this.#raw;
  }

  /** Puts an event at the end; its payload is JSON text in stored form. */
  append(type: string, text: string, at: number): SessionEvent {
    const number = builtinNumber(type);
    this.#needId();
    const id = this.#takeId();
    const seq = number > 0 && text.length <= SHORT ? this.#wait(number, text, at) : call(() => this.raw.append(type, text, at));
    return lazyEvent(id, this.#id, seq, at, type, text);
  }

  /** Puts what is decided of a stream after `piece` at the end; null when nothing is. */
  appendDelta(deltas: RawDeltas, piece: string, at: number, last: boolean): { id: string; seq: number; text: string } | null {
    this.#needId();
    const out = call(() => deltas.push(this.raw, piece, at, last));
    if (out === undefined) return null;
    return { id: this.#takeId(), seq: call(() => this.#raw.len()) - 1, text: out === "" ? piece : out };
  }

  #wait(number: number, text: string, at: number): number {
    // Nobody appends without an id, so as many wait as were drawn at most.
    if (this.#texts.length === 0) this.#held = call(() => this.#raw.len());
    this.#rows.push(number, at);
    return this.#held + this.#texts.push(text) - 1;
  }

  #bring(): void {
    // JSON text has no line feeds of its own.
    const texts = this.#texts.join("\n");
    call(() => this.#raw.append_lines(texts, new Float64Array(this.#rows)));
    this.#texts.length = this.#rows.length = 0;
  }

  #needId(): void {
    // A caller's random source may come back here and append before.
    while (this.#ids.length === this.#idsUsed) {
      const drawn = call(() => this.raw.draw_ids(AT_ONCE));
      this.#ids = this.#ids.slice(this.#idsUsed) + drawn;
      this.#idsUsed = 0;
    }
  }

  #takeId(): string {
    return this.#ids.slice(this.#idsUsed, (this.#idsUsed += ID_LENGTH));
  }

  free(): void {
    this.#raw.free();
  }
}
