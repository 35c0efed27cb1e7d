// What stands for a history that is compacted: told by the model, or without one: what was asked for, done and said last.
import type { LlmAdapter, Message, UsageRecord } from "../types/index.js";
import { call } from "./runtime.js";
import { toWellFormed } from "./values.js";

const MAX_ITEM = 200;
const MAX_ITEMS = 40;

function short(text: string): string {
  const chars = Array.from(text.replace(/\s+/g, " ").trim());
  return chars.length <= MAX_ITEM ? chars.join("") : `${chars.slice(0, MAX_ITEM - 1).join("")}…`;
}

/** One line per message, the latest ones when there are many; null when there is nothing to tell. */
export function localSummary(messages: Message[]): string | null {
  const lines: string[] = [];
  for (const { role, parts } of messages) {
    const said = parts.map((part) => (part.type === "text" ? part.text : "")).join(" ");
    const calls = parts.flatMap((part) => (part.type === "tool-call" ? [`${part.name}(${short(JSON.stringify(part.args))})`] : []));
    if (role === "user" && said.trim() !== "") lines.push(`- The user said: ${short(said)}`);
    if (role === "assistant" && said.trim() !== "") lines.push(`- The answer was: ${short(said)}`);
    if (calls.length > 0) lines.push(`- Tools were called: ${calls.join(", ")}`);
  }
  if (lines.length === 0) return null;
  const shown = lines.length <= MAX_ITEMS ? lines : [`- (${lines.length - MAX_ITEMS} earlier points left out)`, ...lines.slice(-MAX_ITEMS)];
  return ["Summary of the conversation so far:", ...shown].join("\n");
}

/** What of one tool result goes into the conversation that is summed up. */
const MAX_RESULT = 4000;

const cut = (text: string): string => (text.length <= MAX_RESULT ? text : `${text.slice(0, MAX_RESULT)} [${text.length - MAX_RESULT} more characters]`);

function told(part: Message["parts"][number]): string[] {
  switch (part.type) {
    case "text": return [part.text];
    case "tool-call": return [`[calls ${part.name} with ${cut(part.rawArgs ?? JSON.stringify(part.args))}]`];
    case "tool-result": return [typeof part.content === "string" ? cut(part.content) : part.content.flatMap(told).map(cut).join("\n")];
    case "image": case "file": return [`[${part.type} ${part.mediaType}]`];
    default: return [];
  }
}

/** The conversation as text, for whatever model is to sum it up. */
function transcript(messages: Message[]): string {
  const names = { user: "User", assistant: "Assistant", tool: "Result" };
  const lines = messages.map(({ role, parts }) => [names[role], parts.flatMap(told).join("\n")] as const);
  return lines.filter(([, text]) => text.trim() !== "").map(([name, text]) => `${name}: ${text}`).join("\n\n");
}

/** Asks a model for the summary; it is shown the conversation as text and is offered no tools. */
export async function modelSummary(adapter: LlmAdapter, messages: Message[], signal: AbortSignal): Promise<{ summary: string; usage: UsageRecord | null }> {
  const { provider, model, target } = adapter;
  const conversation = toWellFormed(transcript(messages));
  const { messages: asked, system, digest } = JSON.parse(call((m) => m.raw_summary_request(conversation, JSON.stringify({ target, provider, model })))) as never;
  const request = { target, messages: asked, repairs: [], digest, ...(system === undefined ? {} : { system }) };
  let summary = "";
  let usage: UsageRecord | null = null;
  for await (const chunk of adapter.stream({ request, tools: [], provider, model }, { signal })) {
    if (chunk.type === "text") summary += chunk.text;
    if (chunk.type === "usage") usage = chunk.usage;
    if (chunk.type === "finish" && (chunk.reason === "error" || chunk.reason === "aborted")) throw new Error(`the model gave no summary (${chunk.reason})`);
  }
  return { summary, usage };
}
