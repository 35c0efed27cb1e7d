// A stream of deltas on its way into the log: halves of a pair are rejoined, and what may still become a secret waits.
import type { EventStream, SessionEvent } from "../types/index.js";
import { SessionLogError } from "./errors.js";
import { toWellFormed } from "./values.js";

export interface StreamAt { turn: number; step: number; kind?: "text" | "reasoning" | "tool-args"; id?: string }

/** What scrubs text in pieces; it holds back what may still become a match. */
export interface TextFilter { push(piece: string): string; end(): string }

const isHighHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

export class ChunkStream implements EventStream {
  #at: { turn: number; step: number; kind: "text" | "reasoning" | "tool-args"; id?: string };
  #append: (data: { [key: string]: unknown }) => SessionEvent;
  #filter: TextFilter | null;
  #half = "";
  #text = "";
  #open = true;

  /** `append` stores one chunk, already scrubbed. */
  constructor(at: StreamAt, append: (data: { [key: string]: unknown }) => SessionEvent, filter: TextFilter | null) {
    if (!Number.isSafeInteger(at.turn) || !Number.isSafeInteger(at.step)) {
      throw new SessionLogError("invalid_argument", "a stream needs the numbers of its turn and step");
    }
    const { turn, step, kind = "text", id } = at;
    this.#at = { turn, step, kind, ...(id === undefined ? {} : { id }) };
    this.#append = append;
    this.#filter = filter;
  }

  /** What was released so far. */
  get text(): string {
    return this.#text;
  }

  push(delta: string): SessionEvent[] {
    if (!this.#open) throw new SessionLogError("invalid_argument", "the stream has ended");
    if (typeof delta !== "string") throw new SessionLogError("invalid_argument", "a delta must be text");
    let piece = this.#half + delta;
    this.#half = "";
    if (piece !== "" && isHighHalf(piece.charCodeAt(piece.length - 1))) {
      this.#half = piece.slice(-1);
      piece = piece.slice(0, -1);
    }
    piece = toWellFormed(piece);
    return this.#release(this.#filter === null ? piece : this.#filter.push(piece));
  }

  end(): SessionEvent[] {
    if (!this.#open) return [];
    this.#open = false;
    const rest = this.#half === "" ? "" : "\ufffd";
    if (this.#filter === null) return this.#release(rest);
    return this.#release(this.#filter.push(rest) + this.#filter.end());
  }

  /** What is held back is released as well: it was said. */
  abort(_reason?: string): SessionEvent[] {
    return this.end();
  }

  #release(text: string): SessionEvent[] {
    if (text === "") return [];
    this.#text += text;
    return [this.#append({ ...this.#at, text })];
  }
}
