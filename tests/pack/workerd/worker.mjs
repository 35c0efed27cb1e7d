// Runs the portable suite, or the smoke test, inside workerd; the suite is bundled in by the test that starts it.
import init, { SessionLogError, initSync } from "sessionlog";
import module from "sessionlog/wasm";
import { smoke } from "./src/smoke.js";
import { runAll } from "./node-test.mjs";
import "./portable.test.mjs";

export default {
  async fetch(request) {
    const path = new URL(request.url).pathname;
    if (path === "/sync") {
      initSync(module);
      initSync();
      return new Response(await smoke());
    }
    if (path === "/bytes") {
      // Given bytes are refused by this runtime and never replaced by the imported module.
      const error = await init(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => null, (thrown) => thrown);
      return new Response(`${error instanceof SessionLogError} ${error?.code}`);
    }
    return Response.json(await runAll());
  },
};
