// The file system: a tree, an editor, and what changed since before the last run.
import { computed, signal } from "@preact/signals";
import { lazy, Suspense } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import { makePatch, textOf } from "../model/changes.ts";
import { beforeLastRun } from "../model/before.ts";
import { bytesText } from "../model/figures.ts";
import { attempt, toast } from "../model/messages.ts";
import { current, filesRevision, fs, phase, withFiles } from "../model/workspace.ts";
import { Diff } from "./diff.tsx";
import { Icon } from "./icon.tsx";

const Editor = lazy(() => import("./editor.tsx"));

export interface Node {
  path: string;
  name: string;
  level: number;
  type: "file" | "directory" | "symlink";
  size: number;
}

const SHOWN = 2000;
const closedFolders = signal<ReadonlySet<string>>(new Set());
export const chosenPath = signal<string | null>(null);

const allNodes = computed<Node[]>(() => {
  filesRevision.value;
  if (phase.value !== "ready") return [];
  return fs()
    .walk("/")
    .filter(({ path }) => path !== "/" && path !== "")
    .map(({ path, type, size }) => ({ path, type, size, name: path.slice(path.lastIndexOf("/") + 1), level: path.split("/").filter((part) => part !== "").length }))
    .sort(byPath);
});

/** Entries of a folder stand directly after it. */
function byPath(a: Node, b: Node): number {
  const left = a.path.split("/");
  const right = b.path.split("/");
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const order = (left[index] as string).localeCompare(right[index] as string);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

const nodes = computed(() => {
  const closed = [...closedFolders.value];
  return allNodes.value.filter(({ path }) => !closed.some((folder) => path.startsWith(`${folder}/`)));
});

const touched = computed(() => new Set(current.value ? beforeLastRun(current.value).keys() : []));

export function Files() {
  const list = nodes.value.slice(0, SHOWN);
  const chosen = chosenPath.value;
  const exists = chosen !== null && allNodes.value.some(({ path, type }) => path === chosen && type !== "directory");
  return (
    <section class="panel files-panel" aria-label="Workspace">
      <header class="panel-head">
        <h2>Files</h2>
        <span class="space" />
        <NewFile />
      </header>
      <Tree list={list} />
      {allNodes.value.length > SHOWN && <p class="hint">{allNodes.value.length - SHOWN} more are not shown.</p>}
      {list.length === 0 && <p class="empty">No files yet. The agent's files appear here; you can add your own.</p>}
      {exists && <FileView key={chosen} path={chosen as string} />}
    </section>
  );
}

function toggleFolder(path: string, open?: boolean): void {
  const closed = new Set(closedFolders.value);
  if (open ?? closed.has(path)) closed.delete(path);
  else closed.add(path);
  closedFolders.value = closed;
}

function Tree({ list }: { list: Node[] }) {
  const root = useRef<HTMLUListElement>(null);
  const [focused, setFocused] = useState<string | null>(null);
  const stop = list.some(({ path }) => path === focused) ? focused : list.some(({ path }) => path === chosenPath.value) ? chosenPath.value : (list[0]?.path ?? null);

  const focusAt = (index: number) => {
    const node = list[Math.max(0, Math.min(list.length - 1, index))];
    if (!node) return;
    setFocused(node.path);
    root.current?.querySelectorAll<HTMLElement>("[role=treeitem]")[list.indexOf(node)]?.focus();
  };
  const activate = (node: Node) => (node.type === "directory" ? toggleFolder(node.path) : (chosenPath.value = node.path));
  const onKeyDown = (event: KeyboardEvent) => {
    const at = list.findIndex(({ path }) => path === stop);
    const node = list[at];
    if (!node) return;
    const closed = closedFolders.value.has(node.path);
    const keys: { [key: string]: () => void } = {
      ArrowDown: () => focusAt(at + 1),
      ArrowUp: () => focusAt(at - 1),
      Home: () => focusAt(0),
      End: () => focusAt(list.length - 1),
      ArrowRight: () => (node.type === "directory" && closed ? toggleFolder(node.path, true) : focusAt(at + 1)),
      ArrowLeft: () => (node.type === "directory" && !closed ? toggleFolder(node.path, false) : focusAt(list.findIndex(({ path }) => path === node.path.slice(0, node.path.lastIndexOf("/"))))),
      Enter: () => activate(node),
      " ": () => activate(node),
    };
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  };
  return (
    <ul class="tree" role="tree" aria-label="Files" ref={root} onKeyDown={onKeyDown}>
      {list.map((node) => (
        <li
          key={node.path}
          role="treeitem"
          aria-label={node.path}
          aria-level={node.level}
          aria-selected={node.path === chosenPath.value}
          aria-expanded={node.type === "directory" ? !closedFolders.value.has(node.path) : undefined}
          tabIndex={node.path === stop ? 0 : -1}
          data-size={node.type === "file" ? bytesText(node.size) : undefined}
          style={{ paddingInlineStart: `${8 + (node.level - 1) * 14}px` }}
          onClick={() => { setFocused(node.path); activate(node); }}
          onFocus={() => setFocused(node.path)}
        >
          <Icon name={node.type === "directory" ? "folder" : "file"} size={14} />
          <span class="name">{node.name}{node.type === "symlink" ? " →" : ""}</span>
          {touched.value.has(node.path) && <span class="dot" title="Changed by the last run" />}
        </li>
      ))}
    </ul>
  );
}

function NewFile() {
  const [asking, setAsking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => { if (asking) input.current?.focus(); }, [asking]);
  if (!asking) {
    return (
      <button type="button" class="quiet icon-only" aria-label="New file" title="New file" onClick={() => setAsking(true)}>
        <Icon name="newFile" />
      </button>
    );
  }
  const make = (name: string) => {
    setAsking(false);
    if (name.trim() === "") return;
    attempt(() => withFiles(() => {
      const path = `/${name.trim().replace(/^\/+/, "")}`;
      if (fs().exists(path)) throw new Error(`${path} exists already.`);
      const folder = path.slice(0, path.lastIndexOf("/"));
      if (folder !== "") fs().mkdir(folder, { recursive: true });
      fs().writeFile(path, "");
      chosenPath.value = path;
    }));
  };
  return (
    <input
      ref={input}
      class="rename"
      aria-label="New file path"
      placeholder="notes/today.md"
      onBlur={() => setAsking(false)}
      onKeyDown={(event) => {
        if (event.key === "Enter") make(event.currentTarget.value);
        if (event.key === "Escape") setAsking(false);
      }}
    />
  );
}

function FileView({ path }: { path: string }) {
  filesRevision.value;
  const [mode, setMode] = useState<"edit" | "diff">("edit");
  const [draft, setDraft] = useState<string | null>(null);
  const stored = textOf(fs(), path);
  const open = current.value;
  const before = open ? beforeLastRun(open).get(path) : undefined;
  const changed = draft !== null && draft !== stored;

  const latest = useRef(draft);
  latest.current = draft;
  const save = () => {
    const text = latest.current;
    if (text === null) return;
    attempt(async () => {
      await withFiles(() => fs().writeFile(path, text));
      setDraft((now) => (now === text ? null : now));
    });
  };
  // What is typed is kept without asking: a moment after the last key, and when the file is left.
  useEffect(() => {
    if (!changed) return;
    const timer = setTimeout(save, 500);
    return () => clearTimeout(timer);
  }, [draft]);
  useEffect(() => save, [path]);

  const remove = () => {
    const bytes = fs().readFile(path);
    attempt(async () => {
      await withFiles(() => fs().rm(path));
      chosenPath.value = null;
      toast(`Deleted ${path}.`, {
        label: "Keep it after all",
        run: () => attempt(() => withFiles(() => fs().writeFile(path, bytes))),
      });
    });
  };

  return (
    <div class="file-view">
      <div class="file-head">
        <code title={path}>{path}</code>
        <span class="saved" role="note">{changed ? "Saving…" : ""}</span>
        <span class="space" />
        <div class="segmented" role="group" aria-label="View">
          <button type="button" aria-pressed={mode === "edit"} onClick={() => setMode("edit")}>Edit</button>
          <button type="button" aria-pressed={mode === "diff"} onClick={() => setMode("diff")}>Diff</button>
        </div>
        <button type="button" class="quiet icon-only" aria-label="Delete file" title="Delete file" onClick={remove}><Icon name="trash" /></button>
        <button type="button" class="quiet icon-only" aria-label="Close file" title="Close file" onClick={() => (chosenPath.value = null)}><Icon name="close" /></button>
      </div>
      {stored === undefined && <p class="empty">This file is no text, or too long to show.</p>}
      {stored !== undefined && mode === "edit" && (
        <Suspense fallback={<textarea class="plain-editor" aria-label="File content" value={draft ?? stored ?? ""} readOnly />}>
          <Editor path={path} value={draft ?? stored ?? ""} onInput={(text) => setDraft(text === stored ? null : text)} onSave={save} />
        </Suspense>
      )}
      {stored !== undefined && mode === "diff" && (
        before === undefined
          ? <p class="empty">The last run did not change this file.</p>
          : before.text === undefined
            ? <p class="empty">What it was before cannot be shown here; undo still puts it back.</p>
            : <Diff patch={makePatch(path, before.text, stored)} label={`${path}, against before the last run`} />
      )}
    </div>
  );
}
