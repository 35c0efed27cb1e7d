// OpenAI's chat completions API, as it and many others speak it.
import type { ApiShape, JsonValue, LlmAdapter, LlmChunk, LlmRequest } from "../../types/index.js";
import { SessionLogError } from "../errors.js";
import { providerError, streamError } from "./failure.js";
import { httpOptions, parsePayload, postForEvents, secretsOf } from "./http.js";
import type { AdapterInside, StreamContext } from "./index.js";

interface Delta {
  content?: string | null;
  reasoning_content?: string | null;
  reasoning?: string | null;
  tool_calls?: Array<{ index?: number; id?: string | null; function?: { name?: string | null; arguments?: string | JsonValue | null } }> | null;
}
interface Choice {
  delta?: Delta | null;
  message?: Delta | null;
  finish_reason?: string | null;
  usage?: JsonValue;
}

/**
 * Options: `baseUrl` (default OpenAI's), `apiKey`, `headers`, `body` (more members of the request), `apiShape` of the
 * usage (default `openai.chat`), `provider` for prices (default guessed from nothing: `openai-compatible`), `fetch`.
 */
export function openaiCompatible(model: string | null, options: { [key: string]: unknown }): LlmAdapter & AdapterInside {
  if (model === null || model === "") throw new SessionLogError("invalid_argument", "openai-compatible needs a model");
  const http = httpOptions(options, "https://api.openai.com/v1");
  const secrets = secretsOf(http);
  const shape = (typeof options["apiShape"] === "string" ? options["apiShape"] : "openai.chat") as ApiShape;
  const provider = typeof options["provider"] === "string" ? options["provider"] : "openai-compatible";
  return {
    provider, model, target: "openai-chat",
    secrets: () => secrets,
    async *stream(request, { signal, used }: StreamContext) {
      const authorization: { [name: string]: string } = http.apiKey === undefined ? {} : { authorization: `Bearer ${http.apiKey}` };
      const events = postForEvents({
        url: `${http.baseUrl}/chat/completions`,
        headers: { accept: "text/event-stream", ...authorization, ...http.headers },
        body: { ...bodyOf(request, model), ...http.body },
        secrets, signal, fetch: http.fetch,
      });
      const answer = new Answer(provider, model, shape, used);
      for await (const { data } of events) {
        if (data.trim() === "[DONE]") break;
        const payload = parsePayload(data);
        if (payload["error"] !== undefined && payload["error"] !== null) throw streamError(payload["error"], secrets);
        yield* answer.take(payload);
      }
      yield* answer.end();
    },
  };
}

function bodyOf({ request, tools }: LlmRequest, model: string): { [key: string]: unknown } {
  const { system } = request;
  // The derived request may hold the system text apart or as its first message already.
  const first = request.messages[0] as { role?: string } | undefined;
  const apart = typeof system === "string" && system !== "" && first?.role !== "system" && first?.role !== "developer";
  return {
    model,
    messages: apart ? [{ role: "system", content: system }, ...request.messages] : request.messages,
    stream: true,
    stream_options: { include_usage: true },
    ...(tools.length === 0 ? {} : { tools: tools.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } })) }),
  };
}

/** One answer as it streams in: calls are kept apart by their index, the usage may come after the end. */
class Answer {
  #calls = new Map<number, { id: string; name: string }>();
  #finish: string | null = null;
  #usage: JsonValue | undefined;
  #id: string | undefined;
  #model: string | undefined;
  #tier: string | undefined;

  constructor(readonly provider: string, readonly model: string, readonly shape: ApiShape, readonly used: StreamContext["used"]) {}

  *take(payload: { [key: string]: unknown }): Generator<LlmChunk> {
    if (typeof payload["id"] === "string" && payload["id"] !== "") this.#id ??= payload["id"];
    if (typeof payload["model"] === "string" && payload["model"] !== "") this.#model = payload["model"];
    if (typeof payload["service_tier"] === "string") this.#tier = payload["service_tier"];
    const groq = payload["x_groq"] as { usage?: JsonValue } | undefined;
    const choice = (payload["choices"] as Choice[] | undefined)?.[0];
    const usage = (payload["usage"] as JsonValue | undefined) ?? groq?.usage ?? choice?.usage;
    if (usage !== undefined && usage !== null) {
      this.#usage = usage;
      // Some servers count with every piece: whoever stops now has used this much.
      for (const chunk of this.#counted(true)) if (chunk.type === "usage") this.used?.(chunk.usage);
    }
    if (choice === undefined) return;
    const delta = choice.delta ?? choice.message ?? {};
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (typeof reasoning === "string" && reasoning !== "") yield { type: "reasoning", text: reasoning };
    if (typeof delta.content === "string" && delta.content !== "") yield { type: "text", text: delta.content };
    for (const [at, piece] of (delta.tool_calls ?? []).entries()) yield* this.#piece(piece, at);
    if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") this.#finish = choice.finish_reason;
  }

  *#piece(piece: NonNullable<NonNullable<Delta["tool_calls"]>[number]>, at: number): Generator<LlmChunk> {
    const given = piece.index ?? at;
    const name = piece.function?.name ?? "";
    let index = given;
    let known = this.#calls.get(index);
    // Some servers leave out the index or give every call the same: another id is another call.
    if (known !== undefined && piece.id && piece.id !== known.id) {
      const same = [...this.#calls].find(([, call]) => call.id === piece.id);
      index = same?.[0] ?? Math.max(...this.#calls.keys()) + 1;
      known = same?.[1];
    }
    const fresh = known === undefined;
    // An id is needed to send the result back; servers without one get one.
    const call = known ?? { id: piece.id || `call_${this.#id ?? "x"}_${index}`.replace(/[^\w-]/g, "_"), name };
    if (fresh) this.#calls.set(index, call);
    const args = piece.function?.arguments;
    const delta = typeof args === "string" ? args : args === undefined || args === null ? "" : JSON.stringify(args);
    if (fresh || delta !== "") yield { type: "tool-args", id: call.id, ...(fresh ? { name } : {}), delta };
  }

  *#counted(partial: boolean): Generator<LlmChunk> {
    if (this.#usage === undefined) return;
    yield {
      type: "usage",
      usage: {
        apiShape: this.shape, raw: this.#usage, provider: this.provider, model: this.#model ?? this.model,
        ...(this.#id === undefined ? {} : { responseId: this.#id }), ...(this.#tier === undefined ? {} : { tier: this.#tier }), ...(partial ? { partial } : {}),
      },
    };
  }

  *end(): Generator<LlmChunk> {
    yield* this.#counted(this.#finish === null);
    // Without a reason the answer is not whole.
    if (this.#finish === null) throw providerError("cut_off");
    if (this.#finish === "content_filter") throw providerError("content_filter");
    yield { type: "finish", reason: reasonOf(this.#finish, this.#calls.size > 0), ...(this.#id === undefined ? {} : { responseId: this.#id }) };
  }
}

function reasonOf(finish: string, calls: boolean): "stop" | "tool-calls" | "max-tokens" {
  if (finish === "length" || finish === "max_tokens") return "max-tokens";
  // Some servers say `stop` though they call.
  return finish === "tool_calls" || finish === "function_call" || calls ? "tool-calls" : "stop";
}
