// Models that need no network: `demo` does what the user's message says, `script` plays a recording.
import type { JsonValue, LlmAdapter, LlmChunk, LlmRequest } from "../../types/index.js";
import { SessionLogError } from "../errors.js";
import { providerError } from "./failure.js";
import { sleep } from "./http.js";

export function scripted(model: string | null, options: { [key: string]: unknown }): LlmAdapter {
  if (model === null || model === "demo") return demo();
  if (model === "script") return script(options);
  throw new SessionLogError("not_found", "the scripted provider has the models demo and script", { given: model.slice(0, 80) });
}

// -------------------------------------------------------------------- script

function script(options: { [key: string]: unknown }): LlmAdapter {
  const { script: steps, requests } = options;
  if (!Array.isArray(steps) || !steps.every(Array.isArray)) {
    throw new SessionLogError("invalid_argument", "scripted/script needs options.script: a list of steps, each a list of chunks", { path: "script" });
  }
  let next = 0;
  return {
    provider: "scripted", model: "script", target: "openai-chat",
    async *stream(request, { signal }) {
      if (Array.isArray(requests)) requests.push(structuredClone(request));
      const step = steps[next++] as LlmChunk[] | undefined;
      if (step === undefined) throw providerError("provider_error", "the script has no more steps");
      yield* play(step, signal);
    },
  };
}

async function* play(step: LlmChunk[], signal: AbortSignal): AsyncGenerator<LlmChunk> {
  let calls = false;
  let finished = false;
  for (const chunk of step) {
    // Somebody may want to stop between two pieces.
    await null;
    signal.throwIfAborted();
    calls ||= chunk.type === "tool-call" || chunk.type === "tool-args";
    finished ||= chunk.type === "finish";
    yield chunk;
  }
  if (!finished) yield { type: "finish", reason: calls ? "tool-calls" : "stop" };
}

// ---------------------------------------------------------------------- demo

type Line =
  | { kind: "say" | "think" | "unknown"; text: string }
  | { kind: "wait"; ms: number }
  | { kind: "secret" | "crash" }
  | { kind: "tool"; name: string; args: { [key: string]: JsonValue } };

const HELP =
  "I am a scripted model and work offline. I can: write PATH: TEXT, append PATH: TEXT, read PATH, delete PATH, move A to B, list, say TEXT, think TEXT, wait MS, secret, fail, crash. One per line.";

/** Made up, and valid in form; in parts, so that it stands nowhere as a whole. */
const CREDENTIAL = ["gh", "p_", "Madeup0Credential0", "Of0The0Demo0", "48INJx"].join("");

const MAX_WAIT_MS = 60_000;

function readLine(line: string): Line {
  const file = /^(write|append)\s+(\S.*?):(?:\s(.*)|\s*)$/.exec(line);
  if (file !== null) return { kind: "tool", name: `${file[1]}_file`, args: { path: file[2] as string, content: file[3] ?? "" } };
  const one = /^(read|delete)\s+(\S.*)$/.exec(line);
  if (one !== null) return { kind: "tool", name: `${one[1]}_file`, args: { path: one[2] as string } };
  const move = /^move\s+(\S.*?)\s+to\s+(\S.*)$/.exec(line);
  if (move !== null) return { kind: "tool", name: "move_file", args: { from: move[1] as string, to: move[2] as string } };
  const words = /^(say|think)\s+(.*)$/.exec(line);
  if (words !== null) return { kind: words[1] as "say" | "think", text: words[2] as string };
  const wait = /^wait\s+(\d+)$/.exec(line);
  if (wait !== null) return { kind: "wait", ms: Math.min(Number(wait[1]), MAX_WAIT_MS) };
  if (line === "list") return { kind: "tool", name: "list_files", args: {} };
  if (line === "fail") return { kind: "tool", name: "read_file", args: { path: "/there/is/no/such/file" } };
  if (line === "secret" || line === "crash") return { kind: line };
  return { kind: "unknown", text: line };
}

interface ChatMessage {
  role: string;
  content?: JsonValue;
  tool_calls?: JsonValue[];
}

function textOf(content: JsonValue | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (typeof part === "object" && part !== null && !Array.isArray(part) && typeof part["text"] === "string" ? part["text"] : "")).join("\n");
}

interface Plan {
  lines: Line[];
  /** Results that came since the user spoke, with what was asked for. */
  results: Array<{ asked: Line; content: string }>;
}

/** What is still to be done: the user's lines without those that earlier steps took. */
function planOf(messages: ChatMessage[]): Plan {
  let lines: Line[] = [];
  let results: Plan["results"] = [];
  let asked: Line | undefined;
  for (const message of messages) {
    if (message.role === "user") {
      const said = textOf(message.content);
      // Context is no order, steering adds to what is going on, anything else begins anew.
      if (/^<context\b/.test(said)) continue;
      const steers = /^<steering>/.test(said);
      if (!steers) results = [];
      const text = said.replace(/^<steering>|<\/steering>$/g, "");
      lines = (steers ? lines : []).concat(text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "").map(readLine));
    } else if (message.role === "assistant") {
      const at = lines.findIndex((line) => line.kind === "tool");
      const stops = at < 0 || (message.tool_calls ?? []).length === 0;
      asked = stops ? undefined : lines[at];
      lines = stops ? [] : lines.slice(at + 1);
      if (stops) results = [];
    } else if (message.role === "tool" && asked !== undefined) {
      results.push({ asked, content: textOf(message.content) });
    }
  }
  return { lines, results };
}

