// Every adapter against a loopback server that speaks its provider's stream, at every cut of the bytes.
import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import init, { ChatSessionController, SessionLogError, SessionStore, VirtualFs, createLlmAdapter, registerProvider } from "sessionlog";
import { anthropic, bytewise, gemini, openai, provider } from "./servers/provider.mjs";

const KEY = ["sk", "made-up-key-0123456789"].join("-");
const servers = [];

before(() => init());
afterEach(async () => Promise.all(servers.splice(0).map((server) => server.close())));

async function serve(...replies) {
  const server = await provider(replies.map((reply) => (typeof reply === "string" ? { pieces: bytewise(reply) } : reply)));
  servers.push(server);
  return server;
}

const request = (messages = [{ role: "user", content: "hi" }]) => ({ request: { target: "openai-chat", messages, repairs: [], digest: "" }, tools: [], provider: "p", model: "m" });

async function collect(adapter, signal = new AbortController().signal, asked = request()) {
  const chunks = [];
  try {
    for await (const chunk of adapter.stream(asked, { signal })) chunks.push(chunk);
    return { chunks, error: null };
  } catch (error) {
    return { chunks, error };
  }
}

const text = ({ chunks }, type = "text") => chunks.filter((chunk) => chunk.type === type).map((chunk) => chunk.text).join("");
const usage = ({ chunks }) => chunks.find((chunk) => chunk.type === "usage")?.usage;
const finish = ({ chunks }) => chunks.at(-1);

/** Calls with their arguments put together, as the loop does. */
function calls({ chunks }) {
  const found = new Map();
  for (const chunk of chunks) {
    if (chunk.type === "tool-call") found.set(chunk.id, { name: chunk.name, args: chunk.args });
    if (chunk.type !== "tool-args") continue;
    const call = found.get(chunk.id) ?? { name: chunk.name, args: "" };
    found.set(chunk.id, { ...call, args: call.args + chunk.delta });
  }
  return Object.fromEntries(found);
}

const openaiAt = (server, options = {}) => createLlmAdapter("openai-compatible", "m", { baseUrl: `${server.url}/v1/`, apiKey: KEY, ...options });
const anthropicAt = (server, options = {}) => createLlmAdapter("anthropic", "claude", { baseUrl: server.url, apiKey: KEY, ...options });
const geminiAt = (server, options = {}) => createLlmAdapter("gemini", "gemini-x", { baseUrl: server.url, apiKey: KEY, ...options });

// ------------------------------------------------------------------- openai

test("openai-compatible: text at every cut, usage from the last chunk with no choices", async () => {
  const server = await serve(openai.text(["Grüße ", "🔥", "\n", "\"ende\""]));
  const got = await collect(openaiAt(server));
  assert.equal(got.error, null);
  assert.equal(text(got), "Grüße 🔥\n\"ende\"");
  assert.deepEqual(usage(got).raw, { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 });
  assert.equal(usage(got).apiShape, "openai.chat");
  assert.deepEqual(finish(got), { type: "finish", reason: "stop", responseId: "chatcmpl-1" });
  const [{ url, headers, body }] = server.requests;
  assert.equal(url, "/v1/chat/completions");
  assert.equal(headers.authorization, `Bearer ${KEY}`);
  assert.deepEqual([body.stream, body.stream_options, body.model], [true, { include_usage: true }, "m"]);
});

test("openai-compatible: a server that never says [DONE]", async () => {
  const got = await collect(openaiAt(await serve(openai.text(["ok"], { done: false }))));
  assert.deepEqual([got.error, text(got), finish(got).reason], [null, "ok", "stop"]);
});

test("openai-compatible: calls side by side, their arguments put together by index", async () => {
  const a = { id: "call_a", name: "read", args: '{"path":"ä.txt"}' };
  const b = { id: "call_b", name: "list", args: '{"n":12}' };
  const got = await collect(openaiAt(await serve(openai.tools(a, b))));
  assert.deepEqual(calls(got), { call_a: { name: "read", args: a.args }, call_b: { name: "list", args: b.args } });
  assert.equal(finish(got).reason, "tool-calls");
});

