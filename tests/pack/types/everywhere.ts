// Compiles with whatever the compiler has been told of the platform: every way into the package, and nothing but the language.
import init, { encrypted, initSync, openBackend, registerProvider, SessionStore, type InitInput, type LlmAdapter, type ToolDefinition } from "sessionlog";
import { denoKvBackend } from "sessionlog/deno-kv";
import { durableObjectBackend } from "sessionlog/durable-object";
import initInline from "sessionlog/inline";
import { openFileBackend, openSqliteBackend } from "sessionlog/node";
import manifest from "sessionlog/package.json" with { type: "json" };
import { decodeFrame, RemoteStore } from "sessionlog/remote";
import file from "sessionlog/sessionlog.wasm";
import wasm from "sessionlog/wasm";
import initWeb from "sessionlog/web";

export async function starts(given: InitInput): Promise<void> {
  await init();
  await initInline({ module_or_path: Promise.resolve(given) });
  await initWeb("/sessionlog_bg.wasm");
  await init(new Uint8Array(8));
  initSync(wasm);
  initSync({ module: file });
  initSync(new ArrayBuffer(8));
  // @ts-expect-error nothing is no module
  initSync(undefined);
  // @ts-expect-error nor is this
  await init(null);
}

export async function stores(): Promise<number> {
  await using store = await SessionStore.open({ storage: { kind: "custom", backend: await openFileBackend("/tmp/x") } });
  await using other = await SessionStore.open({ storage: new RemoteStore({ url: "https://example.com", token: () => manifest.name }).storage });
  const [first] = store.list();
  for (const event of first?.events ?? []) if (event.type === "user/message") return event.data.text?.length ?? other.list().length;
  const values: Uint8Array[] = decodeFrame(new Uint8Array()).values;
  void [openSqliteBackend, denoKvBackend, durableObjectBackend, values];
  // @ts-expect-error the text of a message is a text
  first?.append("user/message", { text: 5 });
  // @ts-expect-error a store is closed, not disposed of at once
  using wrong = store;
  return 0;
}

// A transport and a tool that mind their signal.
export const tool: ToolDefinition = {
  name: "slow", description: "", parameters: {},
  run: (_args, { signal }) => new Promise((done, fail) => {
    signal.addEventListener("abort", () => fail(signal.reason));
    if (signal.aborted) done(null);
    // @ts-expect-error no signal has this
    signal.sound();
  }),
};
export const adapter: LlmAdapter = {
  provider: "own", model: "m", target: "openai-chat",
  async *stream(_request, { signal }) {
    if (!signal.aborted) yield { type: "finish", reason: "stop" };
  },
};
registerProvider("own", () => adapter);

export async function refused(): Promise<void> {
  // @ts-expect-error a key is more than a text
  encrypted(await openBackend({ kind: "memory" }), "secret");
  // @ts-expect-error an address is a text or a URL
  new RemoteStore({ url: 5, token: "t" });
  // @ts-expect-error fetch is a function
  new RemoteStore({ url: "https://example.com", token: "t", fetch: "fetch" });
  // @ts-expect-error and WebSocket a class
  new RemoteStore({ url: "https://example.com", token: "t", WebSocket: () => null });
}
