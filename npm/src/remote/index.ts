// A host of sessions as storage: what works on IndexedDB works on it.
import type { JsonValue, KeyValueBackend, SessionEvent, SessionSummary, StorageSpec, StorePeers } from "../../types/index.js";
import { SessionLogError } from "../errors.js";
import { remoteBackend } from "./backend.js";
import { Http, requestKey, type Json, type RemoteOptions } from "./http.js";
import { deliver, Link, type LinkState, type Receipt } from "./link.js";

export { decodeFrame, encodeFrame } from "./frame.js";
export type { RemoteOptions } from "./http.js";
export type { LinkState, Receipt } from "./link.js";

type NewEvent = { type: string; data: JsonValue };
type Query = { [name: string]: string | number | boolean | undefined };

function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]));
  return given.length === 0 ? path : `${path}?${given.join("&")}`;
}

const compact = (given: { [member: string]: JsonValue | undefined }): Json => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Json;

/** One caller's sessions on a host. */
export class RemoteStore {
  readonly #http: Http;
  readonly #options: RemoteOptions;
  readonly #links = new Map<string, Link>();
  readonly #hearers = new Set<(id: string, word: JsonValue) => void>();

  constructor(options: RemoteOptions) {
    this.#options = options;
    this.#http = new Http(options);
  }

  /** For `SessionStore.open` and `VirtualFs.open`: all sessions of the caller, each in its own object. */
  get storage(): StorageSpec {
    return { kind: "custom", backend: this.backend() };
  }

