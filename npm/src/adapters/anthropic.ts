// Anthropic's messages API.
import type { JsonValue, LlmAdapter, LlmChunk, LlmRequest, UsageRecord } from "../../types/index.js";
import { SessionLogError } from "../errors.js";
import { providerError, streamError } from "./failure.js";
import { httpOptions, parsePayload, postForEvents, secretsOf } from "./http.js";
import type { AdapterInside, StreamContext } from "./index.js";

const DEFAULT_MAX_TOKENS = 8_192;

type Members = { [key: string]: JsonValue };

/** Options: `apiKey`, `baseUrl`, `maxTokens`, `thinking` (the API's own object), `headers`, `body`, `fetch`. */
export function anthropic(model: string | null, options: { [key: string]: unknown }): LlmAdapter & AdapterInside {
  if (model === null || model === "") throw new SessionLogError("invalid_argument", "anthropic needs a model");
  const http = httpOptions(options, "https://api.anthropic.com/v1");
  const secrets = secretsOf(http);
  const { maxTokens, thinking } = options;
  return {
    provider: "anthropic", model, target: "anthropic",
    secrets: () => secrets,
    async *stream(request, { signal, used }: StreamContext) {
      const key: { [name: string]: string } = http.apiKey === undefined ? {} : { "x-api-key": http.apiKey };
      // A page may call it only when it says that it knows that its user holds the key.
      const page: { [name: string]: string } = "document" in globalThis ? { "anthropic-dangerous-direct-browser-access": "true" } : {};
      const events = postForEvents({
        url: `${http.baseUrl}/messages`,
        headers: { "anthropic-version": "2023-06-01", ...key, ...page, ...http.headers },
        body: {
          ...bodyOf(request, model), max_tokens: typeof maxTokens === "number" ? maxTokens : DEFAULT_MAX_TOKENS,
          ...(thinking === undefined ? {} : { thinking }), ...http.body,
        },
        secrets, signal, fetch: http.fetch,
      });
      const answer = new Answer(model, used);
      for await (const { data } of events) {
        const payload = parsePayload(data);
        if (payload["type"] === "error") throw streamError(payload["error"], secrets);
        yield* answer.take(payload);
        if (answer.done) return;
      }
      yield* answer.cut();
    },
  };
}

function bodyOf({ request, tools }: LlmRequest, model: string): { [key: string]: unknown } {
  return {
    model, messages: request.messages, stream: true,
    ...(request.system === undefined || request.system === "" ? {} : { system: request.system }),
    ...(tools.length === 0 ? {} : { tools: tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })) }),
  };
}

class Answer {
  done = false;
  #model: string;
  #id: string | undefined;
  /** The call that a block is, by the block's index. */
  #calls = new Map<number, { id: string; name: string; streamed: boolean; whole: string; server: boolean }>();
  #usage: Members | null = null;
  #stop: string | null = null;
  #used: StreamContext["used"];

  constructor(model: string, used: StreamContext["used"]) {
    this.#model = model;
    this.#used = used;
  }

  *take(payload: { [key: string]: unknown }): Generator<LlmChunk> {
    const at = payload["index"] as number;
    switch (payload["type"]) {
      case "message_start":
        this.#begin(payload["message"] as Members);
        return this.#tell();
      case "content_block_start": return yield* this.#block(at, payload["content_block"] as Members);
      case "content_block_delta": return yield* this.#delta(at, payload["delta"] as Members);
      case "content_block_stop": return yield* this.#close(at);
      case "message_delta": return this.#end(payload);
      case "message_stop": return yield* this.#finish();
      // `ping`, and what a later version may bring.
    }
  }

