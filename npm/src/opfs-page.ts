// OPFS in a page: the same calls as in a worker, answered by the worker that the package brings.
import { SessionLogError, toError } from "./errors.js";
import { compiledModule } from "./runtime.js";

interface Waiter {
  resolve(value: unknown): void;
  reject(error: SessionLogError): void;
}
interface Answer { id: number; value?: unknown; error?: { code: unknown; message: string; details: unknown } }

/** Whether this thread may hold a synchronous handle itself: dedicated workers only. */
export function hasSyncHandles(): boolean {
  const handle = (globalThis as { FileSystemFileHandle?: { prototype: object } }).FileSystemFileHandle;
  return handle !== undefined && "createSyncAccessHandle" in handle.prototype;
}

/** Whether a worker may be asked instead. */
export function canAskWorker(): boolean {
  const storage = (globalThis as { navigator?: { storage?: { getDirectory?: unknown } } }).navigator?.storage;
  return typeof Worker === "function" && typeof storage?.getDirectory === "function";
}

function unavailable(message: string, cause?: unknown): SessionLogError {
  return new SessionLogError("unavailable", message, {}, cause);
}

/** Starts the worker; a page's policy may forbid that. */
function start(): Worker {
  try {
    return new Worker(new URL("./opfs-worker.js", import.meta.url), { type: "module", name: "sessionlog-opfs" });
  } catch (thrown) {
    throw unavailable("the worker of the OPFS store could not be started", thrown);
  }
}

interface Locks {
  request(name: string, options: { signal?: AbortSignal }, work: () => void): Promise<unknown>;
}

/** How long a worker that does not answer any more is waited for at the end. */
const CLOSE_MS = 5000;

/** One worker and what it was asked. It may end at any time: the browser takes its memory, or it breaks. */
class Running {
  readonly #worker: Worker;
  #waiting = new Map<number, Waiter>();
  #ids = 0;
  #dead: SessionLogError | null = null;
  #watch = new AbortController();

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.#answer(data);
    // The file is not served, is refused by the policy, or broke.
    worker.onerror = (event) => {
      event.preventDefault?.();
      this.end(unavailable("the worker of the OPFS store (opfs-worker.js beside the package's module) could not be loaded, or broke"));
    };
  }

  get isDead(): boolean {
    return this.#dead !== null;
  }

  #answer({ id, value, error }: Answer): void {
    const waiter = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiter?.resolve(value);
    else waiter?.reject(toError(error));
  }

  end(error: SessionLogError): void {
    this.#dead ??= error;
    this.#watch.abort();
    this.#worker.terminate();
    for (const waiter of this.#waiting.values()) waiter.reject(this.#dead);
    this.#waiting.clear();
  }

  ask(message: object): Promise<unknown> {
    if (this.#dead !== null) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const id = ++this.#ids;
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, ...message });
    });
  }

  /** A worker that ends says nothing. But it holds a lock for as long as it lives, and whoever gets that knows. */
  async open(module: WebAssembly.Module, name: string): Promise<void> {
    const life = `sessionlog/opfs-worker/${crypto.randomUUID()}`;
    const isHeld = await this.ask({ op: "open", module, name, life });
    if (isHeld !== true) return;
    const { locks } = navigator as unknown as { locks: Locks };
    locks.request(life, { signal: this.#watch.signal }, () => this.end(new SessionLogError("storage", "the worker of the OPFS store ended"))).catch(() => {});
  }

  /** The worker gives the files back before it ends, so that another tab finds them free. */
  async close(): Promise<void> {
    const late = setTimeout(() => this.end(closed()), CLOSE_MS);
    await this.ask({ op: "close", args: [] }).catch(() => {});
    clearTimeout(late);
    this.end(closed());
  }
}

const closed = (): SessionLogError => new SessionLogError("disposed", "the storage was closed");

/** A store in a worker of its own, with the calls that the raw classes have. When the worker has ended, the next call starts another. */
class RemoteStore {
  readonly #name: string;
  #running: Running | null = null;
  #starting: Promise<Running> | null = null;
  #isClosed = false;

  constructor(name: string) {
    this.#name = name;
  }

  start(): Promise<Running> {
    this.#starting ??= this.#start().finally(() => (this.#starting = null));
    return this.#starting;
  }

  async #start(): Promise<Running> {
    const module = compiledModule();
    if (module === null) throw unavailable("call `await init()` first");
    const running = new Running(start());
    try {
      await running.open(module, this.#name);
    } catch (thrown) {
      await running.close();
      throw toError(thrown);
    }
    this.#running = running;
    return running;
  }

  #ask(message: object): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(closed());
    if (this.#running?.isDead === false) return this.#running.ask(message);
    return this.start().then((running) => running.ask(message));
  }

  get(key: string): Promise<unknown> {
    return this.#ask({ op: "get", args: [key] });
  }

  list(start: string, end: string, options: object | undefined): Promise<unknown> {
    return this.#ask({ op: "list", args: [start, end, options] });
  }

  transact(batch: object): Promise<unknown> {
    return this.#ask({ op: "transact", args: [batch] });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#starting?.catch(() => {});
    await this.#running?.close();
  }

  free(): void {}
}

/** Opens the store of a name in a worker. */
export async function openInWorker(name: string): Promise<RemoteStore> {
  const store = new RemoteStore(name);
  await store.start();
  return store;
}
