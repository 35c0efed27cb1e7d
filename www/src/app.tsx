// The page: sessions, conversation, files and log side by side, or one at a time on a narrow screen.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { applyTheme, settings, settingsOpen } from "./model/settings.ts";
import { alerts, announcement, attempt, dismissAlert, dismissToast, toasts } from "./model/messages.ts";
import { importFile } from "./model/transfer.ts";
import { conflict, current, failure, openWorkspace, phase, titleOf } from "./model/workspace.ts";
import { Composer } from "./ui/composer.tsx";
import { EventLog } from "./ui/eventlog.tsx";
import { Files } from "./ui/files.tsx";
import { Header } from "./ui/header.tsx";
import { Icon, type IconName } from "./ui/icon.tsx";
import { view, type View } from "./ui/layout.ts";
import { Sessions } from "./ui/sessions.tsx";
import { SettingsDialog } from "./ui/settings.tsx";
import { Transcript } from "./ui/transcript.tsx";
import { ConflictDialog, UndoPreview, undoPreviewOpen } from "./ui/undo.tsx";

const dragging = signal(false);

function useDrop(): void {
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      dragging.value = true;
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) dragging.value = false;
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      dragging.value = false;
      const files = [...(event.dataTransfer?.files ?? [])];
      attempt(async () => {
        for (const file of files) await importFile(file);
      });
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
}

export function App() {
  useDrop();
  useEffect(() => applyTheme(settings.value.theme), [settings.value.theme]);
  const title = current.value ? titleOf(current.value) : "";
  useEffect(() => { document.title = title === "" ? "sessionlog" : `${title} · sessionlog`; }, [title]);
  return (
    <div class="app" data-view={view.value}>
      <Header />
      <Alerts />
      <main>
        <Sessions />
        <section class="chat" aria-label="Conversation">
          <h2 class="visually-hidden">Conversation</h2>
          {phase.value === "loading" && <p class="boot" role="status">Opening your sessions…</p>}
          {phase.value === "failed" && <Failed />}
          {phase.value === "ready" && <Transcript />}
          <Composer />
        </section>
        <div class="side">
          <Files />
          <EventLog />
        </div>
      </main>
      <Views />
      <Toasts />
      <p class="visually-hidden" aria-live="polite">{announcement.value}</p>
      {dragging.value && <div class="drop" aria-hidden="true">Drop a session file to bring it in</div>}
      {settingsOpen.value && <SettingsDialog />}
      {undoPreviewOpen.value && <UndoPreview />}
      {conflict.value && <ConflictDialog />}
    </div>
  );
}

/** Nothing could be opened: why, and two ways on. */
function Failed() {
  return (
    <div class="not-open" role="alert">
      <h3>Your sessions could not be opened</h3>
      <p>{failure.value?.text}</p>
      {failure.value?.detail && <p class="hint">{failure.value.detail}</p>}
      <div>
        <button type="button" class="primary" onClick={() => location.reload()}>Load again</button>
        <button type="button" onClick={() => void openWorkspace("memory")}>Go on without saving</button>
      </div>
    </div>
  );
}

function Alerts() {
  return (
    <div class="alerts">
      {alerts.value.map(({ id, text, detail, action }) => (
        <div key={id} class="alert" role="alert">
          <Icon name="alert" />
          <div>
            <p>{text}</p>
            {detail && detail !== text && <p class="detail">{detail}</p>}
          </div>
          {action && <button type="button" onClick={() => { dismissAlert(id); action.run(); }}>{action.label}</button>}
          <button type="button" class="quiet icon-only" aria-label="Dismiss" onClick={() => dismissAlert(id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  );
}

function Toasts() {
  return (
    <div class="toasts" aria-live="polite">
      {toasts.value.map(({ id, text, action }) => (
        <div key={id} class="toast">
          <span>{text}</span>
          {action && <button type="button" class="link" onClick={() => { dismissToast(id); action.run(); }}>{action.label}</button>}
        </div>
      ))}
    </div>
  );
}

const VIEWS: ReadonlyArray<{ id: View; label: string; icon: IconName }> = [
  { id: "sessions", label: "List", icon: "menu" },
  { id: "chat", label: "Chat", icon: "chat" },
  { id: "files", label: "Files", icon: "folder" },
  { id: "log", label: "Log", icon: "list" },
];

/** Only a narrow screen shows this; a wide one has everything in sight. */
function Views() {
  return (
    <nav class="views" aria-label="Parts of the page">
      {VIEWS.map(({ id, label, icon }) => (
        <button key={id} type="button" aria-pressed={view.value === id} onClick={() => (view.value = id)}>
          <Icon name={icon} size={18} /> {label}
        </button>
      ))}
    </nav>
  );
}
