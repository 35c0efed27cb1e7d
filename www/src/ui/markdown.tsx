// Text of a model as markup: rendered, then sanitised to a fixed list, then put in place as nodes. Nothing in it can run.
import DOMPurify from "dompurify";
import { Marked } from "marked";
import { memo } from "preact/compat";
import { useLayoutEffect, useRef } from "preact/hooks";
import { splitMarks } from "../model/redactions.ts";

// Markup that a model wrote is text like any other: shown, not parsed. The sanitiser behind it is the second wall.
const marked = new Marked({ gfm: true, breaks: true, async: false, renderer: { html: ({ text }) => escape(text) } });

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const TAGS = [
  "p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "a",
];

function sanitize(html: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(html, { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "align", "start"], ALLOW_DATA_ATTR: false, RETURN_DOM_FRAGMENT: true });
  for (const link of fragment.querySelectorAll("a")) {
    if (!/^(https?:|mailto:)/i.test(link.getAttribute("href") ?? "")) link.removeAttribute("href");
    link.setAttribute("rel", "noopener noreferrer");
    link.setAttribute("target", "_blank");
  }
  // Headings of an answer stand below the page's own, and no level is left out on the way down.
  let above = 2;
  for (const heading of fragment.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    above = Math.min(6, Number(heading.tagName[1]) + 2, above + 1);
    const lower = document.createElement(`h${above}`);
    lower.append(...heading.childNodes);
    heading.replaceWith(lower);
  }
  for (const block of fragment.querySelectorAll("pre, table")) {
    const scroller = document.createElement("div");
    scroller.className = "scroller";
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "group");
    scroller.setAttribute("aria-label", block.tagName === "PRE" ? "Code" : "Table");
    block.replaceWith(scroller);
    scroller.append(block);
  }
  return fragment;
}

function markRedactions(root: Node): void {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (walker.nextNode()) if (walker.currentNode.nodeValue?.includes("[REDACTED:")) found.push(walker.currentNode as Text);
  for (const node of found) {
    const pieces = splitMarks(node.data).map((piece) => {
      if ("text" in piece) return piece.text;
      const mark = document.createElement("mark");
      mark.className = "redacted";
      mark.textContent = `[REDACTED:${piece.type}]`;
      return mark;
    });
    node.replaceWith(...pieces);
  }
}

/** Markdown of long texts would hold up the page while they stream in; beyond this they are shown as they are. */
const LIMIT = 200_000;

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const root = ref.current;
    if (!root) return;
    if (text.length > LIMIT) {
      root.textContent = text;
    } else {
      const fragment = sanitize(marked.parse(text) as string);
      markRedactions(fragment);
      reconcile(root, fragment);
    }
  }, [text]);
  return <div class="prose" ref={ref} />;
});

/** Keeps blocks that did not change, so that a selection in them lives on while the answer streams. */
function reconcile(root: HTMLElement, fragment: DocumentFragment): void {
  const next = [...fragment.childNodes];
  let index = 0;
  for (const node of next) {
    const there = root.childNodes[index];
    if (there === undefined) root.append(node);
    else if (!there.isEqualNode(node)) there.replaceWith(node);
    index++;
  }
  while (root.childNodes.length > index) root.lastChild?.remove();
}

/** Plain text with its redactions marked. */
export function Plain({ text }: { text: string }) {
  return (
    <>
      {splitMarks(text).map((piece, index) =>
        "text" in piece ? piece.text : <mark class="redacted" key={index}>{`[REDACTED:${piece.type}]`}</mark>,
      )}
    </>
  );
}
