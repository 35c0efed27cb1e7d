// One WebSocket per session, opened again whenever it breaks: events from the last seq on, what was not acknowledged once
// more under the same key, the lease, and words between those who share the session.
import type { ErrorCode, JsonValue, SessionEvent } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";
import { requestKey, type Http } from "./http.js";

const PROTOCOL = "sessionlog.v1";
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
const PING_MS = 20_000;
/** The word that says: look for yourself. */
const GROWN = { grown: 0 };

export interface Receipt { seq: number; id: string; at: number }
type NewEvent = { type: string; data: JsonValue };
interface Pending { key: string; events: readonly NewEvent[]; resolve(receipts: Receipt[]): void; reject(error: SessionLogError): void }
interface LeaseWait { answer(held: boolean): void }

type Incoming =
  | { t: "events"; events: SessionEvent[] }
  | { t: "live"; seq: number }
  | { t: "ack"; key: string; events: Receipt[] }
  | { t: "refused"; key?: string; code: ErrorCode; message: string }
  | { t: "lease"; held: boolean }
  | { t: "word"; word: JsonValue };

const base64Url = (text: string): string => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

export interface Tail { onEvent(event: SessionEvent): void; onLive?(seq: number): void }
export type LinkState = "connecting" | "open" | "closed";

export class Link {
  readonly id: string;
  #http: Http;
  #WebSocket: typeof WebSocket;
  #socket: WebSocket | null = null;
  #state: LinkState = "connecting";
  #wait = FIRST_PAUSE_MS;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #ping: ReturnType<typeof setInterval> | null = null;
  /** Nothing came since the last ping. */
  #silent = false;
  /** The last word that was given: the newest says all that is to be said. */
  #told: JsonValue = null;
  #tail: Tail | null = null;
  /** The next event that the tail has not seen. */
  #next = 0;
  /** The place that this connection was opened with. */
  #asked: number | null = null;
  /** Tells the host that a connection is the same client's again. */
  readonly #client = requestKey();
  #pending = new Map<string, Pending>();
  #wantsLease = false;
  #held = false;
  /** The host has said whether this client writes: what is asked after a reconnect is no first question. */
  #answered = false;
  #leaseWaits: LeaseWait[] = [];
  #onLead: (() => void) | null = null;
  readonly #onWord: (word: JsonValue) => void;
  readonly #onState: (state: LinkState, error?: SessionLogError) => void;

  constructor(id: string, http: Http, Socket: typeof WebSocket, onWord: (word: JsonValue) => void, onState: (state: LinkState, error?: SessionLogError) => void = () => {}) {
    this.id = id;
    this.#http = http;
    this.#WebSocket = Socket;
    this.#onWord = onWord;
    this.#onState = onState;
    void this.#open();
  }

  get state(): LinkState {
    return this.#state;
  }

  /** The next seq that is to come. */
  get next(): number {
    return this.#next;
  }

  // ---------------------------------------------------------------- the socket

