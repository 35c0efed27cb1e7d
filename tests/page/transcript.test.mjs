// The conversation: markup that cannot run, honest ends, approvals, steering, and thousands of messages.
import assert from "node:assert/strict";
import init, { SessionStore } from "sessionlog";
import { ended, run, transcript, treeItem, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();
const message = (page) => page.getByRole("textbox", { name: "Message" });
const send = (page) => page.getByRole("button", { name: "Send" });

story("first use: a sentence, and three tasks that show files, undo and redaction", async (page) => {
  await page.getByRole("heading", { level: 2, name: /^An agent/ }).waitFor();
  const tasks = transcript(page).getByRole("button");
  assert.equal(await tasks.count(), 3);
  await tasks.nth(0).click();
  await ended(page);
  await treeItem(page, "/plan.md").waitFor();
  await page.getByRole("button", { name: "New session" }).click();
  await transcript(page).getByRole("button").nth(1).click();
  await ended(page);
  await treeItem(page, "/ideas/one.md").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo last run" }).click();
  await treeItem(page, "/ideas/one.md").waitFor();
  await page.getByRole("button", { name: "New session" }).click();
  await transcript(page).getByRole("button").nth(2).click();
  await ended(page);
  await transcript(page).locator("mark.redacted").first().waitFor();
});

story("markdown is rendered and no markup of a model runs", async (page) => {
  await run(page, [
    "say # A heading\n", "say Some **bold** and `code` and [a link](https://example.com/x)",
    "say <img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script><iframe src=\"https://example.com\"></iframe>",
    "say [click](javascript:document.title='ran') <a href=\"javascript:document.title='ran'\" style=\"position:fixed\">x</a> <svg onload=\"document.title='ran'\"></svg>",
  ].join("\n"));
  const answer = transcript(page).locator(".prose").last();
  await answer.locator("h3", { hasText: "A heading" }).waitFor();
  await answer.locator("strong", { hasText: "bold" }).waitFor();
  assert.equal(await answer.getByRole("link", { name: "a link" }).getAttribute("rel"), "noopener noreferrer");
  assert.equal(await answer.locator("img, script, iframe, svg, [style], [onerror], a[href^='javascript']").count(), 0);
  await answer.getByText("<img src=x onerror").waitFor();
  assert.equal(await page.title(), "sessionlog");
});

story("a stopped and a broken answer are kept and called what they are", async (page) => {
  await message(page).fill("say The beginning\nwait 20000");
  await send(page).click();
  await transcript(page).getByText(/Waiting/).last().waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await ended(page);
  await transcript(page).getByText("This answer is incomplete.").waitFor();
  await transcript(page).getByText(/^Stopped/).waitFor();
  await transcript(page).getByText(/The beginning/).last().waitFor();
  assert.equal(await page.getByRole("alert").count(), 0, "stopping is no error");
  await page.reload();
  await transcript(page).getByText("This answer is incomplete.").waitFor();

  await run(page, "crash");
  await page.getByRole("alert").first().waitFor();
  await transcript(page).getByText("The model could not finish this answer.").waitFor();
  await page.getByRole("button", { name: "Dismiss" }).click();
  await run(page, "say It goes on");
  await transcript(page).getByText("It goes on", { exact: true }).waitFor();
});

story("tool calls are folded with their diffs; a failed one says so", async (page) => {
  await run(page, "write a.txt: one");
  await run(page, "write a.txt: two\nfail");
  const call = transcript(page).getByRole("article", { name: "Tool write_file" }).last();
  assert.equal(await call.locator(".diff").isVisible(), false, "folded at first");
  await call.locator("summary").click();
  await call.locator(".diff .line.minus", { hasText: "one" }).waitFor();
  await call.locator(".diff .line.plus", { hasText: "two" }).waitFor();
  await transcript(page).getByRole("article", { name: "Tool read_file" }).getByText("failed", { exact: true }).waitFor();
  await page.reload();
  const again = transcript(page).getByRole("article", { name: "Tool write_file" }).last();
  await again.locator("summary").click();
  await again.locator(".diff .line.plus", { hasText: "two" }).waitFor();
});

story("approvals stand in the transcript: approve runs the call, deny does not", async (page) => {
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Ask before the agent changes a file").check();
  await page.keyboard.press("Escape");
  await message(page).fill("write yes.txt: y\nwrite no.txt: n\nsay finished");
  await send(page).click();
  await page.getByRole("group", { name: "Approve write_file" }).getByRole("button", { name: "Approve" }).click();
  await treeItem(page, "/yes.txt").waitFor();
  await page.getByRole("group", { name: "Approve write_file" }).getByRole("button", { name: "Deny" }).click();
  await ended(page);
  await transcript(page).getByText("denied", { exact: true }).first().waitFor();
  assert.equal(await treeItem(page, "/no.txt").count(), 0);
});

story("what is sent while it runs steers the run", async (page) => {
  await message(page).fill("wait 1500\nwrite a.txt: x\nsay end");
  await send(page).click();
  await until(() => page.getByRole("button", { name: "Stop" }).isEnabled(), "the run to start");
  await message(page).fill("say steered to here");
  await send(page).click();
  await ended(page);
  await transcript(page).getByRole("article", { name: "You, while it ran" }).waitFor();
  await transcript(page).locator(".prose", { hasText: "steered to here" }).waitFor();
});

/** A session of many messages, as a file. */
async function longSession(count) {
  await init();
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create("long-session", { meta: { cwd: "/" } });
  for (let at = 0; at < count / 2; at++) {
    session.append("user/message", { text: `Question number ${at}${" with some more words".repeat(at % 7)}` });
    session.append("assistant/message", { parts: [{ type: "text", text: `Answer number ${at}.\n\n${"A sentence of an answer. ".repeat((at * 7) % 23)}` }] });
  }
  const bytes = await store.exportSession(session.id);
  await store.dispose();
  return Buffer.from(bytes);
}

story("5,000 messages: only what is in sight is in the page, the reading position holds, new text follows the end", async (page) => {
  const buffer = await longSession(5000);
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Import" }).click()]);
  await chooser.setFiles({ name: "long.jsonl", mimeType: "application/jsonl", buffer });
  await transcript(page).getByText("Answer number 2499.").waitFor();
  assert.ok((await transcript(page).getByRole("article").count()) < 80, "windowed");

  // The reader scrolls up, an answer streams in below: what is being read stays where it is.
  await transcript(page).hover();
  await page.mouse.wheel(0, -3000);
  await page.getByRole("button", { name: "Go to the latest" }).waitFor();
  await page.waitForTimeout(400);
  const anchor = () => page.evaluate(() => {
    const box = document.querySelector(".transcript").getBoundingClientRect();
    const row = [...document.querySelectorAll(".transcript .virtual-row")].find((each) => each.getBoundingClientRect().top >= box.top);
    return { key: row.dataset.index, top: Math.round(row.getBoundingClientRect().top - box.top) };
  });
  const before = await anchor();
  await run(page, "say A new answer streams in\nwait 600");
  const after = await anchor();
  assert.equal(after.key, before.key);
  assert.ok(Math.abs(after.top - before.top) <= 2, `the reading position moved by ${after.top - before.top} px`);

  await page.getByRole("button", { name: "Go to the latest" }).click();
  await transcript(page).getByText(/A new answer streams in/).last().waitFor();
  await run(page, "say And the end is followed");
  await until(() => transcript(page).getByText("And the end is followed", { exact: true }).isVisible(), "the newest answer in sight");
  assert.equal(await page.getByRole("button", { name: "Go to the latest" }).count(), 0);
});
