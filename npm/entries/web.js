// Pages, workers and bundlers. init() fetches the file next to this module; when a development server or a bundler that
// leaves `new URL(..., import.meta.url)` alone does not serve it, the text copy is loaded instead.
import { compile, compileResponse, makeInit } from "./boot.js";

export * from "./sessionlog.js";
export { initSync } from "./boot.js";

async function find() {
  let response;
  try {
    response = await fetch(new URL("./sessionlog_bg.wasm", import.meta.url));
  } catch {
    // Refused by connect-src, or not served: the copy below needs no request of its own kind.
  }
  const module = response && (await compileResponse(response));
  return module ?? compile((await import("./bytes.js")).default());
}

export default makeInit(find);
