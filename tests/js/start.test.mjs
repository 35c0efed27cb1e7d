// Start-up in Node: how the module is found, given, refused, and started anew. Each case runs in a process of its own,
// because a module starts only once.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

function runs(code, { type = "module", args = [] } = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...args, `--input-type=${type}`, "-e", code], { cwd: root, encoding: "utf8", timeout: 60_000 });
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

test("importing compiles nothing and touches no global", () => {
  const code = `
    const touched = [];
    for (const name of ["compile", "instantiate", "compileStreaming", "instantiateStreaming", "Module", "Instance"]) {
      const real = WebAssembly[name];
      Object.defineProperty(WebAssembly, name, { get: () => (touched.push(name), real) });
    }
    for (const name of ["window", "document", "localStorage", "indexedDB", "navigator"]) {
      Object.defineProperty(globalThis, name, { configurable: true, get: () => void touched.push(name) });
    }
    const now = Date.now;
    Date.now = () => (touched.push("Date.now"), now());
    await import("sessionlog");
    console.log(JSON.stringify(touched));`;
  assert.equal(runs(code), "[]");
});

test("init is idempotent and shared while pending", () => {
  const code = `
    import { statSync } from "node:fs";
    import init from "sessionlog";
    let compiled = 0;
    const compile = WebAssembly.compile;
    // Node itself compiles a parser meanwhile; ours is the large one.
    WebAssembly.compile = (bytes) => (compiled += bytes.length === statSync("pkg/dist/sessionlog_bg.wasm").size, compile(bytes));
    await Promise.all([init(), init(), init()]);
    await init();
    console.log(compiled);`;
  assert.equal(runs(code), "1");
});

test("require works", () => {
  assert.equal(runs(`const { default: init, SessionLogError } = require("sessionlog"); init().then(() => console.log(typeof SessionLogError))`, { type: "commonjs" }), "function");
});

test("initSync takes bytes, a module, or an object with one", () => {
  for (const given of ["bytes", "new WebAssembly.Module(bytes)", "{ module: bytes }", "{ module: new WebAssembly.Module(bytes) }"]) {
    const code = `
      import { readFileSync } from "node:fs";
      import init, { initSync } from "sessionlog";
      const bytes = readFileSync("pkg/dist/sessionlog_bg.wasm");
      initSync(${given});
      initSync(${given});
      WebAssembly.compile = () => { throw new Error("compiled again"); };
      await init();
      console.log("ok");`;
    assert.equal(runs(code), "ok", given);
  }
});

test("init takes a URL, a path, bytes, a module, a response, a promise of one, or an object with one", () => {
  const path = JSON.stringify(join(root, "pkg/dist/sessionlog_bg.wasm"));
  const given = [
    `pathToFileURL(${path})`, `pathToFileURL(${path}).href`, path, `readFileSync(${path})`, `new WebAssembly.Module(readFileSync(${path}))`,
    `new Response(readFileSync(${path}), { headers: { "content-type": "application/wasm" } })`,
    `Promise.resolve(readFileSync(${path}))`, `{ module_or_path: readFileSync(${path}) }`, `{ module_or_path: Promise.resolve(${path}) }`,
  ];
  for (const one of given) {
    const code = `
      import { readFileSync } from "node:fs";
      import { pathToFileURL } from "node:url";
      import init from "sessionlog";
      await init(${one});
      console.log("ok");`;
    assert.equal(runs(code), "ok", one);
  }
});

test("what is given explicitly is refused when wrong, never replaced, and init can be tried again", () => {
  const cases = [
    [`new Uint8Array([1, 2, 3])`, "invalid_argument"],
    [`"/no/such/file.wasm"`, "unavailable"],
    [`new Response("gone", { status: 404 })`, "unavailable"],
    [`new Response("<!doctype html>", { headers: { "content-type": "text/html" } })`, "invalid_argument"],
    [`Promise.reject(new Error("no"))`, "unavailable"],
    [`5`, "invalid_argument"],
    [`null`, "invalid_argument"],
    [`{ module_or_path: undefined }`, "invalid_argument"],
  ];
  for (const [given, wanted] of cases) {
    const code = `
      import init, { SessionLogError } from "sessionlog";
      const error = await init(${given}).then(() => null, (thrown) => thrown);
      await init();
      console.log(error instanceof SessionLogError, error?.code);`;
    assert.equal(runs(code), `true ${wanted}`, given);
  }
});

