// One server and one browser for a file of tests; every test gets a profile of its own, and faults of its pages fail it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage, servePage } from "./helper.mjs";

export function suite() {
  const shared = {};
  before(async () => {
    shared.server = await servePage();
    shared.browser = await launch();
  });
  after(async () => {
    await shared.browser?.close();
    await shared.server?.stop();
  });
  /** `options.allow`: a pattern of faults that the test is about. */
  const story = (name, work, options = {}) =>
    test(name, { timeout: 120_000 }, async () => {
      const context = await shared.browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", acceptDownloads: true, ...options.context });
      context.setDefaultTimeout(30_000);
      const pages = [];
      const open = async (path = "") => {
        const page = await openPage(context, shared.server.url + path);
        pages.push(page);
        return page;
      };
      try {
        await work(await open(), { context, open, url: shared.server.url, browser: shared.browser });
        for (const page of pages) assert.deepEqual(page.faults.filter((fault) => !options.allow?.test(fault)), [], "faults of the page");
      } finally {
        await context.close();
      }
    });
  return { story, shared };
}
