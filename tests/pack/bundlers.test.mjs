// G07. The packed tarball through bundlers without plug-ins or settings for it, run in Chromium: page, dedicated and shared worker;
// and init that is given the module by the one line that docs/bundlers.md has for each.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { expected } from "./app/src/smoke.js";
import { closeBrowser, filesBelow, open, openDir, project, root, run, serve, tool } from "./helper.mjs";

after(closeBrowser);
const everywhere = { page: expected, dedicated: expected, shared: expected };

for (const name of ["vite", "vite7", "vite5"]) {
  const vite = await import(name);
  test(`Vite ${vite.version}: build`, async () => {
    const root = project(`${name}-build`);
    await vite.build({ root, base: "./", configFile: false, logLevel: "error", build: { target: "es2022" }, worker: { format: "es" } });
    assert.ok(filesBelow(join(root, "dist"), /sessionlog_bg.*\.wasm$/).length > 0, "the module is a file of the build");
    const { result, requests } = await openDir(join(root, "dist"));
    assert.deepEqual(result, everywhere);
    assert.ok(!requests.some((path) => /bytes/.test(path)), "the text copy is not loaded when the file is there");
  });
  test(`Vite ${vite.version}: development server`, async () => {
    const root = project(`${name}-dev`);
    const server = await vite.createServer({ root, configFile: false, logLevel: "error", cacheDir: join(root, ".vite"), server: { host: "127.0.0.1", port: 0, strictPort: false, hmr: false }, worker: { format: "es" } });
    try {
      await server.listen();
      assert.deepEqual((await open(`http://127.0.0.1:${server.httpServer.address().port}/`)).result, everywhere);
    } finally {
      await server.close();
    }
  });
  test(`Vite ${vite.version}: init is given the module, on the development server and in the preview of a build`, async () => {
    const root = named(`${name}-explicit`, "Vite");
    const shared = { root, configFile: false, logLevel: "error" };
    const server = await vite.createServer({ ...shared, cacheDir: join(root, ".vite"), server: { host: "127.0.0.1", port: 0, hmr: false } });
    try {
      await server.listen();
      await takesAll(`http://127.0.0.1:${server.httpServer.address().port}/`);
    } finally {
      await server.close();
    }
    await vite.build({ ...shared, build: { target: "es2022", rollupOptions: { input: join(root, "explicit.html") } } });
    const preview = await vite.preview({ ...shared, preview: { host: "127.0.0.1", port: 0 } });
    try {
      await takesAll(`http://127.0.0.1:${preview.httpServer.address().port}/`);
    } finally {
      preview.httpServer.closeAllConnections?.();
      await new Promise((done) => preview.httpServer.close(done));
    }
  });
}

test("webpack 5", async () => {
  const { default: webpack } = await import("webpack");
  const dir = project("webpack");
  const stats = await new Promise((ok, no) =>
    webpack({ mode: "production", context: dir, entry: "./src/main.js", output: { path: join(dir, "dist"), filename: "main.js" }, devtool: false, performance: { hints: false } }, (error, stats) =>
      error ? no(error) : ok(stats),
    ),
  );
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString({ all: false, errors: true, warnings: true }));
  page(dir, join(dir, "dist"), "main.js");
  assert.deepEqual((await openDir(join(dir, "dist"))).result, everywhere);
});

const entries = ["src/main.js", "src/dedicated.js", "src/shared.js", "src/service.js", "src/service-page.js"];

for (const splitting of [true, false]) {
  test(`esbuild ${splitting ? "with" : "without"} splitting; service worker too`, async () => {
    const { build } = await import("esbuild");
    const dir = project(`esbuild-${splitting}`);
    await build({ absWorkingDir: dir, entryPoints: entries, outdir: "dist", bundle: true, splitting, format: "esm", logLevel: "error" });
    page(dir, join(dir, "dist"), "main.js");
    assert.deepEqual((await openDir(join(dir, "dist"))).result, everywhere);
    page(dir, join(dir, "dist"), "service-page.js");
    // Service workers cannot import(): without splitting the copy is part of the script.
    if (!splitting) assert.deepEqual((await openDir(join(dir, "dist"))).result, { service: expected });
  });
}

