// Where sessions and files are kept: in this browser, or on a host that several browsers share.
import type { StorageSpec } from "sessionlog";
import { RemoteStore } from "sessionlog/remote";
import { recall, remember } from "./settings.ts";

export interface Host { url: string; token: string }

const HOST_KEY = "sessionlog.page.host";

export function host(): Host | null {
  const known = recall<Partial<Host>>(HOST_KEY);
  return typeof known?.url === "string" && typeof known.token === "string" ? { url: known.url, token: known.token } : null;
}

/** Takes effect when the page is loaded again. */
export function setHost(next: Host | null): void {
  remember(HOST_KEY, next);
}

export function storageNamed(name: string): StorageSpec {
  const chosen = host();
  return chosen === null ? { kind: "indexeddb", name } : new RemoteStore(chosen).storage;
}
