// What the loopback servers say in the story of `provider-story.mjs`, and what each provider must have been sent.
import assert from "node:assert/strict";
import { anthropic, bytewise, gemini, openai } from "../servers/provider.mjs";

export const KEY = ["sk", "made-up-key-0123456789"].join("-");
const A = { id: "call_a", name: "read", args: '{"path":"ä.txt"}' };
const B = { id: "call_b", name: "list", args: '{"n":12}' };
const WORDS = Array.from({ length: 100 }, (_, at) => `slow${at} `);
const perEvent = (text) => text.split(/(?<=\n\n|\r\n\r\n)/);
const refusal = { status: 401, json: { error: { message: `Incorrect API key provided: ${KEY}`, code: "invalid_api_key" } } };
const busy = { status: 429, headers: { "retry-after": "0" }, json: { error: { message: "slow down" } } };

/** 429, two tools, the answer, one that is cut after `part`, one that takes long, 401. */
const replies = (tools, answer, cut, long) => [
  busy, { pieces: bytewise(tools) }, { pieces: perEvent(answer), slowMs: 3 }, { pieces: [cut], cut: true }, { pieces: perEvent(long), slowMs: 10 }, refusal,
];

const openaiReplies = () => {
  const text = (words) => openai.text(words);
  const thought = `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, delta: { reasoning_content: "hm" }, finish_reason: null }] })}\n\n`;
  return replies(thought + openai.tools(A, B), text(["Grüße ", "🔥"]), `${perEvent(text(["part of it"])).slice(0, 3).join("")}data: {"id":"x","cho`, text(WORDS));
};

function checkChat({ body }) {
  const [system, user, assistant, a, b] = body.messages;
  assert.deepEqual([system.role, system.content, user.role], ["system", "be kind", "user"]);
  assert.deepEqual(assistant.tool_calls.map(({ id, function: { name, arguments: args } }) => [id, name, JSON.parse(args)]), [[A.id, "read", { path: "ä.txt" }], [B.id, "list", { n: 12 }]]);
  assert.deepEqual([a, b].map(({ role, tool_call_id, content }) => [role, tool_call_id, content]), [["tool", A.id, 'read {"path":"ä.txt"}'], ["tool", B.id, 'list {"n":12}']]);
  assert.deepEqual(body.tools.map(({ function: { name } }) => name), ["read", "list"]);
}

export const PROVIDERS = {
  "openai-compatible": {
    model: "openai-compatible/m-1", options: (url) => ({ baseUrl: `${url}/v1`, apiKey: KEY }), replies: openaiReplies(), check: checkChat,
    header: ({ authorization }) => authorization === `Bearer ${KEY}`, shape: "openai.chat", reasoning: [{ text: "hm" }], counted: false,
  },
  anthropic: {
    model: "anthropic/claude-1", options: (url) => ({ baseUrl: url, apiKey: KEY, thinking: { type: "enabled", budget_tokens: 1024 } }),
    replies: replies(
      anthropic.message([
        anthropic.thinking(0, ["h", "m"], "Zm9-_x=="), anthropic.redacted(1, "QQ=="), anthropic.text(2, ["let me ", "see"]),
        anthropic.tool(3, A.id, "read", ['{"pa', 'th":"ä.t', 'xt"}']), anthropic.tool(4, B.id, "list", ['{"n":12}']),
      ], "tool_use"),
      anthropic.message([anthropic.text(0, ["Grüße ", "🔥"])]),
      anthropic.message([anthropic.text(0, ["part of it", " more"])]).split("event: content_block_stop")[0],
      anthropic.message([anthropic.text(0, WORDS)]),
    ),
    check({ body }) {
      assert.equal(body.system, "be kind");
      const [, assistant, results] = body.messages;
      assert.deepEqual(assistant.content, [
        { type: "thinking", thinking: "hm", signature: "Zm9-_x==" }, { type: "redacted_thinking", data: "QQ==" }, { type: "text", text: "let me see" },
        { type: "tool_use", id: A.id, name: "read", input: { path: "ä.txt" } }, { type: "tool_use", id: B.id, name: "list", input: { n: 12 } },
      ]);
      assert.deepEqual(results.content.map(({ type, tool_use_id }) => [type, tool_use_id]), [["tool_result", A.id], ["tool_result", B.id]]);
      assert.deepEqual(body.tools.map(({ name }) => name), ["read", "list"]);
    },
    header: (headers) => headers["x-api-key"] === KEY, shape: "anthropic.messages", reasoning: [{ text: "hm", signature: "Zm9-_x==" }, { text: "", redacted: "QQ==" }], counted: true,
  },
  gemini: {
    model: "gemini/gemini-3-x", options: (url) => ({ baseUrl: url, apiKey: KEY }),
    replies: replies(
      gemini.stream(
        [{ text: "hm", thought: true }], [{ text: "let me " }], [{ text: "see" }], [{ text: "", thoughtSignature: "dGV4dA==" }],
        [{ functionCall: { id: A.id, name: "read", args: { path: "ä.txt" } }, thoughtSignature: "Y2FsbA==" }, { functionCall: { id: B.id, name: "list", args: { n: 12 } } }],
      ),
      gemini.stream([{ text: "Grüße " }], [{ text: "🔥" }]),
      gemini.stream([{ text: "part of it" }], [{ text: "!" }]).split("\n\n").slice(0, 1).join("") + "\n\n",
      gemini.stream(...WORDS.map((text) => [{ text }])),
    ),
    check({ body }) {
      assert.deepEqual(body.systemInstruction, { parts: [{ text: "be kind" }] });
      const [, model, results] = body.contents;
      assert.deepEqual(model.parts, [
        { text: "let me see", thoughtSignature: "dGV4dA==" },
        { functionCall: { id: A.id, name: "read", args: { path: "ä.txt" } }, thoughtSignature: "Y2FsbA==" }, { functionCall: { id: B.id, name: "list", args: { n: 12 } } },
      ]);
      assert.deepEqual(results.parts.map(({ functionResponse: { id, name } }) => [id, name]), [[A.id, "read"], [B.id, "list"]]);
      assert.deepEqual(body.tools[0].functionDeclarations.map(({ name }) => name), ["read", "list"]);
    },
    header: (headers) => headers["x-goog-api-key"] === KEY, shape: "gemini.generate", reasoning: [{ text: "hm" }], counted: true,
  },
  "ai-sdk": {
    model: "ai-sdk/", sdk: true, replies: openaiReplies(), check: checkChat,
    header: ({ authorization }) => authorization === `Bearer ${KEY}`, shape: "ai-sdk.v6", reasoning: [{ text: "hm" }], counted: false,
  },
};

