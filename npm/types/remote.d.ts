// A host of sessions (edge/ of this project, or one that speaks as it does) as storage and through its own interface.
import type { JsonValue, KeyValueBackend, SessionEvent, SessionLogError, SessionSummary, StorageSpec } from "./index.js";
import type { Fetch, URL, WebSocketConstructor } from "./platform.js";

export interface RemoteOptions {
  /** Where the host answers, for example `https://sessions.example.com`. */
  url: string | URL;
  /** The caller's token, or what gives it when it changes. */
  token: string | (() => string | Promise<string>);
  /** How long a request is tried again while the host cannot be reached. Default 10,000. */
  retryMs?: number;
  fetch?: Fetch;
  WebSocket?: WebSocketConstructor;
}
type Json = { [member: string]: JsonValue };
type NewEvent = { type: string; data: JsonValue };
/** Where an event that was appended stands. */
export interface Receipt { seq: number; id: string; at: number }
export type LinkState = "connecting" | "open" | "closed";

/** One caller's sessions on a host. */
export class RemoteStore {
  constructor(options: RemoteOptions);
  /**
   * For `SessionStore.open({ storage })` and `VirtualFs.open({ storage })`: pages and controllers then work as on local storage.
   * One client writes a session at a time, the others follow live and take over when it goes.
   */
  readonly storage: StorageSpec;
  backend(): KeyValueBackend;
  /** The store of one session's object alone, its files included: what tasks run by the host work on. */
  backendOf(id: string): KeyValueBackend;
  create(options?: { id?: string; title?: string; cwd?: string }): Promise<{ id: string; seq: number }>;
  /** The last changed first; what changed within the last seconds may still be missing. */
  list(options?: { limit?: number; offset?: number; archived?: boolean }): Promise<SessionSummary[]>;
  delete(id: string): Promise<void>;
  session(id: string): RemoteSession;
  /** Ends connections; nothing is waited for. */
  close(): void;
}

export interface SubscribeOptions {
  /** The first seq that is wanted. Default 0: all of them. */
  from?: number;
  onEvent(event: SessionEvent): void;
  /** What was there when it began has been delivered; the rest comes as it is written. Called again after each reconnect. */
  onLive?(seq: number): void;
}

/** One session on the host, as its interface has it: many may append at once. */
export class RemoteSession {
  private constructor();
  readonly id: string;
  info(): Promise<Json>;
  read(from?: number, limit?: number): Promise<SessionEvent[]>;
  /**
   * Appends over the standing connection. What was not acknowledged when the connection broke is sent again under its key and
   * stored once. Resolves when the host has it on disk.
   */
  append(type: string, data: JsonValue): Promise<Receipt>;
  /** Several events as one batch: all of them or none. */
  appendAll(events: readonly NewEvent[]): Promise<Receipt[]>;
  readonly unacknowledged: number;
  /** Every event from `from` on in order, each once, across reconnects. One subscription at a time. Returns the end. */
  subscribe(options: SubscribeOptions): () => void;
  /** Word of the connection: `open`, `connecting` (again), `closed` for good. */
  onState(listener: (state: LinkState, error?: SessionLogError) => void): () => void;
  /** Runs a task on the host, with its keys; resolves when it has begun, or with `wait` when it has ended. */
  run(task: string, options: { model: string; system?: string; maxSteps?: number; maxCostUsd?: string; approval?: "never" | "policy" | "always"; wait?: boolean }): Promise<Json>;
  approve(callId: string, verdict: "approved" | "denied", reason?: string): Promise<Json>;
  cancel(reason?: string): Promise<Json>;
  undo(options?: { force?: boolean; skip?: boolean }): Promise<Json>;
  redo(): Promise<Json>;
  /** A text file of the session on the host, or null. */
  file(path: string): Promise<string | null>;
  close(): void;
}

/** How keys and values travel: a head of JSON, then the values as they are. For hosts. */
export function encodeFrame(head: Json, values?: readonly Uint8Array[]): Uint8Array<ArrayBuffer>;
export function decodeFrame(frame: Uint8Array): { head: Json; values: Uint8Array<ArrayBuffer>[] };
