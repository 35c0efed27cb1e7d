// Verdicts given in a tab that follows, on their way to the tab that writes.
import type { StorePeers } from "../types/index.js";

export interface Verdict { callId: string; verdict: "approved" | "denied"; reason?: string }

/** Where those who share a store speak to each other. */
export interface Ways { readonly shared: string | null; readonly peers: StorePeers | undefined }

function open(shared: string | null, sessionId: string): BroadcastChannel | null {
  return shared === null || typeof BroadcastChannel !== "function" ? null : new BroadcastChannel(`${shared}/${sessionId}/verdicts`);
}

/** Sends a verdict to whoever waits for it; says whether there is a way to send it. */
export function sendVerdict({ shared, peers }: Ways, sessionId: string, verdict: Verdict): boolean {
  peers?.tell(sessionId, { verdict: { ...verdict } });
  if (peers !== undefined) return true;
  const channel = open(shared, sessionId);
  if (channel === null) return false;
  channel.postMessage(verdict);
  // What was posted is on its way.
  channel.close();
  return true;
}

/** Hears verdicts of other tabs until the end that it returns is called. */
export function hearVerdicts({ shared, peers }: Ways, sessionId: string, hear: (verdict: Verdict) => void): () => void {
  const take = (data: unknown): void => {
    const { callId, verdict, reason } = (data ?? {}) as { [key: string]: unknown };
    if (typeof callId !== "string" || (verdict !== "approved" && verdict !== "denied")) return;
    hear({ callId, verdict, ...(typeof reason === "string" ? { reason } : {}) });
  };
  if (peers !== undefined) return peers.hear((id, word) => id === sessionId && take((word as { verdict?: unknown } | null)?.verdict));
  const channel = open(shared, sessionId);
  if (channel === null) return () => {};
  (channel as unknown as { unref?: () => void }).unref?.();
  channel.onmessage = ({ data }: MessageEvent<unknown>) => take(data);
  return () => channel.close();
}
