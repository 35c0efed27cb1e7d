// Cloudflare Workers and other hosts on workerd: the runtime compiles the imported file ahead of time and forbids compiling
// bytes. `init()` is there for code that runs elsewhere too; `initSync()` starts without waiting.
import module from "./sessionlog_bg.wasm";
import { initSync as start, makeInit } from "./boot.js";

export * from "./sessionlog.js";

export function initSync(given = module) {
  start(given);
}

export default makeInit(async () => module);
