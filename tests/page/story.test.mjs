// The main job, in a real browser: pick a model, give a task, see it stream, files change, cost add up, a secret redacted in
// transcript, log and next request, everything there after a reload, and undo put the files back. With both models.
import assert from "node:assert/strict";
import { becomes, during, everythingStored, fileBecomes, run, transcript, treeItem, until } from "./helper.mjs";
import { openaiServer } from "./openai-server.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();

/** Valid in form, made up; in parts, so that it stands nowhere as a whole. */
const SECRET = ["gh", "p_", "Madeup0Credential0", "Of0The0Demo0", "48INJx"].join("");

async function putFile(page, path, text) {
  await page.getByRole("button", { name: "New file" }).click();
  await page.getByRole("textbox", { name: "New file path" }).fill(path);
  await page.keyboard.press("Enter");
  await page.locator(".editor textarea").fill(text);
  await until(() => page.locator(".saved").textContent().then((said) => said === ""), "the file to be saved");
  await page.getByRole("button", { name: "Close file" }).click();
}

async function theStory(page, { tasks, nextRequest }) {
  await putFile(page, "config.env", `TOKEN=${SECRET}\n`);
  await putFile(page, "notes.md", "as it was\n");

  // Streams: the answer grows while the run goes on.
  await page.evaluate(() => {
    globalThis.lengths = new Set();
    // The first task puts another transcript in the place of the welcome.
    new MutationObserver(() => lengths.add(document.querySelector(".transcript").textContent.length)).observe(document.querySelector(".chat"), { childList: true, subtree: true, characterData: true });
  });
  await page.getByRole("textbox", { name: "Message" }).fill(tasks.change);
  await during(page, () => page.getByRole("button", { name: "Send" }).click());
  await transcript(page).getByText(tasks.said).first().waitFor();
  const states = await page.evaluate(() => globalThis.lengths.size);
  assert.ok(states > 2, `the answer came in pieces (${states} states seen)`);

  // Files changed, cost added up.
  await treeItem(page, "/made/new.txt").waitFor();
  await fileBecomes(page, "/notes.md", /changed by the agent/);
  const cost = page.getByRole("status", { name: "Cost" });
  await becomes(() => cost.textContent(), /\$0\.00\d*[1-9]|\$\d+\.\d+/);
  const first = await cost.textContent();

  // A secret in a tool's output: redacted in transcript, log and next request.
  await run(page, tasks.leak);
  await until(async () => (await cost.textContent()) !== first, "cost to grow");
  await transcript(page).locator(".tool").filter({ hasText: "config.env" }).locator("summary").first().click();
  await transcript(page).locator(".tool").getByText(/\[REDACTED:/).first().waitFor();
  const log = page.getByRole("region", { name: "Event log" });
  await log.getByRole("combobox", { name: "Type of event" }).selectOption("tool/result");
  await log.getByText(/redacted/).first().waitFor();
  assert.ok(!(await page.content()).includes(SECRET), "the page shows the secret nowhere");
  await run(page, tasks.after);
  const sent = await nextRequest(page);
  assert.ok(sent.includes("[REDACTED:"), "the next request has the mark");
  assert.ok(!sent.includes(SECRET), "the next request has no secret");

  // All of it is there after a reload.
  await until(() => page.getByRole("status", { name: "Storage" }).textContent().then((text) => /Saved/.test(text)), "the session to be saved");
  assert.ok(!(await page.evaluate(everythingStored)).includes(SECRET), "nothing stored has the secret");
  const before = await cost.textContent();
  await page.reload();
  await transcript(page).getByText(tasks.said).first().waitFor();
  await transcript(page).getByText(/\[REDACTED:/).first().waitFor({ state: "attached" });
  await treeItem(page, "/made/new.txt").waitFor();
  await becomes(() => cost.textContent(), before, "cost is the same after the reload");

  // Undo puts the files back; redo does them again.
  await page.getByRole("button", { name: "Undo last run" }).click();
  await treeItem(page, "/made/new.txt").waitFor({ state: "detached" });
  await fileBecomes(page, "/notes.md", "as it was\n");
  await becomes(() => treeItem(page, "/made").count(), 0, "the folder it made is gone as well");
  assert.equal(await cost.textContent(), before, "cost never goes down");
  await page.getByRole("button", { name: "Redo" }).click();
  await treeItem(page, "/made/new.txt").waitFor();
  await fileBecomes(page, "/notes.md", /changed by the agent/);
  await page.getByRole("button", { name: "Undo last run" }).click();
  await treeItem(page, "/made/new.txt").waitFor({ state: "detached" });
  assert.equal(await page.getByRole("alert").count(), 0);
}

story("scripted/demo does the whole story", async (page) => {
  await page.getByRole("combobox", { name: "Model" }).selectOption("scripted/demo");
  await theStory(page, {
    tasks: {
      change: "write made/new.txt: something new\nwrite notes.md: changed by the agent\nwait 300\nsay It is done, as you asked",
      leak: "read config.env",
      after: "say Thanks",
      said: "It is done, as you asked",
    },
    nextRequest: async (page) => {
      await page.getByRole("tab", { name: "Request" }).click();
      return page.getByRole("group", { name: "Derived request" }).textContent();
    },
  });
});

story("an OpenAI-compatible server does the whole story", async (page) => {
  const steps = [
    { calls: [{ name: "write_file", args: { path: "made/new.txt", content: "something new" } }, { name: "write_file", args: { path: "notes.md", content: "changed by the agent" } }] },
    { text: "Both files are written. It is done, as you asked, and this answer comes in many small pieces." },
    { calls: [{ name: "read_file", args: { path: "config.env" } }] },
    { text: "There is a token in it." },
    { text: "You are welcome." },
  ];
  const server = await openaiServer((_, number) => steps[number - 1] ?? { text: "Nothing more." });
  try {
    await page.getByRole("button", { name: "Settings" }).click();
    const dialog = page.getByRole("dialog", { name: "Settings" });
    await dialog.getByLabel("Base URL").fill(server.url);
    await dialog.getByLabel("Model name").fill("gpt-4o-mini");
    await dialog.getByLabel("API key").fill("key-of-the-test-0123456789");
    await dialog.getByRole("button", { name: "Save settings" }).click();
    await becomes(() => page.getByRole("combobox", { name: "Model" }).inputValue(), "openai-compatible/gpt-4o-mini");
    await theStory(page, {
      tasks: { change: "Write two files.", leak: "What is in config.env?", after: "Thanks.", said: "It is done, as you asked" },
      nextRequest: async () => server.requests.at(-1).text,
    });
    assert.equal(server.requests.length, 5);
    assert.equal(server.requests[0].body.stream, true);
    assert.equal(server.requests[0].headers.authorization, "Bearer key-of-the-test-0123456789");
    const stored = await page.evaluate(everythingStored);
    assert.ok(!stored.includes("key-of-the-test"), "the key is stored nowhere");
  } finally {
    await server.stop();
  }
});