  backend(): KeyValueBackend {
    return remoteBackend(this.#http, "/v1/kv", this.#peers, () => this.close());
  }

  /** The store of one session's object alone, its files included: what tasks run by the host work on. */
  backendOf(id: string): KeyValueBackend {
    return remoteBackend(this.#http, `/v1/sessions/${encodeURIComponent(id)}/kv`, undefined);
  }

  #link(id: string): Link {
    let link = this.#links.get(id);
    if (link === undefined || link.state === "closed") {
      link = new Link(id, this.#http, this.#options.WebSocket ?? WebSocket, (word) => this.#hearers.forEach((hear) => deliver(() => hear(id, word))));
      this.#links.set(id, link);
    }
    return link;
  }

  readonly #peers: StorePeers = {
    lease: async (id, waitMs, onLead) => {
      const link = this.#link(id);
      const release = (): void => {
        link.release();
        if (!link.idle) return;
        link.close();
        if (this.#links.get(id) === link) this.#links.delete(id);
      };
      try {
        return { held: await link.lease(waitMs, onLead), release };
      } catch (thrown) {
        release();
        throw thrown;
      }
    },
    tell: (id, word) => this.#links.get(id)?.tell(word),
    hear: (listener) => {
      this.#hearers.add(listener);
      return () => this.#hearers.delete(listener);
    },
  };

  // ---------------------------------------------------------------- the host's own interface

  async create(options: { id?: string; title?: string; cwd?: string } = {}): Promise<{ id: string; seq: number }> {
    // Sent again after a lost answer it must not be taken for somebody else's.
    return this.#http.json("POST", "/v1/sessions", compact({ ...options, id: options.id ?? requestKey().slice(0, 16), request: requestKey() }));
  }

  async list(options: { limit?: number; offset?: number; archived?: boolean } = {}): Promise<SessionSummary[]> {
    const { sessions } = await this.#http.json<{ sessions: SessionSummary[] }>("GET", withQuery("/v1/sessions", options));
    return sessions;
  }

  async delete(id: string): Promise<void> {
    // Sent again after a lost answer it must not be told that there is no such session.
    await this.#http.json("DELETE", `/v1/sessions/${encodeURIComponent(id)}`, undefined, { key: requestKey() });
  }

  session(id: string): RemoteSession {
    return new RemoteSession(id, this.#http, this.#options.WebSocket ?? WebSocket);
  }

  /** Ends connections; nothing is waited for. */
  close(): void {
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }
}

export interface SubscribeOptions {
  /** The first seq that is wanted. Default 0: all of them. */
  from?: number;
  onEvent(event: SessionEvent): void;
  /** What was there when it began has been delivered; the rest comes as it is written. Called again after each reconnect. */
  onLive?(seq: number): void;
}

/** One session on the host, as its API has it. */
export class RemoteSession {
  readonly id: string;
  readonly #http: Http;
  readonly #WebSocket: typeof WebSocket;
  readonly #path: string;
  #link: Link | null = null;
  #states = new Set<(state: LinkState, error?: SessionLogError) => void>();

  /** @internal */
  constructor(id: string, http: Http, Socket: typeof WebSocket) {
    this.id = id;
    this.#http = http;
    this.#WebSocket = Socket;
    this.#path = `/v1/sessions/${encodeURIComponent(id)}`;
  }

  #live(): Link {
    if (this.#link === null || this.#link.state === "closed") {
      this.#link = new Link(this.id, this.#http, this.#WebSocket, () => {}, (state, error) => this.#states.forEach((hear) => deliver(() => hear(state, error))));
    }
    return this.#link;
  }

  info(): Promise<Json> {
    return this.#http.json("GET", this.#path);
  }

  /** Stored events from `from` on, all of them or `limit`. */
  async read(from = 0, limit = Infinity): Promise<SessionEvent[]> {
    const out: SessionEvent[] = [];
    while (out.length < limit) {
      const asked = Math.min(limit - out.length, 1_000);
      const page = await this.#http.json<{ events: SessionEvent[]; more: boolean }>("GET", withQuery(`${this.#path}/events`, { from: from + out.length, limit: asked }));
      out.push(...page.events);
      if (!page.more) break;
    }
    return out;
  }

  /**
   * Appends over the standing connection, in the order of the calls. What was not acknowledged when the connection broke is
   * sent again under its key and stored once. Resolves when the host has it on disk.
   */
  async append(type: string, data: JsonValue): Promise<Receipt> {
    return (await this.appendAll([{ type, data }]))[0] as Receipt;
  }

  /** Several events as one batch: all of them or none. */
  appendAll(events: readonly NewEvent[]): Promise<Receipt[]> {
    return this.#live().append(events);
  }

  get unacknowledged(): number {
    return this.#link?.unacknowledged ?? 0;
  }

  /** Every event from `from` on in order, each once, across reconnects. Returns the end. */
  subscribe({ from = 0, onEvent, onLive }: SubscribeOptions): () => void {
    const link = this.#live();
    link.tail(from, { onEvent, ...(onLive === undefined ? {} : { onLive }) });
    return () => link.untail();
  }

  /** Word of the connection: `open`, `connecting` (again), `closed` for good. */
  onState(listener: (state: LinkState, error?: SessionLogError) => void): () => void {
    this.#states.add(listener);
    return () => this.#states.delete(listener);
  }

  /** Runs a task on the host; resolves when it has begun, or with `wait` when it has ended. */
  run(task: string, options: { model: string; system?: string; maxSteps?: number; maxCostUsd?: string; approval?: "never" | "policy" | "always"; wait?: boolean }): Promise<Json> {
    return this.#http.json("POST", `${this.#path}/runs`, compact({ task, ...options, request: requestKey() }), { waits: options.wait === true });
  }

  approve(callId: string, verdict: "approved" | "denied", reason?: string): Promise<Json> {
    return this.#http.json("POST", `${this.#path}/approvals/${encodeURIComponent(callId)}`, compact({ verdict, reason }));
  }

  cancel(reason?: string): Promise<Json> {
    return this.#http.json("POST", `${this.#path}/cancel`, compact({ reason }));
  }

  undo(options: { force?: boolean; skip?: boolean } = {}): Promise<Json> {
    return this.#http.json("POST", `${this.#path}/undo`, compact({ ...options, request: requestKey() }));
  }

  redo(): Promise<Json> {
    return this.#http.json("POST", `${this.#path}/redo`, { request: requestKey() });
  }

  /** A text file of the session on the host, or null. */
  async file(path: string): Promise<string | null> {
    const { text } = await this.#http.json<{ text: string | null }>("GET", withQuery(`${this.#path}/files`, { path }));
    return text;
  }

  close(): void {
    this.#link?.close();
    this.#link = null;
  }
}
