// Node, Deno, Bun: init() reads the file next to this module. When it is not there (bundled into one file, compiled into an
// executable, no permission to read) or damaged, the text copy is loaded instead. No top-level await, so that `require` works.
import { readFile } from "node:fs/promises";
import { compile, fileOrCopy, makeInit } from "./boot.js";

export * from "./sessionlog.js";
export { initSync } from "./boot.js";

const file = async () => compile(await readFile(new URL("./sessionlog_bg.wasm", import.meta.url)));

// `fetch` of these runtimes does not read files; a path or a file: URL given to init is one.
const fetchBytes = (url) => (/^(https?|data|blob):/.test(url) ? fetch(url) : readFile(url.startsWith("file:") ? new URL(url) : url));

export default makeInit(() => fileOrCopy(file, () => import("./bytes.js")), fetchBytes);
