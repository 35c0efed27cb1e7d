// The bar on top: where one is, what it cost, whether it is saved, and the ways in and out.
import { useRef } from "preact/hooks";
import { bytesText, money } from "../model/figures.ts";
import { attempt, toast } from "../model/messages.ts";
import { exportCurrent, importFile } from "../model/transfer.ts";
import { current, storage, titleOf } from "../model/workspace.ts";
import { Icon } from "./icon.tsx";
import { settingsOpen } from "../model/settings.ts";

export function Header() {
  const open = current.value;
  return (
    <header class="top">
      <h1 class="brand"><img src="./icon.svg" width="22" height="22" alt="" /> <span>sessionlog</span></h1>
      <span class="where">{open ? titleOf(open) || "New session" : ""}</span>
      <span class="space" />
      <CostStatus />
      <StorageLine />
      <ImportButton />
      <button type="button" class="quiet" disabled={!open} onClick={() => attempt(exportCurrent)}><Icon name="download" /> <span class="label">Export</span></button>
      <button type="button" class="quiet icon-only" aria-label="Settings" title="Settings" onClick={() => (settingsOpen.value = true)}><Icon name="settings" /></button>
    </header>
  );
}

function CostStatus() {
  const usage = current.value?.usage.value;
  const tokens = (usage?.promptTokens ?? 0) + (usage?.completionTokens ?? 0);
  return (
    <span class="status cost" role="status" aria-label="Cost" aria-live="off">
      <span class="figure">{usage ? money(usage.cost) : "$0.00"}</span>
      <span class="unit">{tokens.toLocaleString()} tokens</span>
    </span>
  );
}

function storageText(): { text: string; state: string } {
  const status = storage.value;
  const open = current.value;
  if (!status) return { text: "Opening…", state: "wait" };
  if (open?.readOnly.value) return { text: "Following another tab", state: "follow" };
  if (!status.durable) return { text: "In memory only, not saved", state: "bad" };
  if (status.lastError) return { text: `Not saved: ${status.lastError.code}`, state: "bad" };
  if (status.unsaved > 0) return { text: "Saving…", state: "wait" };
  return { text: "Saved in this browser", state: "good" };
}

function StorageLine() {
  const { text, state } = storageText();
  const status = storage.value;
  const used = status?.usageBytes !== undefined ? `${bytesText(status.usageBytes)} used${status.quotaBytes ? ` of ${bytesText(status.quotaBytes)}` : ""}` : "";
  return (
    <span class={`status storage ${state}`} role="status" aria-label="Storage" aria-live={state === "bad" ? "assertive" : "off"} title={[status?.lastError?.message, used].filter(Boolean).join(". ")}>
      <span class="lamp" aria-hidden="true" />
      <span>{text}</span>
    </span>
  );
}

function ImportButton() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        accept=".jsonl,.json,application/json,application/jsonl"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = "";
          if (file) attempt(() => importFile(file));
          else toast("No file was chosen.");
        }}
      />
      <button type="button" class="quiet" onClick={() => input.current?.click()}><Icon name="upload" /> <span class="label">Import</span></button>
    </>
  );
}
