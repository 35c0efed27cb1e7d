// Turns the log of a session into what the transcript shows, one event at a time.
import type { ContentPart, JsonValue, SessionEvent } from "sessionlog";
import type { FileChange } from "./changes.ts";

export type ToolState = "approval" | "running" | "done" | "failed" | "denied" | "not-run";
interface Base {
  key: string;
  seq: number;
  at: number;
}
export interface UserItem extends Base {
  kind: "user";
  text: string;
  media: number;
  steering: boolean;
}
export interface AssistantItem extends Base {
  kind: "assistant";
  text: string;
  reasoning: string;
  streaming: boolean;
  partial: boolean;
  model?: string;
}
export interface ToolItem extends Base {
  kind: "tool";
  callId: string;
  name: string;
  args: JsonValue;
  state: ToolState;
  result: string | null;
  changes: FileChange[];
  reason?: string;
}
export interface NoteItem extends Base {
  kind: "note";
  tone: "plain" | "warn" | "bad";
  text: string;
  detail?: string;
  /** The turn ended before its time and can be gone on with. */
  resumable?: boolean;
  /** Tells of an error that a turn met. */
  error?: boolean;
}
export interface FilesItem extends Base {
  kind: "files";
  changes: FileChange[];
  undone: boolean;
}
export interface RewoundItem extends Base {
  kind: "rewound";
  hidden: Item[];
}
export type Item = UserItem | AssistantItem | ToolItem | NoteItem | FilesItem | RewoundItem;
export interface Draft {
  id: string;
  text: string;
}

export function textOfParts(parts: string | readonly ContentPart[] | undefined): string {
  if (parts === undefined) return "";
  if (typeof parts === "string") return parts;
  return parts.map((part) => (part.type === "text" ? part.text : `[${part.type}: ${part.mediaType}]`)).join("\n");
}

const RESUMABLE = new Set(["cancelled", "aborted", "error", "disposed", "interrupted", "max-tokens", "max-steps", "budget-reached"]);

const NOT_SAVED = new Set(["quota", "storage", "conflict", "locked", "blocked", "timeout"]);

const END_NOTES: { [kind: string]: { tone: NoteItem["tone"]; text: string } } = {
  aborted: { tone: "warn", text: "Stopped. What had arrived is kept." },
  cancelled: { tone: "warn", text: "Stopped. What had arrived is kept." },
  error: { tone: "bad", text: "The model could not finish this answer." },
  disposed: { tone: "warn", text: "The session was closed while this ran." },
  "max-tokens": { tone: "warn", text: "The model reached its output limit; the answer is cut off." },
  interrupted: { tone: "warn", text: "Interrupted: the page was closed while this ran." },
  rejected: { tone: "warn", text: "The request was refused." },
  empty: { tone: "warn", text: "The model sent an empty answer." },
  "max-steps": { tone: "warn", text: "Stopped after the highest number of steps." },
  "budget-reached": { tone: "warn", text: "The cost limit was reached. What was done is kept." },
};

export class Timeline {
  items: Item[] = [];
  drafts: Draft[] = [];
  #tools = new Map<string, string>();
  #turnChanges: FileChange[] = [];
  #queue = new Map<string, string>();

  static of(events: readonly SessionEvent[]): Timeline {
    const timeline = new Timeline();
    for (const event of events) timeline.apply(event);
    return timeline;
  }

