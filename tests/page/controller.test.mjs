// The controller in Chromium on IndexedDB: a task, stop and reload, a verdict after a reload and from another tab.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { serveDist } from "./dist-server.mjs";
import { launch } from "./helper.mjs";

let server, browser;

before(async () => {
  server = await serveDist();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
});

/** A tab with a controller on the session `s1`. */
async function tab(context, recover = "close") {
  const page = await context.newPage();
  await page.goto(server.url);
  await page.evaluate(async (how) => {
    const lib = await import("/web.js");
    await lib.default();
    const storage = { kind: "indexeddb", name: "story" };
    globalThis.store = await lib.SessionStore.open({ storage });
    globalThis.files = await lib.VirtualFs.open({ storage });
    globalThis.session = await store.resume("s1", { recover: how }).catch(() => store.create("s1"));
    globalThis.output = [];
    globalThis.controller = new lib.ChatSessionController({ store, fs: files, session, outputFn: (text) => output.push(text) });
    globalThis.demo = { model: "scripted/demo" };
    globalThis.asking = { ...demo, tools: lib.fileTools({ approval: "always" }) };
  }, recover);
  return page;
}

const waiting = (page) => page.waitForFunction(() => controller.status === "waiting-approval");

test("a task, a reload, its undo and its redo", async () => {
  const context = await browser.newContext();
  let page = await tab(context);
  const done = await page.evaluate(async () => (await controller.executeTask("write a/b.txt: hello\nsay there", demo)).runResult);
  assert.deepEqual([done.status, done.finalAnswer.content], ["completed", "there"]);
  await page.close();
  page = await tab(context);
  assert.deepEqual(await page.evaluate(() => [files.readText("/a/b.txt"), session.deriveMessages().at(-1).parts[0].text, controller.getSessionCost().usd !== "0"]), ["hello", "there", true]);
  assert.deepEqual(await page.evaluate(async () => [await controller.undoLastRun(), files.exists("/a"), output.at(-1)]), [true, false, "Undone: 0 restored, 1 deleted."]);
  await page.close();
  page = await tab(context);
  assert.deepEqual(await page.evaluate(async () => [files.exists("/a"), await controller.redoLastUndo(), files.readText("/a/b.txt")]), [false, true, "hello"]);
  await context.close();
});

test("stop keeps what had come, and the tab that is killed in the middle of a stream keeps it too", async () => {
  const context = await browser.newContext();
  let page = await tab(context);
  const stopped = await page.evaluate(async () => {
    const run = controller.executeTask("say begun\nwait 20000", demo);
    session.on("event", ({ type, data }) => type === "assistant/chunk" && data.text.includes("Waiting") && controller.cancel());
    return (await run).runResult.status;
  });
  assert.equal(stopped, "cancelled");
  const partial = () => { const last = session.deriveMessages().at(-1); return [last.partial, last.parts.map((part) => part.text).join("").slice(0, 14)]; };
  assert.deepEqual(await page.evaluate(partial), [true, "begun\nWaiting "]);
  await page.close();
  page = await tab(context);
  assert.deepEqual(await page.evaluate(partial), [true, "begun\nWaiting "]);
  await page.evaluate(() => void controller.executeTask("say again\nwait 20000", demo));
  await page.waitForFunction(() => session.events.findLast(({ type }) => type === "assistant/chunk")?.data.text.includes("."));
  await page.evaluate(() => session.flush());
  await page.close({ runBeforeUnload: false });
  page = await tab(context);
  assert.equal(await page.evaluate(() => session.events.at(-1).data.reason.kind), "interrupted");
  assert.deepEqual(await page.evaluate(partial), [true, "again\nWaiting "]);
  assert.equal(await page.evaluate(async () => (await controller.executeTask("say on", demo)).runResult.status), "completed");
  await context.close();
});

test("a question that outlives its tab is answered in the next one; its tool runs once", async () => {
  const context = await browser.newContext();
  let page = await tab(context);
  await page.evaluate(() => void controller.executeTask("append log.txt: once", asking));
  await waiting(page);
  await page.evaluate(() => session.flush());
  await page.close();
  page = await tab(context, "resume");
  const done = await page.evaluate(async () => {
    const [{ id }] = session.pendingCalls();
    controller.resolveApproval(id, "approved");
    return (await controller.resumeTurn(asking)).runResult.status;
  });
  assert.equal(done, "completed");
  assert.equal(await page.evaluate(() => files.readText("/log.txt")), "once");
  await context.close();
});

test("a tab that follows may answer; whoever answers first settles it, once", async () => {
  const context = await browser.newContext();
  const writer = await tab(context);
  await writer.evaluate(() => void (globalThis.run = controller.executeTask("write a.txt: x", asking)));
  await waiting(writer);
  await writer.evaluate(() => session.flush());
  const follower = await tab(context);
  await follower.waitForFunction(() => session.events.some(({ type }) => type === "approval/requested"));
  const answer = (verdict) => {
    const { callId } = session.events.find(({ type }) => type === "approval/requested").data;
    try { controller.resolveApproval(callId, verdict); } catch (error) { return error.code; }
  };
  await Promise.all([follower.evaluate(answer, "approved"), follower.evaluate(answer, "approved")]);
  assert.equal(await writer.evaluate(async () => (await run).runResult.status), "completed");
  await writer.evaluate(answer, "denied").catch(() => {});
  assert.deepEqual(await writer.evaluate(() => session.events.filter(({ type }) => type === "approval/resolved").map(({ data }) => data.verdict)), ["approved"]);
  assert.equal(await writer.evaluate(() => files.readText("/a.txt")), "x");
  await context.close();
});

test("`ask`: the tab that writes is killed while it waits; the one that followed leads, answers, goes on; the tool runs once", async () => {
  const context = await browser.newContext();
  const writer = await tab(context);
  await writer.evaluate(() => void controller.executeTask("append log.txt: once", asking));
  await waiting(writer);
  await writer.evaluate(() => session.flush());
  const follower = await tab(context, "ask");
  assert.equal(await follower.evaluate(() => session.readOnly), true);
  await writer.close({ runBeforeUnload: false });
  await follower.waitForFunction(() => !session.readOnly);
  const owed = await follower.evaluate(() => [session.pendingCalls().map(({ name, state }) => [name, state]), session.events.at(-1).type]);
  assert.deepEqual(owed, [[["append_file", "not-started"]], "approval/requested"]);
  // A third one follows and says yes while the second waits.
  await follower.evaluate(() => void (globalThis.run = controller.resumeTurn(asking)));
  await waiting(follower);
  const third = await tab(context, "ask");
  await third.waitForFunction(() => session.events.some(({ type }) => type === "approval/requested"));
  await third.evaluate(() => controller.resolveApproval(session.pendingCalls()[0].id, "approved"));
  assert.equal(await follower.evaluate(async () => (await run).runResult.status), "completed");
  const told = await follower.evaluate(() => ({
    verdicts: session.events.filter(({ type }) => type === "approval/resolved").map(({ data }) => data.verdict),
    asked: session.events.filter(({ type }) => type === "approval/requested").length,
    calls: session.events.filter(({ type }) => type === "tool/call").length,
    text: files.readText("/log.txt"), verify: session.verify(),
  }));
  assert.deepEqual(told, { verdicts: ["approved"], asked: 1, calls: 1, text: "once", verify: null });
  await context.close();
});
