// Everything that init takes, by way of the line that is documented for the bundler (`file.js`): one per visit, `?given=url`,
// as the arguments of init.
import file from "./file.js";
import { smoke } from "./smoke.js";

const given = {
  url: () => [file],
  URL: () => [new URL(file, location.href)],
  request: () => [new Request(file)],
  response: () => [fetch(file)],
  awaited: async () => [await fetch(file)],
  bytes: async () => [new Uint8Array(await (await fetch(file)).arrayBuffer())],
  module: () => [WebAssembly.compileStreaming(fetch(file))],
  object: () => [{ module_or_path: fetch(file) }],
};
const make = given[new URLSearchParams(location.search).get("given")];
globalThis.RESULT = await smoke(...(await make())).catch((error) => `FAIL ${error?.code ?? ""} ${error?.message ?? error}`);
document.title = "done";
