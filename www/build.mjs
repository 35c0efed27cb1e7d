// Builds the chat page into www/dist: `node www/build.mjs [--dev]`. Run by `cargo xtask start` after the package is in pkg/.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const dist = join(here, "dist");
const assets = join(dist, "assets");
const dev = process.argv.includes("--dev");
// The page imports the package by its name, as any user does; a stand-in can be named for development.
const standIn = process.env.SESSIONLOG_PACKAGE;

rmSync(dist, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });

const result = await build({
  absWorkingDir: here,
  entryPoints: { main: "src/main.tsx" },
  outdir: assets,
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: !dev,
  sourcemap: dev ? "inline" : false,
  metafile: true,
  alias: standIn ? { sessionlog: standIn } : {},
  loader: { ".woff2": "file" },
  assetNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  legalComments: "none",
  logLevel: "warning",
  define: { "process.env.NODE_ENV": dev ? '"development"' : '"production"' },
});

// The package finds its module beside the file that it is bundled into.
if (!standIn) cpSync(join(root, "pkg", "dist", "sessionlog_bg.wasm"), join(assets, "sessionlog_bg.wasm"));
for (const name of ["index.html", "manifest.webmanifest", "icon.svg", "icon-192.png", "icon-512.png"]) cpSync(join(here, name), join(dist, name));

const files = [];
(function walk(folder) {
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) walk(path);
    else files.push(path);
  }
})(dist);

// The worker keeps everything the page can need, so that it opens without a network; its name for the set is a digest of the set.
const digest = createHash("sha256");
for (const path of files) digest.update(relative(dist, path)).update(readFileSync(path));
const list = files.map((path) => "./" + relative(dist, path)).filter((path) => path !== "./index.html");
const worker = readFileSync(join(here, "src", "sw.js"), "utf8")
  .replace("__VERSION__", digest.digest("hex").slice(0, 16))
  .replace("__FILES__", JSON.stringify(["./", ...list]));
writeFileSync(join(dist, "sw.js"), worker);

// What a first visit loads: the entry, what it imports statically, the styles, the fonts for Latin text and the module.
const first = new Set(["index.html", "icon.svg", "manifest.webmanifest"]);
const outputs = Object.fromEntries(Object.entries(result.metafile.outputs).map(([path, output]) => [relative(dist, join(here, path)), output]));
(function follow(path) {
  if (first.has(path)) return;
  first.add(path);
  const output = outputs[path];
  if (output?.cssBundle) first.add(relative(dist, join(here, output.cssBundle)));
  for (const { path: next, kind } of output?.imports ?? []) if (kind === "import-statement") follow(relative(dist, join(here, next)));
})("assets/main.js");
for (const path of files) if (/-latin-wght-normal.*\.woff2$|\.wasm$/.test(path)) first.add(relative(dist, path));
let bytes = 0;
for (const path of first) bytes += gzipSync(readFileSync(join(dist, path)), { level: 9 }).length;
const budget = 600 * 1024;
console.log(`www/dist: first load ${(bytes / 1024).toFixed(1)} KB gzip in ${first.size} files (budget ${budget / 1024})`);
if (!dev && bytes > budget) {
  console.error("www/build: the first load is over its budget");
  process.exit(1);
}
