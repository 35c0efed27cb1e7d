// The whole story through the controller for every adapter, against a loopback server that speaks the provider's stream.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import * as lib from "sessionlog";
import { provider } from "./servers/provider.mjs";
import { KEY, PROVIDERS, checkStory } from "./support/provider-replies.mjs";
import { tell } from "./support/provider-story.mjs";

before(() => lib.default());

for (const [name, { model, options, sdk, replies }] of Object.entries(PROVIDERS)) {
  test(`${name}: the whole story in Node`, async () => {
    const server = await provider(replies);
    let given = options?.(server.url);
    if (sdk) {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      given = { model: createOpenAICompatible({ name: "loop", baseURL: `${server.url}/v1`, apiKey: KEY, includeUsage: true })("m-1") };
    }
    try {
      checkStory(name, await tell(lib, model, given), server.requests);
      assert.equal(server.aborted >= 1, true, "the stopped transfer was ended");
    } finally {
      await server.close();
    }
  });
}
