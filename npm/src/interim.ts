// Until requests are derived: enough of a chat request for the scripted model.
import type { DerivedRequest, JsonValue, Session } from "../types/index.js";

export function plainRequest(session: Session, system: string | undefined): DerivedRequest {
  const messages: JsonValue[] = [];
  for (const { role, parts } of session.deriveMessages()) {
    const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("");
    const calls = parts.flatMap((part) => (part.type === "tool-call" ? [{ id: part.id, type: "function", function: { name: part.name, arguments: JSON.stringify(part.args) } }] : []));
    if (role === "tool") for (const part of parts) messages.push(part.type === "tool-result" ? { role, tool_call_id: part.id, content: typeof part.content === "string" ? part.content : JSON.stringify(part.content) } : null);
    else messages.push({ role, content: text, ...(calls.length === 0 ? {} : { tool_calls: calls }) });
  }
  return { target: "openai-chat", ...(system === undefined ? {} : { system }), messages, repairs: [], digest: "" };
}
