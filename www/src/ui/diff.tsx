// A unified diff as a table of lines, or side facts where there is no text to show.
import { parsePatch } from "diff";
import type { FileChange } from "../model/changes.ts";
import { Plain } from "./markdown.tsx";

const WORDS: { [kind: string]: string } = { created: "created", edited: "edited", deleted: "deleted", moved: "moved" };

export function ChangeSummary({ change }: { change: FileChange }) {
  return (
    <span class="change-summary">
      <span class={`verb ${change.kind}`}>{WORDS[change.kind]}</span> <code>{change.from ? `${change.from} → ${change.path}` : change.path}</code>
      {change.added > 0 && <span class="plus">+{change.added}</span>}
      {change.removed > 0 && <span class="minus">−{change.removed}</span>}
    </span>
  );
}

export function Diff({ patch, label }: { patch: string; label: string }) {
  const hunks = parsePatch(patch)[0]?.hunks ?? [];
  return (
    <div class="diff scroller" role="group" aria-label={label} tabIndex={0}>
      {hunks.map((hunk, at) => {
        let before = hunk.oldStart;
        let after = hunk.newStart;
        return (
          <pre key={at}>
            {at > 0 && <span class="gap">⋯</span>}
            {hunk.lines.map((line, index) => {
              const sign = line[0];
              if (sign === "\\") return null;
              const number = sign === "-" ? before++ : sign === "+" ? after++ : (before++, after++);
              return (
                <span key={index} class={sign === "+" ? "line plus" : sign === "-" ? "line minus" : "line"}>
                  <span class="number" aria-hidden="true">{number}</span>
                  <span class="sign">{sign === " " ? " " : sign}</span>
                  <span class="text"><Plain text={line.slice(1)} />{hunk.lines[index + 1]?.[0] === "\\" && <span class="no-newline" >no line end</span>}{"\n"}</span>
                </span>
              );
            })}
          </pre>
        );
      })}
    </div>
  );
}
