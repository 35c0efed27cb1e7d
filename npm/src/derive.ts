// Keeps what derivation gave, so that one more event costs one more message: arrays are fresh, messages frozen and shared.
import type { JsonValue, Message } from "../types/index.js";

/** Freezes a value of plain data and all it holds. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const item of Object.values(value)) deepFreeze(item as unknown);
  return Object.freeze(value);
}

/** The messages of one session. `update` is the module's word on what changed since the last call. */
export class DerivedMessages {
  #current: readonly Message[] = Object.freeze([]);
  readonly #update: () => string;

  constructor(update: () => string) {
    this.#update = update;
  }

  /** The same frozen array until something changes: what `useSyncExternalStore` compares. */
  snapshot(): readonly Message[] {
    const text = this.#update();
    if (text !== "") {
      const { keep, messages } = JSON.parse(text) as { keep: number; messages: Message[] };
      const next = keep === this.#current.length ? this.#current.slice() : this.#current.slice(0, keep);
      for (const message of messages) next.push(freezeMessage(message));
      this.#current = Object.freeze(next);
    }
    return this.#current;
  }

  /** A fresh array of the same messages. */
  list(): Message[] {
    return this.snapshot().slice();
  }
}

function freezeMessage(message: Message): Message {
  for (const part of message.parts) {
    // Texts are most of a log: one level is all they have.
    if (part.type === "text") Object.freeze(part);
    else deepFreeze(part as unknown as JsonValue);
  }
  Object.freeze(message.parts);
  Object.freeze(message.sources);
  return Object.freeze(message);
}

/** The messages of a text that the module derived for a shorter log. */
export function parseMessages(text: string): Message[] {
  const messages = JSON.parse(text) as Message[];
  return messages.map(freezeMessage);
}
