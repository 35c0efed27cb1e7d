// What goes wrong around a page: reloads in the middle, no storage, a full one, odd addresses, garbage, other tabs.
import assert from "node:assert/strict";
import { becomes, during, ended, fileBecomes, run, transcript, treeItem, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();
const message = (page) => page.getByRole("textbox", { name: "Message" });
const send = (page) => page.getByRole("button", { name: "Send" });
const list = (page) => page.getByRole("navigation", { name: "Sessions" });
const storage = (page) => page.getByRole("status", { name: "Storage" });

async function give(page, task) {
  await message(page).fill(task);
  await send(page).click();
}

async function ask(page) {
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Ask before the agent changes a file").check();
  await page.keyboard.press("Escape");
}

async function bringIn(page, name, text) {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Import" }).click()]);
  await chooser.setFiles({ name, mimeType: "application/jsonl", buffer: Buffer.from(text) });
}

story("a reload in the middle of an answer keeps what had come, says so, and goes on", async (page) => {
  await give(page, "write a.txt: before\nsay The first half\nwait 20000");
  await transcript(page).getByText(/The first half[\s\S]*Waiting \.\./).last().waitFor();
  await page.reload();
  await transcript(page).getByText(/The first half/).last().waitFor();
  await transcript(page).getByText("This answer is incomplete.").waitFor();
  await transcript(page).getByText(/^Interrupted: the page was closed/).waitFor();
  await treeItem(page, "/a.txt").waitFor();
  await transcript(page).getByRole("button", { name: "Go on" }).click();
  await until(async () => (await transcript(page).getByRole("button", { name: "Go on" }).count()) === 0, "the turn to go on");
  await ended(page);
  await run(page, "say It works as before");
  await transcript(page).getByText("It works as before", { exact: true }).waitFor();
  assert.equal(await transcript(page).getByRole("button", { name: "Go on" }).count(), 0, "nothing to go on with once something new was said");
});

story("closed while a tool waits for approval: the next page asks again, and the tool runs once", async (page, { open }) => {
  await ask(page);
  await give(page, "append once.txt: x\nsay through");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await until(async () => /Saved/.test(await storage(page).textContent()), "the question to be saved");
  const address = new URL(page.url()).hash;
  await page.close();
  const next = await open(address);
  await during(next, () => next.getByRole("button", { name: "Approve" }).click());
  await fileBecomes(next, "/once.txt", "x");
});

story("what was said while it ran and not read yet is still there after a reload, and can be taken back", async (page) => {
  await ask(page);
  await give(page, "write a.txt: x\nsay done");
  await page.getByRole("button", { name: "Deny" }).waitFor();
  await give(page, "say a word for later");
  const waiting = page.getByRole("list", { name: "Waiting to be read" });
  await waiting.getByText("say a word for later").waitFor();
  await until(async () => /Saved/.test(await storage(page).textContent()), "the draft to be saved");
  await page.reload();
  await waiting.getByText("say a word for later").waitFor();
  assert.ok(await page.getByRole("button", { name: "Stop" }).isDisabled(), "it was not sent by itself");
  await waiting.getByRole("button", { name: "Take it back" }).click();
  await becomes(() => message(page).inputValue(), "say a word for later");
  await waiting.waitFor({ state: "detached" });
});

story("a full storage is said in words; what was said is kept, saved once there is room, and can be gone on with", async (page) => {
  await run(page, "say saved");
  await until(async () => /Saved/.test(await storage(page).textContent()), "the session to be saved");
  // As browsers do it: the request is taken, the transaction ends with an abort and its reason.
  await page.evaluate(() => {
    const { put } = IDBObjectStore.prototype;
    const { get } = Object.getOwnPropertyDescriptor(IDBTransaction.prototype, "error");
    const full = new WeakSet();
    globalThis.makeRoom = () => { IDBObjectStore.prototype.put = put; };
    Object.defineProperty(IDBTransaction.prototype, "error", { get() { return full.has(this) ? new DOMException("full", "QuotaExceededError") : get.call(this); } });
    IDBObjectStore.prototype.put = function (...values) {
      const request = put.apply(this, values);
      if (!full.has(this.transaction)) queueMicrotask(() => this.transaction.abort());
      full.add(this.transaction);
      return request;
    };
  });
  await run(page, "say out of room");
  await page.getByRole("alert").getByText(/no room left/).waitFor();
  await until(async () => /Not saved/.test(await storage(page).textContent()), "the line on storage to say so");
  await transcript(page).getByText("Stopped: what it did could not be saved.").waitFor();
  await page.evaluate(() => globalThis.makeRoom());
  await until(async () => /Saved/.test(await storage(page).textContent()), "the rest to be saved", 20_000);
  await page.getByRole("alert").getByText(/no room left/).waitFor({ state: "detached" });
  await page.reload();
  await transcript(page).getByText("say out of room", { exact: true }).waitFor();
  await transcript(page).getByRole("button", { name: "Go on" }).click();
  await transcript(page).getByText("out of room", { exact: true }).waitFor();
});

story("without any storage the page works in memory and says what that means", async (page) => {
  await page.addInitScript(() => {
    for (const name of ["indexedDB", "localStorage"]) Object.defineProperty(globalThis, name, { get: () => { throw new DOMException("no", "SecurityError"); } });
  });
  await page.reload();
  await page.getByRole("alert").getByText(/Nothing is saved/).waitFor();
  await becomes(() => storage(page).textContent(), /In memory only/);
  await run(page, "write a.txt: kept in memory\nsay works");
  await transcript(page).getByText("works", { exact: true }).waitFor();
  await treeItem(page, "/a.txt").waitFor();
  await page.getByRole("button", { name: "Undo last run" }).click();
  await treeItem(page, "/a.txt").waitFor({ state: "detached" });
});

story("a storage that a newer version wrote is left alone, with a way on", async (page) => {
  await run(page, "say from before");
  await until(async () => /Saved/.test(await storage(page).textContent()), "the session to be saved");
  const name = await page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name).find((each) => !each.includes("files")));
  await page.goto("about:blank");
  await page.goBack();
  await message(page).waitFor();
  // The database as a later version of the page would leave it.
  await page.evaluate(async (database) => {
    const answer = (request) => new Promise((resolve, reject) => { request.onsuccess = () => resolve(request.result); request.onerror = () => reject(request.error); });
    const { version } = (await indexedDB.databases()).find(({ name }) => name === database);
    (await answer(indexedDB.open(database, version + 100))).close();
  }, name);
  await page.reload();
  await page.getByRole("alert").getByText(/newer version/).waitFor();
  await page.getByRole("button", { name: "Load again" }).waitFor();
  await page.getByRole("button", { name: "Go on without saving" }).click();
  await run(page, "say in memory");
  await transcript(page).getByText("in memory", { exact: true }).waitFor();
  await becomes(() => storage(page).textContent(), /In memory only/);
});

