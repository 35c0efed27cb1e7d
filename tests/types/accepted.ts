// What users of the package write; all of it must compile under --strict.
import init, { initSync, SessionLogError, SessionStore, VirtualFs, ChatSessionController } from "sessionlog";
import type { Cost, DerivedRequest, ErrorCode, JsonValue, KeyValueBackend, LlmAdapter, SessionEvent, Target, ToolDefinition } from "sessionlog";

// A user's own event type: declared here for TypeScript, with declareEvent at run time.
declare module "sessionlog" {
  interface SessionEventMap {
    "compaction/marker": { at: number; why: string };
  }
  interface TurnTriggerMap {
    timer: { everyMs: number };
  }
}

export async function startUp(): Promise<void> {
  await init();
  await init(new URL("https://example.invalid/x.wasm"));
  await init({ module_or_path: fetch("https://example.invalid/x.wasm") });
  initSync(new Uint8Array());
  initSync({ module: new WebAssembly.Module(new Uint8Array()) });
}

export async function log(): Promise<number> {
  await using store = await SessionStore.open({ storage: { kind: "indexeddb", durability: "strict" } });
  SessionStore.declareEvent("compaction/marker", { durable: true });
  const session = store.create("a", { meta: { cwd: "/" } });
  const own = session.append("compaction/marker", { at: 1, why: "long" });
  const why: string = own.data.why;
  session.append("turn/start", { turn: 0, trigger: { kind: "timer", everyMs: 5 } });
  session.append("turn/start", { turn: 0, trigger: { kind: "message" } });
  session.append("turn/end", { turn: 0, reason: { kind: "error", message: why } });
  const end: () => void = store.on("session/event", (event, of) => void [event.seq, of.id]);
  end();
  return (await session.appendDurable("user/message", { text: "hi" })).seq;
}

// The type narrows the data.
export function textOf(event: SessionEvent): string {
  switch (event.type) {
    case "user/message":
      return event.data.text ?? "";
    case "session/compacted":
      return event.data.summary + event.data.uptoSeq.toFixed();
    case "turn/end":
      return event.data.reason.kind === "error" ? event.data.reason.message : event.data.reason.kind;
    case "assistant/message":
      return event.data.parts.map((part) => (part.type === "text" ? part.text : part.type === "tool-call" ? part.name : "")).join("");
    case "compaction/marker":
      return event.data.why;
    default:
      return event.id;
  }
}

export function onError(thrown: unknown): ErrorCode | null {
  return thrown instanceof SessionLogError ? thrown.code : null;
}

export const backend: KeyValueBackend = {
  name: "own",
  get: () => null,
  list: async () => [],
  transact: () => {},
};

export const tool: ToolDefinition = {
  name: "read",
  description: "reads",
  parameters: { type: "object" },
  run: (args, { fs, signal }) => (signal.aborted ? null : fs.readText(String((args as { path: JsonValue }).path))),
};

export async function chat(adapter: LlmAdapter, target: Target): Promise<Cost> {
  const store = await SessionStore.open();
  const fs = await VirtualFs.open({ storage: { kind: "custom", backend } });
  const controller = new ChatSessionController({ store, fs, outputFn: (text) => void text.length });
  const { runResult, warnings } = await controller.executeTask("x", { model: "scripted/demo", tools: [tool] }, { adapter });
  const request: DerivedRequest = controller.session.deriveRequest({ target });
  void [runResult.finalAnswer?.content, warnings.length, request.digest];
  return controller.getSessionCost();
}
