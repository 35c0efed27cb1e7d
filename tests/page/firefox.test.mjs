// The main stories once more in stock Firefox: a task with files, a reload and undo; redaction; a session out and in again.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launchFirefox, noFirefox } from "../support/firefox.mjs";
import { becomes, everythingStored, servePage, until, watchRun } from "./helper.mjs";

const skip = noFirefox();
const downloads = mkdtempSync(join(tmpdir(), "sessionlog-firefox-"));
let server, browser;

before(async () => {
  if (skip) return;
  server = await servePage();
  browser = await launchFirefox({
    extraPrefsFirefox: { "browser.download.folderList": 2, "browser.download.dir": downloads, "browser.download.useDownloadDir": true, "browser.download.always_ask_before_handling_new_types": false },
  });
});
after(async () => {
  await browser?.close();
  await server?.stop();
  rmSync(downloads, { recursive: true, force: true });
});

const named = (role, name) => `::-p-aria([role="${role}"][name="${name}"])`;
const item = (path) => `[role=treeitem][aria-label="${path}"]`;
const textOf = (page, selector) => page.evaluate((wanted) => document.querySelector(wanted)?.textContent ?? "", selector);
const transcript = (page) => textOf(page, "[role=log][aria-label=Transcript]");
const says = (page, words) => until(async () => (await transcript(page)).includes(words), `"${words}" in the transcript`);

/** A test with a profile of its own; what the page throws or the policy refuses fails it. */
function story(name, work) {
  test(name, { skip, timeout: 120_000 }, async () => {
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => { if (/Content-Security-Policy|violat/i.test(message.text())) faults.push(message.text()); });
    await page.setViewport({ width: 1440, height: 900 });
    try {
      await page.goto(server.url);
      await page.waitForSelector(named("textbox", "Message"));
      await work(page);
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
    }
  });
}

async function run(page, task) {
  // As a paste would: typed, the end of a line would send it.
  await page.$eval("textarea[aria-label=Message]", (box, text) => {
    box.focus();
    document.execCommand("insertText", false, text);
  }, task);
  await page.evaluate(watchRun);
  await page.locator(named("button", "Send")).click();
  await page.evaluate(() => globalThis.ranOnce);
}

async function content(page, path) {
  await page.waitForSelector(item(path));
  if ((await page.$eval(item(path), (element) => element.getAttribute("aria-selected"))) !== "true") await page.click(item(path));
  await page.waitForSelector(`.file-view:has(.file-head code[title=${JSON.stringify(path)}]) .editor textarea`);
  return page.$eval(".editor textarea", (element) => element.value);
}

story("Firefox: a task changes files, all is there after a reload, undo and redo", async (page) => {
  await run(page, "write notes.md: as it was");
  await run(page, "write notes.md: changed\nwrite made/new.txt: new\nsay It is done");
  await says(page, "It is done");
  await page.waitForSelector(item("/made/new.txt"));
  await becomes(() => content(page, "/notes.md"), "changed");
  const costOf = () => textOf(page, "[role=status][aria-label=Cost]");
  await becomes(costOf, /\$0\.0\d*[1-9]/);
  const cost = await costOf();
  await until(async () => /Saved/.test(await textOf(page, "[role=status][aria-label=Storage]")), "the session to be saved");

  await page.reload();
  await says(page, "It is done");
  await becomes(costOf, cost);
  await becomes(() => content(page, "/notes.md"), "changed");

  await page.locator(named("button", "Undo last run")).click();
  await until(async () => (await page.$(item("/made"))) === null, "what was made to be gone");
  await until(async () => (await content(page, "/notes.md")) === "as it was", "the old text");
  await page.locator(named("button", "Redo")).click();
  await page.waitForSelector(item("/made/new.txt"));
  await until(async () => (await content(page, "/notes.md")) === "changed", "the new text again");
});

story("Firefox: a secret is redacted in transcript, log, request and storage", async (page) => {
  await run(page, "secret");
  await says(page, "[REDACTED:github-pat]");
  await run(page, "say thanks");
  await page.locator(named("tab", "Redacted")).click();
  await until(async () => /github-pat/.test(await textOf(page, "section[aria-label='Event log']")), "what was redacted");
  await page.locator(named("tab", "Request")).click();
  await until(async () => /REDACTED:github-pat/.test(await textOf(page, "[aria-label='Derived request']")), "the mark in the request");
  const secret = ["gh", "p_", "Madeup"].join("");
  assert.ok(!(await page.content()).includes(secret));
  await until(async () => /Saved/.test(await textOf(page, "[role=status][aria-label=Storage]")), "the session to be saved");
  const stored = await page.evaluate(everythingStored);
  assert.ok(stored.includes("REDACTED:github-pat"), "the session is stored");
  assert.ok(!stored.includes(secret), "the secret is not");
});

story("Firefox: a session goes out as a file and comes in again", async (page) => {
  await run(page, "write a.txt: hello\nsay exported text");
  await page.locator(named("button", "Export")).click();
  const file = await until(() => readdirSync(downloads).find((name) => name.endsWith(".jsonl") && readFileSync(join(downloads, name)).length > 0), "the download");
  const text = readFileSync(join(downloads, file), "utf8");
  assert.ok(text.includes("exported text") && text.split("\n").length > 5);
  const again = join(downloads, "again.jsonl");
  writeFileSync(again, text.replaceAll("exported text", "imported text"));
  const input = await page.waitForSelector("input[type=file]");
  await input.uploadFile(again);
  await says(page, "imported text");
  await until(async () => (await page.$$("nav[aria-label=Sessions] a")).length === 2, "two sessions");
});
