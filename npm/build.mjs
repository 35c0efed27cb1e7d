// Assembles the package in pkg/ from the module and glue that `cargo xtask build` leaves in target/glue. Run by xtask.
import { build } from "esbuild";
import { cpSync, existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const glue = join(root, "target", "glue");
const pkg = join(root, "pkg");
const dist = join(pkg, "dist");

const manifest = JSON.parse(readFileSync(join(root, "npm", "package.json"), "utf8"));

rmSync(pkg, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

// The schema library resolves references against the page's address, which it reads when it is loaded. Nothing is to be touched
// at import, and a schema means the same wherever it runs: what it uses where there is no page holds everywhere.
const noAddress = {
  name: "no-address",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]json-schema[\\/]dist[\\/]esm[\\/]dereference\.js$/ }, ({ path }) => {
      const parts = readFileSync(path, "utf8").split(/typeof self !== 'undefined'[^?]*\?[^;]*?:\s*(?=new URL\('https:)/);
      return { contents: parts.length === 2 ? parts.join("") : fail("the schema library finds its base in another way than this build knows") };
    });
  },
};

// `boot` is apart so that the entries can use it without making it public; both share one copy of the runtime.
await build({
  absWorkingDir: root,
  entryPoints: {
    sessionlog: "npm/src/index.ts",
    boot: "npm/src/boot.ts",
    // Storage of servers and edge runtimes: for those who have it, and nobody else loads it.
    "durable-object": "npm/src/hosts/durable-object.ts",
    "deno-kv": "npm/src/hosts/deno-kv.ts",
    "server-storage": "npm/src/hosts/node.ts",
    remote: "npm/src/remote/index.ts",
  },
  outdir: dist,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  // What the manifest declares is installed with the package; anything else is bundled.
  external: ["./glue.js", "node:*", ...Object.keys(manifest.dependencies ?? {})],
  chunkNames: "shared-[hash]",
  plugins: [noAddress],
  legalComments: "none",
  logLevel: "warning",
});

// Nothing here has side effects; esbuild's imports for the order of evaluation alone only make other bundlers warn.
for (const name of readdirSync(dist)) {
  const file = join(dist, name);
  writeFileSync(file, readFileSync(file, "utf8").replace(/^import "\.\/shared-[^"]+";\n/gm, ""));
}
// A worker's file stands alone: no chunk that a bundler would have to make anew for it.
await build({ absWorkingDir: root, entryPoints: ["npm/src/opfs-worker.ts"], outdir: dist, bundle: true, format: "esm", target: "es2022", external: ["./glue.js"], legalComments: "none", logLevel: "warning" });

for (const name of readdirSync(join(root, "npm", "entries"))) cpSync(join(root, "npm", "entries", name), join(dist, name));
writeFileSync(join(dist, "glue.js"), withChecks(fastStrings(readFileSync(join(glue, "glue.js"), "utf8"))));
cpSync(join(glue, "glue_bg.wasm"), join(dist, "sessionlog_bg.wasm"));
for (const name of readdirSync(join(root, "npm", "types"))) cpSync(join(root, "npm", "types", name), join(dist, name));
writeFileSync(join(dist, "wasm.d.ts"), `import type { WebAssembly } from "./platform.js";\ndeclare const module: WebAssembly.Module;\nexport default module;\n`);

const base64 = readFileSync(join(dist, "sessionlog_bg.wasm")).toString("base64");
writeFileSync(
  join(dist, "bytes.js"),
  `// The module as text, for places where the file cannot be had.
const base64 = "${base64}";
export default function bytes() {
  if (typeof Uint8Array.fromBase64 === "function") return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}
`,
);

manifest.version = /^version = "(.+)"$/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"))[1];
writeFileSync(join(pkg, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
for (const name of readdirSync(root).filter((n) => n === "README.md" || n.startsWith("LICENSE"))) cpSync(join(root, name), join(pkg, name));

// Tests and page import "sessionlog" as a user would.
const link = join(root, "node_modules", "sessionlog");
const stands = existsSync(join(root, "node_modules")) && lstatSync(link, { throwIfNoEntry: false });
if (!stands || !stands.isSymbolicLink() || readlinkSync(link) !== join("..", "pkg")) {
  rmSync(link, { recursive: true, force: true });
  symlinkSync(join("..", "pkg"), link, "dir");
}

// wasm-bindgen trusts that a text is a text: the length of anything else becomes a wrong size for the allocator, which then
// writes where it must not. So what is copied into the module's memory is looked at first.
function withChecks(source) {
  const expectations = {
    passStringToWasm0: ['typeof arg !== "string"', "a text"],
    passArray8ToWasm0: ["!(arg instanceof Uint8Array)", "a Uint8Array"],
    passArrayF64ToWasm0: ["!Array.isArray(arg) && !(arg instanceof Float64Array)", "a list of numbers"],
  };
  const checked = source.replace(/^function (pass\w+ToWasm0)\((.*)\) \{$/gm, (head, name) => {
    const [test, expected] = expectations[name] ?? fail(`the glue has ${name}, which nobody guards`);
    return `${head}\n    if (${test}) throw new TypeError("sessionlog: ${expected} is expected");`;
  });
  return checked === source ? fail("the glue passes no text: its form has changed") : checked;
}

function fail(message) {
  throw new Error(message);
}

/**
 * The generated glue copies a string into the module unit by unit; past a few dozen units the engine's own encoder is 20
 * times as fast. A text that is not all ASCII goes the generated way.
 */
function fastStrings(source) {
  const loop = "    let offset = 0;\n\n    for (; offset < len; offset++) {";
  const parts = source.split(loop);
  if (parts.length !== 2) throw new Error("the glue copies strings in another way than this build knows");
  const encoded = `    let offset = 0;

    if (len > 48) {
        const { read, written } = cachedTextEncoder.encodeInto(arg, new Uint8Array(mem.buffer, ptr, len));
        if (read === len && written === len) offset = len;
    }
    for (; offset < len; offset++) {`;
  return parts.join(encoded);
}
