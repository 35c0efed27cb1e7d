// Opens storage. Nothing here touches the environment before it is called: importing works everywhere.
import type { KeyValueBackend, StorageSpec } from "../types/index.js";
import { SessionLogError, toError } from "./errors.js";
import { canAskWorker, hasSyncHandles, openInWorker } from "./opfs-page.js";
import { Begun, isPlainBatch, transactOn } from "./indexed-db.js";
import type { RawIndexedDb } from "./glue.js";
import { call } from "./runtime.js";

type Batch = Parameters<KeyValueBackend["transact"]>[0];
type ListOptions = NonNullable<Parameters<KeyValueBackend["list"]>[2]>;
type Entries = Array<[string, Uint8Array]>;

/** What the raw classes of the module have in common; some answer at once, some with a promise. */
interface RawBackend {
  get(key: string): unknown;
  list(start: string, end: string, options: ListOptions | undefined): unknown;
  transact(batch: Batch): unknown;
  close(): unknown;
  free(): void;
}
interface Shape { name: string; sync?: boolean; maxValueBytes?: number; maxBatch?: number }

/** A backend of ours, whether what it acknowledges outlives the process, and the name that tabs share it by. */
export interface OpenedBackend { backend: KeyValueBackend; kind: string; durable: boolean; shared: string | null; reason?: { code: SessionLogError["code"]; message: string } }

const KIB = 1024;
const MIB = 1024 * KIB;
/** Longer than a batch of localStorage takes. */
const INTENT_MS = 150;

/** Runs one call of a raw class; both ways of failing come out as SessionLogError. */
function run<T>(work: () => unknown): T | Promise<T> {
  let out: unknown;
  try {
    out = call(work);
  } catch (thrown) {
    throw toError(thrown);
  }
  if (!(out instanceof Promise)) return out as T;
  return out.catch((thrown: unknown) => { throw toError(thrown); }) as Promise<T>;
}

/** Wraps a raw class as the contract's backend; after `close` every call is `disposed`. */
function wrap(raw: RawBackend, shape: Shape): KeyValueBackend {
  let open = true;
  const live = (): RawBackend => {
    if (!open) throw new SessionLogError("disposed", "the storage was closed");
    return raw;
  };
  /** A store that answers with promises rejects; it never throws. */
  const guard = <T>(work: () => T | Promise<T>): T | Promise<T> => {
    if (shape.sync === true) return work();
    try {
      return work();
    } catch (thrown) {
      return Promise.reject(toError(thrown));
    }
  };
  const backend: KeyValueBackend = {
    ...shape,
    get: (key) => guard(() => run<Uint8Array | null>(() => live().get(key))),
    list: (start, end, options) => guard(() => run<Entries>(() => live().list(start, end, options))),
    transact: (batch) => guard(() => run<void>(() => live().transact(batch))),
    close: () => {
      if (!open) return;
      open = false;
      // The raw object is left to the collector: a call that is still under way may hold it.
      return run<void>(() => raw.close());
    },
  };
  ours.add(backend);
  return backend;
}

/** Backends that answer as is expected of one: what they throw is an error of ours. */
const ours = new WeakSet<KeyValueBackend>();
/** What the locks and channels are named by that tabs share who have this store open; none where no other tab can reach it. */
const sharedNames = new WeakMap<KeyValueBackend, string>();

/** Says that `outer` keeps what it is given in `inner`: tabs share the one as they share the other. */
export function sharesWith(inner: KeyValueBackend, outer: KeyValueBackend): KeyValueBackend {
  const name = sharedNames.get(inner);
  if (name !== undefined) sharedNames.set(outer, name);
  return outer;
}

/** What a backend says of itself; it may learn some of that later. */
const FACTS = ["name", "sync", "maxValueBytes", "maxBatch", "maxBatchBytes", "peers"] as const;

