// For everyone: axe on every view, keyboard alone, phone width, and the names that a screen reader finds.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { becomes, drawn, ended, openFile, run, transcript, treeItem, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function check(page, what) {
  // Through the debugger, not as a script of the page: the policy would refuse it, rightly.
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html, any }) => html.slice(0, 160) + " " + any.map(({ message }) => message).join("; ")).join(" | ")))`);
  assert.deepEqual(found, [], `axe on ${what}`);
}

for (const colorScheme of ["light", "dark"]) {
  story(`axe finds nothing on any view, ${colorScheme}`, async (page) => {
    await check(page, "first use");
    await run(page, "think so\nwrite src/a.js: const a = 1;\nwrite b.md: # Hello\nsecret\nfail\nsay # Head\nsay | a | b |\nsay [link](https://example.com)");
    await transcript(page).locator("summary").first().click();
    await check(page, "conversation");
    const settings = page.getByRole("dialog", { name: "Settings" });
    await page.getByRole("button", { name: "Settings" }).click();
    await settings.waitFor();
    await check(page, "settings");
    await page.keyboard.press("Escape");
    await settings.waitFor({ state: "detached" });
    await treeItem(page, "/src/a.js").click();
    await page.locator(".editor textarea").waitFor();
    await check(page, "editor");
    await page.getByRole("button", { name: "Diff" }).click();
    await page.getByRole("button", { name: "Diff", pressed: true }).waitFor();
    await check(page, "diff");
    for (const tab of ["Redacted", "Spent", "Request"]) {
      await page.getByRole("tab", { name: tab }).click();
      await page.getByRole("tab", { name: tab, selected: true }).waitFor();
      await drawn(page);
      await check(page, tab);
    }
    await page.getByRole("button", { name: "Preview what would go back" }).click();
    await page.getByRole("dialog", { name: "What goes back" }).locator(".report").waitFor();
    await check(page, "undo preview");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("navigation", { name: "Sessions" }).getByRole("button", { name: "More" }).first().click();
    await page.getByRole("menuitem", { name: "Rename" }).waitFor();
    await check(page, "session menu");
    await page.keyboard.press("Escape");
    await run(page, "crash");
    await page.getByRole("alert").first().waitFor();
    await check(page, "an error");
  }, { context: { colorScheme } });
}

for (const colorScheme of ["light", "dark"]) {
  story(`axe finds nothing on what asks the person something, ${colorScheme}`, async (page) => {
    await run(page, "write a.txt: one\nsay done");
    await page.getByRole("region", { name: "Event log" }).locator(".event summary").first().click();
    await page.getByRole("region", { name: "Event log" }).locator(".raw pre").waitFor();
    await check(page, "a raw event");
    const mine = transcript(page).getByRole("article", { name: "You", exact: true }).last();
    await mine.hover();
    await mine.getByRole("button", { name: "Rewind to before this" }).click();
    await page.getByRole("dialog", { name: "Rewind" }).locator(".report").waitFor();
    await check(page, "rewind");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await (await openFile(page, "/a.txt")).fill("mine");
    await becomes(() => page.locator(".saved").textContent(), "");
    await page.getByRole("button", { name: "Undo last run" }).click();
    const conflict = page.getByRole("dialog", { name: /cannot be undone/ });
    await conflict.getByText("/a.txt").waitFor();
    await check(page, "a conflict");
    await conflict.getByRole("button", { name: "Change nothing" }).click();
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("Ask before the agent changes a file").check();
    await page.keyboard.press("Escape");
    await page.getByRole("textbox", { name: "Message" }).fill("write b.txt: two");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("button", { name: "Approve" }).waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("say steered");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("list", { name: "Waiting to be read" }).waitFor();
    await check(page, "an approval, and a word that waits");
    await page.getByRole("button", { name: "Deny" }).click();
    await ended(page);
    await page.getByRole("navigation", { name: "Sessions" }).getByRole("button", { name: "More" }).first().click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Keep it after all" }).waitFor();
    await check(page, "a deleted session that can be kept");
  }, { context: { colorScheme } });
}

/** By how many pixels the page is wider than the screen. */
const tooWide = (page) => page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth));

/** Long words, long names and long output: what makes a page wider than a phone. */
const LONG = "https://example.com/" + "a-very-long-path-without-any-space/".repeat(6);

for (const colorScheme of ["light", "dark"]) story(`axe finds nothing at phone width, and nothing is wider than the screen, ${colorScheme}`, async (page) => {
  await check(page, "phone first use");
  await run(page, `think ${LONG}\nwrite a-file-with-quite-a-long-name-for-a-phone-${"x".repeat(80)}.txt: ${LONG}\nsecret\nsay ${LONG}\nsay \`${LONG}\`\nsay done`);
  await transcript(page).locator(".tool summary").first().click();
  for (const view of ["List", "Chat", "Files", "Log"]) {
    await page.locator(".views").getByRole("button", { name: view }).click();
    await page.locator(".views").getByRole("button", { name: view, pressed: true }).waitFor();
    await drawn(page);
    await check(page, `phone ${view}`);
    await becomes(() => tooWide(page), 0, `${view} fits`);
    await becomes(() => page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea")].filter((each) => each.checkVisibility() && each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.textContent || each.getAttribute("aria-label"))), [], `${view}: controls off screen`);
  }
  await page.locator(".views").getByRole("button", { name: "Files" }).click();
  await page.getByRole("treeitem").first().click();
  await page.locator(".editor textarea").waitFor();
  await check(page, "phone editor");
  await becomes(() => tooWide(page), 0, "the editor fits");
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("dialog", { name: "Settings" }).waitFor();
  await check(page, "phone settings");
}, { context: { viewport: { width: 375, height: 720 }, hasTouch: true, colorScheme } });