/** Holds what the story came to against what was said and sent. */
export function checkStory(name, told, requests) {
  const { check, header, shape, reasoning, counted } = PROVIDERS[name];
  const { results, output, events } = told;
  const status = Object.fromEntries(Object.entries(results).map(([key, { runResult }]) => [key, runResult.status]));
  assert.deepEqual(status, { whole: "completed", cut: "failed", stopped: "cancelled", refused: "failed" });
  assert.deepEqual(Object.values(results).flatMap(({ warnings }) => warnings), []);
  assert.deepEqual([results.whole.runResult.finalAnswer.content, results.whole.runResult.steps, output[0]], ["Grüße 🔥", 2, "Grüße 🔥"]);
  assert.deepEqual([told.ran, told.most], [[[A.id, "read", { path: "ä.txt" }], [B.id, "list", { n: 12 }]], 2]);

  // Requests: one more for the 429, none for what broke in the middle.
  assert.equal(requests.length, 6);
  for (const { headers, url } of requests) assert.ok(header(headers) && !url.includes(KEY));
  check(requests[2]);

  // The log.
  const of = (type) => events.filter((event) => event.type === type).map(({ data }) => data);
  assert.deepEqual(of("turn/end").map(({ reason }) => reason.kind), ["completed", "error", "cancelled", "error"]);
  const [first, , cut, stopped] = of("assistant/message");
  assert.deepEqual(first.parts.filter(({ type }) => type === "reasoning").map(({ type: _, ...part }) => part), reasoning);
  assert.deepEqual(of("tool/result").map(({ id }) => id), [A.id, B.id]);
  assert.deepEqual([cut.partial, cut.parts[0].text.slice(0, 10)], [true, "part of it"]);
  assert.ok(stopped.partial === true && stopped.parts[0].text.startsWith("slow0 ") && stopped.parts[0].text.length < 700, stopped.parts[0].text);
  assert.deepEqual(of("error").map(({ code }) => code), ["cut_off", "auth"]);
  assert.deepEqual([results.cut.runResult.errorMessage, results.refused.runResult.errorMessage], output.filter((_, at) => at % 2 === 1));
  assert.deepEqual(told.reread, events);
  assert.equal(told.verify, null);

  // What was used: whole answers say it, and a part of one where the provider tells it early.
  const ends = of("step/end");
  assert.deepEqual(ends.slice(0, 2).map(({ usage }) => usage.apiShape), [shape, shape]);
  assert.ok(ends.slice(0, 2).every(({ usage }) => usage.partial !== true));
  assert.deepEqual(ends.slice(2, 4).map(({ usage }) => usage?.partial === true), [counted, counted]);
  assert.deepEqual(of("assistant/message").map(({ usage }) => usage), ends.slice(0, 4).map(({ usage }) => usage));
  assert.ok(told.usage.promptTokens > 0 && told.usage.completionTokens > 0);

  // The key is nowhere.
  assert.ok(!JSON.stringify(told).includes(KEY), "the key is told or stored");
  assert.ok(!JSON.stringify(told).includes(KEY.slice(8)), "a part of the key is told or stored");
}
