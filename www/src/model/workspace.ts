// The page's state: one store, one file system, the open session with its controller. Everything the views read is a signal.
import { batch, computed, signal, type Signal } from "@preact/signals";
import init, {
  ChatSessionController, SessionLogError, SessionStore, VirtualFs, fileTools, type Cost, type ExecutionResult, type RunConfig, type Session,
  type SessionEvent, type SessionSummary, type SessionUsage, type StorageStatus, type UndoReport,
} from "sessionlog";
import { ChangeRecorder, declareChanges, type FileChange } from "./changes.ts";
import { storageNamed } from "./host.ts";
import { recall, remember, model, providerOptions, settings } from "./settings.ts";
import { Timeline, type Draft, type Item } from "./timeline.ts";

export interface Alert {
  id: number;
  text: string;
  detail?: string;
}
export interface Toast {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}
/** A session that is open in this tab, with everything the views show of it. */
export interface Open {
  session: Session;
  /** Made when it is needed, and anew when the files were read again. */
  controller: ChatSessionController | null;
  items: Signal<Item[]>;
  /** What was said and not read yet; kept while idle and never sent by itself. */
  drafts: Signal<Draft[]>;
  events: Signal<readonly SessionEvent[]>;
  running: Signal<boolean>;
  readOnly: Signal<boolean>;
  title: Signal<string>;
  usage: Signal<SessionUsage | null>;
}
export interface Conflict {
  action: "undo" | "redo" | "rewind";
  report: UndoReport;
  retry: (how: { force?: boolean; skip?: boolean }) => Promise<void>;
}

export const phase = signal<"loading" | "ready" | "failed">("loading");
export const alerts = signal<Alert[]>([]);
export const toasts = signal<Toast[]>([]);
export const sessions = signal<SessionSummary[]>([]);
export const hiddenIds = signal<ReadonlySet<string>>(new Set());
export const showArchived = signal(false);
export const current = signal<Open | null>(null);
export const storage = signal<StorageStatus | null>(null);
/** Grows whenever files may have changed. */
export const filesRevision = signal(0);
export const undoable = signal<readonly string[]>([]);
export const redoable = signal<readonly string[]>([]);
export const conflict = signal<Conflict | null>(null);
export const announcement = signal("");
export const busy = computed(() => current.value?.running.value ?? false);

const LAST_KEY = "sessionlog.page.last";
const DELETED_KEY = "sessionlog.page.deleted";
const opened = new Map<string, Open>();
let sequence = 0;
let theStore: SessionStore | undefined;
let theFs: VirtualFs | undefined;

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the workspace is not open yet");
  return value;
}
export const store = (): SessionStore => must(theStore);
export const fs = (): VirtualFs => must(theFs);

function controllerOf(open: Open): ChatSessionController {
  return (open.controller ??= new ChatSessionController({ store: store(), session: open.session, fs: fs(), outputFn: () => {} }));
}

// ---------------------------------------------------------------- messages to the person

const EXPLAINED: { [code: string]: string } = {
  quota: "The browser has no room left for this site. Delete a session or files to go on.",
  locked: "Another tab is writing this session.",
  blocked: "Another tab holds an older version of the storage open. Close it and load this page again.",
  timeout: "The browser's storage did not answer.",
  newer_format: "This was written by a newer version of the page. Load the page again to update it.",
  corrupt: "Part of the stored data is damaged. The rest is kept.",
  csp_blocked: "The page's security policy refused to start the module.",
  poisoned: "The module had an internal fault. Load the page again; what was saved is safe.",
  busy: "A task is running already.",
};

export function explain(thrown: unknown): Omit<Alert, "id"> {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const known = thrown instanceof SessionLogError ? EXPLAINED[thrown.code] : undefined;
  return known ? { text: known, detail: message } : { text: message };
}

export function alarm(thrown: unknown): void {
  const alert = typeof thrown === "string" ? { text: thrown } : explain(thrown);
  if (alerts.value.some(({ text }) => text === alert.text)) return;
  alerts.value = [...alerts.value, { id: ++sequence, ...alert }];
}

export function dismissAlert(id: number): void {
  alerts.value = alerts.value.filter((alert) => alert.id !== id);
}

