// The page's state: one store, one file system, the open session with its controller. Everything the views read is a signal.
import { batch, computed, signal, type Signal } from "@preact/signals";
import init, {
  ChatSessionController, SessionLogError, SessionStore, VirtualFs, fileTools, type ExecutionResult, type RunConfig, type Session,
  type SessionEvent, type SessionSummary, type SessionUsage, type StorageStatus, type UndoReport,
} from "sessionlog";
import { ChangeRecorder, declareChanges, type FileChange } from "./changes.ts";
import { host, storageNamed } from "./host.ts";
import { adviceFor, alarm, announcement, attempt, dismissAlert, explain, explainCode, toast, type Alert } from "./messages.ts";
import { keyIsGone, recall, remember, model, providerOptions, settings, settingsOpen } from "./settings.ts";
import { Timeline, type Draft, type Item } from "./timeline.ts";

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
  /** Brings the signals up to what the session holds; they follow it at most once per frame. */
  settle: () => void;
}
export interface Conflict {
  action: "undo" | "redo" | "rewind";
  report: UndoReport;
  retry: (how: { force?: boolean; skip?: boolean }) => Promise<void>;
}

export const phase = signal<"loading" | "ready" | "failed">("loading");
/** Why nothing could be opened. */
export const failure = signal<Omit<Alert, "id"> | null>(null);
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
export const busy = computed(() => current.value?.running.value ?? false);

const LAST_KEY = "sessionlog.page.last";
const DELETED_KEY = "sessionlog.page.deleted";
const opened = new Map<string, Open>();
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

// ---------------------------------------------------------------- opening

/** Opens everything; `memory` goes on without the browser's storage, where that cannot be opened. */
export async function openWorkspace(kind: "stored" | "memory" = "stored"): Promise<void> {
  phase.value = "loading";
  try {
    await init();
    declareChanges();
    theStore = await SessionStore.open({
      storage: kind === "memory" ? { kind } : storageNamed("sessionlog"),
      scrubbers: [{ builtin: "secrets" }],
      // The first tab writes; a later one follows at once instead of waiting for it.
      lockTimeoutMs: 0,
      onWarning: ({ code, message }) => console.warn(`sessionlog: ${code}: ${message}`),
    });
    // Where the store had to do without the browser's storage, the files have none either.
    filesKind = (await theStore.status()).durable ? kind : "memory";
    theFs = await openFiles();
    await finishDeletes();
    await refreshSessions();
    await refreshStorage();
    refreshFiles();
    if (storage.value?.durable === false) alarm(NOT_KEPT, { detail: "A private window, or a setting of the browser, gives this page no storage. Export what you want to keep." });
    const wanted = fromAddress() ?? recall<string>(LAST_KEY);
    if (wanted !== null) await goTo(wanted);
    phase.value = "ready";
    watchFiles();
    watchSessions();
    setInterval(tick, 1000);
    addEventListener("hashchange", () => attempt(() => goTo(fromAddress())));
  } catch (error) {
    phase.value = "failed";
    failure.value = explain(error);
  }
}

const NOT_KEPT = "Nothing is saved: sessions and files are gone when this tab is closed.";

function fromAddress(): string | null {
  const match = /^#\/s\/([A-Za-z0-9_-]{1,128})$/.exec(location.hash);
  return match?.[1] ?? null;
}

/** Goes where the address says: back, forward, a link. What is not there any more is said, and the address is put right. */
async function goTo(id: string | null): Promise<void> {
  if (id === (current.value?.session.id ?? null)) return;
  if (id === null) return void (current.value = null);
  // The list does not decide: a session may have been made a moment ago, on another machine.
  const isGone = (error: unknown): boolean => error instanceof SessionLogError && error.code === "missing";
  if (!hiddenIds.value.has(id)) {
    const failed = await openSession(id).then(() => null, (error: unknown) => error);
    if (failed === null) return;
    if (!isGone(failed)) return void alarm(failed);
  }
  const asked = fromAddress() === id;
  remember(LAST_KEY, null);
  history.replaceState(null, "", current.value ? addressOf(current.value) : location.pathname + location.search);
  if (asked) alarm("There is no session at this address. It was deleted, or it was made in another browser.");
}

/** What nobody tells the page about: who writes, what is saved. */
function tick(): void {
  for (const open of opened.values()) {
    if (open.readOnly.value !== open.session.readOnly) {
      open.readOnly.value = open.session.readOnly;
      if (!open.session.readOnly) announcement.value = "This tab now writes the session.";
    }
  }
  if (document.visibilityState !== "visible") return;
  void refreshStorage();
  // Other browsers write to a host as well, and nobody tells this one of a session that it does not have open.
  if (host() !== null && ++ticks % LOOK_AFTER_TICKS === 0) void readSessions().catch(() => {});
}
let ticks = 0;
const LOOK_AFTER_TICKS = 3;

