// The golden requests of tests/types/requests.ts, which the compiler holds against the official clients' types, are what is derived.
import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";
import init, { SessionStore } from "sessionlog";

await init();
const source = readFileSync(new URL("../types/requests.ts", import.meta.url), "utf8");
const { code } = transformSync(source, { loader: "ts", format: "esm" });
const golden = await import(`data:text/javascript,${encodeURIComponent(code)}`);
const png = { type: "image", mediaType: "image/png", data: "QUJD" };

/** What one provider would have said, with the opaque fields that are its own. */
const said = {
  anthropic: { provider: "anthropic", api: "anthropic.messages", model: "m", reasoning: [{ type: "reasoning", text: "hm", signature: "c2ln" }, { type: "reasoning", text: "", redacted: "QQ==" }], call: {} },
  chat: { provider: "openai", api: "openai.chat", model: "m", reasoning: [{ type: "reasoning", text: "hm" }], call: {} },
  responses: { provider: "openai", api: "openai.responses", model: "m", reasoning: [{ type: "reasoning", text: "hm", itemId: "rs_1", encrypted: "ZW5j" }], call: { itemId: "fc_1" } },
  gemini: { provider: "google", api: "gemini.generate", model: "m", reasoning: [{ type: "reasoning", text: "hm", signature: "c2ln" }], call: { thoughtSignature: "c2ln" } },
};

async function derived(name, target) {
  const store = await SessionStore.open({ storage: { kind: "memory" } });
  const { provider, api, model, reasoning, call } = said[name];
  const session = store.create();
  session.append("user/message", { parts: [{ type: "text", text: "look" }, png, { type: "file", mediaType: "application/pdf", data: "QUJD", filename: "a.pdf" }] });
  session.append("assistant/message", { provider, api, model, parts: [
    ...reasoning, { type: "text", text: "sure" }, { type: "tool-call", id: "t1", name: "read", args: { path: "a" }, ...call }, { type: "tool-call", id: "t2", name: "read", args: {} }] });
  session.append("tool/result", { id: "t1", content: [{ type: "text", text: "shot" }, png] });
  session.append("user/message", { text: "next" });
  const request = session.deriveRequest({ target, provider, model, system: "be good" });
  await store.dispose();
  return request;
}

for (const [name, target] of [["anthropic", "anthropic"], ["chat", "openai-chat"], ["responses", "openai-responses"], ["gemini", "gemini"]]) {
  test(`${target}: the golden request`, async () => {
    const request = await derived(name, target);
    assert.deepEqual(request.messages, golden[name]);
    const system = { anthropic: "be good", gemini: { parts: [{ text: "be good" }] } };
    assert.deepEqual(request.system, system[name]);
  });
}
