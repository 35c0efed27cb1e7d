// Files: tree and editor by keyboard, diff against before the last run, undo with preview, redo, rewind, conflicts.
import assert from "node:assert/strict";
import { becomes, fileBecomes, openFile, run, transcript, treeItem, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();
const editor = (page) => page.locator(".editor").getByRole("textbox", { name: "File content" });

async function edit(page, path, text) {
  await (await openFile(page, path)).fill(text);
  await until(() => page.locator(".saved").textContent().then((said) => said === ""), "the file to be saved");
}

story("the tree works by keyboard and the editor keeps what is typed", async (page) => {
  await run(page, "write src/lib/a.js: const a = 1;\nwrite src/b.js: let b;\nwrite readme.md: # Hello");
  const tree = page.getByRole("tree", { name: "Files" });
  await becomes(() => tree.getByRole("treeitem").evaluateAll((items) => items.map((item) => item.getAttribute("aria-label"))), [
    "/readme.md", "/src", "/src/b.js", "/src/lib", "/src/lib/a.js",
  ]);
  await treeItem(page, "/readme.md").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowLeft");
  await becomes(() => treeItem(page, "/src").getAttribute("aria-expanded"), "false");
  await treeItem(page, "/src/b.js").waitFor({ state: "detached" });
  await page.keyboard.press("ArrowRight");
  await treeItem(page, "/src/b.js").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await editor(page).waitFor();
  await becomes(() => editor(page).inputValue(), "let b;");
  await edit(page, "/src/b.js", "let b = 2;\n");
  await page.reload();
  await fileBecomes(page, "/src/b.js", "let b = 2;\n");
});

story("the diff of a file is against before the last run, also after a reload", async (page) => {
  await run(page, "write a.txt: one");
  await run(page, "append a.txt: and two\nwrite new.txt: fresh");
  await treeItem(page, "/a.txt").click();
  await page.getByRole("button", { name: "Diff" }).click();
  const diff = page.locator(".file-view .diff");
  await diff.locator(".plus", { hasText: "two" }).first().waitFor();
  await diff.locator(".minus", { hasText: "one" }).first().waitFor();
  await page.reload();
  await treeItem(page, "/a.txt").click();
  await page.getByRole("button", { name: "Diff" }).click();
  await diff.locator(".plus", { hasText: "two" }).first().waitFor();
});

story("undo shows beforehand what goes back, and redo does it again", async (page) => {
  await run(page, "write a.txt: one");
  await run(page, "write a.txt: two\nwrite b.txt: new\ndelete a.txt");
  await page.getByRole("button", { name: "Preview what would go back" }).click();
  const dialog = page.getByRole("dialog", { name: "What goes back" });
  await dialog.locator(".report").getByText("/a.txt").waitFor();
  await dialog.locator(".report").getByText("/b.txt").waitFor();
  await dialog.getByRole("button", { name: "Put it back" }).click();
  await treeItem(page, "/b.txt").waitFor({ state: "detached" });
  await fileBecomes(page, "/a.txt", "one");
  await transcript(page).getByText(/Run undone/).waitFor();
  await page.getByRole("button", { name: "Redo" }).click();
  await treeItem(page, "/b.txt").waitFor();
  await treeItem(page, "/a.txt").waitFor({ state: "detached" });
});

story("a conflict is explained, with a way out", async (page) => {
  await run(page, "write a.txt: agent\nwrite b.txt: agent");
  await edit(page, "/a.txt", "mine");
  await page.getByRole("button", { name: "Undo last run" }).click();
  const dialog = page.getByRole("dialog", { name: /cannot be undone/ });
  await dialog.getByText("/a.txt").waitFor();
  assert.equal(await treeItem(page, "/b.txt").count(), 1, "nothing was touched");
  await dialog.getByRole("button", { name: "Change nothing" }).click();
  await page.getByRole("button", { name: "Undo last run" }).click();
  await dialog.getByRole("button", { name: "Skip these files" }).click();
  await treeItem(page, "/b.txt").waitFor({ state: "detached" });
  await fileBecomes(page, "/a.txt", "mine");
});

story("overwriting a conflict puts the old content back and can itself be undone", async (page) => {
  await run(page, "write a.txt: first");
  await run(page, "write a.txt: agent");
  await edit(page, "/a.txt", "mine");
  await page.getByRole("button", { name: "Undo last run" }).click();
  await page.getByRole("dialog", { name: /cannot be undone/ }).getByRole("button", { name: "Overwrite them" }).click();
  await fileBecomes(page, "/a.txt", "first");
  await page.getByRole("button", { name: "Redo" }).click();
  await fileBecomes(page, "/a.txt", "mine");
});

story("rewind takes back conversation, files or both, and deletes nothing", async (page) => {
  await run(page, "write a.txt: one\nsay did the first");
  await run(page, "write a.txt: two\nsay did the second");
  const second = transcript(page).getByRole("article", { name: "You", exact: true }).last();
  await second.hover();
  await second.getByRole("button", { name: "Rewind to before this" }).click();
  const dialog = page.getByRole("dialog", { name: "Rewind" });
  await dialog.locator(".report").getByText("/a.txt").waitFor();
  await dialog.getByRole("button", { name: "Go back" }).click();
  await transcript(page).getByText(/Went back to here/).waitFor();
  await transcript(page).getByText("did the second", { exact: true }).waitFor({ state: "detached" });
  await fileBecomes(page, "/a.txt", "one");
  await transcript(page).getByText(/Went back to here/).click();
  await transcript(page).getByText("did the second", { exact: true }).waitFor();
  await page.getByRole("tab", { name: "Request" }).click();
  assert.ok(!(await page.getByRole("group", { name: "Derived request" }).textContent()).includes("did the second"));

  await run(page, "write a.txt: three\nsay did the third");
  const third = transcript(page).getByRole("article", { name: "You", exact: true }).last();
  await third.hover();
  await third.getByRole("button", { name: "Rewind to before this" }).click();
  await dialog.getByLabel(/Conversation only/).check();
  await dialog.getByRole("button", { name: "Go back" }).click();
  await transcript(page).getByText("did the third", { exact: true }).waitFor({ state: "detached" });
  await fileBecomes(page, "/a.txt", "three");
});

story("rewind can take back files alone: the conversation stays", async (page) => {
  await run(page, "write a.txt: one\nsay did the first");
  await run(page, "write a.txt: two\nwrite b.txt: new\nsay did the second");
  const second = transcript(page).getByRole("article", { name: "You", exact: true }).last();
  await second.hover();
  await second.getByRole("button", { name: "Rewind to before this" }).click();
  const dialog = page.getByRole("dialog", { name: "Rewind" });
  await dialog.getByLabel(/Files only/).check();
  await dialog.getByRole("button", { name: "Go back" }).click();
  await treeItem(page, "/b.txt").waitFor({ state: "detached" });
  await fileBecomes(page, "/a.txt", "one");
  await transcript(page).getByText("did the second", { exact: true }).waitFor();
});