  #begin(message: Members): void {
    if (typeof message["id"] === "string") this.#id = message["id"];
    if (typeof message["model"] === "string") this.#model = message["model"];
    this.#count(message["usage"]);
  }

  *#block(at: number, block: Members): Generator<LlmChunk> {
    switch (block["type"]) {
      case "text": if (block["text"] !== "") yield { type: "text", text: String(block["text"] ?? "") }; return;
      case "thinking": if (block["thinking"]) yield { type: "reasoning", text: String(block["thinking"]) }; return;
      case "redacted_thinking": yield { type: "reasoning", text: "", redacted: String(block["data"]) }; return;
      case "tool_use":
      case "server_tool_use": {
        const whole = JSON.stringify(block["input"] ?? {});
        const server = block["type"] === "server_tool_use";
        this.#calls.set(at, { id: String(block["id"]), name: String(block["name"]), streamed: false, whole, server });
      }
    }
  }

  *#delta(at: number, delta: Members): Generator<LlmChunk> {
    switch (delta["type"]) {
      case "text_delta": yield { type: "text", text: String(delta["text"]) }; return;
      case "thinking_delta": yield { type: "reasoning", text: String(delta["thinking"]) }; return;
      case "signature_delta": yield { type: "reasoning", text: "", signature: String(delta["signature"]) }; return;
      case "input_json_delta": {
        const call = this.#calls.get(at);
        const piece = String(delta["partial_json"]);
        if (call === undefined || call.server || piece === "") return;
        yield { type: "tool-args", id: call.id, ...(call.streamed ? {} : { name: call.name }), delta: piece };
        call.streamed = true;
      }
    }
  }

  *#close(at: number): Generator<LlmChunk> {
    const call = this.#calls.get(at);
    if (call === undefined || call.streamed || call.server) return;
    yield { type: "tool-call", id: call.id, name: call.name, args: call.whole };
    call.streamed = true;
  }

  #end(payload: { [key: string]: unknown }): void {
    const stop = (payload["delta"] as Members | undefined)?.["stop_reason"];
    if (typeof stop === "string") this.#stop = stop;
    this.#count(payload["usage"] as JsonValue | undefined);
  }

  /** Output: the last one said. Input: as a group, when the later one says anything. */
  #count(usage: JsonValue | undefined): void {
    if (typeof usage !== "object" || usage === null || Array.isArray(usage)) return;
    const inputs = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    const hasInput = inputs.some((key) => Number(usage[key] ?? 0) !== 0);
    const later = Object.entries(usage).filter(([key, value]) => value !== null && (hasInput || (!inputs.includes(key) && key !== "cache_creation")));
    this.#usage = { ...this.#usage, ...Object.fromEntries(later) };
  }

  /** Whoever stops now has used this much. */
  #tell(): void {
    for (const chunk of this.#counted(true)) if (chunk.type === "usage") this.#used?.(chunk.usage);
  }

  *#counted(partial: boolean): Generator<LlmChunk> {
    if (this.#usage === null) return;
    const usage: UsageRecord = { apiShape: "anthropic.messages", raw: this.#usage, provider: "anthropic", model: this.#model };
    if (this.#id !== undefined) usage.responseId = this.#id;
    if (typeof this.#usage["service_tier"] === "string") usage.tier = this.#usage["service_tier"];
    if (partial) usage.partial = true;
    yield { type: "usage", usage };
  }

  *#finish(): Generator<LlmChunk> {
    this.done = true;
    yield* this.#counted(false);
    if (this.#stop === "refusal") throw providerError("content_filter", "the model refused");
    const calls = [...this.#calls.values()].some((call) => !call.server);
    const cut = this.#stop === "max_tokens" || this.#stop === "model_context_window_exceeded";
    const reason = cut ? "max-tokens" : calls && this.#stop !== "stop_sequence" ? "tool-calls" : "stop";
    yield { type: "finish", reason, ...(this.#id === undefined ? {} : { responseId: this.#id }) };
  }

  /** The stream ended before the message did. What was used so far is still told. */
  *cut(): Generator<LlmChunk> {
    if (this.#stop !== null) return yield* this.#finish();
    yield* this.#counted(true);
    throw providerError("cut_off");
  }
}
