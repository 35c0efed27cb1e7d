// Node, Deno, Bun: init() reads the file next to this module. When it is not there (bundled into one file, compiled into an
// executable, no permission to read) the text copy is loaded instead. No top-level await, so that `require` works.
import { readFile } from "node:fs/promises";
import { compile, makeInit } from "./boot.js";

export * from "./sessionlog.js";
export { initSync } from "./boot.js";

async function find() {
  let bytes;
  try {
    bytes = await readFile(new URL("./sessionlog_bg.wasm", import.meta.url));
  } catch {
    // See above.
  }
  return compile(bytes ?? (await import("./bytes.js")).default());
}

// `fetch` of these runtimes does not read files; a path or a file: URL given to init is one.
const fetchBytes = (url) => (/^(https?|data|blob):/.test(url) ? fetch(url) : readFile(url.startsWith("file:") ? new URL(url) : url));

export default makeInit(find, fetchBytes);
