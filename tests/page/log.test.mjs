// The log: live, filtered, raw; redactions by kind and number; cost per step and in sum; the request for every target.
import assert from "node:assert/strict";
import { becomes, run, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();
const log = (page) => page.getByRole("region", { name: "Event log" });
const types = (page) => log(page).locator(".event .type").allTextContents();

story("events arrive live, are filtered by type and text, and stand there raw", async (page) => {
  await run(page, "write a.txt: hello\nsay a needle in it");
  await until(async () => (await types(page)).includes("turn/end"), "the end of the turn in the list");
  await log(page).getByRole("combobox", { name: "Type of event" }).selectOption("tool/call");
  await until(async () => { const seen = await types(page); return seen.length > 0 && seen.every((type) => type === "tool/call"); }, "tool calls alone");
  await log(page).getByRole("combobox", { name: "Type of event" }).selectOption("");
  await log(page).getByRole("searchbox", { name: "Filter by text" }).fill("needle");
  await until(async () => { const seen = await types(page); return seen.includes("user/message") && !seen.includes("turn/end"); }, "events with the text");
  await log(page).getByRole("searchbox", { name: "Filter by text" }).fill("");
  await log(page).getByRole("combobox", { name: "Type of event" }).selectOption("user/message");
  await until(async () => { const seen = await types(page); return seen.length > 0 && seen.every((type) => type === "user/message"); }, "messages alone");
  await log(page).locator(".event summary").first().click();
  const raw = JSON.parse(await log(page).locator(".raw pre").textContent());
  assert.equal(raw.type, "user/message");
  assert.equal(raw.data.text, "write a.txt: hello\nsay a needle in it");
});

story("what was redacted is told by kind and number, never by value", async (page) => {
  await run(page, "secret");
  await log(page).getByText(/\d redacted/).first().waitFor();
  await log(page).getByRole("tab", { name: "Redacted" }).click();
  const row = log(page).getByRole("row").nth(1);
  assert.match(await row.textContent(), /github/);
  assert.match(await row.getByRole("cell").first().textContent(), /^[1-9]/);
  assert.ok(!(await page.content()).includes(["gh", "p_", "Madeup"].join("")));
});

story("cost is told per step and grows in a chart", async (page) => {
  await run(page, "write a.txt: hello\nread a.txt\nsay done");
  await log(page).getByRole("tab", { name: "Spent" }).click();
  await log(page).getByRole("img", { name: /Cumulative cost over 3 steps/ }).waitFor();
  await becomes(() => log(page).getByRole("row").count(), 4, "a head and three steps");
  const dollars = (text) => Number(/\$([\d.]+)/.exec(text)[1]);
  const each = (await log(page).getByRole("row").locator("td:last-child").allTextContents()).map(dollars);
  const shown = dollars(await page.getByRole("status", { name: "Cost" }).textContent());
  const sum = each.reduce((total, cost) => total + cost, 0);
  assert.ok(Math.abs(sum - shown) <= 0.02 * shown, `steps add up to what is shown: ${each} and ${shown}`);
});

story("a request tells what had to be repaired for its target", async (page) => {
  await run(page, "think It is simple\nsay done");
  await log(page).getByRole("tab", { name: "Request" }).click();
  await log(page).getByRole("combobox", { name: "Request for" }).selectOption("openai-chat");
  await log(page).locator(".repairs li").filter({ hasText: "unsigned_reasoning" }).waitFor();
});

story("the request is derived for every target, with its repairs", async (page) => {
  await run(page, "write a.txt: hello\nsay done");
  await log(page).getByRole("tab", { name: "Request" }).click();
  const body = log(page).getByRole("group", { name: "Derived request" });
  const marks = { "openai-chat": /"tool_calls"/, "openai-responses": /"function_call"/, anthropic: /"tool_use"/, gemini: /"functionCall"/, "ai-sdk": /"tool-call"/ };
  for (const [target, mark] of Object.entries(marks)) {
    await log(page).getByRole("combobox", { name: "Request for" }).selectOption(target);
    await until(async () => mark.test(await body.textContent()), `a request for ${target}`);
    await body.getByRole("heading", { name: "Repairs" }).waitFor();
  }
});
