// Verdicts given in a tab that follows, on their way to the tab that writes.

export interface Verdict { callId: string; verdict: "approved" | "denied"; reason?: string }

function open(shared: string | null, sessionId: string): BroadcastChannel | null {
  return shared === null || typeof BroadcastChannel !== "function" ? null : new BroadcastChannel(`${shared}/${sessionId}/verdicts`);
}

/** Sends a verdict to whoever waits for it; says whether there is a way to send it. */
export function sendVerdict(shared: string | null, sessionId: string, verdict: Verdict): boolean {
  const channel = open(shared, sessionId);
  if (channel === null) return false;
  channel.postMessage(verdict);
  // What was posted is on its way.
  channel.close();
  return true;
}

/** Hears verdicts of other tabs until the end that it returns is called. */
export function hearVerdicts(shared: string | null, sessionId: string, hear: (verdict: Verdict) => void): () => void {
  const channel = open(shared, sessionId);
  if (channel === null) return () => {};
  (channel as unknown as { unref?: () => void }).unref?.();
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    const { callId, verdict, reason } = (data ?? {}) as { [key: string]: unknown };
    if (typeof callId !== "string" || (verdict !== "approved" && verdict !== "denied")) return;
    hear({ callId, verdict, ...(typeof reason === "string" ? { reason } : {}) });
  };
  return () => channel.close();
}
