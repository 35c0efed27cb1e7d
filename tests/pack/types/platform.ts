// Where the platform's types are known, its own objects go in and what comes out goes into its own functions.
import init, { encrypted, initSync, openBackend, type ToolDefinition } from "sessionlog";
import { RemoteStore } from "sessionlog/remote";

export async function starts(request: Request, response: Response): Promise<void> {
  const url = new URL("https://example.com/sessionlog_bg.wasm");
  await init(url);
  await init(request);
  await init(response);
  await init(fetch(url));
}

export async function locks(): Promise<void> {
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  if ("privateKey" in key) throw new Error("one key is asked for");
  encrypted(await openBackend({ kind: "memory" }), key);
}

export const reaches: ToolDefinition = { name: "get", description: "", parameters: {}, run: async (_args, { signal }) => (await fetch("https://example.com", { signal })).text() };
export const signalOf: (signal: AbortSignal) => Parameters<ToolDefinition["run"]>[1]["signal"] = (signal) => signal;
export const remote = new RemoteStore({ url: new URL("https://example.com"), token: "t", fetch, WebSocket });