  async #open(): Promise<void> {
    try {
      const token = await this.#http.token();
      if (this.#state === "closed") return;
      this.#asked = this.#tail === null ? null : this.#next;
      const address = `${this.#http.base.replace(/^http/, "ws")}/v1/sessions/${encodeURIComponent(this.id)}/socket?client=${this.#client}${this.#asked === null ? "" : `&from=${this.#asked}`}`;
      const socket = new this.#WebSocket(address, [PROTOCOL, `bearer.${base64Url(token)}`]);
      this.#socket = socket;
      const isThis = (): boolean => this.#socket === socket;
      socket.addEventListener("open", () => isThis() && this.#opened());
      socket.addEventListener("message", ({ data }) => isThis() && this.#take(data));
      socket.addEventListener("close", ({ code, reason }) => isThis() && this.#lost(code, reason));
      // A close follows.
      socket.addEventListener("error", () => {});
    } catch (thrown) {
      this.#lost(0, toError(thrown, "unavailable").message);
    }
  }

  #opened(): void {
    this.#state = "open";
    this.#wait = FIRST_PAUSE_MS;
    this.#onState("open");
    // Whoever wrote before says so: nobody else is to be let in between.
    if (this.#wantsLease) this.#send({ t: "lease", holds: this.#held, again: this.#answered });
    // Nobody knows whether it was heard; it may come twice.
    if (this.#told !== null) this.#send({ t: "tell", word: this.#told });
    if (this.#tail !== null && this.#asked === null) this.#send({ t: "tail", from: this.#next });
    for (const { key, events } of this.#pending.values()) this.#send({ t: "append", key, events });
    this.#silent = false;
    this.#ping = setInterval(() => this.#check(), PING_MS);
    (this.#ping as { unref?: () => void }).unref?.();
  }

  /** A connection whose other end is gone may say nothing of it for a long time: what gives no answer is ended here. */
  #check(): void {
    const socket = this.#socket;
    if (this.#silent) {
      this.#lost(1006, "the host gives no answer");
      return socket?.close();
    }
    this.#silent = true;
    socket?.send("ping");
  }

  #lost(code: number, reason: string): void {
    this.#socket = null;
    if (this.#ping !== null) clearInterval(this.#ping);
    if (this.#state === "closed") return;
    this.#state = "connecting";
    // Codes of our own: the host will not change its mind.
    if (code >= 4400 && code < 4500 && code !== 4429) return this.#end(new SessionLogError(code === 4404 ? "missing" : "blocked", reason, { code }));
    this.#onState("connecting", new SessionLogError("unavailable", `the connection ended: ${code} ${reason}`, { code }));
    this.#timer = setTimeout(() => void this.#open(), this.#wait * (0.5 + Math.random() / 2));
    this.#wait = Math.min(this.#wait * 2, LONGEST_PAUSE_MS);
  }

  #send(message: object): void {
    if (this.#state === "open") this.#socket?.send(JSON.stringify(message));
  }

  #take(data: unknown): void {
    this.#silent = false;
    if (typeof data !== "string" || data === "pong") return;
    const message = JSON.parse(data) as Incoming;
    switch (message.t) {
      case "events": return message.events.forEach((event) => this.#seen(event));
      case "live": return this.#tail?.onLive?.(message.seq);
      case "ack": return this.#settle(message.key, (pending) => pending.resolve(message.events));
      case "refused": {
        const error = new SessionLogError(message.code, message.message);
        // Not now: it is sent again with the next connection, or when asked to.
        if (message.code === "unavailable" && message.key !== undefined) return void setTimeout(() => this.#again(message.key as string), this.#wait);
        return this.#settle(message.key ?? "", (pending) => pending.reject(error));
      }
      case "lease": return this.#leased(message.held);
      case "word": return this.#onWord(message.word);
    }
  }

  #again(key: string): void {
    const pending = this.#pending.get(key);
    if (pending !== undefined) this.#send({ t: "append", key, events: pending.events });
  }

  #seen(event: SessionEvent): void {
    // A replay after a reconnect may overlap; the order of seqs is the host's.
    if (event.seq < this.#next) return;
    this.#next = event.seq + 1;
    this.#tail?.onEvent(event);
  }

  #settle(key: string, how: (pending: Pending) => void): void {
    const pending = this.#pending.get(key);
    this.#pending.delete(key);
    if (pending !== undefined) how(pending);
  }

  // ---------------------------------------------------------------- what is asked of it

  /** Events from `from` on: those that are there, then those that come. */
  tail(from: number, tail: Tail): void {
    this.#next = from;
    this.#tail = tail;
    if (this.#state !== "open") this.#asked = null;
    this.#send({ t: "tail", from });
  }

  untail(): void {
    this.#tail = null;
    this.#send({ t: "untail" });
  }

  /** In the order of the calls; resolves when the host has stored them. */
  append(events: readonly NewEvent[]): Promise<Receipt[]> {
    if (this.#state === "closed") return Promise.reject(new SessionLogError("disposed", "the connection was closed"));
    const key = requestKey();
    return new Promise((resolve, reject) => {
      this.#pending.set(key, { key, events, resolve, reject });
      this.#send({ t: "append", key, events });
    });
  }

  get unacknowledged(): number {
    return this.#pending.size;
  }

  tell(word: JsonValue): void {
    this.#told = word;
    this.#send({ t: "tell", word });
  }

  /** Asks for the lease, and waits up to `waitMs` for it once the host has answered. */
  async lease(waitMs: number, onLead: () => void): Promise<boolean> {
    this.#wantsLease = true;
    this.#onLead = onLead;
    const answered = new Promise<boolean>((resolve) => this.#leaseWaits.push({ answer: resolve }));
    this.#send({ t: "lease", holds: false });
    if (await answered) return true;
    if (waitMs <= 0) return false;
    const granted = new Promise<boolean>((resolve) => (this.#onLead = () => resolve(true)));
    const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), waitMs));
    const won = await Promise.race([granted, late]);
    this.#onLead = won ? null : onLead;
    return won;
  }

  #leased(held: boolean): void {
    const waits = this.#leaseWaits.splice(0);
    // From here on words arrive again; those given while it was away did not.
    if (this.#answered && !held) this.#onWord(GROWN);
    this.#answered = true;
    const before = this.#held;
    this.#held = held;
    if (waits.length > 0) return waits.forEach(({ answer }) => answer(held));
    // Lost while it was away: the next write conflicts, takes over and goes behind the other's.
    if (held && !before) this.#onLead?.();
  }

  release(): void {
    this.#wantsLease = false;
    this.#held = false;
    this.#answered = false;
    this.#onLead = null;
    this.#told = null;
    this.#send({ t: "release" });
  }

  get idle(): boolean {
    return this.#tail === null && !this.#wantsLease && this.#pending.size === 0;
  }

  close(): void {
    if (this.#state !== "closed") this.#end(new SessionLogError("disposed", "the connection was closed"));
  }

  #end(error: SessionLogError): void {
    this.#state = "closed";
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#ping !== null) clearInterval(this.#ping);
    this.#socket?.close(1000, "done");
    this.#socket = null;
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
    for (const { answer } of this.#leaseWaits.splice(0)) answer(false);
    this.#onState("closed", error);
  }
}
