// Subscribers: each has a place in the log, kept with its socket. What is stored beyond that place is sent, in order; so a
// replay and what comes live are one thing, and there is no moment between them.
import type { JsonValue, Session } from "sessionlog";
import { attachmentOf, isOpen, setAttachment } from "./sockets.js";

/** Events of one message. */
const PAGE = 200;

export class Live {
  #cache: { from: number; to: number; text: string } | null = null;

  constructor(readonly sockets: () => WebSocket[]) {}

  send(socket: WebSocket, message: { [member: string]: JsonValue }): void {
    this.#sendText(socket, JSON.stringify(message));
  }

  #sendText(socket: WebSocket, text: string): void {
    if (!isOpen(socket)) return;
    try {
      socket.send(text);
    } catch {
      // It went away meanwhile; its close is on its way.
    }
  }

  get hasAny(): boolean {
    return this.sockets().some((socket) => isOpen(socket) && attachmentOf(socket).next !== null);
  }

  /** Several subscribers mostly stand at the same place. */
  #text(session: Session, from: number, to: number): string {
    if (this.#cache?.from !== from || this.#cache.to !== to) {
      this.#cache = { from, to, text: JSON.stringify({ t: "events", events: session.slice(from, to) }) };
    }
    return this.#cache.text;
  }

  pumpAll(session: Session): void {
    for (const socket of this.sockets()) this.pump(socket, session);
    this.#cache = null;
  }

  /** Sends a subscriber what is stored and it has not seen. */
  pump(socket: WebSocket, session: Session): void {
    const { next, live } = attachmentOf(socket);
    if (next === null || !isOpen(socket)) return;
    const end = session.durableSeq;
    for (let from = next; from < end; from += PAGE) this.#sendText(socket, this.#text(session, from, Math.min(from + PAGE, end)));
    if (end > next || !live) setAttachment(socket, { next: Math.max(next, end), live: true });
    if (!live) this.send(socket, { t: "live", seq: end });
  }
}
