// A summary that needs no model: what was asked for, what was done, what was said last.
import type { Message } from "../types/index.js";

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
