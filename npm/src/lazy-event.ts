// An event as JavaScript sees it: a plain object whose payload is parsed when it is first asked for.
import type { SessionEvent } from "../types/index.js";

/** Lets a class put private members on an object that is none of its own. */
class Given {
  constructor(event: object) {
    return event;
  }
}

class Payload extends Given {
  #text: string | null;
  #data: unknown;

  constructor(event: object, text: string) {
    super(event);
    this.#text = text;
  }

  static get(event: Payload): unknown {
    if (event.#text !== null) {
      event.#data = JSON.parse(event.#text);
      event.#text = null;
    }
    return event.#data;
  }

  static text(event: object): string | null {
    return #text in event ? event.#text : null;
  }

  static set(event: Payload, data: unknown): void {
    event.#text = null;
    event.#data = data;
  }
}

// One pair of functions for all events: with a pair for each, every event would have a shape of its own.
const member: PropertyDescriptor & ThisType<Payload> = {
  enumerable: true,
  configurable: true,
  get() {
    return Payload.get(this);
  },
  set(data) {
    Payload.set(this, data);
  },
};

/** The payload of an event as it was stored; null when somebody has read it. */
export function payloadText(event: object): string | null {
  return Payload.text(event);
}

export function lazyEvent(id: string, sessionId: string, seq: number, at: number, type: string, text: string): SessionEvent {
  const event = { id, sessionId, seq, at, type };
  Object.defineProperty(event, "data", member);
  new Payload(event, text);
  return event as unknown as SessionEvent;
}
