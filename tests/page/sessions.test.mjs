// The list of sessions: new, search, rename, archive, fork, delete and keep, in and out, a second tab.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { becomes, run, transcript, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();
const list = (page) => page.getByRole("navigation", { name: "Sessions" });
const entry = (page, title) => list(page).getByRole("link", { name: title });

async function menu(page, title, action) {
  const row = list(page).getByRole("listitem").filter({ hasText: title });
  await row.hover();
  await row.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: action, exact: true }).click();
}

/** Lets the browser see a file that a person drops on the page. */
async function drop(page, name, text) {
  const transfer = await page.evaluateHandle(([fileName, content]) => {
    const data = new DataTransfer();
    data.items.add(new File([content], fileName, { type: "application/jsonl" }));
    return data;
  }, [name, text]);
  await page.dispatchEvent(".app", "dragover", { dataTransfer: transfer });
  await page.dispatchEvent(".app", "drop", { dataTransfer: transfer });
}

story("sessions are searched by title and text, renamed, archived and brought back", async (page) => {
  await run(page, "say The heron stands in the reeds");
  await page.getByRole("button", { name: "New session" }).click();
  await run(page, "say Only the otter swims");
  await until(async () => (await list(page).getByRole("link").count()) === 2, "two sessions in the list");

  const search = page.getByRole("searchbox", { name: "Search titles and text" });
  await search.fill("heron reeds");
  await until(async () => (await list(page).getByRole("link").count()) === 1, "one hit by its text");
  await entry(page, /heron/).waitFor();
  await search.fill("nothing like it");
  await list(page).getByText("Nothing found.").waitFor();
  await search.fill("");

  await menu(page, /otter/, "Rename");
  await page.getByRole("textbox", { name: "Session title" }).fill("River notes");
  await page.keyboard.press("Enter");
  await entry(page, "River notes").waitFor();
  await search.fill("river");
  await until(async () => (await list(page).getByRole("link").count()) === 1, "one hit by its title");
  await search.fill("");

  await menu(page, "River notes", "Archive");
  await entry(page, "River notes").waitFor({ state: "detached" });
  await page.getByLabel("Archived too").check();
  await menu(page, "River notes", "Unarchive");
  await page.getByLabel("Archived too").uncheck();
  await entry(page, "River notes").waitFor();
  await list(page).getByText(/used$/).waitFor();
  await page.reload();
  await entry(page, "River notes").waitFor();
});

story("storage used is shown, and grows with what is stored", async (page) => {
  const used = list(page).getByTitle("Storage used by this site");
  await used.waitFor();
  const bytes = async () => {
    const [, value, unit] = /([\d.]+) (B|kB|MB|GB) used/.exec(await used.textContent());
    return Number(value) * { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 }[unit];
  };
  const before = await bytes();
  await run(page, `write big.txt: ${"words ".repeat(200_000)}`);
  await until(async () => (await bytes()) > before + 1e6, "a megabyte more");
});

story("a session forks from a question as well as from an answer", async (page) => {
  await run(page, "say first answer");
  await run(page, "say second answer");
  const question = transcript(page).getByRole("article", { name: "You" }).last();
  await question.hover();
  await question.getByRole("button", { name: "Fork from here" }).click();
  await transcript(page).getByText("Forked here from another session.").waitFor();
  await transcript(page).getByText("say second answer", { exact: true }).waitFor();
  await transcript(page).getByText("second answer", { exact: true }).waitFor({ state: "detached" });
});

story("a session forks from a message and goes its own way", async (page) => {
  await run(page, "say first answer");
  await run(page, "say second answer");
  const first = transcript(page).getByRole("article", { name: "Agent" }).filter({ hasText: "first answer" });
  await first.hover();
  await first.getByRole("button", { name: "Fork from here" }).click();
  await transcript(page).getByText("Forked here from another session.").waitFor();
  await transcript(page).getByText("second answer").waitFor({ state: "detached" });
  await run(page, "say third answer");
  await until(async () => (await list(page).getByRole("link").count()) === 2, "parent and fork in the list");
  await list(page).getByRole("link").nth(1).click();
  await transcript(page).getByText("second answer", { exact: true }).waitFor();
  assert.equal(await transcript(page).getByText("third answer").count(), 0, "the parent did not change");
});

story("a deleted session can be kept after all, and goes for good otherwise", async (page) => {
  await run(page, "say keep me");
  await menu(page, /keep me/, "Delete");
  await entry(page, /keep me/).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Keep it after all" }).click();
  await entry(page, /keep me/).waitFor();
  await transcript(page).getByText("keep me", { exact: true }).waitFor();
  await menu(page, /keep me/, "Delete");
  await entry(page, /keep me/).waitFor({ state: "detached" });
  await page.reload();
  await list(page).getByText("Your sessions appear here.").waitFor();
  await page.reload();
  await list(page).getByText("Your sessions appear here.").waitFor();
});

story("a session goes out and comes in by button and by drop", async (page) => {
  await run(page, "write a.txt: hello\nsay exported text");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  assert.match(download.suggestedFilename(), /\.jsonl$/);
  const text = await readFile(await download.path(), "utf8");
  assert.ok(text.split("\n").length > 5 && text.includes("exported text"));

  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Import" }).click()]);
  await chooser.setFiles({ name: "again.jsonl", mimeType: "application/jsonl", buffer: Buffer.from(text) });
  await page.getByText("Brought in again.jsonl.").waitFor();
  await transcript(page).getByText("exported text", { exact: true }).waitFor();
  await until(async () => (await list(page).getByRole("link").count()) === 2, "two sessions after the import");
  await drop(page, "dropped.jsonl", text);
  await page.getByText("Brought in dropped.jsonl.").waitFor();
  await until(async () => (await list(page).getByRole("link").count()) === 3, "three sessions after the drop");

  await drop(page, "broken.jsonl", "this is no session");
  await page.getByRole("alert").first().waitFor();
});

story("a second tab follows live, says so, and takes over when the first one goes", async (page, { open }) => {
  await run(page, "say from the first tab");
  const second = await open(new URL(page.url()).hash);
  await transcript(second).getByText("from the first tab", { exact: true }).waitFor();
  await second.getByText(/Another tab writes this session/).waitFor();
  await becomes(() => second.getByRole("status", { name: "Storage" }).textContent(), /Following/);
  await becomes(() => second.getByRole("textbox", { name: "Message" }).isDisabled(), true);
  await run(page, "say seen live");
  await transcript(second).getByText("seen live", { exact: true }).waitFor();
  await page.close();
  await until(() => second.getByRole("textbox", { name: "Message" }).isEnabled(), "the second tab to take over");
  await run(second, "say from the second tab");
  await transcript(second).getByText("from the second tab", { exact: true }).waitFor();
});

story("two tabs share the files: each sees what the other changed, and works on from there", async (page, { open }) => {
  await run(page, "write shared.txt: from the first");
  const second = await open();
  await second.getByRole("button", { name: "New session" }).click();
  await second.getByRole("treeitem", { name: "/shared.txt" }).waitFor();
  await run(second, "append shared.txt: , then the second\nwrite more.txt: more");
  await entry(page, /then the second/).waitFor();
  await page.getByRole("treeitem", { name: "/more.txt" }).waitFor();
  await run(page, "read shared.txt\nwrite last.txt: done");
  await transcript(page).getByText(/from the first, then the second/).last().waitFor();
  await second.getByRole("treeitem", { name: "/last.txt" }).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  assert.equal(await second.getByRole("alert").count(), 0);
});
