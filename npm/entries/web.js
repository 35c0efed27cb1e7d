// Pages, workers and bundlers. init() fetches the file next to this module; when a development server or a bundler that
// leaves `new URL(..., import.meta.url)` alone does not serve it, connect-src refuses it or it arrives cut off, the text copy
// is loaded instead.
import { compileResponse, fileOrCopy, makeInit } from "./boot.js";

export * from "./sessionlog.js";
export { initSync } from "./boot.js";

const file = async () => compileResponse(await fetch(new URL("./sessionlog_bg.wasm", import.meta.url)));

export default makeInit(() => fileOrCopy(file, () => import("./bytes.js")));
