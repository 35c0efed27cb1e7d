// Real endpoints through the page: each provider's protocol against a server on this machine, and what becomes of keys.
import assert from "node:assert/strict";
import { anthropic, gemini, openai, provider } from "../js/servers/provider.mjs";
import { becomes, everythingStored, run, transcript, treeItem, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();
const KEY = "key-of-the-test-0123456789";
const dialog = (page) => page.getByRole("dialog", { name: "Settings" });

/** The address that stands there before one is given: the provider's own. */
const STARTS = { "openai-compatible": /^$|^http:\/\/127/, anthropic: /^https:\/\/api\.anthropic\.com\/v1$/, gemini: /^https:\/\/generativelanguage\.googleapis\.com\/v1beta$/ };

async function choose(page, kind, { url, key = KEY, keep = false }) {
  await page.getByRole("button", { name: "Settings" }).click();
  await dialog(page).getByRole("combobox", { name: "Provider" }).selectOption(kind);
  await becomes(() => dialog(page).getByLabel("Base URL").inputValue(), STARTS[kind]);
  await dialog(page).getByLabel("Base URL").fill(url);
  await dialog(page).getByLabel("Model name").fill("model-of-the-test");
  await dialog(page).getByLabel("API key").fill(key);
  await dialog(page).getByLabel(/^Keep the key/).setChecked(keep);
  await dialog(page).getByRole("button", { name: "Save settings" }).click();
  await becomes(() => page.getByRole("combobox", { name: "Model" }).inputValue(), `${kind}/model-of-the-test`);
}

const PROVIDERS = {
  "openai-compatible": {
    call: openai.tools({ id: "c1", name: "write_file", args: '{"path":"made.txt","content":"by the model"}' }, { id: "c2", name: "list_files", args: "{}" }),
    text: openai.text(["It ", "is ", "written."]),
    path: /\/chat\/completions$/,
    key: (headers) => headers.authorization === `Bearer ${KEY}`,
    result: (body) => body.messages.some(({ role, tool_call_id }) => role === "tool" && tool_call_id === "c1"),
  },
  anthropic: {
    call: anthropic.message([anthropic.tool(0, "toolu_1", "write_file", ['{"path":"made.txt",', '"content":"by the model"}'])], "tool_use"),
    text: anthropic.message([anthropic.text(0, ["It ", "is ", "written."])]),
    path: /\/v1\/messages$/,
    key: (headers) => headers["x-api-key"] === KEY,
    result: (body) => body.messages.some(({ content }) => Array.isArray(content) && content.some(({ type, tool_use_id }) => type === "tool_result" && tool_use_id === "toolu_1")),
  },
  gemini: {
    call: gemini.stream([{ functionCall: { name: "write_file", args: { path: "made.txt", content: "by the model" } } }]),
    text: gemini.stream([{ text: "It is " }], [{ text: "written." }]),
    path: /model-of-the-test:streamGenerateContent/,
    key: (headers) => headers["x-goog-api-key"] === KEY,
    result: (body) => body.contents.some(({ parts }) => parts.some(({ functionResponse }) => functionResponse?.name === "write_file")),
  },
};

for (const [kind, expected] of Object.entries(PROVIDERS)) {
  story(`${kind}: a task with a tool call, streamed; the key goes to the endpoint and nowhere else`, async (page, { context }) => {
    const server = await provider([{ pieces: expected.call.match(/[\s\S]{1,40}/g), slowMs: 1 }, { pieces: expected.text.match(/[\s\S]{1,40}/g), slowMs: 1 }]);
    try {
      const elsewhere = [];
      context.on("request", (request) => {
        if (!request.url().startsWith(server.url) && `${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ""}`.includes(KEY)) elsewhere.push(request.url());
      });
      await choose(page, kind, { url: kind === "openai-compatible" ? `${server.url}/v1` : server.url });
      await run(page, "Write a file.");
      await transcript(page).getByText("It is written.", { exact: true }).waitFor();
      await treeItem(page, "/made.txt").waitFor();
      assert.equal(await page.getByRole("alert").count(), 0);
      assert.equal(server.requests.length, 2);
      for (const { url, headers } of server.requests) {
        assert.match(url, expected.path);
        assert.ok(expected.key(headers), "the key in its header");
        assert.ok(!url.includes(KEY), "and not in the address");
      }
      assert.ok(expected.result(server.requests[1].body), "the result of the call goes back");
      await until(async () => (await page.getByRole("status", { name: "Cost" }).textContent()) !== "$0.000 tokens", "the tokens to be counted");
      await until(async () => /Saved/.test(await page.getByRole("status", { name: "Storage" }).textContent()), "the session to be saved");
      assert.ok(!(await page.evaluate(everythingStored)).includes(KEY), "the key is stored nowhere");
      assert.ok(!(await page.content()).includes(KEY));
      assert.deepEqual(elsewhere, []);
    } finally {
      await server.close();
    }
  });
}

story("a key is forgotten with the page unless asked otherwise, and asked for before it is missed", async (page) => {
  const server = await provider([{ pieces: [openai.text(["Hello."])] }]);
  try {
    await choose(page, "openai-compatible", { url: `${server.url}/v1` });
    await page.reload();
    await page.getByRole("textbox", { name: "Message" }).fill("Hello?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("alert").getByText(/kept in memory only/).waitFor();
    assert.equal(server.requests.length, 0, "nothing was sent without it");
    await becomes(() => page.getByRole("textbox", { name: "Message" }).inputValue(), "Hello?", "what was written is still there");
    await page.getByRole("button", { name: "Enter it again" }).click();
    await becomes(() => dialog(page).getByLabel("Base URL").inputValue(), `${server.url}/v1`);
    await dialog(page).getByLabel("API key").fill(KEY);
    await dialog(page).getByLabel(/^Keep the key/).check();
    await dialog(page).getByRole("button", { name: "Save settings" }).click();
    await page.reload();
    await run(page, "Hello?");
    assert.equal(server.requests[0].headers.authorization, `Bearer ${KEY}`, "kept when asked to");
    const kept = await page.evaluate(() => Object.entries({ ...localStorage }).filter(([, value]) => value.includes("key-of-the-test")).map(([name]) => name));
    assert.deepEqual(kept, ["sessionlog.page.keys"]);
    await choose(page, "openai-compatible", { url: `${server.url}/v1`, keep: false });
    assert.ok(!(await page.evaluate(everythingStored)).includes(KEY), "and forgotten when asked to");
  } finally {
    await server.close();
  }
});

story("a refusal by the endpoint is said in words, with what to do; a key that it quotes is not shown", async (page) => {
  const server = await provider([{ status: 401, json: { error: { message: `Incorrect API key provided: ${KEY}`, code: "invalid_api_key" } } }]);
  await choose(page, "openai-compatible", { url: `${server.url}/v1` });
  await run(page, "Hello?");
  await page.getByRole("alert").getByText(/did not accept the key/).waitFor();
  await page.getByRole("alert").getByText("Check the API key in Settings.").waitFor();
  assert.ok(!(await page.content()).includes(KEY));
  await page.getByRole("button", { name: "Dismiss" }).click();
  await server.close();
  // Nobody is there any more.
  await page.getByRole("textbox", { name: "Message" }).fill("Still there?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("alert").getByText(/could not be reached/).waitFor({ timeout: 60_000 });
  await page.getByRole("alert").getByText(/allows requests from this page/).waitFor();
  await page.getByRole("combobox", { name: "Model" }).selectOption("scripted/demo");
  await run(page, "say Back to the offline model");
  await transcript(page).getByText("Back to the offline model", { exact: true }).waitFor();
});
