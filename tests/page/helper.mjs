// What every page test shares: the served page, a browser, and a check that nothing broke the policy or threw.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { isDeepStrictEqual } from "node:util";
import { launchChromium } from "../support/chromium.mjs";

const root = new URL("../../", import.meta.url).pathname;

/** Serves www/dist with the server people use; an address in PAGE_URL is taken as it is. */
export async function servePage() {
  if (process.env.PAGE_URL) return { url: process.env.PAGE_URL, stop: async () => {} };
  const child = spawn("cargo", ["xtask", "serve", "--port", "0"], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(text);
      if (found) resolve(found[0]);
    });
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${text}`)));
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  return { url, stop: async () => { child.kill("SIGTERM"); await ended; } };
}

export const launch = launchChromium;

/** A page whose faults are kept: exceptions, and anything the policy refused. */
export async function openPage(context, url) {
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`exception: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|violates/i.test(message.text())) page.faults.push(`policy: ${message.text()}`);
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(url);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await page.getByRole("status", { name: "Storage" }).getByText(/Saved|memory|Following/).waitFor();
  return page;
}

export const transcript = (page) => page.getByRole("log", { name: "Transcript" });
export const treeItem = (page, path) => page.getByRole("treeitem", { name: path, exact: true });

/** Does what starts a run, and waits until that run has ended. */
export async function during(page, start) {
  // A short run may have begun and ended between two looks at the page, so the page itself watches.
  await page.evaluate(watchRun);
  await start();
  await page.evaluate(() => globalThis.ranOnce);
}

/** Runs in the page: `ranOnce` is settled when a run has begun and ended from now on. */
export function watchRun() {
  const stop = document.querySelector(".composer .stop");
  globalThis.ranOnce = new Promise((resolve) => {
    let began = false;
    new MutationObserver(() => { if (!stop.disabled) began = true; else if (began) resolve(); }).observe(stop, { attributes: true });
  });
}

/** Sends a task and waits until the run has ended. */
export async function run(page, task) {
  await page.getByRole("textbox", { name: "Message" }).fill(task);
  await during(page, () => page.getByRole("button", { name: "Send" }).click());
}

/** Waits for the end of a run that is under way; one that may not have begun yet: `during`. */
export async function ended(page) {
  await page.waitForFunction(() => document.querySelector(".composer .stop")?.disabled === true);
}

/** The state after everything that was done so far is drawn: views follow their state before the next frame. */
export const drawn = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))));

/** A look that becomes what is expected, or the difference that is left. `expected`: a value, or a pattern of a text. */
export async function becomes(look, expected, what, forMs = 20_000) {
  const fits = (value) => (expected instanceof RegExp ? expected.test(value) : isDeepStrictEqual(value, expected));
  let value;
  await until(async () => fits((value = await look())), "", forMs).catch(() => {});
  if (expected instanceof RegExp) assert.match(value, expected, what);
  else assert.deepEqual(value, expected, what);
}

const editorOf = (page) => page.locator(".editor").getByRole("textbox", { name: "File content" });

/** Opens a file and waits until it is this one that the editor has. */
export async function openFile(page, path) {
  const item = treeItem(page, path);
  await item.waitFor();
  if ((await item.getAttribute("aria-selected")) !== "true") await item.click();
  await page.locator(".file-view").filter({ has: page.locator(`.file-head code[title=${JSON.stringify(path)}]`) }).locator(".editor textarea").waitFor();
  return editorOf(page);
}

export async function fileBecomes(page, path, text) {
  const editor = await openFile(page, path);
  await becomes(() => editor.inputValue(), text, `the content of ${path}`);
}

export async function until(check, what, forMs = 20_000) {
  const end = Date.now() + forMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited in vain for ${typeof what === "function" ? await what() : what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Runs in the page: what the origin keeps of sessions and settings, as text. Files are the person's own and stay as they are. */
export async function everythingStored() {
  const answer = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const decoder = new TextDecoder();
  const asText = (value) => (value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? decoder.decode(value) : typeof value === "string" ? value : JSON.stringify(value, (_, inner) => (inner instanceof ArrayBuffer || ArrayBuffer.isView(inner) ? decoder.decode(inner) : inner)));
  let text = JSON.stringify({ ...localStorage });
  for (const { name } of await indexedDB.databases()) {
    if (name.includes("files")) continue;
    const database = await answer(indexedDB.open(name));
    for (const store of database.objectStoreNames) text += (await answer(database.transaction(store).objectStore(store).getAll())).map(asText).join("\n");
    database.close();
  }
  return text;
}
