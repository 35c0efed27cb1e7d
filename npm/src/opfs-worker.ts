// The worker that a page's OPFS store runs in: only a dedicated worker may have a synchronous handle. It is a file of its own
// without imports other than the glue, so that bundlers which know `new Worker(new URL(...))` take it as it is.
import * as glue from "./glue.js";

type Batch = { checks?: unknown[]; puts?: Array<[string, Uint8Array]>; deletes?: string[] };
type Request =
  | { id: number; op: "open"; module: WebAssembly.Module; name: string; life: string }
  | { id: number; op: "get"; args: [string] }
  | { id: number; op: "list"; args: [string, string, object | undefined] }
  | { id: number; op: "transact"; args: [Batch] }
  | { id: number; op: "close"; args: [] };

const port = globalThis as unknown as { postMessage(message: unknown, transfer?: Transferable[]): void; onmessage: ((event: { data: Request }) => void) | null };
let store: glue.RawSyncBackend | null = null;

interface Locks {
  request(name: string, work: () => Promise<never>): Promise<unknown>;
}

/** Holds a lock until this worker ends, however that comes; says whether it does. */
function hold(life: string): Promise<boolean> {
  const { locks } = navigator as unknown as { locks?: Locks };
  if (locks === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    locks.request(life, () => {
      resolve(true);
      return new Promise(() => {});
    }).catch(() => resolve(false));
  });
}

async function open(module: WebAssembly.Module, name: string, life: string): Promise<boolean> {
  glue.initSync({ module });
  store = (await glue.raw_open_opfs(name)) as glue.RawSyncBackend;
  return hold(life);
}

async function carryOut(request: Request): Promise<unknown> {
  if (request.op === "open") return open(request.module, request.name, request.life);
  if (store === null) throw { code: "disposed", message: "the storage was closed" };
  switch (request.op) {
    case "get": return store.get(...request.args);
    case "list": return store.list(...request.args);
    case "transact": return store.transact(...request.args);
    case "close": return store.close();
  }
}

/** Errors cross as what they are made of. */
function parts(thrown: unknown): { code: unknown; message: string; details: unknown } {
  const { code, message, details } = (thrown ?? {}) as { code?: unknown; message?: unknown; details?: unknown };
  return { code, message: typeof message === "string" ? message : String(thrown), details };
}

/** Values are handed over, not copied: nobody else has them. */
function buffers(value: unknown): Transferable[] {
  if (value instanceof Uint8Array) return [value.buffer as ArrayBuffer];
  return Array.isArray(value) ? value.flatMap((pair: [string, Uint8Array]) => buffers(pair[1])) : [];
}

port.onmessage = ({ data: request }) => {
  carryOut(request).then(
    (value) => port.postMessage({ id: request.id, value }, buffers(value)),
    (thrown: unknown) => port.postMessage({ id: request.id, error: parts(thrown) }),
  );
};
