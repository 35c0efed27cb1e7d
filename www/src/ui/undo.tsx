// Undo and rewind with a look at what will change, and a way out when something stands in the way.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { UndoReport } from "sessionlog";
import type { UserItem } from "../model/timeline.ts";
import { alarm, attempt } from "../model/messages.ts";
import { conflict, current, lastChanges, previewRewind, previewUndo, rewind, undoLastRun } from "../model/workspace.ts";
import { ChangeSummary, Diff } from "./diff.tsx";
import { Dialog } from "./dialog.tsx";

export const undoPreviewOpen = signal(false);

function Report({ report }: { report: UndoReport }) {
  const nothing = report.restored.length + report.deleted.length + report.conflicts.length === 0;
  return (
    <ul class="report">
      {report.restored.map((path) => <li key={`r${path}`}><span class="verb edited">restored</span> <code>{path}</code></li>)}
      {report.deleted.map((path) => <li key={`d${path}`}><span class="verb deleted">removed</span> <code>{path}</code></li>)}
      {report.conflicts.map(({ path, reason }) => <li key={`c${path}`}><span class="verb conflict">in the way</span> <code>{path}</code> {reason}</li>)}
      {nothing && <li>No file changes.</li>}
    </ul>
  );
}

function useReport(read: () => Promise<UndoReport | null>): UndoReport | null | undefined {
  const [report, setReport] = useState<UndoReport | null | undefined>(undefined);
  useEffect(() => void read().then(setReport, (error) => { alarm(error); setReport(null); }), []);
  return report;
}

export function UndoPreview() {
  const report = useReport(previewUndo);
  const open = current.value;
  const changes = open ? lastChanges(open) : [];
  const close = () => (undoPreviewOpen.value = false);
  return (
    <Dialog
      wide
      title="What goes back"
      onClose={close}
      footer={
        <>
          <button type="button" onClick={close}>Leave it as it is</button>
          <button type="button" class="primary" onClick={() => { close(); attempt(() => undoLastRun()); }}>Put it back</button>
        </>
      }
    >
      <p>Taking the last run back changes these files. It can be done again afterwards.</p>
      {report === undefined && <p>Looking…</p>}
      {report && <Report report={report} />}
      {report === null && <p>There is nothing to put back.</p>}
      {changes.length > 0 && (
        <>
          <h3>What the run had done</h3>
          {changes.map((change, index) => (
            <section key={index}>
              <p><ChangeSummary change={change} /></p>
              {change.patch && <Diff patch={change.patch} label={`Changes to ${change.path}`} />}
            </section>
          ))}
        </>
      )}
    </Dialog>
  );
}

export function RewindDialog({ item, onClose }: { item: UserItem; onClose: () => void }) {
  const report = useReport(() => previewRewind(item.seq));
  const [what, setWhat] = useState<"both" | "files" | "conversation">("both");
  const go = () => {
    onClose();
    attempt(() => rewind(item.seq, { files: what !== "conversation", conversation: what !== "files" }));
  };
  const choice = (value: typeof what, label: string, text: string) => (
    <label class="choice">
      <input type="radio" name="rewind" checked={what === value} onChange={() => setWhat(value)} />
      <span><strong>{label}</strong><span>{text}</span></span>
    </label>
  );
  return (
    <Dialog
      title="Rewind"
      onClose={onClose}
      footer={
        <>
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="button" class="primary" onClick={go}>Go back</button>
        </>
      }
    >
      <p>Go back to just before “{item.text.slice(0, 80)}{item.text.length > 80 ? "…" : ""}”. Nothing is deleted from the log.</p>
      <fieldset>
        <legend class="visually-hidden">What goes back</legend>
        {choice("both", "Conversation and files", "As if this had not been asked.")}
        {choice("conversation", "Conversation only", "Files stay as they are.")}
        {choice("files", "Files only", "The conversation stays as it is.")}
      </fieldset>
      {what !== "conversation" && (
        <>
          <h3>Files</h3>
          {report === undefined ? <p>Looking…</p> : report ? <Report report={report} /> : <p>This cannot be previewed.</p>}
        </>
      )}
    </Dialog>
  );
}

const TITLES = { undo: "The run cannot be undone as it is", redo: "The run cannot be put back as it is", rewind: "The files cannot go back as they are" };

export function ConflictDialog() {
  const found = conflict.value;
  if (!found) return null;
  const close = () => (conflict.value = null);
  const retry = (how: { force?: boolean; skip?: boolean }) => {
    close();
    attempt(() => found.retry(how));
  };
  return (
    <Dialog
      title={TITLES[found.action]}
      onClose={close}
      footer={
        <>
          <button type="button" onClick={close}>Change nothing</button>
          {found.action !== "rewind" && <button type="button" onClick={() => retry({ skip: true })}>Skip these files</button>}
          <button type="button" class="danger" onClick={() => retry({ force: true })}>Overwrite them</button>
        </>
      }
    >
      <p>These files were changed after the run, so nothing has been touched:</p>
      <Report report={{ ...found.report, restored: [], deleted: [] }} />
      <p>Skip them to put back all the others, or overwrite them; overwriting can itself be undone.</p>
    </Dialog>
  );
}