export function toast(text: string, action?: Toast["action"], forMs = 8000): number {
  const id = ++sequence;
  toasts.value = [...toasts.value.slice(-2), { id, text, ...(action ? { action } : {}) }];
  setTimeout(() => dismissToast(id), forMs);
  return id;
}

export function dismissToast(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** Runs something that may fail on behalf of a click. */
export function attempt(work: () => Promise<unknown> | unknown): void {
  Promise.resolve().then(work).catch(alarm);
}

// ---------------------------------------------------------------- opening

export async function openWorkspace(): Promise<void> {
  try {
    await init();
    declareChanges();
    theStore = await SessionStore.open({
      storage: storageNamed("sessionlog"),
      scrubbers: [{ builtin: "secrets" }],
      // The first tab writes; a later one follows at once instead of waiting for it.
      lockTimeoutMs: 0,
      onWarning: ({ code, message }) => console.warn(`sessionlog: ${code}: ${message}`),
    });
    theFs = await openFiles();
    watchFiles();
    await finishDeletes();
    await refreshSessions();
    await refreshStorage();
    refreshFiles();
    const wanted = fromAddress() ?? recall<string>(LAST_KEY);
    if (wanted !== null && sessions.value.some(({ id }) => id === wanted)) await openSession(wanted).catch(alarm);
    phase.value = "ready";
    setInterval(tick, 1000);
    addEventListener("hashchange", () => {
      const id = fromAddress();
      if (id !== null && id !== current.value?.session.id) attempt(() => openSession(id));
    });
  } catch (error) {
    phase.value = "failed";
    alarm(error);
  }
}

function fromAddress(): string | null {
  const match = /^#\/s\/([A-Za-z0-9_-]{1,128})$/.exec(location.hash);
  return match?.[1] ?? null;
}

/** What nobody tells the page about: who writes, what is saved. */
function tick(): void {
  for (const open of opened.values()) {
    if (open.readOnly.value !== open.session.readOnly) {
      open.readOnly.value = open.session.readOnly;
      if (!open.session.readOnly) announcement.value = "This tab now writes the session.";
    }
  }
  if (document.visibilityState === "visible") void refreshStorage();
}

export async function refreshStorage(): Promise<void> {
  storage.value = await store().status();
}

export async function refreshSessions(): Promise<void> {
  sessions.value = await store().sessions({ sort: "updatedAt", order: "desc", includeArchived: true });
}

let refreshing: ReturnType<typeof setTimeout> | undefined;
function refreshSoon(): void {
  clearTimeout(refreshing);
  refreshing = setTimeout(() => attempt(async () => Promise.all([refreshSessions(), refreshStorage()])), 150);
}

export function refreshFiles(): void {
  batch(() => {
    filesRevision.value++;
    undoable.value = [...fs().undoable];
    redoable.value = [...fs().redoable];
  });
}

// ---------------------------------------------------------------- files, shared by all tabs

const FILES = "sessionlog.page.files";
const tabs = "BroadcastChannel" in globalThis ? new BroadcastChannel(FILES) : null;
let working = 0;
let stale = false;

function openFiles(): Promise<VirtualFs> {
  return VirtualFs.open({ storage: storageNamed("sessionlog-files") });
}

/** One tab changes files at a time; the others read them again when it says that it has. */
function watchFiles(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  tabs?.addEventListener("message", () => {
    stale = true;
    clearTimeout(timer);
    timer = setTimeout(() => attempt(readFilesAgain), 150);
  });
}

async function readFilesAgain(): Promise<void> {
  if (!stale || working > 0) return;
  stale = false;
  const old = fs();
  theFs = await openFiles();
  for (const open of opened.values()) {
    open.controller?.dispose();
    open.controller = null;
  }
  refreshFiles();
  await old.dispose().catch(() => {});
}

/** Runs what changes files: after another tab has finished with them, on what it left, and tells the others. */
export async function withFiles<T>(work: () => Promise<T> | T): Promise<T> {
  const inside = async (): Promise<T> => {
    await readFilesAgain();
    working++;
    try {
      const result = await work();
      await fs().flush();
      return result;
    } finally {
      working--;
      refreshFiles();
      tabs?.postMessage("changed");
    }
  };
  if (working > 0 || !("locks" in navigator)) return inside();
  const patience = setTimeout(() => toast("Waiting for another tab to finish with the files…"), 600);
  return navigator.locks.request(FILES, () => {
    clearTimeout(patience);
    return inside();
  });
}

/** The page shows the whole log, so it waits for what a long session reads behind its newest compaction. */
async function resumeWhole(id: string): Promise<Session> {
  const session = await store().resume(id);
  await session.whole;
  return session;
}

export async function openSession(id: string): Promise<Open> {
  const open = opened.get(id) ?? wire(await resumeWhole(id));
  show(open);
  return open;
}

function show(open: Open): void {
  current.value = open;
  remember(LAST_KEY, open.session.id);
  history.replaceState(null, "", `#/s/${open.session.id}`);
}

const USAGE_EVENTS = new Set(["step/end", "usage", "session/forked"]);
const FILE_EVENTS = new Set(["tool/result", "turn/end", "undo/applied", "undo/redone", "page/change"]);

function wire(session: Session): Open {
  const timeline = Timeline.of(session.events);
  const recorder = new ChangeRecorder(fs, session);
  const open: Open = {
    session,
    controller: null,
    items: signal(timeline.items),
    drafts: signal(timeline.drafts),
    events: signal(session.events),
    running: signal(false),
    readOnly: signal(session.readOnly),
    title: signal(session.title ?? ""),
    usage: signal(safely(() => session.usage())),
  };
  session.on("event", (event) => {
    timeline.apply(event);
    batch(() => {
      open.items.value = timeline.items;
      open.drafts.value = timeline.drafts;
      // One array that grows: views take its length from the new wrapper.
      open.events.value = open.events.value.concat(event);
      if (event.type === "session/titled") open.title.value = event.data.title;
      if (USAGE_EVENTS.has(event.type)) open.usage.value = safely(() => session.usage());
    });
    if (!session.readOnly) recorder.observe(event);
    if (FILE_EVENTS.has(event.type)) refreshFiles();
    if (event.type !== "assistant/chunk") refreshSoon();
  });
  opened.set(session.id, open);
  return open;
}

function safely<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

// ---------------------------------------------------------------- sessions

export async function newSession(): Promise<Open> {
  const session = store().create(undefined, { meta: { cwd: "/" } });
  const open = opened.get(session.id) ?? wire(session);
  show(open);
  await refreshSessions();
  return open;
}

export function closeCurrent(): void {
  current.value = null;
  remember(LAST_KEY, null);
  history.replaceState(null, "", location.pathname + location.search);
}

export async function renameSession(id: string, title: string): Promise<void> {
  const open = opened.get(id) ?? wire(await resumeWhole(id));
  open.session.setTitle(title);
  await open.session.flush();
  await refreshSessions();
}

export async function archiveSession(id: string, archived: boolean): Promise<void> {
  if (archived) await store().archive(id);
  else await store().unarchive(id);
  await refreshSessions();
  if (archived) toast("Archived.", { label: "Bring it back", run: () => attempt(() => archiveSession(id, false)) });
}

/** Takes a session from view at once and from storage when the offer to keep it has passed. */
export function deleteSession(id: string): void {
  const wasCurrent = current.value?.session.id === id;
  hiddenIds.value = new Set([...hiddenIds.value, id]);
  remember(DELETED_KEY, [...hiddenIds.value]);
  if (wasCurrent) closeCurrent();
  let kept = false;
  const keep = () => {
    kept = true;
    hiddenIds.value = new Set([...hiddenIds.value].filter((other) => other !== id));
    remember(DELETED_KEY, [...hiddenIds.value]);
    if (wasCurrent) attempt(() => openSession(id));
  };
  toast("Session deleted.", { label: "Keep it after all", run: keep });
  setTimeout(() => !kept && attempt(() => reallyDelete(id)), 8200);
}

async function reallyDelete(id: string): Promise<void> {
  opened.delete(id);
  await store().delete(id);
  hiddenIds.value = new Set([...hiddenIds.value].filter((other) => other !== id));
  remember(DELETED_KEY, [...hiddenIds.value]);
  await refreshSessions();
}

/** A page that was closed before the offer had passed finishes at its next start. */
async function finishDeletes(): Promise<void> {
  for (const id of recall<string[]>(DELETED_KEY) ?? []) {
    await store().delete(id).catch(() => {});
  }
  remember(DELETED_KEY, null);
}

export async function forkSession(seq: number): Promise<void> {
  const open = current.value;
  if (!open) return;
  const child = store().fork(open.session.id, { throughSeq: seq, allowOpenTurn: true });
  const title = open.title.value || titleFrom(open);
  if (title) child.setTitle(`${title} (fork)`);
  show(opened.get(child.id) ?? wire(child));
  await refreshSessions();
  toast("Forked. This copy goes its own way from here.");
}

function titleFrom(open: Open): string {
  const first = open.items.value.find((item) => item.kind === "user");
  return first?.kind === "user" ? first.text.replace(/\s+/g, " ").slice(0, 60) : "";
}

// ---------------------------------------------------------------- tasks

export async function send(text: string): Promise<void> {
  const task = text.trim();
  if (task === "") return;
  const open = current.value ?? (await newSession());
  if (open.running.value) controllerOf(open).steer(task);
  else await runTask(open, (config) => controllerOf(open).executeTask(task, config));
}

/** Goes on with a turn that ended before its time. */
export async function goOn(): Promise<void> {
  const open = current.value;
  if (open && !open.running.value) await runTask(open, (config) => controllerOf(open).resumeTurn(config));
}

function runConfig(): RunConfig {
  const value = model.value;
  const { system, approval, maxCostUsd } = settings.value;
  return {
    model: value,
    providerOptions: providerOptions(value),
    ...(system.trim() !== "" ? { system } : {}),
    ...(maxCostUsd.trim() !== "" ? { maxCostUsd: maxCostUsd.trim() } : {}),
    ...(approval === "policy" ? { tools: fileTools({ approval: "policy" }) } : {}),
  };
}

async function runTask(open: Open, work: (config: RunConfig) => Promise<ExecutionResult>): Promise<void> {
  open.running.value = true;
  try {
    const { runResult, warnings } = await withFiles(() => work(runConfig()));
    for (const warning of warnings) alarm(warning);
    if (runResult.status === "failed" && runResult.errorMessage) alarm(runResult.errorMessage);
    announce(open);
  } catch (error) {
    alarm(error);
  } finally {
    open.running.value = false;
    refreshSoon();
  }
}

/** A screen reader hears a finished answer once, not every token. */
function announce(open: Open): void {
  const last = open.items.value.findLast((item) => item.kind === "assistant");
  if (last?.kind === "assistant") announcement.value = `Answer: ${last.text.slice(0, 400)}`;
}

export function stop(): void {
  current.value?.controller?.cancel("stopped by the user");
}

export function resolveApproval(callId: string, verdict: "approved" | "denied"): void {
  const open = current.value;
  if (open) attempt(() => controllerOf(open).resolveApproval(callId, verdict));
}

/** Takes back what was said and not read yet. */
export function dropDraft(id: string): void {
  const open = current.value;
  if (open) attempt(() => controllerOf(open).dropDraft(id));
}

// ---------------------------------------------------------------- undo, redo, rewind

function describeReport(report: UndoReport): string {
  const parts = [];
  if (report.restored.length > 0) parts.push(`restored ${report.restored.join(", ")}`);
  if (report.deleted.length > 0) parts.push(`removed ${report.deleted.join(", ")}`);
  return parts.join("; ");
}

/** What undoing the last run would do; null when there is nothing to undo. */
export async function previewUndo(): Promise<UndoReport | null> {
  const run = fs().undoable[0];
  return run === undefined ? null : fs().rewind(run, { preview: true });
}

export async function undoLastRun(how: { force?: boolean; skip?: boolean } = {}): Promise<void> {
  const open = current.value ?? (await newSession());
  const before = fs().undoable[0];
  const done = await withFiles(() => controllerOf(open).undoLastRun(how));
  if (done) {
    conflict.value = null;
    announcement.value = "The last run was undone.";
    return;
  }
  if (before === undefined) return void toast("There is nothing to undo.");
  await explainConflict("undo", before, undoLastRun);
}

/** Asks the file system what stands in the way. Redoing has no preview; without force it changes nothing when something does. */
async function explainConflict(action: "undo" | "redo", run: string, retry: Conflict["retry"]): Promise<void> {
  const report = await (action === "undo" ? fs().rewind(run, { preview: true }) : withFiles(() => fs().redo()));
  if (report.conflicts.length > 0) conflict.value = { action, report, retry };
  else if (report.errors.length > 0) alarm(report.errors.map(({ path, message }) => `${path}: ${message}`).join("\n"));
}

export async function redoLastUndo(how: { force?: boolean; skip?: boolean } = {}): Promise<void> {
  const open = current.value ?? (await newSession());
  const before = fs().redoable[0];
  const done = await withFiles(async () => (how.force || how.skip ? (await fs().redo(how)).ok : controllerOf(open).redoLastUndo()));
  if (done) conflict.value = null;
  else if (before === undefined) toast("There is nothing to put back.");
  else await explainConflict("redo", before, redoLastUndo);
}

export async function rewind(seq: number, what: { files: boolean; conversation: boolean }, how: { force?: boolean } = {}): Promise<void> {
  const open = current.value;
  if (!open) return;
  const report = await withFiles(() => controllerOf(open).rewind(seq, { ...what, ...how }));
  if (report.ok) {
    conflict.value = null;
    const files = describeReport(report);
    toast(`Went back${files ? `: ${files}` : ""}.`);
  } else if (report.conflicts.length > 0) {
    conflict.value = { action: "rewind", report, retry: (next) => rewind(seq, what, next) };
  } else {
    alarm(report.errors.map(({ path, message }) => `${path}: ${message}`).join("\n") || "The files could not be put back.");
  }
}

export function previewRewind(seq: number): Promise<UndoReport> {
  const open = must(current.value ?? undefined);
  return controllerOf(open).rewind(seq, { files: true, conversation: true, preview: true });
}

/** Changes of the last run that still stands, the newest last. */
export function lastChanges(open: Open): FileChange[] {
  const files = open.items.value.findLast((item) => item.kind === "files" && !item.undone);
  return files?.kind === "files" ? files.changes : [];
}

// ---------------------------------------------------------------- import, export

export async function exportCurrent(): Promise<void> {
  const open = current.value;
  if (!open) return void toast("Open a session first.");
  const bytes = await store().exportSession(open.session.id);
  const name = (open.title.value || titleFrom(open) || open.session.id).replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  download(bytes, `${name || "session"}.jsonl`);
}

function download(bytes: Uint8Array, name: string): void {
  const url = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type: "application/jsonl" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function importFile(file: File): Promise<void> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const { session, report } = await store().importSession(bytes, await idTaken(bytes));
  show(opened.get(session.id) ?? wire(session));
  await session.flush();
  await refreshSessions();
  const notes = [];
  if (report.lost.length > 0) notes.push(`not carried over: ${report.lost.join(", ")}`);
  if (report.damaged.length > 0) notes.push(`${report.damaged.length} damaged lines left out`);
  toast(`Brought in ${file.name}${notes.length > 0 ? `; ${notes.join("; ")}` : ""}.`);
}

/** A session that is here already comes in once more under an id of its own. */
async function idTaken(bytes: Uint8Array): Promise<{ id?: string }> {
  const line = new TextDecoder().decode(bytes.subarray(0, 4096)).split("\n", 1)[0] ?? "";
  const id = /"id":"([A-Za-z0-9_-]{1,128})"/.exec(line)?.[1];
  if (id === undefined || !sessions.value.some((session) => session.id === id)) return {};
  return { id: `${id.slice(0, 100)}-${crypto.randomUUID().slice(0, 8)}` };
}

// ---------------------------------------------------------------- figures

export function money(cost: Cost | null | undefined): string {
  if (!cost || cost.usd === null) return "cost unknown";
  const value = Number(cost.usd);
  const digits = value === 0 || value >= 1 ? 2 : Math.min(8, Math.max(2, 2 - Math.floor(Math.log10(value))));
  return `${cost.complete ? "" : "at least "}$${value.toFixed(digits)}`;
}

export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = "B";
  for (const next of units) {
    if (value < 1000) break;
    value /= 1000;
    unit = next;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}