test("a runtime that forbids compiling is named as csp_blocked with the missing policy", () => {
  const messages = [
    "WebAssembly.compile(): Compiling or instantiating WebAssembly module violates the following Content Security policy directive",
    "call to WebAssembly.compile() blocked by CSP",
    "Refused to create a WebAssembly object because 'unsafe-eval' or 'wasm-unsafe-eval' is not an allowed source of script",
    "WebAssembly.compile(): Wasm code generation disallowed by embedder",
  ];
  for (const message of messages) {
    const code = `
      import init from "sessionlog";
      WebAssembly.compile = async () => { throw new WebAssembly.CompileError(${JSON.stringify(message)}); };
      const error = await init().then(() => null, (thrown) => thrown);
      console.log(error.code, error.message.includes("'wasm-unsafe-eval'"));`;
    assert.equal(runs(code), "csp_blocked true", message);
  }
});

test("after an internal fault calls fail fast, the first message is kept, and init gives a working instance", () => {
  const code = `
    import init, { SessionLogError, SessionStore } from "sessionlog";
    import { initSync as exportsOf } from ${JSON.stringify(join(root, "pkg/dist/glue.js"))};
    const use = async () => {
      const store = await SessionStore.open({ storage: { kind: "memory" } });
      const session = store.create();
      for (let i = 0; i < 50; i++) session.append("user/message", { text: "x".repeat(i * 100) });
      return session.seq;
    };
    await init();
    const before = await use();
    const old = (await SessionStore.open({ storage: { kind: "memory" } })).create();
    // Nothing a caller does breaks the module, so the test breaks its memory.
    const { memory } = exportsOf();
    new Uint8Array(memory.buffer).fill(0xff);
    const first = await use().then(() => null, (thrown) => thrown);
    const second = await use().then(() => null, (thrown) => thrown);
    await init();
    let stale;
    try {
      old.append("user/message", { text: "x" });
    } catch (thrown) {
      stale = thrown.code;
    }
    console.log(JSON.stringify([stale, first instanceof SessionLogError, first?.code, second?.code, second?.details.first === first?.details.first, await use() === before]));`;
  assert.equal(runs(code), '["poisoned",true,"poisoned","poisoned",true,true]');
});

test("G05: what was stored before an internal fault is whole after it, and the types that were declared are known again", () => {
  const code = `
    import init, { SessionStore } from "sessionlog";
    import { initSync as exportsOf } from ${JSON.stringify(join(root, "pkg/dist/glue.js"))};
    import { memoryBackend } from ${JSON.stringify(join(root, "tests/js/memory-backend.mjs"))};
    await init();
    const storage = { kind: "custom", backend: memoryBackend() };
    SessionStore.declareEvent("app/note", { ignorable: true });
    const session = (await SessionStore.open({ storage })).create("s1");
    for (let i = 0; i < 20; i++) session.append(i % 2 ? "app/note" : "user/message", { text: String(i) });
    await session.flush();
    const { memory } = exportsOf();
    new Uint8Array(memory.buffer).fill(0xff);
    await SessionStore.open({ storage }).catch(() => {});
    const codes = [];
    for (let i = 0; i < 3; i++) try { session.append("user/message", { text: "lost" }); } catch (thrown) { codes.push(thrown.code); }
    await init();
    const again = await (await SessionStore.open({ storage })).resume("s1", { unknownEvents: "refuse" });
    again.append("app/note", { text: "20" });
    await again.flush();
    console.log(JSON.stringify([codes, again.events.map((e) => e.data.text).join(), again.verify()]));`;
  assert.equal(runs(code), JSON.stringify([["poisoned", "poisoned", "poisoned"], Array.from({ length: 21 }, (_, i) => i).join(), null]));
});

test("the entry with the module inside the script needs no file", () => {
  assert.equal(runs(`import init, { SessionLogError } from "sessionlog/inline"; await init(); console.log(typeof SessionLogError)`), "function");
});

test("the manifest ships what its exports name", () => {
  const manifest = JSON.parse(readFileSync(join(root, "pkg/package.json"), "utf8"));
  const targets = Object.values(manifest.exports).flatMap((entry) => (typeof entry === "string" ? [entry] : Object.values(entry)));
  assert.ok(targets.length > 8);
  for (const target of targets) assert.ok(readFileSync(join(root, "pkg", target)).length > 0, target);
  assert.deepEqual(manifest.files.slice(0, 1), ["dist"]);
});
