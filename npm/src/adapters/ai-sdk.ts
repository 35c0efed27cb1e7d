// Any language model object of the Vercel AI SDK (its provider specification, versions 2 and later).
import type { ApiShape, JsonValue, LlmAdapter, LlmChunk, LlmRequest, UsageRecord } from "../../types/index.js";
import { SessionLogError, toError } from "../errors.js";
import { call } from "../runtime.js";
import { scrubText } from "../scrub.js";
import { clean, providerError, reasonFor } from "./failure.js";
import { sleep } from "./http.js";

/** What is used of a language model object. */
interface LanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doStream(options: { [key: string]: unknown }): PromiseLike<{ stream: ReadableStream<StreamPart>; response?: unknown }>;
}

type Metadata = { [provider: string]: { [key: string]: JsonValue } } | undefined;

interface StreamPart {
  type: string;
  id?: string;
  delta?: string;
  toolName?: string;
  toolCallId?: string;
  input?: string;
  modelId?: string;
  providerExecuted?: boolean;
  usage?: JsonValue;
  finishReason?: string | { unified?: string };
  error?: unknown;
  providerMetadata?: Metadata;
}

/** Options: `model` (the language model object), `settings` (more call options, such as `temperature`). */
export function aiSdk(name: string | null, options: { [key: string]: unknown }): LlmAdapter {
  const model = (options["model"] ?? options["languageModel"]) as LanguageModel | undefined;
  if (typeof model !== "object" || model === null || typeof model.doStream !== "function") {
    throw new SessionLogError("invalid_argument", "ai-sdk needs options.model: a language model object", { path: "model" });
  }
  if (!/^v[2-9]$/.test(String(model.specificationVersion))) {
    throw new SessionLogError("invalid_argument", "the language model object is of a version that is not supported (2 or later is)", { given: String(model.specificationVersion).slice(0, 20) });
  }
  // "openai.chat" and the like: the provider stands before the dot.
  const provider = String(model.provider).split(".")[0] || "ai-sdk";
  return {
    provider, model: name ?? model.modelId, target: "ai-sdk",
    async *stream(request, { signal }) {
      const stream = await begin(model, { ...(options["settings"] as object | undefined), ...callOf(request), abortSignal: signal }, signal);
      const answer = new Answer(provider, model);
      const reader = stream.getReader();
      try {
        for (let piece = await reader.read(); !piece.done; piece = await reader.read()) yield* answer.take(piece.value);
      } catch (thrown) {
        if (signal.aborted || thrown instanceof SessionLogError) throw thrown;
        throw broken(mapped(thrown));
      } finally {
        reader.cancel().catch(() => {});
      }
      yield* answer.end();
    },
  };
}

/** The SDK's own retries live above the model object: here they are made as for every other provider. */
async function begin(model: LanguageModel, options: { [key: string]: unknown }, signal: AbortSignal): Promise<ReadableStream<StreamPart>> {
  for (let attempts = 1; ; attempts++) {
    try {
      return (await model.doStream(options)).stream;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const { statusCode, isRetryable } = thrown as { statusCode?: number; isRetryable?: boolean };
      const after = retryAfterOf(thrown);
      const again = statusCode !== undefined || isRetryable === true;
      const pause = again ? call((module) => module.raw_retry_pause_ms(attempts, statusCode, after, Math.floor(Math.random() * 0xffffffff))) : undefined;
      if (pause === undefined) throw mapped(thrown);
      await sleep(pause, signal);
    }
  }
}

function retryAfterOf(thrown: unknown): number | undefined {
  const headers = (thrown as { responseHeaders?: { [name: string]: string } }).responseHeaders ?? {};
  const ms = Number(headers["retry-after-ms"] ?? NaN);
  if (Number.isFinite(ms)) return ms;
  const seconds = Number(headers["retry-after"] ?? NaN);
  return Number.isFinite(seconds) ? seconds * 1000 : undefined;
}

/** An answer that had begun: its connection did not fail to come about, it broke. */
function broken(error: SessionLogError): SessionLogError {
  return error.details["reason"] === "network" ? providerError("cut_off") : error;
}

function mapped(thrown: unknown): SessionLogError {
  if (thrown instanceof SessionLogError) return thrown;
  const { statusCode, message, cause, name } = (thrown ?? {}) as { [key: string]: unknown };
  // The key is the model object's, and not known here: what looks like one is taken out.
  const said = scrubText(clean(typeof message === "string" ? message : toError(thrown).message, [])).text;
  if (typeof statusCode === "number" && statusCode >= 400) {
    const reason = reasonFor(statusCode, "", said);
    return providerError(reason, reason === "auth" ? "" : said, { status: statusCode });
  }
  if (/JSONParse|TypeValidation/.test(String(name))) return providerError("bad_stream");
  const words = `${said} ${(cause as { message?: unknown } | undefined)?.message ?? ""}`;
  return providerError(/fetch failed|network|terminated|socket|ECONN|Cannot connect/i.test(words) ? "network" : "provider_error", said);
}

// ------------------------------------------------------------------- request

type Part = { [key: string]: JsonValue };

function callOf({ request, tools }: LlmRequest): { [key: string]: unknown } {
  const messages = (request.messages as unknown as Array<{ role: string; content: string | Part[] }>).map((message) => ({
    ...message,
    content: message.role === "system" ? message.content : partsOf(message.content),
  }));
  const { system } = request;
  const apart = typeof system === "string" && system !== "" && messages[0]?.role !== "system";
  return {
    prompt: apart ? [{ role: "system", content: system }, ...messages] : messages,
    ...(tools.length === 0
      ? {}
      : { tools: tools.map(({ name, description, parameters }) => ({ type: "function", name, description, inputSchema: parameters })), toolChoice: { type: "auto" } }),
  };
}

