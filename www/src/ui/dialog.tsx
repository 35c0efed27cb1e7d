// A modal dialog on the browser's own element: focus is kept inside and goes back to where it came from.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.tsx";

export function Dialog({ title, children, footer, onClose, wide = false }: {
  title: string; children: ComponentChildren; footer?: ComponentChildren; onClose: () => void; wide?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const back = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    return () => back?.isConnected && back.focus();
  }, []);
  return (
    <dialog ref={ref} class={wide ? "dialog wide" : "dialog"} aria-label={title} onClose={onClose} onClick={(event) => event.target === ref.current && onClose()}>
      <div class="dialog-body">
        <header>
          <h2>{title}</h2>
          <button type="button" class="quiet icon-only" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        <div class="dialog-content">{children}</div>
        {footer && <footer>{footer}</footer>}
      </div>
    </dialog>
  );
}
