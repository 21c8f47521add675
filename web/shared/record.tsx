// All fields of one row.

import { useEffect, useRef } from "preact/hooks";

import { number, visible } from "./format.ts";
import { Icon } from "./icons.tsx";
import type { Cell, Column } from "./source.ts";

interface Props {
  index: number;
  columns: Column[];
  cells: Cell[];
  onClose: () => void;
}

export function Record({ index, columns, cells, onClose }: Props) {
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => close.current?.focus({ preventScroll: true }), []);
  return (
    <aside
      class="record"
      aria-label={`Row ${number(index + 1)}`}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <header>
        <h2>Row {number(index + 1)}</h2>
        <button ref={close} type="button" class="button bare" aria-label="Close the row" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <dl tabIndex={0} aria-label="Fields">
        {columns.map((column, at) => (
          <div key={at}>
            <dt dir="auto">{visible(column.name)}</dt>
            <dd dir="auto" class={column.type === "json" ? "code" : ""}>
              {field(cells[at] ?? null, column.type)}
            </dd>
          </div>
        ))}
      </dl>
    </aside>
  );
}

function field(cell: Cell, type: Column["type"]) {
  if (cell === null) return <span class="none">none</span>;
  if (type === "json") {
    try {
      return JSON.stringify(JSON.parse(cell), null, 2);
    } catch {
      // It was cut.
    }
  }
  return cell;
}
