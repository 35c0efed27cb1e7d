// A stream of deltas on its way into the log: halves of a pair are rejoined, and what may still become a secret waits.
import type { EventStream, SessionEvent } from "../types/index.js";
import { SessionLogError } from "./errors.js";
import { toWellFormed } from "./values.js";

export interface StreamAt { turn: number; step: number; kind?: "text" | "reasoning" | "tool-args"; id?: string }

/** What scrubs text in pieces; it holds back what may still become a match. */
export interface TextFilter { push(piece: string): string; end(): string }

/** The payload of a chunk without its text. */
export type Place = { turn: number; step: number; kind: "text" | "reasoning" | "tool-args"; id?: string };

export function placeOf({ turn, step, kind = "text", id }: StreamAt): Place {
  if (!Number.isSafeInteger(turn) || !Number.isSafeInteger(step)) {
    throw new SessionLogError("invalid_argument", "a stream needs the numbers of its turn and step");
  }
  return { turn, step, kind, ...(id === undefined ? {} : { id }) };
}

/** Scrubs a piece (the last one with what was held back) and stores what is decided: the event and its text, if anything is. */
export type ChunkSink = (piece: string, last: boolean) => { event: SessionEvent; text: string } | null;

const isHighHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

export class ChunkStream implements EventStream {
  #sink: ChunkSink;
  #half = "";
  #text = "";
  #open = true;

  constructor(sink: ChunkSink) {
    this.#sink = sink;
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
    return this.#release(toWellFormed(piece), false);
  }

  end(): SessionEvent[] {
    if (!this.#open) return [];
    this.#open = false;
    return this.#release(this.#half === "" ? "" : "\ufffd", true);
  }

  /** What is held back is released as well: it was said. */
  abort(_reason?: string): SessionEvent[] {
    return this.end();
  }

  #release(piece: string, last: boolean): SessionEvent[] {
    const stored = this.#sink(piece, last);
    if (stored === null) return [];
    this.#text += stored.text;
    return [stored.event];
  }
}
