// Where WebAssembly is declared, the file is a module to whoever imports it.
import { initSync } from "sessionlog";
import wasm from "sessionlog/wasm";

export const module: WebAssembly.Module = wasm;
export const starts = (given: WebAssembly.Module): void => initSync(given);
