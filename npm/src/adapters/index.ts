// Models by name: the built-in providers, and those that an application registers.
import type { LlmAdapter, UsageRecord } from "../../types/index.js";
import { SessionLogError } from "../errors.js";
import { aiSdk } from "./ai-sdk.js";
import { anthropic } from "./anthropic.js";
import { gemini } from "./gemini.js";
import { openaiCompatible } from "./openai-compatible.js";
import { scripted } from "./scripted.js";

type Make = (model: string | null, options: { [key: string]: unknown }) => LlmAdapter;

const BUILT_IN: { [name: string]: Make } = { scripted, "openai-compatible": openaiCompatible, anthropic, gemini, "ai-sdk": aiSdk };
const providers = new Map<string, Make>(Object.entries(BUILT_IN));

/** Makes the adapter of a provider; `options` are the provider's own. */
export function createLlmAdapter(provider: string, model: string | null, options: { [key: string]: unknown } = {}): LlmAdapter {
  const make = providers.get(provider);
  if (make === undefined) throw new SessionLogError("not_found", `there is no provider ${JSON.stringify(String(provider).slice(0, 80))}`, { given: String(provider).slice(0, 80) });
  return make(model, options);
}

/** Adds a provider; one of the same name takes its place, built-in ones stay. */
export function registerProvider(name: string, make: Make): void {
  if (typeof name !== "string" || !/^[^/\s]+$/.test(name)) throw new SessionLogError("invalid_argument", "a provider's name has no slash and no space");
  if (name in BUILT_IN) throw new SessionLogError("already_exists", `${name} is built in`);
  if (typeof make !== "function") throw new SessionLogError("invalid_argument", "a provider is a function that makes an adapter");
  providers.set(name, make);
}

/** What adapters of ours tell the controller beside the contract. */
export interface AdapterInside {
  /** Values that scrubbers must find for as long as the adapter is in use. */
  secrets?(): string[];
}

/** What the controller gives an adapter beside the contract. */
export interface StreamContext {
  signal: AbortSignal;
  /** Says what was used so far, as soon as it is known: an answer that is stopped has no last chunk. */
  used?: (usage: UsageRecord) => void;
}
