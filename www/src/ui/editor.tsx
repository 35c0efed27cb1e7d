// The editor, loaded when a file is first opened: a real text field under coloured text (prism-code-editor).
import { createEditor, type PrismEditor } from "prism-code-editor";
import { defaultCommands, editHistory, setIgnoreTab } from "prism-code-editor/commands";
import { matchBrackets } from "prism-code-editor/match-brackets";
import { indentGuides } from "prism-code-editor/guides";
import "prism-code-editor/prism/languages/css";
import "prism-code-editor/prism/languages/javascript";
import "prism-code-editor/prism/languages/json";
import "prism-code-editor/prism/languages/markdown";
import "prism-code-editor/prism/languages/markup";
import "prism-code-editor/prism/languages/python";
import "prism-code-editor/prism/languages/rust";
import "prism-code-editor/prism/languages/typescript";
import "prism-code-editor/languages/clike";
import "prism-code-editor/languages/html";
import "prism-code-editor/layout.css";
import { useLayoutEffect, useRef } from "preact/hooks";

const LANGUAGES: { [ending: string]: string } = {
  js: "javascript", mjs: "javascript", ts: "typescript", tsx: "typescript", json: "json", jsonl: "json", md: "markdown", html: "html", svg: "html", xml: "html",
  css: "css", py: "python", rs: "rust",
};

export default function Editor({ path, value, onInput, onSave }: { path: string; value: string; onInput: (value: string) => void; onSave: () => void }) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<PrismEditor | null>(null);
  const calls = useRef({ onInput, onSave });
  calls.current = { onInput, onSave };

  useLayoutEffect(() => {
    const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
    const made = createEditor(
      place.current,
      { value, language: LANGUAGES[ending] ?? "text", wordWrap: true, insertSpaces: true, tabSize: 2, onUpdate: (text) => calls.current.onInput(text) },
      matchBrackets(),
      indentGuides(),
      defaultCommands(),
      editHistory(),
    );
    made.textarea.setAttribute("aria-label", "File content");
    // Tab leaves the field, as everywhere else; whoever wants it to indent switches that with Control M.
    setIgnoreTab(true);
    made.textarea.setAttribute("aria-description", "Control M switches whether Tab indents.");
    made.textarea.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "s") {
        event.preventDefault();
        calls.current.onSave();
      }
    });
    editor.current = made;
    return () => made.remove();
  }, [path]);

  useLayoutEffect(() => {
    const made = editor.current;
    if (made && made.value !== value) made.setOptions({ value });
  }, [value]);

  return <div class="editor" ref={place} />;
}
