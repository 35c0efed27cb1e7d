// The list of sessions: search over titles and text, rename, archive, delete.
import { computed, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { SessionSummary } from "sessionlog";
import { searchSessions } from "../model/search.ts";
import { bytesText } from "../model/figures.ts";
import { attempt } from "../model/messages.ts";
import {
  archiveSession, closeCurrent, current, deleteSession, hiddenIds, newSession, openSession, renameSession, sessions, showArchived, storage,
} from "../model/workspace.ts";
import { Icon } from "./icon.tsx";
import { Menu } from "./menu.tsx";
import { view } from "./layout.ts";

const query = signal("");
const found = signal<ReadonlyMap<string, string> | null>(null);

const visible = computed(() =>
  sessions.value.filter(({ id, archived }) => !hiddenIds.value.has(id) && (found.value ? found.value.has(id) : showArchived.value || !archived)),
);

function useSearch(): void {
  useEffect(() => {
    const wanted = query.value.trim();
    if (wanted === "") {
      found.value = null;
      return;
    }
    let stale = false;
    const timer = setTimeout(() => attempt(async () => {
      const result = await searchSessions(wanted, sessions.value);
      if (!stale) found.value = result;
    }), 120);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [query.value, sessions.value]);
}

export function Sessions() {
  useSearch();
  const list = visible.value;
  return (
    <nav class="sessions" aria-label="Sessions">
      <div class="sessions-head">
        <button type="button" class="primary wide" onClick={() => attempt(async () => { await newSession(); view.value = "chat"; })}>
          <Icon name="plus" /> New session
        </button>
        <label class="search">
          <Icon name="search" size={14} />
          <input type="search" aria-label="Search titles and text" placeholder="Search" value={query.value} onInput={(event) => (query.value = event.currentTarget.value)} />
        </label>
      </div>
      <ul class="session-list">
        {list.map((summary) => <Entry key={summary.id} summary={summary} hit={found.value?.get(summary.id)} />)}
        {list.length === 0 && <li class="empty">{query.value.trim() !== "" ? "Nothing found." : "Your sessions appear here."}</li>}
      </ul>
      <footer>
        <label><input type="checkbox" checked={showArchived.value} onChange={(event) => (showArchived.value = event.currentTarget.checked)} /> Archived too</label>
        {storage.value?.usageBytes !== undefined && <span title="Storage used by this site">{bytesText(storage.value.usageBytes)} used</span>}
      </footer>
    </nav>
  );
}

function Entry({ summary, hit }: { summary: SessionSummary; hit: string | undefined }) {
  const [renaming, setRenaming] = useState(false);
  const isCurrent = current.value?.session.id === summary.id;
  const title = summary.title || summary.preview || "New session";
  const open = (event: Event) => { event.preventDefault(); attempt(async () => { await openSession(summary.id); view.value = "chat"; }); };
  if (renaming) return <li class="session"><Rename id={summary.id} title={title} onDone={() => setRenaming(false)} /></li>;
  return (
    <li class={isCurrent ? "session current" : "session"}>
      <a class="session-open" href={`#/s/${summary.id}`} aria-current={isCurrent ? "page" : undefined} onClick={open} onDblClick={() => setRenaming(true)}>
        <span class="session-title" id={`title-${summary.id}`}>{title}</span>
        <span class="session-meta">
          {summary.archived && <span class="chip">archived</span>}
          {summary.parentId && <Icon name="fork" size={12} />}
          {hit ? <span class="hit">{hit}</span> : <span>{when(summary.updatedAt)}</span>}
        </span>
      </a>
      <Menu
        label="More"
        describedBy={`title-${summary.id}`}
        items={[
          { label: "Rename", icon: "pencil", run: () => setRenaming(true) },
          summary.archived
            ? { label: "Unarchive", icon: "unarchive", run: () => attempt(() => archiveSession(summary.id, false)) }
            : { label: "Archive", icon: "archive", run: () => attempt(async () => { if (isCurrent) closeCurrent(); await archiveSession(summary.id, true); }) },
          { label: "Delete", icon: "trash", danger: true, run: () => deleteSession(summary.id) },
        ]}
      />
    </li>
  );
}

function Rename({ id, title, onDone }: { id: string; title: string; onDone: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), []);
  const save = () => {
    const next = input.current?.value.trim() ?? "";
    onDone();
    if (next !== "" && next !== title) attempt(() => renameSession(id, next));
  };
  return (
    <input
      ref={input}
      class="rename"
      aria-label="Session title"
      defaultValue={title}
      maxLength={200}
      onBlur={save}
      onKeyDown={(event) => {
        if (event.key === "Enter") save();
        if (event.key === "Escape") onDone();
      }}
    />
  );
}

const DAY = 86_400_000;
function when(at: number): string {
  const date = new Date(at);
  const age = Date.now() - at;
  if (age < 60_000) return "just now";
  if (age < DAY && date.getDate() === new Date().getDate()) return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (age < 7 * DAY) return date.toLocaleDateString([], { weekday: "long" });
  return date.toLocaleDateString();
}
