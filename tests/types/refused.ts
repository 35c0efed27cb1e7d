// What must not compile: every line below is an error, and the build fails where one stops being one.
import init, { initSync, SessionLogError, SessionStore } from "sessionlog";
import type { KeyValueBackend, SessionEvent, StorageSpec, ToolDefinition } from "sessionlog";

// @ts-expect-error a missing argument
initSync();
// @ts-expect-error one argument
void init("x.wasm", 2);
// @ts-expect-error no such storage
export const storage: StorageSpec = { kind: "sqlite" };
// @ts-expect-error options of one kind do not fit another
export const mixed: StorageSpec = { kind: "localstorage", durability: "strict" };
// @ts-expect-error a backend must be able to list
export const backend: KeyValueBackend = { get: () => null, transact: () => {} };
// @ts-expect-error a tool without a body
export const tool: ToolDefinition = { name: "x", description: "", parameters: {} };

export function append(store: SessionStore): void {
  const session = store.create();
  // @ts-expect-error an undeclared type
  session.append("no/such", {});
  // @ts-expect-error a member of another type
  session.append("session/titled", { text: "x" });
  // @ts-expect-error a missing member
  session.append("tool/call", { id: "1", name: "x" });
  // @ts-expect-error an unknown reason
  session.append("turn/end", { turn: 0, reason: { kind: "bored" } });
  // @ts-expect-error a reason without its member
  session.append("turn/end", { turn: 0, reason: { kind: "error" } });
  // @ts-expect-error ids are fixed
  session.id = "other";
  // @ts-expect-error no such notice
  store.on("session/closed", () => {});
}

export function narrow(event: SessionEvent): void {
  // @ts-expect-error not narrowed
  void event.data.summary;
  if (event.type === "session/titled") {
    // @ts-expect-error another type's member
    void event.data.summary;
  }
  // @ts-expect-error no such code
  if (event instanceof SessionLogError && event.code === "no_such_code") return;
}

export function noAny(store: SessionStore): void {
  // An `any` anywhere here would let these pass.
  const status = store.status();
  // @ts-expect-error a promise has no kind
  void status.kind;
  const report = store.create().deriveRequest({ target: "gemini" });
  // @ts-expect-error JSON has to be narrowed first
  void report.messages[0].role;
}
