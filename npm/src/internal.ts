// What the modules of the shell share about an object without showing it to users.
import type { JsonValue, KeyValueBackend, Session, SessionEvent, SessionStore, StorePeers, VirtualFs } from "../types/index.js";
import type { Log } from "./log.js";

/** The inside of a session, for the controller and its kin. */
export interface SessionInside {
  readonly log: Log;
  readonly store: SessionStore;
  /** Work to stop and await before the session is torn down, last registered first. */
  readonly teardown: Set<() => Promise<void> | void>;
  /** A durability checkpoint: everything appended so far is stored, and so is what `companions` hold (files, runs). */
  checkpoint(): Promise<void>;
  /** Brings the media that the log names by blob; null when there is nothing to wait for. */
  loadBlobs(): Promise<void> | null;
  /** Settles when events that are still being read are there; null when all are. */
  whole(): Promise<void> | null;
  readonly companions: Set<() => Promise<void>>;
  /** Marks the record (status and the like) for the next write. */
  patchRecord(change: { [field: string]: JsonValue }): void;
  /** Appends events whose types the controller mints, all delivered in order. */
  append(type: string, data: unknown, options?: { repair?: boolean }): SessionEvent;
  /** The events of some types; the payloads of the others are not read. */
  eventsOf(...types: string[]): SessionEvent[];
}

export interface StoreInside {
  readonly backend: KeyValueBackend;
  /** What tabs that share this store call it; null when none can. */
  readonly shared: string | null;
  /** What programs that share this store speak through. */
  readonly peers: StorePeers | undefined;
  now(): number;
  newId(): string;
  warn(code: string, message: string): void;
}

const sessions = new WeakMap<object, SessionInside>();
const stores = new WeakMap<object, StoreInside>();

export const exposeSession = (session: object, inside: SessionInside): void => void sessions.set(session, inside);
export const exposeStore = (store: object, inside: StoreInside): void => void stores.set(store, inside);

export function insideSession(session: Session): SessionInside {
  const inside = sessions.get(session);
  if (inside === undefined) throw new TypeError("not a Session of this module");
  return inside;
}

export function insideStore(store: SessionStore): StoreInside {
  const inside = stores.get(store);
  if (inside === undefined) throw new TypeError("not a SessionStore of this module");
  return inside;
}

export type { VirtualFs };
