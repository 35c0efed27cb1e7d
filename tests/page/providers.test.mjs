// The whole story of every adapter in Chromium: the built package in a page, the provider's stream from a loopback server.
import { after, before, test } from "node:test";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import { provider } from "../js/servers/provider.mjs";
import { KEY, PROVIDERS, checkStory } from "../js/support/provider-replies.mjs";
import { launch } from "./helper.mjs";

const types = { js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm" };
const files = { "/story/": new URL("../js/support/", import.meta.url), "/": new URL("../../pkg/dist/", import.meta.url) };
let server, browser, url, sdk;

before(async () => {
  const bundled = await build({
    stdin: { contents: 'export { createOpenAICompatible } from "@ai-sdk/openai-compatible";', resolveDir: new URL("../../", import.meta.url).pathname },
    bundle: true, format: "esm", platform: "browser", write: false, logLevel: "error",
  });
  sdk = bundled.outputFiles[0].text;
  server = createServer(async (request, response) => {
    const { url: path } = request;
    if (path === "/page") return response.setHeader("content-type", "text/html").end("<!doctype html><title>story</title>");
    response.setHeader("content-type", types[path.split(".").pop()] ?? "text/plain");
    if (path === "/sdk.js") return response.end(sdk);
    const [prefix, folder] = Object.entries(files).find(([start]) => path.startsWith(start));
    // The story imports its backend from the folder above.
    const name = path === "/memory-backend.mjs" ? new URL("../js/memory-backend.mjs", import.meta.url) : new URL(path.slice(prefix.length), folder);
    try {
      response.end(await readFile(name));
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${server.address().port}`;
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.close();
});

for (const [name, { model, options, sdk: isSdk, replies }] of Object.entries(PROVIDERS)) {
  test(`${name}: the whole story in the browser`, async () => {
    const loopback = await provider(replies);
    const page = await browser.newPage();
    try {
      await page.goto(`${url}/page`);
      const told = await page.evaluate(
        async ({ model, given, at, key, isSdk }) => {
          const lib = await import("/web.js");
          await lib.default();
          const { tell } = await import("/story/provider-story.mjs");
          if (!isSdk) return tell(lib, model, given);
          const { createOpenAICompatible } = await import("/sdk.js");
          return tell(lib, model, { model: createOpenAICompatible({ name: "loop", baseURL: `${at}/v1`, apiKey: key, includeUsage: true })("m-1") });
        },
        { model, given: options?.(loopback.url) ?? {}, at: loopback.url, key: KEY, isSdk: isSdk === true },
      );
      checkStory(name, told, loopback.requests);
    } finally {
      await page.close();
      await loopback.close();
    }
  });
}
