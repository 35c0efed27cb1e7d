// Start-up: turns whatever a caller or an entry has (a URL, a response, bytes, a compiled module) into a running instance.
// The entries in `npm/entries` differ only in how they find the module when the caller gives none.
import glueInit, * as glue from "./glue.js";
import { SessionLogError } from "./errors.js";
import { isStarted, markStarted } from "./runtime.js";
import type { InitInput } from "../types/index.js";

type Given = InitInput | Promise<InitInput> | { module_or_path: InitInput | Promise<InitInput> };
type GivenSync = WebAssembly.Module | BufferSource | { module: WebAssembly.Module | BufferSource };
/** Finds the module without the caller's help. */
export type Find = () => Promise<WebAssembly.Module>;

// After a trap the compiled module is still good: a new instance of it is made instead of compiling again.
let instantiated = false;
let pending: Promise<void> | null = null;

/** The `init` of an entry: idempotent, shared while pending, and forgotten when it failed. */
export function makeInit(find: Find, fetchBytes: (url: string) => Promise<Response | BufferSource> = (url) => fetch(url)): (input?: Given) => Promise<void> {
  return function init(input) {
    if (isStarted()) return Promise.resolve();
    return (pending ??= guarded("the WebAssembly module could not be started", () => start(input, find, fetchBytes)).finally(() => {
      pending = null;
    }));
  };
}

async function start(input: Given | undefined, find: Find, fetchBytes: (url: string) => Promise<Response | BufferSource>): Promise<void> {
  if (instantiated) return restart();
  const module = input === undefined ? await find() : await compileGiven(input, fetchBytes);
  // `initSync` may have been called while we waited.
  if (isStarted()) return;
  await glueInit({ module_or_path: module });
  instantiated = true;
  markStarted(module);
}

/** For runtimes that hand over a compiled module. Idempotent. */
export function initSync(given: GivenSync): void {
  if (isStarted()) return;
  if (instantiated) return restart();
  let module: WebAssembly.Module;
  try {
    const source = isPlain(given) && "module" in given ? given.module : (given as WebAssembly.Module | BufferSource);
    if (!(source instanceof WebAssembly.Module) && !isBytes(source)) throw new SessionLogError("invalid_argument", "initSync takes bytes or a WebAssembly.Module");
    module = source instanceof WebAssembly.Module ? source : new WebAssembly.Module(source);
    glue.initSync({ module });
  } catch (thrown) {
    throw startError("the WebAssembly module could not be started", thrown);
  }
  instantiated = true;
  markStarted(module);
}

function restart(): void {
  glue.__wbg_reset_state();
  markStarted();
}

/** What the caller named is used or refused; nothing else is tried in its place. */
async function compileGiven(input: Given, fetchBytes: (url: string) => Promise<Response | BufferSource>): Promise<WebAssembly.Module> {
  const given = isPlain(input) && "module_or_path" in input ? input.module_or_path : (input as InitInput | Promise<InitInput>);
  const source = await guarded("what init was given was rejected", async () => given);
  if (source instanceof WebAssembly.Module) return source;
  if (typeof source === "string" || (typeof URL === "function" && source instanceof URL)) {
    return compileFetched(() => fetchBytes(String(source)), String(source));
  }
  if (typeof Request === "function" && source instanceof Request) return compileFetched(() => fetch(source), source.url);
  if (typeof Response === "function" && source instanceof Response) return compileFetched(async () => source, source.url);
  if (isBytes(source)) return compile(source);
  throw new SessionLogError("invalid_argument", "init takes a URL, a Request, a Response, bytes or a WebAssembly.Module");
}

async function compileFetched(get: () => Promise<Response | BufferSource>, url: string): Promise<WebAssembly.Module> {
  const got = await guarded(`the WebAssembly file could not be read: ${url}`, get);
  if (!(typeof Response === "function" && got instanceof Response)) return compile(got as BufferSource);
  if (!got.ok) throw new SessionLogError("unavailable", `the WebAssembly file could not be read: ${url} answered ${got.status}`, { status: got.status });
  return compile(await guarded(`the WebAssembly file could not be read: ${url}`, () => got.arrayBuffer()));
}

/** Compiles bytes; a refusal by policy says which policy is missing. */
export function compile(bytes: BufferSource): Promise<WebAssembly.Module> {
  return guarded("the WebAssembly module could not be compiled", () => WebAssembly.compile(bytes));
}

/**
 * The file that an entry finds by itself, or else the copy as text: the file may be missing, cut off on its way or something
 * else altogether. What a policy forbids to compile it forbids of the copy too, so that one is not loaded then.
 */
export async function fileOrCopy(file: () => Promise<WebAssembly.Module | null>, copy: () => Promise<{ default: () => BufferSource }>): Promise<WebAssembly.Module> {
  try {
    const module = await file();
    if (module !== null) return module;
  } catch (thrown) {
    if (thrown instanceof SessionLogError && thrown.code === "csp_blocked") throw thrown;
  }
  const { default: bytes } = await guarded("neither the WebAssembly file nor its copy could be read", copy);
  return compile(bytes());
}

/** Compiles a response while it arrives where the server's type allows that; null when it is no WebAssembly at all. */
export async function compileResponse(response: Response): Promise<WebAssembly.Module | null> {
  const type = response.headers.get("content-type") ?? "";
  // Servers of single-page apps answer every unknown path with their page.
  if (!response.ok || type.startsWith("text/html")) return null;
  if (type === "application/wasm" && typeof WebAssembly.compileStreaming === "function") {
    return guarded("the WebAssembly module could not be compiled", () => WebAssembly.compileStreaming(response));
  }
  const bytes = new Uint8Array(await guarded("the WebAssembly file could not be read", () => response.arrayBuffer()));
  const isWasm = bytes[0] === 0 && bytes[1] === 0x61 && bytes[2] === 0x73 && bytes[3] === 0x6d;
  return isWasm ? compile(bytes) : null;
}

async function guarded<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw startError(what, thrown);
  }
}

function startError(what: string, thrown: unknown): SessionLogError {
  if (thrown instanceof SessionLogError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (/content security policy|\bCSP\b|unsafe-eval/i.test(message)) {
    return new SessionLogError("csp_blocked", "the page's Content-Security-Policy forbids WebAssembly: add 'wasm-unsafe-eval' to its script-src", { missing: "wasm-unsafe-eval" }, thrown);
  }
  if (/disallowed by embedder/i.test(message)) {
    return new SessionLogError("csp_blocked", "this runtime does not compile WebAssembly: import the .wasm file and pass the module to initSync (it would need 'wasm-unsafe-eval')", { missing: "wasm-unsafe-eval" }, thrown);
  }
  const invalid = typeof WebAssembly === "object" && thrown instanceof WebAssembly.CompileError;
  return new SessionLogError(invalid ? "invalid_argument" : "unavailable", `${what}: ${message}`, {}, thrown);
}

/** By name, since bytes of another realm (a frame, a test's sandbox) are bytes too. */
function isBytes(value: unknown): value is BufferSource {
  return ArrayBuffer.isView(value) || /^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(value));
}

function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
