// Pictures of the main views in light, dark and phone width: `node tests/page/shots.mjs [folder] [names…]` (`cargo xtask shots`).
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { drawn, launch, openPage, run, servePage, treeItem } from "./helper.mjs";

const [, , target, ...only] = process.argv;
const folder = target ?? new URL(".out/shots", import.meta.url).pathname;
mkdirSync(folder, { recursive: true });
const server = await servePage();
const browser = await launch();
const TASK = [
  "think The person wants a small site. A page, a style and a note are enough.",
  "write site/index.html: <h1>Heron</h1>", "write site/style.css: h1 { color: teal }", "write notes.md: # To do", "append notes.md: , soon", "fail", "secret",
  "say ## Done", "say Three files are written: **index.html**, **style.css** and `notes.md`.",
].join("\n");

const LONG = `https://example.com/${"a-long-path-without-any-space/".repeat(8)}`;

for (const [name, options] of [
  ["light", { colorScheme: "light", viewport: { width: 1440, height: 900 } }],
  ["dark", { colorScheme: "dark", viewport: { width: 1440, height: 900 } }],
  ["wide", { colorScheme: "light", viewport: { width: 1920, height: 1080 } }],
  ["small", { colorScheme: "light", viewport: { width: 1100, height: 720 } }],
  ["phone", { colorScheme: "light", viewport: { width: 375, height: 760 }, hasTouch: true }],
  ["phone-dark", { colorScheme: "dark", viewport: { width: 375, height: 760 }, hasTouch: true }],
]) {
  if (only.length > 0 && !only.includes(name)) continue;
  const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
  const page = await openPage(context, server.url);
  const shot = async (view) => { await drawn(page); await page.screenshot({ path: join(folder, `${name}-${view}.png`) }); };
  const part = (label) => (name.startsWith("phone") ? page.locator(".views").getByRole("button", { name: label }).click() : null);
  await shot("1-first-use");
  await run(page, "say The first session of many");
  await part("List");
  await page.getByRole("button", { name: "New session" }).click();
  await run(page, TASK);
  await shot("2-conversation");
  await page.getByRole("log", { name: "Transcript" }).locator(".tool summary").last().click();
  await shot("3-tool-call");
  await part("Files");
  await treeItem(page, "/site/index.html").click();
  await page.locator(".editor textarea").waitFor();
  await shot("4-files");
  await page.getByRole("button", { name: "Diff" }).click();
  await shot("5-diff");
  await part("Log");
  await page.getByRole("tab", { name: "Redacted" }).click();
  await shot("6-redacted");
  await page.getByRole("tab", { name: "Spent" }).click();
  await shot("7-cost");
  await page.getByRole("tab", { name: "Request" }).click();
  await shot("8-request");
  await part("Chat");
  await page.getByRole("button", { name: "Preview what would go back" }).click();
  await shot("9-undo-preview");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Ask before the agent changes a file").check();
  await shot("10-settings");
  await page.keyboard.press("Escape");
  await page.getByRole("textbox", { name: "Message" }).fill("write site/index.html: <h1>Egret</h1>");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("button", { name: "Deny" }).waitFor();
  await shot("11-approval");
  await page.getByRole("button", { name: "Deny" }).click();
  await part("List");
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("button", { name: "More" }).first().click();
  await shot("12-sessions");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "New session" }).click();
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Ask before the agent changes a file").uncheck();
  await page.keyboard.press("Escape");
  await run(page, `think ${LONG}\nwrite ${"a-folder-with-a-long-name/".repeat(3)}and-a-file-with-an-even-longer-name.txt: ${LONG}\nread ${"a-folder-with-a-long-name/".repeat(3)}and-a-file-with-an-even-longer-name.txt\nsay ${LONG}\nsay | a | table | of | many | columns | that | do | not | fit |\nsay | - | - | - | - | - | - | - | - | - |\nsay | ${"some-word | ".repeat(9)}`);
  await page.getByRole("log", { name: "Transcript" }).locator(".tool summary").last().click();
  await shot("13-long");
  await run(page, "write draft.txt: x\ncrash");
  await page.getByRole("alert").first().waitFor();
  await shot("14-error");
  await part("Files");
  await shot("15-long-names");
  await context.close();
}
await browser.close();
await server.stop();
console.log(`pictures in ${folder}`);
