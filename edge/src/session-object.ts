// One object per session: its log, record and files in the object's own SQLite, written through the package.
import { DurableObject } from "cloudflare:workers";
import { SessionLogError, SessionStore, type JsonValue, type KeyValueBackend, type Session, type SessionEvent } from "sessionlog";
import { durableObjectBackend } from "sessionlog/durable-object";
import { readAddress, type Address } from "./address.js";
import { PROTOCOL } from "./auth.js";
import { decoded, eventsOf, numberFrom, optionalText, parseJson, readBody, textOf, type Json } from "./body.js";
import { storeAt, withElsewhere } from "./elsewhere.js";
import { limitsOf, type Env, type Limits } from "./env.js";
import type { IndexAnswer, IndexObject } from "./index-object.js";
import { checkOwn } from "./keys.js";
import { answerRead, readRequest, written, type Batch, type KvRequest } from "./kv.js";
import { Leases } from "./leases.js";
import { Live, pageOf } from "./live.js";
import { Bucket, tooMany } from "./rate.js";
import { answerOf, readsOnly, Refusal, refusalOf } from "./refusal.js";
import { Once, type Marks } from "./once.js";
import { printOf, Requests, type Carried } from "./requests.js";
import { start } from "./start.js";
import { attachmentOf, setAttachment, type Attachment } from "./sockets.js";
import { Tasks, type Opened } from "./tasks.js";
import { answerIn, outcome, Together, type Outcome } from "./together.js";

/** The index hears of a change after this; of those that follow at once, after longer: every report is two writes to disk. */
const REPORT_MS = 500;
const NEXT_REPORT_MS = 5_000;
const PAGE = 1_000;
const PAGE_BYTES = 4 * 1024 * 1024;
/** The receipts of more do not fit into one row. */
const MOST_KEYED = 20_000;
/** What a value takes beside its own length: its key, its place in a page. */
const BESIDE = 512;
/** A page of the database may be half empty. */
const STORED_TWICE = 2;
const WRITE_TURNS = 32;
const CLIENT_LENGTH = 128;
const TABLE = "sessionlog_kv";

/** Events that somebody wants to be appended. */
interface Asked { events: NewEvents; bytes: number; key: string | null; print: string }
/** Receipts, as JSON: `[{seq, id, at}, ...]`. */
interface Appended { text: string; replayed: boolean }
type GivenBatch = Parameters<KeyValueBackend["transact"]>[0];
type NewEvents = Array<{ type: string; data: JsonValue }>;

const tooManyEvents = (limit: number): Refusal => new Refusal(507, "quota", `a session has at most ${limit} events: continue it in another`);

const jsonOf = (text: string): Response => new Response(text, { headers: { "content-type": "application/json" } });

const NO_QUERY = new URLSearchParams();
const LINE = new TextEncoder().encode('{"seq":');
const NEWLINE = 10;

