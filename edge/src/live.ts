// Subscribers: each has a place in the log, kept with its socket. What is stored beyond that place is sent, in order; so a
// replay and what comes live are one thing, and there is no moment between them.
import type { JsonValue, Session } from "sessionlog";
import { attachmentOf, isOpen, setAttachment } from "./sockets.js";

/** Events of one message, and about how much of them: runtimes and clients bound what a message may hold. */
const PAGE = 200;
const PAGE_BYTES = 1024 * 1024;
/** Events that are looked at together: each may be as long as a request. */
const AT_ONCE = 16;

/**
 * The events in `from..end` as texts, of about `bytes` together, and where the next ones begin; the first one however long it is,
 * so that a reader gets on.
 */
export function pageOf(session: Session, from: number, end: number, bytes: number): { texts: string[]; next: number } {
  const texts: string[] = [];
  let size = 0;
  for (let step = 1, at = from; at < end; at += step, step = Math.min(2 * step, AT_ONCE)) {
    for (const event of session.slice(at, Math.min(at + step, end))) {
      const text = JSON.stringify(event);
      size += text.length;
      if (size > bytes && texts.length > 0) return { texts, next: event.seq };
      texts.push(text);
    }
  }
  return { texts, next: Math.max(from, end) };
}

export class Live {
  #cache: { from: number; end: number; next: number; text: string } | null = null;

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
  #page(session: Session, from: number, end: number): { next: number; text: string } {
    if (this.#cache?.from !== from || this.#cache.end !== end) {
      const { texts, next } = pageOf(session, from, Math.min(from + PAGE, end), PAGE_BYTES);
      this.#cache = { from, end, next, text: `{"t":"events","events":[${texts.join()}]}` };
    }
    return this.#cache;
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
    for (let from = next; from < end; ) {
      const page = this.#page(session, from, end);
      this.#sendText(socket, page.text);
      from = page.next;
    }
    if (end > next || !live) setAttachment(socket, { next: Math.max(next, end), live: true });
    if (!live) this.send(socket, { t: "live", seq: end });
  }
}
