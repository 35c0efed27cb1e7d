// The conversation: what was said, what tools did, and honestly how each turn ended.
import { signal } from "@preact/signals";
import { memo } from "preact/compat";
import { useCallback, useRef, useState } from "preact/hooks";
import type { AssistantItem, FilesItem, Item, NoteItem, RewoundItem, ToolItem, UserItem } from "../model/timeline.ts";
import { attempt, toast } from "../model/messages.ts";
import { current, forkSession, goOn, resolveApproval, type Open } from "../model/workspace.ts";
import { ChangeSummary, Diff } from "./diff.tsx";
import { Icon } from "./icon.tsx";
import { Markdown, Plain } from "./markdown.tsx";
import { RewindDialog } from "./undo.tsx";
import { VirtualList, type VirtualControls } from "./virtual.tsx";
import { Welcome } from "./welcome.tsx";

/** Rows leave the page when they scroll away; what the reader opened stays open when they come back. */
const unfolded = signal<ReadonlyMap<string, boolean>>(new Map());

function useFold(key: string, initial: boolean): [boolean, (event: Event) => void] {
  const open = unfolded.value.get(key) ?? initial;
  return [
    open,
    (event) => {
      const now = (event.currentTarget as HTMLDetailsElement).open;
      if (now !== (unfolded.value.get(key) ?? initial)) unfolded.value = new Map(unfolded.value).set(key, now);
    },
  ];
}

export function Transcript() {
  const open = current.value;
  const items = open?.items.value ?? [];
  if (!open || items.length === 0) {
    return (
      <div class="transcript" role="log" aria-label="Transcript" aria-live="off" tabIndex={0}>
        <Welcome />
      </div>
    );
  }
  return <Items key={open.session.id} open={open} />;
}

function estimate(item: Item): number {
  switch (item.kind) {
    case "user": return 64 + Math.ceil(Math.min(item.text.length, SHOWN) / 70) * 22;
    case "assistant": return 56 + Math.ceil(item.text.length / 80) * 24;
    case "tool": return 46;
    default: return 44;
  }
}

function Items({ open }: { open: Open }) {
  const [atEnd, setAtEnd] = useState(true);
  const controls = useRef<VirtualControls | null>(null);
  const [rewinding, setRewinding] = useState<UserItem | null>(null);
  const render = useCallback((item: Item) => <Row item={item} onRewind={setRewinding} />, []);
  return (
    <div class="transcript-frame">
      <VirtualList
        class="transcript"
        role="log"
        aria-label="Transcript"
        aria-live="off"
        items={open.items.value}
        keyOf={(item) => item.key}
        estimate={estimate}
        render={render}
        follow
        controls={controls}
        onAtEnd={setAtEnd}
        padding={16}
      />
      {!atEnd && (
        <button type="button" class="to-end" aria-label="Go to the latest" onClick={() => controls.current?.toEnd()}>
          <Icon name="down" />
        </button>
      )}
      {rewinding && <RewindDialog item={rewinding} onClose={() => setRewinding(null)} />}
    </div>
  );
}

const Row = memo(function Row({ item, onRewind }: { item: Item; onRewind?: (item: UserItem) => void }) {
  switch (item.kind) {
    case "user": return <User item={item} onRewind={onRewind} />;
    case "assistant": return <Assistant item={item} />;
    case "tool": return <Tool item={item} />;
    case "note": return <Note item={item} />;
    case "files": return <Files item={item} />;
    case "rewound": return <Rewound item={item} />;
  }
});

