// The chat page with its sessions on a host: two browsers see one session, live.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { launchChromium } from "../support/chromium.mjs";
import { freshDisk, root, skip, startHost, tokens } from "./host.mjs";

const types = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", ".css": "text/css", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json" };
let host;
let server;
let browsers = [];
before(async () => {
  if (skip) return;
  execFileSync(process.execPath, [join(root, "www/build.mjs")], { stdio: "inherit" });
  host = await startHost({ disk: freshDisk({ memory: true }) });
  const policy = readFileSync(join(root, "www/csp.txt"), "utf8").replace(/\s+/g, " ").trim();
  server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://x").pathname);
    let file = join(root, "www/dist", path);
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream", "content-security-policy": policy }).end(readFileSync(file));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
});
after(async () => {
  await Promise.all(browsers.map((browser) => browser.close().catch(() => {})));
  server?.closeAllConnections();
  server?.close();
  await host?.kill();
});

async function open() {
  const browser = await launchChromium();
  browsers.push(browser);
  const page = await browser.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && /Content Security Policy/.test(message.text()) && page.faults.push(message.text()));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  return page;
}

/** Chooses the host in the settings, as a person does. */
async function moveTo(page, url, token) {
  await page.getByRole("button", { name: "Settings" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Settings" });
  await dialog.getByRole("textbox", { name: "Host", exact: true }).fill(url);
  await dialog.getByLabel("Host token").fill(token);
  await Promise.all([page.waitForEvent("load"), dialog.getByRole("button", { name: "Use this storage" }).click()]);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
}

async function send(page, task) {
  await page.getByRole("textbox", { name: "Message" }).fill(task);
  await page.getByRole("button", { name: "Send" }).click();
}

test("a session written in one browser is seen live in the other", { skip, timeout: 120_000 }, async () => {
  const [one, two] = [await open(), await open()];
  await moveTo(one, host.url, tokens.alice);
  await moveTo(two, host.url, tokens.alice);
  await send(one, "say kept on the host");
  const transcript = (page) => page.getByRole("log", { name: "Transcript" });
  await transcript(one).getByText("kept on the host", { exact: true }).last().waitFor();
  // The list of the other browser comes to know of it, and of what it is called later, by itself.
  const listed = two.getByRole("navigation", { name: "Sessions" }).getByRole("link", { name: /kept on the host/ });
  await listed.waitFor();
  const address = await one.waitForFunction(() => /^#\/s\//.test(location.hash) && location.hash).then((found) => found.jsonValue());
  await two.evaluate((hash) => { location.hash = hash; }, address);
  await transcript(two).getByText("kept on the host", { exact: true }).last().waitFor();
  // What is written from now on comes by itself.
  await send(one, "say and this comes live");
  await transcript(two).getByText("and this comes live", { exact: true }).last().waitFor();
  assert.deepEqual([one.faults, two.faults], [[], []]);
});
