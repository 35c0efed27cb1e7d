// One WebSocket per session, opened again whenever it breaks: events from the last seq on, what was not acknowledged once
// more under the same key, the lease, and words between those who share the session.
import type { ErrorCode, JsonValue, SessionEvent } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";
import { codeOf, inTime, requestKey, type Http } from "./http.js";

const PROTOCOL = "sessionlog.v1";
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
const PING_MS = 20_000;
/** How long what the host puts off waits, at first and at most. */
const PUT_OFF_MS = 100;
const LONGEST_PUT_OFF_MS = 2_000;
/** The word that says: look for yourself. */
const GROWN = { grown: 0 };

export interface Receipt { seq: number; id: string; at: number }
type NewEvent = { type: string; data: JsonValue };
interface Pending { key: string; events: readonly NewEvent[]; resolve(receipts: Receipt[]): void; reject(error: SessionLogError): void }
interface LeaseWait { answer(held: boolean): void; refuse(error: SessionLogError): void }

type Incoming =
  | { t: "events"; events: SessionEvent[] }
  | { t: "live"; seq: number }
  | { t: "ack"; key: string; events: Receipt[] }
  | { t: "refused"; re?: string; key?: string; code: ErrorCode; message: string }
  | { t: "lease"; held: boolean }
  | { t: "word"; word: JsonValue };

const base64Url = (text: string): string => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

export interface Tail { onEvent(event: SessionEvent): void; onLive?(seq: number): void }
export type LinkState = "connecting" | "open" | "closed";

