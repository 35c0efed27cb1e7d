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

/** A store in a worker of its own, with the calls that the raw classes have. */
class RemoteStore {
  readonly #worker: Worker;
  #waiting = new Map<number, Waiter>();
  #ids = 0;
  #dead: SessionLogError | null = null;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.#answer(data);
    // The file is not served, is refused by the policy, or broke.
    worker.onerror = (event) => {
      event.preventDefault?.();
      this.#end(unavailable("the worker of the OPFS store (opfs-worker.js beside the package's module) could not be loaded"));
    };
  }

  #answer({ id, value, error }: Answer): void {
    const waiter = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiter?.resolve(value);
    else waiter?.reject(toError(error));
  }

  #end(error: SessionLogError): void {
    this.#dead ??= error;
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

  get(key: string): Promise<unknown> {
    return this.ask({ op: "get", args: [key] });
  }

  list(start: string, end: string, options: object | undefined): Promise<unknown> {
    return this.ask({ op: "list", args: [start, end, options] });
  }

  transact(batch: object): Promise<unknown> {
    return this.ask({ op: "transact", args: [batch] });
  }

  /** The worker gives the files back before it ends, so that another tab finds them free. */
  async close(): Promise<void> {
    await this.ask({ op: "close", args: [] }).catch(() => {});
    this.#end(new SessionLogError("disposed", "the storage was closed"));
  }

  free(): void {}
}

/** Opens the store of a name in a worker. */
export async function openInWorker(name: string): Promise<RemoteStore> {
  const module = compiledModule();
  if (module === null) throw unavailable("call `await init()` first");
  const store = new RemoteStore(start());
  try {
    await store.ask({ op: "open", module, name });
    return store;
  } catch (thrown) {
    await store.close();
    throw toError(thrown);
  }
}
