// Edge runtimes whose bundler takes compiled modules through `?module` (Vercel and its kin). They forbid compiling
// bytes. `init()` is there for code that runs elsewhere too; `initSync()` starts without waiting.
import module from "./sessionlog_bg.wasm?module";
import { initSync as start, makeInit } from "./boot.js";

export * from "./sessionlog.js";

export function initSync(given = module) {
  start(given);
}

export default makeInit(async () => module);
