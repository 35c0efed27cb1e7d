// Models, keys, looks, and what a run may do without asking.
import { useState } from "preact/hooks";
import { changeSettings, keyOf, PROVIDERS, saveEndpoint, settings, settingsOpen, type Endpoint, type ProviderKind, type Theme } from "../model/settings.ts";
import { attempt, toast } from "../model/messages.ts";
import { refreshStorage, storage, store } from "../model/workspace.ts";
import { Dialog } from "./dialog.tsx";
import { HostSettings } from "./host.tsx";

function starting(provider: ProviderKind): Endpoint & { key: string } {
  const known = settings.value.endpoints.find((each) => each.provider === provider);
  const { baseUrl } = PROVIDERS.find(({ kind }) => kind === provider) as (typeof PROVIDERS)[number];
  return { provider, baseUrl: known?.baseUrl ?? baseUrl, model: known?.model ?? "", keepKey: known?.keepKey ?? false, key: keyOf(provider) };
}

export function SettingsDialog() {
  const [kind, setKind] = useState<ProviderKind>(settings.value.endpoints.find(({ provider, model }) => `${provider}/${model}` === settings.value.model)?.provider ?? settings.value.endpoints[0]?.provider ?? "openai-compatible");
  const [draft, setDraft] = useState(() => starting(kind));
  const [problem, setProblem] = useState("");
  const provider = PROVIDERS.find((each) => each.kind === kind) as (typeof PROVIDERS)[number];
  const close = () => (settingsOpen.value = false);
  const save = (event: Event) => {
    event.preventDefault();
    if (draft.model.trim() !== "" && !/^https?:\/\//.test(draft.baseUrl.trim())) {
      setProblem("The base URL begins with https:// or http://.");
      return;
    }
    const { key, ...endpoint } = { ...draft, baseUrl: draft.baseUrl.trim(), model: draft.model.trim() };
    const existed = settings.value.endpoints.some((each) => each.provider === kind);
    if (endpoint.model !== "" || existed) saveEndpoint(endpoint, key.trim());
    if (endpoint.model !== "") changeSettings({ model: `${endpoint.provider}/${endpoint.model}` });
    close();
  };
  return (
    <Dialog title="Settings" onClose={close}>
      <form onSubmit={save} class="settings">
        <section>
          <h3>Model endpoint</h3>
          <label>
            <span>Provider</span>
            <select aria-label="Provider" value={kind} onChange={(event) => { const next = event.currentTarget.value as ProviderKind; setKind(next); setDraft(starting(next)); setProblem(""); }}>
              {PROVIDERS.map(({ kind: each, label }) => <option key={each} value={each}>{label}</option>)}
            </select>
          </label>
          <p class="hint">{provider.hint}</p>
          <label>
            <span>Base URL</span>
            <input type="url" aria-label="Base URL" placeholder="https://api.example.com/v1" value={draft.baseUrl} onInput={(event) => setDraft({ ...draft, baseUrl: event.currentTarget.value })} />
          </label>
          <label>
            <span>Model name</span>
            <input type="text" aria-label="Model name" autocomplete="off" spellcheck={false} value={draft.model} onInput={(event) => setDraft({ ...draft, model: event.currentTarget.value })} />
          </label>
          <label>
            <span>API key</span>
            <input type="password" aria-label="API key" autocomplete="off" spellcheck={false} value={draft.key} onInput={(event) => setDraft({ ...draft, key: event.currentTarget.value })} />
          </label>
          <p class="hint">{provider.keyHint} The key goes only to this base URL. It stays in memory until the page is closed and is never written to the log.</p>
          <label class="check">
            <input type="checkbox" checked={draft.keepKey} onChange={(event) => setDraft({ ...draft, keepKey: event.currentTarget.checked })} />
            <span>Keep the key in this browser, readable by anyone who uses it</span>
          </label>
          {problem !== "" && <p class="problem" role="alert">{problem}</p>}
        </section>
        <section>
          <h3>Runs</h3>
          <label class="check">
            <input type="checkbox" checked={settings.value.approval === "policy"} onChange={(event) => changeSettings({ approval: event.currentTarget.checked ? "policy" : "never" })} />
            <span>Ask before the agent changes a file</span>
          </label>
          <label>
            <span>Cost limit per run, in dollars</span>
            <input type="text" inputMode="decimal" aria-label="Cost limit per run" placeholder="none" pattern="\d*(\.\d+)?" value={settings.value.maxCostUsd} onInput={(event) => changeSettings({ maxCostUsd: event.currentTarget.value })} />
          </label>
          <label>
            <span>Instructions for the model</span>
            <textarea aria-label="Instructions" rows={3} value={settings.value.system} onInput={(event) => changeSettings({ system: event.currentTarget.value })} />
          </label>
        </section>
        <HostSettings />
        <section>
          <h3>This browser</h3>
          <label>
            <span>Colours</span>
            <select aria-label="Colours" value={settings.value.theme} onChange={(event) => changeSettings({ theme: event.currentTarget.value as Theme })}>
              <option value="system">As the system</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </select>
          </label>
          {storage.value?.persisted === false && (
            <p class="hint">
              The browser may clear this site's data when space runs low.{" "}
              <button type="button" class="link" onClick={() => attempt(async () => { const kept = await store().requestPersistence(); await refreshStorage(); toast(kept ? "The browser will keep it." : "The browser did not agree to keep it."); })}>Ask it to keep the data</button>
            </p>
          )}
        </section>
        <footer>
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="primary">Save settings</button>
        </footer>
      </form>
    </Dialog>
  );
}
