// A chat-completions server on loopback: speaks the streaming protocol, keeps what it was asked, answers from a script.
import { createServer } from "node:http";

const CORS = { "access-control-allow-origin": "*", "access-control-allow-headers": "*", "access-control-allow-methods": "POST, OPTIONS" };

/** `answer(body, number)` gives `{text}`, `{calls: [{name, args}]}` or `{status}` for each request. */
export async function openaiServer(answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(204, CORS).end();
    let text = "";
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    requests.push({ url: request.url, headers: request.headers, body, text });
    const { text: said, calls, status } = await answer(body, requests.length);
    if (status) return void response.writeHead(status, { ...CORS, "content-type": "application/json" }).end('{"error":{"message":"refused by the test server"}}');
    response.writeHead(200, { ...CORS, "content-type": "text/event-stream" });
    const id = `chatcmpl-${requests.length}`;
    const send = (choice, more = {}) => response.write(`data: ${JSON.stringify({ id, object: "chat.completion.chunk", model: body.model, choices: choice ? [{ index: 0, ...choice }] : [], ...more })}\n\n`);
    send({ delta: { role: "assistant", content: "" }, finish_reason: null });
    for (const piece of said?.match(/\S+\s*/g) ?? []) {
      send({ delta: { content: piece }, finish_reason: null });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    calls?.forEach(({ name, args }, index) => {
      const whole = JSON.stringify(args);
      send({ delta: { tool_calls: [{ index, id: `call_${requests.length}_${index}`, type: "function", function: { name, arguments: whole.slice(0, 7) } }] }, finish_reason: null });
      send({ delta: { tool_calls: [{ index, function: { arguments: whole.slice(7) } }] }, finish_reason: null });
    });
    send({ delta: {}, finish_reason: calls ? "tool_calls" : "stop" });
    send(null, { usage: { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 } });
    response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    requests,
    stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }),
  };
}