function demo(): LlmAdapter {
  return {
    provider: "scripted", model: "demo", target: "openai-chat",
    async *stream(request, { signal }) {
      const { lines, results } = planOf(request.request.messages as unknown as ChatMessage[]);
      const at = lines.findIndex((line) => line.kind === "tool");
      const now = at < 0 ? lines : lines.slice(0, at + 1);
      const out = { length: 0 };
      let said = false;
      for await (const chunk of act(now, signal, request.request.messages.length)) {
        signal.throwIfAborted();
        if (chunk.type === "text") said = true;
        if ("text" in chunk) out.length += chunk.text.length;
        yield chunk;
      }
      if (at < 0 && !said) yield* speak(closing(results), signal);
      yield usage(request, out.length);
      yield { type: "finish", reason: at < 0 ? "stop" : "tool-calls" };
    },
  };
}

async function* act(lines: Line[], signal: AbortSignal, salt: number): AsyncGenerator<LlmChunk> {
  let said = false;
  const unknown = lines.some((line) => line.kind === "unknown");
  const known = lines.some((line) => line.kind !== "unknown");
  if (unknown && !known) yield* speak(HELP, signal);
  for (const line of lines) {
    const gap = said ? "\n" : "";
    switch (line.kind) {
      case "say": yield* speak(gap + line.text, signal); break;
      case "secret": yield* speak(`${gap}The made-up credential is ${CREDENTIAL}.`, signal); break;
      case "think": yield* pieces(line.text, "reasoning", signal); continue;
      case "wait": yield* slowly(gap, line.ms, signal); break;
      case "crash":
        yield* speak(`${gap}Now the stream breaks`, signal);
        throw providerError("cut_off");
      case "tool": yield* ask(line, salt); continue;
      case "unknown": continue;
    }
    said = true;
  }
}

async function* ask(line: Line & { kind: "tool" }, salt: number): AsyncGenerator<LlmChunk> {
  const id = `call_demo_${salt}`;
  const args = JSON.stringify(line.args);
  const half = Math.ceil(args.length / 2);
  yield { type: "tool-args", id, name: line.name, delta: args.slice(0, half) };
  yield { type: "tool-args", id, delta: args.slice(half) };
}

function speak(text: string, signal: AbortSignal): AsyncGenerator<LlmChunk> {
  return pieces(text, "text", signal);
}

/** A few words at a time, as a model would. */
async function* pieces(text: string, type: "text" | "reasoning", signal: AbortSignal): AsyncGenerator<LlmChunk> {
  for (const piece of text.match(/\s*\S+(?:\s+\S+)?\s*/g) ?? []) {
    await null;
    signal.throwIfAborted();
    yield { type, text: piece };
  }
}

const TICK_MS = 50;

async function* slowly(gap: string, ms: number, signal: AbortSignal): AsyncGenerator<LlmChunk> {
  yield { type: "text", text: `${gap}Waiting ` };
  for (let left = ms; left > 0; left -= TICK_MS) {
    await sleep(Math.min(TICK_MS, left), signal);
    yield { type: "text", text: "." };
  }
  yield { type: "text", text: " done." };
}

const DONE: { [tool: string]: string } = { write_file: "Wrote", append_file: "Appended to", delete_file: "Deleted", read_file: "Read", list_files: "Listed the files" };

function closing(results: Plan["results"]): string {
  if (results.length === 0) return "There was nothing to do.";
  return results.map(({ asked, content }) => (asked.kind === "tool" ? report(asked, content) : "")).join("\n");
}

function report({ name, args }: Line & { kind: "tool" }, content: string): string {
  if (/^(error|\[error)/i.test(content)) return `That did not work: ${content}`;
  if (name === "move_file") return `Moved ${String(args["from"])} to ${String(args["to"])}.`;
  const path = args["path"] === undefined ? "" : ` ${String(args["path"])}`;
  const what = `${DONE[name] ?? name}${path}`;
  return name === "read_file" || name === "list_files" ? `${what}:\n${content}` : `${what}.`;
}

/** A made-up price, so that cost can be seen to add up: 2 dollars in and 8 dollars out for a million tokens. */
function usage(request: LlmRequest, length: number): LlmChunk {
  const prompt = Math.ceil(JSON.stringify(request.request.messages).length / 4);
  const completion = Math.ceil(length / 4) + 1;
  const raw = { prompt_tokens: prompt, completion_tokens: completion, cost: (prompt * 2 + completion * 8) / 1e6 };
  return { type: "usage", usage: { apiShape: "step.usage", raw, provider: "scripted", model: "demo" } };
}