export async function refreshStorage(): Promise<void> {
  const before = storage.value?.lastError?.code;
  const status = await store().status();
  storage.value = status;
  // Said once, where it is seen; the line in the header stays until the trouble is over.
  if (status.durable && status.lastError && status.lastError.code !== before) {
    const { text, detail } = explainCode(status.lastError.code, status.lastError.message);
    troubles.push(alarm(text, { detail }));
  } else if (!status.lastError) {
    troubles.splice(0).forEach(dismissAlert);
  }
}
/** Alerts on storage; they go when the trouble is over. */
const troubles: number[] = [];

/** Reads the list of sessions; other tabs of this browser do so too, since what is in it may have changed. */
export async function refreshSessions(): Promise<void> {
  await readSessions();
  lists?.postMessage("changed");
}

async function readSessions(): Promise<void> {
  const list = await store().sessions({ sort: "updatedAt", order: "desc", includeArchived: true });
  // The same list draws nothing and searches nothing anew.
  if (JSON.stringify(list) !== JSON.stringify(sessions.value)) sessions.value = list;
}

const lists = "BroadcastChannel" in globalThis ? new BroadcastChannel("sessionlog.page.sessions") : null;

function watchSessions(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  lists?.addEventListener("message", () => {
    clearTimeout(timer);
    timer = setTimeout(() => attempt(readSessions), 150);
  });
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

let filesKind: "stored" | "memory" = "stored";

function openFiles(): Promise<VirtualFs> {
  return VirtualFs.open({ storage: filesKind === "memory" ? { kind: filesKind } : storageNamed("sessionlog-files") });
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

/** Reads the files again until nothing is said to be newer; two who ask for it at once share one reading. */
function readFilesAgain(): Promise<void> {
  return (reading ??= readWhileStale().finally(() => (reading = null)));
}
let reading: Promise<void> | null = null;

async function readWhileStale(): Promise<void> {
  // Under work that has begun nothing is exchanged: its files are the newest there are.
  while (stale && working === 0) {
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
  const attempted = await navigator.locks.request(FILES, { ifAvailable: true }, async (lock) => (lock === null ? null : { result: await inside() }));
  if (attempted !== null) return attempted.result;
  // Whoever has the lock changes the files; their word of it may come after the lock.
  stale = true;
  const patience = setTimeout(() => toast("Waiting for another tab to finish with the files…"), 600);
  return navigator.locks.request(FILES, () => {
    clearTimeout(patience);
    stale = true;
    return inside();
  });
}

export async function openSession(id: string): Promise<Open> {
  const open = await opening(id);
  show(open);
  return open;
}

/** A question that waits for its answer outlives the page that asked it; any other open turn is closed as interrupted. */
async function opening(id: string): Promise<Open> {
  const known = opened.get(id);
  if (known) return known;
  const recover = questionWaits(await store().read(id)) ? "resume" : "close";
  const session = await store().resume(id, { recover });
  // The page shows the whole log, so it waits for what a long session reads behind its newest compaction.
  await session.whole;
  return opened.get(id) ?? wire(session);
}

function questionWaits(events: readonly SessionEvent[]): boolean {
  const settled = new Set<string>();
  for (const event of events.toReversed()) {
    if (event.type === "turn/start" || event.type === "turn/end") return false;
    if (event.type === "approval/resolved") settled.add(event.data.callId);
    if (event.type === "tool/result") settled.add(event.data.id);
    if (event.type === "approval/requested" && !settled.has(event.data.callId)) return true;
  }
  return false;
}

const turnIsOpen = (open: Open): boolean => open.events.value.findLast(({ type }) => type === "turn/start" || type === "turn/end")?.type === "turn/start";

/** Shows a session that just came to be or came in. */
export async function adopt(session: Session): Promise<void> {
  show(opened.get(session.id) ?? wire(session));
  await refreshSessions();
}

const addressOf = ({ session }: Open): string => `#/s/${session.id}`;

/** Every session has an address, and the browser's back button goes to the one before. */
function show(open: Open): void {
  const moved = current.value !== null && current.value !== open;
  current.value = open;
  remember(LAST_KEY, open.session.id);
  if (location.hash === addressOf(open)) return;
  if (moved) history.pushState(null, "", addressOf(open));
  else history.replaceState(null, "", addressOf(open));
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
    settle: () => {},
  };
  let arrived: SessionEvent[] = [];
  const showAll = () => batch(() => {
    if (arrived.length === 0) return;
    const events = arrived;
    arrived = [];
    open.items.value = timeline.items = timeline.items.slice();
    open.drafts.value = timeline.drafts;
    open.events.value = open.events.value.concat(events);
    open.title.value = session.title ?? "";
    if (events.some(({ type }) => USAGE_EVENTS.has(type))) open.usage.value = safely(() => session.usage());
    if (events.some(({ type }) => FILE_EVENTS.has(type))) refreshFiles();
  });
  const frame = oncePerFrame(showAll);
  open.settle = showAll;
  session.on("event", (event) => {
    timeline.apply(event);
    arrived.push(event);
    frame();
    if (!session.readOnly) recorder.observe(event);
    if (event.type !== "assistant/chunk") refreshSoon();
  });
  opened.set(session.id, open);
  return open;
}

/** Many events may come between two frames, and nobody sees more than one of their states. A hidden tab has no frames. */
function oncePerFrame(work: () => void): () => void {
  let due = false;
  const go = () => {
    if (!due) return;
    due = false;
    work();
  };
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(go);
    setTimeout(go, 200);
  };
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
  const open = await opening(id);
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

/** What a session is called where there is room for one line; "" when nothing was said yet. */
export function titleOf(open: Open): string {
  const summary = sessions.value.find(({ id }) => id === open.session.id);
  return open.title.value || summary?.title || summary?.preview || "";
}

export function titleFrom(open: Open): string {
  const first = open.items.value.find((item) => item.kind === "user");
  return first?.kind === "user" ? first.text.replace(/\s+/g, " ").slice(0, 60) : "";
}

// ---------------------------------------------------------------- tasks

/** Gives a task; a `title` names the session that it begins. */
export async function send(text: string, title?: string): Promise<void> {
  const task = text.trim();
  if (task === "") return;
  const open = current.value ?? (await newSession());
  if (title !== undefined && open.session.title === null && open.items.value.length === 0) open.session.setTitle(title);
  open.settle();
  if (open.running.value) return controllerOf(open).steer(task);
  if (!turnIsOpen(open)) return runTask(open, (config) => controllerOf(open).executeTask(task, config));
  // A question of an earlier page still waits: what is said now is heard once it is answered.
  controllerOf(open).steer(task);
  await goOn();
}

/** Goes on with a turn that ended before its time. */
export async function goOn(): Promise<void> {
  const open = current.value;
  if (open && !open.running.value && keyIsThere()) await runTask(open, (config) => controllerOf(open).resumeTurn(config));
}

function runConfig(): RunConfig {
  const value = model.value;
  const { system, approval, maxCostUsd } = settings.value;
  return {
    model: value,
    // More than the package's default: a person watches, and can stop it at any time.
    maxSteps: 100,
    providerOptions: providerOptions(value),
    ...(system.trim() !== "" ? { system } : {}),
    ...(maxCostUsd.trim() !== "" ? { maxCostUsd: maxCostUsd.trim() } : {}),
    ...(approval === "policy" ? { tools: fileTools({ approval: "policy" }) } : {}),
  };
}

/** A key that stayed in memory went with the page it was given to; asking for it beats a refusal by the provider. */
export function keyIsThere(): boolean {
  if (!keyIsGone(model.value)) return true;
  alarm(`The key for ${model.value} was kept in memory only and is gone since the page was loaded again.`, {
    action: { label: "Enter it again", run: () => (settingsOpen.value = true) },
  });
  return false;
}

async function runTask(open: Open, work: (config: RunConfig) => Promise<ExecutionResult>): Promise<void> {
  open.running.value = true;
  try {
    const { runResult, warnings } = await withFiles(() => work(runConfig()));
    open.settle();
    for (const warning of warnings) alarm(warning);
    if (runResult.status === "failed" && runResult.errorMessage) alarm(sentence(runResult.errorMessage), { detail: adviceFor(lastErrorCode(open)) });
    announce(open);
  } catch (error) {
    alarm(error);
  } finally {
    open.settle();
    open.running.value = false;
    refreshSoon();
  }
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
}

function lastErrorCode(open: Open): string | undefined {
  const found = open.events.value.findLast(({ type }) => type === "error");
  return found?.type === "error" ? found.data.code : undefined;
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
  if (!open) return;
  attempt(async () => {
    controllerOf(open).resolveApproval(callId, verdict);
    // The page that asked is gone, and its run with it: this one goes on.
    if (!open.running.value && !open.readOnly.value) await goOn();
  });
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
