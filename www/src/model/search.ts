// Search over titles and the text of messages, in the stored (scrubbed) form.
import type { SessionEvent, SessionSummary } from "sessionlog";
import { textOfParts } from "./timeline.ts";
import { store } from "./workspace.ts";

/** Text of a session as it was when it was last read; read again when the session has grown. */
const texts = new Map<string, { events: number; text: string }>();

function textOf(event: SessionEvent): string {
  switch (event.type) {
    case "user/message": return event.data.text ?? textOfParts(event.data.parts);
    case "steering/message":
    case "context/injected":
    case "context/message": return event.data.text;
    case "assistant/message": return event.data.parts.flatMap((part) => ("text" in part ? [part.text] : [])).join("\n");
    case "tool/call": return `${event.data.name} ${JSON.stringify(event.data.args)}`;
    case "tool/result": return textOfParts(event.data.content);
    default: return "";
  }
}

async function textOfSession({ id, events }: SessionSummary): Promise<string> {
  const known = texts.get(id);
  if (known?.events === events) return known.text;
  const text = (await store().read(id)).map(textOf).filter((line) => line !== "").join("\n");
  texts.set(id, { events, text });
  return text;
}

/** Ids of sessions that have every word, each with a piece of text around the first hit; "" when only its title matches. */
export async function searchSessions(query: string, sessions: readonly SessionSummary[]): Promise<Map<string, string>> {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const hits = new Map<string, string>();
  for (const summary of sessions) {
    const title = `${summary.title} ${summary.preview}`.toLowerCase();
    if (words.every((word) => title.includes(word))) {
      hits.set(summary.id, "");
      continue;
    }
    const text = await textOfSession(summary).catch(() => "");
    const lower = text.toLowerCase();
    if (words.every((word) => lower.includes(word) || title.includes(word))) hits.set(summary.id, around(text, lower.indexOf(words[0] as string)));
  }
  return hits;
}

function around(text: string, at: number): string {
  const from = Math.max(0, at - 20);
  return `${from > 0 ? "…" : ""}${text.slice(from, at + 60).replace(/\s+/g, " ")}…`;
}