/** A caller's own backend: whatever it throws or rejects with comes out as an error of ours. */
function guarded(inner: KeyValueBackend): KeyValueBackend {
  if (ours.has(inner)) return inner;
  if (typeof inner?.transact !== "function") throw new SessionLogError("invalid_argument", "custom storage needs a backend with get, list and transact");
  const guard = <T>(work: () => T | Promise<T>): T | Promise<T> => {
    let out: T | Promise<T>;
    try {
      out = work();
    } catch (thrown) {
      const error = toError(thrown);
      if (inner.sync === true) throw error;
      return Promise.reject(error);
    }
    const isPromise = typeof (out as { then?: unknown } | null | undefined)?.then === "function";
    return isPromise ? Promise.resolve(out).catch((thrown: unknown) => { throw toError(thrown); }) : out;
  };
  const outer = {
    get: (key) => guard(() => inner.get(key)),
    list: (start, end, options) => guard(() => inner.list(start, end, options)),
    transact: (batch) => guard(() => inner.transact(batch)),
    close: () => guard(() => inner.close?.()),
  } as KeyValueBackend;
  for (const fact of FACTS) Object.defineProperty(outer, fact, { enumerable: true, get: () => inner[fact] });
  ours.add(outer);
  return sharesWith(inner, outer);
}

/** What a store can do ahead of a batch that comes in the same turn. */
export interface Ahead {
  /** Asks for a put of the batch, while the rest of it is made; one that the batch checks to be absent comes as `isNew`. */
  put(key: string, value: Uint8Array, isNew: boolean): void;
}

const onHandles = new WeakMap<KeyValueBackend, OnHandle>();

/** Says that a batch comes in this very turn: what the store needs for it is under way while the batch is made. */
export function writeComes(backend: KeyValueBackend): Ahead | null {
  return onHandles.get(backend)?.begin() ?? null;
}

/** Issues batches on the live handle; without one, and when something went wrong, the module does. */
class OnHandle implements RawBackend, Ahead {
  /** Begun in this turn, for the batch that comes in it. */
  #begun: Begun | null = null;

  constructor(readonly raw: RawIndexedDb, readonly isStrict: boolean) {}

  get(key: string): unknown { return this.raw.get(key); }
  list(start: string, end: string, options: ListOptions | undefined): unknown { return this.raw.list(start, end, options); }
  close(): unknown { return this.raw.close(); }
  free(): void { this.raw.free(); }

  transact(batch: Batch): unknown {
    const db = isPlainBatch(batch) ? (this.raw.handle() as IDBDatabase | null) : null;
    if (db === null) return this.raw.transact(batch);
    const begun = this.#begun?.db === db ? this.#begun : null;
    if (begun === null) this.#drop();
    this.#begun = null;
    return transactOn(db, batch, this.isStrict, begun).then((done) => (done ? undefined : call(() => this.raw.transact_again(batch))));
  }

  begin(): Ahead | null {
    const db = call(() => this.raw.handle()) as IDBDatabase | null;
    if (db === null) return null;
    this.#try(() => (this.#begun = new Begun(db, this.isStrict)));
    queueMicrotask(() => this.#drop());
    return this;
  }

  put(key: string, value: Uint8Array, isNew: boolean): void {
    this.#try(() => this.#begun?.put(key, value, isNew));
  }

  /** What goes wrong ahead of a batch, the batch itself finds out. */
  #try(work: () => void): void {
    try {
      work();
    } catch {
      this.#drop();
    }
  }

  #drop(): void {
    this.#begun?.drop();
    this.#begun = null;
  }
}

/**
 * Stores that opened at the second try only. Chromium throws a database away that it finds broken, as after a crash, with all
 * that is in it, and opens an empty one when it is asked again.
 */
const broken = new WeakSet<KeyValueBackend>();
const BROKEN = { code: "corrupt", message: "the browser found its database broken: it may have thrown away what was stored there" } as const;

