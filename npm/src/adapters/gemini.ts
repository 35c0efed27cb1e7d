// Google's generateContent API.
import type { JsonValue, LlmAdapter, LlmChunk, LlmRequest, UsageRecord } from "../../types/index.js";
import { SessionLogError } from "../errors.js";
import { providerError, streamError } from "./failure.js";
import { httpOptions, parsePayload, postForEvents, secretsOf } from "./http.js";
import type { AdapterInside, StreamContext } from "./index.js";

interface Part {
  text?: string;
  thought?: boolean;
  thoughtSignature?: string;
  functionCall?: { id?: string; name?: string; args?: JsonValue };
}

/** Options: `apiKey`, `baseUrl`, `generationConfig`, `headers`, `body`, `fetch`. */
export function gemini(model: string | null, options: { [key: string]: unknown }): LlmAdapter & AdapterInside {
  if (model === null || model === "") throw new SessionLogError("invalid_argument", "gemini needs a model");
  const http = httpOptions(options, "https://generativelanguage.googleapis.com/v1beta");
  const secrets = secretsOf(http);
  const { generationConfig } = options;
  return {
    provider: "gemini", model, target: "gemini",
    secrets: () => secrets,
    async *stream(request, { signal, used }: StreamContext) {
      // In a header: addresses end up in logs.
      const key: { [name: string]: string } = http.apiKey === undefined ? {} : { "x-goog-api-key": http.apiKey };
      const events = postForEvents({
        url: `${http.baseUrl}/models/${encodeURIComponent(model)}:streamGenerateContent?alt=sse`,
        headers: { ...key, ...http.headers },
        body: { ...bodyOf(request), ...(generationConfig === undefined ? {} : { generationConfig }), ...http.body },
        secrets, signal, fetch: http.fetch,
      });
      const answer = new Answer(model, used);
      for await (const { data } of events) {
        const payload = parsePayload(data);
        if (payload["error"] !== undefined) throw streamError(payload["error"], secrets);
        yield* answer.take(payload);
      }
      yield* answer.end();
    },
  };
}

function bodyOf({ request, tools }: LlmRequest): { [key: string]: unknown } {
  const { system } = request;
  const instruction = typeof system === "string" ? { parts: [{ text: system }] } : system;
  return {
    contents: request.messages,
    ...(system === undefined || system === "" ? {} : { systemInstruction: instruction }),
    ...(tools.length === 0 ? {} : { tools: [{ functionDeclarations: tools.map(({ name, description, parameters }) => ({ name, description, parametersJsonSchema: parameters })) }] }),
  };
}

const REFUSED = new Set(["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"]);

class Answer {
  #model: string;
  #id: string | undefined;
  #usage: JsonValue | undefined;
  #finish: string | undefined;
  #calls = 0;
  #used: StreamContext["used"];

  constructor(model: string, used: StreamContext["used"]) {
    this.#model = model;
    this.#used = used;
  }

  *take(payload: { [key: string]: unknown }): Generator<LlmChunk> {
    if (typeof payload["responseId"] === "string") this.#id = payload["responseId"];
    if (typeof payload["modelVersion"] === "string") this.#model = payload["modelVersion"];
    this.#usage = (payload["usageMetadata"] as JsonValue | undefined) ?? this.#usage;
    const blocked = (payload["promptFeedback"] as { blockReason?: string } | undefined)?.blockReason;
    if (blocked !== undefined) throw providerError("content_filter");
    const candidate = (payload["candidates"] as Array<{ content?: { parts?: Part[] }; finishReason?: string }> | undefined)?.[0];
    if (candidate === undefined) return;
    for (const part of candidate.content?.parts ?? []) yield* this.#part(part);
    if (candidate.finishReason !== undefined) this.#finish = candidate.finishReason;
    // Whoever stops now has used this much.
    if (payload["usageMetadata"] !== undefined) for (const chunk of this.#counted(true)) if (chunk.type === "usage") this.#used?.(chunk.usage);
  }

  *#counted(partial: boolean): Generator<LlmChunk> {
    if (this.#usage === undefined) return;
    const usage: UsageRecord = { apiShape: "gemini.generate", raw: this.#usage, provider: "gemini", model: this.#model };
    if (this.#id !== undefined) usage.responseId = this.#id;
    if (partial) usage.partial = true;
    yield { type: "usage", usage };
  }

  *#part(part: Part): Generator<LlmChunk> {
    const { text, thought, thoughtSignature, functionCall } = part;
    if (functionCall !== undefined) {
      const id = functionCall.id ?? `call_${this.#id ?? "gemini"}_${this.#calls}`.replace(/[^\w-]/g, "_");
      this.#calls += 1;
      const args = JSON.stringify(functionCall.args ?? {});
      return yield { type: "tool-call", id, name: functionCall.name ?? "", args, ...(thoughtSignature === undefined ? {} : { thoughtSignature }) };
    }
    if (thought === true) {
      return yield { type: "reasoning", text: text ?? "", ...(thoughtSignature === undefined ? {} : { signature: thoughtSignature }) };
    }
    if (thoughtSignature !== undefined) yield { type: "text", text: text ?? "", thoughtSignature };
    else if (text !== undefined && text !== "") yield { type: "text", text };
  }

  *end(): Generator<LlmChunk> {
    yield* this.#counted(this.#finish === undefined);
    if (this.#finish === undefined) throw providerError("cut_off");
    if (REFUSED.has(this.#finish)) throw providerError("content_filter");
    if (this.#finish === "MALFORMED_FUNCTION_CALL" || this.#finish === "UNEXPECTED_TOOL_CALL") throw providerError("bad_stream", "the model's call was malformed");
    const reason = this.#finish === "MAX_TOKENS" ? "max-tokens" : this.#calls > 0 ? "tool-calls" : "stop";
    yield { type: "finish", reason, ...(this.#id === undefined ? {} : { responseId: this.#id }) };
  }
}