function clock(at: number): string {
  return new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function Actions({ seq, text, rewind }: { seq: number; text: string; rewind?: () => void }) {
  return (
    <div class="row-actions">
      <button type="button" class="quiet icon-only" aria-label="Copy text" title="Copy" onClick={() => attempt(() => navigator.clipboard.writeText(text).then(() => toast("Copied.", undefined, 2000)))}>
        <Icon name="copy" size={14} />
      </button>
      <button type="button" class="quiet icon-only" aria-label="Fork from here" title="Fork from here" onClick={() => attempt(() => forkSession(seq))}>
        <Icon name="fork" size={14} />
      </button>
      {rewind && (
        <button type="button" class="quiet icon-only" aria-label="Rewind to before this" title="Rewind to before this" onClick={rewind}>
          <Icon name="history" size={14} />
        </button>
      )}
    </div>
  );
}

const SHOWN = 6000;
const MOST = 200_000;

/** A long text shows its beginning and says how much more there is; the log has all of it. */
function Long({ text, fold }: { text: string; fold: string }) {
  if (text.length <= SHOWN) return <Plain text={text} />;
  const whole = unfolded.value.get(fold) === true;
  const shown = whole ? text.slice(0, MOST) : text.slice(0, SHOWN);
  const label = whole ? "Show less" : `Show ${text.length > MOST ? `the first ${MOST.toLocaleString()}` : "all"} of ${text.length.toLocaleString()} characters`;
  return (
    <>
      <Plain text={shown} />{shown.length < text.length && "…"}{" "}
      <button type="button" class="link" onClick={() => (unfolded.value = new Map(unfolded.value).set(fold, !whole))}>{label}</button>
    </>
  );
}

function User({ item, onRewind }: { item: UserItem; onRewind?: ((item: UserItem) => void) | undefined }) {
  return (
    <article class={item.steering ? "row user steering" : "row user"} aria-label={item.steering ? "You, while it ran" : "You"}>
      <div class="bubble">
        {item.steering && <span class="chip"><Icon name="steer" size={12} /> while it ran</span>}
        <p><Long text={item.text} fold={`u:${item.key}`} /></p>
        {item.media > 0 && <span class="chip">{item.media} attached</span>}
      </div>
      <div class="row-foot">
        <Actions seq={item.seq} text={item.text} {...(onRewind && !item.steering ? { rewind: () => onRewind(item) } : {})} />
        <time>{clock(item.at)}</time>
      </div>
    </article>
  );
}

function Assistant({ item }: { item: AssistantItem }) {
  const [open, toggle] = useFold(`r:${item.key}`, false);
  return (
    <article class={item.streaming ? "row assistant streaming" : "row assistant"} aria-label="Agent" aria-busy={item.streaming}>
      {item.reasoning !== "" && (
        <details class="reasoning" open={open} onToggle={toggle}>
          <summary><Icon name="brain" size={14} /> {item.streaming && item.text === "" ? "Thinking…" : "Thought about it"}</summary>
          <p><Plain text={item.reasoning} /></p>
        </details>
      )}
      {item.text !== "" && <Markdown text={item.text} />}
      {item.partial && <p class="partial"><Icon name="warning" size={14} /> This answer is incomplete.</p>}
      {!item.streaming && item.text !== "" && (
        <div class="row-foot">
          <time>{clock(item.at)}</time>
          {item.model && <span>{item.model}</span>}
          <Actions seq={item.seq} text={item.text} />
        </div>
      )}
    </article>
  );
}

const STATE_WORDS = { approval: "wants your approval", running: "running", done: "done", failed: "failed", denied: "denied", "not-run": "did not finish" };

function target(item: ToolItem): string {
  const { args } = item;
  if (args === null || typeof args !== "object" || Array.isArray(args)) return "";
  const { path, from, to } = args;
  if (typeof path === "string") return path;
  if (typeof from === "string" && typeof to === "string") return `${from} → ${to}`;
  return "";
}

function Tool({ item }: { item: ToolItem }) {
  const [open, toggle] = useFold(`t:${item.key}`, item.state === "approval");
  const added = item.changes.reduce((sum, change) => sum + change.added, 0);
  const removed = item.changes.reduce((sum, change) => sum + change.removed, 0);
  return (
    <article class={`row tool ${item.state}`} aria-label={`Tool ${item.name}`}>
      <details open={open || item.state === "approval"} onToggle={toggle}>
        <summary>
          <span class="tool-mark"><Icon name={item.state === "failed" ? "alert" : item.state === "approval" ? "shield" : "tool"} size={14} /></span>
          <span class="tool-name">{item.name}</span>
          <span class="tool-target"><Plain text={target(item)} /></span>
          {added > 0 && <span class="plus">+{added}</span>}
          {removed > 0 && <span class="minus">−{removed}</span>}
          <span class="tool-state">{STATE_WORDS[item.state]}</span>
          <Icon name="chevron" size={14} />
        </summary>
        <div class="tool-body">
          {item.changes.map((change) => (
            <section key={change.path}>
              <p><ChangeSummary change={change} /></p>
              {change.patch && <Diff patch={change.patch} label={`Changes to ${change.path}`} />}
            </section>
          ))}
          <p class="part">Arguments</p>
          <pre class="scroller" tabIndex={0} role="group" aria-label="Arguments"><Long text={JSON.stringify(item.args, null, 2)} fold={`ta:${item.key}`} /></pre>
          {item.result !== null && (
            <>
              <p class="part">Result</p>
              <pre class="scroller" tabIndex={0} role="group" aria-label="Result"><Long text={item.result === "" ? "(empty)" : item.result} fold={`tr:${item.key}`} /></pre>
            </>
          )}
          {item.reason && <p class="reason">Reason: <Plain text={item.reason} /></p>}
        </div>
      </details>
      {item.state === "approval" && (
        <div class="ask" role="group" aria-label={`Approve ${item.name}`}>
          <p>The agent wants to run <strong>{item.name}</strong> <code>{target(item)}</code>.</p>
          <button type="button" class="primary" onClick={() => resolveApproval(item.callId, "approved")}>Approve</button>
          <button type="button" onClick={() => resolveApproval(item.callId, "denied")}>Deny</button>
        </div>
      )}
    </article>
  );
}

function Note({ item }: { item: NoteItem }) {
  const [open, toggle] = useFold(`n:${item.key}`, false);
  const text = (
    <>
      {item.tone !== "plain" && <Icon name="warning" size={14} />}
      <span><Plain text={item.text} /></span>
    </>
  );
  return (
    <div class={`row note ${item.tone}`}>
      {item.detail
        ? (
          <details open={open || item.tone === "bad"} onToggle={toggle}>
            <summary>{text}</summary>
            <p class="detail"><Plain text={item.detail} /></p>
          </details>
        )
        : <p>{text}</p>}
      {item.resumable && <GoOn seq={item.seq} />}
    </div>
  );
}

/** Offered only where nothing came since. */
function GoOn({ seq }: { seq: number }) {
  const open = current.value;
  const last = open?.items.value.findLast((item) => item.kind === "user" || item.kind === "assistant" || item.kind === "tool" || item.kind === "note" && item.resumable);
  if (!open || open.running.value || open.readOnly.value || last?.seq !== seq) return null;
  return <button type="button" onClick={() => attempt(goOn)}>Go on</button>;
}

function Files({ item }: { item: FilesItem }) {
  const [open, toggle] = useFold(`f:${item.key}`, false);
  const paths = [...new Set(item.changes.map(({ path }) => path))];
  return (
    <details class={item.undone ? "row files undone" : "row files"} open={open} onToggle={toggle}>
      <summary>
        <Icon name="file" size={14} />
        <span>{item.undone ? "Undone: " : ""}{paths.length === 1 ? "1 file changed" : `${paths.length} files changed`}</span>
        <span class="tool-target">{paths.join(", ")}</span>
        <Icon name="chevron" size={14} />
      </summary>
      {item.changes.map((change, index) => (
        <section key={index}>
          <p><ChangeSummary change={change} /></p>
          {change.patch && <Diff patch={change.patch} label={`Changes to ${change.path}`} />}
        </section>
      ))}
    </details>
  );
}

function Rewound({ item }: { item: RewoundItem }) {
  const [open, toggle] = useFold(`w:${item.key}`, false);
  return (
    <details class="row note rewound" open={open} onToggle={toggle}>
      <summary><Icon name="history" size={14} /> Went back to here. {item.hidden.length} {item.hidden.length === 1 ? "entry is" : "entries are"} set aside, not deleted.</summary>
      {open && <div class="set-aside">{item.hidden.map((hidden) => <Row key={hidden.key} item={hidden} />)}</div>}
    </details>
  );
}