test("Rollup with node-resolve", async () => {
  const { rollup } = await import("rollup");
  const { nodeResolve } = await import("@rollup/plugin-node-resolve");
  const dir = project("rollup");
  const bundle = await rollup({ input: entries.slice(0, 3).map((name) => join(dir, name)), plugins: [nodeResolve({ browser: true })] });
  await bundle.write({ dir: join(dir, "dist"), format: "es" });
  await bundle.close();
  page(dir, join(dir, "dist"), "main.js");
  assert.deepEqual((await openDir(join(dir, "dist"))).result, everywhere);
});

test("Parcel: the page", async () => {
  const dir = project("parcel");
  // Parcel's workers are classic scripts unless the app says otherwise; what is promised is the page.
  cpSync(join(dir, "src/smoke.js"), join(dir, "src/main-smoke.js"));
  writeFileSync(join(dir, "src/main.js"), `import { smoke } from "./main-smoke.js";\nsmoke().catch((e) => "FAIL " + e.message).then((page) => { globalThis.RESULT = { page }; document.title = "done"; });\n`);
  run(process.execPath, [tool("parcel/lib/bin.js"), "build", "index.html", "--no-cache", "--cache-dir", join(dir, ".cache"), "--no-autoinstall", "--public-url", "./", "--log-level", "error", "--dist-dir", "dist"], { cwd: dir, env: { PARCEL_WORKERS: "0" } });
  assert.deepEqual((await openDir(join(dir, "dist"))).result, { page: expected });
});

test("webpack 5: init is given the module", async () => {
  const { default: webpack } = await import("webpack");
  const dir = named("webpack-explicit", "webpack");
  const stats = await new Promise((ok, no) =>
    webpack({ mode: "production", context: dir, entry: "./src/explicit.js", output: { path: join(dir, "dist"), filename: "explicit.js" }, devtool: false, performance: { hints: false } }, (error, stats) => (error ? no(error) : ok(stats))),
  );
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString({ all: false, errors: true, warnings: true }));
  await servesAll(dir);
});

test("esbuild: init is given the module", async () => {
  const { build } = await import("esbuild");
  const dir = named("esbuild-explicit", "esbuild");
  await build({ absWorkingDir: dir, entryPoints: ["src/explicit.js"], outdir: "dist", bundle: true, splitting: true, format: "esm", loader: { ".wasm": "file" }, logLevel: "error" });
  await servesAll(dir);
});

test("Parcel: init is given the module", async () => {
  const dir = named("parcel-explicit", "Parcel");
  run(process.execPath, [tool("parcel/lib/bin.js"), "build", "explicit.html", "--no-cache", "--cache-dir", join(dir, ".cache"), "--no-autoinstall", "--public-url", "./", "--log-level", "error", "--dist-dir", "dist"], { cwd: dir, env: { PARCEL_WORKERS: "0" } });
  await servesAll(dir, "explicit.html");
});

/** The app with the line that names the module's file, as the document has it for this bundler. */
function named(name, bundler) {
  const dir = project(name);
  const [, line] = readFileSync(join(root, "docs/bundlers.md"), "utf8").match(new RegExp(`^\\| ${bundler} \\| \`([^\`]+)\``, "m"));
  writeFileSync(join(dir, "src/file.js"), `${line}\nexport default file;\n`);
  return dir;
}

/** One visit for each thing that init takes; the text copy is loaded for none of them. */
async function takesAll(url, path = "explicit.html") {
  for (const given of ["url", "URL", "request", "response", "awaited", "bytes", "module", "object"]) {
    const { result, requests } = await open(`${url}${path}?given=${given}`);
    assert.equal(result, expected, given);
    assert.ok(requests.some((path) => /\.wasm$/.test(path)) && !requests.some((path) => /bytes/.test(path)), `${given}: ${requests}`);
  }
}

async function servesAll(dir, html) {
  if (!html) page(dir, join(dir, "dist"), "explicit.js");
  const server = await serve(join(dir, "dist"));
  try {
    await takesAll(server.url, html ?? "index.html");
  } finally {
    await server.close();
  }
}

/** The app's page beside the built script. */
function page(dir, into, script) {
  const html = readFileSync(join(dir, "index.html"), "utf8").replace("./src/main.js", `./${script}`);
  writeFileSync(join(into, "index.html"), html);
}
