// A small menu on a button, with the keys of one: arrows move, Escape and a click elsewhere close it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon.tsx";

export interface MenuItem {
  label: string;
  icon: IconName;
  danger?: boolean;
  run: () => void;
}

export function Menu({ label, describedBy, items }: { label: string; describedBy?: string; items: MenuItem[] }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const outside = (event: Event) => !root.current?.contains(event.target as Node) && setOpen(false);
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const move = (event: KeyboardEvent) => {
    const entries = [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      entries[(at + step + entries.length) % entries.length]?.focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      setOpen(false);
      if (event.key === "Escape") root.current?.querySelector<HTMLElement>("button")?.focus();
    }
  };
  return (
    <div class="menu" ref={root} onKeyDown={open ? move : undefined}>
      <button type="button" class="quiet icon-only" aria-label={label} aria-describedby={describedBy} aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="more" />
      </button>
      {open && (
        <div class="menu-items" role="menu" aria-label={label}>
          {items.map((item) => (
            <button key={item.label} type="button" role="menuitem" tabIndex={-1} class={item.danger ? "danger" : ""} onClick={() => { setOpen(false); item.run(); }}>
              <Icon name={item.icon} size={14} /> {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
