// Serves the built package, and what a test adds to it, on loopback.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const dist = new URL("../../pkg/dist/", import.meta.url);
const types = { js: "text/javascript", mjs: "text/javascript", wasm: "application/wasm" };

/** `extra`: names of files of this folder that are served too. `texts`: what is served under other names, which may change
 *  while it runs. `onPost(path, body)` takes what a page tells. */
export async function serveDist({ extra = [], texts = new Map(), onPost = () => {}, html = "<!doctype html><title>tab</title>" } = {}) {
  const server = createServer(async (request, response) => {
    const name = new URL(request.url, "http://x").pathname.slice(1);
    if (request.method === "POST") {
      let text = "";
      try {
        for await (const piece of request) text += piece;
      } catch {
        return;
      }
      onPost(`/${name}`, JSON.parse(text));
      return void response.writeHead(204).end();
    }
    if (texts.has(name)) return void response.writeHead(200, { "content-type": types[name.split(".").pop()] ?? "text/html" }).end(texts.get(name));
    if (name === "") return void response.writeHead(200, { "content-type": "text/html" }).end(html);
    try {
      const body = await readFile(extra.includes(name) ? new URL(name, import.meta.url) : new URL(name, dist));
      response.writeHead(200, { "content-type": types[name.split(".").pop()] ?? "text/plain" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }),
  };
}
