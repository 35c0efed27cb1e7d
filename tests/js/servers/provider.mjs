// A loopback server that speaks a provider's stream: what it answers is a list of replies, one per request.
import { createServer } from "node:http";

/**
 * A reply: `{status, headers, json}` for a refusal, else `{pieces}`: texts (or bytes) that are written as they are, with a
 * pause of `slowMs` between them; `cut` drops the connection after the last one instead of ending it.
 */
export async function provider(replies) {
  const requests = [];
  let aborted = 0;
  const server = createServer(async (request, response) => {
    // A page asks first.
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-expose-headers", "retry-after, retry-after-ms");
    if (request.method === "OPTIONS") return response.writeHead(204, { "access-control-allow-headers": request.headers["access-control-request-headers"] ?? "" }).end();
    let body = "";
    for await (const piece of request) body += piece;
    requests.push({ url: request.url, headers: request.headers, body: JSON.parse(body), at: Date.now() });
    const reply = replies[Math.min(requests.length, replies.length) - 1];
    response.on("close", () => (aborted += response.writableFinished ? 0 : 1));
    if (reply.status !== undefined && reply.status >= 400) {
      response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
      return response.end(JSON.stringify(reply.json ?? {}));
    }
    response.writeHead(200, { "content-type": "text/event-stream", ...reply.headers });
    for (const piece of reply.pieces) {
      if (response.destroyed) return;
      response.write(piece);
      await new Promise((resolve) => (reply.slowMs ? setTimeout(resolve, reply.slowMs) : setImmediate(resolve)));
    }
    // What was written before the cut is on its way: a browser drops it when the end comes at the same moment.
    if (reply.cut) setTimeout(() => response.destroy(), 50);
    else response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    get aborted() { return aborted; },
    close: () => { server.closeAllConnections(); return new Promise((resolve) => server.close(resolve)); },
  };
}

/** Events as text, one piece per byte: every cut there is, also inside characters and line ends. */
export const bytewise = (text) => [...Buffer.from(text)].map((byte) => Buffer.from([byte]));

const sse = (payload) => `data: ${JSON.stringify(payload)}\n\n`;

// ------------------------------------------------------------------- openai

const chat = (members) => sse({ id: "chatcmpl-1", model: "m-1", choices: [], ...members });
const delta = (delta, finish_reason = null) => chat({ choices: [{ index: 0, delta, finish_reason }] });

export const openai = {
  text: (words, { done = true, usage = { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 } } = {}) =>
    [": keep-alive\r\n\r\n", delta({ role: "assistant", content: "" }), ...words.map((word) => delta({ content: word })), delta({}, "stop"), chat({ usage }), done ? "data: [DONE]\n\n" : ""].join(""),
  /** Two calls whose arguments come in turns. */
  tools: (a, b) => [
    delta({ role: "assistant", content: null, tool_calls: [{ index: 0, id: a.id, type: "function", function: { name: a.name, arguments: "" } }] }),
    delta({ tool_calls: [{ index: 1, id: b.id, type: "function", function: { name: b.name, arguments: "" } }] }),
    delta({ tool_calls: [{ index: 0, function: { arguments: a.args.slice(0, 5) } }] }),
    delta({ tool_calls: [{ index: 1, function: { arguments: b.args.slice(0, 3) } }] }),
    delta({ tool_calls: [{ index: 1, function: { arguments: b.args.slice(3) } }] }),
    delta({ tool_calls: [{ index: 0, function: { arguments: a.args.slice(5) } }] }),
    delta({}, "tool_calls"), chat({ usage: { prompt_tokens: 20, completion_tokens: 8 } }), "data: [DONE]\n\n",
  ].join(""),
  reasoning: (thought, words) => [delta({ reasoning_content: thought }), delta({ content: words }), delta({}, "stop"), "data: [DONE]\n\n"].join(""),
  error: (error) => [delta({ content: "so far" }), sse({ error })].join(""),
};

// ---------------------------------------------------------------- anthropic

const event = (payload) => `event: ${payload.type}\r\ndata: ${JSON.stringify(payload)}\r\n\r\n`;
const block = (index, content_block, deltas) => [
  event({ type: "content_block_start", index, content_block }),
  ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
  event({ type: "content_block_stop", index }),
];

export const anthropic = {
  message: (blocks, stop_reason = "end_turn") => [
    event({ type: "message_start", message: { id: "msg_1", model: "claude-1", usage: { input_tokens: 12, cache_read_input_tokens: 5, cache_creation_input_tokens: 0, output_tokens: 1 } } }),
    event({ type: "ping" }), ...blocks.flat(),
    event({ type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 9 } }), event({ type: "message_stop" }),
  ].join(""),
  text: (index, words) => block(index, { type: "text", text: "" }, words.map((text) => ({ type: "text_delta", text }))),
  thinking: (index, words, signature) => block(index, { type: "thinking", thinking: "" }, [...words.map((thinking) => ({ type: "thinking_delta", thinking })), { type: "signature_delta", signature }]),
  redacted: (index, data) => block(index, { type: "redacted_thinking", data }, []),
  tool: (index, id, name, pieces) => block(index, { type: "tool_use", id, name, input: {} }, pieces.map((partial_json) => ({ type: "input_json_delta", partial_json }))),
  error: (error) => [event({ type: "message_start", message: { id: "msg_1", model: "claude-1", usage: { input_tokens: 1 } } }), event({ type: "error", error })].join(""),
};

// ------------------------------------------------------------------- gemini

export const gemini = {
  stream: (...answers) => answers.map((parts, at) => sse({
    responseId: "resp-1", modelVersion: "gemini-1",
    candidates: [{ content: { role: "model", parts }, ...(at === answers.length - 1 ? { finishReason: "STOP" } : {}) }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: at + 1, totalTokenCount: 8 + at },
  })).join(""),
};
