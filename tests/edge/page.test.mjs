// Two browsers, each with storage of its own, on one session of the host: the page's store and controller work on it as they
// work on local storage.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { launchChromium } from "../support/chromium.mjs";
import { call, freshDisk, message, root, skip, startHost, tokens, until } from "./host.mjs";

const types = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
const HTML = `<!doctype html><meta charset="utf-8"><title>page</title><script type="module">
  import init, { ChatSessionController, SessionStore, VirtualFs, fileTools } from "/dist/web.js";
  import { RemoteStore } from "/dist/remote.js";
  await init();
  let store, session, controller;
  const seen = [];
  globalThis.app = {
    async open(url, token) {
      store = await SessionStore.open({ storage: new RemoteStore({ url, token }).storage });
    },
    use(given) {
      session = given;
      session.on("event", (event) => seen.push([event.seq, event.type]));
    },
    create: (id) => app.use(store.create(id)),
    resume: async (id) => app.use(await store.resume(id)),
    async run(task, approval = "never") {
      controller ??= new ChatSessionController({ store, session, fs: await VirtualFs.open(), outputFn: () => {} });
      return (await controller.executeTask(task, { model: "scripted/demo", tools: fileTools({ approval }) })).runResult;
    },
    async settle(callId, verdict) {
      controller ??= new ChatSessionController({ store, session, fs: await VirtualFs.open(), outputFn: () => {} });
      controller.resolveApproval(callId, verdict);
    },
    append: (text) => session.append("user/message", { text }).seq,
    flush: () => session.flush(),
    state: () => ({ seq: session.seq, durable: session.durableSeq, readOnly: session.readOnly, seen, verify: session.verify(), events: session.events }),
    titles: async () => (await store.sessions()).map(({ id, title }) => [id, title]),
    close: () => store.dispose(),
  };
  document.title = "ready";
</script>`;

let host;
let server;
let address;
const browsers = [];
before(async () => {
  if (skip) return;
  host = await startHost({ disk: freshDisk({ memory: true }) });
  const policy = `default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; connect-src 'self' ${host.url} ${host.url.replace("http", "ws")}`;
  server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://x").pathname);
    const file = join(root, "pkg", path);
    if (path === "/") return void response.writeHead(200, { "content-type": "text/html", "content-security-policy": policy }).end(HTML);
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  address = `http://127.0.0.1:${server.address().port}/`;
});
after(async () => {
  await Promise.all(browsers.map((browser) => browser.close().catch(() => {})));
  server?.closeAllConnections();
  server?.close();
  await host?.kill();
});

/** A browser of its own with the page open on the host. */
async function open() {
  const browser = await launchChromium();
  browsers.push(browser);
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(address);
  await page.waitForFunction(() => document.title === "ready");
  await page.evaluate(([url, token]) => app.open(url, token), [host.url, tokens.alice]);
  return { browser, page, faults, state: () => page.evaluate(() => app.state()) };
}

test("two browsers on one session, live: one runs a task, the other sees each event as it comes, settles a question, and goes on when the first is gone", { skip, timeout: 120_000 }, async () => {
  const one = await open();
  const two = await open();
  await one.page.evaluate(() => app.create("together"));
  await one.page.evaluate(async () => { app.append("hello from one"); await app.flush(); });
  await two.page.evaluate(() => app.resume("together"));
  assert.equal((await two.state()).readOnly, true);

  const running = one.page.evaluate(() => app.run("write /a.txt: agreed\nsay it is written", "always"));
  // The other one sees the question while the task waits, and answers it.
  const asked = await until(async () => (await two.state()).events.find(({ type }) => type === "approval/requested"), "the question in the other browser");
  await two.page.evaluate((callId) => app.settle(callId, "approved"), asked.data.callId);
  const result = await running;
  assert.deepEqual([result.status, result.finalAnswer.content], ["completed", "it is written"]);
  const first = await one.state();
  await until(async () => (await two.state()).seq >= first.durable && first.durable === first.seq, "all events in the other browser");
  const second = await two.state();
  assert.deepEqual(second.events, first.events);
  assert.deepEqual([first.verify, second.verify], [null, null]);
  // As they came: more than one delivery, each event once, in order.
  assert.deepEqual(second.seen.map(([seq]) => seq), Array.from({ length: second.seq - 1 }, (_, n) => n + 1));
  assert.ok(second.seen.some(([, type]) => type === "assistant/chunk"));

  // The first browser dies without a word: the second may write after a moment.
  await one.browser.close();
  await until(async () => !(await two.state()).readOnly, "the second to take over", 30_000);
  await two.page.evaluate(async () => { app.append("now from two"); await app.flush(); });
  const three = await open();
  await three.page.evaluate(() => app.resume("together"));
  assert.equal((await three.state()).events.at(-1).data.text, "now from two");
  await until(async () => (await three.page.evaluate(() => app.titles())).some(([id, title]) => id === "together" && title !== ""), "the listing");
  await two.page.evaluate(() => app.close());
  await three.page.evaluate(() => app.close());
  // What browsers wrote is what the host's own interface tells.
  const { events } = (await call(host, "GET", "/v1/sessions/together/events")).json;
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, at) => at));
  assert.equal((await call(host, "POST", "/v1/sessions/together/events", { body: { events: [message("and the host")] } })).status, 200);
  assert.deepEqual([one.faults, two.faults, three.faults], [[], [], []]);
});
