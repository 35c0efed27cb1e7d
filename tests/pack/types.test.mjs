// The packed declarations as they are: compiled strictly and not skipped, by the newest TypeScript and the one before it, for
// projects that know the DOM, a worker, Node, Cloudflare's workers, or nothing but the language.
import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { here, project, root, run } from "./helper.mjs";

const workers = join(root, "edge/node_modules/@cloudflare/workers-types/2023-07-01/index.d.ts");
const platforms = {
  "the DOM": { lib: ["es2022", "dom"], files: ["platform.ts", "module.ts"] },
  "a web worker": { lib: ["es2022", "webworker"], files: ["platform.ts", "module.ts"] },
  "Node without the DOM": { lib: ["es2022"], types: ["node"], module: "nodenext", files: ["platform.ts"] },
  "Cloudflare's workers": { lib: ["es2022"], files: ["platform.ts", "module.ts"], also: workers, skip: existsSync(workers) ? false : "the edge host's packages are not installed" },
  "the language alone": { lib: ["es2022"], files: [] },
};

const dir = project("types", { sources: false });
cpSync(join(here, "types"), dir, { recursive: true });

test("the samples use every way into the package", () => {
  const { exports } = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8"));
  const sample = readFileSync(join(dir, "everywhere.ts"), "utf8");
  for (const path of Object.keys(exports)) assert.ok(sample.includes(`from "${path.replace(".", "sessionlog")}"`), path);
});

for (const compiler of ["typescript", "typescript5"]) {
  const { version } = JSON.parse(readFileSync(join(root, "node_modules", compiler, "package.json"), "utf8"));
  for (const [what, { lib, types = [], module = "esnext", files, also, skip = false }] of Object.entries(platforms)) {
    test(`TypeScript ${version}: ${what}`, { skip }, () => {
      const config = {
        compilerOptions: {
          target: "es2022", lib, types, module, moduleResolution: module === "nodenext" ? module : "bundler", typeRoots: [join(root, "node_modules/@types")],
          strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, resolveJsonModule: true, skipLibCheck: false, noEmit: true,
        },
        files: ["everywhere.ts", ...files, ...(also ? [also] : [])],
      };
      writeFileSync(join(dir, "tsconfig.json"), JSON.stringify(config));
      run(process.execPath, [join(root, "node_modules", compiler, "bin/tsc"), "--project", dir], { cwd: dir });
    });
  }
}
