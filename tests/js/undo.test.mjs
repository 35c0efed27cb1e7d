// The undo vectors through the built package, on a store whose last writes can be lost.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { before, describe, test } from "node:test";
import init, { VirtualFs } from "sessionlog";
import { loadVectors } from "./support/load-vectors.mjs";
import { CutBackend, Machine } from "./support/undo-vectors.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const folders = [at("../fixtures/vectors/undo"), at("../../../shared/vectors/undo")].filter((folder) => existsSync(folder));

function storageFor(limits, each) {
  const storage = new CutBackend(limits);
  storage.each = each;
  storage.damage = (run) => {
    let hit = 0;
    for (const key of storage.map.keys()) {
      if (!key.startsWith(`j/default/${run}/`)) continue;
      storage.map.set(key, new TextEncoder().encode("garbage"));
      hit++;
    }
    if (hit === 0) throw new Error("no journal is stored");
  };
  return storage;
}

async function play(vector, limits, survivors) {
  const each = vector.ops.some((op) => op.op === "crash");
  const storage = storageFor(limits, each);
  const open = () => VirtualFs.open({ storage: { kind: "custom", backend: storage } });
  return new Machine(open, storage, survivors).play(vector);
}

before(() => init());

for (const folder of folders) {
  describe(folder, () => {
    for (const vector of loadVectors(folder)) {
      test(`${vector.id} ${vector.title}`, async () => {
        for (const limits of vector.tags.includes("scale") ? [{}] : [{}, { maxBatch: 3, maxValueBytes: 2000 }]) {
          const seen = await play(vector, limits, null);
          if (!vector.ops.some((op) => op.lose === "each")) continue;
          if (seen === 0) throw new Error("nothing was written before the crash");
          for (let k = 0; k < seen; k++) {
            await play(vector, limits, k).catch((error) => { throw new Error(`${k} of ${seen} writes survive: ${error.message}`); });
          }
        }
      });
    }
  });
}

describe("in memory", () => {
  for (const vector of loadVectors(folders[0]).filter((v) => !v.ops.some((op) => ["reload", "crash", "flush"].includes(op.op)))) {
    test(`${vector.id} ${vector.title}`, () => new Machine(() => VirtualFs.open(), {}).play(vector));
  }
});
