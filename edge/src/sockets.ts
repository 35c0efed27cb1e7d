// What is remembered of a WebSocket: it outlives the object's memory, so that the object may sleep while sockets stay open.

export interface Attachment {
  /** Tells one client from another across its connections. */
  readonly client: string;
  readonly canWrite: boolean;
  /** The next event it is to get; null while it wants none. */
  readonly next: number | null;
  /** Whether it has been told that the replay is over. */
  readonly live: boolean;
  /** One that follows may only read: it hears word of the session and never writes it. */
  readonly lease: "none" | "follows" | "waits" | "holds";
  readonly since: number;
  /** The key of an append that was put off: those behind it wait until it comes again, for they have an order. */
  readonly putOff?: string | null;
}

/** One that nothing is remembered of wants nothing and may do nothing: it must not be in the way of the others. */
const NOBODY: Attachment = { client: "", canWrite: false, next: null, live: false, lease: "none", since: 0 };

export const attachmentOf = (socket: WebSocket): Attachment => (socket.deserializeAttachment() as Attachment | null) ?? NOBODY;

export function setAttachment(socket: WebSocket, change: Partial<Attachment>): void {
  socket.serializeAttachment({ ...attachmentOf(socket), ...change });
}

export const isOpen = (socket: WebSocket): boolean => socket.readyState === WebSocket.READY_STATE_OPEN;
