// What the page remembers about models and looks. Keys stay in memory unless the person asks to keep them.
import { computed, signal } from "@preact/signals";

export type ProviderKind = "openai-compatible" | "anthropic" | "gemini";
export interface Endpoint {
  provider: ProviderKind;
  baseUrl: string;
  model: string;
  keepKey: boolean;
  /** A key was given, whether it was kept or not. */
  usesKey?: boolean;
}
export type Theme = "system" | "light" | "dark";
export interface Settings {
  theme: Theme;
  model: string;
  system: string;
  approval: "never" | "policy";
  maxCostUsd: string;
  endpoints: Endpoint[];
}

export const DEMO = "scripted/demo";
export const PROVIDERS: ReadonlyArray<{ kind: ProviderKind; label: string; baseUrl: string; hint: string; keyHint: string }> = [
  {
    kind: "openai-compatible",
    label: "OpenAI-compatible",
    baseUrl: "",
    hint: "Any server that speaks chat completions: OpenAI, OpenRouter, Ollama, vLLM, LM Studio.",
    keyHint: "Leave empty for a server that asks for none.",
  },
  { kind: "anthropic", label: "Anthropic", baseUrl: "https://api.anthropic.com/v1", hint: "The Messages API, called straight from this page.", keyHint: "Begins with sk-ant-." },
  { kind: "gemini", label: "Google Gemini", baseUrl: "https://generativelanguage.googleapis.com/v1beta", hint: "The Gemini API, called straight from this page.", keyHint: "From Google AI Studio." },
];

export const settingsOpen = signal(false);
const SETTINGS_KEY = "sessionlog.page.settings";
const KEYS_KEY = "sessionlog.page.keys";

const initial: Settings = { theme: "system", model: DEMO, system: "", approval: "never", maxCostUsd: "", endpoints: [] };

/** Storage may be blocked; the page then remembers nothing and says so elsewhere. */
export function remember(key: string, value: unknown): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Preferences are a comfort; losing them is no error.
  }
}

export function recall<T>(key: string): T | null {
  try {
    const text = localStorage.getItem(key);
    return text === null ? null : (JSON.parse(text) as T);
  } catch {
    return null;
  }
}

export const settings = signal<Settings>({ ...initial, ...recall<Partial<Settings>>(SETTINGS_KEY) });
const keys = new Map<ProviderKind, string>(Object.entries(recall<Record<string, string>>(KEYS_KEY) ?? {}) as Array<[ProviderKind, string]>);

export function changeSettings(change: Partial<Settings>): void {
  settings.value = { ...settings.value, ...change };
  remember(SETTINGS_KEY, settings.value);
}

export function keyOf(provider: ProviderKind): string {
  return keys.get(provider) ?? "";
}

export function saveEndpoint(endpoint: Endpoint, key: string): void {
  const endpoints = settings.value.endpoints.filter((other) => other.provider !== endpoint.provider);
  endpoint = { ...endpoint, usesKey: key !== "" };
  if (key === "") keys.delete(endpoint.provider);
  else keys.set(endpoint.provider, key);
  changeSettings({ endpoints: endpoint.model === "" ? endpoints : [...endpoints, endpoint] });
  const kept = settings.value.endpoints.filter((each) => each.keepKey && keys.has(each.provider)).map((each) => [each.provider, keys.get(each.provider)]);
  remember(KEYS_KEY, kept.length > 0 ? Object.fromEntries(kept) : null);
}

export interface ModelChoice {
  value: string;
  label: string;
}
export const models = computed<ModelChoice[]>(() => [
  { value: DEMO, label: "scripted/demo (offline)" },
  ...settings.value.endpoints.map(({ provider, model }) => ({ value: `${provider}/${model}`, label: `${provider}/${model}` })),
]);
/** The model in use; one whose endpoint was removed falls back to the offline one. */
export const model = computed(() => (models.value.some(({ value }) => value === settings.value.model) ? settings.value.model : DEMO));

/** Options for the adapter of a model: where it is and the key, which goes nowhere else. */
export function providerOptions(value: string): { [key: string]: unknown } {
  const provider = value.slice(0, value.indexOf("/"));
  const endpoint = settings.value.endpoints.find((each) => each.provider === provider);
  if (!endpoint) return {};
  const options: { [key: string]: unknown } = {};
  if (endpoint.baseUrl !== "") options.baseUrl = withVersion(endpoint);
  const key = keyOf(endpoint.provider);
  if (key !== "") options.apiKey = key;
  return options;
}

/** A base URL may be given as the provider's own clients take it, without the version of the API. */
function withVersion({ provider, baseUrl }: Endpoint): string {
  const version = { anthropic: "/v1", gemini: "/v1beta", "openai-compatible": "" }[provider];
  const url = baseUrl.replace(/\/+$/, "");
  return /^https?:\/\/[^/]+$/.test(url) ? url + version : url;
}

/** True when the model's key stayed in memory only and went with the page that it was given to. */
export function keyIsGone(value: string): boolean {
  const endpoint = settings.value.endpoints.find((each) => each.provider === value.slice(0, value.indexOf("/")));
  return endpoint?.usesKey === true && keyOf(endpoint.provider) === "";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