const openers: { [K in StorageSpec["kind"]]: (spec: Extract<StorageSpec, { kind: K }>) => Promise<KeyValueBackend> | KeyValueBackend } = {
  memory: () => wrap(call((m) => m.raw_open_memory()) as RawBackend, { name: "memory", sync: true }),
  indexeddb: async (spec) => {
    const isStrict = spec.durability === "strict";
    const open = async (): Promise<RawBackend> => run<RawBackend>(() => call((m) => m.raw_open_indexed_db(spec.name, isStrict, spec.openTimeoutMs)));
    let broke = false;
    const raw = await open().catch((thrown: unknown) => {
      broke = toError(thrown).details["name"] === "UnknownError";
      if (!broke) throw thrown;
      return open();
    });
    const onHandle = new OnHandle(raw as RawIndexedDb, isStrict);
    const backend = wrap(onHandle, { name: "indexeddb", maxValueBytes: 64 * MIB, maxBatch: 10_000 });
    onHandles.set(backend, onHandle);
    sharedNames.set(backend, `sessionlog/indexeddb/${spec.name ?? ""}`);
    if (broke) broken.add(backend);
    return backend;
  },
  localstorage: async (spec) => {
    const prefix = spec.prefix ?? "sessionlog";
    // A batch that another tab is in the middle of looks like one that was never finished, for as long as it takes.
    const seen = call((m) => m.raw_local_storage_intent(prefix));
    if (seen !== undefined) await new Promise((resolve) => setTimeout(resolve, INTENT_MS));
    const raw = call((m) => m.raw_open_local_storage(prefix, seen)) as RawBackend;
    const backend = wrap(raw, { name: "localstorage", sync: true, maxValueBytes: 256 * KIB, maxBatch: 256 });
    sharedNames.set(backend, `sessionlog/localstorage/${spec.prefix ?? ""}`);
    return backend;
  },
  opfs: async (spec) => {
    const name = fileName(spec.name ?? "sessionlog");
    const inWorker = !hasSyncHandles() && canAskWorker();
    const raw = inWorker ? await openInWorker(name) : await run<RawBackend>(() => call((m) => m.raw_open_opfs(name)));
    // Not `sync`, although it is: an append would then wait for the disk every time.
    const backend = wrap(raw, { name: "opfs", maxValueBytes: 64 * MIB, maxBatch: 10_000 });
    sharedNames.set(backend, `sessionlog/opfs/${spec.name ?? ""}`);
    return backend;
  },
  custom: (spec) => guarded(spec.backend),
};

/** Opens the storage that `spec` names; rejects with `unavailable`, `blocked`, `timeout`, `locked`, `newer_format`. */
export async function openBackend(spec: StorageSpec): Promise<KeyValueBackend> {
  // What every object inherits is no kind of storage.
  const isKind = Object.prototype.hasOwnProperty.call(openers, spec.kind);
  const opener = (isKind ? openers[spec.kind] : undefined) as ((spec: StorageSpec) => Promise<KeyValueBackend> | KeyValueBackend) | undefined;
  if (opener === undefined) throw new SessionLogError("invalid_argument", `unknown kind of storage: ${String(spec.kind).slice(0, 80)}`);
  try {
    return await opener(spec);
  } catch (thrown) {
    throw toError(thrown);
  }
}

/** Names of ours become names of files. */
function fileName(name: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/.test(name)) return name;
  throw new SessionLogError("invalid_argument", "the name of an OPFS store must be 1 to 100 of [A-Za-z0-9_.-]");
}

/** The storage a page gets without asking for one: IndexedDB where there is one, else memory. */
export function defaultSpec(): StorageSpec {
  return hasIndexedDb() ? { kind: "indexeddb" } : { kind: "memory" };
}

function hasIndexedDb(): boolean {
  try {
    // Reading the property throws in a sandboxed frame.
    return typeof globalThis.indexedDB === "object" && globalThis.indexedDB !== null;
  } catch {
    return false;
  }
}

/** Whether what is acknowledged outlives the process, and why not. */
function durability(kind: StorageSpec["kind"]): Pick<OpenedBackend, "durable" | "reason"> {
  if (kind !== "localstorage") return { durable: kind !== "memory" };
  return { durable: false, reason: { code: "storage", message: "localStorage is best effort: browsers lose recent items when they are killed" } };
}

/** Codes that mean "there is no storage here", as opposed to a store that is there and must not be passed over. */
const ABSENT: ReadonlySet<string> = new Set(["unavailable"]);

/**
 * Opens the storage, or memory when there is none at all (private mode, blocked by policy, absent); the reason comes with
 * it. A store that exists but is held, too new, or slow is an error, never an empty store in its place.
 */
export async function openOrMemory(spec: StorageSpec = defaultSpec()): Promise<OpenedBackend> {
  try {
    const backend = await openBackend(spec);
    const shared = sharedNames.get(backend) ?? null;
    return { backend, kind: spec.kind, shared, ...durability(spec.kind), ...(broken.has(backend) ? { reason: BROKEN } : {}) };
  } catch (thrown) {
    const error = toError(thrown);
    if (!ABSENT.has(error.code)) throw error;
    const backend = await openBackend({ kind: "memory" });
    return { backend, kind: "memory", shared: null, durable: false, reason: { code: error.code, message: error.message } };
  }
}