story("from 375 px to wide: nothing is cut off at any width", async (page) => {
  await run(page, "write a.txt: hello\nsay done");
  await treeItem(page, "/a.txt").click();
  await page.locator(".editor textarea").waitFor();
  for (const width of [375, 430, 600, 719, 720, 900, 1079, 1080, 1100, 1279, 1280, 1500, 1800, 2560]) {
    await page.setViewportSize({ width, height: 800 });
    await page.waitForFunction((wanted) => innerWidth === wanted, width);
    await drawn(page);
    // A control that sticks out of the part it belongs to lies under the next part.
    await becomes(() => page.evaluate(() => [...document.querySelectorAll(".top, .sessions, .chat, .composer .box, .files-panel, .log-panel")].filter((part) => part.checkVisibility()).flatMap((part) => {
      const box = part.getBoundingClientRect();
      return [...part.querySelectorAll("button, input, select, textarea")].filter((each) => each.checkVisibility() && !each.closest(".editor")).filter((each) => { const { left, right } = each.getBoundingClientRect(); return right > box.right + 1 || left < box.left - 1; }).map((each) => `${part.className}: ${each.textContent || each.getAttribute("aria-label")}`);
    })), [], `at ${width} px`);
    await becomes(() => tooWide(page), 0, `${width} px: fits`);
  }
});

story("the names of the specification are there, each once", async (page) => {
  await run(page, "write notes/a.txt: hello\nsay done");
  await treeItem(page, "/notes/a.txt").click();
  await page.locator(".editor textarea").waitFor();
  const names = [
    ["textbox", "Message"], ["button", "Send"], ["button", "Stop"], ["button", "New session"], ["button", "Undo last run"], ["button", "Redo"], ["button", "Export"],
    ["button", "Import"], ["log", "Transcript"], ["navigation", "Sessions"], ["tree", "Files"], ["textbox", "File content"], ["region", "Event log"], ["status", "Cost"],
    ["status", "Storage"], ["combobox", "Model"], ["treeitem", "/notes"], ["treeitem", "/notes/a.txt"],
  ];
  for (const [role, name] of names) await until(async () => (await page.getByRole(role, { name, exact: true }).count()) === 1, `one ${role} ${name}`);
  assert.equal(await page.getByRole("alert").count(), 0);
  await run(page, "crash");
  await page.getByRole("alert").waitFor();
  await page.getByRole("button", { name: "Settings" }).click();
  // A locator that waits is strict: it fails where two match.
  await page.getByRole("dialog", { name: "Settings", exact: true }).waitFor();
});

story("keyboard alone: write, send, open a file, undo, close a dialog", async (page) => {
  await page.keyboard.press("Tab");
  for (let step = 0; step < 60 && !(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Message")); step++) await page.keyboard.press("Tab");
  await page.keyboard.type("write a.txt: by keyboard");
  await page.keyboard.press("Enter");
  await treeItem(page, "/a.txt").waitFor();
  await until(() => page.getByRole("button", { name: "Undo last run" }).isEnabled(), "the run to end");
  for (let step = 0; step < 60 && !(await page.evaluate(() => document.activeElement?.getAttribute("role") === "treeitem")); step++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator(".editor textarea").waitFor();
  for (let step = 0; step < 60 && !(await page.evaluate(() => document.activeElement?.textContent.trim() === "Undo last run")); step++) await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await treeItem(page, "/a.txt").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Settings" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Settings" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Settings" }).waitFor({ state: "detached" });
  await until(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Settings"), "focus to go back");
});
