// Every sample of docs/controller.md, compiled as it stands there and run in Chromium against the built package.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import { serveDist } from "./dist-server.mjs";
import { becomes, launch } from "./helper.mjs";

const root = new URL("../../", import.meta.url);
const served = new Map();
let server, browser, samples;

before(async () => {
  const text = await readFile(new URL("docs/controller.md", root), "utf8");
  samples = [...text.matchAll(/```(jsx?)\n([^]*?)```/g)].map(([, language, code]) => ({ language, code }));
  server = await serveDist({ texts: served });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** Bundles a sample; the package is the built one, beside it on the server. */
async function compile(code, loader = "js") {
  const { outputFiles, warnings } = await build({
    stdin: { contents: code, resolveDir: root.pathname, loader }, bundle: true, format: "esm", write: false, jsx: "automatic", logLevel: "silent",
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [{ name: "package", setup: (build) => build.onResolve({ filter: /^sessionlog$/ }, () => ({ path: "/web.js", external: true })) }],
  });
  assert.deepEqual(warnings, []);
  return outputFiles[0].text;
}

async function open(html, scripts) {
  for (const [name, code] of Object.entries(scripts)) served.set(name, code);
  served.set("", `<!doctype html><title>sample</title>${html}`);
  const page = await (await browser.newContext()).newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.lines = [];
  page.on("console", (message) => message.type() === "log" && page.lines.push(message.text()));
  await page.goto(server.url);
  return page;
}

const sample = (start) => {
  const found = samples.filter(({ code }) => code.includes(start));
  assert.equal(found.length, 1, start);
  return found[0];
};

test("there are five samples, and each is run below", () => assert.equal(samples.length, 5));

test("the first one: a task and its undo", async () => {
  const { code } = sample("my-app");
  const page = await open("", { "sample.js": await compile(`${code}\nglobalThis.told = { status: runResult.status, warnings, left: fs.exists("/notes.txt") };`) });
  const told = await page.evaluate(async () => { await import("/sample.js"); return globalThis.told; });
  assert.deepEqual(told, { status: "completed", warnings: [], left: false });
  assert.deepEqual([page.faults, page.lines], [[], ["Wrote notes.txt.", "Undone: 0 restored, 1 deleted."]]);
});

test("React: the transcript grows with the session, the run tells its status, stop stops", async () => {
  const { code, language } = sample("useSyncExternalStore");
  assert.equal(language, "jsx");
  const around = `${code}
    import { createRoot } from "react-dom/client";
    import init, { ChatSessionController, SessionStore, VirtualFs } from "sessionlog";
    await init();
    const store = await SessionStore.open();
    const controller = (globalThis.controller = new ChatSessionController({ store, fs: await VirtualFs.open(), outputFn: () => {} }));
    function App() {
      const { status, result, run, stop } = useRun(controller);
      return <main data-status={status} data-result={result?.status}>
        <button id="say" onClick={() => run("say hello", { model: "scripted/demo" })}>say</button>
        <button id="wait" onClick={() => run("say begun\\nwait 20000", { model: "scripted/demo" })}>wait</button>
        <button id="stop" onClick={stop}>stop</button>
        <Transcript session={controller.session} />
      </main>;
    }
    createRoot(document.querySelector("#root")).render(<App />);`;
  const page = await open('<div id="root"></div><script type="module" src="sample.js"></script>', { "sample.js": await compile(around, "jsx") });
  const shown = () => page.locator("article").evaluateAll((all) => all.map((one) => [one.dataset.role, one.dataset.partial, one.textContent.slice(0, 5)]));
  await page.click("#say");
  await page.locator('main[data-result="completed"]').waitFor();
  await becomes(shown, [["user", "false", "say h"], ["assistant", "false", "hello"]]);
  await page.click("#wait");
  await page.waitForFunction(() => controller.session.events.some(({ type, data }) => type === "assistant/chunk" && data.text.includes("Waiting")));
  await page.click("#stop");
  await page.locator('main[data-result="cancelled"]').waitFor();
  await becomes(async () => (await shown()).at(-1), ["assistant", "true", "begun"]);
  assert.deepEqual(page.faults, []);
});

test("plain JavaScript: words as they come, a question, stop", async () => {
  const page = await open('<form><input name="task"></form><output></output><button class="stop">Stop</button>', { "sample.js": await compile(`${sample('name: "plain"').code}\nglobalThis.controller = controller;`) });
  await page.evaluate(() => import("/sample.js"));
  await page.fill("input", "say hello there");
  await page.press("input", "Enter");
  // The words are there before the run has ended; what is said until then steers it.
  await page.waitForFunction(() => document.querySelector("output").textContent === "hello there" && controller.status === "idle");
  await page.evaluate(() => { const form = document.querySelector("form"); form.innerHTML = '<textarea name="task">say begun\nwait 20000</textarea>'; form.requestSubmit(); });
  await page.waitForFunction(() => document.querySelector("output").textContent.startsWith("begun\nWaiting"));
  await page.click(".stop");
  await page.waitForFunction(() => document.querySelector("output").textContent === "[cancelled]");
  assert.deepEqual(page.faults, []);
});

test("a worker: the page sends a task and gets events, the output and the result", async () => {
  const page = await open("", { "worker.js": await compile(sample("// worker.js").code), "sample.js": await compile(sample("// page.js").code) });
  await page.evaluate(() => import("/sample.js"));
  await becomes(() => page.lines, ["hello", "completed"]);
  assert.deepEqual([page.lines, await page.evaluate(() => document.body.textContent), page.faults], [["hello", "completed"], "hello", []]);
});
