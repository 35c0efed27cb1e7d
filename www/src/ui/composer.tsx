// Where the person writes: send, steer while it runs, stop, undo and redo, and the choice of model.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { changeSettings, model, models, settingsOpen } from "../model/settings.ts";
import { attempt } from "../model/messages.ts";
import { busy, current, dropDraft, keyIsThere, phase, redoable, redoLastUndo, send, stop, undoable, undoLastRun } from "../model/workspace.ts";
import { Icon } from "./icon.tsx";
import { undoPreviewOpen } from "./undo.tsx";

const text = signal("");
const ADD = "+add";
const GROWS = CSS.supports("field-sizing", "content");

export function Composer() {
  const box = useRef<HTMLTextAreaElement>(null);
  const readOnly = current.value?.readOnly.value ?? false;
  const running = busy.value;

  // Whoever has a keyboard can write at once; on a phone the keyboard would cover half the page.
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) box.current?.focus();
  }, []);
  // Where the browser does not do it itself (`field-sizing`): asking for the height lays out the whole page.
  useEffect(() => {
    const area = box.current;
    if (!area || GROWS) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
  }, [text.value]);

  const submit = () => {
    const task = text.value;
    if (task.trim() === "" || readOnly || phase.value !== "ready" || !keyIsThere()) return;
    text.value = "";
    attempt(() => send(task));
    box.current?.focus();
  };

  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); submit(); }}>
      {readOnly && (
        <p class="follower" role="note"><Icon name="eye" size={14} /> Another tab writes this session. This one follows it live.</p>
      )}
      {current.value && current.value.drafts.value.length > 0 && (
        <ul class="drafts" aria-label="Waiting to be read">
          {current.value.drafts.value.map(({ id, text: draft }) => (
            <li key={id}>
              <Icon name="steer" size={12} /> <span>{draft}</span>
              {!readOnly && <button type="button" class="link" onClick={() => { text.value = text.value === "" ? draft : `${text.value}\n${draft}`; dropDraft(id); box.current?.focus(); }}>Take it back</button>}
            </li>
          ))}
        </ul>
      )}
      {running && <p class="working" role="status">{waitsForYou() ? "Waiting for your approval" : "Working"}<span aria-hidden="true" class="dots" /></p>}
      <div class="box">
        <textarea
          ref={box}
          rows={1}
          aria-label="Message"
          placeholder={readOnly ? "Written in another tab" : running ? "Steer it while it runs…" : "Give a task…"}
          value={text.value}
          disabled={readOnly}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              submit();
            } else if (event.key === "Escape" && running) stop();
          }}
        />
        <div class="bar">
          <label class="model">
            <span class="visually-hidden">Model</span>
            <select
              aria-label="Model"
              value={model.value}
              onChange={(event) => {
                if (event.currentTarget.value !== ADD) return changeSettings({ model: event.currentTarget.value });
                event.currentTarget.value = model.value;
                settingsOpen.value = true;
              }}
            >
              {models.value.map(({ value, label }) => <option key={value} value={value}>{label}</option>)}
              <option value={ADD}>Add a model…</option>
            </select>
          </label>
          <span class="space" />
          <span class="joined">
            <button type="button" class="quiet" disabled={running || readOnly || undoable.value.length === 0} title="Puts files back as they were before the last run" onClick={() => attempt(() => undoLastRun())}>
              <Icon name="undo" /> <span class="label">Undo last run</span>
            </button>
            <button type="button" class="quiet icon-only" aria-label="Preview what would go back" title="Preview" disabled={running || undoable.value.length === 0} onClick={() => (undoPreviewOpen.value = true)}>
              <Icon name="eye" />
            </button>
          </span>
          <button type="button" class="quiet" disabled={running || readOnly || redoable.value.length === 0} title="Does again what was undone" onClick={() => attempt(() => redoLastUndo())}>
            <Icon name="redo" /> <span class="label">Redo</span>
          </button>
          <button type="button" class="stop" disabled={!running} onClick={stop}>
            <Icon name="stop" size={12} /> <span class="label">Stop</span>
          </button>
          <button type="submit" class="primary" disabled={readOnly || phase.value !== "ready" || text.value.trim() === ""}>
            <span class="label">Send</span> <Icon name="up" />
          </button>
        </div>
      </div>
    </form>
  );
}

function waitsForYou(): boolean {
  return current.value?.items.value.some((item) => item.kind === "tool" && item.state === "approval") ?? false;
}
