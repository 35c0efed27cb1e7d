// The log itself: live, filtered, raw; what was redacted; what each step cost; the request as a model would get it.
import { computed, signal } from "@preact/signals";
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import type { SessionEvent } from "sessionlog";
import { redactionsIn, total, type Redaction } from "../model/redactions.ts";
import { stepCost } from "../model/costs.ts";
import { money } from "../model/figures.ts";
import { current } from "../model/workspace.ts";
import { CostView } from "./cost.tsx";
import { Icon } from "./icon.tsx";
import { Plain } from "./markdown.tsx";
import { RequestView } from "./request.tsx";
import { VirtualList } from "./virtual.tsx";

type Tab = "events" | "redactions" | "cost" | "request";
const TABS: ReadonlyArray<{ id: Tab; label: string }> = [
  { id: "events", label: "Events" },
  { id: "redactions", label: "Redacted" },
  { id: "cost", label: "Spent" },
  { id: "request", label: "Request" },
];
const tab = signal<Tab>("events");
const typeFilter = signal("");
const textFilter = signal("");
const withChunks = signal(false);
const expanded = signal<ReadonlySet<string>>(new Set());

interface Entry {
  event: SessionEvent;
  json: string;
  redactions: Redaction[];
}
const known = new WeakMap<SessionEvent, Entry>();

/** Stored text of an event, written once. */
function entryOf(event: SessionEvent): Entry {
  let entry = known.get(event);
  if (!entry) {
    const json = JSON.stringify(event.data);
    entry = { event, json, redactions: redactionsIn(json) };
    known.set(event, entry);
  }
  return entry;
}

const types = computed(() => [...new Set(current.value?.events.value.map(({ type }) => type as string) ?? [])].sort());
const shown = computed(() => {
  const text = textFilter.value.trim().toLowerCase();
  const type = typeFilter.value;
  return (current.value?.events.value ?? []).filter((event) => {
    if (type !== "" ? event.type !== type : !withChunks.value && event.type === "assistant/chunk") return false;
    return text === "" || event.type.includes(text) || entryOf(event).json.toLowerCase().includes(text);
  });
});

export function EventLog() {
  const now = tab.value;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = TABS.findIndex(({ id }) => id === now);
    const next = TABS[(at + step + TABS.length) % TABS.length] as (typeof TABS)[number];
    tab.value = next.id;
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return (
    <section class="panel log-panel" aria-label="Event log">
      <header class="panel-head">
        <h2>Log</h2>
        <div class="tabs" role="tablist" aria-label="Views of the log" onKeyDown={onKeyDown}>
          {TABS.map(({ id, label }) => (
            <button key={id} id={`tab-${id}`} type="button" role="tab" aria-selected={now === id} aria-controls="log-view" tabIndex={now === id ? 0 : -1} onClick={() => (tab.value = id)}>
              {label}
            </button>
          ))}
        </div>
      </header>
      <div id="log-view" class="log-view" role="tabpanel" aria-labelledby={`tab-${now}`}>
        {!current.value && <p class="empty">Every event of a session is listed here as it happens.</p>}
        {current.value && now === "events" && <Events />}
        {current.value && now === "redactions" && <Redactions />}
        {current.value && now === "cost" && <CostView open={current.value} />}
        {current.value && now === "request" && <RequestView open={current.value} />}
      </div>
    </section>
  );
}

function Events() {
  const open = current.value;
  const list = shown.value;
  return (
    <>
      <div class="filters">
        <select aria-label="Type of event" value={typeFilter.value} onChange={(event) => (typeFilter.value = event.currentTarget.value)}>
          <option value="">All types</option>
          {types.value.map((type) => <option key={type} value={type}>{type}</option>)}
        </select>
        <input type="search" aria-label="Filter by text" placeholder="Filter" value={textFilter.value} onInput={(event) => (textFilter.value = event.currentTarget.value)} />
        <label title="Pieces of answers as they streamed in"><input type="checkbox" checked={withChunks.value} onChange={(event) => (withChunks.value = event.currentTarget.checked)} /> Chunks</label>
      </div>
      <VirtualList
        key={`${open?.session.id}`}
        class="events"
        role="list"
        aria-label="Events"
        items={list}
        keyOf={(event) => event.id}
        estimate={() => 30}
        itemRole="listitem"
        follow
        render={(event) => <EventRow event={event} open={expanded.value.has(event.id)} />}
      />
      {list.length === 0 && <p class="empty">No event fits the filter.</p>}
    </>
  );
}

const EventRow = memo(function EventRow({ event, open }: { event: SessionEvent; open: boolean }) {
  const { json, redactions } = entryOf(event);
  const cost = event.type === "step/end" ? stepCost(event.data.usage) : null;
  const toggle = (change: Event) => {
    const now = (change.currentTarget as HTMLDetailsElement).open;
    if (now === open) return;
    const next = new Set(expanded.value);
    if (now) next.add(event.id);
    else next.delete(event.id);
    expanded.value = next;
  };
  return (
    <details class="event" open={open} onToggle={toggle}>
      <summary class="event-head">
        <span class="seq">{event.seq}</span>
        <span class={`type ${event.type.split("/")[0]}`}>{event.type}</span>
        <span class="sum"><Plain text={json.slice(0, 160)} /></span>
        {redactions.length > 0 && <span class="badge" title={redactions.map(({ type, count }) => `${count} × ${type}`).join(", ")}>{total(redactions)} redacted</span>}
        {cost && <span class="badge plain">{money(cost)}</span>}
      </summary>
      {open && (
        <div class="raw">
          <pre class="scroller" tabIndex={0} role="group" aria-label={`Event ${event.seq}`}><Plain text={JSON.stringify(event, null, 2)} /></pre>
          <Copy text={JSON.stringify(event, null, 2)} />
        </div>
      )}
    </details>
  );
});

function Copy({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  return (
    <button type="button" class="quiet icon-only" aria-label="Copy as JSON" onClick={() => navigator.clipboard.writeText(text).then(() => setDone(true), () => {})}>
      <Icon name={done ? "check" : "copy"} size={14} />
    </button>
  );
}

function Redactions() {
  const events = current.value?.events.value ?? [];
  const counts = new Map<string, { count: number; places: number[] }>();
  for (const event of events) {
    if (event.type === "assistant/chunk") continue;
    for (const { type, count } of entryOf(event).redactions) {
      const row = counts.get(type) ?? { count: 0, places: [] };
      row.count += count;
      row.places.push(event.seq);
      counts.set(type, row);
    }
  }
  if (counts.size === 0) {
    return <p class="empty">Nothing was redacted here. Keys, tokens and passwords are taken out before anything is stored; only their kind and number are kept.</p>;
  }
  return (
    <div class="scroller" tabIndex={0} role="group" aria-label="What was redacted">
      <table class="figures">
        <thead><tr><th scope="col">Kind</th><th scope="col">Places</th><th scope="col">In events</th></tr></thead>
        <tbody>
          {[...counts].map(([type, { count, places }]) => (
            <tr key={type}><th scope="row"><mark class="redacted">{type}</mark></th><td>{count}</td><td>{places.slice(0, 12).join(", ")}{places.length > 12 ? "…" : ""}</td></tr>
          ))}
        </tbody>
      </table>
      <p class="hint">The values were never stored, so they cannot be shown.</p>
    </div>
  );
}
