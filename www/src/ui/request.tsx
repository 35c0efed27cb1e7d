// The request a model would get right now, for any target, and what had to be repaired for it.
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { DerivedRequest, Target } from "sessionlog";
import { explain } from "../model/messages.ts";
import { type Open } from "../model/workspace.ts";
import { Plain } from "./markdown.tsx";

const TARGETS: Target[] = ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"];
const target = signal<Target>("openai-chat");

export function RequestView({ open }: { open: Open }) {
  const events = open.events.value;
  const now = target.value;
  const result = useMemo((): { request: DerivedRequest } | { error: string } => {
    try {
      return { request: open.session.deriveRequest({ target: now }) };
    } catch (error) {
      return { error: explain(error).text };
    }
  }, [events, now]);
  return (
    <div class="request">
      <div class="filters">
        <select aria-label="Request for" value={now} onChange={(event) => (target.value = event.currentTarget.value as Target)}>
          {TARGETS.map((each) => <option key={each}>{each}</option>)}
        </select>
        {"request" in result && <span class="hint">{result.request.messages.length} messages, digest {result.request.digest.slice(0, 12)}</span>}
      </div>
      {"error" in result && <p class="empty">{result.error}</p>}
      {"request" in result && (
        <div class="scroller" tabIndex={0} role="group" aria-label="Derived request">
          <h3>Repairs</h3>
          {result.request.repairs.length === 0
            ? <p class="hint">None were needed.</p>
            : (
              <ul class="repairs">
                {result.request.repairs.map((repair, index) => (
                  <li key={index}><code>{repair.code}</code> {repair.message}{repair.seq !== undefined ? ` (event ${repair.seq})` : ""}</li>
                ))}
              </ul>
            )}
          <h3>Body</h3>
          <pre><Plain text={JSON.stringify({ ...(result.request.system !== undefined ? { system: result.request.system } : {}), messages: result.request.messages }, null, 2)} /></pre>
        </div>
      )}
    </div>
  );
}