  /** Applies one event, in place; an item that changes is a new one. */
  apply(event: SessionEvent): void {
    const base = { seq: event.seq, at: event.at };
    switch (event.type) {
      case "user/message":
        this.#push({ ...base, kind: "user", key: event.id, text: event.data.text ?? textOfParts(event.data.parts), media: mediaIn(event.data.parts), steering: false });
        break;
      case "steering/message":
        this.#push({ ...base, kind: "user", key: event.id, text: event.data.text, media: 0, steering: true });
        break;
      case "context/injected":
      case "context/message":
        this.#push({ ...base, kind: "note", key: event.id, tone: "plain", text: "Context was added.", detail: event.data.text });
        break;
      case "turn/start":
        this.#turnChanges = [];
        break;
      case "assistant/chunk":
        this.#chunk(event.data, base);
        break;
      case "assistant/message":
        this.#answer(event as SessionEvent<"assistant/message">);
        break;
      case "tool/call":
        this.#call(event.id, event.data.id, event.data.name, event.data.args, base);
        break;
      case "approval/requested":
        if (!this.#find(event.data.callId)) this.#call(event.id, event.data.callId, event.data.name, event.data.args, base);
        this.#tool(event.data.callId, { state: "approval" });
        break;
      case "approval/resolved":
        this.#tool(event.data.callId, {
          state: event.data.verdict === "approved" ? "running" : "denied",
          ...(event.data.reason ? { reason: event.data.reason } : {}),
        });
        break;
      case "tool/result":
        this.#result(event as SessionEvent<"tool/result">);
        break;
      case "page/change":
        this.#change(event.data);
        break;
      case "turn/end":
        this.#end(event as SessionEvent<"turn/end">);
        break;
      case "error":
        this.#push({ ...base, kind: "note", key: event.id, tone: "bad", error: true, text: event.data.message, ...(event.data.code ? { detail: event.data.code } : {}) });
        break;
      case "session/compacted":
        this.#push({ ...base, kind: "note", key: event.id, tone: "plain", text: "Earlier messages were summed up for the model. Nothing was deleted.", detail: event.data.summary });
        break;
      case "session/rewound":
        this.#rewind(event as SessionEvent<"session/rewound">);
        break;
      case "session/forked":
        this.#push({ ...base, kind: "note", key: event.id, tone: "plain", text: "Forked here from another session." });
        break;
      case "session/rescrubbed":
        this.#push({ ...base, kind: "note", key: event.id, tone: "plain", text: `Stored text was scrubbed again: ${event.data.events} events changed.` });
        break;
      case "undo/applied":
        this.#markUndone(true);
        this.#push({ ...base, kind: "note", key: event.id, tone: "plain", text: `Run undone: ${tally(event.data)}.`, detail: [...event.data.restored, ...event.data.deleted].join("\n") });
        break;
      case "undo/redone":
        this.#markUndone(false);
        this.#push({ ...base, kind: "note", key: event.id, tone: "plain", text: `Run put back: ${tally(event.data)}.`, detail: [...event.data.restored, ...event.data.deleted].join("\n") });
        break;
      case "queue/added":
        this.#queue.set(event.data.id, event.data.text);
        this.#drafts();
        break;
      case "queue/claimed":
      case "queue/dropped":
        this.#queue.delete(event.data.id);
        this.#drafts();
        break;
    }
  }

  #drafts(): void {
    this.drafts = [...this.#queue].map(([id, text]) => ({ id, text }));
  }

  #push(item: Item): void {
    this.items.push(item);
  }

  #replaceLast(match: (item: Item) => boolean, change: (item: Item) => Item): boolean {
    for (let index = this.items.length - 1; index >= 0; index--) {
      const item = this.items[index] as Item;
      if (!match(item)) continue;
      this.items[index] = change(item);
      return true;
    }
    return false;
  }

  #chunk(data: { turn: number; step: number; kind: string; text: string }, base: { seq: number; at: number }): void {
    if (data.kind === "tool-args") return;
    const key = `a:${data.turn}:${data.step}`;
    const field = data.kind === "reasoning" ? "reasoning" : "text";
    const last = this.items[this.items.length - 1];
    if (last?.kind === "assistant" && last.key === key && last.streaming) {
      this.items[this.items.length - 1] = { ...last, [field]: last[field] + data.text };
      return;
    }
    this.#push({ ...base, kind: "assistant", key, text: "", reasoning: "", streaming: true, partial: false, [field]: data.text });
  }

  #answer(event: SessionEvent<"assistant/message">): void {
    const { parts, turn, step, partial, model } = event.data;
    const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
    const reasoning = parts.flatMap((part) => (part.type === "reasoning" ? [part.text] : [])).join("\n\n");
    const key = turn === undefined ? event.id : `a:${turn}:${step}`;
    const item: AssistantItem = {
      seq: event.seq, at: event.at, kind: "assistant", key, text, reasoning, streaming: false, partial: partial === true, ...(model ? { model } : {}),
    };
    const replaced = this.#replaceLast((other) => other.kind === "assistant" && other.key === key && other.streaming, () => item);
    if (!replaced && (text !== "" || reasoning !== "" || partial)) this.#push(item);
    // Logs from elsewhere carry calls only inside the message.
    for (const part of parts) if (part.type === "tool-call" && turn === undefined) this.#call(`${event.id}:${part.id}`, part.id, part.name, part.args, { seq: event.seq, at: event.at });
  }

  #call(key: string, callId: string, name: string, args: JsonValue, base: { seq: number; at: number }): void {
    const known = this.#find(callId);
    if (known && known.result === null) return this.#tool(callId, { state: known.state === "approval" ? "running" : known.state });
    this.#tools.set(callId, key);
    this.#push({ ...base, kind: "tool", key, callId, name, args, state: "running", result: null, changes: [] });
  }

  #find(callId: string): ToolItem | undefined {
    const key = this.#tools.get(callId);
    return key === undefined ? undefined : (this.items.findLast((item) => item.kind === "tool" && item.key === key) as ToolItem | undefined);
  }

  #tool(callId: string, change: Partial<ToolItem>): void {
    const key = this.#tools.get(callId);
    this.#replaceLast((item) => item.kind === "tool" && item.key === key, (item) => ({ ...(item as ToolItem), ...change }));
  }

  #result(event: SessionEvent<"tool/result">): void {
    const { id, content, isError, synthetic, error } = event.data;
    const tool = this.#find(id);
    if (!tool) return;
    const state: ToolState = tool.state === "denied" ? "denied" : synthetic ? "not-run" : isError || error ? "failed" : "done";
    this.#tool(id, { result: textOfParts(content) || (error?.message ?? ""), state });
  }

  #change(change: FileChange): void {
    const tool = this.#find(change.callId);
    if (tool) this.#tool(change.callId, { changes: [...tool.changes, change] });
    this.#turnChanges.push(change);
  }

  #end(event: SessionEvent<"turn/end">): void {
    const { reason } = event.data;
    for (let index = 0; index < this.items.length; index++) {
      const item = this.items[this.items.length - 1 - index] as Item;
      if (item.kind === "user" && !item.steering) break;
      if (item.kind === "assistant" && item.streaming) this.items[this.items.length - 1 - index] = { ...item, streaming: false, partial: true };
      if (item.kind === "tool" && item.result === null) this.items[this.items.length - 1 - index] = { ...item, state: "not-run" };
    }
    const note = reason.kind === "error" && NOT_SAVED.has(reason.code ?? "") ? { tone: "bad" as const, text: "Stopped: what it did could not be saved." } : END_NOTES[reason.kind];
    // The end tells what its error event told; once is enough.
    const last = this.items.at(-1);
    if (reason.kind === "error" && last?.kind === "note" && last.error === true) this.items.pop();
    const detail = reason.kind === "error" ? reason.message : "reason" in reason ? reason.reason : undefined;
    if (note) this.#push({ seq: event.seq, at: event.at, kind: "note", key: event.id, ...note, ...(detail ? { detail } : {}), resumable: RESUMABLE.has(reason.kind) });
    if (this.#turnChanges.length > 0) this.#push({ seq: event.seq, at: event.at, kind: "files", key: `f:${event.id}`, changes: this.#turnChanges, undone: false });
    this.#turnChanges = [];
  }

  #markUndone(undone: boolean): void {
    const match = (item: Item) => item.kind === "files" && item.undone !== undone;
    if (undone) {
      this.#replaceLast(match, (item) => ({ ...(item as FilesItem), undone }));
      return;
    }
    const index = this.items.findIndex(match);
    if (index >= 0) this.items[index] = { ...(this.items[index] as FilesItem), undone };
  }

  #rewind(event: SessionEvent<"session/rewound">): void {
    const cut = this.items.findIndex((item) => item.seq > event.data.uptoSeq);
    const hidden = cut < 0 ? [] : this.items.splice(cut);
    this.#push({ seq: event.data.uptoSeq, at: event.at, kind: "rewound", key: event.id, hidden });
  }
}

function mediaIn(parts: readonly ContentPart[] | undefined): number {
  return parts?.filter((part) => part.type !== "text").length ?? 0;
}

function tally({ restored, deleted }: { restored: string[]; deleted: string[] }): string {
  const parts = [];
  if (restored.length > 0) parts.push(`${restored.length} ${restored.length === 1 ? "file" : "files"} restored`);
  if (deleted.length > 0) parts.push(`${deleted.length} removed`);
  return parts.length > 0 ? parts.join(", ") : "nothing to change";
}
