// What the door writes into an address, an object reads out of it: also where a name would be more than a name in a path.
import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";
import { root } from "./host.mjs";

const { outputFiles } = await build({ absWorkingDir: root, entryPoints: ["edge/src/address.ts"], bundle: true, format: "esm", write: false, logLevel: "error" });
const { addressOf, readAddress } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

test("an address says who calls, whatever a name or what is asked looks like", () => {
  for (const owner of ["alice", ".", "..", "a@b.c", "-"]) {
    for (const id of ["", "s-1", "w"]) {
      for (const rest of ["", "/events", "/events?from=3", "/approvals/a%2Fb", "?from=/~bob/w/", "/", "//x", "/files?path=/~bob"]) {
        for (const canWrite of [true, false]) {
          // As the runtime would send it.
          const url = new URL(addressOf({ owner, canWrite, id, rest })).href;
          assert.deepEqual(readAddress(url), { owner, canWrite, id, rest });
        }
      }
    }
  }
});
