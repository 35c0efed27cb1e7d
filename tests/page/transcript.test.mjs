// The conversation: markup that cannot run, honest ends, approvals, steering, and thousands of messages.
import assert from "node:assert/strict";
import init, { SessionStore } from "sessionlog";
import { becomes, drawn, during, ended, run, transcript, treeItem, until } from "./helper.mjs";
import { suite } from "./suite.mjs";

const { story } = suite();
const message = (page) => page.getByRole("textbox", { name: "Message" });
const send = (page) => page.getByRole("button", { name: "Send" });

story("first use: a sentence, and three tasks that show files, undo and redaction", async (page) => {
  await page.getByRole("heading", { level: 2, name: /^An agent/ }).waitFor();
  const tasks = transcript(page).locator(".welcome").getByRole("button");
  assert.equal(await tasks.count(), 3);
  await during(page, () => tasks.nth(0).click());
  await treeItem(page, "/plan.md").waitFor();
  await page.getByRole("button", { name: "New session" }).click();
  await during(page, () => tasks.nth(1).click());
  await treeItem(page, "/ideas/one.md").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo last run" }).click();
  await treeItem(page, "/ideas/one.md").waitFor();
  await page.getByRole("button", { name: "New session" }).click();
  await during(page, () => tasks.nth(2).click());
  await transcript(page).locator("mark.redacted").first().waitFor();
});

/** What has run scripts in pages that trusted it. Each would leave a mark of its own in `ran`. */
const ATTACKS = [
  "<script>ran.push(1)</script>", "<img src=x onerror=ran.push(2)>", "<svg onload=ran.push(3)>", "<svg><script>ran.push(4)</script></svg>",
  "<iframe srcdoc=\"<script>parent.ran.push(5)</script>\"></iframe>", "<iframe src=\"javascript:parent.ran.push(6)\"></iframe>", "<body onload=ran.push(7)>",
  "<details open ontoggle=ran.push(8)>x</details>", "<input autofocus onfocus=ran.push(9)>", "<video><source onerror=ran.push(10)></video>", "<audio src=x onerror=ran.push(11)>",
  "<math><mtext></mtext><mglyph><style><img src=x onerror=ran.push(12)></style></mglyph></math>", "<noscript><p title=\"</noscript><img src=x onerror=ran.push(13)>\"></noscript>",
  "<a href=\"javascript:ran.push(14)\">a</a>", "[a](javascript:ran.push(15))", "[a](JaVaScRiPt:ran.push(16))", "[a](java&#9;script:ran.push(17))", "[a](&#106;avascript:ran.push(18))",
  "[a](data:text/html,<script>ran.push(19)</script>)", "[a](vbscript:ran.push(20))", "![x](x\"onerror=\"ran.push(21))", "![x](javascript:ran.push(22))", "<javascript:ran.push(23)>",
  "[a](https://example.com \"x\" onmouseover=\"ran.push(24)\")", "`<img src=x onerror=ran.push(25)>`", "<style>@import 'javascript:ran.push(26)';</style>", "<link rel=stylesheet href=javascript:ran.push(27)>",
  "<meta http-equiv=refresh content=\"0;url=javascript:ran.push(28)\">", "<base href=\"javascript:ran.push(29)//\">", "<form action=javascript:ran.push(30)><button>go</button></form>",
  "<object data=\"javascript:ran.push(31)\"></object>", "<embed src=\"javascript:ran.push(32)\">", "<template><script>ran.push(33)</script></template>", "<table><td background=\"javascript:ran.push(34)\">",
  "<svg><animate onbegin=ran.push(35) attributeName=x dur=1s></svg>", "<svg><a xlink:href=\"javascript:ran.push(36)\"><text>x</text></a></svg>", "<svg><use href=\"data:image/svg+xml,<svg onload=ran.push(37)>\"></use></svg>",
  "<form id=x></form><button form=x formaction=javascript:ran.push(38)>x</button>", "<div style=\"background:url(javascript:ran.push(39))\">x</div>", "<img srcset=\"x 1x\" onerror=ran.push(40)>",
  "<scr<script>ipt>ran.push(41)</scr</script>ipt>", "<!--><img src=x onerror=ran.push(42)>-->", "<![CDATA[><img src=x onerror=ran.push(43)>]]>", "<p id=\"attributes\"><form><input name=parentNode></form>",
  "[REDACTED:<img src=x onerror=ran.push(44)>]", "[a]: javascript:ran.push(45)", "| a |", "| - |", "| <img src=x onerror=ran.push(46)> |",
];

