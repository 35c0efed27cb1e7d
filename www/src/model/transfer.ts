// Sessions as files: out by a download, in by a choice or a drop.
import { SessionLogError, type SessionStore } from "sessionlog";
import { toast } from "./messages.ts";
import { adopt, current, sessions, store, titleFrom } from "./workspace.ts";

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
  const { session, report } = await read(file.name, bytes);
  await adopt(session);
  await session.flush();
  const notes = [];
  if (report.lost.length > 0) notes.push(`not carried over: ${report.lost.join(", ")}`);
  if (report.damaged.length > 0) notes.push(`${report.damaged.length} damaged lines left out`);
  toast(`Brought in ${file.name}${notes.length > 0 ? `; ${notes.join("; ")}` : ""}.`);
}

async function read(name: string, bytes: Uint8Array): ReturnType<SessionStore["importSession"]> {
  try {
    return await store().importSession(bytes, idTaken(bytes));
  } catch (error) {
    const newer = error instanceof SessionLogError && error.code === "newer_format";
    throw new Error(`${name} was not brought in: ${newer ? "a newer version of this page wrote it" : "it holds no session that can be read"}. Nothing here was changed.`);
  }
}

/** A session that is here already comes in once more under an id of its own. */
function idTaken(bytes: Uint8Array): { id?: string } {
  const line = new TextDecoder().decode(bytes.subarray(0, 4096)).split("\n", 1)[0] ?? "";
  const id = /"id":"([A-Za-z0-9_-]{1,128})"/.exec(line)?.[1];
  if (id === undefined || !sessions.value.some((session) => session.id === id)) return {};
  return { id: `${id.slice(0, 100)}-${crypto.randomUUID().slice(0, 8)}` };
}
