// Sessions on a host instead of in this browser.
import { useState } from "preact/hooks";
import { host, setHost } from "../model/host.ts";
import { attempt } from "../model/messages.ts";
import { store } from "../model/workspace.ts";

export function HostSettings() {
  const [draft, setDraft] = useState(() => host() ?? { url: "", token: "" });
  const [problem, setProblem] = useState("");
  const move = () => {
    const url = draft.url.trim();
    if (url !== "" && !/^https:\/\/|^http:\/\/(127\.0\.0\.1|localhost)(:|\/|$)/.test(url)) {
      setProblem("The address of a host begins with https://.");
      return;
    }
    attempt(async () => {
      await store().flush();
      setHost(url === "" ? null : { url, token: draft.token.trim() });
      location.hash = "";
      location.reload();
    });
  };
  return (
    <section>
      <h3>Where sessions are kept</h3>
      <label>
        <span>Host</span>
        <input type="url" aria-label="Host" placeholder="this browser" value={draft.url} onInput={(event) => setDraft({ ...draft, url: event.currentTarget.value })} />
      </label>
      <label>
        <span>Token</span>
        <input type="password" aria-label="Host token" autocomplete="off" spellcheck={false} value={draft.token} onInput={(event) => setDraft({ ...draft, token: event.currentTarget.value })} />
      </label>
      <p class="hint">On a host several browsers share sessions and see each other's live. What is in this browser stays here. The token is kept in this browser, readable by anyone who uses it.</p>
      {problem !== "" && <p class="problem" role="alert">{problem}</p>}
      <button type="button" onClick={move}>Use this storage</button>
    </section>
  );
}