story("first use: the task to take back works on its own, and undo leaves what was there before it", async (page) => {
  await transcript(page).getByRole("button", { name: /Take a run back/ }).click();
  await transcript(page).getByText(/That was bold/).last().waitFor();
  await ended(page);
  await treeItem(page, "/ideas/one.md").waitFor({ state: "detached" });
  assert.equal(await page.getByRole("alert").count(), 0);
  assert.equal(await transcript(page).getByText("failed", { exact: true }).count(), 0);
  await page.getByRole("button", { name: "Undo last run" }).click();
  await treeItem(page, "/ideas/one.md").waitFor();
  await treeItem(page, "/plan.md").waitFor();
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("link", { name: /Take a run back/ }).waitFor();
});

story("markdown is rendered and no markup of a model runs: answers, reasoning, tool arguments, results, file names", async (page) => {
  await page.evaluate(() => { globalThis.ran = []; });
  await run(page, [
    "say # A heading\n", "say Some **bold** and `code` and [a link](https://example.com/x)",
    ...ATTACKS.map((attack) => `say ${attack}`), ...ATTACKS.map((attack) => `think ${attack}`),
    "write <img src=x onerror=ran.push(50)>.md: <img src=x onerror=ran.push(51)>", "read <img src=x onerror=ran.push(50)>.md", ...ATTACKS.slice(-1).map((attack) => `say ${attack}`),
  ].join("\n"));
  const answer = transcript(page).locator(".prose").first();
  await answer.locator("h3", { hasText: "A heading" }).waitFor();
  await answer.locator("strong", { hasText: "bold" }).waitFor();
  assert.equal(await answer.getByRole("link", { name: "a link" }).getAttribute("rel"), "noopener noreferrer");
  await transcript(page).getByText(/Thought about it/).first().click();
  for (const summary of await transcript(page).locator(".tool summary").all()) await summary.click();
  // Whatever looks like something to press or to point at is pressed and pointed at.
  for (const link of await transcript(page).locator(".prose a").all()) {
    const href = await link.getAttribute("href");
    assert.ok(href === null || /^(https?:|mailto:)/.test(href), `a link to ${href}`);
    if (href === null) await link.dispatchEvent("click");
    await link.dispatchEvent("mouseover");
  }
  await page.getByRole("searchbox", { name: "Filter by text" }).fill("onerror");
  await drawn(page);
  assert.equal(await page.locator(".transcript").locator("script, iframe, object, embed, style, link, meta, base, form, svg:not(.icon), video, audio, template, math, img, input, [style*='background'], [srcdoc]").count(), 0);
  const handlers = await page.evaluate(() => [...document.querySelectorAll("*")].flatMap((each) => [...each.attributes].filter(({ name }) => name.startsWith("on")).map(({ name }) => name)));
  assert.deepEqual(handlers, []);
  await transcript(page).getByText("<img src=x onerror=ran.push(2)>").first().waitFor();
  assert.deepEqual(await page.evaluate(() => globalThis.ran), [], "nothing ran");
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
  await call.locator("summary").waitFor();
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
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Ask before the agent changes a file").check();
  await page.keyboard.press("Escape");
  await message(page).fill("write a.txt: x\nsay end");
  await send(page).click();
  // The run waits here for as long as the test needs.
  const approve = page.getByRole("button", { name: "Approve" });
  await approve.waitFor();
  await message(page).fill("say steered to here");
  await send(page).click();
  await page.getByRole("list", { name: "Waiting to be read" }).getByText("say steered to here").waitFor();
  await approve.click();
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
  const anchor = () => page.evaluate(() => {
    const box = document.querySelector(".transcript").getBoundingClientRect();
    const row = [...document.querySelectorAll(".transcript .virtual-row")].find((each) => each.getBoundingClientRect().top >= box.top);
    return { key: row.dataset.index, top: Math.round(row.getBoundingClientRect().top - box.top) };
  });
  let before;
  await until(async () => {
    const earlier = JSON.stringify(before);
    before = await anchor();
    return JSON.stringify(before) === earlier;
  }, "the scrolling to come to rest");
  await run(page, "say A new answer streams in\nwait 600");
  const after = await anchor();
  assert.equal(after.key, before.key);
  assert.ok(Math.abs(after.top - before.top) <= 2, `the reading position moved by ${after.top - before.top} px`);

  await page.getByRole("button", { name: "Go to the latest" }).click();
  await transcript(page).getByText(/A new answer streams in/).last().waitFor();
  await run(page, "say And the end is followed");
  await until(() => transcript(page).getByText("And the end is followed", { exact: true }).isVisible(), "the newest answer in sight");
  await page.getByRole("button", { name: "Go to the latest" }).waitFor({ state: "detached" });
});
