// The chat page in headless Chromium: what a first visit loads and how soon it can be used, and how soon a token is painted
// while 5,000 messages are open. Figures are reported; what is asserted about the page stands in its tests.
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import init, { SessionStore } from "sessionlog";
import { launch, openPage, servePage, transcript } from "../tests/page/helper.mjs";
import { median } from "./harness.mjs";

const MESSAGES = 5000;
const ms = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return `median ${median(sorted).toFixed(1)} ms, best ${sorted[0].toFixed(1)}, 90 % within ${sorted[Math.floor(sorted.length * 0.9)].toFixed(1)} (${sorted.length} samples)`;
};

execFileSync("node", ["www/build.mjs"], { cwd: fileURLToPath(new URL("..", import.meta.url)), stdio: "inherit" });
const server = await servePage();
const browser = await launch();
try {
  await firstVisit();
  await tokens();
} finally {
  await browser.close();
  await server.stop();
}

/** A new profile each time; the service worker is kept out, so that what is counted is what the page waits for. */
async function firstVisit() {
  const ready = [];
  let bytes = 0;
  for (let round = 0; round < 5; round++) {
    const context = await browser.newContext({ serviceWorkers: "block" });
    const page = await context.newPage();
    const bodies = [];
    page.on("response", (response) => bodies.push(response.body().then((body) => gzipSync(body, { level: 9 }).length, () => 0)));
    await page.addInitScript(() => {
      new MutationObserver(() => {
        // The box that takes a task is there, sessions and files are open.
        if (!globalThis.readyAt && document.querySelector(".chat .transcript") && document.querySelector(".composer textarea")) globalThis.readyAt = performance.now();
      }).observe(document, { childList: true, subtree: true });
    });
    await page.goto(server.url);
    await page.waitForFunction(() => globalThis.readyAt);
    ready.push(await page.evaluate(() => globalThis.readyAt));
    bytes = (await Promise.all(bodies)).reduce((sum, each) => sum + each, 0);
    await context.close();
  }
  console.log(`first visit: ${(bytes / 1024).toFixed(1)} KB gzip in all (at most 600)`);
  console.log(`  cold profile, from navigation to usable (under 2000): ${ms(ready)}`);
}

async function tokens() {
  const endpoint = await ticking();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await openPage(context, server.url);
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("button", { name: "Import" }).click()]);
  await chooser.setFiles({ name: "long.jsonl", mimeType: "application/jsonl", buffer: await longSession() });
  await transcript(page).getByText(`Answer number ${MESSAGES / 2 - 1}.`).waitFor();
  await page.evaluate(watchPaints);

  // From the key that sends a task to the first token of the offline model on the screen: the log is stored first.
  const [first, database] = [[], []];
  for (let round = 0; round < 12; round++) {
    // A word of its own: the answer before this one is on the screen too.
    const word = `Round${round}`;
    await page.getByRole("textbox", { name: "Message" }).fill(`say ${word} has a first token and some more`);
    await page.evaluate((text) => globalThis.armFirst(text), word);
    await page.keyboard.press("Enter");
    first.push(await page.evaluate(() => globalThis.firstToken));
    database.push(await page.evaluate(() => globalThis.databaseMs));
    await page.waitForFunction(() => document.querySelector(".composer .stop").disabled);
  }

  // From a token leaving a server on this machine to its paint, each token with its time of sending as its text.
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByLabel("Base URL").fill(endpoint.url);
  await page.getByLabel("Model name").fill("clock");
  await page.getByRole("button", { name: "Save settings" }).click();
  await page.getByRole("textbox", { name: "Message" }).fill("tick");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => globalThis.painted.size >= 60, null, { timeout: 60_000 });
  const each = await page.evaluate(() => [...globalThis.painted].map(([sent, seen]) => seen - sent));
  console.log(`a streamed token with ${MESSAGES} messages open (under 50):`);
  console.log(`  from the server's write to its paint:         ${ms(each)}`);
  console.log(`  from the key that sends the task to its paint: ${ms(first)}`);
  console.log(`    of it the browser's database, until the task is stored: ${ms(database)}`);
  await context.close();
  await endpoint.stop();
}

/** Runs in the page: notes when texts get painted. A task posted from a frame's callback runs after that frame's paint. */
function watchPaints() {
  const frame = requestAnimationFrame.bind(globalThis);
  let inFrame = false;
  // What changes in a callback of a frame, or in its microtasks, is painted with this frame, not with the next one.
  globalThis.requestAnimationFrame = (work) => frame((at) => {
    inFrame = true;
    try {
      work(at);
    } finally {
      queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => (inFrame = false))));
    }
  });
  const afterPaint = (work) => {
    const soon = () => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => work(performance.timeOrigin + performance.now());
      port2.postMessage(0);
    };
    if (inFrame) soon();
    else frame(soon);
  };
  // What the first write of a task waits for: the browser's database, before anything is sent.
  const { put } = IDBObjectStore.prototype;
  let asked = false;
  IDBObjectStore.prototype.put = function (...values) {
    if (asked) {
      asked = false;
      const began = performance.now();
      this.transaction.addEventListener("complete", () => (globalThis.databaseMs = performance.now() - began), { once: true });
    }
    return put.apply(this, values);
  };
  globalThis.painted = new Map();
  let first = () => {}, wanted = null;
  globalThis.armFirst = (word) => {
    wanted = word;
    globalThis.firstToken = new Promise((resolve) => {
      addEventListener("keydown", ({ timeStamp }) => {
        asked = true;
        first = (seen) => resolve(seen - performance.timeOrigin - timeStamp);
      }, { once: true, capture: true });
    });
  };
  new MutationObserver(() => {
    const row = document.querySelector(".row.assistant.streaming") ?? [...document.querySelectorAll(".row.assistant")].at(-1);
    const text = row?.textContent ?? "";
    if (wanted !== null && text.startsWith(wanted)) {
      wanted = null;
      const tell = first;
      first = () => {};
      afterPaint(tell);
    }
    const fresh = [...text.matchAll(/\b(1\d{12})\b(?=\s)/g)].map(([, sent]) => Number(sent)).filter((sent) => !globalThis.painted.has(sent));
    for (const sent of fresh) globalThis.painted.set(sent, Infinity);
    if (fresh.length > 0) afterPaint((seen) => fresh.forEach((sent) => globalThis.painted.set(sent, seen)));
  }).observe(document.querySelector(".transcript-frame"), { childList: true, subtree: true, characterData: true });
}

/** An endpoint that says what time it is, a word every 40 ms. */
async function ticking() {
  const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
  const endpoint = createServer(async (request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(204, cors).end();
    response.writeHead(200, { ...cors, "content-type": "text/event-stream" });
    const send = (delta, reason = null) => response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "clock", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`);
    for (let count = 0; count < 80 && !response.destroyed; count++) {
      send({ content: `${Date.now()} , ` });
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    send({}, "stop");
    response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => endpoint.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${endpoint.address().port}/v1`, stop: () => { endpoint.closeAllConnections(); return new Promise((resolve) => endpoint.close(resolve)); } };
}

async function longSession() {
  await init();
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const session = store.create("long-session", { meta: { cwd: "/" } });
  for (let at = 0; at < MESSAGES / 2; at++) {
    session.append("user/message", { text: `Question number ${at}${" with some more words".repeat(at % 7)}` });
    session.append("assistant/message", { parts: [{ type: "text", text: `Answer number ${at}.\n\n${"A sentence of an answer. ".repeat((at * 7) % 23)}` }] });
  }
  const bytes = await store.exportSession(session.id);
  await store.dispose();
  return Buffer.from(bytes);
}