story("back and forward go through sessions; an address of nothing says so", async (page, { open }) => {
  await run(page, "say the first");
  const first = new URL(page.url()).hash;
  await page.getByRole("button", { name: "New session" }).click();
  await run(page, "say the second");
  const second = new URL(page.url()).hash;
  assert.notEqual(first, second);
  await page.goBack();
  await transcript(page).getByText("the first", { exact: true }).waitFor();
  await becomes(() => new URL(page.url()).hash, first);
  await page.goForward();
  await transcript(page).getByText("the second", { exact: true }).waitFor();

  const lost = await open("#/s/there-is-none");
  await lost.getByRole("alert").getByText(/no session at this address/).waitFor();
  await becomes(() => new URL(lost.url()).hash, "");
  const odd = await open("#/s/../../x?<script>");
  assert.equal(await odd.getByRole("alert").count(), 0);
});

story("what is no session is refused in words and changes nothing", async (page) => {
  await run(page, "say mine");
  const garbage = { "text.jsonl": "this is no session", "empty.jsonl": "", "null.json": "null", "list.json": "[[[", "binary.jsonl": "\u0000\u0001\u0002".repeat(500), "shape.json": '{"sessionlog":"one"}' };
  for (const [name, text] of Object.entries(garbage)) {
    await bringIn(page, name, text);
    await page.getByRole("alert").filter({ hasText: `${name} was not brought in` }).waitFor();
  }
  await bringIn(page, "newer.jsonl", '{"sessionlog":9,"header":{"version":9,"id":"x"}}\n');
  await page.getByRole("alert").filter({ hasText: "newer.jsonl was not brought in: a newer version" }).waitFor();
  await becomes(() => list(page).getByRole("link").count(), 1);
  await transcript(page).getByText("mine", { exact: true }).waitFor();
});