/** Lines of a segment; none where it does not begin with one. */
function countLines(segment: Uint8Array): number {
  if (!LINE.every((byte, at) => segment[at] === byte)) return 0;
  let count = 0;
  for (let at = segment.indexOf(NEWLINE); at >= 0; at = segment.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

/** How messages of our own client begin: enough to say which one was too long. */
const BEGINNING = /^\{"t":"(?<re>\w+)"(?:,"key":"(?<key>[\x21\x23-\x5b\x5d-\x7e]{1,128})")?/;

export class SessionObject extends DurableObject<Env> {
  readonly #limits: Limits;
  readonly #database: KeyValueBackend;
  readonly #requests: Requests;
  readonly #once: Once;
  readonly #live: Live;
  readonly #leases: Leases;
  readonly #tasks: Tasks;
  readonly #appends = new Together<Asked, Appended>((work) => this.#serial(work), (all) => this.#append(all));
  readonly #bucket: Bucket;
  readonly #since = Date.now();
  /** Owner and id: the object learns them with its first request and keeps them for alarms. */
  #owner = "";
  #id = "";
  /** Who wrote the log last: "host" or "client". */
  #writer = "";
  #store: SessionStore | null = null;
  #session: Session | null = null;
  #opening: Promise<Session> | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #willReport = false;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { storage } = ctx;
    this.#limits = limitsOf(env);
    this.#database = durableObjectBackend({ sql: storage.sql, transactionSync: (work) => this.#atomically(work) }, { table: TABLE });
    this.#requests = new Requests(storage.sql, TABLE);
    this.#once = new Once(this.#requests, async (turnAt) => this.#tasks.outcome(await this.#open(), turnAt));
    storage.sql.exec("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID");
    for (const { name, value } of storage.sql.exec<{ name: string; value: string }>("SELECT name, value FROM facts")) {
      if (name === "owner") this.#owner = value;
      if (name === "id") this.#id = value;
      if (name === "writer") this.#writer = value;
    }
    const sockets = (): WebSocket[] => ctx.getWebSockets();
    this.#live = new Live(sockets);
    this.#leases = new Leases(sockets, (socket, message) => this.#live.send(socket, message), () => this.#yield(), () => this.#grown());
    this.#tasks = new Tasks(env, storage.sql, this.#backend(), () => void this.#serial(() => this.#leases.next()));
    this.#bucket = new Bucket(this.#limits.callsPerSecond);
    // Answered without waking the object.
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }

  /**
   * The package's backend, with what belongs to a batch in the same transaction. Not `sync`: a call of many events is then one
   * segment instead of many; nothing is acknowledged before `flush`.
   */
  #backend(): KeyValueBackend {
    const { sync: _, ...rest } = this.#database;
    const own: KeyValueBackend = {
      ...rest,
      peers: {
        lease: (id, waitMs, onLead) => this.#leases.peers.lease(id, waitMs, onLead),
        tell: (id, word) => this.#leases.peers.tell(id, word),
        hear: (listener) => this.#leases.peers.hear(listener),
      },
      transact: (batch) => {
        const puts = (start: string): boolean => batch.puts?.some(([key]) => key.startsWith(start)) === true;
        // Files, runs and merges are written through here too: the key belongs to the batch that puts the events where nothing was.
        const isNew = (key: string): boolean => batch.checks?.some((check) => check.key === key && check.equals === null) === true;
        const isFirst = (key: string): boolean => key === `s/${this.#id}/h` || (key.startsWith(`s/${this.#id}/e/`) && isNew(key));
        const requests = batch.puts?.some(([key]) => isFirst(key)) === true ? this.#once.takeUnstored() : [];
        try {
          this.#write(batch, puts("r/"), requests);
        } catch (thrown) {
          this.#once.giveBack(requests);
          throw thrown;
        }
      },
    };
    const { SESSIONS } = this.env;
    return withElsewhere(own, {
      ownId: () => this.#id,
      index: (request) => this.#index().ask(request) as Promise<unknown> as Promise<IndexAnswer>,
      session: (id) => storeAt(SESSIONS.get(SESSIONS.idFromName(`${this.#owner}/${id}`)), this.#owner, id),
    });
  }

  /** Nearly every append is one new value and its key: one statement stores them. False where it is more, or that failed: the usual way says why. */
  #storeAtOnce({ checks = [], puts = [], deletes = [] }: GivenBatch, [request, ...others]: Carried[]): boolean {
    const [check, put] = [checks[0], puts[0]];
    if (request === undefined || check === undefined || put === undefined || others.length + deletes.length > 0 || checks.length + puts.length > 2) return false;
    return check.equals === null && check.key === put[0] && this.#requests.addWith(check.key, put[1], request);
  }

  #write(batch: GivenBatch, changesRecord: boolean, requests: Carried[]): void {
    this.#takeRoom(batch.puts ?? [], requests);
    if (!this.#storeAtOnce(batch, requests)) {
      this.#atomically(() => {
        void this.#database.transact(batch);
        for (const request of requests) this.#requests.add(request);
      });
    }
    if (changesRecord) this.#reportSoon();
  }

  /** All that `work` does, or nothing; inside another one it is a part of that. */
  #atomically<T>(work: () => T): T {
    if (this.#isInside) return work();
    this.#isInside = true;
    try {
      return this.ctx.storage.transactionSync(work);
    } finally {
      this.#isInside = false;
    }
  }
  #isInside = false;

  // ---------------------------------------------------------------- opening and letting go

  /** One at a time, in the order of arrival. */
  #serial<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#turn.then(work);
    this.#turn = next.catch(() => {});
    return next;
  }

  /** The session: as writer where no client writes it, else as one who follows. */
  #open(): Promise<Session> {
    if (this.#session !== null) return Promise.resolve(this.#session);
    this.#opening ??= this.#load().finally(() => (this.#opening = null));
    return this.#opening;
  }

  async #openStore(): Promise<SessionStore> {
    start();
    if (this.#store === null) {
      const onWarning = ({ code, message }: { code: string; message: string }): void => console.warn(`${this.#id}: ${code}: ${message}`);
      const store = await SessionStore.open({ storage: { kind: "custom", backend: this.#backend() }, scrubbers: [{ builtin: "secrets" }], onWarning });
      store.on("session/event", (event: SessionEvent, session: Session) => {
        if (session.readOnly) this.#grown();
        else this.#once.mark(event);
      });
      this.#store = store;
    }
    return this.#store;
  }

  async #load(): Promise<Session> {
    const store = await this.#openStore();
    let session = await store.resume(this.#id, { recover: this.#tasks.recover });
    if (!session.readOnly && this.#tasks.recover === "ask" && !this.#tasks.waits(session)) {
      // A task was cut off in its work, by a crash: its turn is closed, honestly.
      this.#tasks.forget();
      await session.dispose();
      session = await store.resume(this.#id, { recover: "close" });
      await session.flush();
    }
    this.#session = session;
    return session;
  }

  /** The session to be written by the host; `locked` while a client writes it. */
  async #lead(): Promise<Session> {
    const session = await this.#open();
    if (!session.readOnly) return session;
    if (this.#leases.heldByClient) throw new Refusal(423, "locked", "a client writes this session: it must let go first");
    await this.#close();
    return this.#open();
  }

  async #opened(): Promise<Opened> {
    const session = await this.#lead();
    return { store: await this.#openStore(), session };
  }

  async #close(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    await this.#tasks.drop();
    await session?.dispose();
  }

  /** Somebody else is to write. */
  async #yield(): Promise<boolean> {
    if (this.#tasks.isRunning) return false;
    if (this.#session?.readOnly === false) await this.#close();
    return true;
  }

  /** After a fault nothing in memory is trusted; what is stored is whole. */
  #forget(): void {
    this.#session = null;
    this.#store = null;
    this.#once.forget();
    void this.#tasks.drop().catch(() => {});
  }

  #grown(): void {
    if (this.#session !== null) this.#live.pumpAll(this.#session);
  }

  // ---------------------------------------------------------------- the index

  #index(): DurableObjectStub<IndexObject> {
    const { INDEXES } = this.env;
    return INDEXES.get(INDEXES.idFromName(this.#owner)) as DurableObjectStub<IndexObject>;
  }

  /** With the change itself, so that the word arrives whatever happens in between. */
  #reportSoon(): void {
    if (this.#willReport) return;
    this.#willReport = true;
    const isFirst = Date.now() - this.#reported > 2 * NEXT_REPORT_MS;
    void this.ctx.storage.setAlarm(Date.now() + (isFirst ? REPORT_MS : NEXT_REPORT_MS));
  }
  #reported = 0;

  override async alarm(): Promise<void> {
    await this.#settleRecord().catch((thrown: unknown) => console.warn(`${this.#id}: ${refusalOf(thrown).message}`));
    // Not while a session is made or deleted: what is true then is not yet what will be.
    await this.#serial(() => this.#report());
  }

  async #report(): Promise<void> {
    this.#willReport = false;
    this.#reported = Date.now();
    const read = (key: string): Uint8Array | null => this.#database.get(key) as Uint8Array | null;
    const store = await this.#openStore();
    const summary = (await store.sessions({ includeArchived: true })).find(({ id }) => id === this.#id) ?? null;
    await this.#index().report(this.#id, { header: read(`s/${this.#id}/h`), record: read(`r/${this.#id}`), format: read("m/format"), summary });
  }

  /** The record is written a little later than the events; after a crash it may have missed some. */
  async #settleRecord(): Promise<void> {
    // What a client wrote is a client's to bring up to date; a session that was deleted has no record.
    if (this.#writer !== "host" || this.#leases.heldByClient || this.#database.get(`r/${this.#id}`) === null) return;
    await this.#serial(async () => {
      const session = await this.#open();
      if (!session.readOnly) await session.flush();
    });
  }

  /** `make` stores a session that was not there; when it fails, nothing of it stays in the index. */
  async #reserved<T>(header: Uint8Array | null, make: () => Promise<T>): Promise<T> {
    // Should this be cut off, the index is told what became of it.
    this.#reportSoon();
    const { refused } = await this.#index().reserve(this.#id, header);
    if (refused !== null) throw new Refusal(refused.code === "quota" ? 507 : 404, refused.code, refused.message);
    try {
      return await make();
    } catch (thrown) {
      await this.#report();
      throw thrown;
    }
  }

  #checkRoom(session: Session, more = 0, pending = 0): void {
    const { eventsPerSession } = this.#limits;
    if (session.seq + more > eventsPerSession) throw tooManyEvents(eventsPerSession);
    this.#checkSize(pending);
  }

  /** `pending`: bytes that are on their way into the database. */
  #checkSize(pending = 0): void {
    const { bytesPerSession } = this.#limits;
    // Looking at the size costs as much as storing an event: it is time when the room that there was may be taken.
    if (this.#room > STORED_TWICE * pending) return;
    const { databaseSize } = this.ctx.storage.sql;
    if (databaseSize + pending > bytesPerSession) throw new Refusal(507, "quota", `a session has at most ${bytesPerSession} bytes: continue it in another`);
    this.#room = bytesPerSession - databaseSize;
  }
  /** Bytes that can surely be stored before the size must be looked at again. */
  #room = 0;

  #takeRoom(puts: ReadonlyArray<[string, Uint8Array]>, requests: readonly Carried[]): void {
    for (const [, value] of puts) this.#room -= STORED_TWICE * (value.length + BESIDE);
    for (const { answer } of requests) this.#room -= STORED_TWICE * (answer.length + BESIDE);
  }

  /** What a client adds to the log counts like what the host does; of what is encrypted, the place where it begins. */
  #checkEvents({ checks, puts }: Batch): void {
    const { eventsPerSession } = this.#limits;
    for (const { key, equals } of checks) {
      const [, first] = /^s\/[^/]+\/e\/(\d+)$/.exec(key) ?? [];
      if (first === undefined || equals !== null) continue;
      const lines = puts.find(([name]) => name === key)?.[1] ?? new Uint8Array();
      if (Number(first) + Math.max(1, countLines(lines)) > eventsPerSession) throw tooManyEvents(eventsPerSession);
    }
  }

  // ---------------------------------------------------------------- requests

  override async fetch(request: Request): Promise<Response> {
    try {
      if (!this.#bucket.take()) throw tooMany();
      const address = readAddress(request.url);
      this.#know(address);
      return await this.#answer(request, address);
    } catch (thrown) {
      if (thrown instanceof SessionLogError && thrown.code === "poisoned") this.#forget();
      return answerOf(thrown);
    }
  }

  #know({ owner, id }: Address): void {
    if (this.#id === id && this.#owner === owner) return;
    for (const [name, value] of [["owner", owner], ["id", id]] as const) this.ctx.storage.sql.exec("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", name, value);
    this.#owner = owner;
    this.#id = id;
  }

  #wroteLast(writer: "host" | "client"): void {
    if (this.#writer === writer) return;
    this.ctx.storage.sql.exec("INSERT OR REPLACE INTO facts (name, value) VALUES ('writer', ?)", writer);
    this.#writer = writer;
  }

  async #answer(request: Request, { canWrite, rest }: Address): Promise<Response> {
    const at = rest.indexOf("?");
    const [path, search] = at < 0 ? [rest, ""] : [rest.slice(0, at), rest.slice(at)];
    const [what = "", argument = ""] = path.split("/").slice(1).map(decoded);
    const query = search === "" ? NO_QUERY : new URLSearchParams(search);
    // The door refused that already, of all but batches of keys, which may be reads.
    if (!canWrite && request.method !== "GET" && what !== "kv") throw readsOnly();
    switch (`${request.method} ${what}`) {
      case "GET socket": return this.#connect(request, query, canWrite);
      case "POST kv": return this.#kv(readRequest(await readBody(request, this.#limits.bodyBytes)), canWrite);
      case "GET ": return Response.json(await this.#info());
      case "GET events": return this.#read(numberFrom(query, "from", 0), numberFrom(query, "limit", PAGE, PAGE));
      case "GET messages": return Response.json({ messages: (await this.#open()).deriveMessages() });
      case "GET runs": return Response.json({ runs: await (await this.#openStore()).runs.listRuns({ sessionId: this.#id, limit: numberFrom(query, "limit", 50, 500) }) });
      case "GET files": return Response.json(await this.#files(query.get("path")));
      case "DELETE ": return Response.json(await this.#once.carryOut(request.headers.get("idempotency-key"), printOf("delete", new Uint8Array()), () => this.#serial(() => this.#delete())));
    }
    if (request.method !== "POST") throw new Refusal(404, "not_found", "there is no such path");
    const read = async (): Promise<{ json: Json; bytes: number; key: string | null; print: string }> => {
      const bytes = await readBody(request, this.#limits.bodyBytes);
      const json = parseJson(bytes);
      return { json, bytes: bytes.length, key: request.headers.get("idempotency-key") ?? optionalText(json, "request") ?? null, print: printOf(what, bytes) };
    };
    if (what === "events") {
      const { text, replayed } = await this.#appends.ask(async () => {
        const { json, ...rest } = await read();
        return { ...rest, events: eventsOf(json, this.#limits.eventsPerCall) };
      });
      return jsonOf(`{"events":${text},"seq":${this.#session?.seq ?? 0},"replayed":${replayed}}`);
    }
    const { json, key, print } = await read();
    const once = async (work: () => Promise<Json>, status = 200): Promise<Response> => Response.json(await this.#once.carryOut(key, print, work), { status });
    const begins = (marks: Marks): void => this.#once.begin(key, print, marks);
    switch (what) {
      case "": return once(() => this.#create(json, key === null ? null : { key, print }), 201);
      case "runs": return once(() => this.#run(json, begins), 202);
      case "steer": return once(() => this.#serial(async () => (await this.#tasks.steer(await this.#opened(), textOf(json, "text")), {})));
      case "cancel": return Response.json({ cancelled: await this.#tasks.cancel(await this.#opened(), optionalText(json, "reason")) });
      case "approvals": return Response.json(await this.#serial(() => this.#approve(argument, json)));
      case "undo":
      case "redo": return once(() => this.#serial(async () => {
        const opened = await this.#opened();
        begins(({ type }) => (type === "undo/applied" || type === "undo/redone" ? { ok: true, messages: [] } : null));
        return this.#tasks.back(opened, what, json);
      }));
    }
    throw new Refusal(404, "not_found", "there is no such path");
  }

  async #create(json: Json, carried: Pick<Carried, "key" | "print"> | null): Promise<Json> {
    const [title, cwd] = [optionalText(json, "title"), optionalText(json, "cwd")];
    return this.#serial(async () => {
      if (this.#database.get(`s/${this.#id}/h`) !== null) throw new Refusal(409, "already_exists", "the session exists");
      return this.#reserved(null, async () => {
        const store = await this.#openStore();
        try {
          const session = store.create(this.#id, cwd === undefined ? {} : { meta: { cwd } });
          if (title !== undefined) session.setTitle(title);
          if (carried !== null) this.#once.store({ ...carried, answer: JSON.stringify({ id: session.id, seq: session.seq }) });
          await session.flush();
          this.#session = session;
          return { id: session.id, seq: session.seq };
        } catch (thrown) {
          // The session may be there and its title not: who asks again with a better one is to get a session.
          this.#once.takeUnstored();
          if (store.get(this.#id) !== undefined) await store.delete(this.#id);
          throw thrown;
        }
      });
    });
  }

  async #info(): Promise<Json> {
    const session = await this.#open();
    const { id, seq, durableSeq, title } = session;
    const writer = this.#leases.heldByClient ? "client" : "host";
    return { id, seq, durableSeq, title, awakeSince: this.#since, running: this.#tasks.isRunning, writer, usage: session.usage() as unknown as JsonValue, pendingCalls: session.pendingCalls() };
  }

  async #read(from: number, limit: number): Promise<Response> {
    const session = await this.#open();
    const { texts, next } = pageOf(session, from, Math.min(session.durableSeq, from + limit), PAGE_BYTES);
    const more = next < session.durableSeq && next > from;
    return jsonOf(`{"events":[${texts.join()}],"next":${next},"more":${more}}`);
  }

  async #files(path: string | null): Promise<Json> {
    await this.#open();
    const files = await this.#tasks.files();
    if (path === null) return { files: files.walk("/").map(({ path: name, type, size, mtimeMs }) => ({ path: name, type, size, mtimeMs })) };
    return { text: files.exists(path) ? files.readText(path) : null };
  }

  async #delete(): Promise<Json> {
    if (this.#tasks.isRunning) throw new Refusal(409, "busy", "a task is running in this session: cancel it first");
    await this.#lead();
    // Should this be cut off, the index is told what became of it.
    this.#reportSoon();
    const isFree = await this.#index().letGo(this.#id);
    await this.#close();
    const header = this.#database.get(`s/${this.#id}/h`) as Uint8Array;
    if (!isFree) {
      // Forks read their first events here: the log stays until they go.
      const gone = new TextEncoder().encode(JSON.stringify({ ...(JSON.parse(new TextDecoder().decode(header)) as Json), gone: true }));
      void this.#database.transact({ puts: [[`s/${this.#id}/h`, gone]], deletes: [`r/${this.#id}`] });
    } else {
      await (await this.#openStore()).delete(this.#id);
    }
    for (const socket of this.ctx.getWebSockets()) socket.close(4404, "the session was deleted");
    this.#forget();
    await this.#report();
    return { deleted: true };
  }

  /** All of the events of each or none, once per key, on disk when this is answered. What keeps one from being stored keeps all. */
  async #append(all: readonly Asked[]): Promise<Array<Outcome<Appended>>> {
    // Who asks again is answered, whoever writes the session now.
    const led = await this.#lead().then((answer) => ({ answer }), (thrown: unknown) => ({ thrown }));
    let pending = 0;
    const outcomes = all.map((asked) => outcome(() => {
      const known = this.#known(asked);
      if (known !== null) return known;
      const appended = this.#appendOne(answerIn(led), asked, pending);
      pending += asked.bytes;
      return appended;
    }));
    if ("thrown" in led) return outcomes;
    try {
      await this.#stored(led.answer);
    } catch (thrown) {
      this.#forget();
      throw thrown;
    }
    this.#reportSoon();
    return outcomes;
  }

  #known({ key, print }: Asked): Appended | null {
    const text = key === null ? null : this.#once.find(key, print);
    return text === null ? null : { text, replayed: true };
  }

  #appendOne(session: Session, { events, key, print }: Asked, pending: number): Appended {
    if (key !== null && events.length > MOST_KEYED) throw new Refusal(413, "quota", `a call with an idempotency key has at most ${MOST_KEYED} events`);
    this.#checkRoom(session, events.length, pending);
    this.#wroteLast("host");
    const text = JSON.stringify(session.appendAll(events).map(({ seq, id, at }) => ({ seq, id, at })));
    if (key !== null) this.#once.store({ key, print, answer: text });
    return { text, replayed: false };
  }

  /**
   * Everything that was appended is in the database. Its write is under way and ends within a few turns, since the database
   * answers at once; `flush` is for what can wait, and would write the session's record every time as well.
   */
  async #stored(session: Session): Promise<void> {
    for (let turn = 0; turn < WRITE_TURNS && session.durableSeq < session.seq; turn++) await null;
    if (session.durableSeq < session.seq) await session.flush();
  }

  async #run(json: Json, begins: (marks: Marks) => void): Promise<Json> {
    const waits = json["wait"] === true;
    const started = await this.#serial(async () => {
      const opened = await this.#opened();
      this.#checkRoom(opened.session);
      // Another one may not have begun its turn yet.
      if (!this.#tasks.isRunning) begins(({ type, seq }) => (type !== "turn/start" ? null : waits ? { turnAt: seq } : { from: seq }));
      return this.#tasks.start(opened, json);
    });
    if (waits) return started.done;
    this.ctx.waitUntil(started.done.catch((thrown: unknown) => console.error(thrown)));
    return { from: started.from };
  }

  async #approve(callId: string, json: Json): Promise<Json> {
    const verdict = textOf(json, "verdict");
    if (verdict !== "approved" && verdict !== "denied") throw new Refusal(400, "invalid_argument", "verdict must be approved or denied");
    // While a client drives the turn the verdict is passed on to it.
    const session = await this.#open();
    const opened = session.readOnly && this.#leases.heldByClient ? { store: await this.#openStore(), session } : await this.#opened();
    await this.#tasks.resolve(opened, callId, verdict, optionalText(json, "reason"));
    return {};
  }

  // ---------------------------------------------------------------- clients that keep their sessions here

  async #kv(asked: KvRequest, mayWrite: boolean): Promise<Response> {
    checkOwn(asked, this.#id);
    if (asked.op !== "transact") return answerRead(asked, this.#database, this.#limits.bodyBytes);
    if (!mayWrite) throw readsOnly();
    return this.#serial(() => this.#transact(asked));
  }

  async #transact({ batch, request }: Extract<KvRequest, { op: "transact" }>): Promise<Response> {
    if (this.#requests.find(request, "kv") !== null) return written();
    const keys = [...batch.puts.map(([key]) => key), ...batch.deletes];
    const ofLog = keys.some((key) => key.startsWith("s/"));
    if (ofLog && this.#tasks.isRunning) throw new Refusal(423, "locked", "the host runs a task in this session");
    // Who is over the limit may still delete.
    if (batch.puts.length > 0) this.#checkSize();
    this.#checkEvents(batch);
    const header = `s/${this.#id}/h`;
    const isThere = this.#database.get(header) !== null;
    const made = isThere ? undefined : batch.puts.find(([key]) => key === header)?.[1];
    if (isThere && batch.deletes.includes(header)) await this.#letGo();
    const carriesOut = (): Promise<Response> => this.#carryOut(batch, request, keys);
    return made === undefined ? carriesOut() : this.#reserved(made, carriesOut);
  }

  /** A client deletes the session: not while forks read its first events. It asked the index as well, but a while ago. */
  async #letGo(): Promise<void> {
    this.#reportSoon();
    if (!(await this.#index().letGo(this.#id))) throw new Refusal(409, "conflict", "the session was forked just now: ask again");
  }

  async #carryOut(batch: Batch, request: string, keys: string[]): Promise<Response> {
    const ofLog = keys.some((key) => key.startsWith("s/"));
    const ofFiles = keys.some((key) => /^[fj]\//.test(key));
    if (ofLog || ofFiles) await this.#yield();
    if (ofLog) {
      this.#leases.wrote();
      this.#wroteLast("client");
    }
    const changesRecord = keys.some((key) => key === `s/${this.#id}/h` || key.startsWith("r/"));
    this.#write(batch, changesRecord, [{ key: request, print: "kv", answer: "" }]);
    // What was read of them, perhaps just now, is no longer so; whoever holds the session.
    if (ofFiles && !this.#tasks.isRunning) await this.#tasks.drop();
    if (batch.deletes.length > 0 && this.#database.get(`s/${this.#id}/h`) === null) {
      // Deleted: what is known of it here must not keep its id from whoever makes it anew.
      await this.#close();
      this.#forget();
    }
    if (ofLog) await this.#follow();
    return written();
  }

  /** Events that a client stored reach those who subscribe. */
  async #follow(): Promise<void> {
    if (!this.#live.hasAny || this.#database.get(`s/${this.#id}/h`) === null) return;
    await this.#open();
    this.#leases.hear(this.#id, { grown: 0 });
  }

  // ---------------------------------------------------------------- sockets

  async #connect(request: Request, query: URLSearchParams, canWrite: boolean): Promise<Response> {
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") throw new Refusal(426, "invalid_argument", "this path is a WebSocket", { upgrade: "websocket" });
    if (this.ctx.getWebSockets().length >= this.#limits.socketsPerSession) throw new Refusal(429, "too_many", "too many connections to this session");
    const from = query.has("from") ? numberFrom(query, "from", 0) : null;
    const id = query.get("client") ?? crypto.randomUUID();
    // It is kept with the socket, where there is little room.
    if (id.length > CLIENT_LENGTH) throw new Refusal(400, "invalid_argument", `client is at most ${CLIENT_LENGTH} characters`);
    const { 0: client, 1: server } = new WebSocketPair();
    // Asleep or awake, the runtime holds the socket.
    this.ctx.acceptWebSocket(server);
    const attachment: Attachment = { client: id, canWrite, next: from, live: false, lease: "none", since: 0 };
    server.serializeAttachment(attachment);
    if (from !== null) await this.#tail(server);
    // A client that offered no protocol must not be answered with one: it would end the connection.
    const isOffered = (request.headers.get("sec-websocket-protocol") ?? "").split(",").some((name) => name.trim() === PROTOCOL);
    return new Response(null, { status: 101, webSocket: client, headers: isOffered ? { "sec-websocket-protocol": PROTOCOL } : {} });
  }

  async #tail(socket: WebSocket): Promise<void> {
    try {
      this.#live.pump(socket, await this.#open());
    } catch (thrown) {
      const { status, message } = refusalOf(thrown);
      socket.close(4000 + (status >= 500 ? 500 : status), message.slice(0, 100));
    }
  }

  override async webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    // A refusal says what it refuses.
    let about: { re?: string; key?: string } = {};
    try {
      const bytes = typeof data === "string" && data.length <= this.#limits.bodyBytes ? new TextEncoder().encode(data) : null;
      if (bytes === null || bytes.length > this.#limits.bodyBytes) {
        about = BEGINNING.exec(String(data).slice(0, 200))?.groups ?? {};
        throw new Refusal(413, "quota", "a message is text within the limit of a request");
      }
      const json = parseJson(bytes);
      const [re, key] = [optionalText(json, "t"), optionalText(json, "key")];
      about = { ...(re === undefined ? {} : { re }), ...(key === undefined ? {} : { key }) };
      await this.#serial(() => this.#inTurn(socket, json, key ?? null));
    } catch (thrown) {
      const { code, message } = refusalOf(thrown);
      this.#live.send(socket, { t: "refused", ...about, code, message });
    }
  }

  /** Appends of a connection are stored in its order: behind one that was put off none is taken before that one comes again. */
  async #inTurn(socket: WebSocket, json: Json, key: string | null): Promise<void> {
    const isOrdered = json["t"] === "append" && key !== null;
    const { putOff = null } = attachmentOf(socket);
    if (isOrdered && putOff !== null && putOff !== key) throw new Refusal(503, "unavailable", "an append before this one was put off: send that one again first");
    try {
      if (!this.#bucket.take()) throw new Refusal(503, "unavailable", "too many messages: wait a moment");
      await this.#message(socket, json, key);
      if (isOrdered && putOff !== null) setAttachment(socket, { putOff: null });
    } catch (thrown) {
      if (isOrdered) {
        const isPassing = refusalOf(thrown).code === "unavailable";
        if (isPassing !== (putOff !== null)) setAttachment(socket, { putOff: isPassing ? key : null });
      }
      throw thrown;
    }
  }

  async #message(socket: WebSocket, json: Json, key: string | null): Promise<void> {
    const { canWrite } = attachmentOf(socket);
    const type = textOf(json, "t");
    if (type === "tail") {
      setAttachment(socket, { next: typeof json["from"] === "number" ? Math.max(0, Math.floor(json["from"])) : 0, live: false });
      return this.#tail(socket);
    }
    if (type === "untail") return setAttachment(socket, { next: null });
    if (!canWrite && type === "lease") return this.#leases.follow(socket);
    if (!canWrite && type === "release") return setAttachment(socket, { lease: "none" });
    if (!canWrite) throw readsOnly();
    switch (type) {
      case "append": {
        const events = eventsOf(json, this.#limits.eventsPerCall);
        const bytes = new TextEncoder().encode(JSON.stringify(events));
        const [done] = await this.#append([{ events, bytes: bytes.length, key, print: printOf("events", bytes) }]);
        const { text } = answerIn(done as Outcome<Appended>);
        return this.#live.send(socket, { t: "ack", ...(key === null ? {} : { key }), events: JSON.parse(text) as JsonValue });
      }
      case "lease": return this.#leases.ask(socket, { holds: json["holds"] === true, again: json["again"] === true });
      case "release": return this.#leases.release(socket);
      case "tell": {
        const word = json["word"] ?? null;
        this.#leases.tell(word, socket);
        return this.#leases.hear(this.#id, word);
      }
      default: throw new Refusal(400, "invalid_argument", "there is no such message");
    }
  }

  override async webSocketClose(socket: WebSocket, code: number): Promise<void> {
    try {
      socket.close(code === 1005 || code === 1006 ? 1000 : code, "");
    } catch {
      // It was closed from both ends.
    }
    await this.#serial(() => this.#leases.left(socket, code === 1000 || code === 1001 || code === 1005));
  }

  override async webSocketError(socket: WebSocket): Promise<void> {
    await this.#serial(() => this.#leases.left(socket, false));
  }
}

