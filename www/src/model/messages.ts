// What the page says to the person: alerts that stay until they are dismissed, toasts that pass, words for a screen reader.
import { signal } from "@preact/signals";
import { SessionLogError } from "sessionlog";

export interface Action {
  label: string;
  run: () => void;
}
export interface Alert {
  id: number;
  text: string;
  detail?: string;
  action?: Action;
}
export interface Toast {
  id: number;
  text: string;
  action?: Action;
}

export const alerts = signal<Alert[]>([]);
export const toasts = signal<Toast[]>([]);
export const announcement = signal("");
let sequence = 0;

const EXPLAINED: { [code: string]: string } = {
  quota: "The browser has no room left for this site. Delete a session or files to go on.",
  locked: "Another tab is writing this session.",
  conflict: "Something else changed this session in storage. Load the page again to see it as it is.",
  blocked: "Another tab holds an older version of the storage open. Close it and load this page again.",
  timeout: "The browser's storage did not answer.",
  newer_format: "A newer version of this page wrote what is stored here. Load the page again to update it; nothing was changed.",
  corrupt: "Part of the stored data is damaged. The rest is kept.",
  storage: "The browser's storage reported an error.",
  csp_blocked: "The page's security policy refused to start the module.",
  poisoned: "The module had an internal fault. Load the page again; what was saved is safe.",
  busy: "A task is running already.",
};

/** What went wrong at a model's endpoint, in the package's words, and what can be done about it. */
const ADVICE: { [reason: string]: string } = {
  auth: "Check the API key in Settings.",
  permission: "Check what the key may be used for.",
  not_found: "Check the base URL and the model name in Settings.",
  network: "Check the base URL in Settings, that the server runs, and that it allows requests from this page (CORS).",
  cut_off: "What had arrived is kept. Go on takes it up from here.",
  server_error: "What had arrived is kept. Try again in a moment.",
  rate_limit: "Wait a moment, then go on.",
  overloaded: "Wait a moment, then go on.",
  quota: "Check the account at the provider.",
  context_overflow: "Start a new session, or fork from an earlier message.",
};

export function adviceFor(reason: string | undefined): string | undefined {
  return reason === undefined ? undefined : ADVICE[reason];
}

export function explain(thrown: unknown): Omit<Alert, "id"> {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return thrown instanceof SessionLogError ? explainCode(thrown.code, message) : { text: message };
}

export function explainCode(code: string, message: string): Omit<Alert, "id"> {
  const known = EXPLAINED[code];
  return known ? { text: known, detail: message } : { text: message };
}

export function alarm(thrown: unknown, more: { detail?: string | undefined; action?: Action } = {}): number {
  const { detail, action } = more;
  const alert = { ...(typeof thrown === "string" ? { text: thrown } : explain(thrown)), ...(detail ? { detail } : {}), ...(action ? { action } : {}) };
  const known = alerts.value.find(({ text }) => text === alert.text);
  if (known) return known.id;
  alerts.value = [...alerts.value, { id: ++sequence, ...alert }];
  return sequence;
}

export function dismissAlert(id: number): void {
  alerts.value = alerts.value.filter((alert) => alert.id !== id);
}

export function toast(text: string, action?: Action, forMs = 8000): number {
  const id = ++sequence;
  toasts.value = [...toasts.value.slice(-2), { id, text, ...(action ? { action } : {}) }];
  setTimeout(() => dismissToast(id), forMs);
  return id;
}

export function dismissToast(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** Runs something that may fail on behalf of a click. */
export function attempt(work: () => Promise<unknown> | unknown): void {
  Promise.resolve().then(work).catch(alarm);
}