story("two tabs send at the same time, each in a session of its own; files come out whole", async (page, { open }) => {
  await run(page, "write start.txt: x");
  const second = await open();
  await second.getByRole("button", { name: "New session" }).click();
  const tasks = ["one", "two"].map((who) => Array.from({ length: 5 }, (_, at) => `write ${who}/${at}.txt: ${who}`).join("\n"));
  await Promise.all([give(page, `${tasks[0]}\nwait 400\nsay first through`), give(second, `${tasks[1]}\nwait 400\nsay second through`)]);
  await Promise.all([transcript(page).locator(".prose", { hasText: "first through" }).waitFor(), transcript(second).locator(".prose", { hasText: "second through" }).waitFor()]);
  for (const tab of [page, second]) for (const who of ["one", "two"]) for (let at = 0; at < 5; at++) await treeItem(tab, `/${who}/${at}.txt`).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
});

story("files that another tab changed are read slowly while a task begins: the task goes on to its end", async (page, { open }) => {
  await run(page, "write start.txt: x");
  const second = await open();
  await second.getByRole("button", { name: "New session" }).click();
  await give(second, "write theirs.txt: 1\nwait 1500\nsay second through");
  await transcript(second).getByText(/Waiting \.\./).last().waitFor();
  await page.evaluate(openSlowly, 500);
  await give(page, "write mine.txt: 1\nwait 1000\nsay first through");
  await transcript(second).locator(".prose", { hasText: "second through" }).waitFor();
  await transcript(page).locator(".prose", { hasText: "first through" }).waitFor();
  for (const tab of [page, second]) for (const name of ["/theirs.txt", "/mine.txt"]) await treeItem(tab, name).waitFor();
  await run(page, "append theirs.txt: 2");
  await fileBecomes(page, "/theirs.txt", "12");
});

/** Runs in the page: the database of files takes that much longer to open. */
function openSlowly(ms) {
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = function (name, ...rest) {
    const request = open.call(this, name, ...rest);
    if (name.includes("files")) request.addEventListener("success", (event) => {
      if (!event.isTrusted) return;
      event.stopImmediatePropagation();
      setTimeout(() => request.dispatchEvent(new Event("success")), ms);
    });
    return request;
  };
}

story("a paste of a megabyte is taken, folded in the transcript, and there after a reload", async (page) => {
  const text = `say short\n${"A line of a long paste, with some words in it.\n".repeat(22_000)}`;
  assert.ok(text.length > 1_000_000);
  await page.evaluate((words) => navigator.clipboard.writeText(words), text);
  await message(page).focus();
  await page.keyboard.press("ControlOrMeta+V");
  await during(page, () => send(page).click());
  const mine = transcript(page).getByRole("article", { name: "You" });
  await mine.getByRole("button", { name: /of 1,0\d\d,\d\d\d characters/ }).waitFor();
  assert.ok((await mine.textContent()).length < 10_000);
  await until(async () => /Saved/.test(await storage(page).textContent()), "it to be saved");
  await page.reload();
  await mine.getByRole("button", { name: /of 1,0\d\d,\d\d\d characters/ }).waitFor();
}, { context: { permissions: ["clipboard-read", "clipboard-write"] } });

story("a session of 200 files: all in the tree, and a run undone in one go", async (page) => {
  for (const part of [0, 1, 2]) {
    await run(page, Array.from({ length: 67 }, (_, at) => `write part-${part}/folder-${at % 10}/file-with-a-rather-long-name-${at}.txt: ${at}`).join("\n"));
  }
  const tree = page.getByRole("tree", { name: "Files" });
  const shown = () => tree.getByRole("treeitem").count();
  await until(async () => (await shown()) === 201 + 3 + 30, "all files and folders", 30_000);
  await page.getByRole("button", { name: "Preview what would go back" }).click();
  const dialog = page.getByRole("dialog", { name: "What goes back" });
  await until(async () => (await dialog.locator(".report li").count()) === 67, "67 files in the preview");
  await dialog.getByRole("button", { name: "Put it back" }).click();
  await until(async () => (await shown()) === 134 + 2 + 20, "the last part to be gone", 30_000);
});
