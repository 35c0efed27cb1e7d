// A list that renders only what is in sight, on top of @tanstack/virtual-core.
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import type { AriaRole, ComponentChildren, HTMLAttributes, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from "preact/hooks";

interface Props<T> extends Omit<HTMLAttributes<HTMLDivElement>, "children" | "ref"> {
  items: readonly T[];
  keyOf: (item: T, index: number) => string;
  estimate: (item: T) => number;
  render: (item: T, index: number) => ComponentChildren;
  /** Follows the end while the reader is there; keeps the reading position otherwise. */
  follow?: boolean;
  controls?: RefObject<VirtualControls | null>;
  onAtEnd?: (atEnd: boolean) => void;
  padding?: number;
  itemRole?: AriaRole;
}
export interface VirtualControls {
  toEnd(): void;
  toIndex(index: number): void;
}

const END_THRESHOLD = 80;

/** Whether rows stand for the same items as before, as far as both lists go. */
function continues<T>(before: readonly T[], items: readonly T[], keyOf: (item: T, index: number) => string): boolean {
  if (before === items) return true;
  const both = Math.min(before.length, items.length);
  for (let index = 0; index < both; index++) {
    const [old, now] = [before[index] as T, items[index] as T];
    if (old !== now && keyOf(old, index) !== keyOf(now, index)) return false;
  }
  return true;
}

export function VirtualList<T>({ items, keyOf, estimate, render, follow = false, controls, onAtEnd, padding = 0, itemRole, ...rest }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const now = useRef({ items, keyOf, estimate });
  const before = now.current.items;
  now.current = { items, keyOf, estimate };
  // With another function every row is measured anew, on each drawing of a list of thousands; so it is another one only where
  // a row has become one of another item. Rows that are added at the end, and rows that grow, keep it.
  const keys = useRef<((index: number) => string) | null>(null);
  if (!keys.current || !continues(before, items, keyOf)) keys.current = (index) => now.current.keyOf(now.current.items[index] as T, index);

  const options = {
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index: number) => now.current.estimate(now.current.items[index] as T),
    getItemKey: keys.current,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 6,
    paddingStart: padding,
    paddingEnd: padding,
    ...(follow ? { anchorTo: "end" as const, followOnAppend: true, scrollEndThreshold: END_THRESHOLD } : {}),
    onChange: () => {
      redraw(undefined as never);
      onAtEnd?.(virtualizer.isAtEnd(END_THRESHOLD));
    },
  };
  const virtualizer = useMemo(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options), []);
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  useEffect(() => {
    const element = scroller.current;
    if (!follow || !element) return;
    virtualizer.scrollToEnd();
    // A reader at the end stays there when the list itself changes its height: a keyboard comes up, an alert appears. Only
    // scrolling leaves the end; rows that came in the same moment do not.
    let stays = true;
    const scrolled = () => (stays = element.scrollHeight - element.scrollTop - element.clientHeight < END_THRESHOLD);
    const observer = new ResizeObserver(() => stays && virtualizer.scrollToEnd());
    element.addEventListener("scroll", scrolled, { passive: true });
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      observer.disconnect();
    };
  }, []);
  if (controls) {
    controls.current = {
      toEnd: () => virtualizer.scrollToEnd(),
      toIndex: (index) => virtualizer.scrollToIndex(index, { align: "start" }),
    };
  }

  return (
    <div {...rest} ref={scroller} tabIndex={0}>
      <div class="virtual-space" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {virtualizer.getVirtualItems().map(({ key, index, start }) => {
          const item = items[index];
          if (item === undefined) return null;
          return (
            <div class="virtual-row" key={key} data-index={index} role={itemRole} ref={virtualizer.measureElement} style={{ transform: `translateY(${start}px)` }}>
              {render(item, index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
