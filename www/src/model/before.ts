// What files held before the last run, taken from the diffs that stand in the log.
import { absolute, revert, textOf, type FileChange } from "./changes.ts";
import { fs, lastChanges, type Open } from "./workspace.ts";

/** `text` is null when the file was not there, undefined when it cannot be told. */
export interface Before {
  text: string | null | undefined;
}

export function beforeLastRun(open: Open): Map<string, Before> {
  const byPath = new Map<string, FileChange[]>();
  for (const change of lastChanges(open)) {
    const path = absolute(change.path);
    byPath.set(path, [...(byPath.get(path) ?? []), change]);
  }
  return new Map([...byPath].map(([path, changes]) => [path, { text: takeBack(path, changes) }]));
}

function takeBack(path: string, changes: FileChange[]): string | null | undefined {
  let text = textOf(fs(), path);
  for (const change of changes.toReversed()) {
    if (text === undefined) return undefined;
    text = change.kind === "moved" ? null : revert(text, change);
  }
  return text;
}
