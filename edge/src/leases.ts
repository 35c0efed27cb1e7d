// Who writes a session: the host itself (what comes over its interface, and tasks), or one client that keeps its session here
// as in local storage. The rest follow. What keeps the log whole is the fence in the store; leases spare everybody conflicts.
import type { JsonValue, StorePeers } from "sessionlog";
import { attachmentOf, isOpen, setAttachment } from "./sockets.js";

/** A client whose connection broke has this long to come back before another one writes. */
const GRACE_MS = 5_000;

export class Leases {
  #hearers = new Set<(id: string, word: JsonValue) => void>();
  #absent: { client: string; timer: ReturnType<typeof setTimeout> } | null = null;
  #lastWrite = -Infinity;

  constructor(
    readonly sockets: () => WebSocket[],
    readonly send: (socket: WebSocket, message: { [member: string]: JsonValue }) => void,
    /** The host lets go of the session when it can; false while it works on it. */
    readonly yields: () => Promise<boolean>,
    /** The log has more events in store than before. */
    readonly onGrown: () => void,
  ) {}

  /** The client that writes, if one does. */
  holder(): WebSocket | null {
    return this.sockets().find((socket) => isOpen(socket) && attachmentOf(socket).lease === "holds") ?? null;
  }

  /** A client wrote just now: its request for the lease may still be on its way. */
  wrote(): void {
    this.#lastWrite = Date.now();
  }

  get heldByClient(): boolean {
    return this.#absent !== null || this.holder() !== null || Date.now() - this.#lastWrite < GRACE_MS;
  }

  /** The host as one of those who share the session: it writes when it is asked to and no client does. */
  readonly peers: StorePeers = {
    lease: async () => {
      // While the host has the session open, what a client would write makes it let go first: the fence need not be asked.
      const lease = { held: !this.heldByClient, isSole: () => true, release: () => {} };
      return lease;
    },
    tell: (_id, word) => {
      this.tell(word, null);
      if (typeof (word as { grown?: unknown }).grown === "number") this.onGrown();
    },
    hear: (listener) => {
      this.#hearers.add(listener);
      return () => this.#hearers.delete(listener);
    },
  };

  /** Passes a word on to all clients who share the session. */
  tell(word: JsonValue, from: WebSocket | null): void {
    for (const socket of this.sockets()) if (socket !== from && isOpen(socket) && attachmentOf(socket).lease !== "none") this.send(socket, { t: "word", word });
  }

  /** Passes a word on to the host's own store. */
  hear(id: string, word: JsonValue): void {
    for (const hear of this.#hearers) hear(id, word);
  }

  /** A client asks, for the first time or after its connection broke; `holds` when it had the lease before that. */
  async ask(socket: WebSocket, { holds, again }: { holds: boolean; again: boolean }): Promise<void> {
    const holder = this.holder();
    // The same client over another connection: that the old one ended may not have been heard yet.
    const isBack = holder !== null && attachmentOf(holder).client === attachmentOf(socket).client;
    if (isBack && holder !== socket) setAttachment(holder, { lease: "none" });
    if (isBack) return this.#grant(socket);
    const returns = holds || this.#absent?.client === attachmentOf(socket).client;
    const isFree = holder === null && (this.#absent === null || returns);
    const goesFirst = returns || (!again && !this.#othersWait(socket));
    if (isFree && goesFirst && (await this.yields())) return this.#grant(socket);
    setAttachment(socket, { lease: "waits", since: Date.now() });
    this.send(socket, { t: "lease", held: false });
    // When all connections broke, the one who wrote may be the last to come back.
    if (isFree) setTimeout(() => void this.next(), GRACE_MS);
  }

  /** A client that may only read shares the session all the same. */
  follow(socket: WebSocket): void {
    setAttachment(socket, { lease: "follows" });
    this.send(socket, { t: "lease", held: false });
  }

  #othersWait(own: WebSocket): boolean {
    return this.sockets().some((socket) => socket !== own && isOpen(socket) && attachmentOf(socket).lease === "waits");
  }

  #grant(socket: WebSocket): void {
    this.#settled();
    setAttachment(socket, { lease: "holds" });
    this.send(socket, { t: "lease", held: true });
  }

  #settled(): void {
    if (this.#absent !== null) clearTimeout(this.#absent.timer);
    this.#absent = null;
  }

  async release(socket: WebSocket): Promise<void> {
    const held = attachmentOf(socket).lease === "holds";
    setAttachment(socket, { lease: "none" });
    if (!held) return;
    this.#lastWrite = -Infinity;
    await this.next();
  }

  /** A connection ended: in order, or not. */
  async left(socket: WebSocket, clean: boolean): Promise<void> {
    const { lease, client } = attachmentOf(socket);
    if (lease !== "holds" || this.holder() !== null) return;
    this.#settled();
    if (clean) {
      this.#lastWrite = -Infinity;
      return this.next();
    }
    const timer = setTimeout(() => {
      this.#absent = null;
      void this.next();
    }, GRACE_MS);
    this.#absent = { client, timer };
  }

  /** The one that has waited longest writes from now on. */
  async next(): Promise<void> {
    if (this.#absent !== null || this.holder() !== null) return;
    const waiting = this.sockets().filter((socket) => isOpen(socket) && attachmentOf(socket).lease === "waits");
    const first = waiting.sort((a, b) => attachmentOf(a).since - attachmentOf(b).since)[0];
    if (first !== undefined && (await this.yields())) this.#grant(first);
  }
}