test("openai-compatible: calls without ids or with one index for all", async () => {
  const piece = (tool_calls) => `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, delta: { tool_calls } }] })}\n\n`;
  const end = `data: ${JSON.stringify({ id: "x", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n`;
  const anonymous = await collect(openaiAt(await serve(piece([{ index: 0, function: { name: "f", arguments: "{}" } }]) + end)));
  assert.deepEqual(Object.values(calls(anonymous)), [{ name: "f", args: "{}" }]);
  assert.equal(finish(anonymous).reason, "tool-calls");
  const same = await collect(openaiAt(await serve(piece([{ index: 0, id: "a", function: { name: "f", arguments: '{"a":1}' } }]) + piece([{ index: 0, id: "b", function: { name: "g", arguments: '{"b":2}' } }]) + end)));
  assert.deepEqual(calls(same), { a: { name: "f", args: '{"a":1}' }, b: { name: "g", args: '{"b":2}' } });
});

test("openai-compatible: reasoning", async () => {
  const got = await collect(openaiAt(await serve(openai.reasoning("hm", "yes"))));
  assert.deepEqual([text(got, "reasoning"), text(got)], ["hm", "yes"]);
});

test("openai-compatible: the system text stands first, tools in their shape", async () => {
  const server = await serve(openai.text(["ok"]));
  const asked = { ...request(), tools: [{ name: "f", description: "d", parameters: { type: "object" } }] };
  asked.request.system = "be kind";
  await collect(openaiAt(server, { body: { temperature: 0 } }), undefined, asked);
  const { body } = server.requests[0];
  assert.deepEqual(body.messages, [{ role: "system", content: "be kind" }, { role: "user", content: "hi" }]);
  assert.deepEqual(body.tools, [{ type: "function", function: { name: "f", description: "d", parameters: { type: "object" } } }]);
  assert.equal(body.temperature, 0);
});

// ------------------------------------------------------- what goes wrong (all)

