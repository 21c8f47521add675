// A list of which only the rows in view are in the document, whatever its length.

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Browsers cannot lay out taller elements; longer lists are scrolled in larger steps. */
const MAX_HEIGHT = 15_000_000;
const OVERSCAN = 8;

export interface VirtualHandle {
  /** Scrolls so that the row is in view. */
  reveal(row: number, align?: "nearest" | "center"): void;
  focus(): void;
}

interface Props {
  total: number;
  rowHeight: number;
  label: string;
  /** Fixed above the rows; scrolls sideways with them. */
  head?: ComponentChildren;
  headHeight?: number;
  role: "table" | "tree" | "list";
  columns?: number;
  row: (index: number) => ComponentChildren;
  /** The row that the keyboard is at. */
  active?: number;
  activeId?: string;
  onActive?: (index: number) => void;
  onKey?: (event: KeyboardEvent) => void;
  onRange?: (first: number, end: number) => void;
  handle?: (handle: VirtualHandle) => void;
  className?: string;
}

export function VirtualList(props: Props) {
  const { total, rowHeight, active, onActive, onRange } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const head = props.headHeight ?? 0;
  const full = total * rowHeight;
  const height = Math.min(full, MAX_HEIGHT);
  const room = Math.max(view.height - head, rowHeight);
  const scale = height > room ? (full - room) / (height - room) : 1;
  const top = view.top * scale;
  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
  const end = Math.min(total, Math.ceil((top + room) / rowHeight) + OVERSCAN);

  const measure = useCallback(() => {
    const element = scroller.current;
    if (element) setView({ top: element.scrollTop, height: element.clientHeight });
  }, []);
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (scroller.current) observer.observe(scroller.current);
    return () => observer.disconnect();
  }, [measure]);
  useEffect(() => onRange?.(first, end));

  const reveal = useCallback(
    (row: number, align: "nearest" | "center" = "nearest") => {
      const element = scroller.current;
      if (!element) return;
      const room = Math.max(element.clientHeight - head, rowHeight);
      const scale = height > room ? (full - room) / (height - room) : 1;
      const now = element.scrollTop * scale;
      const at = row * rowHeight;
      let next = now;
      if (align === "center") next = at - (room - rowHeight) / 2;
      else if (at < now) next = at;
      else if (at + rowHeight > now + room) next = at + rowHeight - room;
      if (next !== now) element.scrollTop = Math.max(0, next) / scale;
      measure();
    },
    [full, head, height, rowHeight, measure],
  );
  props.handle?.({ reveal, focus: () => scroller.current?.focus({ preventScroll: true }) });

  const onKeyDown = (event: KeyboardEvent) => {
    props.onKey?.(event);
    if (event.defaultPrevented || !onActive || event.target !== event.currentTarget) return;
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(room / rowHeight) - 1);
    const now = active ?? -1;
    const next = {
      ArrowDown: now + 1,
      ArrowUp: now - 1,
      PageDown: now + page,
      PageUp: now - page,
      Home: 0,
      End: total - 1,
    }[event.key];
    if (next === undefined || total === 0) return;
    event.preventDefault();
    const to = Math.min(total - 1, Math.max(0, next));
    onActive(to);
    reveal(to);
  };

  const rows = [];
  for (let index = first; index < end; index++) rows.push(props.row(index));
  return (
    <div
      ref={scroller}
      class={`scroller ${props.className ?? ""}`}
      tabIndex={0}
      role={props.role === "table" ? "region" : props.role}
      aria-label={props.label}
      aria-activedescendant={props.role === "tree" ? props.activeId : undefined}
      onScroll={measure}
      onKeyDown={onKeyDown}
    >
      <div
        role={props.role === "table" ? "table" : "presentation"}
        aria-label={props.role === "table" ? props.label : undefined}
        aria-rowcount={props.role === "table" ? total + 1 : undefined}
        aria-colcount={props.columns}
        class="canvas"
      >
        {props.head}
        <div
          role={props.role === "table" ? "rowgroup" : "presentation"}
          class="rows"
          style={{ height: `${height}px` }}
        >
          <div
            role="presentation"
            class="shift"
            style={{ transform: `translateY(${first * rowHeight - top + view.top}px)` }}
          >
            {rows}
          </div>
        </div>
      </div>
    </div>
  );
}