/** A listener's failure is its own: what comes behind is delivered all the same. */
export function deliver(work: () => unknown): void {
  const report = (thrown: unknown): void => console.error("a listener of a remote session failed", thrown);
  try {
    const answer = work();
    if (answer instanceof Promise) answer.catch(report);
  } catch (thrown) {
    report(thrown);
  }
}

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
  /** Those of them that are not on their way, in their order. */
  #unsent: Pending[] = [];
  #underWay = 0;
  /** How many may be on their way: after one was put off as few as it takes. */
  #window = Infinity;
  /** What the host put off: it is asked again a little later. */
  #putOff = new Set<string>();
  #putOffMs = PUT_OFF_MS;
  #putOffTimer: ReturnType<typeof setTimeout> | null = null;
  /** It is being asked why no connection opens. */
  #isLooking = false;
  #wantsLease = false;
  #held = false;
  /** The host has said whether this client writes: what is asked after a reconnect is no first question. */
  #answered = false;
  /** Its answer was not waited for: words that were given meanwhile did not arrive. */
  #isLate = false;
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
    deliver(() => this.#onState("open"));
    this.#forgetPutOff();
    this.#ask("lease");
    // Nobody knows whether it was heard; it may come twice.
    this.#ask("tell");
    if (this.#asked === null) this.#ask("tail");
    this.#ask("append");
    this.#silent = false;
    this.#ping = setInterval(() => this.#check(), PING_MS);
    (this.#ping as { unref?: () => void }).unref?.();
  }

  /** Says (once more) what is wanted of the host, if it still is. */
  #ask(what: string): void {
    switch (what) {
      // Whoever wrote before says so: nobody else is to be let in between.
      case "lease": return this.#wantsLease ? this.#send({ t: "lease", holds: this.#held, again: this.#answered }) : undefined;
      case "release": return this.#wantsLease ? undefined : this.#send({ t: "release" });
      case "tell": return this.#told === null ? undefined : this.#send({ t: "tell", word: this.#told });
      case "tail": return this.#tail === null ? undefined : this.#send({ t: "tail", from: this.#next });
      case "untail": return this.#tail === null ? this.#send({ t: "untail" }) : undefined;
      case "append":
        this.#unsent = [...this.#pending.values()];
        this.#underWay = 0;
        return this.#sendAppends();
    }
  }

  #later(what: string): void {
    this.#putOff.add(what);
    this.#putOffTimer ??= setTimeout(() => {
      const asked = [...this.#putOff];
      this.#forgetPutOff();
      for (const one of asked) this.#ask(one);
    }, this.#putOffMs);
    (this.#putOffTimer as { unref?: () => void }).unref?.();
  }

  #forgetPutOff(): void {
    if (this.#putOffTimer !== null) clearTimeout(this.#putOffTimer);
    this.#putOffTimer = null;
    this.#putOff.clear();
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
    const wasOpen = this.#state === "open";
    this.#state = "connecting";
    this.#forgetPutOff();
    // Codes of our own: the host will not change its mind.
    if (code >= 4400 && code < 4500 && code !== 4429) return this.#end(new SessionLogError(codeOf(code - 4000), reason, { code }));
    deliver(() => this.#onState("connecting", new SessionLogError("unavailable", `the connection ended: ${code} ${reason}`, { code })));
    // A listener may have ended it.
    if ((this.#state as LinkState) === "closed") return;
    if (!wasOpen) void this.#look();
    this.#timer = setTimeout(() => void this.#open(), this.#wait * (0.5 + Math.random() / 2));
    this.#wait = Math.min(this.#wait * 2, LONGEST_PAUSE_MS);
  }

  /** A WebSocket that the host refuses does not say why, so the same is asked without one. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const why = await this.#http.whyNot(`/v1/sessions/${encodeURIComponent(this.id)}`).catch(() => null);
    this.#isLooking = false;
    if (why === null || this.#state !== "connecting") return;
    // Who asks for the lease may be about to make the session.
    if (why.code !== "missing" || !this.#wantsLease) this.#end(why);
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
      case "live": return deliver(() => this.#tail?.onLive?.(message.seq));
      case "ack": return this.#settle(message.key, (pending) => pending.resolve(message.events));
      case "refused": return this.#refused(message);
      case "lease": return this.#leased(message.held);
      case "word": return deliver(() => this.#onWord(message.word));
    }
  }

  #refused({ re = "append", key = "", code, message }: Extract<Incoming, { t: "refused" }>): void {
    const error = new SessionLogError(code, message);
    const isPassing = code === "unavailable";
    if (re === "append") {
      if (!isPassing) return this.#settle(key, (pending) => pending.reject(error));
      if (!this.#pending.has(key) || this.#putOff.has(re)) return;
      // The host takes none of those behind it before it has this one: they wait here, so that they stay in their order.
      this.#window = 1;
      this.#later(re);
      this.#putOffMs = Math.min(2 * this.#putOffMs, LONGEST_PUT_OFF_MS);
    } else if (isPassing) this.#later(re);
    else if (re === "lease") this.#leased(false);
    else if (re === "tail") this.#end(error);
  }

  #seen(event: SessionEvent): void {
    // A replay after a reconnect may overlap; the order of seqs is the host's.
    if (event.seq < this.#next) return;
    this.#next = event.seq + 1;
    deliver(() => this.#tail?.onEvent(event));
  }

  #settle(key: string, how: (pending: Pending) => void): void {
    const pending = this.#pending.get(key);
    if (pending === undefined) return;
    this.#pending.delete(key);
    how(pending);
    this.#underWay = Math.max(0, this.#underWay - 1);
    this.#window++;
    this.#putOffMs = PUT_OFF_MS;
    this.#sendAppends();
  }

  #sendAppends(): void {
    if (this.#state !== "open" || this.#putOff.has("append")) return;
    while (this.#underWay < this.#window) {
      const next = this.#unsent.shift();
      if (next === undefined) return;
      // One that was sent twice may have been answered meanwhile.
      if (!this.#pending.has(next.key)) continue;
      this.#underWay++;
      this.#send({ t: "append", key: next.key, events: next.events });
    }
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
      const pending = { key, events, resolve, reject };
      this.#pending.set(key, pending);
      // What is there when a connection opens is sent then.
      if (this.#state !== "open") return;
      this.#unsent.push(pending);
      this.#sendAppends();
    });
  }

  get unacknowledged(): number {
    return this.#pending.size;
  }

  tell(word: JsonValue): void {
    this.#told = word;
    this.#send({ t: "tell", word });
  }

  /**
   * Asks for the lease, and waits up to `waitMs` for it. Where the host gives no answer in time, who wants to wait is refused with
   * `unavailable`; who does not follows, and leads as soon as the host lets it.
   */
  async lease(waitMs: number, onLead: () => void): Promise<boolean> {
    if (this.#state === "closed") throw new SessionLogError("disposed", "the connection was closed");
    this.#wantsLease = true;
    this.#onLead = onLead;
    let wait: LeaseWait | undefined;
    const answered = new Promise<boolean>((answer, refuse) => this.#leaseWaits.push((wait = { answer, refuse })));
    this.#send({ t: "lease", holds: false });
    const held = await inTime(answered, waitMs > 0 ? waitMs : this.#http.patienceMs);
    if (held === null) {
      this.#leaseWaits = this.#leaseWaits.filter((other) => other !== wait);
      if (waitMs > 0) throw new SessionLogError("unavailable", "the host did not say in time who writes the session", { id: this.id });
      this.#isLate = true;
      return false;
    }
    if (held) return true;
    if (waitMs <= 0) return false;
    const granted = new Promise<boolean>((resolve) => (this.#onLead = () => resolve(true)));
    const won = (await inTime(granted, waitMs)) === true;
    this.#onLead = won ? null : onLead;
    return won;
  }

  #leased(held: boolean): void {
    const waits = this.#leaseWaits.splice(0);
    // From here on words arrive again; those given while it was away did not.
    if ((this.#answered || this.#isLate) && !held) deliver(() => this.#onWord(GROWN));
    this.#answered = true;
    this.#isLate = false;
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
    this.#isLate = false;
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
    this.#forgetPutOff();
    if (this.#ping !== null) clearInterval(this.#ping);
    this.#socket?.close(1000, "done");
    this.#socket = null;
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
    this.#unsent = [];
    for (const { refuse } of this.#leaseWaits.splice(0)) refuse(error);
    deliver(() => this.#onState("closed", error));
  }
}
