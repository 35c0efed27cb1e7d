// What was said and not taken up yet, as the log tells it.
import { insideSession } from "./internal.js";
import { call } from "./runtime.js";
import type { Session, SessionEvent } from "../types/index.js";

export interface Draft { id: string; text: string }

export class Queue {
  #session: Session;
  #newId: () => string;
  #open = new Map<string, string>();
  #unlisten: () => void;

  constructor(session: Session, newId: () => string) {
    this.#session = session;
    this.#newId = newId;
    const whole = insideSession(session).whole();
    if (whole === null) this.#readAll();
    // Drafts from before the newest compaction come when the log is whole.
    else whole.then(() => this.#readAll(), () => {});
    this.#unlisten = session.on("event", (event) => this.#see(event));
  }

  #readAll(): void {
    this.#open.clear();
    for (const event of insideSession(this.#session).eventsOf("queue/added", "queue/claimed", "queue/dropped")) this.#see(event);
  }

  #see(event: SessionEvent): void {
    if (event.type === "queue/added") this.#open.set(event.data.id, event.data.text);
    else if (event.type === "queue/claimed" || event.type === "queue/dropped") this.#open.delete(event.data.id);
  }

  add(text: string): void {
    this.#session.append("queue/added", { id: this.#newId(), text }, { repair: true });
  }

  drop(id: string): void {
    if (this.#open.has(id)) this.#session.append("queue/dropped", { id });
  }

  drafts(): Draft[] {
    return [...this.#open].map(([id, text]) => ({ id, text }));
  }

  dispose(): void {
    this.#unlisten();
  }
}
