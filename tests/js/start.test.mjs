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

// Each entry as the runtime that it is for would find it.
const entries = [
  ["sessionlog"], ["sessionlog", "browser"], ["sessionlog", "workerd"], ["sessionlog", "edge-light"], ["sessionlog/web"], ["sessionlog/inline"],
  ["sessionlog/durable-object"], ["sessionlog/deno-kv"], ["sessionlog/node"], ["sessionlog/remote"],
];
// Workers' bundlers hand over compiled modules; Node would not.
const compiledImports = `data:text/javascript,${encodeURIComponent(`
  import { register } from "node:module";
  register("data:text/javascript," + encodeURIComponent(\`
    export const load = (url, context, next) => /[.]wasm([?]module)?$/.test(url) ? { format: "module", source: "export default null", shortCircuit: true } : next(url, context);
  \`));
`)}`;

test("importing compiles nothing and touches no global, clock or chance, whatever the entry", () => {
  for (const [entry, condition] of entries) {
    const code = `
      const touched = [];
      for (const name of ["compile", "instantiate", "compileStreaming", "instantiateStreaming", "Module", "Instance"]) {
        const real = WebAssembly[name];
        Object.defineProperty(WebAssembly, name, { get: () => (touched.push(name), real) });
      }
      for (const name of ["window", "self", "location", "document", "localStorage", "sessionStorage", "indexedDB", "caches", "navigator", "Worker", "SharedWorker", "BroadcastChannel", "WebSocket"]) {
        Object.defineProperty(globalThis, name, { configurable: true, get: () => void touched.push(name) });
      }
      // Kept for later is not called: only calls count.
      const calls = (object, name) => {
        const real = object[name];
        object[name] = function (...args) {
          touched.push(name);
          return real?.apply(this, args);
        };
      };
      for (const name of ["setTimeout", "setInterval", "queueMicrotask", "fetch", "addEventListener"]) calls(globalThis, name);
      calls(Date, "now");
      calls(performance, "now");
      calls(Math, "random");
      calls(crypto, "getRandomValues");
      calls(crypto, "randomUUID");
      const RealDate = Date;
      globalThis.Date = new Proxy(RealDate, {
        construct: (target, args) => (args.length === 0 && touched.push("new Date()"), new target(...args)),
        apply: (target, self, args) => (touched.push("Date()"), target(...args)),
      });
      const found = await import(${JSON.stringify(entry)});
      console.log(JSON.stringify([touched, Object.keys(found).length > 0]));`;
    const args = ["--no-warnings", "--import", compiledImports, ...(condition ? ["--conditions", condition] : [])];
    assert.equal(runs(code, { args }), "[[],true]", `${entry} ${condition ?? ""}`);
  }
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

test("what initSync cannot start is invalid_argument, and it can be tried again", () => {
  const given = ["undefined", "null", "5", `"sessionlog.wasm"`, "{}", "{ module: undefined }", "[]", "new Uint8Array([1, 2, 3])", "new ArrayBuffer(0)", "Promise.resolve(bytes)"];
  const code = `
    import { readFileSync } from "node:fs";
    import { runInNewContext } from "node:vm";
    import { initSync, SessionLogError, version } from "sessionlog";
    const bytes = readFileSync("pkg/dist/sessionlog_bg.wasm");
    const codes = [${given.map((one) => `() => ${one}`).join()}].map((make) => {
      try {
        initSync(make());
      } catch (thrown) {
        return thrown instanceof SessionLogError ? thrown.code : String(thrown);
      }
    });
    // Bytes of another realm are bytes.
    initSync(runInNewContext("new Uint8Array(bytes).buffer", { bytes }));
    console.log(JSON.stringify([codes, typeof version()]));`;
  assert.equal(runs(code), JSON.stringify([given.map(() => "invalid_argument"), "string"]));
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

// What a server or the way to it can do to the file, and whether the copy helps.
const answers = {
  "cut off": `new Response(bytes.subarray(0, 5000), { headers })`,
  "broken off": `new Response(new ReadableStream({ start(c) { c.enqueue(bytes.subarray(0, 5000)); setTimeout(() => c.error(new TypeError("network error")), 5); } }), { headers })`,
  "a page": `new Response("<!doctype html>", { headers })`,
  empty: `new Response(null, { status: 204, headers })`,
};
const typesOfFiles = ["application/wasm", "application/octet-stream"];

test("a file that comes damaged: init finds the copy as text, and init that was given it refuses", () => {
  for (const [what, answer] of Object.entries(answers)) for (const type of typesOfFiles) {
    const code = `
      import { readFileSync } from "node:fs";
      import init, { SessionLogError, version } from "sessionlog/web";
      const bytes = readFileSync("pkg/dist/sessionlog_bg.wasm");
      const headers = { "content-type": ${JSON.stringify(type)} };
      globalThis.fetch = async () => ${answer};
      const codes = [];
      for (const given of ["https://example.com/sessionlog_bg.wasm", fetch(), await fetch()]) {
        codes.push(await init(given).then(() => "started", (thrown) => thrown instanceof SessionLogError ? thrown.code : String(thrown)));
      }
      await init();
      console.log(codes.join(), typeof version());`;
    const wanted = what === "broken off" ? "unavailable" : "invalid_argument";
    assert.equal(runs(code), `${wanted},${wanted},${wanted} string`, `${what}, ${type}`);
  }
});

test("a copy that cannot be read either is unavailable, and a policy that forbids compiling is told without it", () => {
  const broken = `data:text/javascript,${encodeURIComponent(`
    import { register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(\`
      export const load = (url, context, next) => { if (url.endsWith("/bytes.js")) throw new TypeError("not served"); return next(url, context); };
    \`));
  `)}`;
  const code = (compile) => `
    import { readFileSync } from "node:fs";
    import init, { SessionLogError } from "sessionlog/web";
    globalThis.fetch = async () => ${compile ? `new Response(readFileSync("pkg/dist/sessionlog_bg.wasm"))` : `{ throw new TypeError("offline"); }`};
    ${compile}
    const error = await init().then(() => null, (thrown) => thrown);
    console.log(error instanceof SessionLogError, error?.code);`;
  const args = ["--no-warnings", "--import", broken];
  // Node itself compiles a parser meanwhile; ours is the large one.
  const forbids = `const { compile } = WebAssembly;
    WebAssembly.compile = async (bytes) => { if (bytes.length < 1e5) return compile(bytes); throw new WebAssembly.CompileError("blocked by CSP"); };`;
  assert.equal(runs(code(""), { args }), "true unavailable");
  assert.equal(runs(code(forbids), { args }), "true csp_blocked");
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
