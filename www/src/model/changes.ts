// What each tool call did to files, kept in the log as an event of the page's own: the example of `declareEvent`.
import { applyPatch, createTwoFilesPatch, diffLines, parsePatch, reversePatch } from "diff";
import { SessionStore, type JsonValue, type Session, type SessionEvent, type VirtualFs } from "sessionlog";

export type ChangeKind = "created" | "edited" | "deleted" | "moved";
export interface FileChange {
  callId: string;
  path: string;
  kind: ChangeKind;
  from?: string;
  added: number;
  removed: number;
  /** Unified diff; absent when the file is not text or the diff is long. */
  patch?: string;
}
declare module "sessionlog" {
  interface SessionEventMap {
    "page/change": FileChange;
  }
}

const PATCH_LIMIT = 48 * 1024;
const TEXT_LIMIT = 512 * 1024;

export function declareChanges(): void {
  SessionStore.declareEvent("page/change", { durable: true, ignorable: true });
}

/** A file's text, or null when there is none, or undefined when it is no text that can be shown. */
export function textOf(fs: VirtualFs, path: string): string | null | undefined {
  try {
    const stat = fs.lstat(path);
    if (stat.type !== "file" || stat.size > TEXT_LIMIT) return undefined;
    const text = new TextDecoder("utf-8", { fatal: true }).decode(fs.readFile(path));
    return text.includes("\0") ? undefined : text;
  } catch (error) {
    return error instanceof TypeError ? undefined : null;
  }
}

export function countLines(before: string, after: string): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const part of diffLines(before, after)) {
    if (part.added) added += part.count ?? 0;
    if (part.removed) removed += part.count ?? 0;
  }
  return { added, removed };
}

export function makePatch(path: string, before: string | null, after: string | null): string {
  return createTwoFilesPatch(before === null ? "/dev/null" : path, after === null ? "/dev/null" : path, before ?? "", after ?? "", "", "", { context: 3 });
}

/** Takes one change back in a text; undefined when it does not fit. */
export function revert(text: string | null, change: FileChange): string | null | undefined {
  if (change.patch === undefined) return undefined;
  const patch = parsePatch(change.patch)[0];
  if (patch === undefined) return undefined;
  const before = applyPatch(text ?? "", reversePatch(patch));
  if (before === false) return undefined;
  return change.kind === "created" ? null : before;
}

function pathsOf(args: JsonValue): string[] {
  if (args === null || typeof args !== "object" || Array.isArray(args)) return [];
  return ["path", "from", "to", "file", "file_path", "source", "destination"].flatMap((name) => {
    const value = args[name];
    return typeof value === "string" && value !== "" ? [value] : [];
  });
}

/** The absolute form that the file system lists. */
export function absolute(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return "/" + parts.join("/");
}

function describe(callId: string, path: string, before: string | null | undefined, after: string | null | undefined): FileChange | null {
  if (before === after) return null;
  const kind: ChangeKind = before === null ? "created" : after === null ? "deleted" : "edited";
  if (before === undefined || after === undefined) return { callId, path, kind, added: 0, removed: 0 };
  const patch = makePatch(path, before, after);
  const counts = countLines(before ?? "", after ?? "");
  return { callId, path, kind, ...counts, ...(patch.length <= PATCH_LIMIT ? { patch } : {}) };
}

/** Watches the calls of a session that runs in this tab and records what they changed. */
export class ChangeRecorder {
  #before = new Map<string, Array<[string, string | null | undefined]>>();
  constructor(
    private readonly fs: () => VirtualFs,
    private readonly session: Session,
  ) {}

  observe(event: SessionEvent): void {
    if (event.type === "tool/call") {
      const paths = [...new Set(pathsOf(event.data.args).map(absolute))];
      if (paths.length > 0) this.#before.set(event.data.id, paths.map((path) => [path, textOf(this.fs(), path)]));
    } else if (event.type === "tool/result") {
      const before = this.#before.get(event.data.id);
      this.#before.delete(event.data.id);
      for (const change of this.#changes(event.data.id, before ?? [])) this.session.append("page/change", change, { repair: true });
    }
  }

  #changes(callId: string, before: Array<[string, string | null | undefined]>): FileChange[] {
    const changes = before.flatMap(([path, text]) => describe(callId, path, text, textOf(this.fs(), path)) ?? []);
    const gone = changes.find(({ kind }) => kind === "deleted");
    const came = changes.find(({ kind }) => kind !== "deleted");
    // One file gone and one come in a single call with the same text is a move.
    if (changes.length === 2 && gone && came && gone.removed === came.added) {
      return [{ callId, path: came.path, from: gone.path, kind: "moved", added: 0, removed: 0 }];
    }
    return changes;
  }
}