/** The SDK's messages may hold plain text and old image parts; its models take parts and files only. */
function partsOf(content: string | Part[]): unknown[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part) => {
    if (part["type"] === "image") return { type: "file", mediaType: part["mediaType"] ?? "image/*", data: address(part["image"] ?? part["data"] ?? null) };
    return part["type"] === "file" ? { ...part, data: address(part["data"] ?? null) } : part;
  });
}

function address(data: JsonValue): unknown {
  return typeof data === "string" && /^https?:\/\//.test(data) ? new URL(data) : data;
}

// -------------------------------------------------------------------- answer

class Answer {
  #provider: string;
  #model: LanguageModel;
  #id: string | undefined;
  #modelId: string;
  #calls = 0;
  #finished = false;
  #onText: { thoughtSignature?: string; itemId?: string } = {};

  constructor(provider: string, model: LanguageModel) {
    this.#provider = provider;
    this.#model = model;
    this.#modelId = model.modelId;
  }

  *take(part: StreamPart): Generator<LlmChunk> {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end": return yield* this.#text(part);
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end": return yield* this.#reasoning(part);
      case "tool-input-start": yield { type: "tool-args", id: part.id ?? "", name: part.toolName ?? "", delta: "" }; return;
      case "tool-input-delta": yield { type: "tool-args", id: part.id ?? "", delta: part.delta ?? "" }; return;
      case "tool-call": return yield* this.#call(part);
      case "response-metadata":
        this.#id = part.id ?? this.#id;
        this.#modelId = part.modelId ?? this.#modelId;
        return;
      case "error": throw broken(mapped(part.error));
      case "finish": return yield* this.#finish(part);
    }
  }

  /** Opaque fields may come with any piece; they belong to the whole part, which is known when it ends. */
  *#text({ delta = "", providerMetadata, type }: StreamPart): Generator<LlmChunk> {
    if (delta !== "") yield { type: "text", text: delta };
    for (const fields of Object.values(providerMetadata ?? {})) {
      for (const key of ["thoughtSignature", "itemId"] as const) if (typeof fields[key] === "string") this.#onText[key] = fields[key];
    }
    if (type !== "text-end" || Object.keys(this.#onText).length === 0) return;
    yield { type: "text", text: "", ...this.#onText };
    this.#onText = {};
  }

  *#reasoning({ delta = "", providerMetadata, type }: StreamPart): Generator<LlmChunk> {
    const opaque: { signature?: string; redacted?: string; itemId?: string; encrypted?: string } = {};
    for (const fields of Object.values(providerMetadata ?? {})) {
      if (typeof fields["signature"] === "string") opaque.signature = fields["signature"];
      if (typeof fields["thoughtSignature"] === "string") opaque.signature = fields["thoughtSignature"];
      if (typeof fields["redactedData"] === "string") opaque.redacted = fields["redactedData"];
      if (type === "reasoning-end" && typeof fields["itemId"] === "string") opaque.itemId = fields["itemId"];
      if (type === "reasoning-end" && typeof fields["reasoningEncryptedContent"] === "string") opaque.encrypted = fields["reasoningEncryptedContent"];
    }
    if (delta !== "" || Object.keys(opaque).length > 0) yield { type: "reasoning", text: delta, ...opaque };
  }

  *#call(part: StreamPart): Generator<LlmChunk> {
    const ours = part.providerExecuted !== true;
    if (ours) this.#calls += 1;
    const found = (key: string) => Object.values(part.providerMetadata ?? {}).map((fields) => fields[key]).find((value) => typeof value === "string");
    const [signature, itemId] = [found("thoughtSignature"), found("itemId")];
    yield {
      type: "tool-call", id: part.toolCallId ?? "", name: part.toolName ?? "", args: part.input ?? "",
      ...(typeof signature === "string" ? { thoughtSignature: signature } : {}), ...(typeof itemId === "string" ? { itemId } : {}), ...(ours ? {} : { providerExecuted: true }),
    };
  }

  *#finish(part: StreamPart): Generator<LlmChunk> {
    this.#finished = true;
    if (part.usage !== undefined && part.usage !== null) {
      const apiShape: ApiShape = this.#model.specificationVersion === "v2" ? "ai-sdk.v5" : "ai-sdk.v6";
      // What stands in the log is JSON: members that are not there are left out.
      const raw = JSON.parse(JSON.stringify(part.usage)) as JsonValue;
      const usage: UsageRecord = { apiShape, raw, provider: this.#provider, model: this.#modelId };
      if (this.#id !== undefined) usage.responseId = this.#id;
      yield { type: "usage", usage };
    }
    const said = typeof part.finishReason === "string" ? part.finishReason : part.finishReason?.unified;
    if (said === "content-filter") throw providerError("content_filter");
    if (said === "error") throw providerError("provider_error");
    const reason = said === "length" ? "max-tokens" : this.#calls > 0 ? "tool-calls" : "stop";
    yield { type: "finish", reason, ...(this.#id === undefined ? {} : { responseId: this.#id }) };
  }

  *end(): Generator<LlmChunk> {
    if (!this.#finished) throw providerError("cut_off");
  }
}