const refusals = [
  [401, { error: { message: `Incorrect API key provided: ${KEY}`, code: "invalid_api_key" } }, "auth"],
  [401, { error: { message: "Incorrect API key provided: sk-ma**********6789" } }, "auth"],
  [403, { error: { message: "no" } }, "permission"],
  [404, { error: { message: "no such model" } }, "not_found"],
  [400, { error: { message: "This model's maximum context length is 8192 tokens", code: "context_length_exceeded" } }, "context_overflow"],
  [400, { error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" } }, "context_overflow"],
  [400, { error: { message: "The input token count (2000000) exceeds the maximum number of tokens allowed", status: "INVALID_ARGUMENT" } }, "context_overflow"],
  [413, {}, "context_overflow"],
  [400, { error: { message: "tools.0 is wrong" } }, "invalid_request"],
  [429, { error: { message: "You exceeded your current quota", code: "insufficient_quota" } }, "quota"],
];

for (const [status, json, reason] of refusals) {
  test(`a refusal with ${status} is ${reason} for every provider, told once and without the key`, async () => {
    for (const make of [openaiAt, anthropicAt, geminiAt]) {
      const server = await serve({ status, json });
      const { error } = await collect(make(server));
      assert.ok(error instanceof SessionLogError);
      assert.deepEqual([error.details.reason, error.details.status], [reason, status]);
      assert.equal(server.requests.length, 1);
      // Where in a file a frame stands is a number as well, and once was the end of the key.
      const stack = error.stack.replace(/:\d+:\d+/g, "");
      const shown = `${error.message} ${stack} ${JSON.stringify(error.details)} ${String(error.cause)}`;
      assert.ok(!shown.includes(KEY) && !shown.includes("6789"), shown);
    }
  });
}

test("429 with retry-after and 5xx are tried again before the first piece, for every provider", async () => {
  const good = { openai: openai.text(["ok"]), anthropic: anthropic.message([anthropic.text(0, ["ok"])]), gemini: gemini.stream([{ text: "ok" }]) };
  for (const [make, answer] of [[openaiAt, good.openai], [anthropicAt, good.anthropic], [geminiAt, good.gemini]]) {
    const server = await serve({ status: 429, headers: { "retry-after": "0" } }, { status: 503, headers: { "retry-after-ms": "1" } }, { status: 529, headers: { "retry-after": new Date(0).toUTCString() } }, answer);
    const got = await collect(make(server));
    assert.deepEqual([got.error, text(got), server.requests.length], [null, "ok", 4]);
  }
});

for (const [status, json, reason] of [
  [429, { error: { message: "slow down", type: "rate_limit_error" } }, "rate_limit"], [500, {}, "server_error"], [502, {}, "server_error"], [503, { error: { status: "UNAVAILABLE" } }, "overloaded"],
  [529, { error: { type: "overloaded_error" } }, "overloaded"], [408, {}, "server_error"], [500, { error: { type: "overloaded_error", message: "Overloaded" } }, "overloaded"],
]) {
  test(`a refusal with ${status}${json.error ? ` (${json.error.type ?? json.error.status})` : ""} that does not pass is ${reason} for every provider, after four attempts`, async () => {
    for (const make of [openaiAt, anthropicAt, geminiAt]) {
      const server = await serve({ status, json, headers: { "retry-after": "0" } });
      const { error } = await collect(make(server));
      assert.deepEqual([error.details.reason, error.details.status, server.requests.length], [reason, status, 4]);
    }
  });
}

test("retry-after as a date is waited for", async () => {
  const until = Math.ceil(Date.now() / 1000) * 1000 + 1000;
  const server = await serve({ status: 429, headers: { "retry-after": new Date(until).toUTCString() } }, openai.text(["ok"]));
  assert.equal(text(await collect(openaiAt(server))), "ok");
  assert.ok(server.requests[1].at >= until - 20, `${until - server.requests[1].at} ms early`);
});

test("server-sent events of every make: a byte order mark, CR alone, CRLF, comments, several data lines, other fields, no last blank line", async () => {
  const payload = (content, finish_reason = null) => JSON.stringify({ id: "x", choices: [{ index: 0, delta: { content }, finish_reason }] });
  const halves = (json) => { const at = json.indexOf(",") + 1; return [json.slice(0, at), json.slice(at)]; };
  for (const end of ["\n", "\r\n", "\r"]) {
    const [a, b] = halves(payload("Grü"));
    const stream = [
      `\ufeff: a comment${end}${end}`, `event: message${end}id: 7${end}retry: 10${end}data: ${a}${end}data:${b}${end}${end}`, `:${end}data:${payload("ße 🔥")}${end}: inside${end}${end}`,
      `unknown: field${end}${end}`, `data: ${payload("", "stop")}`,
    ].join("");
    const got = await collect(openaiAt(await serve(stream)));
    assert.deepEqual([got.error, text(got), finish(got).reason], [null, "Grüße 🔥", "stop"], JSON.stringify(end));
  }
});

test("it is not tried for ever, and a long wish of the server is told at once", async () => {
  const always = await serve({ status: 500, headers: { "retry-after": "0" } });
  assert.equal((await collect(openaiAt(always))).error.details.reason, "server_error");
  assert.equal(always.requests.length, 4);
  const long = await serve({ status: 429, headers: { "retry-after": "3600" } });
  const { error } = await collect(openaiAt(long));
  assert.deepEqual([error.details.reason, error.details.retryAfterMs, long.requests.length], ["rate_limit", 3_600_000, 1]);
});

test("a connection that is cut in the middle is not tried again and is not a whole answer", async () => {
  for (const [make, pieces] of [[openaiAt, openai.text(["part"]).slice(0, 230)], [anthropicAt, anthropic.message([anthropic.text(0, ["part"])]).slice(0, 520)], [geminiAt, gemini.stream([{ text: "part" }], [{ text: "!" }]).slice(0, 230)]]) {
    for (const cut of [true, false]) {
      const server = await serve({ pieces: [pieces], cut });
      const got = await collect(make(server));
      assert.ok(got.error instanceof SessionLogError, `${cut}`);
      assert.ok(["cut_off", "bad_stream"].includes(got.error.details.reason), got.error.message);
      assert.equal(server.requests.length, 1);
    }
  }
});

test("a server that is not there is `network`, and the pause before the next attempt ends with the signal", async () => {
  const adapter = createLlmAdapter("openai-compatible", "m", { baseUrl: "http://127.0.0.1:1/v1", apiKey: KEY });
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 30);
  const { error } = await collect(adapter, abort.signal);
  assert.equal(error.name, "AbortError");
});

test("errors inside a stream", async () => {
  const inOpenai = await collect(openaiAt(await serve(openai.error({ message: `upstream said no to ${KEY}`, code: 502 }))));
  assert.equal(text(inOpenai), "so far");
  assert.equal(inOpenai.error.details.reason, "server_error");
  assert.ok(!inOpenai.error.message.includes(KEY));
  const inAnthropic = await collect(anthropicAt(await serve(anthropic.error({ type: "overloaded_error", message: "Overloaded" }))));
  assert.equal(inAnthropic.error.details.reason, "overloaded");
  const inGemini = await collect(geminiAt(await serve(`data: ${JSON.stringify({ error: { code: 503, status: "UNAVAILABLE", message: "busy" } })}\n\n`)));
  assert.equal(inGemini.error.details.reason, "overloaded");
  const broken = await collect(openaiAt(await serve("data: {not json}\n\n")));
  assert.equal(broken.error.details.reason, "bad_stream");
});

test("errors inside a stream have one set of codes, whoever says them", async () => {
  const said = (error) => `data: ${JSON.stringify({ error })}\n\n`;
  for (const [error, reason] of [
    [{ type: "rate_limit_error", message: "slow down" }, "rate_limit"], [{ type: "overloaded_error", message: "Overloaded" }, "overloaded"], [{ type: "api_error", message: "Internal server error" }, "server_error"],
    [{ type: "authentication_error", message: "no" }, "auth"], [{ type: "permission_error", message: "no" }, "permission"], [{ type: "invalid_request_error", message: "tools.0" }, "invalid_request"],
    [{ type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" }, "context_overflow"], [{ code: 429, status: "RESOURCE_EXHAUSTED", message: "quota per minute" }, "rate_limit"],
    [{ code: 503, status: "UNAVAILABLE", message: "busy" }, "overloaded"], [{ code: 500, status: "INTERNAL", message: "oops" }, "server_error"], [{ code: "insufficient_quota", message: "You exceeded your current quota" }, "quota"],
    [{ message: "something" }, "provider_error"],
  ]) {
    for (const [make, stream] of [[openaiAt, said(error)], [anthropicAt, anthropic.error(error)], [geminiAt, said(error)]]) {
      const got = await collect(make(await serve(stream)));
      assert.equal(got.error?.details.reason, reason, JSON.stringify(error));
    }
  }
});

test("stopping a slow stream ends the transfer", async () => {
  const words = Array.from({ length: 200 }, (_, at) => `w${at} `);
  const server = await serve({ pieces: openai.text(words).split(/(?<=\n\n)/), slowMs: 5 });
  const abort = new AbortController();
  const chunks = [];
  await assert.rejects(async () => {
    for await (const chunk of openaiAt(server).stream(request(), { signal: abort.signal })) {
      chunks.push(chunk);
      if (chunks.length === 3) abort.abort();
    }
  });
  assert.equal(chunks.length, 3);
  for (let waited = 0; server.aborted === 0 && waited < 4_000; waited++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(server.aborted, 1);
});

// ---------------------------------------------------------------- anthropic

test("anthropic: thinking with its signature, redacted thinking, text, calls, usage as the last one said", async () => {
  const server = await serve(anthropic.message([
    anthropic.thinking(0, ["a", "b"], "Zm9-_x=="), anthropic.redacted(1, "QQ=="), anthropic.text(2, ["Grü", "ße"]),
    anthropic.tool(3, "toolu_1", "read", ['{"pa', 'th":"x"}']), anthropic.tool(4, "toolu_2", "list", []),
  ], "tool_use"));
  const got = await collect(anthropicAt(server));
  assert.equal(got.error, null);
  assert.deepEqual(got.chunks.filter(({ type }) => type === "reasoning"), [
    { type: "reasoning", text: "a" }, { type: "reasoning", text: "b" }, { type: "reasoning", text: "", signature: "Zm9-_x==" }, { type: "reasoning", text: "", redacted: "QQ==" },
  ]);
  assert.equal(text(got), "Grüße");
  assert.deepEqual(calls(got), { toolu_1: { name: "read", args: '{"path":"x"}' }, toolu_2: { name: "list", args: "{}" } });
  assert.deepEqual(usage(got).raw, { input_tokens: 12, cache_read_input_tokens: 5, cache_creation_input_tokens: 0, output_tokens: 9 });
  assert.deepEqual([usage(got).responseId, usage(got).model, finish(got).reason], ["msg_1", "claude-1", "tool-calls"]);
  const [{ url, headers, body }] = server.requests;
  assert.deepEqual([url, headers["x-api-key"], headers["anthropic-version"], body.max_tokens > 0], ["/messages", KEY, "2023-06-01", true]);
});

test("anthropic: an answer cut at its limit", async () => {
  const got = await collect(anthropicAt(await serve(anthropic.message([anthropic.text(0, ["x"])], "max_tokens"))));
  assert.equal(finish(got).reason, "max-tokens");
});

// ------------------------------------------------------------------- gemini

test("gemini: thoughts, text, calls with their signatures, usage of the last chunk", async () => {
  const server = await serve(gemini.stream(
    [{ text: "hm", thought: true }], [{ text: "Grüße" }],
    [{ functionCall: { name: "read", args: { path: "x" } }, thoughtSignature: "c2ln" }, { functionCall: { name: "list", args: {} } }],
  ));
  const got = await collect(geminiAt(server));
  assert.equal(got.error, null);
  assert.deepEqual([text(got, "reasoning"), text(got)], ["hm", "Grüße"]);
  const found = got.chunks.filter(({ type }) => type === "tool-call");
  assert.deepEqual(found.map(({ name, args, thoughtSignature }) => ({ name, args, thoughtSignature })), [
    { name: "read", args: '{"path":"x"}', thoughtSignature: "c2ln" }, { name: "list", args: "{}", thoughtSignature: undefined },
  ]);
  assert.equal(new Set(found.map(({ id }) => id)).size, 2);
  assert.equal(usage(got).raw.candidatesTokenCount, 3);
  assert.equal(finish(got).reason, "tool-calls");
  const [{ url, headers }] = server.requests;
  assert.deepEqual([url, headers["x-goog-api-key"]], ["/models/gemini-x:streamGenerateContent?alt=sse", KEY]);
  assert.ok(!url.includes(KEY));
});

test("gemini: what the filter stops", async () => {
  const stopped = `data: ${JSON.stringify({ candidates: [{ content: { parts: [] }, finishReason: "SAFETY" }] })}\n\n`;
  assert.equal((await collect(geminiAt(await serve(stopped)))).error.details.reason, "content_filter");
  const blocked = `data: ${JSON.stringify({ promptFeedback: { blockReason: "SAFETY" } })}\n\n`;
  assert.equal((await collect(geminiAt(await serve(blocked)))).error.details.reason, "content_filter");
});

// ------------------------------------------------------------------- ai-sdk

test("ai-sdk: the SDK's own mock model", async () => {
  const { MockLanguageModelV3, simulateReadableStream } = await import("ai/test").then(async (mocks) => ({ ...mocks, ...(await import("ai")) }));
  const parts = [
    { type: "stream-start", warnings: [] }, { type: "response-metadata", id: "resp", modelId: "mock-2" },
    { type: "reasoning-start", id: "0" }, { type: "reasoning-delta", id: "0", delta: "hm" }, { type: "reasoning-end", id: "0", providerMetadata: { anthropic: { signature: "c2ln" } } },
    { type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: "Hel" }, { type: "text-delta", id: "1", delta: "lo" }, { type: "text-end", id: "1" },
    { type: "tool-input-start", id: "c1", toolName: "read" }, { type: "tool-input-delta", id: "c1", delta: '{"path":"x"}' }, { type: "tool-input-end", id: "c1" },
    { type: "tool-call", toolCallId: "c1", toolName: "read", input: '{"path":"x"}' },
    { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_use" }, usage: { inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined }, outputTokens: { total: 10, text: 10, reasoning: undefined } } },
  ];
  const model = new MockLanguageModelV3({ doStream: async () => ({ stream: simulateReadableStream({ chunks: parts }) }) });
  const adapter = createLlmAdapter("ai-sdk", null, { model });
  const asked = { ...request([{ role: "user", content: "hi" }]), tools: [{ name: "read", description: "d", parameters: { type: "object" } }] };
  asked.request = { ...asked.request, target: "ai-sdk", system: "be kind" };
  const got = await collect(adapter, undefined, asked);
  assert.equal(got.error, null);
  assert.deepEqual(got.chunks.filter(({ type }) => type === "reasoning"), [{ type: "reasoning", text: "hm" }, { type: "reasoning", text: "", signature: "c2ln" }]);
  assert.equal(text(got), "Hello");
  assert.equal(got.chunks.find(({ type }) => type === "tool-call").args, '{"path":"x"}');
  assert.deepEqual([usage(got).apiShape, usage(got).model, finish(got).reason], ["ai-sdk.v6", "mock-2", "tool-calls"]);
  const [sent] = model.doStreamCalls;
  assert.deepEqual(sent.prompt, [{ role: "system", content: "be kind" }, { role: "user", content: [{ type: "text", text: "hi" }] }]);
  assert.equal(sent.tools[0].name, "read");
});

test("ai-sdk: what providers put on text, thoughts and calls goes into the log and back onto the same parts", async () => {
  const { MockLanguageModelV3, simulateReadableStream } = await import("ai/test").then(async (mocks) => ({ ...mocks, ...(await import("ai")) }));
  const usage = { inputTokens: { total: 3 }, outputTokens: { total: 1 } };
  const finish = (unified) => ({ type: "finish", finishReason: { unified, raw: "x" }, usage });
  for (const [provider, parts, right] of [
    ["google.generative-ai", [
      { type: "reasoning-start", id: "0" }, { type: "reasoning-delta", id: "0", delta: "hm" }, { type: "reasoning-end", id: "0", providerMetadata: { google: { thoughtSignature: "cg==" } } },
      { type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: "look" }, { type: "text-delta", id: "1", delta: "ing", providerMetadata: { google: { thoughtSignature: "dA==" } } }, { type: "text-end", id: "1" },
      { type: "tool-call", toolCallId: "c1", toolName: "t", input: "{}", providerMetadata: { google: { thoughtSignature: "Yw==" } } },
    ], [
      { type: "reasoning", text: "hm", providerOptions: { google: { thoughtSignature: "cg==" } } }, { type: "text", text: "looking", providerOptions: { google: { thoughtSignature: "dA==" } } },
      { type: "tool-call", toolCallId: "c1", toolName: "t", input: {}, providerOptions: { google: { thoughtSignature: "Yw==" } } },
    ]],
    ["anthropic.messages", [
      { type: "reasoning-start", id: "0" }, { type: "reasoning-delta", id: "0", delta: "hm" }, { type: "reasoning-delta", id: "0", delta: "", providerMetadata: { anthropic: { signature: "c2ln" } } }, { type: "reasoning-end", id: "0" },
      { type: "reasoning-start", id: "1", providerMetadata: { anthropic: { redactedData: "QQ==" } } }, { type: "reasoning-end", id: "1" },
      { type: "tool-call", toolCallId: "c1", toolName: "t", input: "{}" },
    ], [
      { type: "reasoning", text: "hm", providerOptions: { anthropic: { signature: "c2ln" } } }, { type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: "QQ==" } } },
      { type: "tool-call", toolCallId: "c1", toolName: "t", input: {} },
    ]],
    ["openai.responses", [
      { type: "reasoning-start", id: "rs_1:0", providerMetadata: { openai: { itemId: "rs_1", reasoningEncryptedContent: null } } }, { type: "reasoning-delta", id: "rs_1:0", delta: "hm" },
      { type: "reasoning-end", id: "rs_1:0", providerMetadata: { openai: { itemId: "rs_1", reasoningEncryptedContent: "ZW5j" } } },
      { type: "text-start", id: "msg_1", providerMetadata: { openai: { itemId: "msg_1" } } }, { type: "text-delta", id: "msg_1", delta: "looking" }, { type: "text-end", id: "msg_1" },
      { type: "tool-call", toolCallId: "c1", toolName: "t", input: "{}", providerMetadata: { openai: { itemId: "fc_1" } } },
    ], [
      { type: "reasoning", text: "hm", providerOptions: { openai: { itemId: "rs_1", reasoningEncryptedContent: "ZW5j" } } }, { type: "text", text: "looking", providerOptions: { openai: { itemId: "msg_1" } } },
      { type: "tool-call", toolCallId: "c1", toolName: "t", input: {}, providerOptions: { openai: { itemId: "fc_1" } } },
    ]],
  ]) {
    const streams = [[...parts, finish("tool-calls")], [{ type: "text-start", id: "9" }, { type: "text-delta", id: "9", delta: "done" }, { type: "text-end", id: "9" }, finish("stop")]];
    const model = new MockLanguageModelV3({ provider, modelId: "mock", doStream: async () => ({ stream: simulateReadableStream({ chunks: [{ type: "stream-start", warnings: [] }, ...streams.shift()] }) }) });
    const store = await SessionStore.open({ scrubbers: [{ builtin: "secrets" }] });
    const controller = new ChatSessionController({ store, fs: await VirtualFs.open(), outputFn: () => {} });
    const done = await controller.executeTask("go", { model: "ai-sdk/", providerOptions: { model }, tools: [{ name: "t", description: "", parameters: {}, run: () => "ok" }] });
    assert.deepEqual([done.runResult.status, done.runResult.finalAnswer?.content], ["completed", "done"], provider);
    assert.deepEqual(model.doStreamCalls[1].prompt.find(({ role }) => role === "assistant").content, right, provider);
  }
});

test("ai-sdk: its OpenAI-compatible provider against the loopback server", async () => {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const a = { id: "call_a", name: "read", args: '{"path":"ä.txt"}' };
  const b = { id: "call_b", name: "list", args: '{"n":12}' };
  const server = await serve({ status: 503, headers: { "retry-after-ms": "1" }, json: { error: { message: "busy" } } }, openai.tools(a, b));
  const model = createOpenAICompatible({ name: "loop", baseURL: `${server.url}/v1`, apiKey: KEY, includeUsage: true })("m-1");
  const asked = request([{ role: "user", content: [{ type: "text", text: "hi" }] }]);
  const got = await collect(createLlmAdapter("ai-sdk", null, { model }), undefined, asked);
  assert.equal(got.error, null);
  assert.deepEqual(Object.entries(calls(got)).map(([id, { name, args }]) => [id, name, JSON.parse(args)]), [["call_a", "read", { path: "ä.txt" }], ["call_b", "list", { n: 12 }]]);
  assert.equal(server.requests.length, 2);
  const refused = await serve({ status: 401, json: { error: { message: "no" } } });
  const again = createOpenAICompatible({ name: "loop", baseURL: `${refused.url}/v1`, apiKey: KEY })("m-1");
  assert.equal((await collect(createLlmAdapter("ai-sdk", null, { model: again }), undefined, asked)).error.details.reason, "auth");
});

// ------------------------------------------------------------------ registry

test("providers by name", () => {
  assert.throws(() => createLlmAdapter("nobody", "m"), { code: "not_found" });
  assert.throws(() => createLlmAdapter("openai-compatible", null), { code: "invalid_argument" });
  assert.throws(() => createLlmAdapter("ai-sdk", null, { model: {} }), { code: "invalid_argument" });
  assert.throws(() => registerProvider("scripted", () => {}), { code: "already_exists" });
  assert.throws(() => registerProvider("a/b", () => {}), { code: "invalid_argument" });
  const made = { provider: "mine", model: "m", target: "anthropic", async *stream() {} };
  registerProvider("mine", (model, options) => ({ ...made, model, options }));
  assert.deepEqual(createLlmAdapter("mine", "x", { a: 1 }), { ...made, model: "x", options: { a: 1 } });
});
