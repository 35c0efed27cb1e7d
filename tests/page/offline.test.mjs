// Served strictly, small, installable, and there without a network after the first visit.
import assert from "node:assert/strict";
import { run, transcript, treeItem, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();

story("the policy is strict and really served", async (page, { url }) => {
  const policy = (await fetch(url)).headers.get("content-security-policy");
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self' 'wasm-unsafe-eval'(;|$)/);
  assert.ok(!/unsafe-inline|unsafe-eval'(?<!wasm-unsafe-eval')|\*(?!;| )/.test(policy.replaceAll("127.0.0.1:*", "").replaceAll("localhost:*", "")), policy);
  const refused = await page.evaluate(() => new Promise((resolve) => {
    addEventListener("securitypolicyviolation", (event) => resolve(event.violatedDirective), { once: true });
    const script = document.createElement("script");
    script.textContent = "document.title = 'ran'";
    document.head.append(script);
  }));
  assert.match(refused, /script-src/);
  assert.equal(await page.title(), "sessionlog");
}, { allow: /script-src/ });

story("after the first visit the page works without a network", async (page, { context }) => {
  await page.evaluate(() => navigator.serviceWorker.ready);
  await until(() => page.evaluate(async () => (await Promise.all((await caches.keys()).map(async (name) => (await (await caches.open(name)).keys()).length))).some((count) => count > 8)), "the files to be kept");
  await run(page, "write a.txt: online");
  await context.setOffline(true);
  await page.reload();
  await treeItem(page, "/a.txt").waitFor();
  await run(page, "write b.txt: offline\nsay without a network");
  await transcript(page).getByText("without a network", { exact: true }).waitFor();
  await treeItem(page, "/b.txt").click();
  await page.locator(".editor textarea").waitFor();
  await context.setOffline(false);
});

story("it can be installed: a manifest with names, icons and a start", async (page) => {
  const href = await page.locator("link[rel=manifest]").getAttribute("href");
  const manifest = await page.evaluate((at) => fetch(at).then((response) => response.json()), href);
  assert.equal(manifest.display, "standalone");
  for (const icon of manifest.icons) assert.ok(await page.evaluate((src) => fetch(src).then((response) => response.ok), `./${icon.src}`), icon.src);
});

story("nothing is fetched from anywhere else", async (page, { context, url }) => {
  const foreign = [];
  context.on("request", (request) => { if (!request.url().startsWith(url) && !/^(blob|data):/.test(request.url())) foreign.push(request.url()); });
  await page.reload();
  await run(page, "write a.md: # hello");
  await treeItem(page, "/a.md").click();
  await page.locator(".editor textarea").waitFor();
  assert.deepEqual(foreign, []);
});
