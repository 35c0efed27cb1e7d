// The runtime compiles the module ahead of time and forbids compiling bytes; starting it takes no waiting.
import { initSync } from "sessionlog";
import module from "sessionlog/sessionlog.wasm";

export const start = (): void => initSync(module);
